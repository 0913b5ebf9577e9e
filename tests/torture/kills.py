"""A storm of kills: clients write, move money, read and subscribe while the server dies, and the history is checked."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.adapter.history.checker import check
from tests.adapter.history.clients import MEANINGS
from tests.adapter.history.run import WAIT_S_MAX, Run
from tests.adapter.history.server import ON_SPARK, WITHOUT_SPARK
from tests.torture import bank
from tests.torture.bank import Bank
from tests.torture.report import Line, Size
from tests.torture.sentinel import children
from tests.torture.watching import Watcher
from tests.waiting import eventually

SINKS = {"totals": ("round",), "entries": ("round", "number")}
DELIVERED_S_MAX = 240

WITHOUT, ON = " without Spark", " on Spark"


class Storm(Run):
    """A run with a bank, sinks and durable subscriptions beside the clients of the history."""

    def __init__(self, command: tuple[str, ...], folder: Path, rng: Random) -> None:
        super().__init__(command, folder / "data", rng)
        self._place = folder / "delivered.db"
        self.bank = Bank(self.stage, rng)
        self.watchers = [Watcher(self.stage, Random(rng.random()), name) for name in ("entries", "pairs")]
        workers = [*self.bank.workers(), *(each.run for each in self.watchers)]
        self._threads += [threading.Thread(target=each, daemon=True) for each in workers]
        self.java_kills = 0

    def prepare(self) -> None:
        """Make what clients use."""
        super().prepare()
        with self.stage.connect() as connection:
            for statement in bank.SCHEMA:
                connection.execute(statement)
            for name, key in SINKS.items():
                into = f"SQLITE (PATH '{self._place}', TABLE '{name}') KEY ({', '.join(key)})"
                connection.execute(f"CREATE SINK to_{name} FROM {name} INTO {into}")
            for watcher in self.watchers:
                watcher.create(connection)

    def kill_java(self) -> None:
        """End Spark's process alone, if there is one; the server is to start another."""
        assert self._server is not None
        for pid in children(self._server.pid):
            if Path(f"/proc/{pid}/comm").read_text().strip() == "java":
                os.kill(pid, signal.SIGKILL)
                self.java_kills += 1

    def check_sinks(self) -> list[str]:
        """Every sink delivers what its collection holds, sooner or later."""
        found = []
        with self.stage.connect() as connection:
            for name in SINKS:
                rows = sorted(tuple(map(int, row)) for row in connection.execute(f"SELECT * FROM {name}").fetchall())
                late = time.monotonic() + DELIVERED_S_MAX
                while (there := self._delivered(name)) != rows and time.monotonic() < late:
                    time.sleep(0.1)
                if there != rows:
                    found.append(f"sink to_{name} has {len(there)} rows, and {name} has {len(rows)}")
        return found

    def _delivered(self, name: str) -> list[tuple[int, ...]]:
        with sqlite3.connect(self._place) as database:
            columns = "round, n, s" if name == "totals" else "round, number"
            return sorted(tuple(map(int, row)) for row in database.execute(f"SELECT {columns} FROM {name}"))


def run(size: Size, rng: Random, folder: Path) -> Iterator[Line]:
    """The storm without Spark, whose servers start in a moment, and a part of it on Spark."""
    on_spark = size.spark_kills if size.spark else 0
    for command, kills, where in ((WITHOUT_SPARK, size.kills, WITHOUT), (ON_SPARK, on_spark, ON)):
        if kills:
            below = folder / where.strip().replace(" ", "-")
            below.mkdir(parents=True)
            yield from _storm(Storm(command, below, rng), kills, rng, where)


def _storm(storm: Storm, kills: int, rng: Random, where: str) -> Iterator[Line]:
    began = time.monotonic()
    failed: list[str] = []
    sinks: list[str] = []
    try:
        with storm:
            while storm.kills + storm.java_kills < kills:
                operations = rng.randrange(10, 300)
                if where == ON and rng.random() < 0.4:
                    before = len(storm.stage.history)
                    wanted = before + operations
                    eventually(lambda n=wanted: len(storm.stage.history) >= n, WAIT_S_MAX)  # type: ignore[misc]
                    storm.kill_java()
                    continue
                storm.live(operations, until_views=rng.random() < 0.3)
                storm.again()
            storm.settle()
            with storm.stage.connect() as connection:
                storm.bank.audit(connection)
                for watcher in storm.watchers:
                    watcher.check(connection)
            sinks = storm.check_sinks()
            storm.stop()
    except AssertionError as error:  # something that has to happen did not
        failed.append(str(error)[:2000])
    history = storm.stage.history
    problems = [*failed, *storm.stage.problems, *(said[-2000:] for said in storm.defects)]
    seconds = time.monotonic() - began
    java = f", {storm.java_kills} of Java alone" if storm.java_kills else ""
    yield Line(f"SIGKILL of the server{where}", storm.kills + storm.java_kills, problems, f"{seconds:.0f} s{java}")
    done = Counter(each.outcome for each in history)
    anomalies = list(map(str, check(history, MEANINGS)))
    figures = f"{done['ok']:,} acknowledged, {done['unknown']:,} cut, {done['failed']:,} refused"
    yield Line(f"reads and writes of the history{where}", len(history), anomalies, figures)
    views = sum(len(each.shows) for each in history)
    yield Line(f"views beside recomputation{where}", views, [each for each in anomalies if "wrong view" in each])
    moves, audits = len(storm.bank.acknowledged), f"{storm.bank.audits:,} audits, {len(storm.bank.unknown):,} cut"
    yield Line(f"transfers of a bank{where}", moves, storm.bank.anomalies, audits)
    for watcher in storm.watchers:
        told = f"{len(watcher.consumer.told):,} times, {watcher.acknowledgements:,} acknowledgements"
        what = f"conversations of a subscription of {watcher.collection}{where}"
        yield Line(what, watcher.consumer.conversations, watcher.consumer.anomalies, told)
    yield Line(f"sinks beside their collections{where}", len(SINKS), sinks)
