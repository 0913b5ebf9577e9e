"""The first rows of a table in an order, as many as may matter: what a tick of a TopK over everything has to see.

Whatever a tick does, the first k rows at each of its times are among those that it brings and the first k + d of those
that were there, if it takes d away. So of an arrangement without a key, which is found as a whole, only these are
handed to the engine, with those that are taken away: what leaves must have been there. Rows that are equal in the order
are taken all or none, for their own order is another matter.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.ir.relation import Order
from everview.compute.ir.scalar import Column
from everview.compute.ir.types import Kind
from everview.timely.consolidate import DIFF

# Kinds that Arrow orders as SQL does.
_ORDERED = {
    *(Kind.BOOLEAN, Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.MZ_TIMESTAMP),
    *(Kind.TEXT, Kind.VARCHAR, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
}


def can_order(order: Sequence[Order]) -> bool:
    """Whether tables can be put in this order here."""
    return all(isinstance(each.scalar, Column) and each.scalar.type.kind in _ORDERED for each in order)


def that_may_matter(table: pa.Table, order: Sequence[Order], count: int, changes: pa.Table) -> pa.Table:
    """Of the rows that are there, those that changes take away or that may be among the first `count` meanwhile.

    The columns of the changes have a time in front.
    """
    leaving = changes.filter(pc.less(changes.column(DIFF), 0))
    first = _are_first(table, order, count - (pc.sum(leaving.column(DIFF)).as_py() or 0))
    if first is None:
        return table
    if leaving.num_rows:
        # What is equal to a row that leaves is equal in any column; the first of the order tells most rows apart.
        column = order[0].scalar
        assert isinstance(column, Column)
        values = leaving.column(f"c{column.index + 1}").combine_chunks()
        first = pc.or_(first, pc.is_in(table.column(f"c{column.index}"), value_set=values))
    return table.filter(first)


def _are_first(table: pa.Table, order: Sequence[Order], count: int) -> pa.ChunkedArray | None:
    """Which are the first `count` rows, with those that are equal to the last of them; None if all are."""
    if table.num_rows <= count or not order:
        return None
    if not count:
        return pa.chunked_array([pa.array([False] * table.num_rows)])
    columns, keys = {}, []
    for place, each in enumerate(order):
        assert isinstance(each.scalar, Column)
        values = table.column(f"c{each.scalar.index}")
        missing = pc.is_null(values)
        columns[f"n{place}"] = (pc.invert(missing) if each.nulls_first else missing).cast(pa.int8())
        columns[f"v{place}"] = values
        keys += [(f"n{place}", "ascending"), (f"v{place}", "descending" if each.descending else "ascending")]
    ordered = pa.table(columns)
    last = pc.sort_indices(ordered, sort_keys=keys)[count - 1].as_py()
    return _not_after(ordered, keys, ordered.slice(last, 1))


def _not_after(table: pa.Table, keys: Sequence[tuple[str, str]], bound: pa.Table) -> pa.ChunkedArray:
    """Which rows are before the one in `bound`, or equal to it."""
    before = pa.chunked_array([pa.array([False] * table.num_rows)])
    equal = pc.invert(before)
    for name, direction in keys:
        limit, values = bound.column(name)[0], table.column(name)
        if limit.is_valid:
            compared = pc.less(values, limit) if direction == "ascending" else pc.greater(values, limit)
            before = pc.or_(before, pc.and_(equal, pc.fill_null(compared, False)))
            same = pc.fill_null(pc.equal(values, limit), False)
        else:
            same = pc.is_null(values)  # whether NULLs come first is told by the column before
        equal = pc.and_(equal, same)
    return pc.or_(before, equal)
