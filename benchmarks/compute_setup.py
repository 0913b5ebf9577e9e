"""What the benchmarks of compute start from: TPC-H in an environment, the stream that changes it, one Spark.

Generated data and the environments of other systems are kept in a cache folder outside of the repository:
`EVERVIEW_BENCH_CACHE`, else the user's cache folder.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from everview.compute.dataflow import Dataflow
from everview.compute.engine.contract import Engine
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import Spark, start
from everview.compute.ir.relation import Relation
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.query import plan
from everview.storage.environment import Environment
from tests.tpch.generated import generate_files, read_tables
from tests.tpch.recomputed import use_snapshot, write_snapshot
from tests.tpch.refresh import Changes, Refresh
from tests.tpch.schema import TABLES
from tests.tpch.stored import Stored, advance, timed
from tests.tpch.test_binding import Tpch

Q3_TABLES = ("customer", "orders", "lineitem")
WARM_UP_TICKS = 50


def cache() -> Path:
    """The folder for what is worth keeping from run to run."""
    named = os.environ.get("EVERVIEW_BENCH_CACHE")
    folder = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "everview-bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def spark(folder: Path) -> Iterator[Spark]:
    """The Spark that both sides of every comparison use, warm."""
    memory = os.environ.get("BENCH_SPARK_MEMORY", "6g")
    started = start(scratch=folder / "spark", options={"spark.driver.memory": memory})
    started.warm_up()
    try:
        yield started
    finally:
        started.stop()


def engine_of(spark: Spark) -> Engine:
    """The engine that maintains views on this Spark."""
    return SparkEngine.of(spark)


def relation_of(query: str) -> Relation:
    """The plan of a query over TPC-H."""
    return optimize(plan(query, Tpch()).relation)


@dataclass
class Loaded:
    """TPC-H at a scale in an environment, and the time that comes next."""

    scale: float
    environment: Environment
    stored: Stored
    stream: Refresh
    next: int = 1

    def write(self, changes: Changes) -> int:
        """Commit changes at the next time; gives their number."""
        tables = {
            name: timed(table, self.stored.schemas[name], self.next)
            for name, table in changes.items()
            if name in self.stored.schemas
        }
        self.stored.write(tables, self.next + 1)
        self.next += 1
        return sum(table.num_rows for table in tables.values())

    def snapshot(self, folder: Path) -> Path:
        """The contents now, as Parquet files that Spark can read by itself."""
        return write_snapshot(folder, ((name, self.stream.contents(name)) for name in self.stored.schemas))


@contextmanager
def loaded(scale: float, folder: Path, names: Sequence[str] = Q3_TABLES) -> Iterator[Loaded]:
    """An environment with these tables, complete up to time 1, of which a share of the orders is held back."""
    files = generate_files(scale, cache() / f"tpch-{scale:g}")
    needed = {*names, "orders", "lineitem", "customer", "part"}
    stream = Refresh(read_tables(files, [name for name in TABLES if name in needed]), seed=1, held_back=0.05)
    with Environment.open(folder, background=False) as environment:
        stored = Stored(environment, {name: tuple(TABLES[name].values()) for name in names})
        for name in names:  # one after the other: only one table is there twice at a time
            stored.append(name, timed(stream.contents(name), stored.schemas[name], 0), 1)
        yield Loaded(scale, environment, stored, stream)


@dataclass(frozen=True, slots=True)
class Ticks:
    """How long ticks took, and how many rows changed in each."""

    seconds: tuple[float, ...]
    rows: int

    @property
    def median_s(self) -> float:
        """Half of the ticks took less."""
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        median, best, worst = (s * 1000 for s in (self.median_s, min(self.seconds), max(self.seconds)))
        return f"{median:,.0f} ms (best {best:,.0f}, worst {worst:,.0f})"


def run_ticks(data: Loaded, flow: Dataflow, rows: int, count: int, *, warm_up: int = WARM_UP_TICKS) -> Ticks:
    """Ticks of so many rows each, after some that are not counted: from the inputs' commit to the view's.

    These are many, for it takes Java some dozens to compile what a tick runs, and a server has had them.
    """
    return run_in_turn([(data, flow)], rows, count, warm_up=warm_up)[0]


def run_in_turn(
    sides: Sequence[tuple[Loaded, Dataflow]], rows: int, count: int, *, warm_up: int = WARM_UP_TICKS
) -> list[Ticks]:
    """The same for several at once, a tick of each in turn, so that all have the same Java."""
    took: list[list[float]] = [[] for _ in sides]
    sizes: list[list[int]] = [[] for _ in sides]
    for _ in range(warm_up + count):
        for side, (data, flow) in enumerate(sides):
            sizes[side].append(data.write(data.stream.rows(rows)))
            started = time.perf_counter()
            advance(flow, data.next)
            took[side].append(time.perf_counter() - started)
            data.environment.maintenance.run()
    return [
        Ticks(tuple(seconds[warm_up:]), round(statistics.mean(written[warm_up:])))
        for seconds, written in zip(took, sizes, strict=True)
    ]


def recompute(spark: Spark, snapshot: Path, query: str) -> pa.Table:
    """The answer of Spark itself over Parquet files."""
    use_snapshot(spark.bulk, snapshot)
    return spark.bulk.sql(query).toArrow()
