"""Moves the timeline while nobody writes: when something becomes due, and once a second for those who watch.

Rows of views with temporal filters come and go at times of their own. Nobody polls for these: the next is known, and
this sleeps until then, or until a tick has changed what is next; with nothing to come it only keeps the seconds. While
someone watches, a change is there at its millisecond. While nobody does, those of a second share a tick, and whoever
reads meanwhile moves the timeline itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from everview.adapter.expiry import Expiring
from everview.adapter.timeline import Timeline
from everview.background import Backoff, Loop
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import StorageError

SECOND_S = 1.0  # how often the timeline moves for those who watch it while nobody writes
WATCHED_PACE_S = 0.005  # changes that are due closer together than this share a tick
CLOSE_S = 5.0

_log = structlog.get_logger()


class ViewDues(Protocol):
    """What comes and goes by itself in views: see `maintenance.Maintenance`."""

    def dues(self) -> Mapping[GlobalId, int]:
        """When something is due next, in each view in which there is such a time."""
        ...

    @property
    def changes(self) -> int:
        """A number that grows whenever `dues` may have changed."""
        ...


class Dues(Protocol):
    """What comes and goes by itself."""

    def dues(self) -> list[int]:
        """When something is due next, for each view in which there is such a time."""
        ...

    @property
    def changes(self) -> int:
        """A number that grows whenever `dues` may have changed."""
        ...


class AllDues:
    """What comes and goes by itself: in views on the `own` timeline, and in tables with a TTL."""

    def __init__(self, views: ViewDues, tables: Expiring, own: Callable[[GlobalId], bool]) -> None:
        self._views, self._tables, self._own = views, tables, own

    def dues(self) -> list[int]:
        """When something is due next, for each view and table in which there is such a time."""
        views = [due for id, due in self._views.dues().items() if self._own(id)]
        return [*views, *self._tables.dues()]

    @property
    def changes(self) -> int:
        """A number that grows whenever `dues` may have changed."""
        return self._views.changes + self._tables.version


class Pacemaker:
    """One thread that moves a timeline.

    `watched` tells whether someone waits for changes as they happen; `ask` lets sources become complete up to the
    present, for what they feed does not follow the timeline; `each_second` is what else is to be done so often.
    """

    def __init__(
        self,
        environment: Environment,
        timeline: Timeline,
        dues: Dues,
        *,
        watched: Callable[[], bool],
        ask: Callable[[], None],
        each_second: Callable[[], None],
    ) -> None:
        self._environment, self._timeline, self._dues = environment, timeline, dues
        self._watched, self._ask, self._each_second = watched, ask, each_second
        self._looking = False
        self._asked_for: int | None = None
        self._moved_at = self._second_at = time.monotonic()
        backoff = Backoff(SECOND_S, SECOND_S)
        self._loop = Loop(
            "everview-timeline", self._step, backoff=backoff, on_failure=_tell_defect, on_stop=environment.wake
        )

    def start(self) -> None:
        """Begin to move the timeline."""
        self._loop.start()

    def look(self) -> None:
        """The wall clock has been moved, or someone begins to watch: look at it now."""
        self._looking = True
        self._environment.wake()

    def close(self) -> None:
        """Leave the timeline alone."""
        self._loop.stop(CLOSE_S)

    def _step(self) -> float:
        changes, self._looking = self._dues.changes, False
        pause_s = self._beat()
        self._environment.wait(lambda: self._called(changes), pause_s)
        return 0.0

    def _called(self, seen: int) -> bool:
        return self._loop.stopping or self._looking or self._dues.changes != seen

    def _beat(self) -> float:
        """Do what is to be done now; gives for how long nothing is, if nothing changes."""
        now = time.monotonic()
        if now - self._second_at >= SECOND_S:
            self._second_at = now
            self._each_second()
        return min(self._second_at + SECOND_S - now, self._move())

    def _move(self) -> float:
        """Move on to what is due; gives for how long nothing is."""
        dues = self._dues.dues()
        if not dues:
            return SECOND_S
        closed = self._timeline.upper
        if min(dues) < closed and self._asked_for != min(dues):
            self._asked_for = min(dues)  # it was not taken yet: perhaps it waits for a source
            self._ask()
        ahead = min((due for due in dues if due >= closed), default=None)
        if ahead is None:
            return SECOND_S
        early_s = self._moved_at + (WATCHED_PACE_S if self._watched() else SECOND_S) - time.monotonic()
        wait_s = max(early_s, (ahead - self._timeline.now_ms) / 1000)
        if wait_s > 0:
            return wait_s
        self._moved_at = time.monotonic()
        self._timeline.advance(self._timeline.now_ms)
        return 0.0


def _tell_defect(error: Exception, pause_s: float) -> None:
    """Storage that fails may be closed already, or be able to write again later: only other errors are defects."""
    if not isinstance(error, StorageError):
        _log.error("the timeline could not be moved", exc_info=error)
