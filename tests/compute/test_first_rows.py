"""The first rows of a table: as the order of SQL has them, with all that are equal to the last."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from everview.compute.engine.local.arrow import rows_from_arrow
from everview.compute.engine.local.evaluate import evaluate
from everview.compute.first_rows import can_order, first_rows
from everview.compute.ir.relation import Get, Order, TopK
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


@pytest.mark.parametrize("case", range(40))
def test_they_hold_the_first_ones_and_what_is_equal_to_the_last(case: int, rng: random.Random) -> None:
    table, count = some(rng, 30), rng.randrange(12)
    columns = rng.sample([0, 1], rng.randrange(1, 3))
    order = tuple(
        Order(Column(at, SCHEMA[at]), descending=rng.random() < 0.5, nulls_first=rng.random() < 0.5) for at in columns
    )
    found = rows_from_arrow(first_rows(table, order, count), SCHEMA)
    everything = rows_from_arrow(table, SCHEMA)
    wanted = evaluate(TopK(Get("t", SCHEMA), (), order, count), {"t": everything}).rows
    assert wanted.keys() <= found.keys() <= everything.keys()
    # And no others: each of them is equal in the order to one that is wanted.
    keys = {tuple(row[at] for at in columns) for row in wanted}
    assert {tuple(row[at] for at in columns) for row in found} == keys


def test_not_every_order_is_one_of_arrow() -> None:
    assert not can_order([Order(Column(0, FLOAT8))])
    assert can_order([Order(Column(0, INT4))])
