"""Storage: commits, bulk appends and reads, look-ups, idle collections, and the memory that compaction needs."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import Figure, Report, seconds
from everview.storage.consensus.sqlite import SqliteConsensus
from everview.storage.contract import AdvanceClock, Create, Follow
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain

SMALL = pa.schema([("id", pa.int64()), ("name", pa.string())])
WIDE = pa.schema([("id", pa.int64()), ("group", pa.int32()), ("price", pa.float64()), ("name", pa.string())])


def run(report: Report, scale: float) -> None:
    """All of them."""
    for measure in (commits, bulk, lookups, idle, compaction_memory):
        folder = Path(tempfile.mkdtemp(prefix="everview-bench-"))
        try:
            measure(report, scale, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def one_row(time_: int) -> pa.RecordBatch:
    columns = {
        "_time": pa.array([time_]),
        "_diff": pa.array([1]),
        "id": pa.array([time_]),
        "name": pa.array(["some name"]),
    }
    return pa.RecordBatch.from_pydict(columns)


def many_rows(rows: int, time_: int, first: int = 0, diff: int = 1) -> pa.Table:
    rng = np.random.default_rng(first)
    return pa.table(
        {
            "_time": np.full(rows, time_),
            "_diff": np.full(rows, diff),
            "id": np.arange(first, first + rows),
            "group": rng.integers(0, 1000, rows).astype(np.int32),
            "price": rng.random(rows),
            "name": pa.array(np.char.add("name-", rng.integers(0, 100_000, rows).astype(str))),
        }
    )


def commits(report: Report, scale: float, folder: Path) -> None:
    """Durable commits of one row, by one writer and by many, beside bare SQLite in the same folder."""
    report.title("small durable commits")
    count = max(200, int(8000 * scale))

    def bare() -> None:
        with_path = folder / "bare.db"
        with_path.unlink(missing_ok=True)
        db = sqlite3.connect(with_path, isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, payload BLOB)")
        payload = one_row(1).serialize().to_pybytes()
        for number in range(count):
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO t VALUES (?, ?)", (number, payload))
            db.execute("COMMIT")
        db.close()

    bare_rate = count / seconds(bare, 2)
    for writers in (1, 16):
        with Environment.open(folder / f"writers{writers}") as environment:
            created = environment.commit(*(Create(f"u{n}", SMALL) for n in range(writers)))
            batches = [one_row(t) for t in range(count // writers)]

            def write(
                number: int, environment: Environment = environment, batches: list = batches, created: list = created
            ) -> None:
                capability = created[number][1]
                for t, batch in enumerate(batches):
                    capability = environment.append(capability, batch, Antichain(t + 1))

            def all_writers(write=write, writers: int = writers) -> None:  # type: ignore[no-untyped-def]
                threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()

            rate = len(batches) * writers / seconds(all_writers)
        what = f"commits/s, {writers} writer{'s' * (writers > 1)}"
        report.add(Figure(what, f"{rate:,.0f}/s", f"bare SQLite {bare_rate:,.0f}/s", bare_rate / rate, 2.0))


def bulk(report: Report, scale: float, folder: Path) -> None:
    """Appending and reading back many updates, beside pyarrow writing and reading the same file."""
    rows = int(5_000_000 * scale)
    report.title(f"bulk append and snapshot read, {rows:,} updates")
    table = many_rows(rows, 5)
    with Environment.open(folder / "data", background=False) as environment:
        _, write = environment.create("u1", WIDE)
        ours = seconds(lambda: environment.append(write, table, Antichain(10)))
        parts = [part for batch in environment.shard("u1").batches.values() for part in batch.parts]
        files = [folder / "data" / "blob" / part.key for part in parts]
        stored = pa.concat_tables([pq.read_table(file) for file in files]).combine_chunks()
        copy = folder / "copy.parquet"

        def write_parquet() -> None:
            with pq.ParquetWriter(
                copy,
                stored.schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=["_time", "_diff", "group", "name"],
                write_page_checksum=True,
            ) as writer:
                writer.write_table(stored, row_group_size=1 << 16)
            with copy.open("rb") as file:
                os.fsync(file.fileno())

        theirs = seconds(write_parquet)
        report.add(
            Figure("bulk append", f"{ours:.2f} s", f"pyarrow writes it sorted, {theirs:.2f} s", ours / theirs, 1.5)
        )

        def read() -> None:
            with environment.contents("u1", 9) as selection:
                assert selection.contents().num_rows == rows

        ours = seconds(read, 3)
        theirs = seconds(lambda: pq.read_table(copy), 3)
        report.add(Figure("snapshot read", f"{ours:.2f} s", f"pyarrow reads it, {theirs:.2f} s", ours / theirs, 1.5))


def lookups(report: Report, scale: float, folder: Path) -> None:
    """The rows of 100 keys, out of few and out of many."""
    sizes = (10_000, int(10_000_000 * scale))
    report.title(f"100 keys out of {sizes[0]:,} and out of {sizes[1]:,} rows")
    latency_ms = []
    for rows in sizes:
        with Environment.open(folder / str(rows), background=False) as environment:
            _, write = environment.create("u1", WIDE, key=["id"])
            environment.append(write, many_rows(rows, 5), Antichain(10))
            environment.maintenance.compact("u1")
            rng = random.Random(1)
            samples = []
            for number in range(400):
                keys = pa.table({"id": pa.array(rng.sample(range(rows), 100), pa.int64())})
                started = time.perf_counter()
                with environment.contents("u1", 9, environment.key_hashes("u1", keys)) as selection:
                    found = selection.contents()
                if number >= 200:  # after the hot copy is made and its pages are in memory
                    samples.append((time.perf_counter() - started) * 1000)
                assert found.num_rows == 100
            latency_ms.append(statistics.median(samples))
    few, many = latency_ms
    report.add(
        Figure(f"look-up out of {sizes[1]:,}", f"{many:.2f} ms", f"out of {sizes[0]:,}, {few:.2f} ms", many / few, 1.5)
    )


def idle(report: Report, scale: float, folder: Path) -> None:
    """Moving a thousand idle collections on in time."""
    count = max(10, int(1000 * scale))
    report.title(f"advancing {count:,} idle collections")
    with Environment.open(folder, background=False) as environment:
        environment.commit(AdvanceClock("tables", None, 1))
        created = environment.commit(*(Create(f"u{n}", SMALL, at=1) for n in range(count)))
        environment.commit(
            *(command for r, w in created for command in (Follow(r, "tables", 1000), Follow(w, "tables")))
        )
        consensus = SqliteConsensus(folder / "consensus.db", read_only=True)
        before = {key: entry.version for key, entry in consensus.scan("")}
        commits_before = environment.commits
        took_ms = seconds(lambda: environment.commit(AdvanceClock("tables", 1, 5000))) * 1000
        written = [key for key, entry in consensus.scan("") if before.get(key) != entry.version]
        consensus.close()
        assert environment.frontiers(f"u{count - 1}").upper == Antichain(5000)
    done = environment.commits - commits_before
    report.add(Figure("transactions", f"{done}, writing {len(written)} entry in {took_ms:.2f} ms", "one", done, 1, ""))


def compaction_memory(report: Report, scale: float, folder: Path) -> None:
    """The memory that a process needs on top of its own while it compacts, measured in a process of its own."""
    rows = int(10_000_000 * scale)
    report.title(f"compacting {rows:,} updates")
    with Environment.open(folder / "data", background=False) as environment:
        read, write = environment.create("u1", WIDE)
        pieces = 10
        for number in range(pieces):
            # Half of what a piece inserts is taken away by the next one, so that there is something to cancel.
            table = many_rows(rows // pieces // 2, number, first=number * rows)
            if number:
                table = pa.concat_tables([table, many_rows(rows // pieces // 2, number, (number - 1) * rows, -1)])
            write = environment.append(write, table, Antichain(number + 1))
        environment.downgrade(read, Antichain(pieces - 1))
        stored = sum(batch.rows for batch in environment.shard("u1").batches.values())
    script = Path(__file__).with_name("compact_alone.py")
    done = subprocess.run(
        [sys.executable, str(script), str(folder / "data")], capture_output=True, text=True, check=True
    )
    peak_mib, took_s, left = done.stdout.split()
    report.note(f"{stored:,} updates became {int(left):,} in {float(took_s):.1f} s")
    report.add(Figure("peak memory", f"{float(peak_mib):,.0f} MiB", "limit 1,024 MiB", float(peak_mib) / 1024, 1.0))
