"""Feeds the collections of a source with what a reader finds: rows, position and frontiers are one commit.

After a restart, or a crash at any moment, it goes on from the position of the last commit. A reader that finds out from
the frontier of the collections where it stands has no position of its own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
import structlog

from everview.background import Backoff, Loop
from everview.errors import EverviewError, text_of
from everview.sources.contract import (
    PAUSED,
    RUNNING,
    SNAPSHOT,
    STALLED,
    STARTING,
    Arrival,
    Feeding,
    Headed,
    Progress,
    Status,
)
from everview.storage.contract import Command, Put, UpdateAndDowngrade, WriteCapability
from everview.storage.errors import Canceled, Fenced, UnknownId
from everview.storage.staging import Staged
from everview.timely.antichain import Antichain

IDLE_S = 1.0  # how often frontiers move on while nothing happens and nobody asks
BACKOFF = Backoff(0.1, IDLE_S)
CLOSE_S = 10.0
POSITION = "source/position/"  # of each source, in the environment's metadata

Position: TypeAlias = Any  # a JSON value that only its reader understands; None before anything was read

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class News:
    """A bounded part of what is new since a position: changes of tables, at their times, and the position behind them.

    All tables are complete before `upper` then. With `more`, there is more to come at once; else after `pause_s`.
    """

    changes: Mapping[str, pa.Table | Staged]
    upper: int
    position: Position = None
    more: bool = False
    pause_s: float = IDLE_S
    held: Collection[str] = ()  # tables that are not complete before `upper`, and stay where they are


class Reader(Protocol):
    """Reads from outside, or makes up, what a source is fed with."""

    def news(self, position: Position, lower: int, end: int) -> News:
        """What is new since a position, at times from `lower` on and before `end`."""
        ...

    def close(self) -> None:
        """Let go of what is read."""
        ...


@runtime_checkable
class Follower(Protocol):
    """A reader that follows another system, and tells it what is durable here."""

    def gather(self, position: Position) -> None:
        """Take in what has come since a position, and wait for it a while; `news` then gives it."""
        ...

    def committed(self, position: Position) -> None:
        """What `news` gave is durable: now the other system may forget it."""
        ...

    def wake(self) -> None:
        """Wait no longer: someone waits for the present."""
        ...

    def stop(self) -> None:
        """Break off whatever is being read: the reader is to be closed."""
        ...

    @property
    def passing(self) -> bool:
        """Whether local time goes on over the source while it cannot be read: all that it holds is exact."""
        ...

    def stopped(self) -> Mapping[str, EverviewError]:
        """The tables that cannot go on, and why: they stay where they are."""
        ...

    def warning(self) -> str | None:
        """What whoever made the source should know though all of it goes on."""
        ...

    def progress(self) -> Progress:
        """How far it has come."""
        ...

    def part(self) -> str | None:
        """The source was dropped: remove what was made for it; tells what could not be removed."""
        ...


class Feeder:
    """Feeds one source, in a thread of its own."""

    def __init__(self, feeding: Feeding[Any], reader: Reader) -> None:
        assert feeding.now_ms is not None, "it feeds on the environment's timeline"
        self._environment, self._outputs, self._now_ms = feeding.environment, feeding.outputs, feeding.now_ms
        self._reader, self._key, self._more = reader, POSITION + feeding.id, False
        self._follower = reader if isinstance(reader, Follower) else None
        self._paused, self._step_lock = feeding.paused, threading.Lock()
        self._rows = self._bytes = 0  # that were written since it was opened
        self._reached: int | None = None  # the time before which all is complete, as of the last step
        ends = (Canceled, Fenced, UnknownId)  # closed, taken over by another process, or dropped
        self._loop = Loop(
            f"everview-source-{feeding.id}",
            self._step,
            backoff=BACKOFF,
            ends=ends,
            on_failure=lambda error, _: _log.warning("source failed", source=feeding.name, error=text_of(error)),
            on_wake=self._woken if self._follower is not None else None,
            on_stop=lambda: None if self._follower is None else self._follower.stop(),
        )

    def start(self) -> None:
        self._loop.start()

    def ask(self) -> None:
        self._loop.wake()
        self._wake_reader()

    def close(self) -> None:
        self._loop.stop(CLOSE_S)
        self._reader.close()

    def part(self) -> str | None:
        """The source was dropped: let the reader remove what it made upstream."""
        return None if self._follower is None else self._follower.part()

    def status(self) -> Status:
        loop, follower = self._loop.status, self._follower
        error = None if loop.error is None else text_of(loop.error)
        state = RUNNING if error is None else STALLED
        if follower is None:
            lag_ms = None if self._reached is None else max(0, self._now_ms() + 1 - self._reached)
            made = Progress(self._rows, self._bytes, None, lag_ms=lag_ms)
            return Status(state, error, None, loop.retry_ms, loop.failures, made)
        progress, stopped = follower.progress(), follower.stopped()
        if self._paused:
            state, error = PAUSED, None
        elif error is None and progress.snapshot_rows is not None:
            state = SNAPSHOT
        elif error is None and progress.position is None:
            state = STARTING
        if error is None:
            error = follower.warning()
        return Status(state, error, None, loop.retry_ms, loop.failures, progress, stopped)

    def arrival(self) -> Arrival | None:
        """Ask upstream how far it goes."""
        return self._reader.arrival() if isinstance(self._reader, Headed) else None

    def stopped(self, table: str) -> EverviewError | None:
        """Why a table cannot go on, if it cannot."""
        return None if self._follower is None else self._follower.stopped().get(table)

    @property
    def upper(self) -> int:
        """How far the collections that are not stopped are complete."""
        return max(self._environment.frontiers(each.id).upper.only for each in self._outputs.values())

    def step(self) -> News | None:
        """Write a part of what is new, and move the frontiers along; None if there was nothing to do."""
        saved = self._environment.get(self._key)
        position = None if saved is None else json.loads(saved)
        if self._follower is not None:
            self._follower.gather(position)
        lower, end = self.upper, self._now_ms() + 1
        if end <= lower:
            self._reached = lower
            return None
        news = self._reader.news(position, lower, end)
        commands = self._moves(news.upper, news.held, news.changes)
        if news.position != position:
            commands.append(Put(self._key, json.dumps(news.position).encode()))
        self._environment.commit(*commands)
        if self._follower is not None:
            self._follower.committed(news.position)
        written = [each for each in news.changes.values() if isinstance(each, pa.Table)]
        self._rows += sum(each.num_rows for each in written)
        self._bytes += sum(each.nbytes for each in written)
        self._reached = news.upper
        return news

    def _moves(
        self, upper: int, held: Collection[str], changes: Mapping[str, pa.Table | Staged] | None = None
    ) -> list[Command]:
        """The commands that write changes, and move the frontiers of all tables that are not held."""
        commands: list[Command] = []
        for name, output in self._outputs.items():
            if name not in held:
                capability = self._environment.present(output.id, output.writer)
                assert isinstance(capability, WriteCapability)
                commands.append(UpdateAndDowngrade(capability, (changes or {}).get(name), Antichain(upper)))
        return commands

    def _step(self) -> float:
        with self._step_lock:
            if self._paused:
                self._pass_over()
                return IDLE_S
            try:
                news = self.step()
            except (Canceled, Fenced, UnknownId):
                raise
            except Exception:
                self._pass_over()
                raise
        if news is None:  # until the next millisecond, if there is more
            return 0.001 if self._more or self._follower is not None else IDLE_S
        self._more = news.more
        return 0.0 if news.more else news.pause_s

    def _woken(self) -> None:
        """Someone waits for the present while a failed step is not tried again yet, or the source is paused."""
        with self._step_lock:
            self._pass_over()

    def _pass_over(self) -> None:
        """Let local time go on without upstream: who reads is not to wait for what may never come."""
        if self._follower is None or not self._follower.passing:
            return
        end = self._now_ms() + 1
        if end > self.upper and (commands := self._moves(end, self._follower.stopped())):
            self._environment.commit(*commands)

    def _wake_reader(self) -> None:
        if self._follower is not None:
            self._follower.wake()
