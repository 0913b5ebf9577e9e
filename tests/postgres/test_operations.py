"""What whoever runs a source sees and relies on: statistics, slots that move on, and what a server lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from everview.adapter.coordinator import Coordinator
from everview.sources.postgres import snapshot
from everview.sources.postgres.pgoutput import lsn_of
from everview.sources.postgres.tables import UpstreamTable
from tests.adapter.scripts import SessionClient
from tests.postgres.conftest import Database, caught_up, connection, ok, refusal, rows
from tests.postgres.server import Upstream
from tests.waiting import eventually

Follow = Callable[..., SessionClient]
SOURCE = "CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION 'pub') FOR ALL TABLES"


def statistics(sql: SessionClient) -> dict[str, str]:
    """The row of the source in mz_source_statistics, by the names of columns."""
    names = "rows, bytes, position, snapshot_rows, snapshot_rows_total, lag_bytes, lag_ms"
    joined = "mz_internal.mz_source_statistics AS s JOIN mz_internal.mz_source_statuses AS n ON n.id = s.id"
    head, *found = ok(sql, f"SELECT {names} FROM {joined} WHERE n.name = 'p'")
    return dict(zip(head.split("|"), found[0].split("|"), strict=True))


def test_statistics_say_how_far_a_source_is(
    database: Database, coordinator: Coordinator, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    during: list[dict[str, str]] = []
    check, other = snapshot.check_files, SessionClient(coordinator)

    def looked(db: psycopg.Connection[Any], tables: Sequence[UpstreamTable]) -> None:
        during.append(statistics(other))
        check(db, tables)

    monkeypatch.setattr(snapshot, "check_files", looked)
    database(
        "CREATE TABLE t (a int PRIMARY KEY, m text); INSERT INTO t SELECT g, 'abc' FROM generate_series(1, 900) AS g"
    )
    database("ANALYZE t")
    sql = follow()
    caught_up(database, sql)
    assert [(each["snapshot_rows"], each["snapshot_rows_total"]) for each in during] == [("900", "900")]
    before = statistics(sql)
    assert (before["rows"], before["snapshot_rows"], before["snapshot_rows_total"]) == ("900", "NULL", "NULL")
    assert int(before["bytes"]) >= 900 * len("1\tabc\n")
    database("INSERT INTO t VALUES (1000, 'x'); UPDATE t SET m = 'y' WHERE a <= 2; DELETE FROM t WHERE a = 3")
    caught_up(database, sql)
    after = statistics(sql)
    assert after["rows"] == "904" and int(after["bytes"]) > int(before["bytes"])
    assert lsn_of(after["position"]) > lsn_of(before["position"])
    eventually(
        lambda: (statistics(sql)["lag_bytes"], statistics(sql)["lag_ms"]) == ("0", "0"), shown=lambda: statistics(sql)
    )


def test_an_idle_source_moves_its_slot_on(database: Database, follow: Follow) -> None:
    database("CREATE TABLE t (a int PRIMARY KEY)")
    sql = follow()
    caught_up(database, sql)
    with database.server.connect() as db:  # in another database, of which the slot is told nothing
        db.execute("CREATE TABLE IF NOT EXISTS elsewhere (x text)")
        db.execute("INSERT INTO elsewhere SELECT repeat('x', 1000) FROM generate_series(1, 2000)")
        db.execute("DROP TABLE elsewhere")
    ((at,),) = database.rows("SELECT pg_current_wal_flush_lsn()")
    query = "SELECT min(confirmed_flush_lsn) FROM pg_replication_slots WHERE database = current_database()"
    eventually(lambda: lsn_of(database.rows(query)[0][0]) >= lsn_of(at), shown=lambda: (database.rows(query), at))


def test_schemas_are_taken_by_name(database: Database, follow: Follow) -> None:
    for schema in ("one", "two", "three"):
        database(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.{schema}_t (a int PRIMARY KEY)")
        database(f"INSERT INTO {schema}.{schema}_t VALUES (1)")
    sql = follow("FOR SCHEMAS (one, three)")
    database("INSERT INTO one.one_t VALUES (2); INSERT INTO two.two_t VALUES (2)")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM one_t")) == ["1", "2"] and rows(ok(sql, "SELECT * FROM three_t")) == ["1"]
    assert sql("SELECT * FROM two_t")[0].startswith("! 42P01")


def test_a_table_that_is_truncated_under_the_snapshot_is_read_again(
    database: Database, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads an old snapshot sees no rows of a table that was truncated or written anew meanwhile."""
    database("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")
    begin, begun = snapshot.begin, 0

    def meddling(*given: object) -> None:
        nonlocal begun
        begin(*given)  # type: ignore[arg-type]
        begun += 1
        if begun == 1:
            database("ALTER TABLE t ALTER a TYPE bigint; ALTER TABLE t ALTER a TYPE int")

    monkeypatch.setattr(snapshot, "begin", meddling)
    sql = follow()
    assert rows(ok(sql, "SELECT * FROM t")) == ["1"] and begun == 2


@pytest.fixture
def guarded(database: Database) -> Iterator[Database]:
    """A database of which one role has to give its password."""
    rules = Path(database.server.folder) / "pg_hba.conf"
    before = rules.read_text()
    database("CREATE ROLE shop LOGIN REPLICATION PASSWORD 'right'")
    rules.write_text(f"local all shop scram-sha-256\n{before}")
    database("SELECT pg_reload_conf()")
    yield database
    rules.write_text(before)
    database("SELECT pg_reload_conf(); DROP OWNED BY shop; DROP ROLE shop")


def test_a_wrong_password_is_said(guarded: Database, sql: SessionClient) -> None:
    create = connection(guarded).replace("USER 'postgres'", "USER 'shop', PASSWORD SECRET s")
    ok(sql, "CREATE SECRET s AS 'not-this'")
    said = refusal(sql, create)
    assert "password authentication failed" in said and "ALTER SECRET" in said and "not-this" not in said
    guarded("CREATE TABLE t (a int PRIMARY KEY); CREATE PUBLICATION pub FOR ALL TABLES; GRANT SELECT ON t TO shop")
    ok(sql, f"{create} WITH (VALIDATE = false)")
    assert refusal(sql, "VALIDATE CONNECTION c") == refusal(sql, SOURCE) == said
    ok(sql, "ALTER SECRET s AS 'right'", "VALIDATE CONNECTION c", SOURCE)
    assert rows(ok(sql, "SELECT * FROM t")) == []
    ok(sql, "DROP SOURCE p")


def test_a_server_without_room_for_a_slot_is_said(database: Database, sql: SessionClient) -> None:
    database("CREATE TABLE t (a int PRIMARY KEY); CREATE PUBLICATION pub FOR ALL TABLES")
    ok(sql, connection(database))
    ((free,),) = database.rows(
        "SELECT current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots)"
    )
    for number in range(free):
        database(f"SELECT pg_create_physical_replication_slot('room{number}')")
    try:
        assert "no room for another source: max_replication_slots is 30" in refusal(sql, SOURCE)
        warned = sql.session.run(sql.session.prepare("VALIDATE CONNECTION c"))
        assert warned is not None
        assert any("ALTER SYSTEM SET max_replication_slots = 40" in each.message for each in sql.session.notices())
    finally:
        for number in range(free):
            database(f"SELECT pg_drop_replication_slot('room{number}')")
    ok(sql, SOURCE)


def test_a_server_that_is_unknown_is_said(upstream: Upstream, sql: SessionClient) -> None:
    where = f"HOST '{upstream.folder}', DATABASE 'nowhere', USER 'postgres'"
    assert 'database "nowhere" does not exist' in refusal(sql, f"CREATE CONNECTION c TO POSTGRES ({where})")
    nobody = "HOST '127.0.0.1', PORT 1, DATABASE 'd', USER 'u'"
    assert "onnection refused" in refusal(sql, f"CREATE CONNECTION c TO POSTGRES ({nobody})")
