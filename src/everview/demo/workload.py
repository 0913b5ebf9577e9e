"""The demo at work: a writer that commits the steps of the auction house, and a follower that adds up what it hears.

Every step is one atomic commit to all collections it touches, at a time of its own. Writers follow a clock, and so
do the readers that hold history, at a distance: moving all of them on is part of the same commit.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter, deque
from typing import cast

import pyarrow as pa

from everview.demo.generator import BIDS, SCHEMAS, Changes, Market, Row, add
from everview.storage.batch import update_schema
from everview.storage.contract import (
    AdvanceClock,
    Clone,
    Command,
    Create,
    Downgrade,
    Follow,
    ReadCapability,
    UpdateAndDowngrade,
    Updates,
    WriteCapability,
)
from everview.storage.environment import Environment, wall_clock_ms
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, data_names

CLOCK = "demo"
DOWNGRADE_EVERY_S = 0.5
CATCH_UP_S_MAX = 30.0


class Writer:
    """Commits one step of the market after the other."""

    def __init__(self, environment: Environment, seed: int, history_ms: int) -> None:
        """Make the collections; contents at the last `history_ms` stay readable."""
        self._environment = environment
        self._steps = Market(seed).steps()
        self.now = wall_clock_ms()
        self.times: list[int] = []  # of each step
        self.updates = 0
        self.rows = dict.fromkeys(SCHEMAS, 0)
        self._latencies_ms: deque[float] = deque(maxlen=1000)
        made = environment.commit(
            AdvanceClock(CLOCK, None, self.now), *(Create(id, schema, at=self.now) for id, schema in SCHEMAS.items())
        )
        read = {id: capabilities[0] for id, capabilities in zip(SCHEMAS, made[1:], strict=True)}
        write = {id: capabilities[1] for id, capabilities in zip(SCHEMAS, made[1:], strict=True)}
        (self.reader,) = environment.commit(Clone(read[BIDS]))
        followed = environment.commit(
            *(Follow(capability, CLOCK) for capability in write.values()),
            *(Follow(capability, CLOCK, history_ms) for capability in read.values()),
        )
        self._write: dict[str, WriteCapability] = dict(zip(SCHEMAS, followed, strict=False))

    def step(self) -> None:
        """Commit the next step."""
        changes = next(self._steps)
        to = max(wall_clock_ms(), self.now + 1)
        commands: list[Command] = [AdvanceClock(CLOCK, self.now, to)]
        commands += [
            UpdateAndDowngrade(self._write[id], updates_table(id, rows, self.now), Antichain(to))
            for id, rows in changes.items()
        ]
        began = time.perf_counter()
        self._environment.commit(*commands)
        self._latencies_ms.append((time.perf_counter() - began) * 1000)
        self._count(changes)
        self.now = to

    def _count(self, changes: Changes) -> None:
        self.times.append(self.now)
        for id, rows in changes.items():
            self.updates += len(rows)
            self.rows[id] += sum(diff for _, diff in rows)

    @property
    def latency_ms(self) -> float:
        """The time that a commit takes, in the middle of the recent ones."""
        return statistics.median(self._latencies_ms) if self._latencies_ms else 0.0


class Follower:
    """Subscribes to the bids, on a thread of its own, and adds up all that it is told."""

    def __init__(self, environment: Environment, capability: ReadCapability) -> None:
        self._environment = environment
        self._capability = capability
        self._subscription = environment.subscribe(capability)
        self.contents: Counter[Row] = Counter()
        self.updates = 0
        self._until: int | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="demo-follower", daemon=True)
        self._thread.start()

    @property
    def frontier(self) -> int:
        """Everything before this time has been heard."""
        return self._subscription.frontier

    def finish(self, until: int) -> None:
        """Wait until everything before `until` has been heard, and let go."""
        self._until = until
        self._thread.join(CATCH_UP_S_MAX)
        if self._error is not None:
            raise self._error
        self._environment.drop(self._capability)

    def _run(self) -> None:
        try:
            downgraded = time.monotonic()
            while self._until is None or self.frontier < self._until:
                event = self._subscription.next(timeout_s=0.1)
                if isinstance(event, Updates):
                    changes = rows_of(event.table)
                    self.updates += len(changes)
                    add(self.contents, changes)
                elif time.monotonic() - downgraded > DOWNGRADE_EVERY_S:
                    # History that has been heard need not be kept for us.
                    to = max(Antichain(self.frontier - 1), self._capability.frontier)
                    (moved,) = self._environment.commit(Downgrade(self._capability, to))
                    self._capability, downgraded = cast(ReadCapability, moved), time.monotonic()
        except Exception as error:  # told by `finish`, to whoever waits
            self._error = error


def updates_table(id: str, changes: list[tuple[Row, int]], at: int) -> pa.Table:
    """The changes as updates at one time."""
    schema = update_schema(SCHEMAS[id])
    columns = [list(column) for column in zip(*((at, diff, *row) for row, diff in changes), strict=True)]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def rows_of(table: pa.Table) -> list[tuple[Row, int]]:
    """The rows of a table with the diff of each."""
    columns = [table.column(name).to_pylist() for name in data_names(table)]
    return list(zip(zip(*columns, strict=True), table.column(DIFF).to_pylist(), strict=True))
