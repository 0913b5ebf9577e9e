"""When pending updates of a dataflow are due, without reading the others.

Pending updates are stored under buckets of time. Which buckets there are is kept here, a few numbers that are read once
when a dataflow goes on; of the first bucket, the times themselves, so that whoever waits knows the next one exactly.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from everview.compute.delta.program import BUCKET_BITS, Arrangement
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import NotReadable
from everview.timely.hashing import I64, hash_rows

_NONE: I64 = np.zeros(0, dtype=np.int64)
_RECENT_MIN = 1_024  # that many new buckets are kept apart before they are merged with the others


def state_id(id: GlobalId, arrangement: Arrangement) -> GlobalId:
    """The collection of an arrangement of a view."""
    return f"{id}.{arrangement.name}"


class Buckets:
    """Distinct numbers in order. Those added of late are kept apart, so that adding costs little beside millions."""

    def __init__(self, numbers: I64 = _NONE) -> None:
        self._old, self._recent = numbers, _NONE

    def __len__(self) -> int:
        return len(self._old) + len(self._recent)

    @property
    def first(self) -> int | None:
        return min((int(part[0]) for part in (self._old, self._recent) if len(part)), default=None)

    def up_to(self, last: int) -> I64:
        """The numbers that are not beyond `last`."""
        parts = [part[: np.searchsorted(part, last, side="right")] for part in (self._old, self._recent)]
        return np.union1d(*parts)

    def add(self, numbers: I64) -> None:
        """Add numbers, new or not."""
        places = np.searchsorted(self._old, numbers)
        inside = places < len(self._old)
        known = np.zeros(len(numbers), dtype=bool)
        known[inside] = self._old[places[inside]] == numbers[inside]
        self._recent = np.union1d(self._recent, numbers[~known])
        if len(self._recent) > max(_RECENT_MIN, len(self._old) // 16):
            self._old, self._recent = np.union1d(self._old, self._recent), _NONE

    def drop_before(self, number: int) -> None:
        """Forget the numbers before `number`."""
        self._old = self._old[np.searchsorted(self._old, number) :]
        self._recent = self._recent[np.searchsorted(self._recent, number) :]


class Pending:
    """The buckets in which pending updates of a dataflow wait. Whoever ticks and whoever waits may ask at once."""

    def __init__(self, environment: Environment, id: GlobalId, arrangements: Iterable[Arrangement]) -> None:
        self._environment, self._id = environment, id
        self._arrangements = [each for each in arrangements if each.pending]
        self._buckets: dict[str, Buckets] = {}
        self._times: dict[str, tuple[int, I64]] = {}  # of the first bucket: its number, and times in it
        self._lock = threading.RLock()

    @property
    def possible(self) -> bool:
        return bool(self._arrangements)

    def any_due(self, upper: int) -> bool:
        """Whether something may be due before `upper`."""
        with self._lock:
            for each in self._arrangements:
                bucket = self._known(each).first
                if bucket is None or bucket << BUCKET_BITS >= upper:
                    continue
                # Of a bucket that is over, something is due. In one that is not, it depends on the times.
                if (bucket + 1) << BUCKET_BITS <= upper:
                    return True
                first = self._first(each)
                if first is not None and first < upper:
                    return True
        return False

    def next_due(self) -> int | None:
        """A time before which no pending update is due; None if there are no pending updates."""
        with self._lock:
            firsts = [first for each in self._arrangements if (first := self._first(each)) is not None]
        return min(firsts, default=None)

    def due(self, arrangement: Arrangement, upper: int) -> I64:
        """The buckets that may have updates before `upper`."""
        with self._lock:
            return self._known(arrangement).up_to((upper - 1) >> BUCKET_BITS)

    def changed(self, states: Mapping[str, pa.Table] | None, upper: int) -> None:
        """A tick up to `upper` was committed, with these changes of the arrangements; None: they are to be read."""
        with self._lock:
            for each in self._arrangements:
                if states is None:
                    self._buckets.pop(each.name, None)
                    self._times.pop(each.name, None)
                    continue
                known, table = self._known(each), states[each.name]
                buckets, times = table.column(0).to_numpy(), table.column(1).to_numpy()
                known.add(np.unique(buckets))
                # Of the bucket of `upper` some may be due and some not; one that turns out empty costs a look-up.
                known.drop_before(upper >> BUCKET_BITS)
                if each.name in self._times:
                    bucket, before = self._times[each.name]
                    # Times at which nothing is left may stay among them: they cost a tick that does nothing.
                    merged = np.union1d(before, times[buckets == bucket])
                    self._times[each.name] = bucket, merged[merged >= upper]

    def _first(self, arrangement: Arrangement) -> int | None:
        """The first time at which something may be due."""
        known = self._known(arrangement)
        while (bucket := known.first) is not None:
            number, times = self._times.get(arrangement.name, (-1, _NONE))
            if number != bucket:
                times = self._read(arrangement, "c1", bucket)
                self._times[arrangement.name] = bucket, times
            if len(times):
                return int(times[0])
            known.drop_before(bucket + 1)
        return None

    def _known(self, arrangement: Arrangement) -> Buckets:
        known = self._buckets.get(arrangement.name)
        if known is None:
            known = Buckets(self._read(arrangement, "c0"))
            if len(known):
                self._buckets[arrangement.name] = known
        return known

    def _read(self, arrangement: Arrangement, column: str, bucket: int | None = None) -> I64:
        """A column of what waits, in one bucket or in all: distinct, in order, without what was due before."""
        id = state_id(self._id, arrangement)
        hashes = None if bucket is None else hash_rows([pa.chunked_array([pa.array([bucket], pa.int64())])], 1)
        while True:
            upper = self._environment.frontiers(id).upper
            if upper.empty or upper.only == self._environment.shard(id).spec.initial:
                return _NONE
            try:
                with self._environment.contents(id, upper.only - 1, hashes) as selection:
                    found: I64 = np.unique(selection.updates([column]).column(column).to_numpy())
            except NotReadable:
                continue  # a tick was committed meanwhile
            return found[found >= (upper.only >> BUCKET_BITS if column == "c0" else upper.only)]
