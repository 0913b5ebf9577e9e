"""How far the past of a timeline may be forgotten: a clock that all readers follow, each at its own distance.

The distance is what RETAIN HISTORY asks for. The clock stays behind every short read that is under way
(`read_holds.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from everview.adapter.read_holds import Ids, ReadHold, ReadHolds
from everview.storage.contract import AdvanceClock, Command, GlobalId
from everview.storage.environment import Environment

# The past stays readable for this long by default.
HISTORY_LAG_MS = 1_000
# The clock is moved only if it can be moved by this much.
HISTORY_STEP_MS = 1_000


class History:
    """The past of one timeline; `history_clock` is the clock that readers of its collections follow."""

    def __init__(self, environment: Environment, history_clock: str) -> None:
        self._environment, self.history_clock = environment, history_clock
        self._commit_lock = threading.RLock()  # who moves the clocks
        self.holds = ReadHolds(environment, history_clock)
        self._forgetting = False

    @property
    def history(self) -> int:
        """The time of the clock: earlier times may be forgotten."""
        clock = self._environment.clock(self.history_clock)
        assert clock is not None
        return clock

    def hold(self, time: int, ids: Iterable[GlobalId] | Ids | None = None) -> ReadHold:
        """Keep the past of these collections from `time` on. The caller then checks whether it is still there."""
        hold = self.holds.add(time, ids if ids is None or callable(ids) else lambda: ids)
        if self._forgetting:  # a commit under way may have decided without knowing of this
            with self._commit_lock:
                pass
        return hold

    def hold_on(self, hold: ReadHold, time: int, ids: Iterable[GlobalId]) -> ReadHold:
        """Replace a hold by one at a later time."""
        new = self.hold(time, ids)
        if self.history <= time:
            hold.release()
            return new
        new.release()  # the clock has passed: only a pinned hold can be moved
        self.holds.move(hold, time)
        return hold

    @contextmanager
    def still(self) -> Iterator[None]:
        """Within the block nobody else moves the clocks: definitions change between writes."""
        with self._commit_lock:
            yield

    def _forget(self, latest: int) -> list[Command]:
        """The commands that forget more of the past, if that pays; `latest` is the latest complete time."""
        history = self.history
        self._forgetting = True  # whoever holds something from now on waits until this commit is over
        target = self.holds.earliest(latest - HISTORY_LAG_MS)
        self._forgetting = target >= history + HISTORY_STEP_MS
        return [AdvanceClock(self.history_clock, history, target)] if self._forgetting else []
