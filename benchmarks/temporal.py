"""Temporal filters: a window of five seconds, expirations while few and while many wait, and the state of a join.

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
from everview.compute.dataflow import Dataflow, maintain_view
from everview.compute.engine.contract import Engine
from everview.compute.engine.spark.session import Spark
from everview.compute.ir.relation import Get, Relation, walk
from everview.compute.ir.types import DATE, INT8, TEXT, SqlType
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection
from everview.compute.stored_state import schema_of
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
DAY_MS = 86_400_000
LINES, FIRST_DAY, DAYS = 200_000, 8_035, 2_526  # as in TPC-H, from 1992 on
Q3 = (
    "SELECT o_orderkey, o_orderdate, o_shippriority, sum(l_revenue) AS revenue FROM customer, orders, lineitem"
    " WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey"
    " AND o_orderdate < mz_now() AND l_shipdate > mz_now()"
    " GROUP BY o_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10"
)


def run(report: Report, scale: float) -> None:
    """All of them, on one Spark."""
    with folder() as scratch, spark(scratch) as started:
        engine = engine_of(started)
        with folder() as place:
            flowing(report, scale, started, place)
        waiting(report, scale, engine)
        with folder() as place:
            shipping(report, scale, engine, place)


SCHEMAS: dict[str, dict[str, SqlType]] = {
    "events": {"k": INT8, "ts": INT8},
    "customer": {"c_custkey": INT8, "c_mktsegment": TEXT},
    "orders": {"o_orderkey": INT8, "o_custkey": INT8, "o_orderdate": DATE, "o_shippriority": INT8},
    "lineitem": {"l_orderkey": INT8, "l_revenue": INT8, "l_shipdate": DATE},
}


class Relations:
    """The catalog."""

    def find(self, path: Sequence[str]) -> Collection | None:
        """One of them by its name."""
        columns = SCHEMAS.get(path[-1])
        return None if columns is None else Collection(path[-1], tuple(columns), tuple(columns.values()))

    def names(self) -> list[str]:
        """The names that there are."""
        return list(SCHEMAS)


def plan_of(query: str) -> Relation:
    return optimize(plan(query, Relations()).relation)


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


# Shipping


def shipping(report: Report, scale: float, engine: Engine, place: Path) -> None:
    """TPC-H Q3 as of now over lines that ship day by day: of these it keeps what has not shipped yet."""
    lines = max(50_000, int(LINES * scale))
    report.title(f"TPC-H Q3 as of now over {lines:,} lines that ship within seven years")
    rng = np.random.default_rng(3)
    orders = np.arange(lines // 4)
    ordered = FIRST_DAY + rng.integers(0, DAYS - 121, len(orders))
    of = rng.integers(0, len(orders), lines)
    shipped = ordered[of] + rng.integers(1, 122, lines)
    segments = np.array(["BUILDING", "AUTOMOBILE", "MACHINERY", "HOUSEHOLD", "FURNITURE"])
    customers = np.arange(max(1, len(orders) // 10))
    tables = {
        "customer": (customers, segments[rng.integers(0, 5, len(customers))]),
        "orders": (
            orders,
            rng.integers(0, len(customers), len(orders)),
            days(ordered),
            np.zeros(len(orders), np.int64),
        ),
        "lineitem": (of, np.arange(lines), days(shipped)),
    }
    start = FIRST_DAY + DAYS // 2
    worst = 0.0
    with Environment.open(place / "data", background=False) as environment:
        created = environment.commit(
            *(Create(name, schema_of(list(SCHEMAS[name].values())), at=start * DAY_MS) for name in tables)
        )
        writers = {writer.id: writer for _, writer in created}
        flow, _ = maintain_view(environment, "q3", plan_of(Q3), [reader for reader, _ in created], engine)
        for name, columns in tables.items():
            updates = {f"c{place}": pa.array(column) for place, column in enumerate(columns)}
            count = len(columns[0])
            updates |= {TIME: pa.array(np.full(count, start * DAY_MS)), DIFF: pa.array(np.ones(count, np.int64))}
            writers[name] = environment.append(writers[name], pa.table(updates), Antichain(start * DAY_MS + 1))
        for day in (start, start + DAYS // 8, start + DAYS // 4, start + DAYS // 2 - 60):
            upper = day * DAY_MS + 1
            for name, writer in writers.items():
                if environment.frontiers(name).upper.only < upper:
                    writers[name] = environment.append(writer, None, Antichain(upper))
            assert flow.tick()
            kept, pending = kept_of(flow, environment, upper)
            seen, placed = int((shipped > day).sum()), int((ordered < day).sum())
            worst = max(worst, kept["lineitem"] / seen)
            report.note(
                f"day {day - start:,}: {kept['lineitem']:,} lines kept, of {lines:,}; {seen:,} can still be seen;"
                f" {kept['orders']:,} rows of orders, by two keys, where {placed:,} are placed;"
                f" {pending:,} changes wait for their time"
            )
    reference = "1.0 times the lines that can still be seen"
    report.add(Figure("lines that Q3 as of now keeps to join them", f"{worst:.2f} times", reference, worst, 1.2))


def days(numbers: np.ndarray) -> pa.Array:
    """Days since 1970 as dates."""
    return pa.array(numbers.astype(np.int32), pa.int32()).cast(pa.date32())


def kept_of(flow: Dataflow, environment: Environment, upper: int) -> tuple[dict[str, int], int]:
    """How many rows of each input a view keeps to look them up, and how many changes wait for their time.

    A row that has come waits to go, and one that has not come to do both: what waits is one more for each, or two.
    """
    kept: dict[str, int] = dict.fromkeys(SCHEMAS, 0)
    pending = 0
    for each in flow.view.program.arrangements:
        read = {part.id for part in walk(each.contents) if isinstance(part, Get)} if each.contents else set()
        if len(read) != 1 and not each.pending:
            continue
        id = f"{flow.id}.{each.name}"  # what was not written since holds what it held
        with environment.contents(id, min(upper, environment.frontiers(id).upper.only) - 1) as selection:
            rows = selection.contents().num_rows
        if each.pending:
            pending += rows
        else:
            kept[read.pop()] += rows
    return kept, pending
