"""Groups of rows that are equal in some columns: as values in Python are, so NULL equals NULL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from everview.compute.columnar.batch import NotByColumns, Positions
from everview.compute.functions.columns import Words, doubles, order_of_doubles, present, words

_CODES_MAX = 2**62


@dataclass(frozen=True, slots=True)
class Groups:
    """The number of the group that each row is in, and the place of one row of each group."""

    ids: Words
    firsts: Positions

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.firsts)


def grouped(columns: Sequence[pa.Array], rows: int) -> Groups:
    """The groups of rows that are equal in all columns."""
    ids, size = np.zeros(rows, dtype=np.int64), min(rows, 1)
    for column in columns:
        codes, count = codes_of(column)
        if size * count >= _CODES_MAX:
            ids, size = _compressed(ids)
        ids = codes if size == 1 else ids * np.int64(count) + codes
        size *= count
    if size > 4 * rows + 1024:
        ids, size = _compressed(ids)
    places = np.full(size, -1, dtype=np.int64)
    places[ids[::-1]] = np.arange(rows - 1, -1, -1, dtype=np.int64)
    used = places >= 0
    if not used.all():
        ids = (np.cumsum(used) - 1)[ids]
    return Groups(ids, places[used])


def _compressed(ids: Words) -> tuple[Words, int]:
    encoded = pa.array(ids).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), max(1, len(encoded.dictionary))


def codes_of(column: pa.Array) -> tuple[Words, int]:
    """A number for each value, the same for the same value, and how many numbers there may be."""
    dtype = column.type
    if pa.types.is_struct(dtype):
        here = column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        found = grouped([pa.array(here), *column.flatten()], len(column))
        return found.ids, max(1, found.count)
    if pa.types.is_list(dtype):
        raise NotByColumns
    there = present(column)
    numbers = order_of_doubles(doubles(column)) if pa.types.is_floating(dtype) else _words(column)
    if numbers is None:
        encoded = column.dictionary_encode(null_encoding="encode")
        return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), max(1, len(encoded.dictionary))
    if not len(numbers):
        return numbers, 1
    low, high = int(numbers.min()), int(numbers.max())
    if high - low <= 2 * len(numbers) + 1024:
        codes, count = numbers - np.int64(low) + 1, high - low + 2
    else:
        codes, count = _compressed(numbers)
        codes, count = codes + 1, count + 1
    return (codes if there is None else np.where(there, codes, 0)), count


def _words(column: pa.Array) -> Words | None:
    dtype = column.type
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        return None
    return words(column)
