"""Sinks that are change streams: a thread writes down what changes, as far as the collection is complete.

Whatever was written before a failure is written again, which a change stream is made for. While nothing changes,
progress is told once in a while only: a file for each moment in which nothing happened would help nobody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from everview.adapter.catalog.items import Item
from everview.adapter.catalog.items import Sink as SinkItem
from everview.adapter.catalog.specs import StreamSink
from everview.adapter.secrets import masked
from everview.adapter.sinks import contract
from everview.adapter.sinks.definition import named
from everview.adapter.stream_locations import SparkWhenThere, StreamLocation, schema_of
from everview.background import Backoff, Loop, LoopStatus
from everview.cdc.compaction import Upkeep
from everview.cdc.errors import InvalidUse, TransportFailed
from everview.cdc.files import FolderOutlet
from everview.cdc.reader import START
from everview.cdc.sink import BULK_BYTES, Sink, let_go
from everview.cdc.times import bound_of
from everview.compute.functions.datetime_input import duration_ms
from everview.compute.sql.errors import SqlError
from everview.errors import EverviewError, text_of
from everview.flow.source import Readable
from everview.storage.contract import Command
from everview.storage.environment import Environment
from everview.storage.errors import Canceled, Fenced, UnknownId
from everview.storage.shard import FOREVER, from_frontier

RETAIN = "retain history"
WAIT_S = 0.5
HALT_S = 10.0
BACKOFF = Backoff(0.5, 60.0)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream is written: at most so often, and while nothing changes, so seldom."""

    interval_ms: int = 0
    heartbeat_s: float = 30.0
    retain_ms: int | None = None  # of the history in a folder; None: all of it

    @classmethod
    def parse(cls, location: StreamLocation, given: Mapping[str, str]) -> StreamOptions:
        found: dict[str, float] = {"interval_ms": location.interval_ms, "heartbeat_s": 30.0}
        retain_ms: int | None = None
        for name, text in given.items():
            if name == RETAIN:
                retain_ms = _retain_ms(location, text)
                continue
            if name not in found:
                hint = "INTERVAL_MS, HEARTBEAT_S, RETAIN HISTORY and JOIN exist"
                raise InvalidUse(f'a change stream has no option "{name}"', hint=hint)
            try:
                found[name] = float(text)
            except ValueError:
                found[name] = -1
            if not 0 <= found[name] < 1 << 31:
                raise InvalidUse(f'invalid value for {name.upper()}: "{text}"')
        return cls(int(found["interval_ms"]), found["heartbeat_s"], retain_ms)


def _retain_ms(location: StreamLocation, text: str) -> int:
    location.check_forgets()
    try:
        return duration_ms(text)
    except ValueError as error:
        raise InvalidUse(f'invalid RETAIN HISTORY: "{text}"', detail=str(error)) from error


class StreamedDelivery:
    """A sink that is a change stream."""

    def __init__(
        self,
        environment: Environment,
        item: SinkItem,
        collection: Item,
        readable: Readable,
        *,
        spark: SparkWhenThere = lambda: None,
        bulk_bytes: int = BULK_BYTES,
    ) -> None:
        self._environment, self._item, self._collection, self._readable = environment, item, collection, readable
        self._spark, self._bulk_bytes = spark, bulk_bytes
        assert isinstance(item.spec, StreamSink)
        spec = item.spec
        self._location, self._options = spec.location, StreamOptions.parse(spec.location, spec.options)
        self._lock = threading.Lock()
        self._loop: Loop | None = None  # None while it is halted
        self._position = self._written = 0
        self._rows = self._steps = self._failures = 0
        self._unreadable: SqlError | None = None  # why the collection has no contents now

    def start(self) -> None:
        with self._lock:
            if self._loop is not None and self._loop.running:
                return
            self._loop = loop = Loop(
                f"everview-stream-{self._item.id}",
                lambda: self._deliver(loop),
                backoff=BACKOFF,
                ends=(Canceled, UnknownId, Fenced),  # the environment was closed, the collection dropped, or taken over
                on_failure=self._note_failure,
                on_stop=self._environment.wake,
            )
            loop.start()

    def halt(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.stop(HALT_S)

    def status(self) -> contract.DeliveryStatus:
        upper = from_frontier(self._environment.frontiers(self._collection.id).upper)
        loop = self._loop
        going = LoopStatus() if loop is None else loop.status
        fenced = isinstance(going.ended_by, Fenced)
        failure = going.ended_by if fenced else going.error or self._unreadable
        error = None if failure is None else self._shown(failure)
        if loop is None:
            state = contract.PAUSED
        elif error is not None:
            state = contract.FENCED if fenced else contract.STALLED
        else:
            state = (
                contract.ENDED if self._written == FOREVER else contract.RUNNING if self._written else contract.STARTING
            )
        frontier = self._written if 0 < self._written < FOREVER else None
        late = max(0, upper - self._position) if self._position else None
        split = contract.SplitStatus("", frontier, late, self._steps, self._rows, self._failures, error, going.retry_ms)
        return contract.DeliveryStatus(state, frontier, late, error, (split,), (split.rows,))

    def let_go(self) -> list[Command]:
        return let_go(self._environment, self._item.id)

    def forget(self) -> str | None:
        return None

    # The thread

    def _note_failure(self, error: Exception, pause_s: float) -> None:
        self._failures += 1
        if isinstance(error, TransportFailed):  # perhaps of Spark, and this process can do it as well
            self._spark = lambda: None
        log.warning("change stream failed", sink=self._item.name, error=self._shown(error))

    def _deliver(self, loop: Loop) -> None:
        """Write until it is time to stop, or something fails."""
        id = self._collection.id
        schema = schema_of(self._collection.columns)
        outlet = self._location.outlet(schema)
        bulk = self._location.bulk_writer(schema, self._collection.places, outlet, self._spark())
        others = self._location.others(schema, outlet)
        upkeep = self._location.upkeep(schema, self._options.retain_ms)
        sink = Sink(self._environment, self._item.id, outlet, bulk=bulk, bulk_bytes=self._bulk_bytes, others=others)
        self._note(sink)
        wrote_s = time.monotonic() - self._options.interval_ms / 1000
        seen = 0
        while not loop.stopping:
            self._environment.wait(lambda: loop.stopping or self._upper(id) > seen, WAIT_S)  # noqa: B023
            loop.pause(wrote_s + self._options.interval_ms / 1000 - time.monotonic())
            if loop.stopping:
                return
            seen = self._upper(id)
            if seen > 0 and not self._can_be_read(id, seen - 1):
                continue
            if not sink.due() and time.monotonic() - wrote_s < self._options.heartbeat_s:
                if self._written:
                    self._position, self._unreadable = seen, None
                    loop.recovered()
                continue
            if sink.step(seen):
                self._steps += 1
                wrote_s = time.monotonic()
                loop.progressed()
            self._note(sink)
            self._unreadable = None
            loop.recovered()
            if upkeep is not None and isinstance(outlet, FolderOutlet):
                self._look_after(upkeep, outlet)

    def _can_be_read(self, id: str, at: int) -> bool:
        """Whether the collection has contents at a time; a view that is in error is waited for."""
        try:
            self._readable(id, at)
        except SqlError as error:
            self._unreadable = error
            return False
        return True

    def _look_after(self, upkeep: Upkeep, outlet: FolderOutlet) -> None:
        """Merge and forget files, if it is time; what fails there keeps nothing from being written."""
        try:
            done = upkeep.after(outlet.files_written, self._written)
        except EverviewError as error:
            log.warning("change stream not compacted", sink=self._item.name, error=self._shown(error))
            return
        if done is not None and done.removed:
            log.info("change stream compacted", sink=self._item.name, written=done.written, removed=done.removed)

    def _upper(self, id: str) -> int:
        """As far as the collection is complete and can be read."""
        found = self._environment.frontiers(id)
        upper = from_frontier(found.upper)
        return upper if upper > from_frontier(found.since) else 0

    def _note(self, sink: Sink) -> None:
        found = sink.status
        written = bound_of(found.frontier)
        self._written = 0 if found.frontier == START else FOREVER if written is None else written
        self._position, self._rows = self._written, found.updates_total

    def _shown(self, error: Exception) -> str:
        return masked(named(text_of(error), [self._collection]))
