"""At which time a statement reads: the rules of the timeline for a set of collections; EXPLAIN TIMESTAMP shows it.

A strictly serializable read is at the latest closed time of the timeline, or later: not before any input's `since`; at
the wall clock's time if the statement speaks of its time, or some of what it reads comes or goes by itself until then;
and, where sources are among what the inputs are made from, at the latest time for which they are complete. A
serializable read is at the latest time for which all of its inputs are complete now. AS OF is a time of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from everview.adapter.catalog.state import Catalog
from everview.adapter.errors import OBJECT_NOT_READY, as_sql_errors, sql_error
from everview.adapter.interrupts import Interrupts
from everview.adapter.settings import STRICT
from everview.adapter.timeline import Hold, Timeline
from everview.compute.contract import Maintenance
from everview.compute.sql.errors import SqlError
from everview.storage.contract import Frontier, GlobalId
from everview.storage.environment import Environment
from everview.storage.shard import FOREVER, from_frontier

NO_TIMESTAMP = "could not find a valid timestamp for the query"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a statement asks of its time."""

    inputs: frozenset[GlobalId]
    isolation: str = STRICT
    needs_now: bool = False
    as_of: int | None = None
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class InputTimes:
    """Where an input stands; FOREVER is the empty frontier."""

    id: GlobalId
    since: int
    upper: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The time that was chosen, and out of what."""

    time: int
    wanted: Wanted
    timeline: int
    inputs: tuple[InputTimes, ...]

    @property
    def immediate(self) -> bool:
        """Whether all inputs are complete at the time."""
        return all(self.time < each.upper for each in self.inputs)


class Timestamps:
    """Chooses times, holds them, and waits for them."""

    def __init__(
        self,
        environment: Environment,
        timeline: Timeline,
        maintenance: Maintenance,
        ask_source: Callable[[GlobalId], None],
    ) -> None:
        self._environment, self._timeline, self._maintenance = environment, timeline, maintenance
        self._ask_source = ask_source  # a source that can is to become complete up to the present now

    def inputs(self, ids: Iterable[GlobalId]) -> tuple[InputTimes, ...]:
        """Where these collections stand."""
        found = []
        for id in sorted(ids):
            frontiers = self._environment.frontiers(id)
            found.append(InputTimes(id, _number(frontiers.since), _number(frontiers.upper)))
        return tuple(found)

    def choose(self, wanted: Wanted, catalog: Catalog) -> Choice:
        """The time at which to read; raises if there is none."""
        with as_sql_errors():
            inputs = self.inputs(wanted.inputs)
        since = max((each.since for each in inputs), default=0)
        if since == FOREVER:
            raise SqlError("42704", "a relation that the statement reads was dropped")
        upper = self._timeline.upper
        latest = min((each.upper - 1 for each in inputs if each.upper != FOREVER), default=upper - 1)
        if wanted.as_of is not None:
            time = max(wanted.as_of, since, latest) if wanted.at_least else wanted.as_of
            if time < since:
                raise self._no_time(time, since)
        elif wanted.isolation == STRICT:
            time = max(upper - 1, since, self._fresh(wanted, catalog))
        else:
            time = max(latest, since, self._timeline.now_ms if wanted.needs_now else 0)
        return Choice(time, wanted, upper, inputs)

    def hold(self, wanted: Wanted, catalog: Catalog) -> tuple[Choice, Hold]:
        """A time, and a hold on it."""
        while True:
            choice = self.choose(wanted, catalog)
            hold = self._timeline.hold(choice.time)
            # Between choosing and holding, the past may have been forgotten; from here on it is not.
            since = max((each.since for each in self.inputs(wanted.inputs)), default=0)
            if since <= choice.time:
                return choice, hold
            hold.release()
            if wanted.as_of is not None and not wanted.at_least:
                raise self._no_time(choice.time, since)

    def wait(self, ids: Iterable[GlobalId], time: int, interrupts: Interrupts, catalog: Catalog) -> None:
        """Until all of these collections are complete at `time`. The timeline is moved there if it is not there yet."""
        waiting = set(ids)
        if any(self._follows_timeline(id, catalog) for id in waiting):
            self._reach(time, interrupts)
        for id in waiting:
            if not self._complete(id, time):
                for root in catalog.roots(id) if id in catalog.items else ():
                    self._ask_source(root)
        for id in sorted(waiting):
            failed = _Failure()
            interrupts.wait(lambda id=id, failed=failed: self._complete(id, time) or self._fails(id, failed, catalog))  # type: ignore[misc]
            if not self._complete(id, time) and failed.error is not None:
                raise sql_error(failed.error) from failed.error

    def _reach(self, time: int, interrupts: Interrupts) -> None:
        """The timeline beyond `time`; a time to come is waited for."""
        while time > self._timeline.now_ms and self._timeline.upper <= time:
            ahead_s = (time - self._timeline.now_ms) / 1000
            interrupts.wait(lambda: self._timeline.upper > time, min(ahead_s, 60.0))
        self._timeline.advance(time)

    def _follows_timeline(self, id: GlobalId, catalog: Catalog) -> bool:
        if id not in catalog.items:
            return True
        return any(catalog.items[root].kind == "table" for root in catalog.roots(id))

    def _fresh(self, wanted: Wanted, catalog: Catalog) -> int:
        now = self._timeline.now_ms
        roots = {root for id in wanted.inputs if id in catalog.items for root in catalog.roots(id)}
        sources = [id for id in roots if catalog.items[id].kind == "source"]
        latest = min((each.upper - 1 for each in self.inputs(sources)), default=0)
        needs_now = wanted.needs_now or not self._settled(wanted.inputs, now, catalog)
        return now if needs_now else min(latest, now)

    def _settled(self, ids: Iterable[GlobalId], time: int, catalog: Catalog) -> bool:
        """Whether no row of these, or of what they are made from, comes or goes by itself up to `time`."""
        below, seen = list(ids), set(ids)
        while below:
            id = below.pop()
            if not self._maintenance.settled(id, time):
                return False
            depends = catalog.items[id].depends if id in catalog.items else ()
            below += [each for each in depends if each not in seen]
            seen.update(depends)
        return True

    def _complete(self, id: GlobalId, time: int) -> bool:
        return time < _number(self._environment.frontiers(id).upper)

    def _fails(self, id: GlobalId, failed: _Failure, catalog: Catalog) -> bool:
        """Whether waiting is in vain: the view, or one below it, cannot go on; or it was dropped."""
        frontiers = self._environment.frontiers(id)
        if frontiers.since.empty:
            failed.error = SqlError("42704", "a relation that the statement reads was dropped")
            return True
        below = [id]
        while below:
            each = below.pop()
            failed.error = self._maintenance.error(each)
            if failed.error is not None:
                return True
            if each in catalog.items and catalog.items[each].kind not in ("table", "source"):
                below += catalog.items[each].depends
        return False

    @staticmethod
    def _no_time(time: int, since: int) -> SqlError:
        detail = f"the earliest time that can be read is {since}, and {time} was asked for"
        return SqlError(OBJECT_NOT_READY, NO_TIMESTAMP, detail=detail, hint="RETAIN HISTORY FOR keeps more of the past")


class _Failure:
    """What a wait found out while it waited."""

    error: Exception | None = None


def _number(frontier: Frontier) -> int:
    return from_frontier(frontier)
