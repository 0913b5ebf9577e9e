"""Cancel keys: a number and a secret for each session, by which another connection may cancel what it runs."""

from __future__ import annotations

import hmac
import itertools
import secrets
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

_SHORT, _LONG = 4, 32


@dataclass(frozen=True, slots=True)
class Key:
    """`process` names the session, `secret` proves that one may."""

    process: int
    secret: bytes = field(repr=False)


class Keys(Generic[T]):
    """The keys of the sessions that there are."""

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
        """Whom a key belongs to."""
        known, holder = self._holders.get(process, (b"", None))
        return holder if hmac.compare_digest(known, secret) else None

    def revoke(self, key: Key) -> None:
        """The session is over."""
        self._holders.pop(key.process, None)
