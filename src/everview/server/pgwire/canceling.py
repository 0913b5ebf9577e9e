"""Cancels what a session runs: on a client's request, or when the client is gone.

A client asks on another connection, by a key: a number and a secret for each session. A cancel that comes late must not
hit the statement after: the end of a statement and a cancel exclude each other. What takes longer than
`statement_timeout`, the session ends by itself.
"""

from __future__ import annotations

import hmac
import itertools
import secrets
import threading
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from everview.adapter.contract import Session
from everview.server.pgwire.channel import Channel

USER_REQUEST = "canceling statement due to user request"
CLIENT_GONE = "canceling statement because the client is gone"
SHUTDOWN = "canceling statement because the server is shutting down"

T = TypeVar("T")

_SHORT, _LONG = 4, 32  # bytes of a secret


class Canceler:
    """For one session: `begin` and `finish` are its thread's, `cancel` is anybody's."""

    def __init__(self, session: Session, channel: Channel) -> None:
        self._session = session
        self._channel = channel
        self._lock = threading.Lock()

    def begin(self) -> None:
        self._channel.begin()

    def finish(self) -> str | None:
        with self._lock:
            return self._channel.finish()

    def cancel(self, reason: str = USER_REQUEST) -> None:
        """End what runs now, if anything does. It may block for a moment: not for the event loop."""
        with self._lock:
            if self._channel.cancel(reason):
                self._session.cancel()


@dataclass(frozen=True, slots=True)
class Key:
    """`process` names the session, `secret` proves that one may."""

    process: int
    secret: bytes = field(repr=False)


class Keys(Generic[T]):
    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._holders: dict[int, tuple[bytes, T]] = {}

    def issue(self, holder: T, *, long: bool) -> Key:
        """A new key; clients of protocol 3.0 can hold a short secret only."""
        process = next(self._numbers) & 0x7FFFFFFF
        while process in self._holders or process == 0:
            process = next(self._numbers) & 0x7FFFFFFF
        secret = secrets.token_bytes(_LONG if long else _SHORT)
        self._holders[process] = (secret, holder)
        return Key(process, secret)

    def find(self, process: int, secret: bytes) -> T | None:
        known, holder = self._holders.get(process, (b"", None))
        return holder if hmac.compare_digest(known, secret) else None

    def revoke(self, key: Key) -> None:
        self._holders.pop(key.process, None)
