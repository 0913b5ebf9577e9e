"""Plans of SQL and random ones, as bound, optimized and differentiated: what meets in them is represented alike."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from everview.compute.delta.program import TickProgram, delta_of
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation, types
from everview.compute.ir.types import INT8, SqlType
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.query import plan
from everview.compute.view import View, inputs_of
from tests.compute.choosing import Seeded
from tests.compute.plans import sample
from tests.compute.representation import mismatches
from tests.compute.sql.tables import Tables
from tests.compute.sql.test_against_postgres import QUERIES, RECURSIVE
from tests.tpch.queries import QUERIES as TPCH_QUERIES
from tests.tpch.test_binding import Tpch

SAMPLES, SAMPLES_LONG = 300, 3_000


def of_view(relation: Relation) -> Iterator[str]:
    """Of the programs that keep a view."""
    view = View.of(relation)
    yield from mismatches(view.plan)
    for program in (view.program, view.careful_program):
        yield from of_program(program, inputs_of(view.plan))


def of_program(program: TickProgram, inputs: dict[str, tuple[SqlType, ...]]) -> Iterator[str]:
    """Each step by itself, and look-ups: keys from anywhere are represented as those of the arrangement."""
    steps = {name: types(step) for name, step in program.steps}
    known = steps | {delta_of(id): (INT8, *schema) for id, schema in inputs.items()} | dict(program.readings)
    for _, step in program.steps:
        yield from mismatches(step, known)
    arrangements = {each.name: each for each in program.arrangements}
    for lookup in (each for stage in program.stages for each in stage.lookups):
        arrangement = arrangements[lookup.arrangement]
        if lookup.due or lookup.first is not None:
            continue
        key = tuple(arrangement.schema[index] for index in arrangement.key)
        for source in lookup.sources if key else ():
            theirs = tuple(each.type for each in source.key)
            both = ir.Union((ir.Constant((), key), ir.Constant((), theirs)))
            yield from (f"look-up by {source.key}: {line}" for line in mismatches(both))


@pytest.mark.parametrize("optimized", [False, True])
def test_of_queries(optimized: bool) -> None:
    wrong = []
    for catalog, queries in ((Tables(), QUERIES), (Tpch(), list(TPCH_QUERIES.values()))):
        for query in queries:
            bound = plan(query, catalog).relation
            relation = optimize(bound) if optimized else bound
            wrong += [f"{query}: {line}" for line in (*mismatches(relation), *of_view(relation))]
    assert not wrong, "\n".join(wrong[:20])


def test_of_recursive_queries() -> None:
    wrong = [line for query in RECURSIVE for line in mismatches(optimize(plan(query, Tables()).relation))]
    assert not wrong, "\n".join(wrong[:20])


def test_of_random_plans(long_forms: bool) -> None:
    for number in range(SAMPLES_LONG if long_forms else SAMPLES):
        drawn = sample(Seeded(random.Random(f"representation {number}")), fails=number % 2 == 0)
        for relation in (drawn.plan, optimize(drawn.plan)):
            wrong = [*mismatches(relation), *of_view(relation)]
            assert not wrong, f"{number}: {wrong[0]}"
