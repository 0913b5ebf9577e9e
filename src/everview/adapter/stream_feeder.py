"""Feeds a source from a change stream: polls it, and makes what has closed visible.

A source that keeps the times of its stream is complete as far as the stream is, and nobody else moves it. Others are on
the local timeline:

A poll is one commit at one local time: all updates of the stream's times that closed since the last one, how far
the stream was read, and the collection's frontier. So a time of the stream is visible as a whole or not at all, later
ones never before earlier ones, and a restart goes on from the last commit. Between polls, and while the stream cannot
be reached, local time goes on over it: who reads does not wait, and nothing is skipped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from everview.adapter.catalog.items import Source as SourceItem
from everview.adapter.catalog.specs import ChangeStream
from everview.adapter.secrets import masked
from everview.adapter.sinks.contract import ENDED, RUNNING, STALLED, STARTING
from everview.adapter.stream_places import SparkWhenThere, inlet_of, is_confined, schema_to_read
from everview.background import Backoff, Loop
from everview.cdc.errors import TransportFailed
from everview.cdc.source import BULK_BYTES, Source, SourceStatus
from everview.errors import text_of
from everview.storage.contract import UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.storage.errors import Canceled, Fenced, UnknownId
from everview.timely.antichain import Antichain

POLL_MS = 500
BACKOFF = Backoff(0.5, 30.0)
CLOSE_S = 30.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """A source at one instant: what it does, why it cannot and when that is tried again, and how far it has read."""

    state: str
    error: str | None
    read: SourceStatus | None
    retry_ms: int | None = None
    failures: int = 0  # since it was opened


class StreamFeeder:
    """Feeds one source, in a thread of its own; without `now_ms`, at the times of the stream."""

    def __init__(
        self,
        environment: Environment,
        item: SourceItem,
        spec: ChangeStream,
        *,
        now_ms: Callable[[], int] | None,
        spark: SparkWhenThere = lambda: None,
        bulk_bytes: int = BULK_BYTES,
    ) -> None:
        self._environment, self._item, self._spec = environment, item, spec
        self._now_ms, self._poll_s = now_ms, spec.poll_ms / 1000
        # Spark's tasks open files by their names, and look at nothing.
        self._spark, self._bulk_bytes = (lambda: None) if is_confined(spec.arguments) else spark, bulk_bytes
        self._source: Source | None = None
        self._read: SourceStatus | None = None
        self._step_lock = threading.Lock()
        self._loop = Loop(
            f"everview-stream-{item.id}",
            self._step,
            backoff=Backoff(max(self._poll_s, BACKOFF.first_s), max(self._poll_s, BACKOFF.longest_s)),
            ends=(Canceled, Fenced, UnknownId),  # closed, taken over by another process, or dropped
            on_failure=lambda error, _: log.warning("source failed", source=item.name, error=masked(text_of(error))),
            on_wake=self.move_on,
        )

    def start(self) -> None:
        """Begin to feed."""
        self._loop.start()

    def ask(self) -> None:
        """Someone waits for the present: let local time go on now; the stream is looked at when its time comes."""
        self._loop.wake()

    def close(self) -> None:
        """Feed no longer, and let go of the stream."""
        self._loop.stop(CLOSE_S)
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def status(self) -> StreamStatus:
        """Where it stands."""
        read, loop = self._read, self._loop.status
        error = None if loop.error is None else masked(text_of(loop.error))
        if error is None and read is not None:
            lasting = next((each for each in read.stalls if not each.curable), None)
            if lasting is not None:
                error = f"time {lasting.time} cannot close: {lasting.reason}"
                error += f" ({lasting.detail})" if lasting.detail else ""
            elif read.bad_records:
                error = f"{read.bad_records} records cannot be decoded"
        running = ENDED if read is not None and read.frontier.empty else RUNNING
        state = STALLED if error is not None else STARTING if read is None else running
        return StreamStatus(state, error, read, loop.retry_ms, loop.failures)

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
        schema = schema_to_read(self._item.columns)
        inlet = inlet_of(self._spec.kind, self._spec.arguments, schema)
        try:
            every_time = self._now_ms is None
            return Source(
                self._environment, self._item.id, inlet, schema, bulk_bytes=self._bulk_bytes, every_time=every_time
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
        return self._environment.frontiers(self._item.id).upper.only

    def _pass_over(self, at: int | None) -> None:
        """Let time go on without the stream: whoever reads the source is not to wait for what may never come."""
        if at is None:
            return
        upper = self._upper()
        if upper <= at:
            writer = self._environment.present(self._item.id, self._item.writer or "")
            assert isinstance(writer, WriteCapability)
            self._environment.commit(UpdateAndDowngrade(writer, None, Antichain(at + 1)))
