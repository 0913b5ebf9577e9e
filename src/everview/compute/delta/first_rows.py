"""The rows that may be among the first of their key in an order: a tick of an order and limit sees only these.

Let k rows be wanted. Take rows in their order, and with them the changes of the tick, until as many as were there are k
more than all that leave. However the tick goes on from time to time, k of these rows are there, so nothing behind them
is ever among the first: neither it nor what happens to it matters. Rows that are equal in the order are taken all or
none, for their own order is another matter. Mostly a tick changes none of these rows, and then there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from everview.compute.delta.program import BEFORE
from everview.compute.ir.relation import Order
from everview.compute.ir.scalar import Column
from everview.compute.ir.types import Kind
from everview.timely.consolidate import DIFF, Bools, int_column
from everview.timely.equality import rows_equal
from everview.timely.hashing import I64, hash_rows
from everview.timely.ordering import Sort, in_order

# Kinds whose values are ordered in Arrow as in SQL.
_ORDERED = {
    *(Kind.BOOLEAN, Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.MZ_TIMESTAMP),
    *(Kind.TEXT, Kind.VARCHAR, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
}


def can_order(order: Sequence[Order]) -> bool:
    """Whether tables can be put in this order here."""
    return all(isinstance(each.scalar, Column) and each.scalar.type.kind in _ORDERED for each in order)


def sorts_of(order: Sequence[Order], front: int = 0) -> list[Sort]:
    """The order of tables with so many columns in front."""
    sorts = []
    for each in order:
        assert isinstance(each.scalar, Column)
        sorts.append(Sort(f"c{each.scalar.index + front}", each.descending, each.nulls_first))
    return sorts


def needed_of(hashes: I64, changes_hashes: I64, changes: pa.Table, count: int) -> I64:
    """How many rows of what was there are needed of each of the hashes: `count` more than leave."""
    leaving = np.zeros(len(hashes), dtype=np.int64)
    np.add.at(leaving, np.searchsorted(hashes, changes_hashes), -np.minimum(int_column(changes, DIFF), 0))
    return leaving + count


def that_may_matter(
    table: pa.Table,
    changes: pa.Table,
    key: Sequence[int],
    order: Sequence[Order],
    count: int,
    *,
    unchanged: bool = False,
) -> pa.Table:
    """The rows and changes that may be among the first `count` of their key, timed.

    Keys of which no such row changes are left out, if it is not asked for what is `unchanged` too.
    """
    state = _at(table, BEFORE, changes.schema)
    everything = pa.concat_tables([state, changes.select(changes.schema.names)]).combine_chunks()
    if not order or not everything.num_rows:
        return everything
    keys = [everything.column(f"c{index + 1}") for index in key]
    groups = hash_rows(keys, everything.num_rows)
    places, differs = in_order(everything, sorts_of(order, 1), groups)
    groups = groups[places]
    starts = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))
    sizes = np.diff(np.append(starts, len(groups)))
    of_group = np.repeat(np.arange(len(starts)), sizes)
    diffs, times = int_column(everything, DIFF)[places], int_column(everything, "c0")[places]
    there = np.cumsum(np.where(times == BEFORE, diffs, np.minimum(diffs, 0)))
    there -= np.concatenate(([0], there))[starts][of_group]
    at = np.arange(len(places))
    last = np.minimum.reduceat(np.where((there >= count) & differs, at, len(at)), starts)
    if key:
        last[np.unique(of_group[:-1][_unlike(keys, places, groups)])] = len(at)
    kept = at <= last[of_group]
    if not unchanged:
        kept &= np.maximum.reduceat(kept & (times != BEFORE), starts)[of_group]
    return everything.take(pa.array(places[kept]))


def _unlike(keys: Sequence[pa.ChunkedArray], places: I64, groups: I64) -> Bools:
    """Which rows have the hash of the one behind them, and another key: counted together they would be too many."""
    unlike: Bools = groups[1:] == groups[:-1]
    candidates = np.flatnonzero(unlike)
    if len(candidates):
        unlike[candidates] = ~rows_equal(keys, places[candidates], places[candidates + 1])
    return unlike


def _at(table: pa.Table, time: int, schema: pa.Schema) -> pa.Table:
    times = pa.array(np.full(table.num_rows, time, dtype=np.int64))
    data = [table.column(f"c{place}") for place in range(len(schema) - 2)]
    return pa.table([times, *data, table.column(DIFF)], names=schema.names).cast(schema)
