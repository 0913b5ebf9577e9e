"""Moves the timeline while nobody writes: whenever a row is due, and once a second for those who watch.

Rows of views with temporal filters appear and disappear at times of their own. The next such time is known, so the
pacemaker sleeps until then, or until a tick changes it, and otherwise wakes once a second. While someone watches, a
change appears at its millisecond. While nobody does, the changes of a second share a tick; a reader moves the timeline
itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from everview.adapter.expiry import Expiring
from everview.adapter.timeline import Timeline
from everview.background import Backoff, Loop
from everview.compute.contract import Maintenance
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import StorageError

SECOND_S = 1.0  # how often the timeline moves for those who watch it while nobody writes
WATCHED_PACE_S = 0.005  # changes that are due closer together than this share a tick
CLOSE_S = 5.0

_log = structlog.get_logger()


class Dues:
    """The due times of views on the `own` timeline, and of tables with a TTL."""

    def __init__(self, views: Maintenance, tables: Expiring, own: Callable[[GlobalId], bool]) -> None:
        self._views, self._tables, self._own = views, tables, own

    def dues(self) -> list[int]:
        """The next due time of each view and table that has one."""
        views = [due for id, due in self._views.dues().items() if self._own(id)]
        return [*views, *self._tables.dues()]

    @property
    def changes(self) -> int:
        """A number that grows whenever `dues` may have changed."""
        return self._views.changes + self._tables.version


class Pacemaker:
    """One thread that moves a timeline.

    `watched` tells whether someone waits for changes as they happen. `ask` lets sources become complete up to the
    present, because they do not follow the timeline. `each_second` is other work to do once a second.
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
        self._loop.start()

    def look(self) -> None:
        """Wake up: the wall clock has been moved, or someone begins to watch."""
        self._looking = True
        self._environment.wake()

    def close(self) -> None:
        self._loop.stop(CLOSE_S)

    def _step(self) -> float:
        changes, self._looking = self._dues.changes, False
        pause_s = self._beat()
        self._environment.wait(lambda: self._loop.stopping or self._looking or self._dues.changes != changes, pause_s)
        return 0.0

    def _beat(self) -> float:
        """Do what is due now; gives the time until something is due again."""
        now = time.monotonic()
        if now - self._second_at >= SECOND_S:
            self._second_at = now
            self._each_second()
        return min(self._second_at + SECOND_S - now, self._move())

    def _move(self) -> float:
        """Move the timeline to what is due; gives the time until something is due again."""
        dues = self._dues.dues()
        if not dues:
            return SECOND_S
        closed = self._timeline.upper
        if min(dues) < closed and self._asked_for != min(dues):
            self._asked_for = min(dues)  # no tick has handled it yet: perhaps it waits for a source
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
    """Log defects. A failure of storage is not one: it may be closed, or recover."""
    if not isinstance(error, StorageError):
        _log.error("the timeline could not be moved", exc_info=error)
