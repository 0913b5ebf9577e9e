"""Consolidation: the smallest set of updates that means the same, in hash order, vectorised on Arrow and numpy.

Updates are an Arrow table: the data columns, `_time` and `_diff`, and where they are sorted also `_hash`. Two sets
of updates mean the same when for every time the sum of `_diff` per row over updates at or before it is the same.
`consolidate` leaves at most one update for each (row, time), none with diff 0, sorted by (key hash, row hash, time).
Hashes only bring equal rows together: whether rows are equal is always decided by their values. Nor are collisions
rare: NULLs do not enter the hash, so (1, NULL) and (NULL, 1) share one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.errors import EverviewError
from everview.timely.equality import rows_equal
from everview.timely.hashing import I64, hash_rows

HASH, TIME, DIFF = "_hash", "_time", "_diff"
RESERVED = (HASH, TIME, DIFF)


class MultiplicityOverflow(EverviewError, OverflowError):
    """The diffs of some row sum to more than 64 bits. Storage takes no updates with which that could happen."""


Bools = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]


def data_names(updates: pa.Table) -> list[str]:
    return [name for name in updates.column_names if name not in RESERVED]


def int_column(updates: pa.Table, name: str) -> I64:
    """A 64-bit column without NULLs, as numpy."""
    column = updates.column(name)
    if column.num_chunks == 1:
        return column.chunk(0).to_numpy()  # type: ignore[no-any-return]
    return column.to_numpy()  # type: ignore[no-any-return]


def with_column(updates: pa.Table, name: str, values: I64) -> pa.Table:
    """The table with a 64-bit column replaced or added."""
    index = updates.schema.get_field_index(name)
    if index < 0:
        return updates.add_column(0, pa.field(name, pa.int64(), nullable=False), pa.array(values))
    return updates.set_column(index, updates.schema.field(index), pa.array(values))


def with_hash(updates: pa.Table, key: Sequence[str]) -> pa.Table:
    """The table with `_hash`, the hash over the columns of `key`, if it has none yet."""
    if HASH in updates.column_names:
        return updates
    return with_column(updates, HASH, hash_rows([updates.column(name) for name in key], updates.num_rows))


def advance(updates: pa.Table, since: int) -> pa.Table:
    """Advance times to `since`: the contents at every time from then on stay the same."""
    times = int_column(updates, TIME)
    if not len(times) or int(times.min()) >= since:
        return updates
    return with_column(updates, TIME, np.maximum(times, since))


def order_by_hash(hashes: I64) -> Positions:
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


def consolidate(updates: pa.Table, key: Sequence[str] | None = None, rows: Positions | None = None) -> pa.Table:
    """The consolidated form of `updates`, with `_hash` over the columns of `key` (default: the whole row).

    `rows` picks the updates that take part; without it all of them do.
    """
    names = data_names(updates)
    key = names if key is None else list(key)
    updates = with_hash(updates, key)
    hashes, times, diffs = (int_column(updates, name) for name in RESERVED)
    if rows is not None:
        hashes = hashes[rows]
    if len(hashes) == 0:
        return updates.slice(0, 0)
    if (hashes[1:] < hashes[:-1]).any():
        order = order_by_hash(hashes)
        hashes = hashes[order]
        rows = order if rows is None else rows[order]
    same = hashes[1:] == hashes[:-1]
    if rows is not None and not same.any() and diffs.all():
        return _taken(updates, rows, hashes)  # the common case of many different rows, with the least copying
    if rows is not None:
        times, diffs = times[rows], diffs[rows]
    if same.any():
        # Only among rows of one hash is there more to compare, and often there are none.
        tied = np.flatnonzero(np.concatenate(([False], same)) | np.concatenate((same, [False])))
        row_hashes = hashes[tied]
        if key != names:
            places = pa.array(tied if rows is None else rows[tied])
            row_hashes = hash_rows([updates.column(name).take(places) for name in names], len(tied))
        order = np.lexsort((times[tied], row_hashes, hashes[tied]))
        if (order[1:] < order[:-1]).any():
            rows, times, diffs = np.arange(len(hashes)) if rows is None else rows.copy(), times.copy(), diffs.copy()
            rows[tied], times[tied], diffs[tied] = rows[tied][order], times[tied][order], diffs[tied][order]
            row_hashes = row_hashes[order]
        alike = np.zeros(len(hashes), dtype=bool)
        alike[tied[1:]] = row_hashes[1:] == row_hashes[:-1]
        same &= (times[1:] == times[:-1]) & alike[1:]
    return _sum_equal(updates, rows, same, diffs)


def _taken(updates: pa.Table, rows: Positions, hashes: I64) -> pa.Table:
    positions = pa.array(rows)
    columns = [
        pa.chunked_array([pa.array(hashes)]) if name == HASH else updates.column(name).take(positions)
        for name in updates.column_names
    ]
    return pa.table(columns, schema=updates.schema)


def _sum_equal(updates: pa.Table, order: Positions | None, same: Bools, diffs: I64) -> pa.Table:
    """Add up diffs over runs of neighbours that are the same update, and drop what sums to nothing."""
    candidates = np.flatnonzero(same)
    if len(candidates):
        if order is None:
            order = np.arange(len(diffs))
        columns = [updates.column(name) for name in data_names(updates)]
        unequal = candidates[~rows_equal(columns, order[candidates], order[candidates + 1])]
        if len(unequal):
            order = _separate_collisions(columns, order, same, unequal)
            diffs = int_column(updates, DIFF)[order]
        starts = np.flatnonzero(np.concatenate(([True], ~same)))
        diffs = _sums(diffs, starts)
        order = order[starts]
    kept = diffs != 0
    if not kept.all():
        order = np.flatnonzero(kept) if order is None else order[kept]
        diffs = diffs[kept]
    if order is None:
        return updates
    return with_column(updates.take(pa.array(order)), DIFF, diffs)


def _sums(diffs: I64, starts: Positions) -> I64:
    if max(int(diffs.max()), -int(diffs.min())) * len(diffs) >= 2**63:  # some run might not fit: the halves do
        high = np.add.reduceat(diffs >> 32, starts)
        high += np.add.reduceat(diffs & 0xFFFFFFFF, starts) >> 32
        if int(high.min()) < -(2**31) or int(high.max()) >= 2**31:
            raise MultiplicityOverflow("the diffs of a row do not sum to 64 bits")
    return np.add.reduceat(diffs, starts)


def _separate_collisions(
    columns: Sequence[pa.ChunkedArray], order: Positions, same: Bools, unequal: Positions
) -> Positions:
    """A new order in which, within runs of the `same` hashes and time, equal rows are neighbours; corrects `same`.

    `unequal` are the places where it wrongly takes a row for the same as the next. In every round the rows equal
    to the first one left in their run form a group; there are as many rounds as one run has different rows.
    """
    runs = np.cumsum(np.concatenate(([0], ~same)))
    places = np.flatnonzero(np.isin(runs, runs[unequal]))
    rows, runs = order[places], runs[places]
    groups = np.zeros(len(places), dtype=np.intp)
    left = np.arange(len(places))
    while len(left):
        first = np.concatenate(([True], np.diff(runs[left]) != 0))
        leaders = left[first][np.cumsum(first) - 1]
        left = left[~(first | rows_equal(columns, rows[leaders], rows[left]))]
        groups[left] += 1
    arranged = np.lexsort((groups, runs))
    groups = groups[arranged]
    order = order.copy()
    order[places] = rows[arranged]
    inside = np.flatnonzero(runs[1:] == runs[:-1])
    same[places[inside]] = groups[inside + 1] == groups[inside]
    return order
