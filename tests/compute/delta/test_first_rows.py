"""The rows that may matter to an order and limit: at every time of a tick, the first ones are the same with these."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from everview.compute.delta.first_rows import can_order, that_may_matter
from everview.compute.delta.program import BEFORE
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Get, Order, TopK
from everview.compute.ir.scalar import Column
from everview.compute.ir.types import INT4, INT8, INTERVAL, TEXT
from everview.compute.rows.arrow import rows_from_arrow
from everview.compute.rows.collection import Row, Rows

SCHEMA = (INT4, TEXT, INT4)
TIMES = (5, 6, 7)


def some(rng: random.Random, count: int) -> pa.Table:
    numbers = [rng.choice([None, *range(4)]) for _ in range(count)]
    words = [rng.choice([None, "", "a", "B", "é"]) for _ in range(count)]
    return pa.table(
        {
            "c0": pa.array(numbers, pa.int32()),
            "c1": pa.array(words, pa.string()),
            "c2": pa.array(range(count), pa.int32()),
            "_diff": pa.array([1] * count, pa.int64()),
        }
    )


def an_order(rng: random.Random, columns: list[int]) -> tuple[Order, ...]:
    return tuple(
        Order(Column(at, SCHEMA[at]), descending=rng.random() < 0.5, nulls_first=rng.random() < 0.5) for at in columns
    )


def timed(table: pa.Table, rng: random.Random, diff: int) -> pa.Table:
    columns = {f"c{at + 1}": table.column(f"c{at}") for at in range(len(SCHEMA))}
    times = pa.array([rng.choice(TIMES) for _ in range(table.num_rows)], pa.int64())
    return pa.table({"c0": times, **columns, "_diff": pa.array([diff] * table.num_rows, pa.int64())})


def firsts(found: pa.Table, order: tuple[Order, ...], count: int, time: int) -> Rows:
    """The first ones at a time, out of rows and changes until then."""
    rows: Counter[Row] = Counter()
    for (at, *row), diff in rows_from_arrow(found, (INT8, *SCHEMA)).items():
        if at <= time:
            rows[tuple(row)] += diff
    assert min(rows.values(), default=0) >= 0, "what leaves was there"
    there = {row: diff for row, diff in rows.items() if diff}
    return evaluate(TopK(Get("t", SCHEMA), (), order, count), {"t": there}).rows


@pytest.mark.parametrize("case", range(200))
def test_at_every_time_the_first_ones_are_the_same_as_with_all_rows(case: int, rng: random.Random) -> None:
    table, count = some(rng, 30), rng.randrange(12)
    order = an_order(rng, rng.sample([0, 1], rng.randrange(1, 3)))
    leaving = table.take(pa.array(rng.sample(range(30), rng.randrange(6)), pa.int64()))
    coming = some(rng, rng.randrange(4))
    changes = pa.concat_tables([timed(leaving, rng, -1), timed(coming, rng, 1)])
    found = that_may_matter(table, changes, (), order, count)
    state = timed(table, rng, 1).set_column(0, "c0", pa.array([BEFORE] * table.num_rows, pa.int64()))
    everything = pa.concat_tables([state, changes])
    wanted = [firsts(everything, order, count, time) for time in (BEFORE, *TIMES)]
    if found.num_rows:
        assert [firsts(found, order, count, time) for time in (BEFORE, *TIMES)] == wanted
    else:
        assert all(each == wanted[0] for each in wanted), "nothing was said to change"


def test_what_is_far_behind_is_left_out() -> None:
    table = some(random.Random(1), 0)
    rows = {"c0": list(range(100)), "c1": ["x"] * 100, "c2": list(range(100)), "_diff": [1] * 100}
    table = pa.table(rows, schema=table.schema)
    order = (Order(Column(0, INT4)),)
    rng = random.Random(2)
    behind = that_may_matter(table, timed(table.slice(90, 5), rng, -1), (), order, 3)
    assert behind.num_rows == 0
    within = that_may_matter(table, timed(table.slice(1, 2), rng, -1), (), order, 3)
    assert sorted(within.column("c1").to_pylist()) == [0, 1, 1, 2, 2, 3, 4], "three, and as many as leave"


def test_not_every_order_is_one_of_arrow() -> None:
    assert not can_order([Order(Column(0, INTERVAL))])
    assert can_order([Order(Column(0, INT4))])
