"""The worker that runs all ranges of a materialization as Spark tasks, round by round."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from operator import add
from typing import TYPE_CHECKING, TypeAlias

from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import Spec
from everview.flow.drivers.contract import Driver
from everview.flow.errors import DriverFailed
from everview.flow.keyrange import KeyRange
from everview.flow.recovery_log import RecoveryLog
from everview.flow.runtime import Limits
from everview.flow.source import Source
from everview.flow.spark import Rounds
from everview.flow.worker import WAIT_S, Runner, WorkerStatus
from everview.storage.contract import Command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The session, or None while there is none: Spark may be starting, or have been lost.
SparkWhenThere: TypeAlias = "Callable[[], SparkSession | None]"


class SparkWorker(Runner):
    """All ranges, in rounds."""

    def __init__(
        self,
        driver: Driver,
        spec: Spec,
        ranges: Sequence[KeyRange],
        spark: SparkWhenThere,
        *,
        source: Source,
        log: RecoveryLog,
        limits: Limits,
        backoff_s: tuple[float, float],
        acknowledged: Callable[[KeyRange, Checkpoint], None],
        also: Callable[[], Sequence[Command]],
        before: Callable[[], None] = lambda: None,
        group: object = None,
    ) -> None:
        super().__init__(driver, spec.name, f"{len(ranges)} splits on Spark", backoff_s, before)
        self.spec, self._ranges, self._spark, self._group = spec, list(ranges), spark, group
        self._source, self._log, self._limits = source, log, limits
        self._on_acknowledged, self._also = acknowledged, also
        self._frontier = START
        self._rounds = 0
        self._stored_by = dict.fromkeys(ranges, (0,) * len(spec.bindings))

    def statuses(self) -> tuple[WorkerStatus, ...]:
        stored = list(self._stored_by.items())
        return tuple(self._status(range, self._frontier, self._rounds, stored_by) for range, stored_by in stored)

    def _converse(self) -> None:
        rounds = Rounds(
            self._driver,
            self.spec,
            self._ranges,
            source=self._source,
            log=self._log,
            stall_s=self._limits.stall_s,
            acknowledged=self._on_acknowledged,
            also=self._also,
        )
        with self._log.openings.opening(self._group, lambda: self.loop.stopping):
            position = rounds.open()
        self._frontier = position.lowest
        done_s = time.monotonic() - self._limits.interval_s
        while not self.loop.stopping:
            end = self._source.interval_end(position)
            due_s = done_s + self._limits.interval_s - time.monotonic()
            if end <= position.lowest:
                self._source.wait(lambda at=position.lowest: self._moved(at), WAIT_S)  # type: ignore[misc]
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

    def _moved(self, position: int) -> bool:
        return self.loop.stopping or self._source.upper > position
