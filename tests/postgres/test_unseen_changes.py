"""What PostgreSQL's stream does not tell: a table is as it is upstream, or stopped, and never something else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.adapter.scripts import SessionClient
from tests.postgres.conftest import Database, caught_up, connection, ok, rows, status
from tests.waiting import eventually

Follow = Callable[..., SessionClient]
SOURCE = "CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION 'pub') FOR ALL TABLES"


def idle(database: Database) -> None:
    """Wait until nobody reads the slot."""
    eventually(lambda: not database.rows("SELECT 1 FROM pg_replication_slots WHERE active_pid IS NOT NULL"))


def shown(database: Database, table: str) -> list[str]:
    found = database.rows(f"SELECT * FROM {table}")
    return sorted("|".join("NULL" if each is None else str(each) for each in row) for row in found)


def stopped(sql: SessionClient, table: str, reason: str) -> None:
    """The table is stopped for this reason, and cannot be read."""
    eventually(lambda: status(sql, table)[0] == "stopped", shown=lambda: status(sql, table))
    assert reason in status(sql, table)[1], status(sql, table)
    eventually(
        lambda: sql(f"SELECT * FROM {table}")[0].startswith("! 55000"), shown=lambda: sql(f"SELECT * FROM {table}")
    )


USING = "ALTER TABLE t ALTER m TYPE int USING m * 100"
UNLOGGED = ("ALTER TABLE t SET UNLOGGED", "UPDATE t SET m = 99", "ALTER TABLE t SET LOGGED")
# Statements after which the rows are others than the stream tells, with and without long values, and the reason given.
REWRITES = {
    "using": ((USING, "INSERT INTO t VALUES (3, 5)"), "written anew upstream by ALTER TABLE"),
    "unlogged": ((*UNLOGGED, "INSERT INTO t VALUES (3, 5)"), "written anew upstream by ALTER TABLE"),
    "truncated and unlogged": (
        ("TRUNCATE t", UNLOGGED[0], "INSERT INTO t VALUES (7, 7)", UNLOGGED[2]),
        "written anew upstream by ALTER TABLE",
    ),
}


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("what", REWRITES)
def test_a_table_that_alter_table_writes_anew_stops(database: Database, follow: Follow, what: str, long: bool) -> None:
    statements, reason = REWRITES[what]
    database(f"CREATE TABLE t (a int PRIMARY KEY, m int{', x text' if long else ''}); INSERT INTO t VALUES (1, 10)")
    database("CREATE TABLE u (a int PRIMARY KEY)")
    sql = follow()
    caught_up(database, sql)
    ok(sql, "ALTER SOURCE p PAUSE")
    idle(database)
    for statement in statements:
        database(statement)
    ok(sql, "ALTER SOURCE p RESUME")
    stopped(sql, "t", reason)
    database("INSERT INTO u VALUES (1)")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM u")) == ["1"]


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("paused", [False, True])
def test_other_new_files_of_a_table_do_not_stop_it(
    database: Database, follow: Follow, long: bool, paused: bool
) -> None:
    database(f"CREATE TABLE t (a int PRIMARY KEY, m int{', x text' if long else ''})")
    database("INSERT INTO t SELECT g, g FROM generate_series(1, 50) AS g; CREATE TABLE bare (a int NOT NULL)")
    database("CREATE UNIQUE INDEX key ON bare (a); ALTER TABLE bare REPLICA IDENTITY USING INDEX key")
    sql = follow()
    caught_up(database, sql)
    if paused:
        ok(sql, "ALTER SOURCE p PAUSE")
        idle(database)
    database("VACUUM FULL t")
    database("UPDATE t SET m = 0 WHERE a = 1")
    database("CLUSTER t USING t_pkey")
    database("ALTER TABLE t ALTER m SET STATISTICS 50; ALTER TABLE t ADD COLUMN more int; GRANT SELECT ON t TO public")
    database("VACUUM FULL t")
    with database.db.transaction():
        database("SAVEPOINT a; TRUNCATE bare; INSERT INTO bare SELECT generate_series(1, 10); RELEASE a")
    database("CREATE INDEX ON bare (a)")
    if paused:
        ok(sql, "ALTER SOURCE p RESUME")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT a, m FROM t")) == sorted(
        "|".join(map(str, row)) for row in database.rows("SELECT a, m FROM t")
    )
    for statement in (
        "TRUNCATE t; INSERT INTO t VALUES (1, 1), (2, 2)",
        "SAVEPOINT a; TRUNCATE t; INSERT INTO t VALUES (3, 3); RELEASE a",
        "TRUNCATE t, bare",
    ):
        with database.db.transaction():
            database(statement)
        caught_up(database, sql)
        expected = sorted("|".join(map(str, row)) for row in database.rows("SELECT a, m FROM t"))
        assert rows(ok(sql, "SELECT a, m FROM t")) == expected
    assert status(sql, "p")[0] == status(sql, "t")[0] == status(sql, "bare")[0] == "running"


def test_a_table_that_its_publication_names_may_be_written_anew(database: Database, sql: SessionClient) -> None:
    database(
        "CREATE TABLE t (a int PRIMARY KEY, x text); INSERT INTO t VALUES (1, 'x'); CREATE PUBLICATION pub FOR TABLE t"
    )
    ok(sql, connection(database), SOURCE)
    caught_up(database, sql)
    database("ALTER TABLE t ADD COLUMN id uuid DEFAULT gen_random_uuid(); INSERT INTO t VALUES (2, 'y')")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM t")) == ["1|x", "2|y"]
    with pytest.raises(Exception, match="part of a publication"):
        database("ALTER TABLE t SET UNLOGGED")


def test_other_names_for_values_of_an_enum_stop_their_table(database: Database, follow: Follow) -> None:
    database(
        "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN feeling AS mood; CREATE TYPE pair AS (a int, b int);"
        "CREATE TABLE plain (a int PRIMARY KEY, m mood); CREATE TABLE several (a int PRIMARY KEY, m mood[]);"
        "CREATE TABLE domains (a int PRIMARY KEY, m feeling); CREATE TABLE pairs (a int PRIMARY KEY, m pair);"
        "CREATE TABLE other (a int PRIMARY KEY);"
        "INSERT INTO plain VALUES (1, 'sad'); INSERT INTO pairs VALUES (1, (1, 2))"
    )
    sql = follow(options=", TEXT COLUMNS (several.m, pairs.m)")
    database("ALTER TYPE mood ADD VALUE 'calm' BEFORE 'sad'")
    database("INSERT INTO plain VALUES (2, 'calm')")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM plain")) == ["1|sad", "2|calm"]
    # There and back again: a row that came between would have the other name here.
    database("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'; ALTER TYPE pair ADD ATTRIBUTE c int")
    database("INSERT INTO plain VALUES (3, 'blue')")
    database("ALTER TYPE mood RENAME VALUE 'blue' TO 'sad'; INSERT INTO other VALUES (1)")
    for name in ("plain", "several", "domains"):
        stopped(sql, name, 'value "sad" of an enum was renamed upstream')
    stopped(sql, "pairs", "an expression or how it is published has changed upstream")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM other")) == ["1"]


def test_another_expression_of_a_generated_column_stops_its_table(database: Database, sql: SessionClient) -> None:
    database(
        "CREATE TABLE t (a int PRIMARY KEY, m int GENERATED ALWAYS AS (a + 1) STORED); INSERT INTO t VALUES (1);"
        "CREATE PUBLICATION pub FOR ALL TABLES WITH (publish_generated_columns = stored)"
    )
    ok(sql, connection(database), SOURCE)
    database("INSERT INTO t VALUES (2); UPDATE t SET a = 3 WHERE a = 1")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM t")) == ["2|3", "3|4"]
    database("ALTER TABLE t ALTER m SET EXPRESSION AS (a + 1000); INSERT INTO t VALUES (9)")
    stopped(sql, "t", "an expression or how it is published has changed upstream")


THERE_AND_BACK = {
    "what is published": (
        "CREATE PUBLICATION pub FOR ALL TABLES",
        "ALTER PUBLICATION pub SET (publish = 'insert')",
        "ALTER PUBLICATION pub SET (publish = 'insert, update, delete, truncate')",
        ("p", "was altered or made anew"),
    ),
    "a schema": (
        "CREATE PUBLICATION pub FOR TABLES IN SCHEMA s, public",
        "ALTER PUBLICATION pub DROP TABLES IN SCHEMA s",
        "ALTER PUBLICATION pub ADD TABLES IN SCHEMA s",
        ("t", "how it is published has changed"),
    ),
    "the table's schema": (
        "CREATE PUBLICATION pub FOR TABLES IN SCHEMA s",
        "ALTER TABLE s.t SET SCHEMA public; SET search_path = s, public",
        "ALTER TABLE public.t SET SCHEMA s",
        ("t", "how it is published has changed"),
    ),
    "a table": (
        "CREATE PUBLICATION pub FOR TABLE s.t",
        "ALTER PUBLICATION pub DROP TABLE s.t",
        "ALTER PUBLICATION pub ADD TABLE s.t",
        ("t", "how it is published has changed"),
    ),
    "a partition": (
        "CREATE TABLE whole (a int PRIMARY KEY, m int) PARTITION BY RANGE (a);"
        "ALTER TABLE whole ATTACH PARTITION s.t FOR VALUES FROM (0) TO (100);"
        "CREATE PUBLICATION pub FOR TABLE whole",
        "ALTER TABLE whole DETACH PARTITION s.t",
        "ALTER TABLE whole ATTACH PARTITION s.t FOR VALUES FROM (0) TO (100)",
        ("t", "how it is published has changed"),
    ),
}


@pytest.mark.parametrize("what", THERE_AND_BACK)
def test_a_publication_that_was_altered_and_altered_back_is_noticed(
    database: Database, sql: SessionClient, what: str
) -> None:
    publication, away, back, (name, reason) = THERE_AND_BACK[what]
    database("CREATE SCHEMA s; CREATE TABLE s.t (a int PRIMARY KEY, m int NOT NULL); INSERT INTO s.t VALUES (1, 10)")
    database(publication)
    ok(sql, connection(database), SOURCE)
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM t")) == ["1|10"]
    ok(sql, "ALTER SOURCE p PAUSE")
    idle(database)
    database("SET search_path = s, public")
    database(away)
    database("UPDATE t SET m = 99")
    database(back)
    database("INSERT INTO t VALUES (3, 3)")
    ok(sql, "ALTER SOURCE p RESUME")
    eventually(lambda: reason in "".join(status(sql, name)), shown=lambda: status(sql, name))
    eventually(lambda: sql("SELECT * FROM t")[0].startswith("! 55000"), shown=lambda: sql("SELECT * FROM t"))
