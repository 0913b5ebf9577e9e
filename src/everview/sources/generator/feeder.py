"""Feeds the collections of a load generator: ticks that are due are written, and in between their frontiers move on.

Where the collections stand says which ticks have been written, so after a restart, or a crash at any moment, the feeder
goes on with the next one. All collections of a generator move in one commit.

A generator may have started before its collections: then they begin with what all ticks up to that moment have made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from everview.background import Backoff, Loop, LoopStatus
from everview.compute.rows.arrow import rows_to_arrow
from everview.compute.rows.collection import rows_of
from everview.sources.generator.contract import Generator, Row, Table
from everview.storage.contract import Command, GlobalId, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.storage.errors import Canceled, Fenced, UnknownId
from everview.timely.antichain import Antichain
from everview.timely.consolidate import TIME, with_column

TICKS_AT_ONCE_MAX = 1_000  # of one commit, while it catches up
IDLE_S = 1.0  # how often frontiers move on while nothing happens and nobody asks
BACKOFF = Backoff(0.1, IDLE_S)
CLOSE_S = 10.0


@dataclass(frozen=True, slots=True)
class Output:
    """The collection of one table: its id, and the token of the capability to write it."""

    id: GlobalId
    writer: str


class Feeder:
    """Feeds one generator, in a thread of its own."""

    def __init__(
        self,
        environment: Environment,
        generator: Generator,
        outputs: Mapping[str, Output],
        *,
        start_ms: int,
        interval_ms: int,
        now_ms: Callable[[], int],
        from_ms: int | None = None,
    ) -> None:
        """With `from_ms`, the time at which the collections begin, if that is not when the generator starts."""
        self._environment, self._generator, self._outputs = environment, generator, outputs
        self._start_ms, self._interval_ms, self._now_ms = start_ms, interval_ms, now_ms
        self._from_ms = start_ms if from_ms is None else from_ms
        self._tables: dict[str, Table] = {table.name: table for table in generator.tables}
        ends = (Canceled, Fenced, UnknownId)  # closed, taken over by another process, or dropped
        self._loop = Loop("everview-generator", self._step, backoff=BACKOFF, ends=ends)

    def start(self) -> None:
        """Begin to feed."""
        self._loop.start()

    def ask(self) -> None:
        """Someone waits for the present: move on now."""
        self._loop.wake()

    def close(self) -> None:
        """Feed no longer."""
        self._loop.stop(CLOSE_S)

    @property
    def status(self) -> LoopStatus:
        """Whether feeding fails, and when it is tried again."""
        return self._loop.status

    @property
    def upper(self) -> int:
        """How far the collections are complete."""
        first = next(iter(self._outputs.values()))
        return self._environment.frontiers(first.id).upper.only

    def step(self) -> bool:
        """Write what is due, and move the frontiers to the present; false if there was nothing to do."""
        lower, upper = self.upper, self._now_ms()
        if upper <= lower:
            return False
        ticks = self._due(lower, upper)
        past = len(self._due(0, self._from_ms + 1)) if lower == self._from_ms else 0  # all of them belong together
        if len(ticks) > past + TICKS_AT_ONCE_MAX:
            ticks = ticks[: past + TICKS_AT_ONCE_MAX]
            upper = self._time(ticks[-1]) + 1
        commands: list[Command] = []
        for name, table in self._updates(ticks).items():
            output = self._outputs[name]
            capability = self._environment.present(output.id, output.writer)
            assert isinstance(capability, WriteCapability)
            commands.append(UpdateAndDowngrade(capability, table, Antichain(upper)))
        self._environment.commit(*commands)
        return True

    def _time(self, tick: int) -> int:
        return self._start_ms + tick * self._interval_ms

    def _due(self, lower: int, upper: int) -> range:
        """The ticks at times from `lower` on and before `upper`; from the beginning, all before it as well."""
        first = 0 if lower == self._from_ms else max(0, -((self._start_ms - lower) // self._interval_ms))
        last = (upper - 1 - self._start_ms) // self._interval_ms
        return range(first, last + 1)

    def _updates(self, ticks: range) -> dict[str, pa.Table | None]:
        parts: dict[str, list[pa.Table]] = {name: [] for name in self._outputs}
        for at, some in groupby(ticks, lambda tick: max(self._time(tick), self._from_ms)):
            together: dict[str, list[tuple[Row, int]]] = {}
            for tick in some:
                for name, rows in self._generator.changes(tick).items():
                    together.setdefault(name, []).extend(rows)
            for name, changed in together.items():
                if changed:
                    types = self._tables[name].types
                    table = rows_to_arrow(rows_of(changed, types), types)
                    times = np.full(table.num_rows, at, dtype=np.int64)
                    parts[name].append(with_column(table, TIME, times))
        return {name: pa.concat_tables(tables) if tables else None for name, tables in parts.items()}

    def _step(self) -> float:
        self.step()
        now = self._now_ms()
        following = max(0, (now - self._start_ms) // self._interval_ms + 1)
        return min(IDLE_S, max(0.001, (self._time(following) + 1 - now) / 1000))
