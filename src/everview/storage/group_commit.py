"""Group commit: whoever waits for a durable write shares it with all who wait, and one of them makes it for all.

Whoever comes while nobody leads, leads: it commits for a group, and then the first of those who still wait leads. The
others sleep until they are committed. Were each to take a lock in turn, only to find that it is done, the next writers
would have to pass them, and would commit in small groups.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

POLL_S = 0.05  # how often a writer who can be interrupted looks whether it still wants to wait

Interrupt = Callable[[], None]


def _taken_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(slots=True, eq=False)
class Waiting:
    """Somebody who waits. Its owner sleeps until it is called: when it is committed, or has to lead."""

    done: bool = False
    leads: bool = False
    asleep: threading.Lock = field(default_factory=_taken_lock)

    def call(self) -> None:
        """Wake the owner."""
        if self.asleep.locked():
            self.asleep.release()


W = TypeVar("W", bound=Waiting)
M = TypeVar("M", bound=Waiting)


class Queue(Generic[W, M]):
    """Waiting entries, `W`, first come first served; the entries that are committed in groups are `M`."""

    def __init__(self, length_max: int, full: Callable[[], Exception]) -> None:
        """`full` makes the error for whoever comes when so many wait."""
        self._length_max, self._full = length_max, full
        self._lock = threading.Lock()
        self._waiting: deque[W | M] = deque()
        self._led = False  # whether somebody leads, or is about to

    def __len__(self) -> int:
        return len(self._waiting)

    def commit(
        self, entry: M, size_max: int, commit_group: Callable[[list[M]], None], interrupt: Interrupt | None = None
    ) -> None:
        """Return when the entry is committed, by this thread for a group of at most so much, or by another.

        `commit_group` notes in each entry what became of it. `interrupt` raises when the caller no longer wants to
        wait; an entry that somebody has begun to commit goes on regardless.
        """
        self.enter(entry)
        try:
            self._wait(entry, interrupt)
            while not entry.done:
                with self.group(size_max) as group:
                    try:
                        commit_group(group)
                    finally:
                        for each in group:
                            each.done = True
                            each.call()
        finally:
            self.leave(entry)

    def enter(self, entry: M) -> None:
        """The entry waits from now on; it leads at once if nobody does and it may."""
        with self._lock:
            self._append(entry)
            if not self._led and self._may_lead(entry):
                entry.leads = self._led = True

    @contextmanager
    def group(self, size_max: int) -> Iterator[list[M]]:
        """Entries to be committed together now."""
        with self._lock:
            group = [self._waiting.popleft() for _ in range(min(size_max, len(self._waiting)))]
        yield group  # type: ignore[misc]  # W is M, unless a subclass says otherwise

    def _may_lead(self, entry: M) -> bool:
        """Whether an entry could be committed now. With the lock."""
        return True

    def _call(self) -> None:
        """Let somebody lead, if anybody can be committed. With the lock."""
        if self._waiting and not self._led:
            self._waiting[0].leads = self._led = True
            self._waiting[0].call()

    def _append(self, entry: W | M) -> None:
        """With the lock."""
        if len(self._waiting) >= self._length_max:
            raise self._full()
        self._waiting.append(entry)

    def _wait(self, entry: M, interrupt: Interrupt | None) -> None:
        while not (entry.done or entry.leads):
            if not entry.asleep.acquire(timeout=-1 if interrupt is None else POLL_S):
                assert interrupt is not None
                try:
                    interrupt()
                except BaseException:
                    if self._withdraw(entry):
                        raise  # else it is being committed

    def _withdraw(self, entry: M) -> bool:
        """Wait no longer; false if somebody has begun to commit the entry."""
        with self._lock:
            if entry not in self._waiting:
                return False
            self._waiting.remove(entry)  # whoever leaves must not be called to lead
            self._call()
            return True

    def leave(self, entry: M) -> None:
        """The owner is done with its entry, or gives it up; if it led, the next one does."""
        if not entry.done:
            self._withdraw(entry)
        if entry.leads:
            with self._lock:
                self._led = False
                self._call()
