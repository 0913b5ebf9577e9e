"""The database as clients see it: ready after start, look-ups, inserts, freshness of views, and what idling costs.

Servers and clients are processes of their own, and PostgreSQL does the same work beside ours on the same machine.
`BENCH_SCALE` shrinks rows, seconds and the number of idle relations.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence

from benchmarks.database_setup import Connection, Load, Served, connect, folder, pgbench, postgres, served
from benchmarks.report import Figure, Report

STARTS = 3
ITEMS, GROUPS = 100_000, 20
LOOK_UP = "\\set id random(1, {rows})\nSELECT id, name, price FROM items WHERE id = :id;\n"
INSERT = "\\set n random(1, 1000000)\nINSERT INTO events VALUES (:client_id, :n);\n"
SECONDS, WARM_UP_S = 10.0, 2.0
READERS, WRITERS = 8, 16
CHANGES, CHANGES_WARM_UP = 100, 15
VIEWS, TABLES, IDLE_S = 100, 1_000, 25.0
SETTLE_S = 5.0  # after everything is made: compaction and the like


def run(report: Report, scale: float) -> None:
    """All of them."""
    starting(report)
    with served() as server, postgres() as other:
        look_ups(report, scale, server.url, other)
        inserts(report, scale, server.url, other)
        freshness(report, scale, server.url)
    idling(report, scale)


# Starting


def starting(report: Report) -> None:
    """From the command to the first row that is written; Spark is still starting then."""
    report.title("everview serve, until a table is made and written to")
    took = []
    for number in range(STARTS + 1):
        with folder() as place:
            server = Served(place)
            try:
                with connect(server.url) as connection:
                    connected = time.perf_counter() - server.began
                    connection.execute("CREATE TABLE t (a int)")
                    connection.execute("INSERT INTO t VALUES (1)")
                written = time.perf_counter() - server.began
                report.note(
                    f"start {number}: connected after {connected:.2f} s, written after {written:.2f} s"
                    + ("" if number else "; it compiles the modules, and does not count")
                )
                if number:
                    took.append(written)
            finally:
                server.close()
    median = statistics.median(took)
    report.add(Figure("start to first write", f"{median:.2f} s", f"median of {STARTS}", median, 2.0, " s"))


# Look-ups and inserts


def look_ups(report: Report, scale: float, url: str, other: str) -> None:
    """Rows by the key of an index, beside a primary key of PostgreSQL."""
    rows = max(1_000, int(ITEMS * scale))
    report.title(f"look-ups in {rows:,} rows by {READERS} connections")
    for place, key in (
        (url, "CREATE INDEX items_by_id ON items (id)"),
        (other, "ALTER TABLE items ADD PRIMARY KEY (id)"),
    ):
        with connect(place) as connection:
            connection.execute("CREATE TABLE items (id int NOT NULL, name text, price numeric(10,2))")
            with connection.cursor().copy("COPY items FROM STDIN") as copy:
                for number in range(1, rows + 1):
                    copy.write_row((number, f"item {number}", number % 1000))
            connection.execute(key)
    script = LOOK_UP.format(rows=rows)
    for what, protocol in (("look-up", "prepared"), ("look-up as text", "simple")):
        ours, theirs = _beside(report, url, other, script, connections=READERS, scale=scale, protocol=protocol)
        ours_ms, theirs_ms = (statistics.median(each.latencies_ms) for each in (ours, theirs))
        reference = f"PostgreSQL {theirs_ms:.2f} ms"
        report.add(Figure(f"{what}, median", f"{ours_ms:.2f} ms", reference, ours_ms / theirs_ms, 5.0))
        reference = f"PostgreSQL {theirs.per_second:,.0f}/s"
        worse = theirs.per_second / ours.per_second
        report.add(Figure(f"{what}, per second", f"{ours.per_second:,.0f}/s", reference, worse, 5.0))


def inserts(report: Report, scale: float, url: str, other: str) -> None:
    """Single rows, each acknowledged when it is durable, beside PostgreSQL with the same promise."""
    report.title(f"inserts of one row by {WRITERS} connections")
    for place in (url, other):
        with connect(place) as connection:
            connection.execute("CREATE TABLE events (client int, n int)")
    with connect(other) as connection:
        settings = [connection.execute(f"SHOW {name}").fetchall()[0][0] for name in ("fsync", "synchronous_commit")]
    report.note(f"PostgreSQL: fsync {settings[0]}, synchronous_commit {settings[1]}")
    ours, theirs = _beside(report, url, other, INSERT, connections=WRITERS, scale=scale)
    with connect(url) as connection:
        ((written,),) = connection.execute("SELECT count(*) FROM events").fetchall()
    report.note(f"{written:,} rows are there")
    reference = f"PostgreSQL {theirs.per_second:,.0f}/s"
    report.add(
        Figure("inserts per second, of 1,000", f"{ours.per_second:,.0f}/s", reference, 1000 / ours.per_second, 1.0)
    )


def _beside(
    report: Report, url: str, other: str, script: str, *, connections: int, scale: float, protocol: str = "prepared"
) -> tuple[Load, Load]:
    """The same load for us and for PostgreSQL, after a little of it that does not count."""
    loads = []
    for name, place in (("Everview", url), ("PostgreSQL", other)):
        pgbench(place, script, connections=connections, seconds=WARM_UP_S, protocol=protocol)
        seconds = max(2.0, SECONDS * scale)
        load = pgbench(place, script, connections=connections, seconds=seconds, protocol=protocol)
        loads.append(load)
        p50, p99 = quantile(load.latencies_ms, 0.5), quantile(load.latencies_ms, 0.99)
        report.note(f"{name}: {load.per_second:,.0f}/s, median {p50:.2f} ms, p99 {p99:.2f} ms")
    return loads[0], loads[1]


# Freshness


def freshness(report: Report, scale: float, url: str) -> None:
    """From the end of a commit to its being seen in a view: by asking, and by being told."""
    changes = max(20, int(CHANGES * scale))
    report.title(f"{changes} commits, each seen in a joined and grouped view")
    with connect(url) as connection:
        connection.execute("CREATE TABLE customers (id int, region int)")
        connection.execute("CREATE TABLE orders (customer int, amount int)")
        many = ", ".join(f"({number}, {number % GROUPS})" for number in range(1_000))
        connection.execute(f"INSERT INTO customers VALUES {many}")
        connection.execute(
            "CREATE MATERIALIZED VIEW sales AS SELECT region, count(*) AS n, sum(amount) AS amount"
            " FROM orders JOIN customers ON orders.customer = customers.id GROUP BY region"
        )
        asked = _asking(connection, changes)
        told = _being_told(connection, url, changes)
    for name, took in (("asking", asked), ("SUBSCRIBE", told)):
        p50, p99 = quantile(took, 0.5), quantile(took, 0.99)
        label = f"commit to visible by {name}, median"
        report.add(Figure(label, f"{p50:,.0f} ms", f"p99 {p99:,.0f} ms", p50, 250.0, " ms"))


def _change(connection: Connection, number: int) -> float:
    """Commit an order; gives when that was acknowledged."""
    connection.execute(f"INSERT INTO orders VALUES ({number % 1_000}, {number})")
    return time.perf_counter()


def _asking(connection: Connection, changes: int) -> list[float]:
    took = []
    for number in range(changes + CHANGES_WARM_UP):
        committed = _change(connection, number)
        ((n,),) = connection.execute("SELECT sum(n) FROM sales").fetchall()
        took.append((time.perf_counter() - committed) * 1000)
        assert n == number + 1
    return sorted(took[CHANGES_WARM_UP:])


def _being_told(connection: Connection, url: str, changes: int) -> list[float]:
    """Each change of the view adds one to the count of its region; how many there are tells which commits are in."""
    seen_at: list[float] = []
    enough = changes + CHANGES_WARM_UP
    ready = threading.Event()

    def listen() -> None:
        with connect(url) as listener:
            feed = listener.cursor().stream("SUBSCRIBE (SELECT region, n FROM sales) WITH (SNAPSHOT = false, PROGRESS)")
            for row in feed:
                ready.set()
                if not row[1] and row[2] > 0:
                    seen_at.append(time.perf_counter())
                if len(seen_at) == enough:
                    return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    if not ready.wait(60):
        raise RuntimeError("the subscription does not begin")
    took = []
    for number in range(enough):
        committed = _change(connection, number)
        _wait(lambda count=number + 1: len(seen_at) >= count)  # type: ignore[misc]
        took.append((seen_at[number] - committed) * 1000)
    thread.join(60)
    return sorted(took[CHANGES_WARM_UP:])


def _wait(ready: Callable[[], bool]) -> None:
    late = time.monotonic() + 60
    while not ready():
        if time.monotonic() > late:
            raise RuntimeError("a change was not seen for a minute")
        time.sleep(0.001)


# Idling


def idling(report: Report, scale: float) -> None:
    """What many tables and views cost while nothing changes."""
    tables, views, idle_s = (max(10, int(count * scale)) for count in (TABLES, VIEWS, IDLE_S))
    report.title(f"{tables:,} tables and {views} views while nothing changes for {idle_s} s")
    with served() as server, connect(server.url) as connection:
        began = time.perf_counter()
        for number in range(tables):
            connection.execute(f"CREATE TABLE t{number} (k int, v int)")
        report.note(f"{tables:,} tables made in {time.perf_counter() - began:.1f} s")
        began = time.perf_counter()
        connection.execute("INSERT INTO t0 VALUES (1, 1)")
        for number in range(views):
            query = f"SELECT k, count(*) AS n, sum(v) AS s FROM t{number % tables} GROUP BY k"
            connection.execute(f"CREATE MATERIALIZED VIEW m{number} AS {query}")
        for number in range(views):
            connection.execute(f"SELECT * FROM m{number}")
        report.note(f"{views} views made and read in {time.perf_counter() - began:.1f} s")
        time.sleep(SETTLE_S)
        before, began = server.cpu_s(), time.perf_counter()
        time.sleep(idle_s)
        percent = 100 * (server.cpu_s() - before) / (time.perf_counter() - began)
    report.add(Figure("processor while idle", f"{percent:.1f}% of a core", "with Spark's Java", percent, 5.0, "%"))


def quantile(values: Sequence[float], share: float) -> float:
    """Of sorted values, the one below which this share of them is."""
    return values[min(len(values) - 1, int(len(values) * share))]
