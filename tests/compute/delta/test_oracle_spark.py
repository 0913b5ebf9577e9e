"""The oracle with Spark: random views over random histories, maintained on Spark and on Local as stored collections.

Both equal the view evaluated from scratch at every time, though a tick holds many of them; half of the views have
temporal filters, and ticks that pass expirations. So do both in turns, statement by statement, as while Spark starts:
what one of them keeps, the other finds. Each view has a seed of its own, which a failure names: `EVERVIEW_ORACLE=seed`
runs that one alone.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.compute.engine.contract import Engine, NotSupported
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark.service import is_rough
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Get, Relation, Steps, types, walk
from everview.compute.ir.show import show
from everview.compute.ir.types import INT8, SqlType
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.rows.collection import Rows, rows_of
from everview.storage.environment import Environment
from everview.timely.consolidate import DIFF, TIME
from tests.compute.choosing import Choose, Seeded, flip
from tests.compute.delta.history import Updates, contents
from tests.compute.delta.history import timed as updates_between
from tests.compute.plans import Sample, sample
from tests.compute.temporal import at_time
from tests.tpch.stored import Stored, advance, contents_of, install, spark_engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMES = 8
SHORT, LONG_BATCH, LONG_BATCHES = 5, 100, 20


@dataclass(frozen=True)
class Case:
    """A view, what happens to its inputs, where ticks end, and what the view is at each time."""

    seed: str
    plan: Relation
    maintained: Relation
    history: dict[str, Updates]
    cuts: list[int]
    expected: list[Rows]

    @property
    def schemas(self) -> dict[str, tuple[SqlType, ...]]:
        """The inputs that the view reads, before or after it was optimized."""
        gets = [each for plan in (self.plan, self.maintained) for each in walk(plan) if isinstance(each, Get)]
        return {each.id: each.schema for each in gets if each.id in self.history}

    def __str__(self) -> str:
        history = "\n".join(f"{name}: {updates}" for name, updates in self.history.items())
        return f"seed {self.seed}, ticks end at {self.cuts}\n{show(self.maintained)}\n{history}"


def lives(choose: Choose, drawn: Sample) -> dict[str, Updates]:
    """Every row of the sample is born at some time; some die later; some come back, at the same time or another."""
    schemas = {each.id: each.schema for each in walk(drawn.plan) if isinstance(each, Get)}
    result: dict[str, Updates] = {}
    for name, rows in drawn.inputs.items():
        updates: list[tuple[Any, int, int]] = []
        for row, count in rows_of(list(rows.items()), schemas[name]).items() if name in schemas else ():
            alive, last = False, choose.integer(0, TIMES - 1)
            for _ in range(choose.integer(1, 4)):
                updates.append((row, last, -count if alive else count))
                alive, last = not alive, choose.integer(last, TIMES - 1)
        result[name] = updates
    return result


def draw(seed: str) -> Case | None:
    """The case of a seed; none if its view has no contents at some time, because it fails there."""
    choose = Seeded(random.Random(seed))
    drawn = sample(choose, fails=False, temporal=flip(choose))
    history = lives(choose, drawn)
    maintained = optimize(drawn.plan) if flip(choose) else drawn.plan
    cuts = sorted({choose.integer(1, TIMES - 1) for _ in range(choose.integer(0, 3))} | {TIMES})
    expected = []
    for time in range(TIMES):
        inputs = {name: contents(updates, time) for name, updates in history.items()}
        result = evaluate(at_time(drawn.plan, time), inputs)
        if result.errors:  # sums of random numbers may not fit their type
            return None
        expected.append(result.rows)
    return Case(seed, drawn.plan, maintained, history, cuts, expected)


def maintain(case: Case, engine: Engine, folder: Path) -> list[Rows]:
    """The view at every time, after the last tick."""
    with Environment.open(folder, background=False) as environment:
        stored = Stored(environment, case.schemas)
        flow = install(stored, "view", case.maintained, engine)
        for lower, upper in pairwise([0, *case.cuts]):
            stored.write({name: tables(case, name, lower, upper) for name in case.schemas}, upper)
            advance(flow, upper)
        return [contents_of(environment, flow, time) for time in range(TIMES)]


def tables(case: Case, name: str, lower: int, upper: int) -> Any:
    """The updates of an input in a tick."""
    schema = case.schemas[name]
    table = rows_to_arrow(updates_between(case.history[name], lower, upper), (INT8, *schema))
    return table.rename_columns([TIME, *(f"c{index}" for index in range(len(schema))), DIFF])


def disagreement(found: list[Rows], expected: list[Rows]) -> str | None:
    """Where two accounts of a view differ first; floats may in their last digits, for sums depend on the order."""
    for time, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        one, other = rounded(ours), rounded(theirs)
        if one != other:
            return f"at {time}: found only {one - other}, expected only {other - one}"
        if min(ours.values(), default=1) < 0:
            return f"at {time}: rows less than no times in {ours}"
    return None


def rounded(rows: Rows) -> Counter[Any]:
    counted: Counter[Any] = Counter()
    for row, count in rows.items():
        counted[tuple(_digits(value) if isinstance(value, float) else value for value in row)] += count
    return +counted


def _digits(value: float) -> str:
    # What is left of a difference of equal numbers, if anything, is in their last digits.
    return "0" if abs(value) < 1e-15 else f"{value:.9g}"


class InTurns(LocalEngine):
    """Every other statement on Spark, and all whose last digit may be another here."""

    def __init__(self, spark: Engine, *, spark_first: bool) -> None:
        self._spark, self._on_spark = spark, not spark_first

    def run_steps(self, steps: Steps, *args: Any, **options: Any) -> Any:
        self._on_spark = not self._on_spark
        rough = any(is_rough(step) for _, step in steps)
        run = self._spark.run_steps if self._on_spark or rough else super().run_steps
        return run(steps, *args, **options)

    def check(self, *args: Any, **options: Any) -> None:
        self._spark.check(*args, **options)


def check(case: Case, engines: Mapping[str, Engine], folder: Path) -> None:
    for name, engine in engines.items():
        wrong = disagreement(maintain(case, engine, folder / name), case.expected)
        assert not wrong, f"maintained on {name}, {wrong}\n{case}"


def seeds(batch: int, count: int) -> list[str]:
    chosen = os.environ.get("EVERVIEW_ORACLE")
    return [chosen] if chosen else [f"{os.environ['EVERVIEW_SEED']}.{batch}.{number}" for number in range(count)]


@pytest.mark.spark
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("batch", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, LONG_BATCHES))])
def test_spark_and_local_and_from_scratch_agree(
    batch: int, long_forms: bool, spark: SparkSession, tmp_path: Path
) -> None:
    engine = spark_engine(spark)
    checked = 0
    for seed in seeds(batch, LONG_BATCH if long_forms else SHORT):
        case = draw(seed)
        if case is None:
            continue
        print(seed)  # shown when a batch fails or is interrupted
        try:
            turns = {f"turns {first}": InTurns(engine, spark_first=first) for first in (False, True)}
            check(case, {"local": LocalEngine(), "spark": engine, **turns}, tmp_path / seed)
            last = {
                name: rows_to_arrow(contents(case.history[name], TIMES), each) for name, each in case.schemas.items()
            }
            scratch = rows_from_arrow(engine.run(at_time(case.plan, TIMES - 1), last), types(case.plan))
            assert not (wrong := disagreement([scratch], case.expected[-1:])), f"from scratch on spark, {wrong}\n{case}"
        except NotSupported:
            continue
        checked += 1
    assert checked, "all views were refused"


def test_stored_and_from_scratch_agree_on_local(long_forms: bool, tmp_path: Path) -> None:
    for seed in seeds(LONG_BATCHES, 500 if long_forms else 25):
        if case := draw(seed):
            check(case, {"local": LocalEngine()}, tmp_path / seed)


@pytest.mark.parametrize("defect", ["a late update", "a lost row", "one time for all"])
def test_the_oracle_notices(defect: str, tmp_path: Path) -> None:
    """A defect put in on purpose: the view is maintained over another history than the one it is checked against."""

    def spoiled(updates: Updates) -> Updates:
        if defect == "a lost row":
            return [update for update in updates if update[0] != updates[0][0]]
        if defect == "a late update":
            return [(row, min(time + 1, TIMES - 1), diff) for row, time, diff in updates]
        return [(row, TIMES - 1, diff) for row, _, diff in updates]

    noticed = 0
    for number in range(24):
        if case := draw(f"defect {number}"):
            history = {name: spoiled(updates) for name, updates in case.history.items()}
            broken = Case(case.seed, case.plan, case.maintained, history, case.cuts, case.expected)
            found = maintain(broken, LocalEngine(), tmp_path / str(number))
            noticed += disagreement(found, case.expected) is not None
    assert noticed >= 4
