"""How far a server's log goes, for whoever wants to read all that is committed there now.

One question answers everybody who asked before it was put. The connection for it is opened with the first question and
closed when nobody has asked for a while.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from everview.errors import EverviewError
from everview.sources.postgres import connecting
from everview.sources.postgres.errors import UpstreamFailed

if TYPE_CHECKING:
    import psycopg

UNUSED_S_MAX = 30.0
# A commit that others see is flushed, unless its session set synchronous_commit = off.
_HEAD = """
    SELECT (h.lsn - '0/0')::int8 FROM (
        SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END
    ) AS h(lsn)
"""


class Heads:
    """Asks one server, on a thread of its own, which ends by itself."""

    def __init__(self, way: Callable[[], str], name: str, answered: Callable[[], None]) -> None:
        """`answered` hears of each answer."""
        self._way, self._name, self._tell = way, name, answered
        self._changed = threading.Condition()
        self._asked = self._answered = 0
        self._answer: int | EverviewError = 0
        self._running = self._closed = False

    def ask(self) -> int:
        """Put a question; gives its number."""
        with self._changed:
            self._asked += 1
            if not self._running and not self._closed:
                self._running = True
                threading.Thread(target=self._run, name="everview-heads", daemon=True).start()
            self._changed.notify_all()
            return self._asked

    def answer(self, number: int) -> int | None:
        """The position to a question, or to a later one; None if there is none yet. Raises if asking failed."""
        with self._changed:
            if self._answered < number:
                return None
            if isinstance(self._answer, EverviewError):
                raise self._answer
            return self._answer

    def close(self) -> None:
        """Ask no more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._tell()

    def _run(self) -> None:
        db: psycopg.Connection[Any] | None = None
        while (number := self._next()) is not None:
            answer, db = self._put(db)
            with self._changed:
                self._answered, self._answer = number, answer
            self._tell()
        _end(db)

    def _next(self) -> int | None:
        """Wait for a question; None if the thread is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._asked > self._answered, UNUSED_S_MAX)
            if not self._closed and self._asked > self._answered:
                return self._asked
            self._running = False
            return None

    def _put(self, db: psycopg.Connection[Any] | None) -> tuple[int | EverviewError, psycopg.Connection[Any] | None]:
        if db is not None:
            with contextlib.suppress(EverviewError), connecting.failures("PostgreSQL failed"):
                return int(connecting.value(db, _HEAD)), db
            _end(db)  # it may have broken off since the last question
        try:
            db = connecting.connect(self._way(), self._name)
            with connecting.failures("PostgreSQL failed"):
                return int(connecting.value(db, _HEAD)), db
        except EverviewError as error:
            return error, db
        except Exception as error:
            return UpstreamFailed("PostgreSQL cannot be asked how far its log goes", detail=str(error)), db


def _end(db: psycopg.Connection[Any] | None) -> None:
    if db is not None:
        with contextlib.suppress(Exception):
            db.close()
