"""Which times are closed: progress statements held against how many distinct updates have arrived.

The tracker never sees data. Whoever deduplicates, one reader, several of them or Spark, tells it how many new updates
there are at which times, and it tells how far the history is complete. It knows each open time's count as far as
statements reach from the start without a gap (`covered`); statements further on wait. What contradicts itself holds
its time open, and with it all that are beyond.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

from everview.cdc.contract import COUNTS, DIFFS, GAP, MISSING, SURPLUS, Frontier, Progress, Stall
from everview.cdc.errors import (
    ConflictingCounts,
    ConflictingDiffs,
    Contradiction,
    ImpossibleMultiplicity,
    SurplusUpdates,
    TooMuchOpen,
)
from everview.cdc.times import flatten, shape_of, time_set
from everview.timely.antichain import Antichain
from everview.timely.lattice import Time

STATEMENTS_MAX = 1 << 18  # that wait for a gap to be filled, or contradict one another
STALLS_MAX = 100


@dataclass(slots=True)
class Slot:
    expected: int | None = None  # None: no statement has reached it
    arrived: int = 0
    conflicts: int = 0
    other_count: int | None = None  # that some statement gave and that is not `expected`
    held: tuple[str, str] | None = None  # a reason of another's to keep it open, and its detail

    @property
    def met(self) -> bool:
        """Whether nothing keeps the time open but times before it."""
        return self.expected == self.arrived and not self.conflicts and self.other_count is None and not self.held


class Tracker:
    """Times of one stream, from `start` on."""

    def __init__(self, start: Frontier) -> None:
        self.frontier = start
        self.covered = start
        shape = shape_of(start.elements[0]) if start.elements else 0
        self._slots: dict[Time, Slot] = {}
        self._open = time_set(shape)
        self._unmet = time_set(shape)
        self._total = isinstance(shape, int)
        self._waiting: list[tuple[tuple[int, ...], int, Progress]] = []
        self._known_waiting: set[Progress] = set()
        self._contested: dict[Progress, None] = {}
        self._numbers = count()
        self.contradictions = 0  # how often one was met, so that whoever looks knows when to look again

    def is_open(self, time: Time) -> bool:
        """Whether updates at this time still matter."""
        return self.frontier.less_equal(time)

    def arrive(self, time: Time, updates: int) -> None:
        """Count more distinct updates at an open time."""
        slot = self._slot(time)
        slot.arrived += updates
        self._weigh(time, slot)

    def conflict(self, time: Time) -> None:
        """Note that some data have two diffs at an open time."""
        slot = self._slot(time)
        slot.conflicts += 1
        self.contradictions += 1
        self._unmet.add(time)

    def hold(self, time: Time, reason: str, detail: str) -> None:
        """Keep a time open, because what is said of it cannot be true."""
        self._slot(time).held = (reason, detail)
        self.contradictions += 1
        self._unmet.add(time)

    def hear(self, progress: Progress) -> None:
        """Apply a statement, now or once no gap is before it."""
        if progress.upper <= progress.lower or progress.upper <= self.frontier:
            return  # about no time at all, or none that is open
        if progress.lower <= self.covered:
            before = self.covered
            self._apply(progress)
            if self.covered != before:
                for waiting in self._actionable():
                    self._known_waiting.discard(waiting)
                    self._apply(waiting)
        elif progress not in self._known_waiting:
            if len(self._waiting) >= STATEMENTS_MAX:
                raise TooMuchOpen(
                    f"more than {STATEMENTS_MAX} progress statements wait",
                    detail=f"nothing is said about the times from {self.covered} on",
                    hint="find the messages that are missing",
                )
            self._known_waiting.add(progress)
            least = min(flatten(time) for time in progress.lower)
            heapq.heappush(self._waiting, (least, next(self._numbers), progress))

    def settle(self) -> list[Time] | None:
        """Close what can be closed; gives those times at which anything was, in order, or None if nothing moved."""
        frontier = Antichain(*self.covered, *self._unmet.minimal())
        if frontier == self.frontier:
            return None
        self.frontier = frontier
        closed = self._open.take_before(frontier)
        for time in closed:
            del self._slots[time]
        if self._contested:
            self._contested = {each: None for each in self._contested if not each.upper <= frontier}
        return closed

    # What is open, for checkpoints and for people

    @property
    def open_times(self) -> int:
        return len(self._slots)

    @property
    def statements_waiting(self) -> int:
        """How many progress statements wait for a gap to be filled."""
        return len(self._waiting)

    def statements(self) -> list[Progress]:
        """Statements that tell a tracker that starts at `frontier` what this one knows."""
        counts = [(time, slot.expected) for time, slot in self._slots.items() if slot.expected]
        counts.sort(key=lambda pair: flatten(pair[0]))
        known = [] if self.covered == self.frontier else [Progress(self.frontier, self.covered, tuple(counts))]
        return [*known, *self._contested, *(progress for _, _, progress in sorted(self._waiting, key=lambda w: w[1]))]

    def stalls(self) -> list[Stall]:
        """What keeps times open, the first of them; nothing while all that was stated has arrived."""
        unmet = self._unmet if self._total else sorted(self._unmet, key=flatten)
        result = [self._stall(time, self._slots[time]) for time in islice(unmet, STALLS_MAX)]
        if self._waiting:
            waiting = min(self._waiting)[2]
            detail = f"statements go up to {self.covered} and on from {waiting.lower}"
            result += [Stall(GAP, time, detail=detail) for time in self.covered]
        return result

    def contradiction(self) -> Contradiction | None:
        """The first contradiction, as an error that can be raised."""
        for time in self._unmet:
            slot = self._slots[time]
            if slot.conflicts:
                return ConflictingDiffs(f"updates of the same data at time {time} have different diffs", time)
            if slot.other_count is not None:
                detail = f"one says {slot.expected}, another {slot.other_count}"
                return ConflictingCounts(f"progress statements disagree about time {time}", time, detail=detail)
            if slot.held is not None:
                return ImpossibleMultiplicity(f"time {time} has a {slot.held[0]}", time, detail=slot.held[1])
            if slot.expected is not None and slot.arrived > slot.expected:
                detail = f"{slot.arrived} have arrived and {slot.expected} are stated"
                return SurplusUpdates(f"more updates than stated at time {time}", time, detail=detail)
        return None

    @staticmethod
    def _stall(time: Time, slot: Slot) -> Stall:
        if slot.conflicts:
            return Stall(DIFFS, time, slot.expected, slot.arrived, "the same data have different diffs")
        if slot.other_count is not None:
            detail = f"one statement says {slot.expected}, another {slot.other_count}"
            return Stall(COUNTS, time, slot.expected, slot.arrived, detail)
        if slot.held is not None:
            return Stall(slot.held[0], time, slot.expected, slot.arrived, slot.held[1])
        short = slot.arrived < (slot.expected or 0)
        return Stall(MISSING if short else SURPLUS, time, slot.expected, slot.arrived)

    # Inside

    def _slot(self, time: Time) -> Slot:
        slot = self._slots.get(time)
        if slot is None:
            slot = self._slots[time] = Slot(None if self.covered.less_equal(time) else 0)
            self._open.add(time)
        return slot

    def _weigh(self, time: Time, slot: Slot) -> None:
        if slot.expected is None and not slot.conflicts and slot.held is None:
            return
        if slot.met:
            self._unmet.discard(time)
        else:
            self._unmet.add(time)
            self.contradictions += slot.expected is not None and slot.arrived > slot.expected

    def _apply(self, progress: Progress) -> None:
        counts = dict(progress.counts)
        for time in counts:
            if self.frontier.less_equal(time):
                self._slot(time)
        for time in self._open.inside(progress.lower, progress.upper):
            slot, stated = self._slots[time], counts.get(time, 0)
            if slot.expected is None:
                slot.expected = stated
            elif slot.expected != stated and slot.other_count is None:
                slot.other_count = stated
                self.contradictions += 1
                if len(self._contested) >= STATEMENTS_MAX:
                    raise TooMuchOpen(f"more than {STATEMENTS_MAX} progress statements contradict others")
                self._contested[progress] = None
            self._weigh(time, slot)
        self.covered = self.covered.join(progress.upper)

    def _actionable(self) -> Iterator[Progress]:
        """The waiting statements that no gap comes before, while each that is given may fill the gap before others."""
        if self._total:
            while self._waiting and self._waiting[0][2].lower <= self.covered:
                yield heapq.heappop(self._waiting)[2]
            return
        while True:
            ready = [entry for entry in sorted(self._waiting) if entry[2].lower <= self.covered]
            if not ready:
                return
            taken = {number for _, number, _ in ready}
            self._waiting = [entry for entry in self._waiting if entry[1] not in taken]
            heapq.heapify(self._waiting)
            yield from (progress for _, _, progress in ready)
