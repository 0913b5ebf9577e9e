"""The lease: how long this process may answer reads without asking whether the environment is still its own.

Whoever takes a new epoch fences the process that had the environment before: it can commit nothing from then on. But
reads commit nothing. So a process answers only while its last look at the epoch, or its last commit, is no older than
the lease; else it looks again first. Who takes the epoch waits, unless the former owner is known to have ended, until a
look that came just before is too old as well, and only then writes anything. So no read misses an acknowledged write,
whatever the owner slept through. This costs a look at a clock for each read and one small read of consensus a second;
both sides measure by uptime, so wall clocks do not matter.
"""

from __future__ import annotations

import secrets
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from everview.storage.errors import Fenced
from everview.storage.process_identity import has_ended, is_this_process, process_text, this_process, uptime_ms

LEASE_MS = 3_000
_RENEWED_AFTER = 3  # a third of the lease
_PATIENCE = 1.1  # clocks of two machines may go at different paces

_log = structlog.get_logger()


class Lease:
    """The lease of one process on one environment. `look` raises `Fenced` if the epoch is another's."""

    def __init__(
        self, look: Callable[[], None], token: str, lease_ms: int = LEASE_MS, now_ms: Callable[[], int] = uptime_ms
    ) -> None:
        self._look, self._now_ms, self._lease_ms = look, now_ms, lease_ms
        self._lock = threading.Lock()
        self._until_ms = 0
        self.fenced: Fenced | None = None
        _OPEN[token] = self

    @property
    def now_ms(self) -> int:
        """The time. Read it before a commit or a check of the epoch begins."""
        return self._now_ms()

    @property
    def valid(self) -> bool:
        """Whether reads may be answered without checking the epoch."""
        return self.fenced is None and self._now_ms() < self._until_ms

    def confirm(self) -> None:
        """Raise `Fenced` unless reads may be answered; checks the epoch if needed."""
        if not self.valid:
            self._renew()

    def renew(self) -> None:
        """Check the epoch if the last check was a while ago."""
        if self.fenced is not None or self._until_ms - self._now_ms() < self._lease_ms * (1 - 1 / _RENEWED_AFTER):
            self._renew()

    def extend(self, began_ms: int) -> None:
        """Extend the lease: a commit that began then found the epoch to be ours."""
        self._until_ms = max(self._until_ms, began_ms + self._lease_ms)

    def lapse(self) -> None:
        """End the lease, so that the next read checks the epoch."""
        self._until_ms = 0

    def end(self, fenced: Fenced) -> None:
        """Note that another process has taken over."""
        self.fenced = fenced

    def _renew(self) -> None:
        with self._lock:  # of those who find it too old at once, one looks
            if self.fenced is not None:
                raise self.fenced
            if self._until_ms - self._now_ms() >= self._lease_ms * (1 - 1 / _RENEWED_AFTER):
                return
            began = self._now_ms()
            self._look()
            self.extend(began)


_OPEN: weakref.WeakValueDictionary[str, Lease] = weakref.WeakValueDictionary()  # those of this process, by token


def new_owner(epoch: int) -> dict[str, Any]:
    """The entry by which the owner of an epoch can be recognized."""
    return {"epoch": epoch, **this_process(), "token": secrets.token_hex(8), "lease_ms": LEASE_MS}


def await_former(former: Mapping[str, Any] | None, sleep: Callable[[float], None] | None = None) -> None:
    """Wait until the former owner no longer answers reads without checking the epoch, which is ours by now."""
    if former is None or former.get("closed") or "lease_ms" not in former:  # one without a lease would never look
        return
    here = _OPEN.get(former["token"])
    if here is not None:
        here.lapse()
        return
    if has_ended(former) or is_this_process(former):  # this one has it open no more
        return
    wait_s = former["lease_ms"] * _PATIENCE / 1000
    owner = process_text(former)
    _log.info("waiting for the lease of the former owner", owner=owner, wait_s=wait_s)
    (sleep or time.sleep)(wait_s)
