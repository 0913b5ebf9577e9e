"""Durable subscriptions: places in the histories of collections that stay until clients acknowledge what came before.

A subscription at position p holds its collection at p - 1: everything before p is acknowledged, and the changes from p
on can be told, again if need be. Until the first acknowledgement, the contents at the time at which it began are still
to be told, and that time is held. Position and read capability move in one commit, so a crash finds both as they
were before or both as they are after. One that holds too much of the past lapses: it lets go, and says so from then on.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace

from everview.adapter.catalog.items import Subscription
from everview.adapter.errors import INVALID_PARAMETER_VALUE, OBJECT_IN_USE, OBJECT_NOT_READY, WRONG_OBJECT_TYPE
from everview.adapter.retention import FOR_EVER_MS, shown_retention
from everview.adapter.statement_context import StatementContext
from everview.adapter.statements import nodes
from everview.adapter.statements.words import Path
from everview.adapter.stream_timeline import Timelines
from everview.compute.sql.errors import SqlError
from everview.storage.contract import Command, Downgrade, Drop, GlobalId, Put, ReadCapability
from everview.storage.environment import Environment
from everview.storage.errors import Corruption, StorageError
from everview.storage.shard import from_frontier
from everview.timely.antichain import Antichain

HOLD_MS = 86_400_000  # how much of the past a subscription may hold, where nothing else is asked for
GRACE_MS = 600_000  # after a start, clients have this long to come back, whatever a subscription holds
ACTIVE, IDLE, LAPSED = "active", "idle", "lapsed"
_NOTE = "subscription/"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a subscription stands: everything before `position` is acknowledged.

    With `snapshot`, nothing is acknowledged yet, and the contents at `position` come first. `token` is that of its read
    capability, None once it has lapsed. `moved_ms` is the moment of the last acknowledgement, or of the beginning.
    """

    token: str | None
    position: int
    snapshot: bool
    moved_ms: int
    lapsed_ms: int | None = None

    @property
    def start(self) -> int:
        """The time at which the collection is held and a reader begins."""
        return self.position if self.snapshot else self.position - 1


@dataclass(frozen=True, slots=True)
class PlaceStatus:
    """A subscription at one instant, as others see it."""

    place: Place
    state: str
    session: int | None
    held_ms: int
    hold_ms: int


class Reader:
    """Who reads a subscription now; the next one who comes takes its place."""

    def __init__(self, item: Subscription, session: int) -> None:
        self.item, self.session = item, session


class DurableSubscriptions:
    def __init__(self, environment: Environment, timelines: Timelines) -> None:
        self._environment, self._timelines, self._timeline = environment, timelines, timelines.own
        self._places: dict[GlobalId, Place] = {}
        self._readers: dict[GlobalId, Reader] = {}
        self._lock = threading.RLock()  # of places: who looks at one and acts on it holds it meanwhile
        self._opened_ms = self._timeline.now_ms

    def resume(self, item: Subscription) -> None:
        """Find where a subscription stands."""
        note = self._environment.get(_NOTE + item.id)
        if note is None:
            raise Corruption(f"the place of subscription {item.id} is missing")
        self._places[item.id] = Place(**json.loads(note))

    def tokens(self) -> set[str]:
        """The tokens of the capabilities that subscriptions hold."""
        return {place.token for place in self._places.values() if place.token is not None}

    # Beginning and ending

    def begin(self, item: Subscription, capability: ReadCapability, time: int) -> tuple[Place, list[Command]]:
        """A place at a time, held by a capability that is at this time or before, and what makes it durable."""
        position = time if item.snapshot else time + 1
        place = Place(capability.token, position, item.snapshot, self._timeline.now_ms)
        return place, [Downgrade(capability, Antichain(place.start)), _note(item.id, place)]

    def begun(self, id: GlobalId, place: Place) -> None:
        """A place is durable."""
        with self._lock:
            self._places[id] = place
            self._readers.pop(id, None)
        self._environment.wake()

    def release(self, item: Subscription) -> list[Command]:
        """The commands that let go of what a subscription holds."""
        place = self._places.get(item.id)
        return [] if place is None else [*self._drop(item, place), Put(_NOTE + item.id, None)]

    def letting_go(self, item: Subscription) -> list[Command]:
        """The commands that let go of the past that a subscription holds now, for one that begins anew."""
        return self._drop(item, self._places[item.id])

    def _drop(self, item: Subscription, place: Place) -> list[Command]:
        return [] if place.token is None else [Drop(self._environment.present(item.on, place.token))]

    def dropped(self, item: Subscription) -> None:
        """A subscription is no longer in the catalog."""
        with self._lock:
            self._places.pop(item.id, None)
            self._readers.pop(item.id, None)

    # Reading and acknowledging

    def read(self, item: Subscription, session: int, hold: Callable[[int], None]) -> tuple[Place, Reader]:
        """Where a reader begins, who is the only one from now on; `hold` is to hold the past from that time on."""
        with self._lock:
            place = self._standing(item)
            hold(place.start)
            reader = self._readers[item.id] = Reader(item, session)
        self._environment.wake()  # whoever read until now is to look
        return place, reader

    def ended(self, reader: Reader) -> None:
        with self._lock:
            if self._readers.get(reader.item.id) is reader:
                del self._readers[reader.item.id]

    def failure(self, reader: Reader) -> SqlError | None:
        """Why a reader cannot go on, if it cannot."""
        item = reader.item
        place = self._places.get(item.id)
        if place is not None and place.token is None:
            return self._lapsed(item, place)
        if self._readers.get(item.id) is reader:
            return None
        return SqlError(
            OBJECT_IN_USE,
            f'subscription "{item.name}" was taken over',
            detail="another session has resumed or restarted it, and one reads it at a time",
            hint="create a subscription for each reader",
        )

    def acknowledge(self, item: Subscription, before: int, reader: Reader | None = None) -> bool:
        """Everything before a time is done with; false if that was known. With a reader, only if it still reads."""
        with self._lock:
            if reader is not None and self.failure(reader) is not None:
                raise self.failure(reader)  # type: ignore[misc]
            place = self._standing(item)
            upper = from_frontier(self._environment.frontiers(item.on).upper)
            if before > upper:
                message = f'subscription "{item.name}" cannot be acknowledged up to {before}'
                detail = f"what is known of its collection ends before {upper}"
                raise SqlError(INVALID_PARAMETER_VALUE, message, detail=detail)
            if before <= place.position:
                return False
            moved = replace(place, position=before, snapshot=False, moved_ms=self._timeline.now_ms)
            capability = self._environment.present(item.on, place.token or "")
            self._environment.commit(Downgrade(capability, Antichain(moved.start)), _note(item.id, moved))
            self._places[item.id] = moved
        return True

    def _standing(self, item: Subscription) -> Place:
        place = self._places.get(item.id)
        if place is None:
            raise SqlError("42704", f'subscription "{item.name}" was dropped')
        if place.token is None:
            raise self._lapsed(item, place)
        return place

    def _lapsed(self, item: Subscription, place: Place) -> SqlError:
        limit = shown_retention(item.hold_ms)
        told = "nothing was acknowledged" if place.snapshot else f"everything before {place.position} was acknowledged"
        return SqlError(
            OBJECT_NOT_READY,
            f'subscription "{item.name}" has lapsed',
            detail=f"{told}, and what came since then was held for {limit}, which is its limit, and let go",
            hint=f"ALTER SUBSCRIPTION {item.name} RESTART begins anew with the contents of now;"
            " SET (HOLD FOR …) makes the limit longer",
        )

    # The limit

    def lapse(self, items: Iterable[Subscription]) -> None:
        """Let go of what subscriptions have held for too long; the catalog does not change meanwhile."""
        now_ms = self._timeline.now_ms
        for item in items:
            with self._lock:
                place, limit = self._places.get(item.id), item.hold_ms
                if place is None or place.token is None or self._held_ms(item, place) <= limit:
                    continue
                if now_ms - self._opened_ms <= min(limit, GRACE_MS):
                    continue
                lapsed = replace(place, token=None, lapsed_ms=now_ms)
                try:
                    self._environment.commit(*self._drop(item, place), _note(item.id, lapsed))
                except StorageError:  # it is tried again
                    continue
                self._places[item.id] = lapsed
            _log.warning("subscription %s has lapsed: it held more than %s", item.name, shown_retention(limit))
            self._environment.wake()

    def _held_ms(self, item: Subscription, place: Place) -> int:
        if place.token is None:
            return 0
        return max(0, self._timelines.of([item.on]).upper - 1 - place.start)

    def status(self, item: Subscription) -> PlaceStatus | None:
        with self._lock:
            place, reader = self._places.get(item.id), self._readers.get(item.id)
            if place is None:
                return None
            state = LAPSED if place.token is None else IDLE if reader is None else ACTIVE
            session = None if reader is None else reader.session
            return PlaceStatus(place, state, session, self._held_ms(item, place), item.hold_ms)


def shown_hold(item: Subscription) -> str:
    """The limit of a subscription, as it is written."""
    return shown_retention(min(item.hold_ms, FOR_EVER_MS))


def _note(id: GlobalId, place: Place) -> Put:
    return Put(_NOTE + id, json.dumps(asdict(place)).encode())


def named_subscription(around: StatementContext, path: Path) -> Subscription:
    item = around.find(path)
    if item is None:
        raise around.catalog.missing("subscription", path, around.names())
    if not isinstance(item, Subscription):
        raise SqlError(WRONG_OBJECT_TYPE, f'"{item.name}" is not a subscription', detail=f"it is a {item.kind}")
    return item


def resumed(statement: nodes.Subscribe, around: StatementContext) -> tuple[nodes.Subscribe, Subscription | None]:
    """A SUBSCRIBE with what it resumes, if that is a durable subscription: `TO s` means its collection, resuming s."""
    path, named = statement.subscription, statement.query
    if not path and isinstance(named, nodes.Named):
        found = around.find(named.path)
        if isinstance(found, Subscription):
            path = named.path
    if not path:
        if statement.acknowledge is not None:
            hint = "CREATE SUBSCRIPTION makes one that can be acknowledged"
            raise SqlError(INVALID_PARAMETER_VALUE, "only a durable subscription is acknowledged", hint=hint)
        return statement, None
    if statement.as_of is not None or statement.resume is not None or not statement.snapshot:
        detail = "it begins where it was acknowledged"
        raise SqlError("42601", "a durable subscription takes no AS OF, RESUME FROM and SNAPSHOT", detail=detail)
    item = named_subscription(around, path)
    if not statement.subscription:
        statement = replace(statement, query=nodes.Named(around.catalog.full_name(around.catalog.items[item.on])))
    return statement, item
