"""The time at which a statement reads: rules of the timeline for a set of collections. EXPLAIN TIMESTAMP shows it.

A strictly serializable read is at the latest closed time of the timeline, or later: not before the `since` of an input;
at the wall clock's time if the statement uses the present time, or if rows that it reads appear or expire until then;
and not before the latest complete time of the sources below its inputs. A serializable read is at the latest time for
which all of its inputs are complete now. AS OF names the time. With real-time recency, neither of the two is before
`not_before`, at which all is in that was upstream of its sources (`recency`).

On the timeline of a change stream, a strictly serializable read is at the latest time that is complete in all of its
sources. Only the stream moves that timeline: a read waits for a later time, and for the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from everview.adapter.catalog.items import Source, Table
from everview.adapter.catalog.state import Catalog
from everview.adapter.errors import OBJECT_NOT_READY, as_sql_errors, sql_error
from everview.adapter.interrupts import Interrupts
from everview.adapter.read_holds import Ids, ReadHold
from everview.adapter.settings import STRICT
from everview.adapter.stream_timeline import StreamTimeline, Timelines
from everview.adapter.timeline import Timeline
from everview.compute.contract import Maintenance
from everview.compute.sql.errors import SqlError
from everview.errors import EverviewError
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.shard import FOREVER, from_frontier

NO_TIMESTAMP = "could not find a valid timestamp for the query"


@dataclass(frozen=True, slots=True)
class TimestampRequest:
    """What a statement requires of its read time."""

    inputs: frozenset[GlobalId]
    isolation: str = STRICT
    needs_now: bool = False
    as_of: int | None = None
    at_least: bool = False
    not_before: int = 0  # without AS OF


@dataclass(frozen=True, slots=True)
class InputTimes:
    """The frontiers of an input; FOREVER is the empty frontier."""

    id: GlobalId
    since: int
    upper: int


@dataclass(frozen=True, slots=True)
class TimestampChoice:
    """A chosen time, and what it was chosen from."""

    time: int
    wanted: TimestampRequest
    timeline: int
    inputs: tuple[InputTimes, ...]
    name: str | None = None  # of the timeline, if it is that of a change stream

    @property
    def immediate(self) -> bool:
        """Whether all inputs are complete at the time."""
        return all(self.time < each.upper for each in self.inputs)


class Timestamps:
    """Chooses read times, holds them, and waits for them."""

    def __init__(
        self,
        environment: Environment,
        timelines: Timelines,
        maintenance: Maintenance,
        ask_source: Callable[[GlobalId], None],
        stopped: Callable[[GlobalId], EverviewError | None] = lambda id: None,
    ) -> None:
        self._environment, self._maintenance = environment, maintenance
        self._timelines, self._timeline = timelines, timelines.own
        self._stopped = stopped  # why a table of a source cannot become complete any further
        self._ask_source = ask_source  # asks a source to become complete up to the present, if it can

    def inputs(self, ids: Iterable[GlobalId]) -> tuple[InputTimes, ...]:
        found = []
        for id in sorted(ids):
            frontiers = self._environment.frontiers(id)
            found.append(InputTimes(id, from_frontier(frontiers.since), from_frontier(frontiers.upper)))
        return tuple(found)

    def choose(self, wanted: TimestampRequest, catalog: Catalog) -> TimestampChoice:
        """Choose the read time. Raise if no time can be read."""
        with as_sql_errors():
            inputs = self.inputs(wanted.inputs)
        since = max((each.since for each in inputs), default=0)
        if since == FOREVER:
            raise SqlError("42704", "a relation that the statement reads was dropped")
        timeline = self._timelines.of(wanted.inputs, catalog)
        own, upper = timeline is self._timeline, timeline.upper
        latest = min((each.upper - 1 for each in inputs if each.upper != FOREVER), default=upper - 1)
        if wanted.as_of is not None:
            time = max(wanted.as_of, since, latest) if wanted.at_least else wanted.as_of
            if time < since:
                raise self._no_time(time, since, wanted, catalog)
        elif wanted.isolation == STRICT:
            time = max(upper - 1, since, self._fresh(wanted, catalog) if own else 0)
        else:
            time = max(latest, since, self._timeline.now_ms if wanted.needs_now and own else 0)
        if wanted.as_of is None:
            time = max(time, wanted.not_before)
        return TimestampChoice(time, wanted, upper, inputs, timeline.name)

    def hold(
        self, wanted: TimestampRequest, catalog: Catalog, ids: Ids | None = None
    ) -> tuple[TimestampChoice, ReadHold]:
        """Choose a read time and hold it: for the wanted inputs, or for all collections that `ids` gives."""
        timeline = self._timelines.of(wanted.inputs, catalog)
        while True:
            choice = self.choose(wanted, catalog)
            hold = timeline.hold(choice.time, ids or wanted.inputs)
            # The past may have been forgotten between choosing and holding; from here on it is kept.
            since = max((each.since for each in self.inputs(wanted.inputs)), default=0)
            if since <= choice.time:
                return choice, hold
            hold.release()
            if wanted.as_of is not None and not wanted.at_least:
                raise self._no_time(choice.time, since, wanted, catalog)

    def begin(self, ids: Iterable[GlobalId], interrupts: Interrupts, catalog: Catalog) -> None:
        """On the timeline of a change stream, wait until a time is complete in it and in each of these collections."""
        timeline = self._timelines.of(ids, catalog)
        if timeline is not self._timeline:
            for id in sorted(ids):
                self._await(id, lambda id=id: timeline.upper > 0 and self._begun(id), interrupts, catalog)  # type: ignore[misc]

    def _begun(self, id: GlobalId) -> bool:
        return from_frontier(self._environment.frontiers(id).upper) > self._environment.shard(id).spec.initial

    def wait(
        self,
        ids: Iterable[GlobalId],
        time: int,
        interrupts: Interrupts,
        catalog: Catalog,
        on: Timeline | StreamTimeline | None = None,
    ) -> None:
        """Wait until all of these collections are complete at `time`, on their timeline or the one given by `on`.

        The environment's timeline is moved there if needed.
        """
        waiting = set(ids)
        own = (on or self._timelines.of(waiting, catalog)) is self._timeline
        if own and any(self._follows_timeline(id, catalog) for id in waiting):
            while time > self._timeline.now_ms and self._timeline.upper <= time:
                ahead_s = (time - self._timeline.now_ms) / 1000
                interrupts.wait(lambda: self._timeline.upper > time, min(ahead_s, 60.0))
            self._timeline.advance(time)
        for id in waiting:
            if not self._complete(id, time):
                for root in catalog.roots(id) if id in catalog.items else ():
                    self._ask_source(root)
        for id in sorted(waiting):
            self._await(id, lambda id=id: self._complete(id, time), interrupts, catalog)  # type: ignore[misc]

    def _await(self, id: GlobalId, ready: Callable[[], bool], interrupts: Interrupts, catalog: Catalog) -> None:
        """Wait for a condition on a collection; raises if it can never hold."""
        failed = _Failure()
        interrupts.wait(lambda: ready() or self._fails(id, failed, catalog))
        if not ready() and failed.error is not None:
            raise sql_error(failed.error) from failed.error

    def _follows_timeline(self, id: GlobalId, catalog: Catalog) -> bool:
        return id not in catalog.items or any(isinstance(catalog.items[root], Table) for root in catalog.roots(id))

    def _fresh(self, wanted: TimestampRequest, catalog: Catalog) -> int:
        now = self._timeline.now_ms
        roots = {root for id in wanted.inputs if id in catalog.items for root in catalog.roots(id)}
        sources = [id for id in roots if isinstance(catalog.items[id], Source)]
        latest = min((each.upper - 1 for each in self.inputs(sources)), default=0)
        needs_now = wanted.needs_now or not self._settled(wanted.inputs, now, catalog)
        return now if needs_now else min(latest, now)

    def _settled(self, ids: Iterable[GlobalId], time: int, catalog: Catalog) -> bool:
        """Whether no row of these collections, or of those below them, appears or expires by itself up to `time`."""
        below, seen = list(ids), set(ids)
        while below:
            id = below.pop()
            if not (self._maintenance.settled(id, time) and self._timeline.expiring.settled(id, time)):
                return False
            depends = catalog.items[id].depends if id in catalog.items else ()
            below += [each for each in depends if each not in seen]
            seen.update(depends)
        return True

    def _complete(self, id: GlobalId, time: int) -> bool:
        return time < from_frontier(self._environment.frontiers(id).upper)

    def _fails(self, id: GlobalId, failed: _Failure, catalog: Catalog) -> bool:
        """Whether waiting is useless: the view was dropped, or it or a view below it has failed."""
        frontiers = self._environment.frontiers(id)
        if frontiers.since.empty:
            failed.error = SqlError("42704", "a relation that the statement reads was dropped")
            return True
        below = [id]
        while below:
            each = below.pop()
            failed.error = self._maintenance.error(each)
            failed.error = failed.error or self._stopped(each)
            if failed.error is not None:
                return True
            if each in catalog.items and not isinstance(catalog.items[each], Table | Source):
                below += catalog.items[each].depends
        return False

    def _no_time(self, time: int, since: int, wanted: TimestampRequest, catalog: Catalog) -> SqlError:
        detail = f"the earliest time that can be read is {since}, and {time} was asked for"
        begun = {id: self._environment.shard(id).spec.initial for id in wanted.inputs}
        younger = min((id for id, start in begun.items() if start > time), default=None)
        if younger is None:
            hint = "RETAIN HISTORY FOR keeps more of the past"
            return SqlError(OBJECT_NOT_READY, NO_TIMESTAMP, detail=detail, hint=hint)
        name = f'"{catalog.items[younger].name}"' if younger in catalog.items else "a relation that it reads"
        return SqlError(OBJECT_NOT_READY, NO_TIMESTAMP, detail=f"{detail}; {name} begins at {begun[younger]}")


class _Failure:
    """An error that a wait came upon."""

    error: Exception | None = None
