"""The rows that may be among the first in an order: what a tick of an order and limit over everything has to see.

Let k rows be wanted. Take rows in their order, and with them the changes of the tick, until as many as were there are k
more than all that leave. However the tick goes on from time to time, k of these rows are there, so nothing behind them
is ever among the first: neither it nor what happens to it matters. Rows that are equal in the order are taken all or
none, for their own order is another matter. Mostly a tick changes none of these rows, and then there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.delta.program import BEFORE
from everview.compute.ir.relation import Order
from everview.compute.ir.scalar import Column
from everview.compute.ir.types import Kind
from everview.timely.consolidate import DIFF, Positions

# Kinds that Arrow orders as SQL does.
_ORDERED = {
    *(Kind.BOOLEAN, Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.MZ_TIMESTAMP),
    *(Kind.TEXT, Kind.VARCHAR, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
}


def can_order(order: Sequence[Order]) -> bool:
    """Whether tables can be put in this order here."""
    return all(isinstance(each.scalar, Column) and each.scalar.type.kind in _ORDERED for each in order)


def that_may_matter(table: pa.Table, changes: pa.Table, order: Sequence[Order], count: int) -> pa.Table:
    """The rows and changes that may be among the first `count`, timed; nothing if no such row changes."""
    state = _at(table, BEFORE, changes.schema)
    everything = pa.concat_tables([state, changes.select(changes.schema.names)]).combine_chunks()
    places = _first_places(everything, order, count)
    if places is not None:
        if not len(places) or places.max() < table.num_rows:
            return everything.slice(0, 0)
        everything = everything.take(pa.array(places))
    return everything


def _at(table: pa.Table, time: int, schema: pa.Schema) -> pa.Table:
    """The rows at a time, in the columns of changes."""
    times = pa.array(np.full(table.num_rows, time, dtype=np.int64))
    data = [table.column(f"c{place}") for place in range(len(schema) - 2)]
    return pa.table([times, *data, table.column(DIFF)], names=schema.names).cast(schema)


def _first_places(everything: pa.Table, order: Sequence[Order], count: int) -> Positions | None:
    """Where the rows are that may matter; None if all may."""
    if not order:
        return None
    named, keys = {}, []
    for place, each in enumerate(order):
        assert isinstance(each.scalar, Column)
        values = everything.column(f"c{each.scalar.index + 1}")
        missing = pc.is_null(values)
        named[f"n{place}"] = (pc.invert(missing) if each.nulls_first else missing).cast(pa.int8())
        named[f"v{place}"] = values
        keys += [(f"n{place}", "ascending"), (f"v{place}", "descending" if each.descending else "ascending")]
    ordered = pa.table(named)
    places = pc.sort_indices(ordered, sort_keys=keys).to_numpy()
    diffs, times = (everything.column(name).to_numpy()[places] for name in (DIFF, "c0"))
    there = np.cumsum(np.where(times == BEFORE, diffs, np.minimum(diffs, 0)))
    enough = np.flatnonzero((there >= count) & _last_of_equals(ordered.take(pa.array(places))))
    return places[: enough[0] + 1] if len(enough) else None


def _last_of_equals(ordered: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows differ from the one behind them, or have none."""
    differs = np.ones(ordered.num_rows, dtype=bool)
    if ordered.num_rows:
        differs[:-1] = False
        for name in ordered.column_names:
            column = ordered.column(name).combine_chunks()
            # Two NULLs are equal here, and that one is a NULL alone is told by the column before.
            differs[:-1] |= pc.fill_null(pc.not_equal(column[1:], column[:-1]), False).to_numpy(zero_copy_only=False)
    return differs
