"""Splits as Spark tasks: one round of transactions, a task for each range, for large deliveries.

The process that owns the environment opens the ranges, reads their changes and commits the recovery log; executors run
the conversations with the endpoint, by the same code as everywhere, up to where the recovery log has to commit. What
they staged is applied when the ranges are acknowledged after that commit. Only the DataFrame surface is used.
Executors need `everview`, the connector's library and a way to the endpoint.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.flow.checkpoint import Checkpoint
from everview.flow.contract import Binding, Spec
from everview.flow.drivers.contract import Driver, Guarantee
from everview.flow.drivers.registry import open_driver
from everview.flow.errors import DriverFailed
from everview.flow.fencing import Row
from everview.flow.keyrange import KeyRange, check_partition
from everview.flow.protocol import StateUpdate
from everview.flow.recovery_log import RecoveryLog
from everview.flow.runtime import Limits, Task
from everview.flow.source import Source
from everview.storage.contract import Command
from everview.storage.environment import Environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAYLOAD_BYTES_MAX = 1 << 30  # of one binding's updates in one split
_INPUT = pa.schema([("split", pa.int32()), ("payloads", pa.list_(pa.binary()))])


@dataclass(frozen=True)
class Round:
    """What a round has done: the time that all ranges have reached, and the documents stored, by range and binding."""

    frontier: int
    stored_by: Mapping[KeyRange, Sequence[int]]

    @property
    def stored(self) -> int:
        """How many documents were stored."""
        return sum(map(sum, self.stored_by.values()))


@dataclass(frozen=True)
class _Job:
    """What an executor needs to know of its range."""

    spec: Spec
    row: Row
    position: Checkpoint
    end: Checkpoint
    stall_s: float


class _Captured(Exception):
    """The conversation has come to where the recovery log commits."""


class _CapturingLog:
    """Stands for the recovery log at an executor: it hands out the row and takes the commit down."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self.lineage = row.lineages[-1]
        self.opening = contextlib.nullcontext()
        self.taken: tuple[Checkpoint, list[StateUpdate]] | None = None
        self._saved: list[StateUpdate] = []

    def open(self, range: KeyRange, held: Row | None = None) -> Row:
        return self._row

    def intend(self, row: Row, intent: Checkpoint) -> Row:
        return row  # noted before the round

    def check(self, row: Row) -> None:
        return None

    def check_lineage(self, row: Row, found: Checkpoint, collections: Any) -> None:
        return None  # checked before the round

    def save(self, row: Row, updates: Sequence[StateUpdate]) -> Row:
        self._saved += updates  # before the stores of a transaction that is committed or not in this round
        return row

    def commit_together(
        self,
        rows: Sequence[tuple[Row, Checkpoint, Checkpoint | None]],
        updates: Sequence[StateUpdate],
        also: Any = None,
    ) -> list[Row]:
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

    def __init__(
        self,
        driver: Driver,
        spec: Spec,
        ranges: Sequence[KeyRange],
        *,
        source: Source,
        log: RecoveryLog,
        stall_s: float = 300.0,
        acknowledged: Callable[[KeyRange, Checkpoint], None] = lambda range, checkpoint: None,
        also: Callable[[], Sequence[Command]] = lambda: (),
    ) -> None:
        self.ranges = check_partition(ranges)
        self._driver, self._spec, self._source, self._log = driver, spec, source, log
        self._stall_s, self._on_acknowledged, self._also = stall_s, acknowledged, also
        self._rows: dict[KeyRange, Row] = {}
        self._at: dict[KeyRange, Checkpoint] = {}  # of ranges that are settled, where they are

    def open(self) -> Checkpoint:
        """Take all ranges over, with what was committed and not yet applied; gives where they are."""
        self._at = {range: self._settled(range) for range in self.ranges}
        return Checkpoint.merged(self._at.values())

    def run(self, spark: SparkSession, end: int) -> Round:
        """Bring all ranges to a time, each in one transaction of a Spark task; FencedOff if they are no longer ours."""
        repeatable = self._driver.guarantee is Guarantee.AT_LEAST_ONCE
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
            jobs.append(_Job(self._spec, row, position, target, self._stall_s))
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
        """Commit what the tasks have done to the log: how much each range stored, and what failed."""
        stored: dict[KeyRange, Sequence[int]] = {}
        failures = []
        for each in answers:
            job = jobs[each["split"]]
            if each["error"] is not None:
                failures.append(f"{job.row.range}: {self._driver.hide(each['error'])}")
                continue
            updates = [StateUpdate(*state) for state in each["states"]]
            self._log.commit_together([(job.row, Checkpoint.decode(each["checkpoint"]), None)], updates, self._also)
            stored[job.row.range] = each["stored"]
        return stored, failures

    def _settled(self, range: KeyRange) -> Checkpoint:
        """Open a range and wait until its last transaction is applied; gives where it is."""
        driver = self._driver
        task = Task(
            self._spec,
            range,
            source=self._source,
            log=self._log,
            connect=driver.connect,
            keys=driver.keys,
            held=self._rows.get(range),
            foreign=driver.foreign,
            limits=Limits(stall_s=self._stall_s),
            acknowledged=self._on_acknowledged,
        )
        try:
            task.open()
            task.settle()
            task.save_state()
            self._rows[range] = task.row
            return task.committed
        finally:
            task.close(orderly=True)


def deliver(
    spark: SparkSession,
    environment: Environment,
    driver: Driver,
    spec: Spec,
    ranges: Sequence[KeyRange],
    *,
    stall_s: float = 300.0,
) -> Round:
    """Bring all ranges to the collections' upper, each in one transaction of a Spark task."""
    source, log = Source(environment, spec.bindings), RecoveryLog(environment, spec.name, shared=driver.foreign)
    return Rounds(driver, spec, ranges, source=source, log=log, stall_s=stall_s).run(spark, source.upper)


def _answers(
    spark: SparkSession, driver: Driver, jobs: list[_Job], payloads: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """What the tasks of a round answer, one for each range."""
    from pyspark.sql.functions import udf
    from pyspark.sql.types import StringType

    # A plain function, not one over Arrow batches: those want pandas. It gets a row for each split.
    run = udf(_runner(driver.name, dict(driver.config), jobs), StringType(), useArrow=False).asNondeterministic()
    frame = spark.createDataFrame(pa.Table.from_pylist(payloads, schema=_INPUT)).repartition(len(jobs))
    return [json.loads(each["answer"]) for each in frame.select(run("split", "payloads").alias("answer")).collect()]


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
    log = _CapturingLog(job.row)
    task = Task(
        job.spec,
        job.row.range,
        source=_Given(job.end.highest, job.spec.bindings, tables),  # type: ignore[arg-type]
        log=log,  # type: ignore[arg-type]
        connect=driver.connect,
        keys=driver.keys,
        repeatable=driver.guarantee is Guarantee.AT_LEAST_ONCE,
        limits=Limits(stall_s=job.stall_s, heartbeat_s=0.0),  # whether or not something changed here
    )
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
