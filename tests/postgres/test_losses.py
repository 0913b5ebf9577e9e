"""A server that is not what it was: the source stops and says why, and nothing wrong is shown."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapter.scripts import SessionClient
from tests.postgres.conftest import Database, caught_up, connection, ok, refusal, rows, status
from tests.postgres.server import Upstream
from tests.waiting import eventually

SOURCE = "CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION 'pub') FOR ALL TABLES"


@pytest.fixture(params=[18, 16])
def own(request: pytest.FixtureRequest) -> Iterator[Upstream]:
    """A server that this test alone has, of either version."""
    found = Upstream(request.param)
    yield found
    found.close()


@pytest.fixture
def followed(own: Upstream, sql: SessionClient) -> Database:
    """A database of it with a table, and a source of that."""
    found = Database(own, "postgres")
    found("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1); CREATE PUBLICATION pub FOR ALL TABLES")
    ok(sql, connection(found), SOURCE)
    caught_up(found, sql)
    assert rows(ok(sql, "SELECT * FROM t")) == ["1"]
    return found


def lost(sql: SessionClient, said: str) -> None:
    """The source has stopped for this reason, and its table cannot be read; it can be made anew."""
    eventually(lambda: said in status(sql, "p")[1], shown=lambda: status(sql, "p"))
    eventually(lambda: sql("SELECT * FROM t")[0].startswith("!"))  # until then it was complete a moment ago
    told = refusal(sql, "SELECT * FROM t")
    assert said in told and "drop the source and create it again" in told
    ok(sql, "DROP SOURCE p", SOURCE)
    assert rows(ok(sql, "SELECT * FROM t"))[0] == "1" and status(sql, "p")[0] == "running"


def test_a_slot_whose_log_was_removed(followed: Database, sql: SessionClient) -> None:
    ok(sql, "ALTER SOURCE p PAUSE")
    eventually(lambda: not followed.rows("SELECT 1 FROM pg_replication_slots WHERE active_pid IS NOT NULL"))
    followed.server.set(max_slot_wal_keep_size="1MB")
    followed("CREATE TABLE bulk (x text)")
    for _ in range(3):
        followed("INSERT INTO bulk SELECT repeat('x', 1000) FROM generate_series(1, 15000)")
        followed("SELECT pg_switch_wal()")
    followed("DROP TABLE bulk; INSERT INTO t VALUES (2)")
    followed("CHECKPOINT")
    eventually(lambda: followed.rows("SELECT wal_status FROM pg_replication_slots") == [("lost",)])
    followed.server.set(max_slot_wal_keep_size="")
    ok(sql, "ALTER SOURCE p RESUME")
    lost(sql, "is invalid: the log that it needs was removed")


def test_another_timeline_and_an_earlier_state(followed: Database, sql: SessionClient, tmp_path: Path) -> None:
    server, kept = followed.server, tmp_path / "kept"
    server.set(restore_command="false")
    caught_up(followed, sql)
    server.stop()
    shutil.copytree(server.folder, kept)
    server.start()
    followed.again()
    followed("INSERT INTO t VALUES (2)")
    caught_up(followed, sql)
    ok(sql, "ALTER SOURCE p PAUSE")
    server.stop()
    shutil.copytree(kept, server.folder, dirs_exist_ok=True)
    server.start()
    ok(sql, "ALTER SOURCE p RESUME")
    lost(sql, "the server was restored to an earlier state")
    server.stop()
    (Path(server.folder) / "recovery.signal").touch()
    server.start()
    lost(sql, "the server is on another timeline")


def test_another_server(followed: Database, sql: SessionClient, database: Database) -> None:
    database("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (7)")
    database("CREATE PUBLICATION pub FOR ALL TABLES")
    ok(sql, f"ALTER CONNECTION c SET (HOST '{database.server.folder}', DATABASE '{database.name}')")
    lost(sql, "the connection leads to another PostgreSQL server")
    assert rows(ok(sql, "SELECT * FROM t")) == ["1", "7"]
