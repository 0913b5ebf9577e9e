"""The coordinator: one environment open for sessions, with its catalog, its timeline and what keeps its views.

What it holds is made here and handed to those who use it; the work is done elsewhere. Opening puts everything back as
it was left: views go on from where they stood, and what was being made when the last process ended is removed.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from os import PathLike
from typing import TYPE_CHECKING, Any

from everview.adapter.catalog.items import Event, Item, is_maintained
from everview.adapter.catalog.store import CatalogStore
from everview.adapter.errors import INVALID_AUTHORIZATION, TOO_MANY_CONNECTIONS, UNDEFINED_DATABASE
from everview.adapter.execute.sourcing import feeder_of
from everview.adapter.execute.streams import forget_lost_sources, forget_source
from everview.adapter.pacemaker import Pacemaker
from everview.adapter.peek import LOCAL_UPDATES_MAX, Peeks
from everview.adapter.planner import Planner
from everview.adapter.replacement import Replacements
from everview.adapter.serving import IndexLookups, ServedIndex
from everview.adapter.session import CoordinatorSession
from everview.adapter.sinks.contract import DeliveryStatus
from everview.adapter.sinks.manager import Sinks
from everview.adapter.stream_feeder import StreamFeeder, StreamStatus
from everview.adapter.surroundings import Surroundings
from everview.adapter.system.relation import SessionInfo, StagedChange, SubscriptionInfo
from everview.adapter.timeline import Timeline
from everview.adapter.timestamps import Timestamps
from everview.compute.contract import Maintenance
from everview.compute.dataflow import is_awake, is_errors_id
from everview.compute.engine.contract import Engine
from everview.compute.engine.local.engine import LocalEngine
from everview.compute.ir.scalar import Scalar
from everview.compute.ir.types import SqlType
from everview.compute.maintenance import ScheduledDataflows
from everview.compute.sql.errors import SqlError
from everview.sources.generator.feeder import Feeder
from everview.storage.contract import Command, Drop, Frontiers, GlobalId
from everview.storage.environment import Environment, wall_clock_ms
from everview.storage.errors import StorageError, UnknownId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from everview.compute.engine.spark.session import Spark

SESSIONS_MAX = 1_000
SUBSCRIPTIONS_MAX = 1_000
_COLLECTION = re.compile(r"u[0-9]+")


class Coordinator:
    """Everything of one environment; see `contract.Adapter`.

    `engine` is for views and for large reads, and may be one that is still starting; without it everything is computed
    in this process. `spark` are the sessions that it has, for deliveries by Spark's tasks.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        spark: Future[Spark] | None = None,
        engine: Engine | None = None,
        clock: Callable[[], int] = wall_clock_ms,
        maintenance: Maintenance | None = None,
        local_updates_max: int = LOCAL_UPDATES_MAX,
        ticking: bool = True,
    ) -> None:
        self.environment = environment
        self._spark = spark
        self._engine = engine
        self.timeline = Timeline(environment, clock)
        self.catalog = CatalogStore(environment, lambda: self.timeline.now_ms)
        self.maintenance = maintenance or ScheduledDataflows(environment, self._engine or LocalEngine())
        self.timestamps = Timestamps(environment, self.timeline, self.maintenance, self.ask_source)
        self._feeders: dict[GlobalId, Feeder | StreamFeeder] = {}
        self.planner = Planner()
        self.indexes = IndexLookups()
        self.peeks = Peeks(environment, self.indexes, self, lambda: self._engine, local_updates_max=local_updates_max)
        self.sinks = Sinks(environment, self.peeks.check_errors, self.bulk_spark)
        self.replacements = Replacements(self)
        self._sessions: dict[int, CoordinatorSession] = {}
        self._subscriptions: dict[int, SubscriptionInfo] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._resume()
        self.pacemaker = Pacemaker(
            environment,
            self.timeline,
            self.maintenance,
            watched=self._watched,
            ask=self._ask_sources,
            each_second=self._each_second,
        )
        if ticking:
            self.pacemaker.start()

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        clock: Callable[[], int] = wall_clock_ms,
        storage: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Coordinator:
        """Open the environment in a folder, which is made if there is none.

        `storage` are options of `Environment.open`, and the others are those of a coordinator.
        """
        environment = Environment.open(path, **(storage or {}))
        try:
            return cls(environment, clock=clock, **options)
        except BaseException:
            environment.close()
            raise

    # The contract

    def connect(self, user: str, database: str, settings: Mapping[str, str]) -> CoordinatorSession:
        """A session for a role."""
        state = self.catalog.state
        role = state.role(user)
        if role is None or not role.login:
            why = "does not exist" if role is None else "is not permitted to log in"
            raise SqlError(INVALID_AUTHORIZATION, f'role "{user}" {why}')
        if state.database(database) is None:
            raise SqlError(UNDEFINED_DATABASE, f'database "{database}" does not exist')
        with self._lock:
            if self._closed.is_set():
                raise SqlError("57P03", "the database system is shutting down")
            if len(self._sessions) >= SESSIONS_MAX:
                raise SqlError(TOO_MANY_CONNECTIONS, f"there are {SESSIONS_MAX} sessions already")
            session = CoordinatorSession(self, next(self._numbers), user, database, settings)
            self._sessions[session.number] = session
        return session

    def secret(self, user: str) -> str | None:
        """The SCRAM verifier of a role."""
        role = self.catalog.state.role(user)
        return None if role is None else role.verifier

    def ready(self) -> bool:
        """Whether views can be maintained now."""
        if self._closed.is_set():
            return False
        return self._spark is None or (self._spark.done() and self._spark.exception() is None)

    def close(self) -> None:
        """End all sessions and let go of everything."""
        if self._closed.is_set():
            return
        self._closed.set()
        for session in list(self._sessions.values()):
            session.close()
        self.replacements.close()
        for feeder in set(self._feeders.values()):
            feeder.close()
        self.sinks.close()
        self.maintenance.close()
        self.pacemaker.close()
        self.environment.close()

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # For sessions

    def disconnected(self, session: CoordinatorSession) -> None:
        """A session has ended."""
        with self._lock:
            self._sessions.pop(session.number, None)

    def subscribed(self, session: CoordinatorSession, objects: tuple[GlobalId, ...]) -> int:
        """Someone subscribes; gives the number under which it is known."""
        with self._lock:
            if len(self._subscriptions) >= SUBSCRIPTIONS_MAX:
                raise SqlError("53400", f"there are {SUBSCRIPTIONS_MAX} subscriptions already")
            number = next(self._numbers)
            now = self.timeline.now_ms
            self._subscriptions[number] = SubscriptionInfo(number, session.number, now, objects)
        self.pacemaker.look()  # from now on, what is due is waited for
        return number

    def unsubscribed(self, number: int) -> None:
        """A subscription has ended."""
        with self._lock:
            self._subscriptions.pop(number, None)

    def serve(self, item: Item, on: Item, keys: Sequence[Scalar]) -> None:
        """Serve an index from memory."""
        collection = item.id if item.reader is not None else on.id
        self.indexes.add(item.id, ServedIndex(self.environment, collection, keys, on.types))

    def serve_again(self, on: Item) -> None:
        """The columns of a view have changed: its indexes are to have them too."""
        catalog, around = self.catalog.state, self.stored_surroundings()
        for item in catalog.indexes_on(on.id):
            keys = self.planner.keys(catalog, on, item.keys, around)
            self.indexes.remove(item.id)
            self.serve(item, on, keys)

    def stored_surroundings(self) -> Surroundings:
        """What stored queries are surrounded by, in which all names are in full."""
        return Surroundings(self.catalog.state, "everview", "everview", ("public",))

    def feed(self, item: Item) -> None:
        """Begin to feed a source."""
        if item.source.get("kind") == "subsource":
            return
        items = self.catalog.state.items.values()
        parts = {each.source["table"]: each for each in items if each.source.get("of") == item.id} or {"": item}
        feeder = feeder_of(self.environment, self.timeline, item, parts, self.bulk_spark)
        for each in parts.values():
            self._feeders[each.id] = feeder
        self._feeders[item.id] = feeder
        feeder.start()

    def stop_feeding(self, item: Item) -> None:
        """Feed a source, or from a sink, no longer."""
        self.sinks.halt(item)
        feeder = self._feeders.pop(item.id, None)
        if feeder is not None:
            feeder.close()

    def bulk_spark(self) -> SparkSession | None:
        """Spark's session for much at once, if it has started."""
        spark = self._spark
        return spark.result().bulk if spark is not None and self.ready() else None

    def ask_source(self, id: GlobalId) -> None:
        """Let a source, if it is one, become complete up to the present."""
        feeder = self._feeders.get(id)
        if feeder is not None:
            feeder.ask()

    def dropped(self, item: Item) -> str | None:
        """An item is no longer in the catalog; tells what of it could not be removed elsewhere."""
        if item.kind == "index":
            self.indexes.remove(item.id)
        if is_maintained(item):
            self.maintenance.release(item.id)
        self.replacements.gone(item.id)
        left = self.sinks.dropped(item)
        if item.kind == "source":
            forget_source(self.environment, item)
        self.environment.wake()
        return left

    def discard(self, id: GlobalId) -> None:
        """Stop maintaining what no catalog knows of: the view of a subscription."""
        try:
            self.maintenance.stop(id)
            self.maintenance.release(id)
        except StorageError:
            if not self._closed.is_set():  # whoever opens the environment next removes it
                raise

    # What the system tells about itself

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.timeline.now_ms

    def frontiers(self, id: GlobalId) -> Frontiers | None:
        """Where a collection stands."""
        try:
            return self.environment.frontiers(id)
        except UnknownId:
            return None

    def hydrated(self, item: Item) -> bool:
        """Whether a maintained collection was computed for the first time."""
        if item.reader is None:
            return True
        frontiers = self.frontiers(item.id)
        if frontiers is None or frontiers.upper.empty:
            return True
        return frontiers.upper.only > self.environment.shard(item.id).spec.initial

    def sink_status(self, id: GlobalId) -> DeliveryStatus | None:
        """Where a sink stands."""
        return self.sinks.status(id)

    def source_status(self, id: GlobalId) -> StreamStatus | None:
        """Where a source that reads a change stream stands."""
        feeder = self._feeders.get(id)
        return feeder.status() if isinstance(feeder, StreamFeeder) else None

    def staged_change(self, item: Item) -> StagedChange | None:
        """What applying a replacement would change, if that is known."""
        return self.replacements.change(item)

    def events(self) -> list[Event]:
        """The audit log."""
        return self.catalog.events()

    def sessions(self) -> list[SessionInfo]:
        """Who is connected."""
        return [session.info for session in list(self._sessions.values())]

    def subscriptions(self) -> list[SubscriptionInfo]:
        """Who is subscribed to what."""
        return list(self._subscriptions.values())

    def key_types(self, item: Item) -> tuple[SqlType, ...]:
        """The types of an index's keys."""
        return self.indexes.key_types(item.id)

    def stored_bytes(self, id: GlobalId) -> int:
        """The bytes that are stored for an item: its collection, and what it is maintained with."""
        keepers = self.maintenance.keepers()  # of a view that was replaced, the state has the replacement's id
        owners = {each: each.partition(".")[0] for each in self.environment.ids()}
        served = [each for each, owner in owners.items() if keepers.get(owner, owner) == id]
        return sum(batch.size_bytes for each in served for batch in self.environment.shard(each).batches.values())

    def arrangements(self) -> Iterable[tuple[GlobalId, str, int, int]]:
        """Of each arrangement: the item that it serves, its name, its updates and its bytes."""
        keepers = self.maintenance.keepers()
        for id in self.environment.ids():
            owner, _, name = id.partition(".")
            owner = keepers.get(owner, owner)
            if is_errors_id(id) and not is_awake(self.environment, id):
                continue
            if name and owner in self.catalog.state.items:
                batches = self.environment.shard(id).batches.values()
                yield owner, name, sum(each.rows for each in batches), sum(each.size_bytes for each in batches)
        for id, rows in self.indexes.sizes().items():
            yield id, "serving", rows, 0

    # Inside

    def _resume(self) -> None:
        """Put everything back as the last process left it."""
        catalog, around = self.catalog.state, self.stored_surroundings()
        for item in catalog.items.values():
            if item.kind == "materialized view":
                self.maintenance.resume(item.id, self.planner.maintained(item, around))
            elif item.kind == "index":
                assert item.on is not None
                on = catalog.items[item.on]
                if item.reader is not None:
                    self.maintenance.resume(item.id, self.planner.maintained(on, around))
                self.serve(item, on, self.planner.keys(catalog, on, item.keys, around))
        self._remove_leftovers()
        for item in catalog.items.values():
            if item.automatic:
                self.replacements.apply_when_hydrated(item)
        for item in catalog.items.values():
            if item.kind == "source":
                self.feed(item)
        self.sinks.resume(catalog)

    def _remove_leftovers(self) -> None:
        """Collections that are in no catalog, and capabilities that nobody knows of."""
        items = self.catalog.state.items
        known = self.maintenance.tokens() | self.sinks.tokens(items.values())
        forget_lost_sources(self.environment, items)
        for item in items.values():
            known |= {token for token in (item.reader, item.writer) if token is not None}
        commands: list[Command] = []
        for id in self.environment.ids():
            owner = id.partition(".")[0]
            if not _COLLECTION.fullmatch(owner):
                continue
            held = self.environment.shard(id).held
            lost = [token for token in held if token not in known]
            commands += [Drop(self.environment.present(id, token)) for token in lost]
        if commands:
            self.environment.commit(*commands)

    def _watched(self) -> bool:
        """Whether someone waits for changes as they happen."""
        return bool(self._subscriptions) or any(item.kind == "sink" for item in self.catalog.state.items.values())

    def _ask_sources(self) -> None:
        for feeder in set(self._feeders.values()):
            feeder.ask()

    def _each_second(self) -> None:
        # Subscribers are told that time goes on; and what sources bring is forgotten as the timeline moves.
        if self._subscriptions or self._feeders:
            self.timeline.advance(self.timeline.now_ms)
        self.indexes.refresh(self.timeline.history)
