"""Rows as hashable Python values, to and from Arrow.

Equal rows are equal values, so that they can be deduplicated in a dictionary: lists and structs are tuples, all NaNs
are one object, timestamps with a zone are in UTC.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC
from typing import Any, TypeAlias

import pyarrow as pa

from everview.cdc.contract import Update
from everview.compute.ir.infinite import Infinite, as_numbers, to_python
from everview.timely.consolidate import DIFF, TIME
from everview.timely.lattice import Time

Row: TypeAlias = tuple[Any, ...]
Convert: TypeAlias = Callable[[Any], Any]

NAN = math.nan


def updates_of(table: pa.Table) -> list[Update[Row]]:
    """The updates of a table with `_time`, `_diff` and data columns."""
    rows = rows_of(table.drop_columns([TIME, DIFF]))
    times, diffs = (table.column(name).to_pylist() for name in (TIME, DIFF))
    return list(zip(rows, times, diffs, strict=True))


def rows_of(table: pa.Table) -> list[Row]:
    columns = []
    for column in table.columns:
        values = to_python(column)
        convert = _freezing(column.type)
        columns.append(values if convert is None else [None if v is None else convert(v) for v in values])
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def table_of(updates: Sequence[Update[Row]], schema: pa.Schema) -> pa.Table:
    """The table of updates at totally ordered times."""
    data = arrays_of([update[0] for update in updates], schema)
    times: list[Time] = [update[1] for update in updates]
    diffs = [update[2] for update in updates]
    plain = (field.remove_metadata() for field in schema)
    fields = [pa.field(TIME, pa.int64(), False), pa.field(DIFF, pa.int64(), False), *plain]
    return pa.table([pa.array(times, pa.int64()), pa.array(diffs, pa.int64()), *data], schema=pa.schema(fields))


def arrays_of(rows: Sequence[Row], schema: pa.Schema) -> list[pa.Array]:
    """The rows, column by column."""
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(schema)
    result = []
    for field, values in zip(schema, columns, strict=True):
        convert = _thawing(field.type)
        thawed = values if convert is None else [None if v is None else convert(v) for v in values]
        result.append(pa.array(as_numbers(thawed, field.type), field.type))
    return result


def _freezing(dtype: pa.DataType) -> Convert | None:
    if pa.types.is_floating(dtype):
        return lambda value: NAN if math.isnan(value) else value
    if pa.types.is_timestamp(dtype) and dtype.tz is not None:
        return lambda value: value if isinstance(value, Infinite) else value.astimezone(UTC)
    if pa.types.is_list(dtype):
        inner = _freezing(dtype.value_type) or _same
        return lambda values: tuple(None if v is None else inner(v) for v in values)
    if pa.types.is_struct(dtype):
        fields = [dtype.field(i) for i in range(dtype.num_fields)]
        parts = [(field.name, _freezing(field.type) or _same) for field in fields]
        return lambda value: tuple(None if value[n] is None else convert(value[n]) for n, convert in parts)
    return None


def _thawing(dtype: pa.DataType) -> Convert | None:
    """Arrow takes tuples for lists, but wants a struct by its names."""
    if pa.types.is_list(dtype):
        inner = _thawing(dtype.value_type)
        return None if inner is None else lambda values: [None if v is None else inner(v) for v in values]
    if pa.types.is_struct(dtype):
        fields = [dtype.field(i) for i in range(dtype.num_fields)]
        parts = [(field.name, _thawing(field.type) or _same) for field in fields]
        return lambda value: {
            name: None if v is None else convert(v) for (name, convert), v in zip(parts, value, strict=True)
        }
    return None


def _same(value: Any) -> Any:
    return value
