"""Slows down who guesses passwords.

Each address has a few wrong passwords for a role free, and some more over all roles. After that its attempts take
turns, and the time between two turns grows with each wrong one, up to a bound. An attempt waits before its password is
looked at, so a right one tells nothing sooner, and many attempts at once gain nothing. A right password, or some
minutes without a wrong one, end it. Tables are bounded: who failed longest ago is forgotten first.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from everview.adapter.errors import INVALID_AUTHORIZATION
from everview.server.errors import ConnectionEnd

ENTRIES_MAX = 10_000
FORGET_S = 600.0
WAIT_S_MAX = 15.0
_FIRST_S = 0.25
_IPV6_PREFIX = 64  # one client usually has all addresses of such a network

Pair: TypeAlias = tuple[str, str]  # an address and a role; of an address alone, the role is empty


@dataclass(slots=True)
class _Entry:
    failures: int = 0
    failed_at: float = 0.0
    next_at: float = 0.0  # when the next attempt has its turn


class _Table:
    """Failures by address and role."""

    def __init__(self, free: int, between_s_max: float, entries_max: int) -> None:
        self._free, self._between_s_max, self._entries_max = free, between_s_max, entries_max
        self._entries: OrderedDict[Pair, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def turn(self, pair: Pair, now: float) -> float:
        """When the next attempt would have its turn."""
        entry = self._entries.get(pair)
        if entry is None:
            return now
        if now - entry.failed_at > FORGET_S:
            del self._entries[pair]
            return now
        return max(now, entry.next_at)

    def take(self, pair: Pair, at: float) -> None:
        """An attempt has its turn at a time; the next one comes after it."""
        entry = self._entries.get(pair)
        if entry is not None:
            entry.next_at = max(entry.next_at, at + self._between_s(entry))

    def failed(self, pair: Pair, now: float) -> None:
        entry = self._entries.setdefault(pair, _Entry())
        entry.failures += 1
        entry.failed_at = now
        entry.next_at = max(entry.next_at, now + self._between_s(entry))
        self._entries.move_to_end(pair)
        while len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)

    def forget(self, pair: Pair) -> None:
        self._entries.pop(pair, None)

    def _between_s(self, entry: _Entry) -> float:
        beyond = min(entry.failures - self._free, 20)
        return 0.0 if beyond < 0 else min(_FIRST_S * 2.0**beyond, self._between_s_max)


class Throttle:
    """Who has guessed wrong, and how long the next guess has to wait. For one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, entries_max: int = ENTRIES_MAX) -> None:
        self._clock = clock
        self._entries_max = entries_max
        self._pairs = _Table(free=4, between_s_max=10.0, entries_max=entries_max)
        self._addresses = _Table(free=30, between_s_max=1.0, entries_max=entries_max)
        # Who came in before does not wait for others at the same address.
        self._welcome: OrderedDict[Pair, None] = OrderedDict()

    def wait_s(self, address: str, role: str) -> float:
        """How long to wait before a password is looked at. ConnectionEnd if too many wait already."""
        now, pair, whole = self._clock(), (address, role), (address, "")
        at = self._pairs.turn(pair, now)
        known = pair in self._welcome
        if not known:
            at = max(at, self._addresses.turn(whole, now))
        if at - now > WAIT_S_MAX:
            raise ConnectionEnd(
                INVALID_AUTHORIZATION,
                f'too many wrong passwords for user "{role}"',
                hint=f"try again in {at - now:.0f} seconds",
            )
        self._pairs.take(pair, at)
        if not known:
            self._addresses.take(whole, at)
        return at - now

    def failed(self, address: str, role: str) -> None:
        now = self._clock()
        self._pairs.failed((address, role), now)
        self._addresses.failed((address, ""), now)

    def succeeded(self, address: str, role: str) -> None:
        self._pairs.forget((address, role))
        self._welcome[address, role] = None
        self._welcome.move_to_end((address, role))
        while len(self._welcome) > self._entries_max:
            self._welcome.popitem(last=False)

    @property
    def entries(self) -> int:
        return len(self._pairs) + len(self._addresses) + len(self._welcome)


def guesser(host: str, account: int | None) -> str:
    """Whom guesses are counted for: an account of this machine where it is known, else an address."""
    if account is not None:
        return f"account {account}"
    try:
        parsed = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return "this machine"
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
    return str(parsed)
