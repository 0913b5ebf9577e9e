"""An order and limit over everything, tick by tick: it sees only what may be among the first, and equals the whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from everview.compute.engine.local.engine import LocalEngine
from everview.compute.engine.local.evaluate import evaluate
from everview.compute.ir.relation import Get, Order, TopK
from everview.compute.ir.scalar import Column
from everview.compute.ir.types import INT4, TEXT
from tests.compute.delta.history import Updates, contents
from tests.compute.delta.test_oracle_spark import TIMES, Case, check

SCHEMA = (INT4, TEXT, INT4)


def some_lives(rng: random.Random) -> Updates:
    """Rows that come and go, some of them alike in the order."""
    updates: Updates = []
    for _ in range(rng.randrange(5, 60)):
        row = (rng.choice([None, *range(5)]), rng.choice([None, "", "a", "b"]), rng.randrange(6))
        alive, last = False, rng.randrange(TIMES)
        for _ in range(rng.randrange(1, 5)):
            updates.append((row, last, -1 if alive else 1))
            alive, last = not alive, rng.randrange(last, TIMES)
    return updates


@pytest.mark.parametrize("number", range(40))
def test_the_first_rows_at_every_time(number: int, rng: random.Random, tmp_path: Path) -> None:
    columns = rng.sample(range(3), rng.randrange(1, 3))
    order = tuple(
        Order(Column(at, SCHEMA[at]), descending=rng.random() < 0.5, nulls_first=rng.random() < 0.5) for at in columns
    )
    plan = TopK(Get("t", SCHEMA), (), order, rng.randrange(6), rng.randrange(4))
    updates = some_lives(rng)
    cuts = sorted({rng.randrange(1, TIMES) for _ in range(rng.randrange(7))} | {TIMES})
    expected = [evaluate(plan, {"t": contents(updates, time)}).rows for time in range(TIMES)]
    case = Case(f"number {number}", plan, plan, {"t": updates}, cuts, expected)
    check(case, {"local": LocalEngine()}, tmp_path)
