"""Temporal filters with bounds that are floats: a view has at every time what its query has, NaN and infinities too."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from everview.compute.engine.contract import Engine
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.functions.numbers import real
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.types import FLOAT4, FLOAT8, INT8, Kind, SqlType, numeric
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.collection import Rows
from everview.compute.sql.errors import SqlError
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection
from tests.compute.delta.history import Maintained, Updates, contents
from tests.compute.temporal import at_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS: dict[str, SqlType] = {"k": INT8, "f": FLOAT8, "r": FLOAT4, "n": numeric(20, 1), "till": INT8}
# Of our time, of seconds, and of times that floats round.
NOW = 1_674_000_000_000
STARTS = {"now": NOW, "early": 0, "rounded": 2**60}
LENGTH = 2_000
SIDES = (
    *("mz_now()", "mz_now()::bigint", "mz_now()::numeric", "mz_now()::float8", "mz_now()::real"),
    *("mz_now() - 500", "mz_now()::bigint * 2 / 2", "(mz_now() - 7)::float8", "mz_now()::float8::real"),
    *("mz_now()::float8 + 0.25::float8", "mz_now()::float8 - 100", "till::float8 + mz_now()::float8 - till::float8"),
    *("mz_now()::numeric / 3 * 3", "mz_now()::float8 / 3 * 3", "- (- mz_now()::float8)", "(+ mz_now()::float8)"),
    *("floor(mz_now()::float8 / 7) * 7", "ceil(mz_now()::float8)", "round(mz_now()::float8 / 10) * 10"),
    *("GREATEST(mz_now(), f)", "COALESCE(mz_now(), f)", "trunc(mz_now()::float8)", "LEAST(mz_now(), r)"),
    *("CASE WHEN k > 1 THEN mz_now() ELSE r END", "abs(mz_now()::float8 - till) + till::float8"),
    *("mz_now()::real::float8 + 0.5", "- (- mz_now()::real)"),
)
OTHERS = ("f", "r", "f + 0.5", "r - 1", "-(-f)", "'NaN'::float8", "till::float8", "n::float8", "NULL::real")
SECONDS = ("extract(epoch FROM mz_now())", "date_part('epoch', mz_now()::timestamptz)")
FALLING = (
    *("- mz_now()::float8", "till::float8 - mz_now()::float8", "mz_now()::float8 * -2"),
    *("mz_now()::bigint / -2.0::float8", "- mz_now()::real"),
)
OPERATORS = ("<", "<=", "=", ">=", ">", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
SHAPES = ("({})", "({})", "(NOT ({}))", "(({}) IS FALSE)", "(({}) IS UNKNOWN)", "(({}) OR k = 1)")


class Names:
    """One table."""

    def find(self, path: Sequence[str]) -> Collection | None:
        return Collection("a", tuple(COLUMNS), tuple(COLUMNS.values())) if path[-1] == "a" else None

    def names(self) -> list[str]:
        return ["a"]


def row(rng: random.Random, start: int, unit: float) -> tuple[Any, ...]:
    def near() -> float:
        return (start + rng.randint(-200, LENGTH + 200)) * unit + rng.choice((0.0, 0.0, 0.5, 0.001, -0.25))

    odd: tuple[float | None, ...] = (math.nan, math.inf, -math.inf, None, 0.0, 1e300, -5e-324)
    f = rng.choice(odd) if rng.random() < 0.3 else near()
    r = rng.choice((math.nan, math.inf, -math.inf, None, 1e30)) if rng.random() < 0.3 else near()
    n = Decimal(rng.randint(start * 10, (start + LENGTH) * 10)).scaleb(-1)
    real_or_none = None if r is None else real(r, Kind.FLOAT4, infinite=True)
    return rng.randint(0, 2), f, real_or_none, n, start + rng.randint(0, LENGTH)


def lives(rng: random.Random, start: int, unit: float) -> Updates:
    updates = []
    for _ in range(rng.randint(2, 8)):
        each, time, alive = row(rng, start, unit), start + rng.choice((0, rng.randint(0, LENGTH))), False
        for _ in range(rng.randint(1, 3)):
            updates.append((each, time, -1 if alive else 1))
            alive, time = not alive, time + rng.randint(0, LENGTH)
    return updates


def check(rng: random.Random, condition: str, start: int, *, unit: float = 1.0, engine: Engine | None = None) -> None:
    text, end = f"SELECT k, f, r, till FROM a WHERE {condition}", start + 2 * LENGTH
    history = {"a": lives(rng, start, unit)}
    written = plan(text, Names()).relation
    view = Maintained(optimize(written), engine or LocalEngine())
    cuts = sorted(rng.sample(range(start + 1, end), rng.randint(0, 4)))
    for lower, upper in pairwise(sorted({0, start, *cuts, end})):
        view.tick(history, lower, upper)
    assert not view.errors, text
    edges = {time + by for _, time, _ in view.output for by in (-1, 0, 1)}
    looked = {each for each in (*edges, *(rng.randint(start, end - 1) for _ in range(20))) if start <= each < end}
    for time in sorted(looked):
        expected = evaluate(at_time(written, time), {"a": contents(history["a"], time)})
        assert not expected.errors, text
        assert shown(contents(view.output, time)) == shown(expected.rows), f"{text}\nat {time}\n{history}"


def shown(rows: Rows) -> dict[str, int]:
    """The rows as texts, for NaN is not itself in Python."""
    found: Counter[str] = Counter()
    for each, count in rows.items():
        found[repr(each)] += count
    return {text: count for text, count in found.items() if count}


def condition(rng: random.Random, side: str, others: Sequence[str] = OTHERS) -> str:
    other, operator = rng.choice(others), rng.choice(OPERATORS)
    pair = (side, other) if rng.random() < 0.7 else (other, side)
    return rng.choice(SHAPES).format(f"{pair[0]} {operator} {pair[1]}")


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("side", [*SIDES, *FALLING])
def test_every_form_is_exact(side: str, start: str, rng: random.Random, long_forms: bool) -> None:
    for _ in range(60 if long_forms else 4):
        others = [f"-({each})" for each in OTHERS] if side in FALLING else OTHERS
        check(rng, condition(rng, side, others), STARTS[start])


@pytest.mark.parametrize("start", ["now", "early"])
@pytest.mark.parametrize("side", SECONDS)
def test_seconds_are_exact(side: str, start: str, rng: random.Random, long_forms: bool) -> None:
    for _ in range(60 if long_forms else 6):
        check(rng, condition(rng, side, ("f", "r", "f + 0.001::float8")), STARTS[start], unit=0.001)


@pytest.mark.parametrize(
    "text",
    [
        "mz_now() IN (f, r, 1674000000500)",
        "mz_now() BETWEEN f AND till",
        "mz_now() BETWEEN SYMMETRIC f AND r",
        "mz_now() < ANY (ARRAY[f, till])",
        "mz_now() >= ALL (ARRAY[r, f])",
        "abs(mz_now()::float8 - f) < 100",
        "mz_now() > f AND mz_now() < f + 300 OR mz_now() = r",
    ],
)
def test_conditions_of_several(text: str, rng: random.Random, long_forms: bool) -> None:
    for _ in range(60 if long_forms else 6):
        check(rng, text, NOW)


@pytest.mark.parametrize("text", ["mz_now()::real + r < f", "mz_now()::float8 * f < 5", "sqrt(mz_now()::float8) < f"])
def test_what_cannot_be_turned_around(text: str) -> None:
    with pytest.raises(SqlError) as caught:
        Maintained(optimize(plan(f"SELECT k FROM a WHERE {text}", Names()).relation), LocalEngine())
    assert caught.value.sqlstate == "0A000"


@pytest.mark.spark
def test_on_spark(rng: random.Random, spark: SparkSession) -> None:
    """Bounds with sums that are rounded are functions in Python whose arguments are calls inside of calls."""
    drawn = [condition(rng, side) for side in rng.sample([*SIDES, *FALLING], 8)]
    conditions = " OR ".join(["mz_now() < f + 0.5 - 0.25", "mz_now()::numeric = r - 1", *drawn])
    check(rng, f"({conditions}) AND mz_now() < till", NOW, engine=SparkEngine(spark))
