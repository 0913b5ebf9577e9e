"""A guard for the wall clock: it does not follow jumps, but continues at the pace of the machine's uptime.

The timeline never goes back. A wall clock that is a day ahead for a second would leave it a day ahead for good: rows
would expire early, and history would be lost. Uptime cannot jump. If wall clock and uptime drift apart by more than a
bound, the uptime counts, until the wall clock is back, or has kept its new time for so long that it must be right. A
note in storage has the machine's uptime at some time. From it, a process on a machine that was not rebooted since knows
how long the environment was closed. After a reboot nobody knows; then the wall clock is believed once it has gone
steadily for a short while.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from everview.storage.contract import Put
from everview.storage.environment import Environment, wall_clock_ms
from everview.storage.errors import StorageError
from everview.storage.process_identity import boot_id, uptime_ms

JUMP_MAX_MS = 60_000  # the default of --max-clock-jump
# A jump that lasts so long is a correction: the wall clock was wrong before, or the machine stood still.
BELIEVED_AFTER_MS = 3_600_000
# After a reboot a long stop is far more likely than a wrong clock, and time servers answer within seconds.
BELIEVED_AFTER_REBOOT_MS = 30_000
NOTE = "clock"
NOTE_EVERY_MS = 3_600_000
_SLIDE_EVERY_MS = 1_000
_SLIDE = 100  # small differences are forgotten at a hundredth of the time that passes

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TimeSource:
    """The clocks of a machine."""

    wall_ms: Callable[[], int] = wall_clock_ms
    uptime_ms: Callable[[], int] = uptime_ms
    boot: str = field(default_factory=boot_id)


@dataclass(frozen=True, slots=True)
class ClockStatus:
    """The status of the wall clock. Durations are 0 when all is well."""

    jump_ms: int = 0  # how far the wall clock is from the time that is believed; negative if it is behind
    ahead_ms: int = 0  # how far the timeline is ahead of the time that is believed
    jumps: int = 0  # how often the wall clock was refused
    event: int = 0  # grows with each new trouble
    trouble: str | None = None


class GuardedClock:
    """The time in milliseconds since the epoch. `upper` gives the timeline's upper, or None before it has one."""

    def __init__(
        self,
        environment: Environment,
        upper: Callable[[], int | None],
        source: TimeSource | None = None,
        jump_max_ms: int = JUMP_MAX_MS,
    ) -> None:
        self._environment, self._upper = environment, upper
        self._source = source or TimeSource()
        self._bound_ms = jump_max_ms
        self._lock = threading.Lock()
        self._refused: tuple[int, int] | None = None  # since which uptime, and how far the wall clock was off then
        self._is_ahead = False
        self._jumps = self._event = 0
        self._noted_at: int | None = None
        self._open()

    def __call__(self) -> int:
        with self._lock:
            return self._now()

    @property
    def status(self) -> ClockStatus:
        with self._lock:
            now = self._now()
            jump_ms = self._source.wall_ms() - now if self._refused is not None else 0
            ahead_ms = (self._upper() or 0) - now if self._is_ahead else 0
            return ClockStatus(jump_ms, ahead_ms, self._jumps, self._event, self._trouble(jump_ms, ahead_ms))

    @property
    def event(self) -> int:
        """The number of the present trouble; 0 if all is well."""
        return self._event if self._refused is not None or self._is_ahead else 0

    def keep_note(self, *, now: bool = False) -> None:
        """Write the time and the uptime to storage, once an hour or `now`."""
        with self._lock:
            uptime = self._source.uptime_ms()
            lately = self._noted_at is not None and uptime - self._noted_at < NOTE_EVERY_MS
            if not self._verified or (lately and not now):
                return
            self._noted_at = uptime
            note = {"boot": self._source.boot, "uptime_ms": uptime, "time_ms": self._expected(uptime)}
        with suppress(StorageError):
            self._environment.commit(Put(NOTE, json.dumps(note).encode()))

    # Inside

    def _open(self) -> None:
        """Find out what time it is."""
        wall, uptime, upper = self._source.wall_ms(), self._source.uptime_ms(), self._upper()
        self._opened_at = uptime
        noted = self._noted(uptime)
        self._verified = True  # whether anything but the wall clock confirms the time; else no note is written
        if noted is not None:
            self._base = noted
        elif upper is None or abs(wall - upper) <= self._bound_ms:
            self._base = wall
        else:
            self._verified = False
            self._base = min(wall, upper)
        self._base_at = uptime
        self()

    def _noted(self, uptime: int) -> int | None:
        """The time according to the note, if this machine wrote it and was not rebooted since."""
        try:
            note = json.loads(self._environment.get(NOTE) or b"null")
            if note is None or not note["boot"] or note["boot"] != self._source.boot or note["uptime_ms"] > uptime:
                return None
            return int(note["time_ms"]) + uptime - int(note["uptime_ms"])
        except (StorageError, ValueError, TypeError, KeyError):
            return None  # the wall clock has to do

    def _expected(self, uptime: int) -> int:
        return self._base + uptime - self._base_at

    def _now(self) -> int:
        uptime, wall = self._source.uptime_ms(), self._source.wall_ms()
        expected, upper = self._expected(uptime), self._upper() or 0
        # A wall clock before the upper of the timeline moves nothing.
        if expected - self._bound_ms <= wall <= max(expected, upper) + self._bound_ms:
            if self._refused is not None:
                self._refused = None
                _log.info("the wall clock is right again")
            self._slide(wall - expected, uptime)
            self._verified = self._verified or wall >= upper - self._bound_ms
            now = wall
        else:
            now = self._refuse(wall, expected, uptime)
        ahead = upper - now > self._bound_ms
        if ahead != self._is_ahead:
            self._is_ahead = ahead
            self._event += ahead
            if ahead:
                _log.warning(self._trouble(0, upper - now))
            else:
                _log.info("the wall clock has caught up with the timeline")
        return now

    def _refuse(self, wall: int, expected: int, uptime: int) -> int:
        off = wall - expected
        if self._refused is None or abs(off - self._refused[1]) > self._bound_ms:
            self._refused = uptime, off
            self._jumps += 1
            self._event += 1
            _log.warning(self._trouble(off, 0))
        unknown = not self._verified and uptime - self._opened_at < BELIEVED_AFTER_MS
        if uptime - self._refused[0] < (BELIEVED_AFTER_REBOOT_MS if unknown else BELIEVED_AFTER_MS):
            return expected
        self._refused, self._verified = None, True
        self._base, self._base_at = wall, uptime
        self._noted_at = None
        _log.warning("the wall clock has kept its new time, and is believed", moved_ms=off)
        return wall

    def _slide(self, off: int, uptime: int) -> None:
        """Let the expected time follow the wall clock slowly, so that small steps cannot add up to a jump."""
        passed = uptime - self._base_at
        if abs(off) > self._bound_ms:
            self._base, self._base_at = self._base + passed + off, uptime
        elif passed >= _SLIDE_EVERY_MS:
            most = passed // _SLIDE
            self._base, self._base_at = self._base + passed + min(max(off, -most), most), uptime

    def _trouble(self, jump_ms: int, ahead_ms: int) -> str | None:
        if jump_ms:
            side = "ahead of" if jump_ms > 0 else "behind"
            return (
                f"the wall clock is {shown_ms(abs(jump_ms))} {side} the time that has passed; it is not followed "
                "until it is right again, or has kept its time for long"
            )
        if ahead_ms:
            return (
                f"the timeline is {shown_ms(ahead_ms)} ahead of the wall clock; it goes on by a millisecond for each "
                "write until the wall clock has caught up"
            )
        return None


def shown_ms(milliseconds: int) -> str:
    """A duration in its two largest units."""
    seconds, left = divmod(milliseconds, 1_000)
    if seconds < 60:
        return f"{seconds}.{left:03d} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
