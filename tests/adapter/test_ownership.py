"""Who may change what is there: its owner and superusers, and nobody else, in whatever way it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from everview.adapter.catalog.items import Table
from everview.adapter.coordinator import Coordinator
from everview.adapter.ddl import carry_out
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import comment_on
from everview.adapter.statements.nodes import CommentOn
from everview.compute.sql.errors import SqlError
from tests.adapter.scripts import SessionClient

OBJECTS = (
    "CREATE SCHEMA place",
    "CREATE TABLE t (a int, b text)",
    "CREATE VIEW v AS SELECT a FROM t",
    "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t",
    "CREATE INDEX i ON t (a)",
    "CREATE SOURCE s FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1h')",
    "CREATE ROLE ann",
    "CREATE ROLE boss SUPERUSER",
)
REFUSED = {
    "DROP TABLE t CASCADE": 'must be owner of table "t"',
    "DROP VIEW v": 'must be owner of view "v"',
    "DROP MATERIALIZED VIEW m": 'must be owner of materialized view "m"',
    "DROP INDEX i": 'must be owner of index "i"',
    "DROP SOURCE s": 'must be owner of source "s"',
    "DROP SCHEMA place": 'must be owner of schema "place"',
    "DROP DATABASE everview": 'must be owner of database "everview"',
    "ALTER TABLE t RENAME TO u": 'must be owner of table "t"',
    "ALTER TABLE t RENAME COLUMN a TO c": 'must be owner of table "t"',
    "ALTER TABLE t OWNER TO ann": 'must be owner of table "t"',
    "ALTER SCHEMA place OWNER TO ann": 'must be owner of schema "place"',
    "ALTER TABLE t SET (RETAIN HISTORY FOR '1h')": 'must be owner of table "t"',
    "CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM t": 'must be owner of view "v"',
    "CREATE MATERIALIZED VIEW r REPLACING m AS SELECT count(*) AS n FROM t": 'must be owner of materialized view "m"',
    "CREATE INDEX j ON t (b)": 'must be owner of table "t"',
    "COMMENT ON TABLE t IS 'mine'": 'must be owner of table "t"',
    "COMMENT ON COLUMN t.a IS 'mine'": 'must be owner of table "t"',
    "COMMENT ON SCHEMA place IS 'mine'": 'must be owner of schema "place"',
    "CREATE ROLE other SUPERUSER": "permission denied to create role",
    "ALTER ROLE everview PASSWORD 'x'": 'permission denied to alter role "everview"',
    "DROP ROLE boss": 'permission denied to alter or drop role "boss"',
    "CREATE DATABASE other": "permission denied to create database",
    "CREATE SINK x FROM t INTO COMMAND '/bin/sh -c true' KEY (a)": "permission denied to create a sink",
    "CREATE SINK x FROM t INTO CONNECTOR '/bin/true' KEY (a)": "permission denied to create a sink",
    "CREATE SINK x FROM t INTO SQLITE (PATH '/nowhere/x.db', TABLE 'x') KEY (a)": "permission denied to create a sink",
    "CREATE SINK x FROM t INTO WEBHOOK (URL 'http://127.0.0.1:1/') KEY (a)": "permission denied to create a sink",
    "CREATE SINK x FROM t INTO CDC FILES '/nowhere'": "permission denied to create a sink",
    "CREATE SOURCE x (a int) FROM CDC FILES '/etc'": "permission denied to create a source from a change stream",
    "CREATE SOURCE x FROM CDC FILES '/etc'": "permission denied to create a source from a change stream",
}


def test_nobody_delivers_into_the_environment_itself(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path
) -> None:
    """Not by its name, nor by a path that goes there and back, nor by a link to it."""
    own = coordinator.environment.folder
    link = tmp_path / "elsewhere"
    link.symlink_to(own)
    sql("CREATE TABLE t (a int)")
    for place in (own, own / "blob", own / "sub" / ".." / "blob", link, link / "blob"):
        for into in (f"PARQUET (PATH '{place}') KEY (a)", f"CDC FILES '{place}'", f"CDC FILES 'file://{place}'"):
            assert sql(f"CREATE SINK x FROM t INTO {into}")[0].startswith("! 42501"), (place, into)
        assert sql(f"CREATE SOURCE x (a int) FROM CDC FILES '{place}'")[0].startswith("! 42501")
    database = f"SQLITE (PATH '{own}/consensus.db', TABLE 'x')"
    assert sql(f"CREATE SINK x FROM t INTO {database} KEY (a)")[0].startswith("! 42501")


@pytest.fixture
def ann(sql: SessionClient, coordinator: Coordinator) -> SessionClient:
    for statement in OBJECTS:
        assert not sql(statement)[0].startswith("!"), statement
    return SessionClient(coordinator, "ann")


def test_what_is_anothers_stays_as_it_is(ann: SessionClient, coordinator: Coordinator) -> None:
    before = coordinator.catalog.state
    for statement, message in REFUSED.items():
        assert ann(statement)[0].startswith(f"! 42501 {message}"), statement
    assert coordinator.catalog.state is before


def test_inside_a_block_it_is_refused_at_once(ann: SessionClient) -> None:
    ann("BEGIN")
    assert ann("DROP TABLE t CASCADE")[0].startswith("! 42501")
    assert ann("COMMIT") == ["ROLLBACK"]


def test_owners_and_superusers_may(ann: SessionClient, coordinator: Coordinator) -> None:
    assert ann("SELECT count(*) FROM t") == ["count", "0"]
    assert ann("CREATE TABLE mine (a int)") == ["CREATE TABLE"]
    assert ann("ALTER TABLE mine OWNER TO boss")[0].startswith("! 42501")
    assert ann("CREATE INDEX k ON mine (a)") == ["CREATE INDEX"]
    assert ann("ALTER TABLE mine RENAME TO ours") == ["ALTER TABLE"]
    assert ann("ALTER ROLE ann PASSWORD 'x'") == ["ALTER ROLE"]
    boss = SessionClient(coordinator, "boss")
    assert boss("ALTER TABLE ours OWNER TO boss") == ["ALTER TABLE"]
    assert ann("DROP TABLE ours")[0].startswith('! 42501 must be owner of table "ours"')
    assert boss("DROP TABLE ours") == ["DROP TABLE"]
    assert boss("DROP VIEW v") == ["DROP VIEW"]


def test_what_depends_on_it_goes_along_whoever_owns_it(ann: SessionClient, coordinator: Coordinator) -> None:
    ann("CREATE TABLE mine (a int)")
    boss = SessionClient(coordinator, "boss")
    assert boss("CREATE VIEW theirs AS SELECT a FROM mine") == ["CREATE VIEW"]
    assert ann("DROP TABLE mine CASCADE") == ["DROP TABLE"]


def test_a_role_is_told_whether_it_is_a_superuser(ann: SessionClient, coordinator: Coordinator) -> None:
    for name, power in (("ann", "off"), ("boss", "on"), ("everview", "on")):
        session = coordinator.connect(name, "everview", {})
        assert session.parameters["is_superuser"] == power
        client = SessionClient(coordinator, name)
        assert client("SHOW is_superuser") == ["is_superuser", power]
        assert client("SELECT current_setting('is_superuser') AS s") == ["s", power]
        assert client("RESET ALL") == ["RESET"] and client("SHOW is_superuser") == ["is_superuser", power]
        assert client("SET is_superuser = on")[0].startswith("! 55P02")
    with pytest.raises(SqlError, match='parameter "is_superuser" cannot be changed'):
        coordinator.connect("ann", "everview", {"is_superuser": "on"})


def test_a_comment_on_what_is_dropped_meanwhile(coordinator: Coordinator) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE gone (a int)")
    session = coordinator.connect("everview", "everview", {})
    late = Context(session, coordinator, session.statement_context())
    assert sql("DROP TABLE gone") == ["DROP TABLE"]
    with pytest.raises(SqlError, match='relation "gone" does not exist') as refused:
        carry_out(late, CommentOn(Table, ("gone",), "too late"), comment_on)
    assert refused.value.sqlstate == "42P01"


def test_what_is_there_is_not_of_a_kind_that_the_catalog_does_not_hold(coordinator: Coordinator) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE it (a int)")
    assert sql("DROP CLUSTER it")[0].startswith('! 42809 "it" is not a cluster')
    assert sql("DROP COLUMN it")[0].startswith('! 42809 "it" is not a column')
    assert sql("DROP CLUSTER nothing")[0].startswith('! 42P01 relation "nothing" does not exist')
    assert sql("ALTER CLUSTER it RENAME TO other")[0].startswith("! 0A000")
    assert sql("COMMENT ON CLUSTER it IS 'x'")[0].startswith('! 42809 "it" is not a cluster')
