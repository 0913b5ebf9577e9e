"""Orders and limits, least and greatest values, tick by tick: they see only what may be first, and equal the whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from everview.compute import tick
from everview.compute.engine.local import LocalEngine
from everview.compute.functions.resolve import resolve_aggregate
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Aggregate, Get, Order, Reduce, Relation, TopK
from everview.compute.ir.scalar import Column
from everview.compute.ir.types import BOOLEAN, FLOAT8, INT4, TEXT
from tests.compute.delta.history import Updates, contents
from tests.compute.delta.test_oracle_spark import TIMES, Case, check

SCHEMA = (INT4, TEXT, INT4, FLOAT8, BOOLEAN)


def some_lives(rng: random.Random) -> Updates:
    """Rows that come and go, some of them alike in the order."""
    updates: list[tuple[tuple[Any, ...], int, int]] = []
    for _ in range(rng.randrange(5, 60)):
        row = (
            rng.choice([None, *range(5)]),
            rng.choice([None, "", "a", "b"]),
            rng.randrange(6),
            rng.choice([None, 0.0, float("nan"), float("-inf"), -1.5]),
            rng.choice([None, True, False]),
        )
        alive, last = False, rng.randrange(TIMES)
        for _ in range(rng.randrange(1, 5)):
            updates.append((row, last, -1 if alive else 1))
            alive, last = not alive, rng.randrange(last, TIMES)
    return updates


def an_aggregate(name: str, *columns: int) -> Aggregate:
    entry, _, result = resolve_aggregate(name, [SCHEMA[at] for at in columns])
    return Aggregate(entry.key, tuple(Column(at, SCHEMA[at]) for at in columns), result)


def first_rows(rng: random.Random) -> Relation:
    columns = rng.sample(range(5), rng.randrange(1, 3))
    order = tuple(
        Order(Column(at, SCHEMA[at]), descending=rng.random() < 0.5, nulls_first=rng.random() < 0.5) for at in columns
    )
    group = tuple(rng.sample(range(3), rng.choice([0, 1, 1, 2])))
    return TopK(Get("t", SCHEMA), group, order, rng.randrange(6), rng.randrange(4))


def extremes(rng: random.Random) -> Relation:
    """Least and greatest values, sometimes with counts and sums."""
    keys = tuple(Column(at, SCHEMA[at]) for at in rng.sample(range(3), rng.choice([0, 1, 1, 2])))
    chosen = [an_aggregate(rng.choice(["min", "max"]), rng.randrange(4)) for _ in range(rng.randrange(1, 4))]
    chosen += [an_aggregate(rng.choice(["bool_and", "bool_or"]), 4)] if rng.random() < 0.3 else []
    if rng.random() < 0.5:
        chosen += rng.sample([an_aggregate("count"), an_aggregate("sum", 2), an_aggregate("count", 0)], 2)
    rng.shuffle(chosen)
    return Reduce(Get("t", SCHEMA), keys, tuple(chosen))


@pytest.mark.parametrize("number", range(60))
def test_the_first_rows_at_every_time(
    number: int, rng: random.Random, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = first_rows(rng) if number % 2 else extremes(rng)
    monkeypatch.setattr(tick, "WHOLE_ROWS_MAX", rng.choice([-1, -1, 10_000]))
    monkeypatch.setattr(tick, "WHOLE_ROWS_A_KEY_MAX", -1)
    updates = some_lives(rng)
    cuts = sorted({rng.randrange(1, TIMES) for _ in range(rng.randrange(7))} | {TIMES})
    expected = [evaluate(plan, {"t": contents(updates, time)}).rows for time in range(TIMES)]
    case = Case(f"number {number}", plan, plan, {"t": updates}, cuts, expected)
    check(case, {"local": LocalEngine()}, tmp_path)
