"""Work that repeats on a thread of its own: when it is due, when somebody asks for it, and again after it failed.

Whatever runs in the background here is a `Loop` around one step: sources, sinks, maintenance of storage, the timeline.
A step that fails is told and tried again after pauses that double, so nothing in the background dies of an error.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

DOUBLINGS_MAX = 20


class Clock:
    """The machine's clock. Tests pass one that they move themselves."""

    def monotonic(self) -> float:
        """Seconds, which only pauses are measured by."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return int(time.time() * 1000)

    def wait(self, condition: threading.Condition, timeout_s: float) -> None:
        """Wait until the condition, which the caller holds, is notified or the time is over."""
        condition.wait(timeout_s)


CLOCK = Clock()


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between attempts: the first one, doubled with each further failure up to the longest one."""

    first_s: float
    longest_s: float

    def pause_s(self, failures: int) -> float:
        """The pause after so many failures in a row."""
        return min(self.longest_s, self.first_s * 2.0 ** min(failures - 1, DOUBLINGS_MAX))


@dataclass(frozen=True, slots=True)
class LoopStatus:
    """A loop at one instant."""

    error: Exception | None = None  # of the last attempt, if it failed
    failures: int = 0  # since the loop was made
    failures_in_a_row: int = 0
    retry_ms: int | None = None  # when a failed step is tried again, in milliseconds since 1970
    ended_by: Exception | None = None  # the error that ended the loop, if one of those did


class Loop:
    """Repeats `step` until it is stopped.

    The step gives the seconds after which it is due again, or None if it is done for good. `wake` makes it due at once,
    but does not cut short the pause after a failure. A step may also go on for as long as the loop does; then it looks
    at `stopping`, waits with `pause`, and says when it has `recovered` or `progressed`.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], float | None],
        *,
        backoff: Backoff,
        ends: tuple[type[Exception], ...] = (),
        on_failure: Callable[[Exception, float], None] = lambda error, pause_s: None,
        on_wake: Callable[[], None] | None = None,
        on_stop: Callable[[], None] = lambda: None,
        clock: Clock = CLOCK,
    ) -> None:
        """The errors in `ends` end the loop; after every other one `on_failure` hears when the step is tried again.

        If `on_wake` is given, it runs instead of the step when the loop is woken before the step is due. `on_stop`
        wakes a step that waits for something else.
        """
        self._name, self._step, self._backoff, self._ends = name, step, backoff, ends
        self._on_failure, self._on_wake, self._on_stop, self._clock = on_failure, on_wake, on_stop, clock
        self._changed = threading.Condition()
        self._woken = self._stopping = False
        self._status = LoopStatus()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether it was started, goes on, and is not about to stop."""
        return self._thread is not None and self._thread.is_alive() and not self._stopping

    def start(self, delay_s: float = 0.0) -> None:
        """Begin, with a first step after the delay."""
        self._thread = threading.Thread(target=self._run, args=(delay_s,), name=self._name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Somebody waits for the step: do it now."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def ask_to_stop(self) -> None:
        """Take no further step; the one that runs is not waited for."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._on_stop()

    def stop(self, timeout_s: float | None = None) -> None:
        """Take no further step, and wait for the one that runs, for so long at most."""
        self.ask_to_stop()
        self.join(timeout_s)

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the loop is over, for so long at most."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    @property
    def stopping(self) -> bool:
        """Whether the loop is to stop: a long step looks at this."""
        return self._stopping

    @property
    def status(self) -> LoopStatus:
        """How the loop is doing."""
        return self._status

    def pause(self, seconds: float) -> None:
        """Sleep within a step; ends early if the loop is to stop."""
        self._sleep_until(self._clock.monotonic() + seconds, lambda: self._stopping)

    def recovered(self) -> None:
        """The step is well: forget its last error."""
        self._status = replace(self._status, error=None, retry_ms=None)

    def progressed(self) -> None:
        """The step got something done: after the next failure the pauses are short again."""
        self._status = replace(self._status, failures_in_a_row=0)

    def attempt(self) -> float | None:
        """Run the step once, on this thread. Gives the seconds until it is due again; None if it is done for good."""
        try:
            pause_s = self._step()
        except Exception as error:
            return self._note_failure(error)
        if pause_s is not None:
            self.recovered()
            self.progressed()
        return pause_s

    def _note_failure(self, error: Exception) -> float | None:
        """Gives the pause before the step is tried again; None if the error ends the loop."""
        if isinstance(error, self._ends):
            self._status = replace(self._status, ended_by=error)
            return None
        in_a_row = self._status.failures_in_a_row + 1
        pause_s = self._backoff.pause_s(in_a_row)
        retry_ms = self._clock.wall_ms() + int(pause_s * 1000)
        self._status = LoopStatus(error, self._status.failures + 1, in_a_row, retry_ms)
        with suppress(Exception):  # a log may be closed, or its disk full
            self._on_failure(error, pause_s)
        return pause_s

    def _run(self, delay_s: float) -> None:
        due = self._clock.monotonic() + delay_s
        while True:
            self._sleep_until(due, lambda: self._stopping or self._woken)
            if self._stopping:
                return
            self._woken = False
            early = self._clock.monotonic() < due
            if early and self._on_wake is not None:
                try:
                    self._on_wake()
                    continue
                except Exception as error:
                    pause_s = self._note_failure(error)
            elif early and self._status.failures_in_a_row:
                continue  # it backs off
            else:
                pause_s = self.attempt()
            if pause_s is None:
                return
            due = self._clock.monotonic() + pause_s

    def _sleep_until(self, due: float, awake: Callable[[], bool]) -> None:
        with self._changed:
            while not awake() and (left_s := due - self._clock.monotonic()) > 0:
                self._clock.wait(self._changed, left_s)
