"""Splits as Spark tasks: one round of transactions, a task for each range, for large deliveries.

The process that owns the environment opens the ranges, reads their changes and commits the recovery log; executors run
the conversations with the endpoint, by the same code as everywhere, up to where the recovery log has to commit. What
they staged is applied when the ranges are acknowledged after that commit. Only the DataFrame surface is used.
Executors need `everview`, the connector's library and a way to the endpoint.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from everview.compute.engine.spark.jobs import jobs_of_run
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import Binding, Spec
from everview.flow.drivers.contract import Driver
from everview.flow.drivers.registry import open_driver
from everview.flow.errors import DriverFailed
from everview.flow.fencing import OwnedRange
from everview.flow.keyrange import KeyRange, check_partition
from everview.flow.lineage import Owner
from everview.flow.protocol import StateUpdate
from everview.flow.runtime import Delivery, Limits, Task
from everview.flow.worker import WAIT_S, Runner, WorkerStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAYLOAD_BYTES_MAX = 1 << 30  # of one binding's updates in one split
_INPUT = pa.schema([("split", pa.int32()), ("payloads", pa.list_(pa.binary()))])


@dataclass(frozen=True)
class Round:
    """The outcome of a round: the time that all ranges reached, and the documents stored, by range and binding."""

    frontier: int
    stored_by: Mapping[KeyRange, Sequence[int]]


@dataclass(frozen=True)
class _Job:
    """What an executor needs to know of its range."""

    spec: Spec
    row: OwnedRange
    position: Checkpoint
    end: Checkpoint
    stall_s: float
    owner: Owner


class _Captured(Exception):
    """The conversation has come to where the recovery log commits."""


class _CapturingLog:
    """Stands for the recovery log at an executor: it hands out the row and takes the commit down."""

    def __init__(self, row: OwnedRange, owner: Owner) -> None:
        self._row, self._owner = row, owner
        self.lineage = owner.lineage
        self.opening = contextlib.nullcontext()
        self.taken: tuple[Checkpoint, list[StateUpdate]] | None = None
        self._saved: list[StateUpdate] = []

    def open(self, range: KeyRange, held: OwnedRange | None = None) -> OwnedRange:
        return self._row

    def intend(self, row: OwnedRange, intent: Checkpoint) -> OwnedRange:
        return row  # noted before the round

    def check(self, row: OwnedRange) -> None:
        return None

    def owner(self, collections: Any, row: OwnedRange | None = None) -> Owner:
        return self._owner

    def check_lineage(self, row: OwnedRange, found: Checkpoint, collections: Any) -> None:
        return None  # checked before the round

    def save(self, row: OwnedRange, updates: Sequence[StateUpdate]) -> OwnedRange:
        self._saved += updates  # before the stores of a transaction that is committed or not in this round
        return row

    def commit_together(
        self,
        rows: Sequence[tuple[OwnedRange, Checkpoint, Checkpoint | None]],
        updates: Sequence[StateUpdate],
        also: Any = None,
    ) -> list[OwnedRange]:
        ((_, checkpoint, _),) = rows
        self.taken = checkpoint, [*self._saved, *updates]
        raise _Captured


class _Given:
    """Stands for the collections at an executor: the updates that were sent along."""

    def __init__(self, end: int, bindings: Sequence[Binding], tables: list[pa.Table]) -> None:
        self._end, self._bindings, self._tables = end, bindings, tables

    @property
    def upper(self) -> int:
        return self._end

    def interval_end(self, checkpoint: Checkpoint) -> int:
        return self._end

    def read(self, binding: Binding, checkpoint: Checkpoint, end: Checkpoint) -> pa.Table:
        return self._tables[self._bindings.index(binding)]

    def passes(self, binding: Binding, checkpoint: Checkpoint, end: Checkpoint) -> Iterator[pa.Table]:
        yield self.read(binding, checkpoint, end)


class Rounds:
    """The ranges of a materialization, taken from time to time together, each by a task of a Spark job.

    After a round the ranges are opened here, for what was committed to be applied; its tasks have opened them, too. But
    that is done only while nobody else has opened them, so that whoever takes over is left alone.
    """

    def __init__(self, driver: Driver, spec: Spec, ranges: Sequence[KeyRange], delivery: Delivery) -> None:
        self.ranges = check_partition(ranges)
        self._driver, self._spec, self._delivery = driver, spec, delivery
        self._source, self._log, self._stall_s = delivery.source, delivery.log, delivery.limits.stall_s
        self._rows: dict[KeyRange, OwnedRange] = {}
        self._at: dict[KeyRange, Checkpoint] = {}  # of ranges that are settled, where they are

    def open(self) -> Checkpoint:
        """Take all ranges over, with what was committed and not yet applied; gives where they are."""
        self._at = {range: self._settled(range) for range in self.ranges}
        return Checkpoint.merged(self._at.values())

    def run(self, spark: SparkSession, end: int) -> Round:
        """Bring all ranges to a time, each in one transaction of a Spark task; FencedOff if they are no longer ours."""
        repeatable = self._delivery.repeatable
        jobs, payloads = [], []
        for number, range in enumerate(self.ranges):
            position = self._at.pop(range, None) or self._settled(range)
            row = self._rows[range]
            if self._driver.foreign:
                row = replace(row, state=self._log.state())  # others may have changed it since
            target = Checkpoint.at(range, max(end, position.highest))
            if repeatable and row.intent is not None:
                target = row.intent
            if repeatable:
                row = self._log.intend(row, target)
            self._log.check(row)
            owner = self._log.owner([each.collection for each in self._spec.bindings], row)
            jobs.append(_Job(self._spec, row, position, target, self._stall_s, owner))
            updates = [_payload(self._source.read(binding, position, target)) for binding in self._spec.bindings]
            payloads.append({"split": number, "payloads": updates})
        stored, failures = self._committed(jobs, _answers(spark, self._driver, jobs, payloads))
        self.open()
        if failures:
            raise DriverFailed(f"{len(failures)} of {len(jobs)} splits failed", detail="; ".join(failures))
        return Round(min(job.end.lowest for job in jobs), stored)

    def _committed(
        self, jobs: list[_Job], answers: list[dict[str, Any]]
    ) -> tuple[dict[KeyRange, Sequence[int]], list[str]]:
        """Commit the tasks' transactions to the log. Gives what each range stored, and the failures."""
        stored: dict[KeyRange, Sequence[int]] = {}
        failures = []
        for each in answers:
            job = jobs[each["split"]]
            if each["error"] is not None:
                failures.append(f"{job.row.range}: {self._driver.hide(each['error'])}")
                continue
            updates = [StateUpdate(*state) for state in each["states"]]
            done = [(job.row, Checkpoint.decode(each["checkpoint"]), None)]
            self._log.commit_together(done, updates, self._delivery.also)
            stored[job.row.range] = each["stored"]
        return stored, failures

    def _settled(self, range: KeyRange) -> Checkpoint:
        """Open a range and wait until its last transaction is applied. Gives its position."""
        task = Task(self._spec, range, self._delivery, held=self._rows.get(range))
        try:
            task.open()
            task.settle()
            task.save_state()
            self._rows[range] = task.row
            return task.committed
        finally:
            task.close(orderly=True)


def _answers(
    spark: SparkSession, driver: Driver, jobs: list[_Job], payloads: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """What the tasks of a round answer, one for each range."""
    from pyspark.sql.functions import udf
    from pyspark.sql.types import StringType

    # A plain function, not one over Arrow batches: those want pandas. It gets a row for each split.
    run = udf(_runner(driver.name, dict(driver.config), jobs), StringType(), useArrow=False).asNondeterministic()
    frame = spark.createDataFrame(pa.Table.from_pylist(payloads, schema=_INPUT)).repartition(len(jobs))
    with jobs_of_run(spark):
        answers = frame.select(run("split", "payloads").alias("answer")).collect()
    return [json.loads(each["answer"]) for each in answers]


def _payload(updates: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, updates.schema) as writer:
        writer.write_table(updates)
    payload: bytes = sink.getvalue().to_pybytes()
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise DriverFailed(f"a split has {len(payload)} bytes of updates", hint="use more splits")
    return payload


def _runner(name: str, config: dict[str, Any], jobs: list[_Job]) -> Callable[[int, list[bytes]], str]:
    """What an executor does with the row of a split; the answer is JSON."""

    def run(number: int, payloads: list[bytes]) -> str:
        tables = [pa.ipc.open_stream(pa.py_buffer(bytes(each))).read_all() for each in payloads]
        try:
            checkpoint, updates, stored = _converse(name, config, jobs[number], tables)
        except Exception as error:
            return json.dumps({"split": number, "error": f"{type(error).__name__}: {error}"})
        states = [[dict(each.updated), each.merge_patch] for each in updates]
        answer = {"split": number, "checkpoint": checkpoint.encode(), "states": states, "stored": stored, "error": None}
        return json.dumps(answer)

    return run


def _converse(
    name: str, config: dict[str, Any], job: _Job, tables: list[pa.Table]
) -> tuple[Checkpoint, list[StateUpdate], list[int]]:
    """One transaction with the endpoint, up to where the recovery log commits."""
    driver = open_driver(name, config)
    log: Any = _CapturingLog(job.row, job.owner)
    source: Any = _Given(job.end.highest, job.spec.bindings, tables)
    limits = Limits(stall_s=job.stall_s, heartbeat_s=0.0)  # whether or not something changed here
    task = Task(job.spec, job.row.range, replace(Delivery.by(driver, source, log, limits=limits), foreign=False))
    try:
        task.open()
        if task.committed != job.position:
            raise DriverFailed("the range was taken over", detail=f"at {task.committed}, not at {job.position}")
        try:
            task.transact()
        except _Captured:
            if task.authoritative:
                task.settle()  # the endpoint's own commit
        checkpoint, updates = log.taken or (task.committed, [])
        return checkpoint, updates, task.counters.stored_by
    finally:
        task.close()


if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The session, or None while there is none: Spark may be starting, or have been lost.
SparkWhenThere: TypeAlias = "Callable[[], SparkSession | None]"


class SparkWorker(Runner):
    """Delivers all ranges in rounds of Spark tasks."""

    def __init__(
        self,
        driver: Driver,
        spec: Spec,
        ranges: Sequence[KeyRange],
        spark: SparkWhenThere,
        delivery: Delivery,
        **options: Any,
    ) -> None:
        super().__init__(driver, spec, f"{len(ranges)} splits on Spark", delivery, **options)
        self._ranges, self._spark = list(ranges), spark
        self._frontier = START
        self._rounds = 0
        self._stored_by = dict.fromkeys(ranges, (0,) * len(spec.bindings))

    def statuses(self) -> tuple[WorkerStatus, ...]:
        stored = list(self._stored_by.items())
        return tuple(self._status(range, self._frontier, self._rounds, stored_by) for range, stored_by in stored)

    def _converse(self) -> None:
        rounds = Rounds(self._driver, self.spec, self._ranges, self._delivery)
        with self._opening():
            position = rounds.open()
        self._frontier = position.lowest
        done_s = time.monotonic() - self._limits.interval_s
        while not self.loop.stopping:
            end = self._source.interval_end(position)
            due_s = done_s + self._limits.interval_s - time.monotonic()
            if end <= position.lowest:
                self._source.wait(lambda at=position.lowest: self.loop.stopping or self._source.upper > at, WAIT_S)  # type: ignore[misc]
            elif due_s > 0:
                self.loop.pause(min(due_s, WAIT_S))
            elif self._source.changed(position, end) or time.monotonic() - done_s >= self._limits.heartbeat_s:
                self._round(rounds, end)
                done_s = time.monotonic()
                position = self._at(end)
            else:
                position = self._at(end)  # nothing happened up to there

    def _round(self, rounds: Rounds, end: int) -> None:
        spark = self._spark()
        if spark is None:
            raise DriverFailed("Spark is not there", hint="the sink goes on when it is")
        done = rounds.run(spark, end)
        for range, stored_by in done.stored_by.items():
            self._stored_by[range] = tuple(map(add, self._stored_by[range], stored_by))
        self._rounds += 1
        self.loop.progressed()

    def _at(self, end: int) -> Checkpoint:
        self._frontier = end
        self.loop.recovered()
        return Checkpoint.merged([Checkpoint.at(range, end) for range in self._ranges])
