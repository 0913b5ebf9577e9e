"""Ending a run from another thread: who runs something lets it be asked for, and engines that can end theirs see to it.

Runs go through several hands, and few of them care. So the wish is not handed down: it is in force while something is
run, by `cancelable`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Cancellation:
    """Whether what runs is to end, and how to end it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: list[Callable[[], None]] = []
        self.asked = False

    def ask(self) -> None:
        """End what runs now and what would run later; may be repeated, for a run may only be about to begin."""
        with self._lock:
            self.asked = True
            ends = list(self._ends)
        for end in ends:
            end()

    @contextmanager
    def running(self, end: Callable[[], None]) -> Iterator[None]:
        """While inside, `end` ends what is run."""
        with self._lock:
            self._ends.append(end)
        try:
            yield
        finally:
            with self._lock:
                self._ends.remove(end)


_in_force: ContextVar[Cancellation | None] = ContextVar("everview_cancellation", default=None)


def cancellation() -> Cancellation | None:
    """The one in force."""
    return _in_force.get()


@contextmanager
def cancelable(by: Cancellation) -> Iterator[None]:
    """While inside, what this thread runs can be ended by this."""
    token = _in_force.set(by)
    try:
        yield
    finally:
        _in_force.reset(token)
