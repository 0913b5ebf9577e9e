"""How far the past of a timeline may be forgotten: a clock that all readers follow, each at its own distance.

The distance is what RETAIN HISTORY asks for. The clock stays behind every read that is under way and does not last
(`holds.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from everview.adapter.holds import Hold, Holds, Ids
from everview.storage.contract import AdvanceClock, Command, GlobalId
from everview.storage.environment import Environment

# The past stays readable for this long where nothing else is asked for.
HISTORY_LAG_MS = 1_000
# Forgetting more of the past is worth a word in a commit once this much can be forgotten.
HISTORY_STEP_MS = 1_000


class History:
    """The past of one timeline; `history_clock` is the clock that readers of its collections follow."""

    def __init__(self, environment: Environment, history_clock: str) -> None:
        self._environment, self.history_clock = environment, history_clock
        self._commit_lock = threading.RLock()  # who moves the clocks
        self.holds = Holds(environment, history_clock)
        self._forgetting = False

    @property
    def history(self) -> int:
        """How far the past may be forgotten."""
        clock = self._environment.clock(self.history_clock)
        assert clock is not None
        return clock

    def hold(self, time: int, ids: Iterable[GlobalId] | Ids | None = None) -> Hold:
        """Keep the past of these collections from `time` on; the caller then looks whether it is still there."""
        hold = self.holds.add(time, ids if ids is None or callable(ids) else lambda: ids)
        if self._forgetting:  # a commit under way may have decided without knowing of this
            with self._commit_lock:
                pass
        return hold

    def hold_on(self, hold: Hold, time: int, ids: Iterable[GlobalId]) -> Hold:
        """A hold of the same at a later time, in place of another."""
        new = self.hold(time, ids)
        if self.history <= time:
            hold.release()
            return new
        new.release()  # the clock has passed by: only what is pinned can be held on to
        self.holds.move(hold, time)
        return hold

    @contextmanager
    def still(self) -> Iterator[None]:
        """While inside, no one else moves the clocks: definitions change between writes."""
        with self._commit_lock:
            yield

    def _forget(self, latest: int) -> list[Command]:
        """The commands that forget more of the past, where it is worth it, if `latest` is the latest complete time."""
        history = self.history
        self._forgetting = True  # whoever holds something from now on waits until this commit is over
        target = self.holds.earliest(latest - HISTORY_LAG_MS)
        self._forgetting = target >= history + HISTORY_STEP_MS
        return [AdvanceClock(self.history_clock, history, target)] if self._forgetting else []
