"""FROM CDC: a change stream, read into a collection, and what feeds that from it.

A source that keeps the times of its stream is complete as far as the stream is, and nobody else moves it. Others are on
the local timeline:

A poll is one commit at one local time: all updates of the stream's times that closed since the last one, how far
the stream was read, and the collection's frontier. So a time of the stream is visible as a whole or not at all, later
ones never before earlier ones, and a restart goes on from the last commit. Between polls, and while the stream cannot
be reached, local time goes on over it: who reads does not wait, and nothing is skipped.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

import structlog

from everview.adapter.secrets import masked, shown_arguments
from everview.adapter.stream_locations import StreamLocation, absolute, columns_in, schema_to_read
from everview.adapter.system.locations import location
from everview.background import Backoff, Loop
from everview.cdc.codec.contract import codec_for
from everview.cdc.errors import TransportFailed
from everview.cdc.source import BULK_BYTES, Source, SourceStatus, entry, forget, known
from everview.compute.functions.precision import is_rounded
from everview.compute.sql.errors import SqlError
from everview.errors import text_of
from everview.sources import contract
from everview.storage.contract import Command, GlobalId, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.storage.errors import Canceled, Fenced, UnknownId
from everview.timely.antichain import Antichain

POLL_MS, POLL_MS_MAX = 500, 86_400_000
SCHEMA_WAIT_S, SCHEMA_POLL_S = 3.0, 0.1
BACKOFF = Backoff(0.5, 30.0)
CLOSE_S = 30.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ChangeStream(contract.Spec):
    """A change stream by where it is; `shown` is the same without secrets."""

    location: StreamLocation = field(repr=False)
    poll_ms: int = POLL_MS
    shown: Mapping[str, str] = field(default_factory=dict)


class ChangeStreamKind(contract.SourceKind[ChangeStream]):
    """FROM CDC FILES and FROM CDC KAFKA."""

    options = ("poll_ms",)
    reaches = "a change stream"
    takes_columns = keeps_times = resettable = True

    def __init__(self, location: type[StreamLocation]) -> None:
        self.name, self._location = location.kind, location

    def look(self, given: contract.Given, pause: Callable[[float], object]) -> contract.Found[ChangeStream]:
        poll_ms = given.options.get("poll_ms", str(POLL_MS))
        if not poll_ms.isdigit() or not 1 <= int(poll_ms) <= POLL_MS_MAX:
            hint = "milliseconds, from 1 on"
            raise SqlError("22023", f'invalid value for POLL_MS: "{poll_ms}"', hint=hint)
        arguments = absolute(given.arguments)
        location = self._location.parse(arguments)
        columns = given.columns or _columns_of_stream(location, pause)
        for each in columns:
            if is_rounded(each.type if each.type.element is None else each.type.element):
                detail = "values come from the stream as they are, and are not rounded"
                raise SqlError("42P16", f'column "{each.name}" of a source cannot be {each.type}', detail=detail)
        schema = schema_to_read(columns)
        codec_for(".jsonl", schema)  # raises if data of some type cannot be in a stream
        found = location.schema()
        if found is not None:
            schema.check(found, "the stream")
        begins = location.begins() if given.keeps_times else 0
        spec = ChangeStream(self.name, location, int(poll_ms), shown_arguments(self.name, arguments))
        return contract.Found(spec, (contract.Table("", columns),), begins)

    def enter(self, id: GlobalId, outputs: Mapping[str, contract.Output]) -> list[Command]:
        return [entry(id, each.id, each.writer) for each in outputs.values()]

    def feeder(self, feeding: contract.Feeding[ChangeStream]) -> StreamFeeder:
        return StreamFeeder(feeding)

    def remembered(self, environment: Environment) -> list[GlobalId]:
        return known(environment)

    def forget(self, environment: Environment, id: GlobalId) -> None:
        forget(environment, id)

    def to_json(self, spec: ChangeStream) -> dict[str, str]:
        arguments, shown = json.dumps(spec.location.said()), json.dumps(spec.shown)
        return {"arguments": arguments, "shown": shown, "poll_ms": str(spec.poll_ms)}

    def from_json(self, kind: str, said: Mapping[str, str], timeline: contract.OwnTimeline | None) -> ChangeStream:
        location, shown = self._location.of(json.loads(said["arguments"])), json.loads(said["shown"])
        return ChangeStream(kind, location, int(said["poll_ms"]), shown, timeline=timeline)

    def shown(self, spec: ChangeStream, name_of: Callable[[GlobalId], str]) -> tuple[str, list[str]]:
        return location(spec.kind, spec.shown), [f"POLL_MS {spec.poll_ms}"]


def _columns_of_stream(location: StreamLocation, pause: Callable[[float], object]) -> tuple[contract.Column, ...]:
    """The columns that a stream says it has; a sink that was just made may not have written anything yet."""
    over = time.monotonic() + SCHEMA_WAIT_S
    while (found := location.schema()) is None:
        if not location.says_schema or time.monotonic() >= over:
            detail = "the stream is empty, or does not say its schema"
            hint = "CREATE SOURCE name (column type, …) FROM CDC …"
            raise SqlError("42P16", "the columns of the source are not known", detail=detail, hint=hint)
        pause(SCHEMA_POLL_S)
    return columns_in(found)


class StreamFeeder:
    """Feeds one source, in a thread of its own; without `now_ms`, at the times of the stream."""

    def __init__(self, feeding: contract.Feeding[ChangeStream], *, bulk_bytes: int = BULK_BYTES) -> None:
        self._environment, self._spec, self._now_ms = feeding.environment, feeding.spec, feeding.now_ms
        self._id, self._bulk_bytes, self._poll_s = feeding.id, bulk_bytes, feeding.spec.poll_ms / 1000
        (self._output,) = feeding.outputs.values()
        # Spark's tasks open files by their names, and look at nothing.
        self._spark = (lambda: None) if feeding.spec.location.confined else feeding.spark
        self._source: Source | None = None
        self._read: SourceStatus | None = None
        self._step_lock = threading.Lock()
        self._loop = Loop(
            f"everview-stream-{feeding.id}",
            self._step,
            backoff=Backoff(max(self._poll_s, BACKOFF.first_s), max(self._poll_s, BACKOFF.longest_s)),
            ends=(Canceled, Fenced, UnknownId),  # closed, taken over by another process, or dropped
            on_failure=lambda error, _: log.warning("source failed", source=feeding.name, error=masked(text_of(error))),
            on_wake=self.move_on,
        )

    def start(self) -> None:
        self._loop.start()

    def ask(self) -> None:
        """Someone waits for the present: let local time go on now; the stream is looked at when its time comes."""
        self._loop.wake()

    def close(self) -> None:
        self._loop.stop(CLOSE_S)
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def status(self) -> contract.Status:
        read, loop = self._read, self._loop.status
        error = None if loop.error is None else masked(text_of(loop.error))
        if error is None and read is not None:
            lasting = next((each for each in read.stalls if not each.curable), None)
            if lasting is not None:
                error = f"time {lasting.time} cannot close: {lasting.reason}"
                error += f" ({lasting.detail})" if lasting.detail else ""
            elif read.bad_records:
                error = f"{read.bad_records} records cannot be decoded"
        running = contract.ENDED if read is not None and read.frontier.empty else contract.RUNNING
        state = contract.STALLED if error is not None else contract.STARTING if read is None else running
        reading = (
            None if read is None else contract.Reading(*(getattr(read, each.name) for each in fields(contract.Reading)))
        )
        return contract.Status(state, error, reading, loop.retry_ms, loop.failures)

    def step(self) -> bool:
        """Poll once, and move on to the present; whether there may be more right now."""
        return self._loop.attempt() == 0.0

    def _step(self) -> float:
        with self._step_lock:
            at = None if self._now_ms is None else max(self._now_ms(), self._upper())
            try:
                if self._source is None:
                    self._source = self._opened()
                self._source.use(self._spark())
                more = self._source.poll(at)
                self._read = self._source.status
                return 0.0 if more else self._poll_s
            except (Canceled, Fenced, UnknownId):
                raise
            except Exception as error:
                if isinstance(error, TransportFailed):  # perhaps of Spark, and this process can do it as well
                    self._spark = lambda: None
                self._pass_over(at)
                raise

    def reset(self) -> None:
        """Read the stream from its beginning; what it says then becomes visible at once."""
        with self._step_lock:
            if self._source is None:
                self._source = self._opened()
            self._source.reset()

    def _opened(self) -> Source:
        schema = schema_to_read(self._output.columns)
        inlet = self._spec.location.inlet(schema)
        try:
            every_time = self._now_ms is None
            return Source(
                self._environment, self._id, inlet, schema, bulk_bytes=self._bulk_bytes, every_time=every_time
            )
        except BaseException:
            inlet.close()
            raise

    def move_on(self) -> None:
        """Move on to the present without a look at the stream."""
        if self._now_ms is None:
            return
        with self._step_lock:
            at = self._now_ms()
            if at < self._upper():
                return
            if self._source is None or self._loop.status.failures_in_a_row:
                self._pass_over(at)
            else:
                self._source.advance(at)

    def _upper(self) -> int:
        return self._environment.frontiers(self._output.id).upper.only

    def _pass_over(self, at: int | None) -> None:
        """Let time go on without the stream: whoever reads the source is not to wait for what may never come."""
        if at is None:
            return
        upper = self._upper()
        if upper <= at:
            writer = self._environment.present(self._output.id, self._output.writer)
            assert isinstance(writer, WriteCapability)
            self._environment.commit(UpdateAndDowngrade(writer, None, Antichain(at + 1)))
