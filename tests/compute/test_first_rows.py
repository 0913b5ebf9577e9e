"""The rows that may matter to an order and limit: as the order of SQL has them, with what changes take away."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from everview.compute.engine.local.arrow import rows_from_arrow
from everview.compute.engine.local.evaluate import evaluate
from everview.compute.first_rows import can_order, that_may_matter
from everview.compute.ir.relation import Get, Negate, Order, TopK, Union
from everview.compute.ir.scalar import Column
from everview.compute.ir.types import FLOAT8, INT4, TEXT

SCHEMA = (INT4, TEXT, INT4)


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


def timed(table: pa.Table, diff: int) -> pa.Table:
    columns = {f"c{at + 1}": table.column(f"c{at}") for at in range(len(SCHEMA))}
    times = pa.array([7] * table.num_rows, pa.int64())
    return pa.table({"c0": times, **columns, "_diff": pa.array([diff] * table.num_rows, pa.int64())})


@pytest.mark.parametrize("case", range(40))
def test_they_hold_the_first_ones_and_what_is_equal_to_the_last(case: int, rng: random.Random) -> None:
    table, count = some(rng, 30), rng.randrange(12)
    columns = rng.sample([0, 1], rng.randrange(1, 3))
    order = an_order(rng, columns)
    found = rows_from_arrow(that_may_matter(table, order, count, timed(some(rng, 3), 1)), SCHEMA)
    everything = rows_from_arrow(table, SCHEMA)
    wanted = evaluate(TopK(Get("t", SCHEMA), (), order, count), {"t": everything}).rows
    assert wanted.keys() <= found.keys() <= everything.keys()
    # And no others: each of them is equal in the order to one that is wanted.
    keys = {tuple(row[at] for at in columns) for row in wanted}
    assert {tuple(row[at] for at in columns) for row in found} == keys


@pytest.mark.parametrize("case", range(40))
def test_after_changes_the_first_ones_are_the_same_as_with_all_rows(case: int, rng: random.Random) -> None:
    table, count = some(rng, 30), rng.randrange(12)
    order = an_order(rng, rng.sample([0, 1], rng.randrange(1, 3)))
    leaving = table.take(pa.array(rng.sample(range(30), rng.randrange(6)), pa.int64()))
    coming = some(rng, rng.randrange(4))
    found = that_may_matter(table, order, count, pa.concat_tables([timed(leaving, -1), timed(coming, 1)]))
    top = TopK(Union((Get("t", SCHEMA), Get("came", SCHEMA), Negate(Get("left", SCHEMA)))), (), order, count)
    given = {"came": rows_from_arrow(coming, SCHEMA), "left": rows_from_arrow(leaving, SCHEMA)}
    with_all = evaluate(top, {"t": rows_from_arrow(table, SCHEMA), **given})
    with_these = evaluate(top, {"t": rows_from_arrow(found, SCHEMA), **given})
    assert with_these.rows == with_all.rows
    assert rows_from_arrow(leaving, SCHEMA).keys() <= rows_from_arrow(found, SCHEMA).keys()


def test_not_every_order_is_one_of_arrow() -> None:
    assert not can_order([Order(Column(0, FLOAT8))])
    assert can_order([Order(Column(0, INT4))])
