"""Cancels what a session runs: on a client's request, when time is up, when the client is gone.

A cancel that comes late must not hit the statement after: the end of a statement and a cancel exclude each other.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable

from everview.adapter.contract import Session
from everview.server.pgwire.channel import Channel

USER_REQUEST = "canceling statement due to user request"
TIMEOUT = "canceling statement due to statement timeout"
CLIENT_GONE = "canceling statement because the client is gone"
SHUTDOWN = "canceling statement because the server is shutting down"

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*")
_UNITS = {None: 1e-3, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}

# Calls something on some thread after so many seconds.
Later = Callable[[float, Callable[[], None]], None]


def seconds_of(setting: str | None) -> float | None:
    """The seconds of a setting such as `statement_timeout`: a number of milliseconds, or with a unit; 0 is none."""
    match = _DURATION.fullmatch(setting or "")
    return (float(match[1]) * _UNITS[match[2]] or None) if match else None


class Canceler:
    """For one session: `begin` and `finish` are its thread's, `cancel` is anybody's."""

    def __init__(self, session: Session, channel: Channel, later: Later) -> None:
        self._session = session
        self._channel = channel
        self._later = later
        self._lock = threading.Lock()
        self._deadline: float | None = None
        self._armed = False  # at most one timer for each session, however many statements there are

    def begin(self) -> None:
        """Something starts that can be canceled."""
        self._channel.begin()

    def limit(self, seconds: float | None) -> None:
        """A statement starts that may take so long."""
        if seconds is None:
            self._deadline = None
            return
        with self._lock:
            self._deadline = time.monotonic() + seconds
            arm = not self._armed
            self._armed = True
        if arm:
            self._later(seconds, self._time_up)

    def finish(self) -> str | None:
        """It is over; gives why it was canceled, if it was."""
        with self._lock:
            self._deadline = None
            return self._channel.finish()

    def cancel(self, reason: str = USER_REQUEST) -> None:
        """End what runs now, if anything does. It may block for a moment: not for the event loop."""
        with self._lock:
            if self._channel.cancel(reason):
                self._session.cancel()

    def _time_up(self) -> None:
        with self._lock:
            self._armed = False
            left = None if self._deadline is None else self._deadline - time.monotonic()
            if left is not None and left > 0:
                self._armed = True
        if left is None:
            return
        if left > 0:  # a later statement has started since
            self._later(left, self._time_up)
        else:
            self.cancel(TIMEOUT)
