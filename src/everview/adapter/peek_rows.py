"""Collections as results: rows in the order asked for, each as often as it occurs, in the values that clients get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from everview.compute.columnar.batch import Batch, NotByColumns
from everview.compute.columnar.evaluate import sorted_rows
from everview.compute.columnar.order import is_ordered
from everview.compute.interpreter import limits
from everview.compute.interpreter.ordering import compile_order, row_order_key, sort_by
from everview.compute.ir.relation import Order
from everview.compute.ir.types import Kind, SqlType
from everview.compute.rows.arrow import rows_from_arrow, values_from_arrow
from everview.compute.rows.collection import Row, Rows, canonical, plain
from everview.compute.sql.errors import SqlError

RESULT_ROWS_MAX = 5_000_000
_SLICE_ROWS = 4_096  # that are made at once: others wait for the interpreter's lock meanwhile


def ordered(rows: Rows, order: Sequence[Order], width: int, types: Sequence[SqlType]) -> list[Row]:
    """A collection as a list: in order, ties by the whole row, in the values that clients are given."""
    items = list(rows.items())
    if order:
        key = row_order_key(types)
        limits.sort(items, lambda item: key(item[0]))
        values = compile_order(order)
        sort_by(items, order, lambda item: values(item[0]))
    _check_count(sum(multiplicity for _, multiplicity in items))
    shown = plain_rows(types[:width])
    result: list[Row] = []
    for row, multiplicity in items:
        if multiplicity < 0:
            raise _negative(row)
        result.extend([shown(row)] * multiplicity)
    return result


def ordered_batch(batch: Batch, order: Sequence[Order], width: int, types: Sequence[SqlType]) -> Batch | list[Row]:
    """A batch with the shown columns, in order, in which each row stands as often as it occurs; or a list of rows."""
    if batch.diffs is not None and (batch.diffs <= 0).any():
        batch = batch.consolidated()
    counts = batch.counts()
    if len(counts) and int(counts.min()) < 0:
        place = int(np.argmin(counts))
        (row,) = rows_from_arrow(batch.at(np.array([place])).with_diffs(None).table(), types)
        raise _negative(row)
    _check_count(int(counts.sum()))
    if order:
        try:
            if not all(map(is_ordered, [*types, *(each.scalar.type for each in order)])):
                raise NotByColumns
            batch = sorted_rows(batch, tuple(order))
        except NotByColumns:
            return ordered(batch.to_rows(types), order, width, types)
    if batch.diffs is not None:
        batch = batch.at(np.repeat(np.arange(batch.rows, dtype=np.int64), batch.diffs)).with_diffs(None)
    return batch.select(range(width))


def listed(batch: Batch, types: Sequence[SqlType]) -> list[Row]:
    """The rows of a batch, in their order, in the values that clients are given."""
    columns = batch.columns()
    if not columns:
        return [()] * batch.rows
    settle = [_shown(each) for each in types]
    rows: list[Row] = []
    for start in range(0, batch.rows, _SLICE_ROWS):
        limits.look(0)
        values = [
            show(values_from_arrow(column.slice(start, _SLICE_ROWS), each))
            for column, each, show in zip(columns, types, settle, strict=True)
        ]
        rows.extend(zip(*values, strict=True))
    return rows


def _shown(sql_type: SqlType) -> Callable[[list[Any]], list[Any]]:
    settle, thaw = canonical(sql_type), plain(sql_type)
    if sql_type.kind is not Kind.ARRAY or settle is None or thaw is None:
        return lambda values: values
    return lambda values: [thaw(settle(each)) for each in values]


def _check_count(count: int) -> None:
    if count > RESULT_ROWS_MAX:
        hint = "read fewer rows, or use COPY with a condition"
        raise SqlError("54000", f"the result has more than {RESULT_ROWS_MAX} rows", hint=hint)


def _negative(row: Row) -> SqlError:
    return SqlError("XX000", "internal error: a row with a negative multiplicity", detail=f"row {row!r}")


def plain_rows(types: Sequence[SqlType]) -> Callable[[Row], Row]:
    """What turns a row of a collection into one for a client: its first columns, arrays as lists."""
    width = len(types)
    thaws = [(index, thaw) for index, each in enumerate(types) if (thaw := plain(each))]
    if not thaws:
        return lambda row: row[:width]

    def shown(row: Row) -> Row:
        values: list[Any] = list(row[:width])
        for index, thaw in thaws:
            values[index] = thaw(values[index])
        return tuple(values)

    return shown
