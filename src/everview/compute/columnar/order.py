"""The order of rows, as `interpreter.ordering` has it: by keys, ties by the whole row, texts by code points.

Keys are looked at one after the other, and each only among the rows that tie in those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.columnar.batch import Positions
from everview.compute.functions import columns
from everview.compute.ir.types import Kind, SqlType

_UNORDERED = (Kind.INTERVAL, Kind.JSONB, Kind.ARRAY)


def is_ordered(sql_type: SqlType) -> bool:
    """Whether values of the type are ordered here."""
    return sql_type.kind not in _UNORDERED


@dataclass(frozen=True, slots=True)
class Ranked:
    """The values of a column as whole numbers in the same order; where one is NULL, the number is arbitrary."""

    codes: columns.Words
    there: columns.Mask | None
    decode: Callable[[columns.Words, columns.Mask | None], pa.Array]

    @classmethod
    def of(cls, column: pa.Array) -> Ranked:
        """The values of a column."""
        dtype, there = column.type, columns.present(column)
        if pa.types.is_floating(dtype):
            return cls(columns.order_of_doubles(columns.doubles(column)), there, partial(_floats, dtype))
        numbers = None if pa.types.is_string(dtype) or pa.types.is_binary(dtype) else columns.words(column)
        if numbers is not None:
            if pa.types.is_boolean(dtype):
                return cls(numbers, there, lambda codes, valid: columns.of_bools(codes != 0, valid))
            return cls(numbers, there, lambda codes, valid: columns.of_words(codes, valid, dtype))
        encoded = column.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary)
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order.to_numpy()] = np.arange(len(order))
        indices = encoded.indices.fill_null(0).to_numpy() if there is not None else encoded.indices.to_numpy()
        codes = ranks[indices] if len(ranks) else np.zeros(len(column), dtype=np.int64)
        ordered = encoded.dictionary.take(order)
        return cls(
            codes, there, lambda found, valid: ordered.take(pa.array(found, mask=None if valid is None else ~valid))
        )


def _floats(dtype: pa.DataType, codes: columns.Words, there: columns.Mask | None) -> pa.Array:
    return columns.of_doubles(columns.doubles_of_order(codes), there, dtype)


@dataclass(frozen=True, slots=True)
class Key:
    """A column to sort by."""

    column: Callable[[], pa.Array]
    descending: bool = False
    nulls_first: bool = False

    def levels(self, positions: Positions | None) -> list[columns.Words]:
        """Whole numbers to sort rows by, one after the other; of all rows, or of those at the positions."""
        column = self.column()
        ranked = Ranked.of(column if positions is None else column.take(pa.array(positions)))
        codes = ~ranked.codes if self.descending else ranked.codes
        if ranked.there is None:
            return [codes]
        last = ranked.there if self.nulls_first else ~ranked.there
        codes = np.where(ranked.there, codes, 0)
        low, high = (int(codes.min()), int(codes.max())) if len(codes) else (0, 0)
        if high - low < 2**61:
            return [np.where(ranked.there, codes - low + 1, 0 if self.nulls_first else high - low + 2)]
        return [last.astype(np.int64), codes]


def sorted_positions(keys: Sequence[Key], rows: int, first: columns.Words | None = None) -> Positions:
    """The places of the rows in the order of the numbers in `first`, then of the keys."""
    order = np.arange(rows, dtype=np.int64)
    if rows < 2:
        return order
    tied = np.ones(rows - 1, dtype=bool)  # whether a place ties with the next
    if first is not None:
        order, tied = _refined(order, tied, lambda _: [first])
    for key in keys:
        if not tied.any():
            break
        order, tied = _refined(order, tied, key.levels)
    return order


def _refined(
    order: Positions, tied: columns.Mask, levels: Callable[[Positions | None], list[columns.Words]]
) -> tuple[Positions, columns.Mask]:
    inside = np.flatnonzero(np.concatenate((tied, [False])) | np.concatenate(([False], tied)))
    whole = len(inside) == len(order)
    runs = np.zeros(len(inside), dtype=np.int64)
    runs[1:] = np.cumsum(~tied[inside[1:] - 1])
    rows, moves = order[inside], np.arange(len(inside), dtype=np.int64)
    natural = whole and bool((rows[1:] > rows[:-1]).all())
    for level in levels(None if natural else rows):
        codes = level[moves]
        moved = stable_order(codes, runs)
        moves, codes, runs = moves[moved], codes[moved], runs[moved]
        runs = np.cumsum(np.concatenate(([False], (runs[1:] != runs[:-1]) | (codes[1:] != codes[:-1]))))
    order, tied = order.copy(), tied.copy()
    order[inside] = rows[moves]
    tied[inside[1:] - 1] &= runs[1:] == runs[:-1]
    return order, tied


def stable_order(codes: columns.Words, runs: columns.Words | None = None) -> Positions:
    """The places of numbers in ascending order, within runs if there are several. Equal numbers stay as they stand."""
    rows = len(codes)
    if rows < 2:
        return np.arange(rows, dtype=np.int64)
    low, high = int(codes.min()), int(codes.max())
    bits, span = max(1, (rows - 1).bit_length()), high - low + 1
    if runs is None:
        runs = np.zeros(rows, dtype=np.int64)
    parts = int(runs[-1]) + 1
    if (span * parts) << bits < 2**63:  # then the place rides in the low bits, and plain numbers are sorted
        packed = codes - np.int64(low)
        if parts > 1:
            packed = packed + runs * np.int64(span)
        packed = (packed << np.int64(bits)) | np.arange(rows, dtype=np.int64)
        packed.sort()
        return packed & np.int64((1 << bits) - 1)
    return np.argsort(codes, kind="stable") if parts == 1 else np.lexsort((codes, runs))
