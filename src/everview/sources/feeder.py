"""Feeds the collections of a source with what a reader finds: rows, position and frontiers are one commit.

After a restart, or a crash at any moment, it goes on from the position of the last commit. A reader that finds out from
the frontier of the collections where it stands has no position of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import structlog

from everview.background import Backoff, Loop
from everview.errors import text_of
from everview.sources.contract import RUNNING, STALLED, Feeding, Status
from everview.storage.contract import Command, Put, UpdateAndDowngrade, WriteCapability
from everview.storage.errors import Canceled, Fenced, UnknownId
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

    changes: Mapping[str, pa.Table]
    upper: int
    position: Position = None
    more: bool = False
    pause_s: float = IDLE_S


class Reader(Protocol):
    """Reads from outside, or makes up, what a source is fed with."""

    def news(self, position: Position, lower: int, end: int) -> News:
        """What is new since a position, at times from `lower` on and before `end`."""
        ...

    def close(self) -> None:
        """Let go of what is read."""
        ...


class Feeder:
    """Feeds one source, in a thread of its own."""

    def __init__(self, feeding: Feeding[Any], reader: Reader) -> None:
        assert feeding.now_ms is not None, "it feeds on the environment's timeline"
        self._environment, self._outputs, self._now_ms = feeding.environment, feeding.outputs, feeding.now_ms
        self._reader, self._key, self._more = reader, POSITION + feeding.id, False
        ends = (Canceled, Fenced, UnknownId)  # closed, taken over by another process, or dropped
        self._loop = Loop(
            f"everview-source-{feeding.id}",
            self._step,
            backoff=BACKOFF,
            ends=ends,
            on_failure=lambda error, _: _log.warning("source failed", source=feeding.name, error=text_of(error)),
        )

    def start(self) -> None:
        self._loop.start()

    def ask(self) -> None:
        self._loop.wake()

    def close(self) -> None:
        self._loop.stop(CLOSE_S)
        self._reader.close()

    def status(self) -> Status:
        loop = self._loop.status
        error = None if loop.error is None else text_of(loop.error)
        return Status(RUNNING if error is None else STALLED, error, None, loop.retry_ms, loop.failures)

    @property
    def upper(self) -> int:
        """How far the collections are complete."""
        first = next(iter(self._outputs.values()))
        return self._environment.frontiers(first.id).upper.only

    def step(self) -> News | None:
        """Write a part of what is new, and move the frontiers along; None if there was nothing to do."""
        lower, end = self.upper, self._now_ms() + 1
        if end <= lower:
            return None
        saved = self._environment.get(self._key)
        position = None if saved is None else json.loads(saved)
        news = self._reader.news(position, lower, end)
        commands: list[Command] = []
        for name, output in self._outputs.items():
            capability = self._environment.present(output.id, output.writer)
            assert isinstance(capability, WriteCapability)
            commands.append(UpdateAndDowngrade(capability, news.changes.get(name), Antichain(news.upper)))
        if news.position != position:
            commands.append(Put(self._key, json.dumps(news.position).encode()))
        self._environment.commit(*commands)
        return news

    def _step(self) -> float:
        news = self.step()
        if news is None:  # until the next millisecond, if there is more
            return 0.001 if self._more else IDLE_S
        self._more = news.more
        return 0.0 if news.more else news.pause_s
