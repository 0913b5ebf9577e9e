"""Workers: threads that keep a materialization going, whatever fails. `Worker` has one range, in this process."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add

import structlog

from everview.background import Backoff, Loop
from everview.errors import text_of
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import Spec
from everview.flow.drivers.contract import Driver, Guarantee, Trouble
from everview.flow.errors import Drifted, DuplicateKey, FencedOff, NullKey, Stopped
from everview.flow.keyrange import KeyRange
from everview.flow.recovery_log import RecoveryLog
from everview.flow.runtime import Limits, Task
from everview.flow.source import Source
from everview.storage.contract import Command
from everview.storage.errors import Canceled, Fenced

WAIT_S = 0.5
STOP_S = 330.0  # a transaction that is under way may take its time

log = structlog.get_logger()


@dataclass(frozen=True)
class WorkerStatus:
    """One range at one instant."""

    range: KeyRange
    frontier: int
    transactions: int
    stored_by: tuple[int, ...]  # documents, of each binding
    error: str | None
    failures: int
    fenced: bool
    drifted: bool = False
    retry_ms: int | None = None  # when it is tried again, in milliseconds since 1970; None while nothing failed

    @property
    def stored(self) -> int:
        """How many documents were stored."""
        return sum(self.stored_by)


@dataclass(frozen=True)
class Standing:
    """What is committed, and up to when nothing has changed since."""

    committed: Checkpoint
    position: int


class Runner(ABC):
    """A thread that delivers until it is stopped or fenced off: what fails is told, and tried again with back-off."""

    spec: Spec  # may be replaced between conversations

    def __init__(
        self,
        driver: Driver,
        name: str,
        label: str,
        backoff_s: tuple[float, float],
        before: Callable[[], None] = lambda: None,
    ) -> None:
        """`before` is what has to be done before anything is delivered; it is tried again, too."""
        self._driver, self._name, self._label, self._before = driver, name, label, before
        self.loop = Loop(
            f"flow {name} {label}",
            self._step,
            backoff=Backoff(*backoff_s),
            ends=(FencedOff, Fenced, Canceled, Stopped),  # Canceled if the environment was closed
            on_failure=self._tell,
        )

    @abstractmethod
    def statuses(self) -> tuple[WorkerStatus, ...]:
        """Where its ranges stand."""

    def standing(self) -> Standing | None:
        """Where its ranges are if nothing is under way; None where that cannot be said."""
        return None

    @abstractmethod
    def _converse(self) -> None:
        """Deliver, until it fails or is to stop."""

    def _step(self) -> None:
        self._before()
        self._converse()

    def _tell(self, error: Exception, pause_s: float) -> None:
        shown = self._driver.hide(text_of(error))
        log.warning("materialization failed", name=self._name, range=self._label, error=shown)

    def _status(
        self,
        range: KeyRange,
        frontier: int,
        transactions: int,
        stored_by: tuple[int, ...],
        *,
        trouble: Trouble | None = None,
        drift: str | None = None,
    ) -> WorkerStatus:
        """`trouble` and `drift` are what a driver tells without a failure."""
        loop = self.loop.status
        fenced = isinstance(loop.ended_by, FencedOff | Fenced)
        failure = loop.ended_by if fenced else loop.error
        drifted = drift is not None if failure is None else isinstance(failure, Drifted)
        told = text_of(failure) if failure is not None else trouble.message if trouble is not None else drift
        error = None if told is None else self._driver.hide(told)
        retry_ms = trouble.retry_ms if failure is None and trouble is not None else loop.retry_ms
        return WorkerStatus(range, frontier, transactions, stored_by, error, loop.failures, fenced, drifted, retry_ms)


class Worker(Runner):
    """One range."""

    def __init__(
        self,
        driver: Driver,
        spec: Spec,
        range: KeyRange,
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
        super().__init__(driver, spec.name, str(range), backoff_s, before)
        self._group = group
        self.spec, self._range = spec, range
        self._source, self._log, self._limits = source, log, limits
        self._on_acknowledged, self._also = acknowledged, also
        self._frontier = START
        self._transactions, self._stored_by = 0, (0,) * len(spec.bindings)
        self._task: Task | None = None
        self._drift: str | None = None  # what a driver has found changed by others, since the worker began

    def statuses(self) -> tuple[WorkerStatus, ...]:
        task = self._task
        trouble = None if task is None else task.trouble  # what the driver tries again by itself
        found = self._frontier, self._transactions, self._stored_by
        return (self._status(self._range, *found, trouble=trouble, drift=self._drift),)

    def standing(self) -> Standing | None:
        task = self._task
        if task is None or self.loop.status.error is not None or not task.acknowledged or not task.counters.opened:
            return None
        return Standing(task.committed, task.position)

    def _converse(self) -> None:
        """One conversation, until it fails or the worker is to stop."""
        task = Task(
            self.spec,
            self._range,
            source=self._source,
            log=self._log,
            connect=self._driver.connect,
            keys=self._driver.keys,
            repeatable=self._driver.guarantee is Guarantee.AT_LEAST_ONCE,
            foreign=self._driver.foreign,
            limits=self._limits,
            acknowledged=self._acknowledged,
            also=self._also,
        )
        orderly, before = False, self._stored_by
        self._task = task
        try:
            with self._log.openings.opening(self._group, lambda: self.loop.stopping):
                task.open()
            while not self.loop.stopping:
                done = task.counters.transactions
                task.step(WAIT_S, lambda: self.loop.stopping)
                self._transactions += task.counters.transactions - done
                self._stored_by = tuple(map(add, before, task.counters.stored_by))
                if task.counters.transactions > done:
                    self._source.halves = True
                    self.loop.progressed()
                if task.acknowledged:
                    self._note_drift(task)
                    self._frontier = task.position  # also past times at which nothing changed
                    self.loop.recovered()
            deadline = time.monotonic() + self._limits.stall_s
            while not task.acknowledged and time.monotonic() < deadline:
                task.step_acknowledged(WAIT_S)
            orderly = task.acknowledged
        except (NullKey, DuplicateKey):
            self._source.halves = False  # what is wrong in the middle of an interval may be right at its end
            raise
        finally:
            self._task = None
            task.close(orderly=orderly)

    def _note_drift(self, task: Task) -> None:
        """It stays until the sink is started anew, as by a backfill: what else was changed is not known."""
        if task.drift is not None and task.drift != self._drift:
            self._drift = self._driver.hide(task.drift)
            log.warning("materialization drifted", name=self._name, range=self._label, error=self._drift)

    def _acknowledged(self, range: KeyRange, checkpoint: Checkpoint) -> None:
        self._frontier = checkpoint.lowest
        self._on_acknowledged(range, checkpoint)
