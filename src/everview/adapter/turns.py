"""Turns: who may write to which tables now, first come first served.

Two kinds of entries wait in one queue. A write brings its rows and is committed along with others. A claim is for who
reads and then writes: while it is held, nobody else writes to the tables that it names. Claims are taken whole, so no
two can wait for each other. What has to do with other tables passes by; what comes later for the same ones does not.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from everview.adapter.errors import CONFIGURATION_LIMIT
from everview.compute.sql.errors import SqlError
from everview.storage.contract import GlobalId

QUEUE_MAX = 10_000  # who wait for their turn
POLL_S = 0.05  # how often one who waits looks whether it still wants to

Interrupt = Callable[[], None]


@dataclass(slots=True, eq=False)
class Claim:
    """Tables that are written, and tables that must not change meanwhile. Its owner sleeps until it is called."""

    writes: frozenset[GlobalId]
    reads: frozenset[GlobalId] = frozenset()
    granted: bool = False
    asleep: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.asleep.acquire()

    def call(self) -> None:
        """Wake the owner."""
        if self.asleep.locked():
            self.asleep.release()

    def meets(self, other: Claim) -> bool:
        """Whether one of the two has to wait for the other."""
        writes, theirs = self.writes, other.writes
        return not (writes.isdisjoint(theirs) and writes.isdisjoint(other.reads) and self.reads.isdisjoint(theirs))


@dataclass(slots=True, eq=False)
class Entry(Claim):
    """A write that waits for its turn, to be committed by whoever leads."""

    size: int = 1
    done: bool = False
    leads: bool = False  # its owner commits for all that may be


class Turns:
    """The queue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Claim] = deque()
        self._held: list[Claim] = []  # claims, and groups of writes that are being committed
        self._led = False  # whether the owner of some write leads, or is about to

    def __len__(self) -> int:
        return len(self._waiting)

    @contextmanager
    def claimed(
        self, writes: Iterable[GlobalId], reads: Iterable[GlobalId] = (), interrupt: Interrupt = lambda: None
    ) -> Iterator[None]:
        """While inside, nobody else writes to these tables."""
        claim = Claim(frozenset(writes), frozenset(reads))
        try:
            with self._lock:
                self._append(claim)
                self._call()
            while not claim.granted:
                if not claim.asleep.acquire(timeout=POLL_S):
                    interrupt()
            yield
        finally:
            self._leave(claim)

    def enter(self, entry: Entry) -> None:
        """A write waits from now on; it leads at once if nobody does and it may."""
        with self._lock:
            self._append(entry)
            if not self._led and self._free(entry, [each for each in self._waiting if not isinstance(each, Entry)]):
                entry.leads = self._led = True

    def wait(self, entry: Entry, interrupt: Interrupt) -> None:
        """Until the write is done or leads.

        Those who do not lead sleep until they are done. Were they to come for the lock one by one, only to find that
        they are, those who write next would have to pass them and would commit in small groups.
        """
        while not (entry.done or entry.leads):
            if not entry.asleep.acquire(timeout=POLL_S):
                try:
                    interrupt()
                except BaseException:
                    if self._withdraw(entry):
                        raise  # else it is being committed

    def leave(self, entry: Entry) -> None:
        """The owner of a write is done with it, or gives up; if it led, the next one does."""
        with self._lock:
            given_up = not entry.done and entry in self._waiting
            if given_up:
                self._waiting.remove(entry)  # whoever leaves must not be called to lead
            if entry.leads:
                self._led = False
            if given_up or entry.leads:
                self._call()

    @contextmanager
    def group(self, size_max: int) -> Iterator[list[Entry]]:
        """Writes that may be committed together now; nobody else touches their tables while inside."""
        group: list[Entry] = []
        with self._lock:
            size, full = 0, False
            before: list[Claim] = []  # those that wait, whom nobody passes who meets them
            left: deque[Claim] = deque()
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
            claim = Claim(frozenset().union(*(each.writes for each in group)))
            self._held.append(claim)
        try:
            yield group
        finally:
            self._leave(claim)

    # Inside, with the lock

    def _append(self, claim: Claim) -> None:
        if len(self._waiting) >= QUEUE_MAX:
            raise SqlError(CONFIGURATION_LIMIT, f"more than {QUEUE_MAX} writes are waiting", hint="try again later")
        self._waiting.append(claim)

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

    # Inside, without

    def _leave(self, claim: Claim) -> None:
        with self._lock:
            if claim in self._held:
                self._held.remove(claim)
            elif claim in self._waiting:
                self._waiting.remove(claim)
            self._call()

    def _withdraw(self, entry: Entry) -> bool:
        with self._lock:
            if entry not in self._waiting:
                return False
            self._waiting.remove(entry)
            self._call()
            return True
