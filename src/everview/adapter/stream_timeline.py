"""Timelines of change streams: sources that keep the times of their streams, and what is made from them.

The times of such a collection are the stream's own, so it is the same wherever the stream is read. Nothing moves them
but the stream: a timeline is complete as far as all of its sources are. `upper` never moves back, though a source may
come to be that has read nothing yet: how far the timeline was complete then is remembered in a clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from everview.adapter.catalog.items import Source
from everview.adapter.catalog.state import Catalog
from everview.adapter.history import History
from everview.adapter.timeline import Timeline
from everview.storage.contract import AdvanceClock, Command, GlobalId
from everview.storage.environment import Environment
from everview.storage.shard import FOREVER, from_frontier


class StreamTimeline(History):
    """A timeline that has a name, and the sources on it now."""

    def __init__(
        self, environment: Environment, name: str, key: str, sources: Callable[[], Iterable[GlobalId]]
    ) -> None:
        super().__init__(environment, f"history-{key}")
        self.name, self.key = name, key
        self._clock, self._sources = f"timeline-{key}", sources

    @property
    def upper(self) -> int:
        """All earlier times are complete in all of its sources, or were before the last one came to be."""
        ids = list(self._sources())
        uppers = [from_frontier(self._environment.frontiers(id).upper) for id in ids]
        known = min((each for each in uppers if each != FOREVER), default=None)
        if known is None:  # all have ended: the times that there were are all there will be
            known = max((self._end(id) for id in ids), default=0)
        return max(self._environment.clock(self._clock) or 0, known)

    def _end(self, id: GlobalId) -> int:
        shard = self._environment.shard(id)
        return max((batch.time_max + 1 for batch in shard.batches.values()), default=shard.spec.initial)

    def began(self) -> list[Command]:
        """The commands by which another source comes to be on it, within `still`."""
        if self._environment.clock(self._clock) is None:
            return [AdvanceClock(self._clock, None, 0), AdvanceClock(self.history_clock, None, 0)]
        return self._remember()

    def _remember(self) -> list[Command]:
        before, upper = self._environment.clock(self._clock), self.upper
        return [AdvanceClock(self._clock, before, upper)] if before is not None and upper > before else []

    def forget(self) -> None:
        """Let readers forget what is past by now."""
        with self._commit_lock:
            commands = self._forget(self.upper - 1)
            if commands:
                self._environment.commit(*commands, *self._remember())


class Timelines:
    """All timelines: the environment's own, and the timelines of change streams."""

    def __init__(self, environment: Environment, own: Timeline, catalog: Callable[[], Catalog]) -> None:
        self._environment, self.own, self._catalog = environment, own, catalog
        self._by_key: dict[str, StreamTimeline] = {}
        self._lock = threading.Lock()

    def of(self, ids: Iterable[GlobalId], catalog: Catalog | None = None) -> Timeline | StreamTimeline:
        """The one timeline of some collections. Without collections, the environment's."""
        catalog = self._catalog() if catalog is None else catalog
        if not catalog.stream_timelines:
            return self.own
        name = next((found for id in ids if (found := catalog.timeline(id)) is not None), None)
        return self.own if name is None else self._named(name, catalog.stream_timelines[name][0])

    def named(self, name: str) -> StreamTimeline | None:
        found = self._catalog().stream_timelines.get(name)
        return None if found is None else self._named(name, found[0])

    def named_or_new(self, name: str, key: str) -> StreamTimeline:
        """The timeline of a name; `key` is what a new one is known by."""
        return self.named(name) or self.new(name, key)

    def new(self, name: str, key: str) -> StreamTimeline:
        """A timeline that is about to be."""
        with self._lock:
            return self._by_key.setdefault(key, StreamTimeline(self._environment, name, key, self._sources(name, key)))

    def streams(self) -> list[StreamTimeline]:
        return [self._named(name, items[0]) for name, items in self._catalog().stream_timelines.items()]

    def _named(self, name: str, item: Source) -> StreamTimeline:
        assert item.timeline is not None
        key = item.timeline.key
        return self._by_key.get(key) or self.new(name, key)

    def _sources(self, name: str, key: str) -> Callable[[], Iterable[GlobalId]]:
        def found() -> list[GlobalId]:
            items = self._catalog().stream_timelines.get(name, ())
            return [item.id for item in items if item.timeline is not None and item.timeline.key == key]

        return found
