"""Temporal filters: a million rows flow through a window of five seconds; expirations while few and while many wait.

Time is logical: a minute of it passes as fast as ticks can follow. The table forgets what is over, as one with a time
to live would, so what is left on disk and in memory is what the window needs. `BENCH_SCALE` shrinks the number of rows,
not the minute.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from benchmarks.compute import folder
from benchmarks.compute_setup import engine_of, spark
from benchmarks.report import Figure, Report
from everview.compute.dataflow import Dataflow, maintain_view, schema_of
from everview.compute.engine.contract import Engine
from everview.compute.engine.spark.session import Spark
from everview.compute.ir.relation import Relation
from everview.compute.ir.types import INT8
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection
from everview.storage.contract import Create, Downgrade, ReadCapability, WriteCapability
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, TIME

ROWS, KEYS = 1_000_000, 100
LIFE_MS, STEP_MS, MINUTE_MS = 5_000, 500, 60_000
WINDOW = f"SELECT k, count(*), sum(ts) FROM events WHERE mz_now() >= ts AND mz_now() < ts + {LIFE_MS} GROUP BY k"
LIVE = "SELECT k, ts FROM events WHERE mz_now() < ts"
EXPIRING, EXPIRATIONS = 1_000, 22
FEW, MANY = 10_000, 10_000_000
CHUNK_ROWS = 2_000_000


def run(report: Report, scale: float) -> None:
    """All of them, on one Spark."""
    with folder() as scratch, spark(scratch) as started:
        engine = engine_of(started)
        with folder() as place:
            flowing(report, scale, started, place)
        waiting(report, scale, engine)


class Events:
    """The catalog of one relation."""

    def find(self, path: Sequence[str]) -> Collection | None:
        """Its only name."""
        return Collection("events", ("k", "ts"), (INT8, INT8)) if path[-1] == "events" else None

    def names(self) -> list[str]:
        """The names that there are."""
        return ["events"]


def plan_of(query: str) -> Relation:
    return optimize(plan(query, Events()).relation)


@dataclass
class Watched:
    """A view over `events`, with the capabilities that say how much of the past is kept."""

    environment: Environment
    writer: WriteCapability
    flow: Dataflow
    readers: list[ReadCapability]

    def tick(self, updates: pa.Table | None, upper: int) -> float:
        """Write, then let the view follow; gives the seconds that the latter took."""
        self.writer = self.environment.append(self.writer, updates, Antichain(upper))
        started = time.perf_counter()
        assert self.flow.tick()
        return time.perf_counter() - started

    def forget(self, time: int) -> None:
        """No one reads at times before this any more."""
        self.readers = self.environment.commit(*(Downgrade(each, Antichain(time)) for each in self.readers))


def watched(environment: Environment, query: str, engine: Engine) -> Watched:
    ((reader, writer),) = environment.commit(Create("events", schema_of((INT8, INT8))))
    flow, output = maintain_view(environment, "v", plan_of(query), [reader], engine)
    return Watched(environment, writer, flow, [reader, output])


def updates_of(keys: np.ndarray, stamps: np.ndarray, times: np.ndarray, diff: int) -> pa.Table:
    diffs = np.full(len(keys), diff, dtype=np.int64)
    return pa.table({"c0": keys, "c1": stamps, TIME: times, DIFF: diffs})


# Flowing


@dataclass
class Curve:
    """What was measured second by second."""

    state_rows: list[float] = field(default_factory=list)
    disk_bytes: list[float] = field(default_factory=list)
    memory_bytes: list[float] = field(default_factory=list)

    heap_bytes: list[float] = field(default_factory=list)

    def take(self, environment: Environment, place: Path, spark: Spark) -> None:
        """Measure once more."""
        ids = [id for id in environment.ids() if id.startswith("v.")]
        batches = [batch for id in ids for batch in environment.shard(id).batches.values()]
        self.state_rows.append(sum(batch.rows for batch in batches))
        self.disk_bytes.append(sum(each.stat().st_size for each in place.rglob("*") if each.is_file()))
        self.memory_bytes.append(psutil.Process().memory_info().rss)
        self.heap_bytes.append(heap_in_use(spark))


def heap_in_use(spark: Spark) -> float:
    """What Spark's JVM holds on to, once it has let go of the rest."""
    jvm: Any = spark.small._jvm
    jvm.java.lang.System.gc()
    return float(jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed())


def flowing(report: Report, scale: float, spark: Spark, place: Path) -> None:
    """Rows that last five seconds, for a minute: nothing may grow with the number that has passed."""
    rows = max(20_000, int(ROWS * scale))
    steps = MINUTE_MS // STEP_MS
    report.title(f"{rows:,} rows of {LIFE_MS // 1000} seconds each through a sliding window for a minute")
    rng = np.random.default_rng(1)
    curve, took = Curve(), []
    with Environment.open(place / "data", background=False) as environment:
        view = watched(environment, WINDOW, engine_of(spark))
        alive: deque[tuple[np.ndarray, np.ndarray]] = deque()
        for step in range(steps):
            now = step * STEP_MS
            count = (step + 1) * rows // steps - step * rows // steps
            stamps = np.sort(rng.integers(now, now + STEP_MS, count))
            keys = rng.integers(0, KEYS, count)
            alive.append((keys, stamps))
            tables = [updates_of(keys, stamps, stamps, 1)]
            if len(alive) > (LIFE_MS + STEP_MS) // STEP_MS:
                old_keys, old_stamps = alive.popleft()
                tables.append(updates_of(old_keys, old_stamps, np.full(len(old_keys), now), -1))
            took.append(view.tick(pa.concat_tables(tables), now + STEP_MS))
            if now % 1_000 + STEP_MS == 1_000:
                view.forget(now)
                environment.maintenance.run()
                curve.take(environment, place, spark)
    shown(report, "updates in the state of the view", curve.state_rows, "")
    shown(report, "disk, with the table", [each / 2**20 for each in curve.disk_bytes], " MiB")
    shown(report, "memory of the process", [each / 2**20 for each in curve.memory_bytes], " MiB")
    shown(report, "heap of Spark", [each / 2**20 for each in curve.heap_bytes], " MiB")
    rate, wanted = 1 / statistics.mean(took[len(took) // 6 :]), 1000 / STEP_MS
    ours = f"{rate:,.1f}/s, {rows / steps:,.0f} rows in and out of each"
    report.add(Figure("ticks per second", ours, f"{wanted:g}/s is the pace of the clock", wanted / rate, 1.0))


def shown(report: Report, what: str, values: Sequence[float], unit: str) -> None:
    """A curve, and how its end compares with its beginning once the window is full."""
    marks, top = "▁▂▃▄▅▆▇█", max(values)
    report.note(f"{what}: {''.join(marks[min(7, int(8 * value / top))] for value in values)}  up to {top:,.0f}{unit}")
    full, end = statistics.mean(values[10:25]), statistics.mean(values[-15:])
    report.add(
        Figure(f"{what}, at the end", f"{end:,.0f}{unit}", f"seconds 10 to 25 {full:,.0f}{unit}", end / full, 1.2)
    )


# Waiting


def waiting(report: Report, scale: float, engine: Engine) -> None:
    """A tick in which 1,000 rows expire, while few rows wait and while many do."""
    many = max(200_000, int(MANY * scale))
    report.title(f"a tick with {EXPIRING:,} expirations while {FEW:,} and {many:,} rows wait")
    medians = []
    for rows in (FEW, many):
        with folder() as place, Environment.open(place / "data", background=False) as environment:
            took = expirations(environment, rows, engine)
            medians.append(statistics.median(took))
            report.note(f"{rows:,} rows wait: {', '.join(f'{each * 1000:,.0f}' for each in took)} ms")
    few_s, many_s = medians
    reference = f"{few_s * 1000:,.0f} ms while {FEW:,} wait"
    report.add(Figure(f"tick while {many:,} wait", f"{many_s * 1000:,.0f} ms", reference, many_s / few_s, 1.5))


def expirations(environment: Environment, rows: int, engine: Engine) -> list[float]:
    """The seconds of ticks, each with so many expirations: one second of time each, and an hour on the others wait."""
    view = watched(environment, LIVE, engine)
    rng = np.random.default_rng(2)
    soon = np.repeat(np.arange(1, EXPIRATIONS + 1) * 1_000, EXPIRING)
    late = 3_600_000 + rng.integers(0, 86_400_000, rows)
    stamps = np.concatenate([soon, late])
    for number, first in enumerate(range(0, len(stamps), CHUNK_ROWS)):
        part = stamps[first : first + CHUNK_ROWS]
        keys, times = np.arange(first, first + len(part)), np.full(len(part), number, dtype=np.int64)
        view.writer = environment.append(view.writer, updates_of(keys, part, times, 1), Antichain(number + 1))
    view.flow.tick()
    environment.maintenance.run()
    took = []
    for number in range(1, EXPIRATIONS + 1):
        took.append(view.tick(None, number * 1_000 + 1))
        view.forget(number * 1_000)
        environment.maintenance.run()
    return took[2:]  # the first ones warm up
