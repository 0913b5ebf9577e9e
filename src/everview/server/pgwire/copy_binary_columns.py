"""Blocks of binary COPY data as Arrow columns, where nothing in them is out of the ordinary.

Lengths of values say where the next one begins, so rows are found one after the other; their values are then read
column by column. Whatever else a block holds, sound or not, it is left to the reader of rows, which says what is wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.adapter.contract import Column
from everview.compute.functions.calendar import DAY, micros_of
from everview.compute.functions.contract import Failure
from everview.compute.ir.infinite import OF_DAYS, OF_MICROS
from everview.compute.ir.types import PG_OID, WORD_PRECISION, Kind, SqlType, arrow_type
from everview.compute.rows.arrow import values_to_arrow
from everview.compute.rows.collection import canonical
from everview.compute.sql.errors import SqlError
from everview.server.pgwire.binary import EPOCH_DAYS, EPOCH_MICROS
from everview.server.pgwire.oids import wire_parameter
from everview.server.pgwire.values import BINARY, decoder

Words: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]

_SIZE = struct.Struct("!i")
_NULL_SIZE = -1
_DAYS = ((date.min - date(1970, 1, 1)).days, (date.max - date(1970, 1, 1)).days)
_MICROS = (micros_of(datetime.min), micros_of(datetime.max))


class Cells:
    """The values of a column in a block: where each begins, and how many bytes it has, -1 for NULL."""

    def __init__(self, block: bytes, starts: Words, sizes: Words) -> None:
        self.block, self.starts, self.sizes = block, starts, sizes
        self.null = sizes == _NULL_SIZE

    def fixed(self, form: str) -> npt.NDArray[Any] | None:
        """Numbers of one width, 0 where NULL. None if a value has another width."""
        dtype = np.dtype(form)
        there = ~self.null
        if (self.sizes[there] != dtype.itemsize).any():
            return None
        found = np.zeros(len(self.sizes), dtype=dtype)
        data = np.frombuffer(self.block, np.uint8)
        found[there] = data[self.starts[there][:, None] + np.arange(dtype.itemsize)].view(dtype).reshape(-1)
        return found.astype(dtype.newbyteorder("="))

    def values(self) -> list[bytes | None]:
        """The bytes of each value."""
        block = self.block
        spans = zip(self.starts.tolist(), self.sizes.tolist(), strict=True)
        return [None if size < 0 else block[start : start + size] for start, size in spans]


Read: TypeAlias = Callable[[Cells, SqlType], pa.Array | None]


def read_block(block: bytes, columns: Sequence[Column]) -> tuple[pa.Table | None, int]:
    """The rows that are whole, up to the first that is odd, and where they end. No table if a value is odd."""
    starts, sizes, end = _spans(block, len(columns))
    names = [f"c{index}" for index in range(len(columns))]
    arrays = []
    for index, column in enumerate(columns):
        read = _READ.get(column.type.kind, _one_by_one) if column.type.alias != PG_OID.alias else _one_by_one
        cells = Cells(block, starts[:, index], sizes[:, index])
        found = read(cells, column.type)
        found = _one_by_one(cells, column.type) if found is None else found
        if found is None:
            return None, end
        arrays.append(found)
    return pa.table(arrays, names=names), end


def _spans(block: bytes, width: int) -> tuple[Words, Words, int]:
    count, length, unpack = width.to_bytes(2, "big"), len(block), _SIZE.unpack_from
    rows = 0
    starts: list[int] = []
    sizes: list[int] = []
    end = 0
    while block[end : end + 2] == count:
        at = end + 2
        for _ in range(width):
            if at + 4 > length:
                at = length + 1
                break
            (size,) = unpack(block, at)
            if size < _NULL_SIZE:
                at = length + 1
                break
            at += 4
            starts.append(at)
            sizes.append(size)
            at += max(size, 0)
        if at > length:  # the row is odd, or not all of it is here
            break
        end = at
        rows += 1
    shape, whole = (rows, width), rows * width
    return np.array(starts[:whole], np.int64).reshape(shape), np.array(sizes[:whole], np.int64).reshape(shape), end


def _array(values: npt.NDArray[Any] | None, cells: Cells, to: SqlType) -> pa.Array | None:
    return None if values is None else pa.array(values, mask=cells.null).cast(arrow_type(to))


def _integers(cells: Cells, to: SqlType) -> pa.Array | None:
    return _array(cells.fixed(f">i{arrow_type(to).bit_width // 8}"), cells, to)


def _floats(cells: Cells, to: SqlType) -> pa.Array | None:
    values = cells.fixed(f">f{arrow_type(to).bit_width // 8}")
    if values is None:
        return None
    return _array(np.where(np.isnan(values), values.dtype.type(np.nan), values + values.dtype.type(0)), cells, to)


def _booleans(cells: Cells, to: SqlType) -> pa.Array | None:
    values = cells.fixed("u1")
    return None if values is None else pa.array(values != 0, mask=cells.null)


def _within(values: npt.NDArray[Any] | None, low: int, high: int) -> bool:
    return values is not None and bool(((values >= low) & (values <= high)).all())


def _times(cells: Cells, to: SqlType) -> pa.Array | None:
    values = cells.fixed(">i8")
    return _array(values, cells, to) if _within(values, 0, DAY) else None


def _moments(form: str, epoch: int, limits: tuple[int, int], ends: Mapping[int, object]) -> Read:
    """Days or microseconds, which PostgreSQL counts from another day; the infinities are the same."""

    def read(cells: Cells, to: SqlType) -> pa.Array | None:
        values = cells.fixed(form)
        if values is None:
            return None
        infinite = np.isin(values, list(ends))
        if not _within(values[~infinite], limits[0] - epoch, limits[1] - epoch):
            return None
        moved = np.where(infinite, values, np.where(infinite, 0, values) + values.dtype.type(epoch))
        return _array(moved.astype(values.dtype), cells, to)

    return read


def _texts(cells: Cells, to: SqlType) -> pa.Array | None:
    found = pa.array(cells.values(), pa.binary())
    data = found.buffers()[2]
    if data is not None and b"\0" in data.to_pybytes():
        return None
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        return None


def _numerics(cells: Cells, to: SqlType) -> pa.Array | None:
    """Numbers that fit a word, of no more digits behind the point than their type has."""
    there = ~cells.null
    starts, sizes = cells.starts[there], cells.sizes[there]
    if not to.constrained or to.precision > WORD_PRECISION or not len(starts) or (sizes < 8).any():
        return None
    data = np.frombuffer(cells.block + bytes(16), np.uint8)
    header = data[starts[:, None] + np.arange(8)].reshape(-1).view(">i2").reshape(-1, 4).astype(np.int64)
    count, weight, sign = header[:, 0], header[:, 1], header[:, 2]
    odd = (count < 0) | (sizes != 8 + 2 * count) | (weight > 4) | (weight < -5) | ~np.isin(sign, (0, 0x4000))
    if odd.any() or (header[:, 3] < 0).any() or int(count.max()) > 9:
        return None
    total, size = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts))
    for place in range(int(count.max())):
        at = np.minimum(starts + 8 + 2 * place, len(data) - 2)
        group = np.where(place < count, data[at].astype(np.int64) << 8 | data[at + 1], 0)
        power = 4 * (weight - place) + to.scale
        if (group > 9999).any() or (np.where(group > 0, power, 0) > WORD_PRECISION).any():
            return None
        unit = 10 ** np.clip(-power, 0, 4)
        if ((group % unit != 0) | ((power <= -4) & (group > 0))).any():
            return None  # to be rounded
        scale = 10 ** np.clip(power, 0, WORD_PRECISION)
        size += group * scale.astype(float)
        if (size >= 9e18).any():
            return None
        total += group // unit * scale
    if (total >= 10**to.precision).any():
        return None
    values = np.zeros(len(cells.sizes), dtype=np.int64)
    values[there] = np.where(sign == 0, total, -total)
    wide = pa.array(values, mask=cells.null).cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(arrow_type(to), len(wide), wide.buffers())


def _one_by_one(cells: Cells, to: SqlType) -> pa.Array | None:
    """Values of other types, each by itself. None if one is wrong."""
    read, settle = decoder(wire_parameter(0, to), BINARY), canonical(to)
    try:
        values = [None if each is None else read(each) for each in cells.values()]
    except (Failure, SqlError):
        return None
    return values_to_arrow(values if settle is None else [settle(each) for each in values], to)


_READ: Mapping[Kind, Read] = {
    **dict.fromkeys((Kind.INT2, Kind.INT4, Kind.INT8), _integers),
    **dict.fromkeys((Kind.FLOAT4, Kind.FLOAT8), _floats),
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR), _texts),
    **dict.fromkeys((Kind.TIMESTAMP, Kind.TIMESTAMPTZ), _moments(">i8", EPOCH_MICROS, _MICROS, OF_MICROS)),
    Kind.BOOLEAN: _booleans,
    Kind.BYTEA: lambda cells, to: pa.array(cells.values(), pa.binary()),
    Kind.DATE: _moments(">i4", EPOCH_DAYS, _DAYS, OF_DAYS),
    Kind.NUMERIC: _numerics,
    Kind.TIME: _times,
}
