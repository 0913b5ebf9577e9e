"""Mixed load for a long time: memory, descriptors and files stay flat, and everything is still right in the end."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from tests.adapter.history.clients import Stage
from tests.adapter.history.server import ON_SPARK, WITHOUT_SPARK, Server
from tests.torture.report import Line, Size
from tests.torture.sentinel import Sentinel, children, connect, descriptors, resident_mb
from tests.torture.watching import Watcher

SCHEMA = (
    "CREATE TABLE orders (id int, customer int, amount int, at timestamptz) WITH (TTL '20 s' ON at)",
    "CREATE TABLE customers (id int, name text)",
    "CREATE INDEX orders_by_id ON orders (id)",
    "INSERT INTO customers SELECT g, 'customer ' || g FROM generate_series(1, 50) AS g",
    "CREATE MATERIALIZED VIEW spent AS SELECT c.name, count(*) AS n, sum(o.amount) AS total"
    " FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.name",
    "CREATE MATERIALIZED VIEW best AS SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 10",
    "CREATE MATERIALIZED VIEW recent AS SELECT id FROM orders WHERE mz_now() < at + INTERVAL '5 s'",
)
SPENT = "SELECT c.name, count(*), sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.name"
HEAP_MB = 1_024  # of Java, which takes what it may before it cleans up
BESIDE_HEAP_MB = 1_024  # classes, code, threads and buffers of Java
SMALL_HEAP = (*ON_SPARK[:-1], "--conf", f"spark.driver.memory={HEAP_MB}m", ON_SPARK[-1])
SAMPLE_S = 1.0
PACE_S = 0.02
GROWTH_SHARE = 0.15  # by so much the last third may be above the middle one, and by what a measure allows in any case
JAVA_FLAT_S = 900  # before, a Java that is not asked for much has not filled its heap even once
DELIVERED_S_MAX = 240
LASTING = 100  # rows that do not expire, so that there is something to compare in the end


@dataclass(frozen=True, slots=True)
class Sample:
    """What the server takes at one moment."""

    memory_mb: float
    descriptors: float
    files: float
    files_mb: float
    java_mb: float


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of samples, and by how much it may grow whatever its share is."""

    what: str
    figure: str
    growth_max: float


MEASURES = (
    Measure("memory of the server, MB", "memory_mb", 40),
    Measure("descriptors", "descriptors", 8),
    Measure("files in the data folder", "files", 20),
    Measure("bytes of these files, MB", "files_mb", 20),
)
JAVA = Measure("memory of Java, MB", "java_mb", 150)


class Load:
    """Clients that go on until they are stopped."""

    def __init__(self, stage: Stage, rng: Random) -> None:
        self._stage, self._rng = stage, rng
        self.writes = self.reads = 0
        self.anomalies: list[str] = []

    def write(self) -> None:
        """Insert, update and delete."""
        self._live(self._write)

    def read(self) -> None:
        """Views beside their queries, at one time."""
        self._live(self._read)

    def _live(self, act: Any) -> None:
        try:
            with self._stage.connect() as connection:
                while not self._stage.stopped.is_set():
                    act(connection)
                    time.sleep(PACE_S)
        except psycopg.Error as error:
            self.anomalies.append(f"{error.sqlstate} {error}")

    def _write(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        number = self.writes
        customer, amount = self._rng.randrange(1, 51), self._rng.randrange(1000)
        if number % 10 == 7:
            connection.execute("UPDATE orders SET amount = amount + 1 WHERE id = %s", (number - 5,))
        elif number % 10 == 9:
            connection.execute("DELETE FROM orders WHERE id = %s", (number - 20,))
        else:
            connection.execute("INSERT INTO orders VALUES (%s, %s, %s, now())", (number, customer, amount))
        self.writes += 1

    def _read(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        connection.execute("BEGIN")
        view = connection.execute("SELECT * FROM spent").fetchall()
        query = connection.execute(SPENT).fetchall()
        connection.execute("COMMIT")
        self.reads += 1
        if sorted(view) != sorted(query):
            self.anomalies.append(f"the view has {len(view)} rows, and its query other {len(query)}")
        connection.execute("SELECT amount FROM orders WHERE id = %s", (self.writes - 3,)).fetchall()
        time.sleep(10 * PACE_S)


def run(size: Size, rng: Random, folder: Path) -> Iterator[Line]:
    """Writers, readers, a subscription, a durable one and a sink at once."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "delivered.db"
    server = Server(SMALL_HEAP if size.spark else WITHOUT_SPARK, folder / "data")
    try:
        stage = Stage()
        stage.port = server.port()
        load, watcher = Load(stage, rng), Watcher(stage, Random(rng.random()), "spent")
        with connect(stage.port) as connection:
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute(f"CREATE SINK out FROM spent INTO SQLITE (PATH '{place}', TABLE 'spent') KEY (name)")
            watcher.create(connection)
            connection.execute("SELECT * FROM spent").fetchall()
        threads = [threading.Thread(target=each, daemon=True) for each in (load.write, load.read, watcher.run)]
        for thread in threads:
            thread.start()
        with Sentinel(stage.port) as sentinel:
            samples = _sampled(server, folder / "data", size.soak_s)
        stage.stopped.set()
        for thread in threads:
            thread.join(120)
        with connect(stage.port) as connection:
            watcher.check(connection)
            sink = _compared(connection, place)
        defects = [server.said()[-2000:]] if "Traceback" in server.said() else []
        yield Line("writes", load.writes, [*load.anomalies, *defects], f"{size.soak_s:.0f} s")
        yield Line("views beside their queries", load.reads)
        told = f"{len(watcher.consumer.told):,} times"
        yield Line("conversations of a subscription", watcher.consumer.conversations, watcher.consumer.anomalies, told)
        yield sink
        yield Line("SELECT 1 of another client", len(sentinel.waits_ms), sentinel.anomalies, sentinel.figures)
        for measure in MEASURES:
            yield flat(measure, samples, long=size.long)
        if size.spark:
            yield java_within_bounds(samples, flat_too=size.soak_s >= JAVA_FLAT_S)
    finally:
        server.kill()


def _compared(connection: psycopg.Connection[tuple[Any, ...]], place: Path) -> Line:
    """Whether the sink delivers what the view holds, sooner or later, while rows go on to expire."""
    values = f"SELECT -g, g % 50 + 1, g, now() + INTERVAL '1 h' FROM generate_series(1, {LASTING}) AS g"
    connection.execute(f"INSERT INTO orders {values}")
    late = time.monotonic() + DELIVERED_S_MAX
    while True:
        view = sorted((name, int(n), int(total)) for name, n, total in connection.execute("SELECT * FROM spent"))
        there = delivered(place)
        if there == view and view:
            return Line("rows of the sink beside the view", len(there))
        if time.monotonic() > late:
            return Line("rows of the sink beside the view", len(there), [f"the sink has {there}, and the view {view}"])
        time.sleep(0.05)


def delivered(place: Path) -> list[tuple[str, int, int]]:
    """What the sink has written."""
    with closing(sqlite3.connect(place)) as database:
        found = database.execute("SELECT name, n, total FROM spent").fetchall()
    return sorted((name, int(n), int(total)) for name, n, total in found)


def _sampled(server: Server, data: Path, seconds: float) -> list[Sample]:
    over = time.monotonic() + seconds
    samples = []
    while time.monotonic() < over and server.alive:
        java = sum(resident_mb(pid) for pid in children(server.pid))
        files, size_bytes = _files(data)
        memory, opened = resident_mb(server.pid), descriptors(server.pid)
        samples.append(Sample(memory, opened, files, size_bytes / 2**20, java))
        time.sleep(SAMPLE_S)
    return samples


def _files(data: Path) -> tuple[int, int]:
    """How many files there are below a folder, and their bytes."""
    sizes = []
    for folder, _, names in os.walk(data):
        for name in names:
            with suppress(OSError):  # removed meanwhile
                sizes.append(os.stat(os.path.join(folder, name)).st_size)
    return len(sizes), sum(sizes)


def flat(measure: Measure, samples: Sequence[Sample], *, long: bool) -> Line:
    """Whether the last third is above the middle one; what a short run shows is its beginning, and says nothing."""
    values = [getattr(sample, measure.figure) for sample in samples]
    middle, last, figures = _thirds(values)
    grown = last - middle
    grew = long and grown > max(measure.growth_max, GROWTH_SHARE * middle)
    return Line(measure.what, len(values), [f"{measure.what} grew: {figures}"] if grew else [], figures)


def java_within_bounds(samples: Sequence[Sample], *, flat_too: bool) -> Line:
    """Java fills its heap before it looks what is garbage: it stays within its bounds, and is flat in the end."""
    line = flat(JAVA, samples, long=flat_too)
    _, last, figures = _thirds([sample.java_mb for sample in samples])
    beyond = [f"{JAVA.what}: {figures}"] if last > HEAP_MB + BESIDE_HEAP_MB else []
    checked = "" if flat_too else f"; too short to tell whether it is flat: from {JAVA_FLAT_S} s on"
    return Line(JAVA.what, len(samples), [*beyond, *line.anomalies], f"{figures}; heap of {HEAP_MB}{checked}")


def _thirds(values: list[float]) -> tuple[float, float, str]:
    """The medians of the middle third and of the last one, and both as text."""
    third = max(1, len(values) // 3)
    middle, last = (sorted(part)[len(part) // 2] for part in (values[third : 2 * third] or values, values[-third:]))
    return middle, last, f"{values[0]:.0f} at first, {middle:.0f} in the middle, {last:.0f} in the end"
