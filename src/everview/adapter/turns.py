"""Turns: who may write to which tables now, first come first served.

Two kinds of entries wait in one queue. A write brings its rows and is committed along with others. A claim is for who
reads and then writes: while it is held, nobody else writes to the tables that it names. Claims are taken whole, so no
two can wait for each other. What has to do with other tables passes by; what comes later for the same ones does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from everview.adapter.errors import CONFIGURATION_LIMIT
from everview.compute.sql.errors import SqlError
from everview.storage.contract import GlobalId
from everview.storage.group_commit import POLL_S, Interrupt, Queue, Waiting

QUEUE_MAX = 10_000  # who wait for their turn


@dataclass(slots=True, eq=False, kw_only=True)
class Claim(Waiting):
    """Tables that are written, and tables that must not change meanwhile. Its owner sleeps until it is granted."""

    writes: frozenset[GlobalId]
    reads: frozenset[GlobalId] = frozenset()
    granted: bool = False

    def meets(self, other: Claim) -> bool:
        """Whether one of the two has to wait for the other."""
        writes, theirs = self.writes, other.writes
        return not (writes.isdisjoint(theirs) and writes.isdisjoint(other.reads) and self.reads.isdisjoint(theirs))


@dataclass(slots=True, eq=False, kw_only=True)
class Entry(Claim):
    """A write that waits for its turn, to be committed by whoever leads."""

    size: int = 1


class Turns(Queue[Claim, Entry]):
    def __init__(self) -> None:
        super().__init__(
            QUEUE_MAX,
            lambda: SqlError(CONFIGURATION_LIMIT, f"more than {QUEUE_MAX} writes are waiting", hint="try again later"),
        )
        self._held: list[Claim] = []  # claims, and groups of writes that are being committed

    @contextmanager
    def claimed(
        self, writes: Iterable[GlobalId], reads: Iterable[GlobalId] = (), interrupt: Interrupt = lambda: None
    ) -> Iterator[None]:
        """While inside, nobody else writes to these tables."""
        claim = Claim(writes=frozenset(writes), reads=frozenset(reads))
        try:
            with self._lock:
                self._append(claim)
                self._call()
            while not claim.granted:
                if not claim.asleep.acquire(timeout=POLL_S):
                    interrupt()
            yield
        finally:
            self._release(claim)

    @contextmanager
    def group(self, size_max: int) -> Iterator[list[Entry]]:
        """Writes that may be committed together now; nobody else touches their tables while inside."""
        group: list[Entry] = []
        with self._lock:
            size, full = 0, False
            before: list[Claim] = []  # those that wait, whom nobody passes who meets them
            left: deque[Claim | Entry] = deque()
            for each in self._waiting:
                if isinstance(each, Entry) and not full and self._free(each, before):
                    full = bool(group) and size + each.size > size_max
                    if not full:
                        group.append(each)
                        size += each.size
                        continue
                if not isinstance(each, Entry):
                    before.append(each)
                left.append(each)
            self._waiting = left
            claim = Claim(writes=frozenset().union(*(each.writes for each in group)))
            self._held.append(claim)
        try:
            yield group
        finally:
            self._release(claim)

    def _may_lead(self, entry: Entry) -> bool:
        return self._free(entry, [each for each in self._waiting if not isinstance(each, Entry)])

    def _free(self, claim: Claim, before: Iterable[Claim]) -> bool:
        return not any(claim.meets(each) for each in self._held) and not any(claim.meets(each) for each in before)

    def _call(self) -> None:
        """Grant the claims that can be, and let the first write that can be committed lead, if nobody does."""
        before: list[Claim] = []  # claims that wait
        ahead: list[Claim] = []  # all that wait
        for each in list(self._waiting):
            if isinstance(each, Entry):
                if not self._led and self._free(each, before):
                    each.leads = self._led = True
                    each.call()
            elif self._free(each, ahead):
                self._waiting.remove(each)
                self._held.append(each)
                each.granted = True
                each.call()
                continue
            else:
                before.append(each)
            ahead.append(each)

    def _release(self, claim: Claim) -> None:
        """A claim is over, or given up."""
        with self._lock:
            if claim in self._held:
                self._held.remove(claim)
            elif claim in self._waiting:
                self._waiting.remove(claim)
            self._call()
