"""Rows of Arrow tables in the order of SQL, vectorised: groups together, and in each the rows by their sort keys.

Values become integers that are ordered alike, so that numpy sorts them: numbers and times by themselves, floats by
their bits, everything else by its rank among the values that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.timely.consolidate import Bools, Positions
from everview.timely.hashing import I64

_SMALL_DECIMAL = 18  # of so many digits, the lower of the two words of a decimal is all of it
_GREATEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Sort:
    """One sort key: a column, and where its NULLs go."""

    column: str
    descending: bool = False
    nulls_first: bool = False


def in_order(table: pa.Table, sorts: Sequence[Sort], groups: I64 | None = None) -> tuple[Positions, Bools]:
    """The positions of the rows in sorted order; and which rows differ from the next one in group or sort keys."""
    keys: list[I64] = [] if groups is None else [groups]
    for sort in sorts:
        keys += _keys(table.column(sort.column), sort)
    if not keys:
        keys = [np.zeros(table.num_rows, dtype=np.int64)]
    places = np.lexsort(keys[::-1])
    differs = np.ones(table.num_rows, dtype=bool)
    differs[:-1] = False
    for key in keys:
        sorted_key = key[places]
        differs[:-1] |= sorted_key[1:] != sorted_key[:-1]
    return places, differs


def _keys(column: pa.ChunkedArray, sort: Sort) -> list[I64]:
    """Integers in the order of the values: first whether a value is NULL, if any is, then the value."""
    values = _as_integers(column)
    if sort.descending:
        values = ~values
    if not column.null_count:
        return [values]
    missing = pc.is_null(column).to_numpy()
    values = np.where(missing, 0, values)
    return [(~missing if sort.nulls_first else missing).astype(np.int64), values]


def _as_integers(column: pa.ChunkedArray) -> I64:
    dtype = column.type
    if pa.types.is_boolean(dtype) or pa.types.is_integer(dtype):
        return _plain(column.cast(pa.int64()))
    if pa.types.is_date32(dtype):
        return _plain(column.cast(pa.int32()).cast(pa.int64()))
    if pa.types.is_timestamp(dtype) or pa.types.is_time64(dtype):
        return _plain(column.cast(pa.int64()))
    if pa.types.is_floating(dtype):
        return _of_floats(column.cast(pa.float64()))
    if pa.types.is_decimal128(dtype) and dtype.precision <= _SMALL_DECIMAL:
        array = column.combine_chunks()
        return _words(array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks))
    return _plain(pc.rank(column, sort_keys="ascending", tiebreaker="dense").cast(pa.int64()))


def _plain(column: pa.Array | pa.ChunkedArray) -> I64:
    if column.null_count:
        column = pc.fill_null(column, 0)
    values: I64 = column.to_numpy()
    return values


def _of_floats(column: pa.ChunkedArray) -> I64:
    """Floats as integers by their bits: NaN is the greatest, and -0.0 equals 0.0."""
    floats = pc.fill_null(column, 0.0).to_numpy() + 0.0
    bits: I64 = floats.view(np.int64)
    ordered = np.where(bits < 0, bits ^ _GREATEST, bits)
    return np.where(np.isnan(floats), _GREATEST, ordered)


def _words(array: pa.Array) -> I64:
    if not len(array):
        return np.zeros(0, dtype=np.int64)
    words = np.frombuffer(array.buffers()[1], dtype=np.int64)
    values: I64 = words[2 * array.offset : 2 * (array.offset + len(array)) : 2]
    return values
