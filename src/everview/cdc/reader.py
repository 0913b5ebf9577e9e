"""The reader: messages in any order and number in, every update at closed times out, once, in the order of time.

Updates are deduplicated on `(data, time)` while their time is open. They can be kept in several stashes, each with its
share by hash of `(data, time)`, and the tracker adds up what they count: the shape of a data-parallel reader, with the
same answers at any parallelism.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Generic, TypeVar

from everview.cdc.contract import (
    DIFFS,
    Closed,
    Frontier,
    Message,
    Progress,
    ReaderCheckpoint,
    Stall,
    Update,
    Updates,
    in_messages,
)
from everview.cdc.errors import ConflictingDiffs, Contradiction, InvalidStatement, TooMuchOpen
from everview.cdc.times import shape_of
from everview.cdc.tracker import Tracker
from everview.timely.antichain import Antichain
from everview.timely.lattice import Time

D = TypeVar("D")

OPEN_UPDATES_MAX = 20_000_000
START: Frontier = Antichain(0)


class Reader(Generic[D]):
    """Takes messages and gives closed updates. Data must be hashable, and equal exactly if they are the same row."""

    def __init__(
        self, start: Frontier = START, *, parallelism: int = 1, open_updates_max: int = OPEN_UPDATES_MAX
    ) -> None:
        self.tracker = Tracker(start)
        self._shape = shape_of(start.elements[0]) if start.elements else None
        self._stashes: list[dict[Time, dict[D, int]]] = [{} for _ in range(parallelism)]
        self._conflicts: dict[tuple[D, Time], set[int]] = {}  # diffs besides the one in the stash
        self._open_updates_max = open_updates_max
        self.open_updates = 0

    @classmethod
    def restore(cls, checkpoint: ReaderCheckpoint[D], **options: int) -> Reader[D]:
        reader = cls(checkpoint.frontier, **options)
        for message in checkpoint.messages:
            closed = reader.push(message)
            assert closed is None, "a checkpoint holds only what is open"
        return reader

    def checkpoint(self) -> ReaderCheckpoint[D]:
        """All that this reader knows and has not reported yet."""
        known = in_messages(list(self._all_open()))
        return ReaderCheckpoint(self.frontier, (*known, *self.tracker.statements()))

    @property
    def frontier(self) -> Frontier:
        """All updates at times before this were reported, and none of them is remembered."""
        return self.tracker.frontier

    @property
    def covered(self) -> Frontier:
        """How far progress statements reach without a gap."""
        return self.tracker.covered

    def push(self, message: Message[D]) -> Closed[D] | None:
        """Take a message and give what it closes. Raises InvalidStatement if no history can make it true."""
        self.take(message)
        return self.settle()

    def take(self, message: Message[D]) -> None:
        """Take a message without closing anything: a contradiction may still come."""
        if isinstance(message, Updates):
            self._take(message)
        else:
            check_progress(message, self._shape)
            self.tracker.hear(message)

    def settle(self) -> Closed[D] | None:
        """Close what can be closed."""
        closed = self.tracker.settle()
        return None if closed is None else self._report(closed)

    def hold(self, time: Time, reason: str, detail: str) -> None:
        """Keep a time open although it is complete, because what it says cannot be true."""
        if self.tracker.is_open(time):
            self.tracker.hold(time, reason, detail)

    def read(self, messages: Iterable[Message[D]]) -> Iterator[Closed[D]]:
        """What each message closes. Raises a contradiction as soon as there is one."""
        for message in messages:
            before = self.tracker.contradictions
            closed = self.push(message)
            if closed is not None:
                yield closed
            if self.tracker.contradictions != before and (error := self.contradiction()):
                raise error

    def contradiction(self) -> Contradiction | None:
        """What contradicts itself at an open time, if anything does."""
        error = self.tracker.contradiction()
        if isinstance(error, ConflictingDiffs):
            return ConflictingDiffs(error.message, error.time, detail=self._conflict_at(error.time))
        return error

    def stalls(self) -> list[Stall]:
        """What keeps covered times open, and the first gaps that are waited for."""
        stalls = self.tracker.stalls()
        return [replace(s, detail=self._conflict_at(s.time)) if s.reason == DIFFS else s for s in stalls]

    def _take(self, message: Updates[D]) -> None:
        updates = message.updates
        several = len(self._stashes) > 1
        place, end = 0, len(updates)
        while place < end:
            # Updates of one time mostly come together, so what depends on the time alone is looked up once.
            time = updates[place][1]
            start = place
            while place < end and updates[place][1] == time:
                place += 1
            run = updates if place - start == end else updates[start:place]
            check_time(time, self._shape)
            if not self.tracker.is_open(time):
                if any(diff == 0 for _, _, diff in run):
                    raise _zero_diff(time)
                continue
            shares: dict[int, list[Update[D]]] = {0: run} if not several else {}  # type: ignore[dict-item]
            if several:
                for update in run:
                    shares.setdefault(hash((update[0], time)) % len(self._stashes), []).append(update)
            for share, mine in shares.items():
                self._stash(self._stashes[share].setdefault(time, {}), time, mine)

    def _stash(self, stash: dict[D, int], time: Time, updates: Iterable[Update[D]]) -> None:
        """Keep updates of one open time, and tell the tracker how many of them are new."""
        before = len(stash)
        room = self._open_updates_max - self.open_updates
        keep = stash.setdefault
        try:
            for data, _, diff in updates:
                if keep(data, diff) != diff:
                    if diff == 0:
                        raise _zero_diff(time)
                    self._conflict(data, time, diff)
                elif diff == 0:
                    del stash[data]
                    raise _zero_diff(time)
            if len(stash) - before > room:
                raise TooMuchOpen(
                    f"more than {self._open_updates_max} updates wait for their times to close",
                    detail=self._what_waits(),
                    hint="find the messages that are missing, or let the reader hold more",
                )
        finally:
            if fresh := len(stash) - before:
                self.open_updates += fresh
                self.tracker.arrive(time, fresh)

    def _what_waits(self) -> str | None:
        stalls = self.stalls()
        if not stalls:
            return f"no progress statement reaches beyond {self.covered}"
        first = stalls[0]
        return f"time {first.time}: {first.reason}" + (f" ({first.detail})" if first.detail else "")

    def _conflict(self, data: D, time: Time, diff: int) -> None:
        others = self._conflicts.setdefault((data, time), set())
        if diff not in others:
            others.add(diff)
            self.tracker.conflict(time)

    def _conflict_at(self, time: Time) -> str:
        for (data, at), others in self._conflicts.items():
            if at == time:
                known = next(s[time][data] for s in self._stashes if data in s.get(time, {}))
                return f"data {data!r} have diffs {', '.join(map(str, sorted({known, *others})))}"
        return ""

    def _report(self, times: list[Time]) -> Closed[D]:
        updates: list[Update[D]] = []
        for time in times:
            for stash in self._stashes:
                if rows := stash.pop(time, None):
                    updates += [(data, time, diff) for data, diff in rows.items()]
        self.open_updates -= len(updates)
        return Closed(updates, self.frontier)

    def _all_open(self) -> Iterator[Update[D]]:
        for stash in self._stashes:
            for time, rows in stash.items():
                yield from ((data, time, diff) for data, diff in rows.items())
        for (data, time), others in self._conflicts.items():
            yield from ((data, time, diff) for diff in others)


def check_time(time: Time, shape: Time | None) -> None:
    """Raise InvalidStatement unless the time is one of the stream's order."""
    if type(time) is int and shape == 0:
        return
    if shape is not None and shape_of(time) != shape:
        raise InvalidStatement(f"time {time} is not of the stream's order", detail=f"its times look like {shape}")


def check_progress(progress: Progress, shape: Time | None) -> None:
    """Raise InvalidStatement unless the statement is about its own interval, and about each time once."""
    for bound in (*progress.lower, *progress.upper):
        check_time(bound, shape)
    if progress.upper < progress.lower:
        raise InvalidStatement(f"a progress statement goes from {progress.lower} back to {progress.upper}")
    seen = set()
    for time, number in progress.counts:
        check_time(time, shape)
        if not progress.lower.less_equal(time) or progress.upper.less_equal(time):
            detail = f"it covers the times from {progress.lower} to {progress.upper}"
            raise InvalidStatement(f"a progress statement counts time {time}, which it does not cover", detail=detail)
        if time in seen:
            raise InvalidStatement(f"a progress statement counts time {time} twice")
        if number < 0:
            raise InvalidStatement(f"a progress statement counts {number} updates at time {time}")
        seen.add(time)


def _zero_diff(time: Time) -> InvalidStatement:
    return InvalidStatement(f"an update at time {time} has diff 0", hint="write no updates that change nothing")
