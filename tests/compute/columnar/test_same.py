"""Plans by columns have the rows that they have in the interpreter, whichever plan and whatever the values."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from everview.compute.columnar.batch import Batch, NotByColumns
from everview.compute.columnar.eligible import is_wholly_columnar
from everview.compute.columnar.evaluate import evaluate
from everview.compute.interpreter.evaluate import evaluate as interpreted
from everview.compute.ir.relation import Get, Relation, types, walk
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.collection import NegativeMultiplicity, Rows, rows_of
from tests.compute.choosing import Seeded
from tests.compute.plans import sample
from tests.compute.sql.outcomes import planned
from tests.compute.sql.sentences import sentence
from tests.compute.sql.words import SCHEMAS, rows_for

PLANS, PLANS_LONG = 200, 30_000
QUERIES, QUERIES_LONG = 100, 5_000
COLUMNAR = ("filter", "map", "reduce", "topk", "join", "union", "outer_join", "project", "threshold")


def exactly(rows: Rows) -> Counter[str]:
    """The rows to the bit: what equals another value in Python may have another representation."""
    return Counter({repr(row): multiplicity for row, multiplicity in rows.items()})


@pytest.mark.parametrize("favour", [(), COLUMNAR], ids=["any", "columnar"])
@pytest.mark.parametrize("fails", [False, True], ids=["sound", "failing"])
def test_random_plans(favour: tuple[str, ...], fails: bool, rng: random.Random, long_forms: bool) -> None:
    first, outcomes = rng.randrange(1 << 32), Counter[str]()
    for seed in range(first, first + (PLANS_LONG if long_forms else PLANS)):
        outcomes[outcome(seed, favour, fails=fails)] += 1
    assert outcomes["by columns"] > 0.3 * outcomes.total(), outcomes
    assert outcomes["for nothing"] <= 0.02 * outcomes.total(), (
        f"what does not fail is seldom left to others: {outcomes}"
    )


def test_queries_as_text(rng: random.Random, long_forms: bool) -> None:
    first, outcomes = rng.randrange(1 << 32), Counter[str]()
    for seed in range(first, first + (QUERIES_LONG if long_forms else QUERIES)):
        bound, _ = planned(sentence(seed))
        if bound is not None:
            data = {name: [(row, 1) for row in rows] for name, rows in rows_for(random.Random(seed)).items()}
            inputs = {name: rows_of(rows, tuple(SCHEMAS[name].values())) for name, rows in data.items()}
            outcomes[compared(optimize(bound.relation), inputs, f"sentence({seed})")] += 1
    assert outcomes["by columns"] > 0.2 * outcomes.total(), outcomes
    assert outcomes["for nothing"] <= 0.02 * outcomes.total(), outcomes


def outcome(seed: int, favour: tuple[str, ...], *, fails: bool) -> str:
    """What became of one plan."""
    case = sample(Seeded(random.Random(seed)), fails=fails, favour=favour)
    plan = case.plan if seed % 2 else optimize(case.plan)
    return compared(plan, case.inputs, f"seed {seed}: {case}")


def compared(plan: Relation, inputs: Mapping[str, Rows], name: str) -> str:
    """What became of a plan, whose rows by columns are those that it has in the interpreter."""
    schemas = {each.id: each.schema for each in walk(plan) if isinstance(each, Get)}
    batches = {id: Batch.of_rows(rows, schemas[id]) for id, rows in inputs.items() if id in schemas}
    try:
        expected = interpreted(plan, inputs)
    except NegativeMultiplicity:
        return "of no meaning"
    try:
        found = evaluate(plan, batches)
    except NotByColumns:
        return "failing" if expected.errors else "for nothing"
    assert not expected.errors, name
    assert exactly(found.to_rows(types(plan))) == exactly(expected.rows), name
    return "by columns" if is_wholly_columnar(plan) else "in part"
