"""Whether rows are equal: by value, with NULL equal to NULL, NaN to NaN and -0.0 to 0.0, inside lists and structs too.

Rows that are equal here have the same hash.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.timely.hashing import list_bounds, one_chunk

Positions = npt.NDArray[np.intp] | npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def rows_equal(columns: Sequence[pa.ChunkedArray], left: Positions, right: Positions) -> Bools:
    """For each pair of positions, whether the rows there are equal in every column."""
    result = np.ones(len(left), dtype=bool)
    left_index, right_index = pa.array(left), pa.array(right)
    for column in columns:
        result &= arrays_equal(one_chunk(column.take(left_index)), one_chunk(column.take(right_index)))
    return result


def arrays_equal(left: pa.Array, right: pa.Array) -> Bools:
    """For each position, whether the two arrays hold equal values there."""
    if len(left) == 0:
        return np.zeros(0, dtype=bool)
    left_valid, right_valid = (side.is_valid().to_numpy(zero_copy_only=False) for side in (left, right))
    if pa.types.is_struct(left.type):
        same = np.ones(len(left), dtype=bool)
        for index in range(left.type.num_fields):
            same &= arrays_equal(left.field(index), right.field(index))
    elif pa.types.is_list(left.type):
        same = _lists_equal(left, right)
    else:
        same = _values_equal(left, right)
    return np.where(left_valid & right_valid, same, ~left_valid & ~right_valid)


def _values_equal(left: pa.Array, right: pa.Array) -> Bools:
    same: Bools = pc.fill_null(pc.equal(left, right), False).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(left.type):
        both_nan = pc.and_(pc.is_nan(left), pc.is_nan(right))
        same = same | pc.fill_null(both_nan, False).to_numpy(zero_copy_only=False)
    return same


def _lists_equal(left: pa.Array, right: pa.Array) -> Bools:
    left_starts, lengths = list_bounds(left)
    right_starts, right_lengths = list_bounds(right)
    same: Bools = lengths == right_lengths
    paired = np.flatnonzero(same & (lengths > 0))
    if len(paired):
        sizes = lengths[paired]
        ends = np.cumsum(sizes)
        inside = np.arange(int(ends[-1])) - np.repeat(ends - sizes, sizes)
        left_items = left.values.take(pa.array(np.repeat(left_starts[paired], sizes) + inside))
        right_items = right.values.take(pa.array(np.repeat(right_starts[paired], sizes) + inside))
        same[paired] = np.logical_and.reduceat(arrays_equal(left_items, right_items), ends - sizes)
    return same
