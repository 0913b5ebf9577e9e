"""Holds: what is being read is not forgotten meanwhile.

A short hold stops the one clock that all readers follow, `history`, which costs nothing. A hold that lasts would let
everything grow, so before long it is turned into read capabilities on the collections that it is about, and the clock
goes on. Holds share these capabilities: of each collection there is one, at the earliest time that is held. They are of
no use to a later process, and whoever opens the environment next drops them.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from everview.storage.contract import Clone, Command, Downgrade, Drop, GlobalId, ReadCapability
from everview.storage.environment import Environment
from everview.storage.errors import StorageError
from everview.timely.antichain import Antichain

PINNED_AFTER_S = 5.0  # a hold that is older than this does not stop the clock

Ids = Callable[[], Iterable[GlobalId]]


class Hold:
    """A time that is being read: what it is about is not forgotten beyond it until this is released."""

    def __init__(self, holds: Holds, time: int, ids: Ids | None) -> None:
        self._holds = holds
        self.time = time
        self.ids = ids  # asked for once it lasts; None: everything, and then it stops the clock for as long as it lasts
        self.more: set[GlobalId] = set()
        self.pinned: frozenset[GlobalId] | None = None
        self.begun = _seconds()
        self.released = False

    def release(self) -> None:
        """Let go; more than once does no harm."""
        self._holds.release(self)

    def extend(self, ids: Iterable[GlobalId]) -> None:
        """Hold these too, if they can still be read."""
        self._holds.extend(self, frozenset(ids))

    def narrow(self, ids: Iterable[GlobalId]) -> None:
        """Hold only these from now on."""
        self._holds.narrow(self, frozenset(ids))


class Holds:
    """All holds of one environment."""

    def __init__(self, environment: Environment, clock: str) -> None:
        self._pins = _Pins(environment, clock)
        self._lock = threading.Lock()  # of what follows; held for moments
        self._on_clock: dict[Hold, None] = {}
        self._changing = threading.Lock()  # of what is pinned; held while capabilities are made and dropped

    def earliest(self, time: int) -> int:
        """This time, or the earliest of those for which the clock has to stop."""
        with self._lock:
            return min([time, *(each.time for each in self._on_clock)])

    def add(self, time: int, ids: Ids | None) -> Hold:
        """A hold that stops the clock."""
        hold = Hold(self, time, ids)
        with self._lock:
            self._on_clock[hold] = None
        return hold

    def release(self, hold: Hold) -> None:
        """Forget a hold."""
        with self._lock:
            if hold.released:
                return
            hold.released = True
            if self._on_clock.pop(hold, hold) is None:
                return
        with self._changing:  # it is pinned, or about to be by someone who then sees that it is released
            pinned, hold.pinned = hold.pinned, None
            if pinned:
                self._pins.remove(pinned, hold.time)

    def extend(self, hold: Hold, ids: frozenset[GlobalId]) -> None:
        """Hold more."""
        with self._changing:
            hold.more |= ids
            if hold.pinned is not None:
                hold.pinned |= self._pins.add(ids - hold.pinned, hold.time)

    def narrow(self, hold: Hold, ids: frozenset[GlobalId]) -> None:
        """Hold only these."""
        with self._changing:
            hold.ids, hold.more = lambda: ids, set()
            if hold.pinned is not None:
                new = self._pins.add(ids - hold.pinned, hold.time)
                self._pins.remove(hold.pinned - ids, hold.time)
                hold.pinned = (hold.pinned & ids) | new

    def move(self, hold: Hold, time: int) -> None:
        """Let a pinned hold be at a later time."""
        with self._changing:
            if hold.pinned is not None and time > hold.time:
                self._pins.add(hold.pinned, time)
                self._pins.remove(hold.pinned, hold.time)
                hold.time = time

    def pin(self, older_than_s: float = PINNED_AFTER_S) -> None:
        """Let holds that last stop the clock no longer."""
        before = _seconds() - older_than_s
        with self._lock:
            old = [each for each in self._on_clock if each.begun <= before and each.ids is not None]
        for hold in old:
            self._pin(hold)

    def _pin(self, hold: Hold) -> None:
        with self._changing:
            if hold.released or hold.pinned is not None or hold.ids is None:
                return
            # The clock stands still for it until it is pinned, so all that can be read at its time still can be.
            ids = frozenset(hold.ids()) | hold.more
            hold.pinned = self._pins.add(ids, hold.time)
            if any(self._pins.readable(each, hold.time) for each in ids - hold.pinned):
                self._pins.remove(hold.pinned, hold.time)
                hold.pinned = None  # some collection has no reader that stays: the clock does
                return
            with self._lock:
                gone = self._on_clock.pop(hold, hold) is not None
            if gone:  # released meanwhile
                self._pins.remove(hold.pinned, hold.time)
                hold.pinned = None


@dataclass(slots=True)
class _Pin:
    """The capability on one collection, and the times for which it is there."""

    capability: ReadCapability
    times: Counter[int] = field(default_factory=Counter)


class _Pins:
    """Capabilities on collections, one for each that is held for long."""

    def __init__(self, environment: Environment, clock: str) -> None:
        self._environment, self._clock = environment, clock
        self._by_id: dict[GlobalId, _Pin] = {}

    def add(self, ids: Iterable[GlobalId], time: int) -> frozenset[GlobalId]:
        """Hold collections at a time; gives those that are."""
        wanted = {id for id in ids if id not in self._by_id or _at(self._by_id[id].capability) > time}
        readers = {id: reader for id in wanted if (reader := self._reader(id, time)) is not None}
        self._make(readers, time)
        done = {id for id in ids if id in self._by_id and _at(self._by_id[id].capability) <= time}
        for id in done:
            self._by_id[id].times[time] += 1
        return frozenset(done)

    def remove(self, ids: Iterable[GlobalId], time: int) -> None:
        """Hold collections at a time no longer."""
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
        """Whether a collection can be read at a time."""
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
        """A capability that is at this time or before, at best the one that follows the clock."""
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
        """What each command gives; None for those about what is gone."""
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


def _seconds() -> float:
    return time.monotonic()
