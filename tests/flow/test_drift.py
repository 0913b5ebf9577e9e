"""Drift that is seen by counting: nobody has to touch the rows that are missing, and nothing right is called wrong."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from everview.compute.ir import types as t
from everview.flow.materialization import Options, State
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.flow.created import created
from tests.flow.ledger import Ledger
from tests.waiting import eventually

QUICK = Options(backoff_s=0.02, backoff_s_max=0.1, heartbeat_s=0.05, check_s=0.02)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path, ("id", t.INT8), ("n", t.INT8))
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, rng: random.Random
) -> Iterator[tuple[str, dict[str, Any], str, Callable[[str], Any]]]:
    """A driver, its settings, a table there, and a way to write behind its back."""
    table = f"drift_{rng.randrange(10**9)}"
    if request.param == "sqlite":
        path = str(tmp_path / "out.db")

        def run(statement: str) -> Any:
            with closing(sqlite3.connect(path, timeout=30)) as db, db:
                return db.execute(statement).fetchall()

        yield "sqlite", {"path": path}, table, run
        return
    import psycopg

    url = request.getfixturevalue("postgres_url")

    def run_there(statement: str) -> Any:
        with psycopg.connect(url, autocommit=True) as db:
            done = db.execute(statement)
            return done.fetchall() if done.description else []

    yield "postgres", {"connection": url}, table, run_there
    run_there(f"DROP TABLE IF EXISTS {table}")


def test_rows_that_are_missing_are_seen_untouched(
    ledger: Ledger, place: tuple[str, dict[str, Any], str, Callable[[str], Any]]
) -> None:
    driver, config, table, run = place
    bound = ledger.binding(["id"], resource={"table": table})
    sink = created(ledger.environment, table, driver, config, [bound], options=QUICK)
    sink.start()
    assert sink.wait(ledger.write(*((1, (id, id)) for id in range(5))), 30)
    run(f"DELETE FROM {table} WHERE id = 3")
    eventually(lambda: sink.status().state is State.DRIFTED)
    error = sink.status().error or ""
    assert "collection u1 has 5 rows, and its table has 4" in error and "BACKFILL" in error
    assert sink.wait(ledger.write((1, (9, 9))), 30), "what is not touched keeps nothing from being delivered"
    run(f"INSERT INTO {table} VALUES (3, 3)")
    eventually(lambda: sink.status().state is State.RUNNING)
    run(f"INSERT INTO {table} VALUES (77, 7)")
    eventually(lambda: sink.status().state is State.DRIFTED)
    run(f"DROP TABLE {table}")
    eventually(lambda: "is gone" in (sink.status().error or ""))
    sink.backfill()
    eventually(lambda: sink.status().state is State.RUNNING and sink.status().frontier >= ledger.upper)
    assert sorted(run(f"SELECT id FROM {table}")) == [(0,), (1,), (2,), (3,), (4,), (9,)]
    sink.drop()


def test_an_emptied_table_of_sums_is_seen_and_one_of_additions_is_not(ledger: Ledger, tmp_path: Path) -> None:
    path = str(tmp_path / "out.db")
    sums = ledger.binding(["id"], resource={"table": "sums"}, reductions={"n": "sum"})
    log = ledger.binding([], resource={"table": "log"}, delta_updates=True)
    sink = created(ledger.environment, "m", "sqlite", {"path": path}, [sums, log], options=QUICK)
    sink.start()
    assert sink.wait(ledger.write((1, (1, 1)), (1, (1, 2)), (1, (2, 3))), 30)
    with closing(sqlite3.connect(path, timeout=30)) as db, db:
        db.execute("DELETE FROM log")  # its readers may do so
        db.execute("DELETE FROM sums WHERE id = 2")  # how many there should be is not known
    sink.pause()
    sink.start()
    assert sink.wait(ledger.write((1, (1, 4))), 30)
    eventually(lambda: sink._watch is not None and sink._watch.looks > 1)
    assert sink.status().state is State.RUNNING
    with closing(sqlite3.connect(path, timeout=30)) as db, db:
        db.execute("DELETE FROM sums")
    eventually(lambda: "is empty, and rows were delivered" in (sink.status().error or ""))
    sink.drop()


def test_what_is_right_is_never_called_drift(
    ledger: Ledger, place: tuple[str, dict[str, Any], str, Callable[[str], Any]], rng: random.Random, long_forms: bool
) -> None:
    """While rows come and go, with splits that change, and checks all the time."""
    driver, config, table, _ = place
    bound = ledger.binding(["id"], resource={"table": table})
    sink = created(ledger.environment, table, driver, config, [bound], options=QUICK)
    sink.start()
    rows: set[int] = set()
    for round in range(400 if long_forms else 40):
        chosen = set(rng.sample(range(50), 10))
        changes = [(-1 if id in rows else 1, (id, id)) for id in chosen]
        rows ^= chosen
        upper = ledger.write(*changes)
        if round % 10 == 9:
            sink.split(rng.randrange(1, 4))
        if rng.random() < 0.3:
            assert sink.wait(upper, 60), sink.status()
        status = sink.status()
        assert status.state is State.RUNNING, status
    assert sink.wait(ledger.upper, 60)
    eventually(lambda: sink._watch is not None and sink._watch.looks > 1)
    assert sink.status().state is State.RUNNING
    sink.drop()


def test_no_checks_where_none_are_wanted(ledger: Ledger, tmp_path: Path) -> None:
    bound = ledger.binding(["id"], resource={"table": "t"})
    config = {"path": str(tmp_path / "out.db")}
    options = Options(check_s=0)
    sink = created(ledger.environment, "m", "sqlite", config, [bound], options=options)
    sink.start()
    assert sink._watch is None
    sink.drop()


def test_rows_are_counted_by_what_batches_say(tmp_path: Path, rng: random.Random) -> None:
    """At any time, over batches that are inline and in files, with any multiplicities."""
    schema = pa.schema([("id", pa.int64())])
    with Environment.open(tmp_path / "data", background=False) as environment:
        _, writer = environment.create("u1", schema)
        totals = [0]
        for time_, rows in enumerate((3, 50_000, 7, 60_000, 1), 1):
            ids = np.arange(rows)
            diffs = np.array([rng.choice((1, 2, 5)) for _ in range(rows)])
            table = pa.table({"id": ids, "_time": np.full(rows, time_), "_diff": diffs})
            writer = environment.append(writer, table, Antichain(time_ + 1))
            totals.append(totals[-1] + int(diffs.sum()))
        for at, total in enumerate(totals):
            with environment.contents("u1", at) as selection:
                assert selection.net_rows() == total


def test_rows_that_are_touched_and_missing_are_seen_without_counting(
    ledger: Ledger, place: tuple[str, dict[str, Any], str, Callable[[str], Any]]
) -> None:
    """An UPDATE or a DELETE of 0 rows is not committed, and the sink goes on when the row is back."""
    driver, config, table, run = place
    bound = ledger.binding(["id"], resource={"table": table})
    options = replace(QUICK, check_s=0)
    sink = created(ledger.environment, table, driver, config, [bound], options=options)
    sink.start()
    assert sink.wait(ledger.write(*((1, (id, id)) for id in range(4))), 30)
    for gone, changes, done in (
        (1, [(-1, (1, 1)), (1, (1, 100))], "updated"),
        (2, [(-1, (2, 2))], "deleted"),
    ):
        run(f"DELETE FROM {table} WHERE id = {gone}")
        upper = ledger.write(*changes)
        eventually(lambda: sink.status().state is State.DRIFTED)
        error = sink.status().error or ""
        assert f"1 of 1 rows of collection u1 to be {done} are not there" in error and "BACKFILL" in error
        assert sink.status().frontier < upper
        run(f"INSERT INTO {table} VALUES ({gone}, {gone})")
        assert sink.wait(upper, 30)
        assert sink.status().state is State.RUNNING
    assert sorted(run(f"SELECT id, n FROM {table}")) == [(0, 0), (1, 100), (3, 3)]
    run(f"INSERT INTO {table} VALUES (9, 9)")  # a new row under a key that is there
    ledger.write((1, (9, 9)))
    eventually(lambda: sink.status().state is State.DRIFTED)
    assert "a key that was not delivered by this sink" in (sink.status().error or "")
    sink.drop()


@pytest.mark.parametrize("splits", [1, 3])
def test_rows_that_a_merge_of_delta_does_not_meet_are_told(ledger: Ledger, tmp_path: Path, splits: int) -> None:
    """The merge cannot be taken back, and puts the rows right; the sink says so until it is delivered anew."""
    from deltalake import DeltaTable

    path = str(tmp_path / "table")
    bound = ledger.binding(["id"], resource={"path": path})
    options = replace(QUICK, splits=splits, interval_ms=0)
    sink = created(ledger.environment, "m", "delta", {}, [bound], options=options)
    sink.start()
    rows = {id: id for id in range(8)}
    assert sink.wait(ledger.write(*((1, (id, id)) for id in rows)), 30)
    assert sink.wait(ledger.write((-1, (1, 1)), (1, (1, 10)), (-1, (0, 0))), 30)
    assert sink.status().state is State.RUNNING, "what is right is no drift"
    DeltaTable(path).delete("id = 2 OR id = 3")
    upper = ledger.write((-1, (2, 2)), (1, (2, 20)), (-1, (3, 3)), (-1, (4, 4)), (1, (4, 40)), (1, (9, 9)))
    assert sink.wait(upper, 30)
    eventually(lambda: sink.status().state is State.DRIFTED)
    error = sink.status().error or ""
    assert re.search(r"rows of collection u1 were changed, and \d of them were there", error) and "BACKFILL" in error
    found = DeltaTable(path).to_pyarrow_table().to_pylist()
    assert {each["id"]: each["n"] for each in found} == {1: 10, 2: 20, 4: 40, 5: 5, 6: 6, 7: 7, 9: 9}
    assert sink.wait(ledger.write((1, (10, 10))), 30) and sink.status().state is State.DRIFTED
    sink.backfill()
    assert sink.wait(ledger.upper, 30)
    eventually(lambda: sink.status().state is State.RUNNING)
    sink.drop()
