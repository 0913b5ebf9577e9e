"""Interrupts of a waiting statement: by cancel from another thread, by timeout, or because the session closes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from everview.adapter.errors import ADMIN_SHUTDOWN, LOCK_NOT_AVAILABLE, canceled
from everview.compute.sql.errors import SqlError
from everview.errors import EverviewError
from everview.storage.environment import Environment

CANCEL_AGAIN_S = 0.2
POLL_S = 0.5  # a backstop: every change wakes those who wait for it


class Interrupts:
    """Interrupts of the statement that a session runs."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._canceled = False
        self._running = False
        self._closed: SqlError | None = None
        self._deadline: float | None = None
        self._turn_ms = 0
        self._number = 0

    def begin(self, timeout_ms: int, turn_ms: int = 0) -> int:
        """Begin a statement with a time limit and a limit on waiting for its turn; 0 is no limit. Gives its number."""
        with self._lock:
            self._turn_ms = turn_ms
            self._canceled, self._running = False, True
            self._deadline = time.monotonic() + timeout_ms / 1000 if timeout_ms else None
            self._number += 1
            return self._number

    def resume(self) -> int:
        """Go on with the last statement, within its time limit."""
        with self._lock:
            self._canceled, self._running = False, True
            return self._number

    def end(self, number: int) -> None:
        """End a statement. If another one has begun meanwhile, that one continues."""
        with self._lock:
            if number == self._number:
                self._running = False

    def cancel(self) -> None:
        with self._lock:
            self._canceled = self._running
        self._environment.wake()

    def close(self, reason: SqlError | None = None) -> None:
        """Interrupt all statements, now and later."""
        with self._lock:
            self._closed = reason or SqlError(ADMIN_SHUTDOWN, "terminating connection due to administrator command")
        self._environment.wake()

    @property
    def due(self) -> bool:
        return self._canceled or self._closed is not None or self._late

    @property
    def _late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def check(self) -> None:
        if self._closed is not None:
            raise self._closed
        if self._canceled:
            raise canceled()
        if self._late:
            raise canceled("statement timeout")

    def turn(self) -> Callable[[], None]:
        """A function that raises if the statement is interrupted, or waits too long for its turn to write."""
        late = time.monotonic() + self._turn_ms / 1000 if self._turn_ms else None

        def check() -> None:
            self.check()
            if late is not None and time.monotonic() >= late:
                raise SqlError(LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")

        return check

    @contextmanager
    def watching(self, cancel: Callable[[], None]) -> Iterator[None]:
        """Within the block, an interrupt calls `cancel` again and again until the block ends; then it raises."""
        over = threading.Event()

        def watch() -> None:
            while not over.is_set():
                left = POLL_S if self._deadline is None else min(POLL_S, self._deadline - time.monotonic())
                self._environment.wait(lambda: self.due or over.is_set(), max(left, 0))
                if self.due and not over.is_set():
                    cancel()
                    over.wait(CANCEL_AGAIN_S)

        watcher = threading.Thread(target=watch, name="everview-cancel", daemon=True)
        watcher.start()
        try:
            yield
        except EverviewError:
            self.check()  # it failed because it was interrupted
            raise
        finally:
            over.set()
            self._environment.wake()
            watcher.join()

    def wait(self, ready: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Block until `ready` holds; raise if the statement is interrupted first; False when the time is over."""
        self.check()
        if ready():  # also loads what it looks at into memory: while waiting, storage must not be read
            return True
        over = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            self.check()
            left = POLL_S if over is None else min(POLL_S, over - time.monotonic())
            if self._deadline is not None:
                left = min(left, self._deadline - time.monotonic())
            if self._environment.wait(lambda: self.due or ready(), max(left, 0)) and not self.due:
                return True
            if over is not None and time.monotonic() >= over:
                self.check()
                return ready()
