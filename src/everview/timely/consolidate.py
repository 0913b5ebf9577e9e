"""Consolidation: the smallest set of updates that means the same, in hash order, vectorised on Arrow and numpy.

Updates are an Arrow table: the data columns, `_time` and `_diff`, and where they are sorted also `_hash`. Two sets
of updates mean the same when for every time the sum of `_diff` per row over updates at or before it is the same.
`consolidate` leaves at most one update for each (row, time), none with diff 0, sorted by (key hash, row hash, time).
Hashes only bring equal rows together: whether rows are equal is always decided by their values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.timely.equality import canonical, rows_equal
from everview.timely.hashing import I64, hash_rows

HASH, TIME, DIFF = "_hash", "_time", "_diff"
RESERVED = (HASH, TIME, DIFF)

Bools = npt.NDArray[np.bool_]


def data_names(updates: pa.Table) -> list[str]:
    """The names of the data columns, in order."""
    return [name for name in updates.column_names if name not in RESERVED]


def int_column(updates: pa.Table, name: str) -> I64:
    """One of the 64-bit columns without NULLs, as numpy."""
    column = updates.column(name)
    if column.num_chunks == 1:
        return column.chunk(0).to_numpy()  # type: ignore[no-any-return]
    return column.to_numpy()  # type: ignore[no-any-return]


def with_column(updates: pa.Table, name: str, values: I64) -> pa.Table:
    """The table with one of the 64-bit columns set."""
    field = pa.field(name, pa.int64(), nullable=False)
    index = updates.schema.get_field_index(name)
    if index < 0:
        return updates.add_column(0, field, pa.array(values))
    return updates.set_column(index, field, pa.array(values))


def with_hash(updates: pa.Table, key: Sequence[str]) -> pa.Table:
    """The table with `_hash`, the hash over the columns of `key`, if it has none yet."""
    if HASH in updates.column_names:
        return updates
    return with_column(updates, HASH, hash_rows([updates.column(name) for name in key], updates.num_rows))


def advance(updates: pa.Table, since: int) -> pa.Table:
    """The same contents at every time from `since` on, told with fewer distinct times."""
    times = int_column(updates, TIME)
    if not len(times) or int(times.min()) >= since:
        return updates
    return with_column(updates, TIME, np.maximum(times, since))


def order_by_hash(hashes: I64) -> npt.NDArray[np.intp]:
    """Positions in ascending order of hash; equal hashes in order of position.

    Sorting plain integers is twice as fast as sorting positions, so the position rides in the low bits of its hash.
    """
    count = len(hashes)
    low = np.uint64((1 << max(1, (count - 1).bit_length())) - 1)
    packed = hashes.view(np.uint64) ^ np.uint64(1 << 63)
    packed = (packed & ~low) | np.arange(count, dtype=np.uint64)
    packed.sort()
    order = (packed & low).astype(np.intp)
    in_order = hashes[order]
    if (in_order[1:] < in_order[:-1]).any():  # hashes that differ only in the low bits: a handful
        order = order[np.argsort(in_order, kind="stable")]
    return order


def consolidate(
    updates: pa.Table, key: Sequence[str] | None = None, rows: npt.NDArray[np.intp] | None = None
) -> pa.Table:
    """The consolidated form of `updates`, with `_hash` over the columns of `key` (default: the whole row).

    `rows` picks the updates that take part; without it all of them do.
    """
    names = data_names(updates)
    key = names if key is None else list(key)
    updates = with_hash(updates, key)
    hashes, times, diffs = (int_column(updates, name) for name in RESERVED)
    row_hashes = hashes
    if key != names:
        row_hashes = hash_rows([updates.column(name) for name in names], updates.num_rows)
    if rows is not None:
        hashes, row_hashes, times, diffs = hashes[rows], row_hashes[rows], times[rows], diffs[rows]
    if len(hashes) == 0:
        return updates.slice(0, 0)
    order = _order(hashes, row_hashes, times)
    if order is not None:
        hashes, row_hashes, times, diffs = hashes[order], row_hashes[order], times[order], diffs[order]
        rows = order if rows is None else rows[order]
    same = (hashes[1:] == hashes[:-1]) & (times[1:] == times[:-1]) & (row_hashes[1:] == row_hashes[:-1])
    return _sum_equal(updates, rows, same, diffs)


def _order(hashes: I64, row_hashes: I64, times: I64) -> npt.NDArray[np.intp] | None:
    """Positions sorted by (hash, row hash, time), or None if they stand so already."""
    order = None
    if (hashes[1:] < hashes[:-1]).any():
        order = order_by_hash(hashes)
        hashes = hashes[order]
    tied = np.zeros(len(hashes), dtype=bool)
    ties = hashes[1:] == hashes[:-1]
    if not ties.any():
        return order
    tied[1:] |= ties
    tied[:-1] |= ties
    places = np.flatnonzero(tied)
    rows = places if order is None else order[places]
    sub = (times[rows], row_hashes[rows], hashes[places])
    sorted_rows = rows[np.lexsort(sub)]
    if order is None:
        if (sorted_rows == rows).all():
            return None
        order = np.arange(len(hashes))
    order[places] = sorted_rows
    return order


def _sum_equal(updates: pa.Table, order: npt.NDArray[np.intp] | None, same: Bools, diffs: I64) -> pa.Table:
    """Add up diffs over runs of neighbours that are the same update, and drop what sums to nothing."""
    candidates = np.flatnonzero(same)
    if len(candidates):
        if order is None:
            order = np.arange(len(diffs))
        columns = [updates.column(name) for name in data_names(updates)]
        equal = rows_equal(columns, order[candidates], order[candidates + 1])
        if not equal.all():
            _separate_collisions(columns, order, same)
            diffs = int_column(updates, DIFF)[order]
        if int(np.abs(diffs).max()) * len(diffs) >= 2**63:
            raise OverflowError("a row's multiplicity does not fit 64 bits")
        starts = np.flatnonzero(np.concatenate(([True], ~same)))
        diffs = np.add.reduceat(diffs, starts)
        order = order[starts]
    kept = diffs != 0
    if not kept.all():
        order = np.flatnonzero(kept) if order is None else order[kept]
        diffs = diffs[kept]
    if order is None:
        return updates
    return with_column(updates.take(pa.array(order)), DIFF, diffs)


def _separate_collisions(columns: list[pa.ChunkedArray], order: npt.NDArray[np.intp], same: Bools) -> None:
    """Where different rows share all hashes and the time, group them by value instead, in place."""
    boundaries = np.flatnonzero(np.concatenate(([True], ~same, [True])))
    for start, stop in zip(boundaries[:-1], boundaries[1:], strict=True):
        if stop - start < 2:
            continue
        groups: dict[Any, list[int]] = defaultdict(list)
        for position in order[start:stop]:
            groups[canonical([column[int(position)].as_py() for column in columns])].append(int(position))
        cursor = start
        for members in groups.values():
            order[cursor : cursor + len(members)] = members
            same[cursor : cursor + len(members) - 1] = True
            cursor += len(members)
            if cursor < stop:
                same[cursor - 1] = False
