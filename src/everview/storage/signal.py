"""Wait for a condition; a signal says when to look again.

The condition is evaluated without any lock: it may read collections, which takes the lock of commits, and commits give
the signal while they hold that lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Signal:
    """Counts changes, and wakes those who wait for one."""

    def __init__(self) -> None:
        self._told = threading.Condition()
        self._changes = 0

    def tell(self) -> None:
        """Let all waiters look again."""
        with self._told:
            self._changes += 1
            self._told.notify_all()

    def wait(self, ready: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Block until `ready` holds, looking after each change; False when the time is over."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            seen = self._changes  # before looking: a change while we look makes us look again
            if ready():
                return True
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            with self._told:
                self._told.wait_for(lambda: self._changes != seen, left)  # noqa: B023
