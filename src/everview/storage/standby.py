"""Standing by: a process waits until the owner of a shared environment is gone, and then opens it.

The owner rewrites one entry every second. Who stands by looks at that entry and at the owner's. It takes over once the
owner has closed the environment or has ended, once neither entry has changed for some seconds, or when somebody asks
(`promote`). It may be wrong about an owner that is only slow, and nothing is lost then: whoever takes the epoch fences
the owner off, which can commit nothing any more and stops answering reads. Of several that stand by, one succeeds.

A process that does not stand by opens the environment only if its owner is gone in this sense (`wait_until_free`).
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from everview.storage.codec import BEAT, EPOCH, PROMOTE, decoding
from everview.storage.consensus.contract import Consensus, entry_at
from everview.storage.errors import Determinate, InUse, InvalidUsage, StorageError
from everview.storage.opening import check_format
from everview.storage.process_identity import has_ended, is_running, process_text, uptime_ms
from everview.storage.sealed import SealedConsensus

TAKE_OVER_AFTER_MS = 6_000  # without a sign of life; a few commits may be slow
POLL_S = 0.5
PROMOTE_S_MAX = 30.0
FREE_S_MAX = 60.0  # to find out whether an owner lives, from a store that answers slowly


@dataclass(frozen=True, slots=True)
class Turn:
    """It is this process's turn: the version of the entry to take the environment from, and why."""

    taken_from: int
    reason: str


class Standby:
    """Looks after the owner of the environment in a Consensus."""

    def __init__(
        self,
        consensus: Consensus,
        *,
        take_over_after_ms: int = TAKE_OVER_AFTER_MS,
        now_ms: Callable[[], int] = uptime_ms,
    ) -> None:
        self._consensus = SealedConsensus(consensus)
        self._take_over_after_ms, self._now_ms = take_over_after_ms, now_ms
        self._seen: tuple[int | None, int | None] | None = None  # the versions of the owner's entry and of its beat
        self._changed_ms = 0
        asked = entry_at(self._consensus, PROMOTE)
        self._promoted = None if asked is None else asked.version
        self.owner: str | None = None  # who it is, for people
        # Whether the owner lives, as the last look tells: None as long as that shows only by looking again, and False
        # if it never shows.
        self.alive: bool | None = None
        self.version = 0  # of the owner's entry

    def look(self) -> Turn | None:
        """Look once. None as long as the owner lives, as far as can be told."""
        before_ms, self.alive = self._now_ms(), None
        check_format(self._consensus)
        found = self._consensus.get([EPOCH, BEAT, PROMOTE])
        if self._now_ms() - before_ms > self._take_over_after_ms / 2:
            self._seen = None  # the store is slow, and so may the owner's signs of life be
        entry = found.get(EPOCH)
        if entry is None:
            return Turn(0, "nobody has opened the environment before")
        self.version = entry.version
        with decoding("the environment"):
            owner: dict[str, Any] = json.loads(entry.value)
        self.owner = process_text(owner)
        if (found[PROMOTE].version if PROMOTE in found else None) != self._promoted:
            return Turn(entry.version, "it was asked to")
        if owner.get("closed"):
            return Turn(entry.version, f"{self.owner} has closed the environment")
        if has_ended(owner):
            return Turn(entry.version, f"{self.owner} has ended")
        seen = (entry.version, found[BEAT].version if BEAT in found else None)
        if not owner.get("beats"):
            self.alive = is_running(owner)
        elif self._seen not in (None, seen):
            self.alive = True
        if seen != self._seen or not owner.get("beats"):
            self._seen, self._changed_ms = seen, self._now_ms()
            return None
        silent_ms = self._now_ms() - self._changed_ms
        if silent_ms < self._take_over_after_ms:
            return None
        return Turn(entry.version, f"{self.owner} has shown no sign of life for {silent_ms / 1000:.1f} s")

    def forget(self) -> None:
        """Count the owner's silence anew: the store could not be asked meanwhile."""
        self._seen = None


def wait_for_turn(
    standby: Standby, stop: threading.Event, tell: Callable[[str], None], poll_s: float = POLL_S
) -> Turn | None:
    """Wait until it is this process's turn; None if `stop` was set first. `tell` hears of changes, in a line."""
    told: str | None = None
    while not stop.is_set():
        turn = None
        try:
            turn = standby.look()
            line = f"standing by for {standby.owner}"
        except InvalidUsage:
            raise
        except StorageError as error:
            standby.forget()
            line = f"cannot look after the owner: {error}"
        if turn is not None:
            return turn
        if line != told:
            tell(line)
            told = line
        stop.wait(poll_s)
    return None


def wait_until_free(
    standby: Standby, *, sleep: Callable[[float], None] = time.sleep, now_s: Callable[[], float] = time.monotonic
) -> int:
    """The version of the entry to take the environment from, once its owner is known to be gone; `InUse` if it lives.

    An owner of which that cannot be known, on another machine and without signs of life, is taken to be gone.
    """
    until = now_s() + FREE_S_MAX
    while now_s() < until:
        turn = standby.look()
        if turn is not None:
            return turn.taken_from
        if standby.alive is False:
            return standby.version
        if standby.alive:
            raise InUse(
                f"{standby.owner} has the environment open",
                hint="connect to it, or stop it; everview serve --standby waits until it is gone, and --take-over "
                "fences it off at once (take_over=True in Python)",
            )
        sleep(POLL_S)
    raise Determinate(
        f"within {FREE_S_MAX:.0f} s it was not found out whether {standby.owner} still has the environment open",
        hint="see whether the store of the metadata answers in time; --take-over opens the environment without asking",
    )


def promote(
    consensus: Consensus,
    *,
    wait_s: float = PROMOTE_S_MAX,
    sleep: Callable[[float], None] = time.sleep,
    now_s: Callable[[], float] = time.monotonic,
) -> str:
    """Let a process that stands by take over now. Gives who it is; `Determinate` if none does within the time."""
    consensus = SealedConsensus(consensus)
    check_format(consensus)
    before = entry_at(consensus, EPOCH)
    if before is None:
        raise InvalidUsage("there is no environment here", hint="name its stores with --consensus and --blob")
    # The version must be nobody's else: the owner counts up from the first of its epoch.
    version = before.version + (1 << 31) + secrets.randbelow(1 << 31)
    consensus.commit({}, {PROMOTE: b"%d" % version}, version)
    until = now_s() + wait_s
    while now_s() < until:
        entry = entry_at(consensus, EPOCH)
        if entry is not None and entry.version >> 32 != before.version >> 32:
            return process_text(json.loads(entry.value))
        sleep(POLL_S)
    raise Determinate(
        f"no process has taken over within {wait_s:.0f} s",
        hint="start one with: everview serve --standby, and the same --consensus and --blob",
    )
