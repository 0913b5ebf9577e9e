"""Threads to run what blocks. A thread that is done waits for more work for a while, so busy sessions start none.

There is at most one job for each connection, so the number of connections bounds the number of threads. They are
daemons: a statement that cannot be stopped must not keep the process from ending.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from everview.server.log import log

_IDLE_S_MAX = 30.0


class Workers:
    """Runs jobs, each on a thread of its own while it lasts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._closed = False

    def run(self, job: Callable[[], None]) -> None:
        with self._lock:
            start = self._idle == 0
            if not start:
                self._idle -= 1  # one of those that wait is as good as taken
        if start:
            threading.Thread(target=self._work, args=(job,), name=self._name, daemon=True).start()
        else:
            self._jobs.put(job)

    def close(self) -> None:
        """Let waiting threads go. Threads that work end with their jobs."""
        with self._lock:
            self._closed = True
            idle = self._idle
            self._idle = 0
        for _ in range(idle):
            self._jobs.put(None)

    def _work(self, job: Callable[[], None] | None) -> None:
        while job is not None:
            try:
                job()
            except Exception:
                log.exception("a job of the server failed")
            job = self._next()

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            if self._closed:
                return None
            self._idle += 1
        try:
            return self._jobs.get(timeout=_IDLE_S_MAX)
        except queue.Empty:
            pass
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
                return None
        # A job was promised to one of those that wait, and the others that waited have left: it is on its way.
        return self._jobs.get()
