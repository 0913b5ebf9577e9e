"""Follow a collection: its contents at a time, then every change at exactly its time.

`following` is one step: what a reader at some frontier has not had yet. Dataflows, indexes, change streams and the
subscriptions of clients all follow by it, each at its own pace. A `Subscription` repeats the step, with progress in
line. It pulls: it reads from the shard what its reader has not yet had, when the reader asks, one bounded chunk at a
time. A slow reader therefore costs no memory, only the history that its own read capability holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.storage.contract import Frontiers, Progress, ReadCapability, Updates
from everview.storage.errors import Canceled, StorageError
from everview.storage.selection import Selection, filtered
from everview.storage.shard import FOREVER, Shard, from_frontier, to_frontier
from everview.timely.consolidate import HASH, TIME, consolidate, with_column

SMALL_BYTES = 8 << 20  # up to here an interval is read at once, beyond it chunk by chunk


class Readable(Protocol):
    """Where a collection is read."""

    def contents(self, id: str, as_of: int) -> Selection: ...

    def changes(self, id: str, lower: int, upper: int) -> Selection: ...


class Source(Readable, Protocol):
    """What a subscription needs of its environment."""

    def check(self, capability: ReadCapability) -> None: ...

    def check_held(self, id: str, token: str) -> None: ...

    def frontiers(self, id: str) -> Frontiers: ...

    def shard(self, id: str) -> Shard: ...

    def wait(self, ready: Callable[[], bool], timeout_s: float) -> bool: ...

    def wake(self) -> None: ...


def following(
    source: Readable, id: str, lower: int, upper: int, *, snapshot: bool
) -> Iterator[tuple[Selection, int | None]]:
    """What a reader who stands at `lower` has not had before `upper`, each selection open while it is looked at."""
    for selection, at in selections(source, id, lower, upper, snapshot=snapshot):
        with selection:
            yield selection, at


def selections(
    source: Readable, id: str, lower: int, upper: int, *, snapshot: bool
) -> Iterator[tuple[Selection, int | None]]:
    """The same, for callers who open the selections themselves and keep them open together.

    With `snapshot` the contents at `lower` come first, with the time at which their rows count: `lower`. Then come the
    changes after it, or from `lower` on if there was no snapshot; they count at their own times, which None stands for.
    """
    if snapshot:
        yield source.contents(id, lower), lower
        lower += 1
    if lower < upper:
        yield source.changes(id, lower, upper), None


class Subscription:
    """An iterator of `Updates` and `Progress`; made by `Environment.subscribe`.

    The first progress that passes the starting time ends the snapshot. The capability must stay valid, and before the
    times not yet delivered: the reader downgrades it as it goes, to just before the last progress at most.
    """

    def __init__(
        self,
        source: Source,
        capability: ReadCapability,
        *,
        snapshot: bool = True,
        where: pc.Expression | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        source.check(capability)
        self._source = source
        self._id = capability.id
        self._token = capability.token
        self._start = from_frontier(capability.frontier)
        self._where = where
        self._columns = columns
        self._all = list(source.shard(capability.id).spec.schema.names)  # more may come to be: they were not asked for
        self._next = self._start if snapshot else self._start + 1
        self._snapshot_due = snapshot
        self._canceled: StorageError | None = None
        self._events = self._run()

    @property
    def frontier(self) -> int:
        """Every update at a time before this one has been delivered."""
        return self._next

    def next(self, timeout_s: float | None = None) -> Updates | Progress | None:
        """The next event. None if nothing comes within the time, `StopIteration` when nothing can ever follow."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            if self._canceled is not None:
                raise self._canceled
            self._source.check_held(self._id, self._token)
            event = next(self._events)
            if event is not None:
                return event
            remaining = 3600.0 if deadline is None else deadline - time.monotonic()
            if remaining <= 0:
                return None
            self._source.wait(self._ready, remaining)

    def __iter__(self) -> Iterator[Updates | Progress]:
        while True:
            try:
                event = self.next()
            except StopIteration:
                return
            if event is not None:
                yield event

    def cancel(self, reason: StorageError | None = None) -> None:
        """End the subscription from either side; a reader that waits is woken with the reason."""
        self._canceled = reason or Canceled(f"the subscription to {self._id} was canceled")
        self._source.wake()

    def _ready(self) -> bool:
        try:
            self._source.check_held(self._id, self._token)
        except StorageError:
            return True  # the reader is woken, and told
        return self._canceled is not None or self._upper() > self._next

    def _upper(self) -> int:
        return from_frontier(self._source.frontiers(self._id).upper)

    def _run(self) -> Iterator[Updates | Progress | None]:
        """Events, and None whenever there is nothing to say yet."""
        while self._next != FOREVER:
            upper = self._upper()
            if upper <= self._next:
                yield None
                continue
            yield from self._deliver(upper)
            self._next = upper
            yield Progress(to_frontier(upper))

    def _deliver(self, upper: int) -> Iterator[Updates]:
        for selection, at in following(self._source, self._id, self._next, upper, snapshot=self._snapshot_due):
            small = selection.bytes_max <= SMALL_BYTES
            for chunk in [selection.changes()] if small else selection.chunks():
                table = self._shaped(chunk, selection)
                if table.num_rows:
                    yield Updates(table)
            if at is not None:
                self._snapshot_due, self._next = False, at + 1

    def _shaped(self, chunk: pa.Table, selection: Selection) -> pa.Table:
        """A chunk as the reader asked for it: snapshot rows at the starting time, filtered and projected."""
        times = chunk.column(TIME).to_numpy()
        if len(times) and times.min() < self._start:
            chunk = with_column(chunk, TIME, np.maximum(times, self._start))
            chunk = consolidate(chunk, selection.spec.key)
        columns = self._columns
        if columns is None and selection.spec.schema.names != self._all:
            columns = self._all
        table = filtered(chunk, self._where, columns)
        if columns is not None:
            table = consolidate(table).drop_columns([HASH])
        return table
