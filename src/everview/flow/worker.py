"""Workers: threads that keep a materialization going, whatever fails. `Worker` has one range, in this process."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add

import structlog

from everview.errors import EverviewError
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import Spec
from everview.flow.drivers.contract import Driver, Guarantee
from everview.flow.errors import Drifted, DuplicateKey, FencedOff, NullKey
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
        self._driver, self._name, self._label, self._backoff_s = driver, name, label, backoff_s
        self._before = before
        self._stopping = threading.Event()
        self._failures = 0
        self._error: str | None = None
        self._fenced = self._drifted = False
        self._retry_ms: int | None = None
        self._thread = threading.Thread(target=self._run, name=f"flow {name} {label}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Ask it to stop; `join` waits."""
        self._stopping.set()

    def join(self, timeout_s: float = STOP_S) -> None:
        """Wait until it has stopped."""
        self._thread.join(timeout_s)

    @abstractmethod
    def statuses(self) -> tuple[WorkerStatus, ...]:
        """Where its ranges stand."""

    def standing(self) -> Standing | None:
        """Where its ranges are if nothing is under way; None where that cannot be said."""
        return None

    @property
    @abstractmethod
    def _done(self) -> int:
        """How many transactions were made: it gets on, as long as that grows."""

    @abstractmethod
    def _converse(self) -> None:
        """Deliver, until it fails or is to stop."""

    def _run(self) -> None:
        in_a_row = 0
        while not self._stopping.is_set():
            before = self._done
            try:
                self._before()
                self._converse()
                return
            except (FencedOff, Fenced) as error:
                self._error, self._fenced = self._shown(error), True
                return
            except Canceled:
                return  # the environment was closed
            except Exception as error:
                self._error, self._drifted = self._shown(error), isinstance(error, Drifted)
                self._failures += 1
            in_a_row = 1 if self._done > before else in_a_row + 1
            log.warning("materialization failed", name=self._name, range=self._label, error=self._error)
            first_s, most_s = self._backoff_s
            wait_s = min(most_s, first_s * 2 ** min(in_a_row - 1, 20))
            self._retry_ms = int((time.time() + wait_s) * 1000)
            self._stopping.wait(wait_s)

    def _shown(self, error: Exception) -> str:
        text = str(error) if isinstance(error, EverviewError) else f"{type(error).__name__}: {error}"
        return self._driver.hide(text)


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
    ) -> None:
        super().__init__(driver, spec.name, str(range), backoff_s, before)
        self.spec, self._range = spec, range
        self._source, self._log, self._limits = source, log, limits
        self._on_acknowledged, self._also = acknowledged, also
        self._frontier = START
        self._transactions, self._stored_by = 0, (0,) * len(spec.bindings)
        self._task: Task | None = None
        self._drift: str | None = None  # what a driver has found changed by others, since the worker began

    @property
    def _trouble(self) -> str | None:
        """What the driver tries again by itself, without having failed yet."""
        task = self._task
        trouble = None if task is None else task.trouble
        return None if trouble is None else self._driver.hide(trouble)

    def statuses(self) -> tuple[WorkerStatus, ...]:
        return (
            WorkerStatus(
                self._range,
                self._frontier,
                self._transactions,
                self._stored_by,
                self._error or self._trouble or self._drift,
                self._failures,
                self._fenced,
                self._drifted if self._error is not None else self._drift is not None,
                self._retry_ms if self._error is not None else None,
            ),
        )

    def standing(self) -> Standing | None:
        task = self._task
        if task is None or self._error is not None or not task.acknowledged or not task.counters.opened:
            return None
        return Standing(task.committed, task.position)

    @property
    def _done(self) -> int:
        return self._transactions

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
            task.open()
            while not self._stopping.is_set():
                done = task.counters.transactions
                task.step(WAIT_S, self._stopping.is_set)
                self._transactions += task.counters.transactions - done
                self._stored_by = tuple(map(add, before, task.counters.stored_by))
                if task.counters.transactions > done:
                    self._source.halves = True
                if task.acknowledged:
                    self._note_drift(task)
                    self._frontier = task.position  # also past times at which nothing changed
                    self._error = None
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
