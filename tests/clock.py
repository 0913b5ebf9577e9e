"""A clock that only the test moves, for what waits with `everview.background`."""

from __future__ import annotations

import threading

from everview.background import Clock
from tests.waiting import eventually


class ManualClock(Clock):
    """Stands still until `advance`. Pauses end when the clock has passed them."""

    def __init__(self, now_s: float = 1_000.0) -> None:
        self.now_s = now_s
        self._lock = threading.Lock()
        self._sleeping: list[tuple[float, threading.Condition]] = []

    def monotonic(self) -> float:
        return self.now_s

    def wall_ms(self) -> int:
        return int(self.now_s * 1000)

    def wait(self, condition: threading.Condition, timeout_s: float) -> None:
        entry = (timeout_s, condition)
        with self._lock:
            self._sleeping.append(entry)
        condition.wait()
        with self._lock:
            if entry in self._sleeping:
                self._sleeping.remove(entry)

    def pauses(self) -> list[float]:
        """For how long those sleep that sleep now, as they said when they began to."""
        with self._lock:
            return [timeout_s for timeout_s, _ in self._sleeping]

    def await_pause(self) -> float:
        """Wait until exactly one thread sleeps; gives for how long it wants to."""
        eventually(lambda: len(self.pauses()) == 1)
        return self.pauses()[0]

    def advance(self, seconds: float) -> None:
        """Move the clock, and let everyone who sleeps look at it."""
        self.now_s += seconds
        with self._lock:
            woken, self._sleeping = self._sleeping, []
        for _, condition in woken:
            with condition:
                condition.notify_all()
