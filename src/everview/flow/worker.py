"""Workers: threads that keep a materialization going, whatever fails. `Worker` has one range, in this process."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from operator import add
from typing import Any

import structlog

from everview.background import Backoff, Loop
from everview.errors import text_of
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import Spec
from everview.flow.drivers.contract import Driver, Guarantee, Trouble
from everview.flow.errors import Drifted, DriverFailed, DuplicateKey, FencedOff, NullKey, Stopped
from everview.flow.keyrange import KeyRange
from everview.flow.runtime import Delivery, Task
from everview.storage.errors import Canceled, Fenced

WAIT_S = 0.5
STOP_S = 330.0  # a transaction that is under way may take its time
REPEATED_HINT = (
    "the endpoint may have some rows of this transaction, so the same rows are tried again until it takes them; if they"
    " are at fault, correct them in the collection and deliver what it holds then with ALTER SINK … BACKFILL"
)

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
        return sum(self.stored_by)


@dataclass(frozen=True)
class Standing:
    """What is committed, and the time up to which nothing changed since."""

    committed: Checkpoint
    position: int


class Runner(ABC):
    """A thread that delivers until it is stopped or fenced off. Failures are reported and tried again with back-off."""

    spec: Spec  # may be replaced between conversations

    def __init__(
        self,
        driver: Driver,
        spec: Spec,
        label: str,
        delivery: Delivery,
        *,
        backoff_s: tuple[float, float],
        before: Callable[[], None] = lambda: None,
        group: object = None,
    ) -> None:
        """`before` is what has to be done before anything is delivered; it is tried again, too.

        The workers of a `group` are started together.
        """
        self._driver, self.spec, self._label, self._before, self._group = driver, spec, label, before, group
        self._delivery, self._source, self._limits = delivery, delivery.source, delivery.limits
        self.loop = Loop(
            f"flow {spec.name} {label}",
            self._step,
            backoff=Backoff(*backoff_s),
            ends=(FencedOff, Fenced, Canceled, Stopped),  # Canceled if the environment was closed
            on_failure=self._tell,
        )

    @abstractmethod
    def statuses(self) -> tuple[WorkerStatus, ...]:
        """Where its ranges stand."""

    def standing(self) -> Standing | None:
        """The position of its ranges while nothing is under way, else None."""
        return None

    @abstractmethod
    def _converse(self) -> None:
        """Deliver, until it fails or is to stop."""

    def _opening(self) -> AbstractContextManager[None]:
        """Within the block, ranges may be opened."""
        return self._delivery.log.openings.opening(self._group, lambda: self.loop.stopping)

    def _step(self) -> None:
        self._before()
        try:
            self._converse()
        except DriverFailed as error:
            if error.hint is None and self.loop.status.failures and self._repeats_itself():
                error.hint = REPEATED_HINT
            raise

    def _repeats_itself(self) -> bool:
        """Whether the endpoint is given the same rows until it takes them, whatever has changed since."""
        at_least_once = self._driver.guarantee is Guarantee.AT_LEAST_ONCE
        rows = self._delivery.log.rows() if at_least_once else []
        return any(row.intent is not None and not row.authoritative for row in rows)

    def _tell(self, error: Exception, pause_s: float) -> None:
        shown = self._driver.hide(text_of(error))
        log.warning("materialization failed", name=self.spec.name, range=self._label, error=shown)

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
        """`trouble` and `drift` are reported by a driver that has not failed."""
        loop = self.loop.status
        fenced = isinstance(loop.ended_by, FencedOff | Fenced)
        failure = loop.ended_by if fenced else loop.error
        drifted = drift is not None if failure is None else isinstance(failure, Drifted)
        told = text_of(failure) if failure is not None else trouble.message if trouble is not None else drift
        error = None if told is None else self._driver.hide(told)
        retry_ms = trouble.retry_ms if failure is None and trouble is not None else loop.retry_ms
        return WorkerStatus(range, frontier, transactions, stored_by, error, loop.failures, fenced, drifted, retry_ms)


class Worker(Runner):
    """Delivers one range, in this process."""

    def __init__(self, driver: Driver, spec: Spec, range: KeyRange, delivery: Delivery, **options: Any) -> None:
        super().__init__(driver, spec, str(range), delivery, **options)
        self._range = range
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
        task = Task(self.spec, self._range, replace(self._delivery, acknowledged=self._acknowledged))
        orderly, before = False, self._stored_by
        self._task = task
        try:
            with self._opening():
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
        """Drift is reported until the sink is started anew: nobody knows what else was changed."""
        if task.drift is not None and task.drift != self._drift:
            self._drift = self._driver.hide(task.drift)
            log.warning("materialization drifted", name=self.spec.name, range=self._label, error=self._drift)

    def _acknowledged(self, range: KeyRange, checkpoint: Checkpoint) -> None:
        self._frontier = checkpoint.lowest
        self._delivery.acknowledged(range, checkpoint)
