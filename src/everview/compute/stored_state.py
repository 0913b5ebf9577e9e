"""The state of a dataflow in shards: rows by the hashes of keys, and pending updates by their times.

A tick takes the pending updates that are due and does not look at the others, however many wait: see `pending.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.delta.program import Arrangement
from everview.compute.pending_updates import Pending, state_id
from everview.compute.tick import empty_table
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.leading import leading
from everview.storage.selection import Selection
from everview.timely.consolidate import DIFF
from everview.timely.hashing import I64, hash_rows
from everview.timely.ordering import Sort


class StoredState:
    """The state of a dataflow as it was before a tick that starts at `lower`."""

    def __init__(self, environment: Environment, id: GlobalId, lower: int, pending: Pending, *, first: bool) -> None:
        self._environment, self._id, self._lower = environment, id, lower
        self._pending, self._first = pending, first
        self._found: dict[tuple[str, bytes | None], pa.Table] = {}
        self.looking_s = 0.0

    def look_up(self, arrangement: Arrangement, hashes: I64 | None) -> pa.Table:
        if self._first:
            return empty_table(arrangement.schema)
        # Of a join's input that does not change, several paths may look for the same.
        asked = (arrangement.name, None if hashes is None else hashes.tobytes())
        if asked not in self._found:
            began = time.perf_counter()
            with self._contents(arrangement, hashes) as selection:
                self._found[asked] = self._rows(arrangement, selection.contents())
            self.looking_s += time.perf_counter() - began
        return self._found[asked]

    def look_up_first(
        self, arrangement: Arrangement, hashes: I64 | None, sorts: Sequence[Sort], counts: I64
    ) -> pa.Table:
        if self._first:
            return empty_table(arrangement.schema)
        began = time.perf_counter()
        with self._contents(arrangement, hashes) as selection:
            found = leading(selection, sorts, counts) if sorts else selection.contents()
        self.looking_s += time.perf_counter() - began
        return self._rows(arrangement, found)

    def rows_max(self, arrangement: Arrangement, hashes: I64) -> int:
        if self._first:
            return 0
        began = time.perf_counter()
        with self._contents(arrangement, hashes) as selection:
            count = selection.count_max()
        self.looking_s += time.perf_counter() - began
        return count

    def _contents(self, arrangement: Arrangement, hashes: I64 | None) -> Selection:
        id = state_id(self._id, arrangement)
        return self._environment.contents(id, time_before(self._environment, id, self._lower), hashes)

    def _rows(self, arrangement: Arrangement, found: pa.Table) -> pa.Table:
        return found.select([*(f"c{index}" for index in range(len(arrangement.schema))), DIFF])

    def due(self, arrangement: Arrangement, upper: int) -> pa.Table:
        buckets = self._pending.due(arrangement, upper)
        if self._first or not len(buckets):
            return empty_table(arrangement.schema[1:])
        found = self.look_up(arrangement, hash_rows([pa.chunked_array([pa.array(buckets)])], len(buckets)))
        come = found.filter(pc.less(found.column("c1"), upper)).drop_columns(["c0"])
        return come.rename_columns([*(f"c{index}" for index in range(come.num_columns - 1)), DIFF])


def time_before(environment: Environment, id: GlobalId, lower: int) -> int:
    """The time at which to read an arrangement as it was before `lower`: it may not have changed for long."""
    return min(lower, environment.frontiers(id).upper.only) - 1
