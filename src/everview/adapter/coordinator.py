"""The coordinator: one environment open for sessions, with its catalog, its timeline and what keeps its views.

What it holds is made here and handed to those who use it; the work is done elsewhere. Opening puts everything back as
it was left: views go on from where they stood, and what was being made when the last process ended is removed.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everview.adapter.catalog.items import (
    Index,
    Item,
    MaterializedView,
    Part,
    Sink,
    Source,
    Subscription,
    Table,
    View,
    is_maintained,
)
from everview.adapter.catalog.store import CatalogStore
from everview.adapter.connections import Connections
from everview.adapter.durable import DurableSubscriptions
from everview.adapter.errors import INVALID_AUTHORIZATION, TOO_MANY_CONNECTIONS, UNDEFINED_DATABASE, sql_error
from everview.adapter.pacemaker import Dues, Pacemaker
from everview.adapter.peek import LOCAL_UPDATES_MAX, Peeks
from everview.adapter.planner import Planner
from everview.adapter.replacement import Replacements
from everview.adapter.sealing import Sealer
from everview.adapter.served_indexes import IndexLookups, ServedIndex
from everview.adapter.session import CoordinatorSession
from everview.adapter.sinks.manager import Sinks
from everview.adapter.sources.registry import SOURCES, kind_of
from everview.adapter.statement_context import StatementContext
from everview.adapter.stream_timeline import Timelines
from everview.adapter.system.relation import SessionInfo, SubscriptionInfo
from everview.adapter.timeline import CLOCK, Timeline
from everview.adapter.timestamps import Timestamps
from everview.adapter.wall_clock import JUMP_MAX_MS, ClockStatus, GuardedClock, TimeSource
from everview.closing import Closing
from everview.compute.capabilities import is_awake, is_errors_id
from everview.compute.contract import Maintenance
from everview.compute.engine.contract import Engine
from everview.compute.engine.local import LocalEngine
from everview.compute.ir.scalar import Scalar
from everview.compute.maintenance import ScheduledDataflows
from everview.compute.sql.errors import SqlError
from everview.errors import EverviewError
from everview.recursion import deepen
from everview.sources import feeder as sources
from everview.sources.contract import Arrival, Column, Feeder, Feeding, Headed, Output, Parting, Resettable, Status
from everview.storage.contract import Command, Drop, Frontiers, GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import Canceled, Corruption, Fenced, StorageError, UnknownId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from everview.compute.engine.spark.session import Spark

SESSIONS_MAX = 1_000
SUBSCRIPTIONS_MAX = 1_000
_COLLECTION = re.compile(r"[ua][0-9]+")  # of items, and shared arrangements


class Coordinator(Closing):
    """Everything of one environment; see `contract.Adapter`.

    `engine` is for views and for large reads, and may be one that is still starting; without it everything is computed
    in this process. `spark` are the sessions that it has, for deliveries by Spark's tasks. `clock` is taken at its
    word if it is a function; the machine's own is not where it jumps by more than `max_clock_jump_ms`.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        spark: Future[Spark] | None = None,
        engine: Engine | None = None,
        clock: Callable[[], int] | TimeSource | None = None,
        max_clock_jump_ms: int = JUMP_MAX_MS,
        maintenance: Maintenance | None = None,
        local_updates_max: int = LOCAL_UPDATES_MAX,
        ticking: bool = True,
        sealer: Sealer | None = None,
    ) -> None:
        deepen()
        self.environment = environment
        environment.inspect()  # from here on, damaged collections are known
        self._spark = spark
        self._engine = engine
        self._guard: GuardedClock | None = None
        if clock is None or isinstance(clock, TimeSource):
            clock = self._guard = GuardedClock(environment, lambda: environment.clock(CLOCK), clock, max_clock_jump_ms)
        self.timeline = Timeline(environment, clock)
        sealer = sealer or Sealer()
        self.catalog = CatalogStore(environment, lambda: self.timeline.now_ms, sealer)
        self.catalog.seal()
        self.maintenance = maintenance or ScheduledDataflows(environment, self._engine or LocalEngine())
        self.timelines = Timelines(environment, self.timeline, lambda: self.catalog.state)
        self.timestamps = Timestamps(environment, self.timelines, self.maintenance, self.ask_source, self.stopped)
        self._feeders: dict[GlobalId, Feeder] = {}
        self._parting: dict[GlobalId, Feeder] = {}  # of sources that are being dropped
        self.planner = Planner()
        self.indexes = IndexLookups()
        self.peeks = Peeks(environment, self.indexes, self, lambda: self._engine, local_updates_max=local_updates_max)
        self.connections = Connections(sealer, lambda: self.catalog.state)
        self.sinks = Sinks(environment, self.peeks.check_errors, self.bulk_spark, self.connections.config_of)
        self.durable = DurableSubscriptions(environment, self.timelines)
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
            Dues(self.maintenance, self.timeline.expiring, self._is_own),
            watched=self._watched,
            ask=self._ask_sources,
            each_second=self._each_second,
        )
        if self._guard is not None:
            self._guard.keep_note(now=True)
        if ticking:
            self.pacemaker.start()

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        clock: Callable[[], int] | TimeSource | None = None,
        storage: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Coordinator:
        """Open the environment in a folder. A missing folder is made.

        `storage` are options of `Environment.open`, and the others are those of a coordinator.
        """
        environment = Environment.open(path, **(storage or {}))
        try:
            return cls(environment, clock=clock, **{"sealer": Sealer(Path(path)), **options})
        except BaseException:
            environment.close()
            raise

    # The contract

    def connect(self, user: str, database: str, settings: Mapping[str, str]) -> CoordinatorSession:
        state = self.catalog.state
        role = state.role(user)
        if role is None or not role.login:
            why = "does not exist" if role is None else "is not permitted to log in"
            raise SqlError(INVALID_AUTHORIZATION, f'role "{user}" {why}')
        if state.database(database) is None:
            raise SqlError(UNDEFINED_DATABASE, f'database "{database}" does not exist')
        if self.environment.fenced is not None:
            raise sql_error(self.environment.fenced)
        with self._lock:
            if self._closed.is_set():
                raise SqlError("57P03", "the database system is shutting down")
            if len(self._sessions) >= SESSIONS_MAX:
                raise SqlError(TOO_MANY_CONNECTIONS, f"there are {SESSIONS_MAX} sessions already")
            number, power = next(self._numbers), role.superuser
            session = CoordinatorSession(self, number, user, database, settings, superuser=power)
            self._sessions[session.number] = session
        return session

    def secret(self, user: str) -> str | None:
        """The SCRAM verifier of a role."""
        role = self.catalog.state.role(user)
        return None if role is None else role.verifier

    def is_superuser(self, user: str) -> bool:
        role = self.catalog.state.role(user)
        return role is not None and role.superuser

    def ready(self) -> bool:
        if self._closed.is_set() or self.environment.fenced is not None:
            return False
        return self._spark is None or (self._spark.done() and self._spark.exception() is None)

    def close(self) -> None:
        if self._closed.is_set():
            return
        self._closed.set()
        for session in list(self._sessions.values()):
            session.close()
        self.replacements.close()
        for feeder in set(self._feeders.values()):
            feeder.close()
        self.sinks.close()
        self.connections.close()
        self.maintenance.close()
        self.pacemaker.close()
        if self._guard is not None:
            self._guard.keep_note(now=True)
        self.environment.close()

    # For sessions

    def disconnected(self, session: CoordinatorSession) -> None:
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
        with self._lock:
            self._subscriptions.pop(number, None)

    def serve(self, item: Index, on: Item, keys: Sequence[Scalar]) -> None:
        collection = item.id if item.reader is not None else on.id
        self.indexes.add(item.id, ServedIndex(self.environment, collection, keys, on.stored_types))

    def expire(self, item: Table) -> None:
        """Let the rows of a table leave by themselves as its TTL says, or stay if it has none."""
        if item.ttl is None:
            self.timeline.expiring.remove(item.id)
        else:
            self.timeline.expiring.add(item)
            self.environment.wake()

    def serve_again(self, on: Item) -> None:
        """The columns of a view have changed: its indexes are to have them too."""
        catalog, around = self.catalog.state, self.stored_context()
        for item in catalog.indexes_on(on.id):
            keys = self.planner.keys(catalog, on, item.keys, around, stored=True)
            self.indexes.remove(item.id)
            self.serve(item, on, keys)

    def stored_context(self) -> StatementContext:
        """The context of stored queries, in which all names are in full."""
        return StatementContext(self.catalog.state, "everview", "everview", ("public",))

    def feed(self, item: Source) -> None:
        if isinstance(item.spec, Part):
            return
        sources = self.catalog.state.of(Source)
        parts = {each.spec.table: each for each in sources if isinstance(each.spec, Part) and each.whole == item.id}
        outputs = {
            name: Output(each.id, each.writer or "", tuple(Column(c.name, c.type, c.nullable) for c in each.columns))
            for name, each in (parts or {"": item}).items()
        }
        now_ms = self._now_to_feed if item.timeline is None else None
        connection = kind_of(item.spec).connection(item.spec)
        feeding = Feeding(
            self.environment,
            item.id,
            item.name,
            item.spec,
            outputs,
            now_ms,
            self.bulk_spark,
            lambda: "" if connection is None else self.connections.for_source(self.connections.named(connection)),
            item.paused,
        )
        feeder = kind_of(item.spec).feeder(feeding)
        for id in (item.id, *(each.id for each in parts.values())):
            self._feeders[id] = feeder
        feeder.start()

    def feed_again(self, item: Source) -> None:
        """Feed a source anew: how it is reached has changed."""
        self.stop_feeding(item)
        self.feed(item)

    def _now_to_feed(self) -> int:
        """The present, or what the timeline has closed already if that is later."""
        return max(self.timeline.now_ms, self.timeline.upper - 1)

    def stop_feeding(self, item: Item) -> None:
        """Stop feeding a source, or delivering by a sink."""
        self.sinks.halt(item)
        feeder = self._feeders.pop(item.id, None)
        if feeder is not None:
            feeder.close()
            if item.id == item.whole:
                self._parting[item.id] = feeder

    def bulk_spark(self) -> SparkSession | None:
        """Spark's session for much at once, if it has started."""
        spark = self._spark
        return spark.result().bulk if spark is not None and self.ready() else None

    def ask_source(self, id: GlobalId) -> None:
        """Let a source, if it is one, become complete up to the present."""
        feeder = self._feeders.get(id)
        if feeder is not None:
            feeder.ask()

    def stopped(self, id: GlobalId) -> EverviewError | None:
        """Why a table of a source is complete no further than it is, if it cannot go on."""
        feeder, item = self._feeders.get(id), self.catalog.state.items.get(id)
        if not isinstance(feeder, sources.Feeder) or not isinstance(item, Source) or not isinstance(item.spec, Part):
            return None
        return feeder.stopped(item.spec.table)

    def dropped(self, item: Item) -> str | None:
        """An item is no longer in the catalog; tells what of it could not be removed elsewhere."""
        if isinstance(item, Index):
            self.indexes.remove(item.id)
        self.timeline.expiring.remove(item.id)
        if is_maintained(item):
            self.maintenance.release(item.id)
        self.replacements.gone(item.id)
        if isinstance(item, Subscription):
            self.durable.dropped(item)
        left = self.sinks.dropped(item)
        if isinstance(parting := self._parting.pop(item.id, None), Parting):
            left = parting.part() or left
        if isinstance(item, Source) and not isinstance(item.spec, Part):
            kind_of(item.spec).forget(self.environment, item.id)
        for id in list(self.environment.damaged):
            if id.partition(".")[0] == item.id:
                self.environment.abandon(id)
        for id in self.maintenance.unread(list(self.environment.damaged)):
            self.environment.abandon(id)
        self.environment.wake()
        return left

    def release(self, item: Item) -> list[Command]:
        """The commands that let go of what the catalog holds of an item's collection."""
        if item.id in self.catalog.state.damaged:
            return self._release_damaged(item)
        if isinstance(item, Sink):
            return self.sinks.release(item)
        if isinstance(item, Subscription):
            return self.durable.release(item)
        held = self.environment.shard(item.id).held if item.tokens else ()
        return [Drop(self.environment.present(item.id, token)) for token in item.tokens if token in held]

    def _release_damaged(self, item: Item) -> list[Command]:
        """The same of a damaged item, as far as it is known; the rest is removed later."""
        commands: list[Command] = []
        for id in self.environment.ids():
            if id.partition(".")[0] == item.id:
                held = self.environment.shard(id).held
                commands += [Drop(self.environment.present(id, token)) for token in held]
        with suppress(StorageError, ValueError, LookupError, TypeError):
            if isinstance(item, Sink):
                commands += self.sinks.release(item)
            elif isinstance(item, Subscription):
                commands += self.durable.release(item)
        return commands

    def discard(self, id: GlobalId) -> None:
        """Stop maintaining what no catalog knows of: the view of a subscription."""
        try:
            self.maintenance.abandon(id)
            self.maintenance.release(id)
        except StorageError:
            if not self._closed.is_set():  # whoever opens the environment next removes it
                raise

    # What the system tells about itself

    @property
    def now_ms(self) -> int:
        return self.timeline.now_ms

    @property
    def clock_event(self) -> int:
        """The number of the latest trouble with the wall clock, if there is any now; else 0."""
        return 0 if self._guard is None else self._guard.event

    @property
    def clock_status(self) -> ClockStatus:
        """How the wall clock is doing."""
        return ClockStatus() if self._guard is None else self._guard.status

    def warnings(self) -> list[str]:
        trouble = self.clock_status.trouble
        damaged = [f"{error.message}: {error.detail}" for error in self.catalog.state.damaged.values() if error.detail]
        clear = [
            f"passwords of sink {name} are in the catalog in clear, since there is no key to seal them with"
            for name in self.catalog.in_clear()
        ]
        return [*([] if trouble is None else [trouble]), *self.catalog.damage, *damaged, *clear]

    def frontiers(self, id: GlobalId) -> Frontiers | None:
        try:
            return self.environment.frontiers(id)
        except (UnknownId, Corruption):
            return None

    def hydrated(self, item: Item) -> bool:
        """Whether a maintained collection has been computed for the first time."""
        if item.reader is None:
            return True
        frontiers = self.frontiers(item.id)
        if frontiers is None or frontiers.upper.empty:
            return True
        return frontiers.upper.only > self.environment.shard(item.id).spec.initial

    def source_status(self, id: GlobalId) -> Status | None:
        """Where a source that reads a change stream stands."""
        feeder = self._feeders.get(id)
        return None if feeder is None else feeder.status()

    def arrival(self, id: GlobalId) -> Arrival | None:
        """Ask upstream of a source how far it goes. None if that cannot be asked."""
        feeder = self._feeders.get(id)
        return feeder.arrival() if isinstance(feeder, Headed) else None

    def reset_source(self, id: GlobalId) -> None:
        """Let a source read everything again."""
        feeder = self._feeders.get(id)
        assert isinstance(feeder, Resettable)
        feeder.reset()

    def sessions(self) -> list[SessionInfo]:
        return [session.info for session in list(self._sessions.values())]

    def subscriptions(self) -> list[SubscriptionInfo]:
        return list(self._subscriptions.values())

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
        self._look_for_damage()
        for item in self._sound_items():
            with self._alone(item):
                match item:
                    case Table(ttl=(_, _)):
                        self.expire(item)
                    case MaterializedView() | Index():
                        self._resume_maintained(item)
                    case Subscription():
                        self.durable.resume(item)
                    case Sink():
                        self.sinks.tokens([item])
        for id in self.catalog.state.damaged:
            self.maintenance.abandon(id)  # it was not known yet when this was resumed
        self._remove_leftovers()
        for item in self._sound_items():
            if isinstance(item, MaterializedView) and item.staged is not None and item.staged.automatic:
                self.replacements.apply_when_hydrated(item)
        for item in self._sound_items():
            if isinstance(item, Source):
                with self._alone(item):
                    self.feed(item)
        self.sinks.resume(self.catalog.state)

    def _resume_maintained(self, item: MaterializedView | Index) -> None:
        catalog, around = self.catalog.state, self.stored_context()
        if isinstance(item, MaterializedView):
            self.maintenance.resume(item.id, self.planner.maintained(item, around))
            return
        on = catalog.items[item.on]
        if isinstance(on, View) and item.reader is not None:
            self.maintenance.resume(item.id, self.planner.maintained(on, around))
        self.serve(item, on, self.planner.keys(catalog, on, item.keys, around, stored=True))

    def _look_for_damage(self) -> None:
        """Keep items out of reach whose collections are damaged or missing."""
        for id, error in self.environment.inspect().items():
            owner = id.partition(".")[0]
            if owner in self.catalog.state.items:
                self.catalog.mark_damaged(owner, error)
        for item in self._sound_items():
            if item.reader is not None and self.frontiers(item.id) is None:
                self.catalog.mark_damaged(item.id, Corruption(f"collection {item.id} is missing"))

    def _sound_items(self) -> Iterator[Item]:
        """The items that are not known to be damaged, one by one."""
        for id, item in self.catalog.state.items.items():
            if id not in self.catalog.state.damaged:
                yield item

    @contextmanager
    def _alone(self, item: Item) -> Iterator[None]:
        """What fails inside fails for this item, and the others go on."""
        try:
            yield
        except (Fenced, Canceled):
            raise
        except Exception as error:
            self.catalog.mark_damaged(item.id, error)

    def _remove_leftovers(self) -> None:
        """Collections that are in no catalog, and capabilities that nobody knows of."""
        if self.catalog.state.damaged or self.catalog.damage or self.environment.damaged:
            return  # what looks lost may belong to what cannot be read
        items = self.catalog.state.items
        known = self.maintenance.tokens() | self.sinks.tokens(items.values()) | self.durable.tokens()
        for kind in SOURCES.values():
            for id in kind.remembered(self.environment):
                if id not in items:  # the process ended before it could
                    kind.forget(self.environment, id)
        for item in items.values():
            known |= set(item.tokens)
        commands: list[Command] = [*self.maintenance.leftovers()]
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
        return bool(self._subscriptions) or bool(self.catalog.state.of(Sink))

    def _ask_sources(self) -> None:
        for feeder in set(self._feeders.values()):
            feeder.ask()

    def _each_second(self) -> None:
        self.environment.renew()
        # Subscribers are told that time goes on; and what sources bring is forgotten as the timeline moves.
        if self._subscriptions or self._feeders:
            self.timeline.advance(max(self.timeline.now_ms, self.timeline.upper))
        if self._guard is not None:
            self._guard()  # so that a jump is noticed, and said, while nobody asks for the time
            self._guard.keep_note()
        self.timeline.holds.pin()
        if self.catalog.lock.acquire(blocking=False):  # else the next second will do
            try:
                self.durable.lapse(self.catalog.state.of(Subscription))
            finally:
                self.catalog.lock.release()
        for each in self.timelines.streams():
            each.forget()
            each.holds.pin()
        self.indexes.refresh(lambda id: self.timelines.of([id]).history)

    def _is_own(self, id: GlobalId) -> bool:
        """Whether a view is on the environment's timeline. The catalog does not know the timelines of subscriptions."""
        return self.timelines.of(self.maintenance.inputs(id)) is self.timeline
