"""The scheduler: ticks every dataflow whenever its inputs have passed its output, several at once.

A dataflow ticks in one thread at a time. One whose tick fails is left as its last tick left it and tried again, after
pauses that grow; the others go on. Nothing polls: the scheduler sleeps until something is written.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import structlog

from everview.compute.dataflow import Dataflow, Ticked
from everview.errors import EverviewError
from everview.storage.contract import Command, GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import Canceled, Fenced

PAUSE_S_FIRST, PAUSE_S_MAX = 0.2, 30.0
_IDLE_MAX = 256  # dataflows that are advanced in one commit
_SLEEP_S = 5.0  # at most: a clock that others advance is looked at so often

_log = structlog.get_logger()


@dataclass
class Status:
    """How a dataflow is doing."""

    ticks: int = 0
    statements: int = 0
    rows_in: int = 0
    rows_out: int = 0
    busy_s: float = 0.0
    last: Ticked | None = None
    running_since: float | None = None  # on the monotonic clock, while a tick runs
    failures: int = 0  # in a row
    error: EverviewError | None = None  # of the last tick, if it failed
    retry_at: float = 0.0


@dataclass
class _Entry:
    dataflow: Dataflow
    status: Status = field(default_factory=Status)
    removed: bool = False


class Scheduler:
    """Runs the dataflows of one environment."""

    def __init__(self, environment: Environment, threads: int = 4) -> None:
        self._environment = environment
        self._entries: dict[GlobalId, _Entry] = {}
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="tick")
        self._stopping = self._failed = False
        self.changes = 0  # grows with every tick that ends, and whenever a dataflow comes or goes
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)
        self._thread.start()

    def add(self, dataflow: Dataflow) -> None:
        """Keep this dataflow ticking."""
        with self._lock:
            self._entries[dataflow.id] = _Entry(dataflow)
            self.changes += 1
        self._environment.wake()

    def remove(self, id: GlobalId) -> Dataflow | None:
        """Tick it no more; when this returns no tick of it runs."""
        with self._changed:
            entry = self._entries.pop(id, None)
            if entry is None:
                return None
            entry.removed = True
            self.changes += 1
            while entry.status.running_since is not None:
                self._changed.wait()
        self._environment.wake()
        return entry.dataflow

    def status(self, id: GlobalId) -> Status | None:
        """How a dataflow is doing; None if there is none."""
        with self._lock:
            entry = self._entries.get(id)
            return None if entry is None else entry.status

    def dataflow(self, id: GlobalId) -> Dataflow | None:
        """One that is kept ticking."""
        with self._lock:
            entry = self._entries.get(id)
            return None if entry is None else entry.dataflow

    def dataflows(self) -> list[Dataflow]:
        """All that are kept ticking."""
        with self._lock:
            return [entry.dataflow for entry in self._entries.values()]

    def wait(self, id: GlobalId, upper: int, timeout_s: float | None = None) -> bool:
        """Until the output has reached `upper`, or the dataflow is removed; false when the time is over."""

        def reached() -> bool:
            entry = self._entries.get(id)
            return entry is None or entry.dataflow.upper >= upper

        return self._environment.wait(reached, timeout_s)

    def close(self) -> None:
        """Stop; ticks that run are waited for."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._environment.wake()
        self._thread.join()
        self._pool.shutdown(wait=True)

    def _run(self) -> None:
        while not self._stopping:
            self._start(self._due())
            try:
                # A failure that is recorded while we go to sleep may want an earlier end of it.
                self._failed = False
                self._environment.wait(lambda: self._stopping or self._failed or bool(self._due()), self._sleep_s())
            except (Canceled, Fenced):
                return  # the environment is closed, or another process has it

    def _start(self, due: list[_Entry]) -> None:
        """Let those tick of which an input has changed, and advance the others all at once."""
        began, idle, commands = time.monotonic(), [], []
        for entry in due:
            with self._lock:
                if entry.removed:
                    continue
                entry.status.running_since = began
            step = _idle_step(entry.dataflow)
            if step is None:
                self._pool.submit(self._tick, entry)
                continue
            idle.append((entry, step[0]))
            commands += step[1]
            if len(idle) == _IDLE_MAX:
                self._advance(idle, commands, began)
                idle, commands = [], []
        if idle:
            self._advance(idle, commands, began)

    def _advance(self, idle: list[tuple[_Entry, Ticked]], commands: list[Command], began: float) -> None:
        try:
            self._environment.commit(*commands)
        except BaseException:  # it may be for one of them alone: each by itself finds out, and tells
            for entry, _ in idle:
                self._pool.submit(self._tick, entry)
            return
        took_s = (time.monotonic() - began) / len(idle)
        for entry, ticked in idle:
            self._note(entry, took_s, ticked, None)
        self._environment.wake()

    def _due(self) -> list[_Entry]:
        # Frontiers are asked for without our lock: they may have to be read, behind commits.
        return [entry for entry in list(self._entries.values()) if self._is_due(entry)]

    def _is_due(self, entry: _Entry) -> bool:
        status, dataflow = entry.status, entry.dataflow
        if status.running_since is not None or time.monotonic() < status.retry_at:
            return False
        return dataflow.ready > dataflow.upper or bool(dataflow.owes)

    def _sleep_s(self) -> float:
        """Until the next retry, if there is one."""
        with self._lock:
            now = time.monotonic()
            waits = [entry.status.retry_at - now for entry in self._entries.values() if entry.status.retry_at > now]
        return max(0.01, min([*waits, _SLEEP_S]))

    def _tick(self, entry: _Entry) -> None:
        began = time.monotonic()
        ticked: Ticked | None = None
        error: EverviewError | None = None
        defect: BaseException | None = None
        try:
            if not entry.removed:
                ticked = entry.dataflow.tick()
        except EverviewError as failure:
            error = failure
        except BaseException as failure:  # a defect of ours in one view must not end the others
            error, defect = EverviewError(f"internal error: {type(failure).__name__}: {failure}"), failure
        self._note(entry, time.monotonic() - began, ticked, error)
        self._environment.wake()
        # Last, for a log may be closed, or full: the view is tried again whatever becomes of these lines.
        if error is not None:
            _log.warning(
                "tick failed",
                dataflow=entry.dataflow.id,
                error=str(error),
                tries=entry.status.failures,
                exc_info=defect,
            )

    def _note(self, entry: _Entry, took_s: float, ticked: Ticked | None, error: EverviewError | None) -> None:
        status = entry.status
        with self._changed:
            status.busy_s += took_s
            status.running_since = None
            status.error = error
            self.changes += 1
            if error is None:
                status.failures, status.retry_at = 0, 0.0
                if ticked is not None:
                    _count(status, ticked)
            else:
                self._failed = True
                status.failures += 1
                pause = min(PAUSE_S_MAX, PAUSE_S_FIRST * 2 ** (status.failures - 1))
                status.retry_at = time.monotonic() + pause
            self._changed.notify_all()


def _idle_step(dataflow: Dataflow) -> tuple[Ticked, list[Command]] | None:
    try:
        return dataflow.idle_step()
    except Exception:  # a tick will fail of it too, and tell
        return None


def _count(status: Status, ticked: Ticked) -> None:
    status.ticks += 1
    status.statements += ticked.statements
    status.rows_in += ticked.rows_in
    status.rows_out += ticked.rows_out
    status.last = ticked
