"""What a dataflow remembers, in shards: rows by the hashes of keys, and pending updates by their times.

A tick takes the pending updates that are due and must not look at the others, however many wait. They are stored under
buckets of time, and which buckets there are is known here: a few numbers, read once when a dataflow goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.delta.program import BUCKET_BITS, Arrangement
from everview.compute.tick import empty_table
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.timely.consolidate import DIFF
from everview.timely.hashing import I64, hash_rows


def state_id(id: GlobalId, arrangement: Arrangement) -> GlobalId:
    """The collection of an arrangement of a view."""
    return f"{id}.{arrangement.name}"


class Pending:
    """The buckets in which pending updates of a dataflow wait."""

    def __init__(self, environment: Environment, id: GlobalId, arrangements: Iterable[Arrangement]) -> None:
        self._environment, self._id = environment, id
        self._arrangements = [each for each in arrangements if each.pending]
        self._buckets: dict[str, I64] = {}

    def any_due(self, upper: int) -> bool:
        """Whether something may be due before `upper`."""
        return any(len(self.due(each, upper)) for each in self._arrangements)

    def next_due(self) -> int | None:
        """No pending update is due before this; None if there is none."""
        firsts = [int(buckets[0]) for each in self._arrangements if len(buckets := self._known(each))]
        return min(firsts) << BUCKET_BITS if firsts else None

    def due(self, arrangement: Arrangement, upper: int) -> I64:
        """The buckets that may have updates before `upper`."""
        buckets = self._known(arrangement)
        return buckets[: np.searchsorted(buckets, (upper - 1) >> BUCKET_BITS, side="right")]

    def changed(self, states: Mapping[str, pa.Table] | None, upper: int) -> None:
        """A tick up to `upper` was committed, with these changes of the arrangements; None: they are to be read."""
        for each in self._arrangements:
            if states is None:
                self._buckets.pop(each.name, None)
                continue
            left = self._known(each)
            added = np.unique(states[each.name].column(0).to_numpy())
            known = np.union1d(left, added)
            # Of the bucket of `upper` some may be due and some not; one that turns out empty costs a look-up.
            self._buckets[each.name] = known[known >= upper >> BUCKET_BITS]

    def _known(self, arrangement: Arrangement) -> I64:
        known = self._buckets.get(arrangement.name)
        if known is None:
            id = state_id(self._id, arrangement)
            upper = self._environment.frontiers(id).upper.only
            if upper == self._environment.shard(id).spec.initial:
                return np.zeros(0, dtype=np.int64)
            with self._environment.contents(id, upper - 1) as selection:
                known = np.unique(selection.updates(["c0"]).column("c0").to_numpy())
            self._buckets[arrangement.name] = known
        return known


class StoredState:
    """The state of a dataflow as it was before a tick that starts at `lower`."""

    def __init__(self, environment: Environment, id: GlobalId, lower: int, pending: Pending, *, first: bool) -> None:
        self._environment, self._id, self._lower = environment, id, lower
        self._pending, self._first = pending, first
        self.looking_s = 0.0

    def look_up(self, arrangement: Arrangement, hashes: I64 | None) -> pa.Table:
        """The rows of an arrangement, of these hashes, or all of them."""
        if self._first:
            return empty_table(arrangement.schema)
        began = time.perf_counter()
        with self._environment.contents(state_id(self._id, arrangement), self._lower - 1, hashes) as selection:
            found = selection.contents()
        self.looking_s += time.perf_counter() - began
        return found.select([*(f"c{index}" for index in range(len(arrangement.schema))), DIFF])

    def due(self, arrangement: Arrangement, upper: int) -> pa.Table:
        """The pending updates at times before `upper`."""
        buckets = self._pending.due(arrangement, upper)
        if self._first or not len(buckets):
            return empty_table(arrangement.schema[1:])
        found = self.look_up(arrangement, hash_rows([pa.chunked_array([pa.array(buckets)])], len(buckets)))
        come = found.filter(pc.less(found.column("c1"), upper)).drop_columns(["c0"])
        return come.rename_columns([*(f"c{index}" for index in range(come.num_columns - 1)), DIFF])
