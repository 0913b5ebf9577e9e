"""pgbench upstream: its invariant holds at every time that can be read, whoever is killed meanwhile."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from tests.adapter.scripts import SessionClient
from tests.postgres.conftest import Database, caught_up, connection, ok, rows
from tests.postgres.history import sums
from tests.waiting import eventually

COLUMNS = {
    "pgbench_accounts": "abalance",
    "pgbench_branches": "bbalance",
    "pgbench_tellers": "tbalance",
    "pgbench_history": "delta",
}
ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(database: Database) -> Database:
    """A database with pgbench's tables, published."""
    assert database.server.pgbench("-i", "-q", "-s", "1", database=database.name).wait() == 0
    database("ALTER TABLE pgbench_history REPLICA IDENTITY FULL; CREATE PUBLICATION pub FOR ALL TABLES")
    return database


def make(database: Database, sql: SessionClient) -> None:
    source = "CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION 'pub') FOR ALL TABLES"
    ok(sql, connection(database), f"{source} WITH (RETAIN HISTORY FOR '1h')")


def check(database: Database, coordinator: Coordinator, sql: SessionClient) -> int:
    """Everything is here, and the invariant held at all times; gives how many there were."""
    caught_up(database, sql)
    for name, column in COLUMNS.items():
        query = f"SELECT count(*), sum({column}) FROM {name}"
        (theirs,) = database.rows(query)
        assert rows(ok(sql, query)) == ["|".join("NULL" if each is None else str(each) for each in theirs)]
    times = 0
    for at, found in sums(coordinator, COLUMNS):
        assert len(set(found.values())) == 1, (at, found)
        times += 1
    return times


@contextmanager
def load(database: Database) -> Iterator[None]:
    """Within the block, four clients write."""
    with database.server.pgbench("-n", "-c", "4", "-T", "3600", database=database.name) as running:
        try:
            yield
        finally:
            running.terminate()


def moved(sql: SessionClient, count: int) -> None:
    """Wait until the source has gone on so many times."""
    seen: set[str] = set()

    def enough() -> bool:
        seen.update(sql("SELECT position FROM p_progress")[1:])
        return len(seen) > count

    eventually(enough, shown=lambda: sql("SELECT * FROM mz_internal.mz_source_statuses"))


def test_the_invariant_holds_at_every_time(
    bench: Database, coordinator: Coordinator, sql: SessionClient, long_forms: bool
) -> None:
    with load(bench):
        make(bench, sql)
        query = "SELECT bid, sum(tbalance) AS total FROM pgbench_tellers GROUP BY bid"
        ok(sql, f"CREATE MATERIALIZED VIEW tellers AS {query}")
        moved(sql, 500 if long_forms else 10)
    assert check(bench, coordinator, sql) > 10
    theirs = bench.rows(query)
    assert rows(ok(sql, "SELECT * FROM tellers")) == sorted("|".join(map(str, row)) for row in theirs)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []
    yield running
    for each in running:
        each.kill()
        each.wait()


def test_kills_repeat_nothing_and_lose_nothing(
    bench: Database, tmp_path: Path, rng: random.Random, long_forms: bool, child: list[subprocess.Popen[bytes]]
) -> None:
    folder = tmp_path / "killed"
    with Coordinator.open(folder) as coordinator:
        make(bench, SessionClient(coordinator))
    for number in range(100 if long_forms else 3):
        with load(bench):
            command = [sys.executable, "-m", "tests.postgres.child", str(folder)]
            child.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE))
            out = child[-1].stdout
            assert out is not None and out.readline() == b"open\n"
            time.sleep(rng.random() * 2)
            if number % 3 == 1:
                bench.server.kill()
                time.sleep(rng.random() / 2)
                bench.server.start()
                time.sleep(rng.random())
            child[-1].kill()
            child[-1].wait()
    bench.again()
    with Coordinator.open(folder) as coordinator:
        sql = SessionClient(coordinator)
        with load(bench):
            moved(sql, 3)
        assert check(bench, coordinator, sql) > 3
