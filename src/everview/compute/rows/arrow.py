"""Collections to and from Arrow: the data columns `c0, c1, ...` in the representation of their types, and `_diff`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from everview.compute.ir.infinite import as_numbers, to_python
from everview.compute.ir.types import Interval, Kind, SqlType, arrow_type
from everview.compute.rows.collection import Rows, plain, rows_of
from everview.timely.consolidate import DIFF, MultiplicityOverflow, data_names

_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def rows_from_arrow(table: pa.Table, types: Sequence[SqlType]) -> Rows:
    """The collection in a table whose data columns have these types, in order; without `_diff` each row counts once."""
    columns = [values_from_arrow(table.column(name), each) for name, each in zip(data_names(table), types, strict=True)]
    diffs = table.column(DIFF).to_pylist() if DIFF in table.column_names else [1] * table.num_rows
    rows = zip(*columns, strict=True) if columns else [()] * table.num_rows
    return rows_of(zip(rows, diffs, strict=True), types)


def rows_to_arrow(rows: Rows, types: Sequence[SqlType]) -> pa.Table:
    columns = {f"c{index}": values_to_arrow([row[index] for row in rows], each) for index, each in enumerate(types)}
    try:
        diffs = pa.array(rows.values(), pa.int64())
    except OverflowError as error:
        detail = "joins multiply how often rows occur"
        raise MultiplicityOverflow("a row occurs more often than 64 bits can count", detail=detail) from error
    return pa.table({**columns, DIFF: diffs})


def values_to_arrow(values: Sequence[Any], sql_type: SqlType) -> pa.Array:
    thaw = plain(sql_type)
    if thaw is not None:
        values = [thaw(value) for value in values]
    dtype, kind = arrow_type(sql_type), (sql_type.element or sql_type).kind
    if kind in _MOMENTS:
        return pa.array(as_numbers(values, dtype), dtype)
    return pa.array([_to_arrow(value) for value in values], dtype)


def values_from_arrow(column: pa.ChunkedArray, sql_type: SqlType) -> list[Any]:
    """The values of a column, as they are before they are made canonical."""
    if column.type != arrow_type(sql_type):
        column = column.cast(arrow_type(sql_type))
    values = to_python(column)
    kind = sql_type.element.kind if sql_type.element else sql_type.kind
    if kind is Kind.INTERVAL or kind is Kind.TIMESTAMPTZ:
        return [_from_arrow(value) for value in values]
    return values


def _from_arrow(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_arrow(part) for part in value]
    if isinstance(value, dict):
        return Interval(value["months"], value["days"], value["micros"])
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def _to_arrow(value: Any) -> Any:
    if isinstance(value, Interval):
        return value._asdict()
    return [_to_arrow(part) for part in value] if isinstance(value, list) else value
