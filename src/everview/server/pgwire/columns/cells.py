"""The bytes of a column's values, one after another, as Arrow and numpy make them without a Python value for each.

`Cells` are an Arrow array of binary, where a value is NULL if it is NULL. Where each value has as many bytes as any
other and none is NULL, they may be a `Block`: a matrix of bytes with a row for each value.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Cells: TypeAlias = pa.Array  # of binary
Bytes: TypeAlias = npt.NDArray[np.uint8]
Block: TypeAlias = Bytes  # of two dimensions
Mask: TypeAlias = npt.NDArray[np.bool_]


def numbers(column: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values of a column of numbers, dates or timestamps as they are stored; anything where one is NULL."""
    kind = np.dtype(dtype)
    data = column.buffers()[1]
    if data is None:
        return np.zeros(len(column), dtype=kind)
    return np.frombuffer(data, dtype=kind, count=len(column), offset=column.offset * kind.itemsize)


def block_of(values: npt.NDArray[Any]) -> Block:
    """Numbers, or records of numbers, as the bytes that they are."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)


def cells_of(block: Block, column: pa.Array | None = None) -> Cells:
    """A block as cells, NULL where `column` is."""
    rows, width = block.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    return _array(rows, np.ascontiguousarray(block), offsets, column)


def picked(block: Block, keep: Mask, column: pa.Array) -> Cells:
    """Of each row of a block the bytes that are kept, NULL where `column` is."""
    offsets = np.zeros(len(block) + 1, dtype=np.int32)
    np.cumsum(keep.sum(axis=1), out=offsets[1:])
    return _array(len(block), block[keep], offsets, column)


def _array(rows: int, data: Bytes, offsets: npt.NDArray[np.int32], column: pa.Array | None) -> Cells:
    present = None if column is None or not column.null_count else validity(column)
    return pa.Array.from_buffers(pa.binary(), rows, [present, pa.py_buffer(offsets), pa.py_buffer(data)])


def validity(column: pa.Array) -> pa.Buffer:
    """The bits that say which values of a column are not NULL."""
    return pc.is_valid(column).buffers()[1]


def from_values(values: list[bytes | None]) -> Cells:
    """Cells that were made one by one."""
    return pa.array(values, pa.binary())


def as_cells(column: pa.Array) -> Cells:
    """Text as cells: the same bytes."""
    return column if column.type == pa.binary() else column.cast(pa.binary())


def bytes_of(cells: pa.Array) -> memoryview | bytes:
    """All bytes of an array of binary or text, one value after the other."""
    data = cells.buffers()[2]
    if data is None:
        return b""
    offsets = offsets_of(cells)
    return memoryview(data)[int(offsets[0]) : int(offsets[-1])]


def offsets_of(cells: pa.Array) -> npt.NDArray[np.int32]:
    """Where the values begin among the bytes, and where the last one ends."""
    return np.frombuffer(cells.buffers()[1], np.int32, len(cells) + 1, 4 * cells.offset)
