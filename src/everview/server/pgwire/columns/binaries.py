"""Columns in PostgreSQL's binary form, as `everview.server.pgwire.binary` writes one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.ir.infinite import OF_DAYS, OF_MICROS
from everview.compute.ir.types import PG_OID, Kind, SqlType
from everview.server.pgwire.binary import EPOCH_DAYS, EPOCH_MICROS
from everview.server.pgwire.columns import decimals
from everview.server.pgwire.columns.cells import Block, Cells, as_cells, block_of, bytes_of, cells_of, numbers
from everview.server.pgwire.columns.texts import one_by_one
from everview.server.pgwire.values import BINARY

_INTERVAL = np.dtype([("micros", ">i8"), ("days", ">i4"), ("months", ">i4")])


def binary(column: pa.Array, to: SqlType) -> Cells | Block:
    """The values of a column as bytes; a block if all are of one length."""
    if to.kind in _CELLS:
        return _CELLS[to.kind](column, to)
    if to.kind not in _BLOCKS:
        return one_by_one(column, to, BINARY)
    block = _BLOCKS[to.kind](column, to)
    return cells_of(block, column) if column.null_count else block


def _integers(column: pa.Array, to: SqlType) -> Block:
    values = numbers(column, np.dtype(f"i{column.type.bit_width // 8}"))
    return block_of(values.astype(">u4") if to.alias == PG_OID.alias else values.astype(values.dtype.newbyteorder(">")))


def _floats(column: pa.Array, to: SqlType) -> Block:
    values = numbers(column, np.dtype(f"f{column.type.bit_width // 8}"))
    canonical = np.where(np.isnan(values), values.dtype.type(np.nan), values + values.dtype.type(0))
    return block_of(canonical.astype(values.dtype.newbyteorder(">")))


def _dates(column: pa.Array, to: SqlType) -> Block:
    days = numbers(column, np.int32)
    return block_of(np.where(np.isin(days, list(OF_DAYS)), days, days - np.int32(EPOCH_DAYS)).astype(">i4"))


def _timestamps(column: pa.Array, to: SqlType) -> Block:
    micros = numbers(column, np.int64)
    return block_of(np.where(np.isin(micros, list(OF_MICROS)), micros, micros - EPOCH_MICROS).astype(">i8"))


def _intervals(column: pa.Array, to: SqlType) -> Block:
    records = np.zeros(len(column), dtype=_INTERVAL)
    for name, dtype in (("micros", np.int64), ("days", np.int32), ("months", np.int32)):
        records[name] = numbers(pc.struct_field(column, name), dtype)
    return block_of(records)


def _uuids(column: pa.Array, to: SqlType) -> Cells:
    """Thirty-two digits, which make sixteen bytes."""
    digits = pc.replace_substring(pc.fill_null(column, "0" * 32), "-", "")
    block = np.frombuffer(bytes.fromhex(bytes(bytes_of(digits)).decode()), np.uint8).reshape(len(column), 16)
    return cells_of(block, column)


_BLOCKS: Mapping[Kind, Callable[[pa.Array, SqlType], Block]] = {
    **dict.fromkeys((Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP, Kind.TIME), _integers),
    **dict.fromkeys((Kind.FLOAT4, Kind.FLOAT8), _floats),
    **dict.fromkeys((Kind.TIMESTAMP, Kind.TIMESTAMPTZ), _timestamps),
    Kind.BOOLEAN: lambda column, to: block_of(numbers(column.cast(pa.uint8()), np.uint8)),
    Kind.DATE: _dates,
    Kind.INTERVAL: _intervals,
}
_CELLS: Mapping[Kind, Callable[[pa.Array, SqlType], Cells]] = {
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.UNKNOWN, Kind.BYTEA), lambda column, to: as_cells(column)),
    Kind.CHAR: lambda column, to: as_cells(pc.utf8_rpad(column, to.length or 0, " ")),
    Kind.NUMERIC: decimals.binary,
    Kind.UUID: _uuids,
    Kind.JSONB: lambda column, to: pc.binary_join_element_wise(b"\x01", as_cells(column), b""),
}
