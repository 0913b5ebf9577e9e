"""Real-time recency: what was committed upstream before a read began is seen by it, or the read fails."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from everview.adapter.coordinator import Coordinator
from tests.adapter.scripts import SessionClient
from tests.postgres.conftest import Database, caught_up, ok, refusal, rows, status
from tests.waiting import eventually

Follow = Callable[..., SessionClient]


@pytest.fixture
def followed(database: Database, follow: Follow) -> SessionClient:
    """A session that reads a table `t` and a view of it, recent in real time."""
    database("CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 1)")
    sql = follow()
    ok(sql, "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(b) AS s FROM t", "SET real_time_recency = on")
    return sql


@contextmanager
def held(database: Database) -> Iterator[None]:
    """Within the block, nothing comes through the slot."""
    query = "SELECT active_pid FROM pg_replication_slots WHERE database = current_database()"
    pid = eventually(lambda: database.rows(query)[0][0])
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("isolation", ["strict serializable", "serializable"])
def test_what_is_committed_upstream_is_seen(database: Database, followed: SessionClient, isolation: str) -> None:
    sql = followed
    ok(sql, f"SET transaction_isolation = '{isolation}'", "CREATE INDEX ON t (a)")
    for number in range(2, 25):
        database(f"INSERT INTO t VALUES ({number}, {number})")
        what = "count(*), sum(b) FROM t" if number % 2 else "n, s FROM v"
        assert rows(ok(sql, f"SELECT {what}")) == [f"{number}|{number * (number + 1) // 2}"]
        database(f"UPDATE t SET b = b + 0 WHERE a = 1; INSERT INTO t VALUES ({-number}, 0)")
        assert rows(ok(sql, f"SELECT b FROM t WHERE a = {-number}")) == ["0"]
        database(f"DELETE FROM t WHERE a = {-number}")
        if number % 5 == 0:  # of another table, of which nothing comes
            with database.server.connect() as db:
                db.execute("SELECT txid_current()")
            assert rows(ok(sql, "SELECT n FROM v")) == [str(number)]


def test_a_read_that_takes_too_long_says_what_is_missing(database: Database, followed: SessionClient) -> None:
    sql = followed
    caught_up(database, sql)
    with held(database):
        database("INSERT INTO t VALUES (2, 2)")
        ok(sql, "SET real_time_recency_timeout = '300ms'")
        said = refusal(sql, "SELECT * FROM v")
        assert 'due to real-time recency timeout: source "p" is not up to date' in said
        assert "was committed upstream" in said and "raise real_time_recency_timeout" in said
        assert sql("SELECT * FROM t")[0].startswith("! 57014")
        ok(sql, "SET real_time_recency_timeout = 0", "SET statement_timeout = '300ms'")
        assert "canceling statement due to statement timeout" in refusal(sql, "SELECT * FROM v")
        ok(sql, "SET statement_timeout = 0", "SET real_time_recency = off")
        assert rows(ok(sql, "SELECT n FROM v")) == ["1"]
        ok(sql, "SET real_time_recency = on")
        answers: list[list[str]] = []
        reading = threading.Thread(target=lambda: answers.append(sql("SELECT n FROM v")))
        reading.start()
    reading.join()
    assert answers == [["n", "2"]]


def test_a_transaction_waits_with_its_first_read(database: Database, followed: SessionClient) -> None:
    sql = followed
    ok(sql, "BEGIN")
    database("INSERT INTO t VALUES (2, 2)")
    assert rows(ok(sql, "SELECT n FROM v")) == ["2"]
    database("INSERT INTO t VALUES (3, 3)")
    assert rows(ok(sql, "SELECT n FROM v")) == ["2"]
    ok(sql, "COMMIT")
    assert rows(ok(sql, "SELECT n FROM v")) == ["3"]


def test_sources_that_have_no_head_are_refused_by_name(database: Database, followed: SessionClient) -> None:
    sql = followed
    ok(sql, "CREATE SOURCE counts FROM LOAD GENERATOR COUNTER", "CREATE TABLE own (a int)")
    said = refusal(sql, "SELECT * FROM counts, t")
    assert 'real-time recency of source "counts" is not supported' in said
    assert rows(ok(sql, "SELECT count(*) FROM own")) == ["0"]  # nothing upstream
    ok(sql, "ALTER SOURCE p PAUSE")
    assert 'source "p" is paused' in refusal(sql, "SELECT * FROM own, v")
    ok(sql, "ALTER SOURCE p RESUME")
    database("INSERT INTO t VALUES (2, 2)")
    assert rows(ok(sql, "SELECT n FROM v")) == ["2"]


def test_a_server_that_cannot_be_asked_is_said(database: Database, followed: SessionClient) -> None:
    sql = followed
    assert rows(ok(sql, "SELECT n FROM v")) == ["1"]
    database.server.kill()
    assert "cannot connect to PostgreSQL" in refusal(sql, "SELECT * FROM v")
    ok(sql, "SET real_time_recency = off")
    assert rows(ok(sql, "SELECT n FROM v")) == ["1"]
    database.server.start()
    database.again()
    ok(sql, "SET real_time_recency = on", "SET real_time_recency_timeout = '60s'")
    database("INSERT INTO t VALUES (2, 2)")
    assert rows(ok(sql, "SELECT n FROM v")) == ["2"]
    database("DROP PUBLICATION pub")
    database("INSERT INTO t VALUES (3, 3)")
    assert "was dropped upstream" in refusal(sql, "SELECT * FROM v")
    assert status(sql, "p")[0] == "stalled"


def test_many_readers_ask_together(database: Database, coordinator: Coordinator, followed: SessionClient) -> None:
    wrong: list[object] = []
    written = [1]

    def read() -> None:
        mine = SessionClient(coordinator)
        ok(mine, "SET real_time_recency = on", "SET transaction_isolation = 'serializable'")
        for _ in range(10):
            least = written[0]
            answer = mine("SELECT n FROM v")
            if not (len(answer) == 2 and answer[1].isdigit() and int(answer[1]) >= least):
                wrong.append((least, answer))

    readers = [threading.Thread(target=read) for _ in range(6)]
    for each in readers:
        each.start()
    while any(each.is_alive() for each in readers):
        database(f"INSERT INTO t VALUES ({written[0] + 1}, 0)")
        written[0] += 1
    assert not wrong
