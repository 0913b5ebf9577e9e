"""A role that may not read what it is to read is refused, with the statement that lets it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everview.adapter.coordinator import Coordinator
from everview.errors import EverviewError
from everview.sources.postgres import connecting
from tests.adapter.scripts import SessionClient
from tests.postgres.conftest import Database, caught_up, connection, ok, rows

SOURCE = "CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION 'pub'{}) FOR ALL TABLES"


@pytest.fixture
def reader(database: Database, sql: SessionClient) -> Iterator[None]:
    """A role by which the connection `c` reads a database with a table in a schema of its own."""
    database("CREATE SCHEMA s; CREATE TABLE s.t (a int PRIMARY KEY, hush text)")
    database("INSERT INTO s.t VALUES (1, 'x'), (2, 'y')")
    database('CREATE PUBLICATION pub FOR ALL TABLES; CREATE ROLE "re-ader" LOGIN REPLICATION')
    ok(sql, connection(database).replace("USER 'postgres'", "USER 're-ader'"))
    yield
    sql("DROP CONNECTION c CASCADE")
    database('DROP OWNED BY "re-ader"; DROP ROLE "re-ader"')


def refusal(sql: SessionClient, options: str = "") -> str:
    """What CREATE SOURCE says of what is missing."""
    session = sql.session
    with pytest.raises(EverviewError) as failed:
        session.run(session.prepare(SOURCE.format(options)))
    session.fail()
    session.sync()
    return f"{failed.value.message}; {failed.value.hint}"


def warnings(coordinator: Coordinator) -> str:
    """What VALIDATE CONNECTION says of what is missing."""
    session = coordinator.connect("everview", "everview", {})
    session.run(session.prepare("VALIDATE CONNECTION c"))
    return "\n".join(each.message for each in session.notices())


def test_rights_to_read_are_asked_for(
    database: Database, coordinator: Coordinator, sql: SessionClient, reader: None
) -> None:
    steps = (
        ('"re-ader" may not use schema s', 'GRANT USAGE ON SCHEMA "s" TO "re-ader"'),
        ('"re-ader" may not read table s.t', 'GRANT SELECT ON "s"."t" TO "re-ader"'),
    )
    for message, statement in steps:
        assert refusal(sql) == f"{message}; {statement}"
        assert statement in warnings(coordinator)
        database(statement)
    database("ALTER TABLE s.t ENABLE ROW LEVEL SECURITY; CREATE POLICY first ON s.t USING (a = 1)")
    hidden = 'row-level security hides rows from "re-ader" in table s.t'
    assert refusal(sql) == f'{hidden}; ALTER ROLE "re-ader" BYPASSRLS'
    assert hidden in warnings(coordinator)
    database('ALTER ROLE "re-ader" BYPASSRLS')
    assert warnings(coordinator) == ""
    ok(sql, SOURCE.format(""))
    assert rows(ok(sql, "SELECT * FROM t")) == ["1|x", "2|y"]


def test_columns_that_are_left_out_need_no_right(database: Database, sql: SessionClient, reader: None) -> None:
    database('GRANT USAGE ON SCHEMA s TO "re-ader"; GRANT SELECT (a) ON s.t TO "re-ader"')
    assert "may not read table s.t" in refusal(sql)
    ok(sql, SOURCE.format(", EXCLUDE COLUMNS (s.t.hush)"))
    database("INSERT INTO s.t VALUES (3, 'z')")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM t")) == ["1", "2", "3"]


def test_many_tables_without_rights_are_said_in_a_line(database: Database, sql: SessionClient, reader: None) -> None:
    database('GRANT USAGE ON SCHEMA s TO "re-ader"')
    for number in range(12):
        database(f"CREATE TABLE s.t{number:02} (a int PRIMARY KEY)")
    said = refusal(sql)
    assert "may not read tables s.t, s.t00, s.t01," in said and "and 3 others" in said and '"s"."t08", … TO' in said


def test_a_policy_that_comes_later_hides_nothing(database: Database, sql: SessionClient, reader: None) -> None:
    database('GRANT USAGE ON SCHEMA s TO "re-ader"; GRANT SELECT ON s.t TO "re-ader"')
    ok(sql, SOURCE.format(""))
    caught_up(database, sql)
    database("ALTER TABLE s.t ENABLE ROW LEVEL SECURITY; CREATE POLICY first ON s.t USING (a = 1)")
    database("INSERT INTO s.t VALUES (3, 'z')")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM t")) == ["1|x", "2|y", "3|z"]


def test_a_policy_shortens_no_query(database: Database, reader: None) -> None:
    database('GRANT USAGE ON SCHEMA s TO "re-ader"')
    policy = "ALTER TABLE s.t ENABLE ROW LEVEL SECURITY; CREATE POLICY first ON s.t USING (a = 1)"
    with connecting.connect(f"host={database.server.folder} dbname={database.name} user=re-ader") as db:
        for hint, after in (("GRANT SELECT ON", f'GRANT SELECT ON s.t TO "re-ader"; {policy}'), ("BYPASSRLS", "")):
            with pytest.raises(EverviewError) as failed, connecting.failures("table s.t cannot be read"):
                db.execute("SELECT a FROM s.t")
            assert hint in str(failed.value.hint)
            database(after)
