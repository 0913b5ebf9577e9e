"""Read holds: nothing is forgotten of a collection while it is being read.

A short hold stops the one clock that all readers follow, `history`, which costs nothing. A hold that lasts would let
every collection grow, so after some seconds it is turned into read capabilities on the collections that it needs, and
the clock goes on. Holds share these capabilities: each collection has one, at the earliest time that is held. A later
process has no use for them; whoever opens the environment next drops them.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from everview.storage.contract import Clone, Command, Downgrade, Drop, GlobalId, ReadCapability
from everview.storage.environment import Environment
from everview.storage.errors import StorageError
from everview.timely.antichain import Antichain

PINNED_AFTER_S = 5.0  # a hold that is older than this does not stop the clock

Ids = Callable[[], Iterable[GlobalId]]


class ReadHold:
    """Keeps collections readable at a time until it is released."""

    def __init__(self, holds: ReadHolds, time: int, ids: Ids | None) -> None:
        self._holds = holds
        self.time = time
        self.ids = ids  # evaluated once the hold lasts; None: all collections, and the clock stops as long as it lasts
        self.more: set[GlobalId] = set()
        self.pinned: frozenset[GlobalId] | None = None
        self.begun = monotonic()
        self.released = False

    def release(self) -> None:
        """Release the hold; safe more than once."""
        self._holds.release(self)

    def extend(self, ids: Iterable[GlobalId]) -> None:
        """Hold these collections as well, if they can still be read."""
        self._holds.extend(self, frozenset(ids))

    def narrow(self, ids: Iterable[GlobalId]) -> None:
        """Hold only these collections from now on."""
        self._holds.narrow(self, frozenset(ids))


class ReadHolds:
    def __init__(self, environment: Environment, clock: str) -> None:
        self._pins = _Pins(environment, clock)
        self._lock = threading.Lock()  # of what follows; held for moments
        self._on_clock: dict[ReadHold, None] = {}
        self._changing = threading.Lock()  # of what is pinned; held while capabilities are made and dropped

    def earliest(self, time: int) -> int:
        """The earliest time at which the clock has to stop, `time` at the latest."""
        with self._lock:
            return min([time, *(each.time for each in self._on_clock)])

    def add(self, time: int, ids: Ids | None) -> ReadHold:
        """A hold that stops the clock."""
        hold = ReadHold(self, time, ids)
        with self._lock:
            self._on_clock[hold] = None
        return hold

    def release(self, hold: ReadHold) -> None:
        with self._lock:
            if hold.released:
                return
            hold.released = True
            if self._on_clock.pop(hold, hold) is None:
                return
        with self._changing:  # it is pinned, or another thread is pinning it and will see that it is released
            pinned, hold.pinned = hold.pinned, None
            if pinned:
                self._pins.remove(pinned, hold.time)

    def extend(self, hold: ReadHold, ids: frozenset[GlobalId]) -> None:
        with self._changing:
            hold.more |= ids
            if hold.pinned is not None:
                hold.pinned |= self._pins.add(ids - hold.pinned, hold.time)

    def narrow(self, hold: ReadHold, ids: frozenset[GlobalId]) -> None:
        with self._changing:
            hold.ids, hold.more = lambda: ids, set()
            if hold.pinned is not None:
                new = self._pins.add(ids - hold.pinned, hold.time)
                self._pins.remove(hold.pinned - ids, hold.time)
                hold.pinned = (hold.pinned & ids) | new

    def move(self, hold: ReadHold, time: int) -> None:
        """Move a pinned hold to a later time."""
        with self._changing:
            if hold.pinned is not None and time > hold.time:
                self._pins.add(hold.pinned, time)
                self._pins.remove(hold.pinned, hold.time)
                hold.time = time

    def pin(self, older_than_s: float = PINNED_AFTER_S) -> None:
        """Turn holds that last into capabilities, so that they no longer stop the clock."""
        before = monotonic() - older_than_s
        with self._lock:
            old = [each for each in self._on_clock if each.begun <= before and each.ids is not None]
        for hold in old:
            self._pin(hold)

    def _pin(self, hold: ReadHold) -> None:
        with self._changing:
            if hold.released or hold.pinned is not None or hold.ids is None:
                return
            # Until the hold is pinned the clock stops for it, so everything that was readable still is.
            ids = frozenset(hold.ids()) | hold.more
            hold.pinned = self._pins.add(ids, hold.time)
            if any(self._pins.readable(each, hold.time) for each in ids - hold.pinned):
                self._pins.remove(hold.pinned, hold.time)
                hold.pinned = None  # some collection cannot be pinned, so the clock has to stop
                return
            with self._lock:
                gone = self._on_clock.pop(hold, hold) is not None
            if gone:  # released meanwhile
                self._pins.remove(hold.pinned, hold.time)
                hold.pinned = None


@dataclass(slots=True)
class _Pin:
    """The capability on one collection, and the times that it holds."""

    capability: ReadCapability
    times: Counter[int] = field(default_factory=Counter)


class _Pins:
    """The capabilities on collections that are held for long, one for each."""

    def __init__(self, environment: Environment, clock: str) -> None:
        self._environment, self._clock = environment, clock
        self._by_id: dict[GlobalId, _Pin] = {}

    def add(self, ids: Iterable[GlobalId], time: int) -> frozenset[GlobalId]:
        """Hold collections at a time; gives the collections that could be held."""
        wanted = {id for id in ids if id not in self._by_id or _at(self._by_id[id].capability) > time}
        readers = {id: reader for id in wanted if (reader := self._reader(id, time)) is not None}
        self._make(readers, time)
        done = {id for id in ids if id in self._by_id and _at(self._by_id[id].capability) <= time}
        for id in done:
            self._by_id[id].times[time] += 1
        return frozenset(done)

    def remove(self, ids: Iterable[GlobalId], time: int) -> None:
        """Release collections at a time."""
        commands: list[Command] = []
        moved: list[_Pin] = []
        for id in ids:
            pin = self._by_id[id]
            pin.times[time] -= 1
            if not pin.times[time]:
                del pin.times[time]
            if not pin.times:
                del self._by_id[id]
                commands.append(Drop(pin.capability))
            elif min(pin.times) > _at(pin.capability):
                commands.append(Downgrade(pin.capability, Antichain(min(pin.times))))
                moved.append(pin)
        results = self._commit(commands)
        for pin in moved:
            found = next((each for each in results if getattr(each, "token", None) == pin.capability.token), None)
            pin.capability = found or pin.capability

    def readable(self, id: GlobalId, time: int) -> bool:
        try:
            since = self._environment.frontiers(id).since
            return not since.empty and since.only <= time
        except StorageError:
            return False

    def _make(self, readers: dict[GlobalId, ReadCapability], time: int) -> None:
        clones = [each for each in self._commit([Clone(each) for each in readers.values()]) if each is not None]
        late = [each for each in clones if _at(each) > time]
        early = [each for each in clones if _at(each) < time]
        moved = self._commit([Downgrade(each, Antichain(time)) for each in early])
        now = {each.token: each for each in moved if each is not None}
        before: list[ReadCapability] = []
        for each in clones:
            if each in late:
                before.append(each)
                continue
            pin = self._by_id.get(each.id)
            if pin is None:
                self._by_id[each.id] = _Pin(now.get(each.token, each))
            else:
                before.append(pin.capability)
                pin.capability = now.get(each.token, each)
        self._commit([Drop(each) for each in before])

    def _reader(self, id: GlobalId, time: int) -> ReadCapability | None:
        """A capability at this time or earlier, preferably the one that follows the clock."""
        found = None
        with suppress(StorageError):
            for token in self._environment.shard(id).held:
                each = self._environment.present(id, token)
                if isinstance(each, ReadCapability) and not each.frontier.empty and _at(each) <= time:
                    if each.clock == self._clock:
                        return each
                    found = found or each
        return found

    def _commit(self, commands: list[Command]) -> list[ReadCapability | None]:
        """The result of each command; None for commands on collections that are gone."""
        if not commands:
            return []
        try:
            return self._environment.commit(*commands)
        except StorageError:
            pass
        results: list[ReadCapability | None] = []
        for command in commands:
            try:
                results += self._environment.commit(command)
            except StorageError:  # it was dropped, or the environment is closed
                results.append(None)
        return results


def _at(capability: ReadCapability) -> int:
    return capability.frontier.only
