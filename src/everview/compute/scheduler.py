"""The scheduler: ticks every dataflow whenever its inputs have passed its output, several at once.

A dataflow ticks in one thread at a time. One whose tick fails is left as its last tick left it and tried again, after
pauses that grow; the others go on. Nothing polls: the scheduler sleeps until something is written.

Hydrations have threads of their own, and run in the background: however long they take, and however many there are,
views that are there go on, and other hydrations begin (`places.py`). Ticks of views that are there and take in much, of
what was missed before a start or of a large change, have threads of their own too, and give way less. Who removes a
dataflow asks its tick to end and goes on; a tick that does not hear of it in time has lost its capabilities by then,
and commits nothing.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial

import structlog

from everview.background import Backoff, Loop
from everview.compute.cancel import Cancellation, cancelable, check_wanted, in_background
from everview.compute.commit_rounds import CommitRound
from everview.compute.dataflow import Dataflow
from everview.compute.engine.progress import Hydration, Progress, reporting
from everview.compute.places import Places
from everview.compute.tick_output import TickReport
from everview.errors import EverviewError
from everview.storage.contract import Command, GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import Canceled, Fenced, StorageError

BACKOFF = Backoff(0.2, 30.0)
THREADS = 64  # of ticks: those that wait for Spark together are run together, so these are not for sharing the cores
HYDRATIONS_MAX = 8  # that begin at once; likewise large ticks
HELD_S = 5.0  # so long one of them keeps the next from beginning
END_AGAIN_S = 0.2  # a tick that is to end is asked again, for what it runs may only be about to begin
CLOSE_S_MAX = 10.0  # that ticks are waited for which were asked to end
_IDLE_MAX = 256  # dataflows that are advanced in one commit
_SLEEP_S = 5.0  # at most: a clock that others advance is looked at so often

_HYDRATION, _LARGE, _SMALL = "hydration", "large", "small"

_log = structlog.get_logger()


@dataclass
class Status:
    """How a dataflow is doing."""

    ticks: int = 0
    statements: int = 0
    rows_in: int = 0
    rows_out: int = 0
    busy_s: float = 0.0
    phases_s: Counter[str] = field(default_factory=Counter)  # of this, how much went where
    last: TickReport | None = None
    running_since: float | None = None  # on the monotonic clock, while a tick runs or waits for a thread
    hydrating_since: float | None = None  # likewise, while a hydration runs
    failures: int = 0  # in a row
    error: EverviewError | None = None  # of the last tick, if it failed
    retry_at: float = 0.0


@dataclass
class _Entry:
    dataflow: Dataflow
    done: Callable[[], None] | None = None  # called once it is complete for ever
    status: Status = field(default_factory=Status)
    removed: bool = False
    wish: Cancellation = field(default_factory=Cancellation)  # that the tick which runs is to end
    progress: Progress | None = None  # of the hydration that runs
    goal: int | None = None  # how far its inputs were when it was due first: until it is there, it catches up
    new: bool = False  # whether nothing of it could be read when it was due first


class Scheduler:
    """Runs the dataflows of one environment."""

    def __init__(self, environment: Environment, threads: int = THREADS, held_s: float = HELD_S) -> None:
        self._environment = environment
        self._entries: dict[GlobalId, _Entry] = {}
        self._leaving: list[_Entry] = []  # removed ones whose tick still runs
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="tick")
        self._hydrations: Places[_Entry] = Places("hydration", HYDRATIONS_MAX, threads, held_s)
        self._large: Places[_Entry] = Places("large-tick", HYDRATIONS_MAX, threads, held_s)
        self._failed = False
        self.changes = 0  # grows with every tick that ends, and whenever a dataflow comes or goes
        self._loop = Loop(
            "scheduler",
            self._step,
            backoff=Backoff(BACKOFF.first_s, _SLEEP_S),
            ends=(Canceled, Fenced),  # the environment is closed, or another process has it
            on_failure=lambda error, _: _log.error("the scheduler failed", exc_info=error),
            on_stop=environment.wake,
        )
        self._loop.start()

    def add(self, dataflow: Dataflow, done: Callable[[], None] | None = None) -> None:
        """Keep this dataflow ticking; one that was removed a moment ago goes on once its tick has ended."""
        with self._lock:
            leaving = next((each for each in self._leaving if each.dataflow is dataflow), None)
            if leaving is None:
                self._entries[dataflow.id] = _Entry(dataflow, done)
            else:
                self._leaving.remove(leaving)
                leaving.removed = False
                self._entries[dataflow.id] = leaving
            self.changes += 1
        self._environment.wake()

    def remove(self, id: GlobalId) -> Dataflow | None:
        """Tick a dataflow no more. A running tick is asked to end; it may commit until the capabilities are dropped."""
        entry = self._take_out(id)
        if entry is None:
            return None
        if entry.status.running_since is not None:
            threading.Thread(target=self._end, args=([entry],), name=f"end-{id}", daemon=True).start()
        self._environment.wake()
        return entry.dataflow

    def pause(self, id: GlobalId) -> Dataflow | None:
        """Tick it no more; when this returns no tick of it runs."""
        entry = self._take_out(id)
        if entry is None:
            return None
        with self._changed:
            while entry.status.running_since is not None:
                self._changed.wait()
        self._environment.wake()
        return entry.dataflow

    def _take_out(self, id: GlobalId) -> _Entry | None:
        with self._changed:
            entry = self._entries.pop(id, None)
            if entry is not None:
                entry.removed = True
                self.changes += 1
                if any(places.withdraw(entry) for places in (self._hydrations, self._large)):
                    entry.status.running_since = None
                elif entry.status.running_since is not None:
                    self._leaving.append(entry)
            return entry

    def _end(self, entries: list[_Entry], timeout_s: float | None = None) -> None:
        """Ask the running ticks to end, and wait until they have or the time is over."""
        over = None if timeout_s is None else time.monotonic() + timeout_s
        wishes = [entry.wish for entry in entries]  # of these ticks: one that is restored meanwhile has another next
        while over is None or time.monotonic() < over:
            for wish in wishes:
                wish.ask()
            with self._changed:
                if self._changed.wait_for(lambda: not _running(entries, wishes), END_AGAIN_S):
                    return

    def status(self, id: GlobalId) -> Status | None:
        """The status of a dataflow; None if it is not scheduled."""
        with self._lock:
            entry = self._entries.get(id)
            return None if entry is None else entry.status

    def hydration(self, id: GlobalId) -> Hydration | None:
        """How far the hydration of a dataflow is; None if it does not run."""
        with self._lock:
            entry = self._entries.get(id)
            progress = None if entry is None else entry.progress
            began = None if entry is None else entry.status.hydrating_since
        if progress is None or began is None:
            return None
        read, total = progress.rows()  # without the lock, for an engine is asked
        return Hydration(read, total, time.monotonic() - began)

    def dataflow(self, id: GlobalId) -> Dataflow | None:
        with self._lock:
            entry = self._entries.get(id)
            return None if entry is None else entry.dataflow

    def dataflows(self) -> list[Dataflow]:
        with self._lock:
            return [entry.dataflow for entry in self._entries.values()]

    def wait(self, id: GlobalId, upper: int, timeout_s: float | None = None) -> bool:
        """Wait until the output has reached `upper` or the dataflow is removed; false when the time is over."""

        def reached() -> bool:
            entry = self._entries.get(id)
            return entry is None or entry.dataflow.upper >= upper

        return self._environment.wait(reached, timeout_s)

    def close(self) -> None:
        """Stop; ticks that run are ended. They have left nothing half done, and whoever opens next does them again."""
        self._loop.stop()
        with self._lock:
            for entry in (*self._hydrations.close(), *self._large.close()):
                entry.status.running_since = None
            running = [*self._entries.values(), *self._leaving]
        self._end(running, CLOSE_S_MAX)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _step(self) -> float:
        self._start(self._due())
        for places in (self._hydrations, self._large):
            places.begin()
        # A failure that is recorded while we go to sleep may want an earlier end of it.
        self._failed = False
        self._environment.wait(lambda: self._loop.stopping or self._failed or bool(self._due()), self._sleep_s())
        return 0.0

    def _start(self, due: list[_Entry]) -> None:
        """Start ticks of dataflows whose inputs have changed, and advance the others all at once."""
        began, idle, busy, commands = time.monotonic(), [], [], []
        for entry in due:
            with self._lock:
                if entry.removed:
                    continue
                entry.status.running_since = began
                entry.wish = Cancellation()
            step = _idle_step(entry.dataflow)
            if step is None:
                busy.append(entry)
                continue
            idle.append((entry, step[0]))
            commands += step[1]
            if len(idle) == _IDLE_MAX:
                self._advance(idle, commands, began)
                idle, commands = [], []
        if idle:
            self._advance(idle, commands, began)
        self._submit(busy)

    def _advance(self, idle: list[tuple[_Entry, TickReport]], commands: list[Command], began: float) -> None:
        try:
            self._environment.commit(*commands)
        except BaseException:  # it may be for one of them alone: each by itself finds out, and tells
            self._submit([entry for entry, _ in idle])
            return
        took_s = (time.monotonic() - began) / len(idle)
        for entry, ticked in idle:
            if _is_over(entry):
                self._submit([entry])
            else:
                self._note(entry, took_s, ticked, None)
        self._environment.wake()

    def _submit(self, entries: Sequence[_Entry]) -> None:
        small = []
        for entry in entries:
            places = {_HYDRATION: self._hydrations, _LARGE: self._large}.get(_size(entry))
            if places is None:
                small.append(entry)
            else:
                within = self._in_background(entry, follows=places is self._large)
                places.submit(entry, partial(self._tick, entry, within))
        together = CommitRound(self._environment, len(small))
        for entry in small:
            self._pool.submit(self._tick, entry, together.joined())

    def _due(self) -> list[_Entry]:
        # Frontiers are asked for without our lock: they may have to be read, behind commits.
        return [entry for entry in list(self._entries.values()) if self._is_due(entry)]

    def _is_due(self, entry: _Entry) -> bool:
        status, dataflow = entry.status, entry.dataflow
        if status.running_since is not None or time.monotonic() < status.retry_at:
            return False
        try:
            behind = dataflow.ready > dataflow.upper and not dataflow.waits
            return behind or bool(dataflow.owes) or _is_over(entry)
        except (StorageError, ValueError):
            if entry.removed:  # and dropped a moment ago: there is no such collection, or its frontier is empty
                return False
            raise

    def _sleep_s(self) -> float:
        """Until the next retry or the next place for a hydration or a large tick, if there is one."""
        with self._lock:
            now = time.monotonic()
            waits = [entry.status.retry_at - now for entry in self._entries.values() if entry.status.retry_at > now]
        places = [wait for each in (self._hydrations, self._large) if (wait := each.next_s()) is not None]
        return max(0.01, min([*waits, *places, _SLEEP_S]))

    def _tick(self, entry: _Entry, within: AbstractContextManager[None]) -> None:
        began = time.monotonic()
        ticked: TickReport | None = None
        error: EverviewError | None = None
        defect: BaseException | None = None
        try:
            with cancelable(entry.wish), within:
                check_wanted()
                if not entry.removed:
                    ticked = entry.dataflow.tick()
                    self._complete(entry)
        except EverviewError as failure:
            error = failure
        except BaseException as failure:  # a defect of ours in one view must not end the others
            error, defect = EverviewError(f"internal error: {type(failure).__name__}: {failure}"), failure
        if entry.wish.asked or entry.removed or self._loop.stopping:
            error = None  # whatever it says, it is over because it was to end
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

    @contextmanager
    def _in_background(self, entry: _Entry, *, follows: bool) -> Iterator[None]:
        entry.progress = progress = Progress()
        entry.status.hydrating_since = time.monotonic()
        try:
            with in_background(follows=follows), reporting(progress):
                yield
        finally:
            entry.progress = entry.status.hydrating_since = None

    def _complete(self, entry: _Entry) -> None:
        """Of one that is complete for ever, that was all."""
        if entry.done is not None and _is_over(entry):
            entry.done()
            with self._lock:
                entry.removed = True
                if self._entries.get(entry.dataflow.id) is entry:
                    del self._entries[entry.dataflow.id]

    def _note(self, entry: _Entry, took_s: float, ticked: TickReport | None, error: EverviewError | None) -> None:
        status = entry.status
        with self._changed:
            status.busy_s += took_s
            status.running_since = None
            status.error = error
            if entry in self._leaving:
                self._leaving.remove(entry)
            self.changes += 1
            if error is None:
                status.failures, status.retry_at = 0, 0.0
                if ticked is not None:
                    _count(status, ticked)
            else:
                self._failed = True
                status.failures += 1
                status.retry_at = time.monotonic() + BACKOFF.pause_s(status.failures)
            self._changed.notify_all()


def _running(entries: list[_Entry], wishes: list[Cancellation]) -> bool:
    """Whether one of these ticks still runs."""
    pairs = zip(entries, wishes, strict=True)
    return any(entry.status.running_since is not None and entry.wish is wish for entry, wish in pairs)


def _is_over(entry: _Entry) -> bool:
    """Whether someone is to be told that the dataflow is complete for ever."""
    return entry.done is not None and entry.dataflow.complete and not entry.dataflow.owes


def _size(entry: _Entry) -> str:
    """How much the next tick takes in, as far as can be told: all there is, what was missed or is large, or little."""
    dataflow = entry.dataflow
    try:
        if entry.goal is None:
            entry.goal, entry.new = dataflow.ready, not dataflow.hydrated
        behind = dataflow.upper < entry.goal
        if not dataflow.hydrated or dataflow.owes or (entry.new and behind):
            return _HYDRATION
        return _LARGE if behind or dataflow.large else _SMALL
    except Exception:  # a tick will fail of it too, and tell
        return _SMALL


def _idle_step(dataflow: Dataflow) -> tuple[TickReport, list[Command]] | None:
    try:
        return dataflow.idle_step()
    except Exception:  # a tick will fail of it too, and tell
        return None


def _count(status: Status, ticked: TickReport) -> None:
    status.ticks += 1
    status.statements += ticked.statements
    status.rows_in += ticked.rows_in
    status.rows_out += ticked.rows_out
    status.phases_s.update(ticked.phases_s)
    status.last = ticked
