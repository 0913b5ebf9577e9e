"""Many rows at once over the wire, and single rows: COPY both ways, ordered results, grouping, inserts and look-ups.

PostgreSQL does the same work beside ours on the same machine, with the same client. `BENCH_SCALE` shrinks the rows.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from benchmarks.database_setup import Connection, Load, connect, pgbench, postgres, served
from benchmarks.report import Figure, Report

ROWS, GROUPS, REPEAT = 500_000, 10_000, 3
SECONDS, WARM_UP_S = 8.0, 2.0
CHUNK_BYTES = 64 << 10
TABLE = (
    "CREATE TABLE lines (id int NOT NULL, customer int NOT NULL, price numeric(12,2) NOT NULL,"
    " bought timestamp NOT NULL, note text)"
)
INSERT = "\\set n random(1, 1000000)\nINSERT INTO events VALUES (:client_id, :n);\n"
LOOK_UP = "\\set id random(1, {rows})\nSELECT id, customer, price FROM lines WHERE id = :id;\n"


def run(report: Report, scale: float) -> None:
    """All of them."""
    rows = max(2_000, int(ROWS * scale))
    data = _data(rows)
    report.title(f"{rows:,} rows of five columns, {len(data) >> 20} MB as COPY data")
    with served() as server, postgres() as other:
        with connect(server.url) as ours, connect(other) as theirs:
            for each in (ours, theirs):
                each.execute(TABLE)
            _figure(report, "COPY in", rows, lambda: _copy_in(ours, data), lambda: _copy_in(theirs, data))
            for form in ("text", "csv", "binary"):
                copy = f"COPY lines TO STDOUT (FORMAT {form})"
                work = [_repeated(lambda each=each, copy=copy: _copy_out(each, copy)) for each in (ours, theirs)]
                _figure(report, f"COPY out, {form}", rows, *work)
            ordered = "SELECT * FROM lines ORDER BY price, id"
            for form in (0, 1):
                work = [_repeated(lambda each=each, form=form: _rows(each, ordered, form)) for each in (ours, theirs)]
                _figure(report, f"SELECT * ORDER BY, {'binary' if form else 'text'}", rows, *work)
            grouped = "SELECT customer, count(*), sum(price), max(bought) FROM lines GROUP BY customer"
            work = [_repeated(lambda each=each: _rows(each, grouped, 0)) for each in (ours, theirs)]
            _figure(report, f"GROUP BY, {min(GROUPS, rows):,} groups", rows, *work, aim=4.0)
            ours.execute("CREATE INDEX lines_by_id ON lines (id)")
            theirs.execute("ALTER TABLE lines ADD PRIMARY KEY (id)")
            for each in (ours, theirs):
                each.execute("CREATE TABLE events (client int, n int)")
        look_ups(report, rows, scale, server.url, other)
        inserts(report, scale, server.url, other)


def look_ups(report: Report, rows: int, scale: float, url: str, other: str) -> None:
    """One client that looks up one row after the other by the key of an index."""
    ours, theirs = (_load(each, LOOK_UP.format(rows=rows), 1, scale) for each in (url, other))
    ours_us, theirs_us = (1000 * statistics.median(each.latencies_ms) for each in (ours, theirs))
    report.add(Figure("look-up, p50", f"{ours_us:.0f} us", f"PostgreSQL {theirs_us:.0f} us", ours_us / theirs_us, 2.0))


def inserts(report: Report, scale: float, url: str, other: str) -> None:
    """Single rows, each a prepared statement and durable when it is acknowledged."""
    for clients in (1, 8):
        ours, theirs = (_load(each, INSERT, clients, scale) for each in (url, other))
        label = f"inserts, {clients} client{'s' if clients > 1 else ''}"
        reference = f"PostgreSQL {theirs.per_second:,.0f}/s"
        report.add(Figure(label, f"{ours.per_second:,.0f}/s", reference, theirs.per_second / ours.per_second, 3.0))


def _load(url: str, script: str, clients: int, scale: float) -> Load:
    pgbench(url, script, connections=clients, seconds=WARM_UP_S)
    return pgbench(url, script, connections=clients, seconds=max(2.0, SECONDS * scale))


def _figure(report: Report, what: str, rows: int, *work: Callable[[], float], aim: float = 3.0) -> None:
    """What we and then PostgreSQL take for it, in seconds."""
    ours_s, theirs_s = (each() for each in work)
    shown, beside = (f"{each:.2f} s, {rows / each:,.0f} rows/s" for each in (ours_s, theirs_s))
    report.add(Figure(what, shown, f"PostgreSQL {beside}", ours_s / theirs_s, aim))


def _repeated(work: Callable[[], float]) -> Callable[[], float]:
    return lambda: min(work() for _ in range(REPEAT))


def _data(rows: int) -> bytes:
    """COPY data: identifiers in no order, prices, times, and notes of which some are NULL."""
    lines = []
    for number in range(rows):
        id = number * 7919 % rows if rows % 7919 else number
        bought = f"2026-{id % 12 + 1:02d}-{id % 28 + 1:02d} {id % 24:02d}:{id % 60:02d}:{id % 59:02d}.{id % 1000:03d}"
        note = "\\N" if id % 10 == 0 else f"a note about line {id}"
        lines.append(f"{id}\t{number % GROUPS}\t{id % 9973}.{id % 100:02d}\t{bought}\t{note}\n")
    return "".join(lines).encode()


def _copy_in(connection: Connection, data: bytes) -> float:
    began = time.perf_counter()
    with connection.cursor().copy("COPY lines FROM STDIN") as copy:
        for start in range(0, len(data), CHUNK_BYTES):
            copy.write(data[start : start + CHUNK_BYTES])
    return time.perf_counter() - began


def _copy_out(connection: Connection, statement: str) -> float:
    began = time.perf_counter()
    size = 0
    with connection.cursor().copy(statement) as copy:
        for data in copy:
            size += len(data)
    assert size
    return time.perf_counter() - began


def _rows(connection: Connection, query: str, form: int) -> float:
    """Have all rows in the client, as libpq has them: what a driver makes of them is its own affair."""
    began = time.perf_counter()
    result = connection.pgconn.exec_params(query.encode(), [], result_format=form)
    assert result.ntuples, result.error_message
    return time.perf_counter() - began
