"""Columns in PostgreSQL's text form, as `everview.compute.functions.output` writes one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.functions.output import to_text
from everview.compute.ir.infinite import OF_DAYS, OF_MICROS, Infinite
from everview.compute.ir.types import VECTORS, Kind, SqlType
from everview.compute.rows.arrow import values_from_arrow
from everview.compute.rows.collection import canonical, plain
from everview.server.pgwire.columns import decimals
from everview.server.pgwire.columns.cells import Cells, as_cells, bytes_of, from_values, offsets_of, validity
from everview.server.pgwire.values import TEXT, encoder

Write: TypeAlias = Callable[[pa.Array, SqlType], Cells]

_FLOAT_PLAIN_MIN = 1e-4  # smaller ones, and those of more digits than these, have an exponent
_FLOAT_PLAIN_MAX = {Kind.FLOAT4: 1e6, Kind.FLOAT8: 1e15}
_DAY_END = 86_400_000_000  # microseconds: 24:00:00 is a time, and not one of Arrow's
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


def one_by_one(column: pa.Array, to: SqlType, form: int) -> Cells:
    """Values of types that have no form by columns, each as it is written in a row."""
    write, settle, thaw = encoder(to, form), canonical(to), plain(to)
    values = values_from_arrow(pa.chunked_array([column]), to)
    if settle is not None:
        values = [settle(value) for value in values]
    if thaw is not None:
        values = [thaw(value) for value in values]
    return from_values([None if value is None else write(value) for value in values])


def text(column: pa.Array, to: SqlType) -> Cells:
    """The values of a column as text."""
    if to.alias in VECTORS or to.kind not in _WRITE:
        return one_by_one(column, to, TEXT)
    return _WRITE[to.kind](column, to)


def _floats(column: pa.Array, to: SqlType) -> Cells:
    """Arrow writes the shortest text that reads back as the value, but an exponent in another way."""
    column = pc.add(column, pa.scalar(0, column.type))  # there is no negative zero
    size = pc.abs(column)
    most, least = pa.scalar(_FLOAT_PLAIN_MAX[to.kind], column.type), pa.scalar(_FLOAT_PLAIN_MIN, pa.float64())
    small = pc.and_(pc.less(size.cast(pa.float64()), least), pc.greater(size, pa.scalar(0, column.type)))
    odd = pc.fill_null(pc.or_(small, pc.invert(pc.less(size, most))), False)
    texts = column.cast(pa.string())
    return as_cells(_replaced(texts, odd, [to_text(value, to) for value in column.filter(odd).to_pylist()]))


def _replaced(texts: pa.Array, where: pa.Array, by: list[str]) -> pa.Array:
    return pc.replace_with_mask(texts, where, pa.array(by, pa.string())) if by else texts


def _bytes(column: pa.Array, to: SqlType) -> Cells:
    """Two digits for each byte, behind a mark."""
    raw, offsets = np.frombuffer(bytes_of(column), np.uint8), offsets_of(column)
    digits = np.stack((_HEX[raw >> 4], _HEX[raw & 15]), axis=1)
    places = pa.py_buffer((offsets - offsets[0]) * np.int32(2))
    shown = pa.Array.from_buffers(pa.binary(), len(column), [validity(column), places, pa.py_buffer(digits)])
    return pc.binary_join_element_wise(b"\\x", shown, b"")


def _times(column: pa.Array, to: SqlType) -> Cells:
    last = pc.fill_null(pc.equal(column, _DAY_END), False)
    within = pc.if_else(last, pa.scalar(0, pa.int64()), column)
    ends = ["24:00:00"] * (pc.sum(last).as_py() or 0)
    return as_cells(_replaced(_without_zeros(within.cast(pa.time64("us"))), last, ends))


def _without_zeros(moments: pa.Array) -> pa.Array:
    """As text, with as many digits of a second as there are."""
    return pc.ascii_rtrim(pc.ascii_rtrim(moments.cast(pa.string()), "0"), ".")


def _moments(column: pa.Array, zone: str) -> pa.Array:
    def write(each: pa.Array) -> pa.Array:
        texts = _without_zeros(each.cast(pa.int64()).cast(pa.timestamp("us")))
        return pc.binary_join_element_wise(texts, zone, "") if zone else texts

    return _or_infinite(column, pa.int64(), OF_MICROS, write)


def _or_infinite(
    column: pa.Array, numbers_type: pa.DataType, ends: Mapping[int, Infinite], write: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    stored = column.cast(numbers_type)
    infinite = pc.is_in(stored, value_set=pa.array(list(ends), numbers_type))
    if not pc.any(infinite).as_py():
        return write(column)
    finite = write(pc.if_else(infinite, pa.scalar(0, numbers_type), stored).cast(column.type))
    return _replaced(finite, infinite, [ends[each].value for each in stored.filter(infinite).to_pylist()])


_WRITE: Mapping[Kind, Write] = {
    **dict.fromkeys(
        (Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP), lambda column, to: as_cells(column.cast(pa.string()))
    ),
    **dict.fromkeys(
        (Kind.TEXT, Kind.VARCHAR, Kind.UNKNOWN, Kind.JSONB, Kind.UUID), lambda column, to: as_cells(column)
    ),
    **dict.fromkeys((Kind.FLOAT4, Kind.FLOAT8), _floats),
    Kind.CHAR: lambda column, to: as_cells(pc.utf8_rpad(column, to.length or 0, " ")),
    Kind.BOOLEAN: lambda column, to: as_cells(pc.if_else(column, "t", "f")),
    Kind.NUMERIC: decimals.text,
    Kind.BYTEA: _bytes,
    Kind.DATE: lambda column, to: as_cells(
        _or_infinite(column, pa.int32(), OF_DAYS, lambda each: each.cast(pa.string()))
    ),
    Kind.TIME: _times,
    Kind.TIMESTAMP: lambda column, to: as_cells(_moments(column, "")),
    Kind.TIMESTAMPTZ: lambda column, to: as_cells(_moments(column, "+00")),
}
