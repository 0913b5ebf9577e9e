"""Threads for runs that may take long, so that none of them waits for another that has no end.

A few begin at once, for many beside one another are all late. But a run holds its place for a short time only: then it
goes on, and the next begins beside it. So a run waits for a place, never for the end of another, up to a limit of all
threads. Who no longer wants a run that waits takes it out.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Key = TypeVar("Key")


class Places(Generic[Key]):
    """Runs, by keys that are told apart by identity; `at_once` of them hold a place, each for `held_s` at most."""

    def __init__(self, name: str, at_once: int, threads: int, held_s: float) -> None:
        self._at_once, self._threads, self._held_s = at_once, threads, held_s
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._waiting: OrderedDict[int, tuple[Key, Callable[[], None]]] = OrderedDict()
        self._running: dict[int, float] = {}  # since when, on the monotonic clock
        self._numbers = itertools.count()
        self._closed = False

    def submit(self, key: Key, run: Callable[[], None]) -> None:
        """Run this as soon as there is a place."""
        with self._lock:
            self._waiting[id(key)] = key, run
        self.begin()

    def begin(self) -> None:
        """Begin what waits, as far as there are places."""
        with self._lock:
            while self._waiting and not self._closed and self._wait_s() == 0:
                _, (_, run) = self._waiting.popitem(last=False)
                number = next(self._numbers)
                self._running[number] = time.monotonic()
                self._pool.submit(self._run, number, run)

    def next_s(self) -> float | None:
        """After how many seconds to call `begin`; None if nothing waits, or if only the end of a run gives a place."""
        with self._lock:
            return self._wait_s() if self._waiting else None

    def withdraw(self, key: Key) -> bool:
        """Take out a run that waits; false if it does not."""
        with self._lock:
            return self._waiting.pop(id(key), None) is not None

    def close(self) -> list[Key]:
        """Begin nothing more; gives what waited. What runs goes on."""
        with self._lock:
            self._closed = True
            left = [key for key, _ in self._waiting.values()]
            self._waiting.clear()
        self._pool.shutdown(wait=False)
        return left

    def _wait_s(self) -> float | None:
        """How long until there is a place; None if no time gives one."""
        if len(self._running) >= self._threads:
            return None
        if len(self._running) < self._at_once:
            return 0
        latest = sorted(self._running.values())[-self._at_once]  # the first of those that may hold a place
        return max(0.0, latest + self._held_s - time.monotonic())

    def _run(self, number: int, run: Callable[[], None]) -> None:
        try:
            run()
        finally:
            with self._lock:
                del self._running[number]
            self.begin()
