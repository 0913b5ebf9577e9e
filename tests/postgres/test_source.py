"""Tables of a real PostgreSQL: as they are there, whatever is done to them, and a clear word where they cannot be."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.serve.stream_metrics import add_stream_metrics
from everview.server.metrics import Metrics
from everview.sources.postgres import stream
from tests.adapter.scripts import SessionClient
from tests.postgres.conftest import Database, caught_up, connection, ok, rows, status
from tests.waiting import eventually

Follow = Callable[..., SessionClient]


def test_a_snapshot_and_what_comes_after_it(database: Database, follow: Follow) -> None:
    database(
        "CREATE TABLE t (a int PRIMARY KEY, b text, n numeric(10, 2));"
        "INSERT INTO t SELECT g, 'row ' || g, g * 1.5 FROM generate_series(1, 5000) AS g;"
        "CREATE TABLE bag (x float8, y text); ALTER TABLE bag REPLICA IDENTITY FULL;"
        r"INSERT INTO bag VALUES (1, 'a'), (1, 'a'), (NULL, E'tab\t, back\\, line\n, \r'), (0, ''), (2, NULL)"
    )
    sql = follow()
    assert rows(ok(sql, "SELECT count(*), sum(n) FROM t")) == ["5000|18753750.00"]
    text = "SELECT x, translate(y, chr(9) || chr(92) || chr(10) || chr(13), 'TBNR') FROM bag"
    assert rows(ok(sql, text)) == ["0|", "1|a", "1|a", "2|NULL", "NULL|tabT, backB, lineN, R"]
    with database.db.transaction():
        database("UPDATE t SET n = n + 1 WHERE a <= 10")
        database("DELETE FROM t WHERE a = 500")
        database("INSERT INTO t VALUES (0, NULL, NULL)")
        database("UPDATE t SET a = a + 100000 WHERE a = 7")  # another key
        database("UPDATE t SET a = 7, b = 'anew' WHERE a = 8")  # the key of one that has moved away
        database("INSERT INTO t VALUES (-1, 'short', 1)")
        database("UPDATE t SET b = 'life' WHERE a = -1")
        database("DELETE FROM t WHERE a = -1")
    database("DELETE FROM bag WHERE x = 1 AND ctid = (SELECT min(ctid) FROM bag WHERE x = 1)")
    database("UPDATE bag SET y = 'zz' WHERE x IS NULL")
    caught_up(database, sql)
    for table in ("t", "bag"):
        theirs = sorted("|".join(map(str, ("NULL" if v is None else v for v in row))) for row in database.rows(
            f"SELECT * FROM {'(SELECT a, b, n::text FROM t)' if table == 't' else '(SELECT x::text, y FROM bag)'} AS x"
        ))  # fmt: skip
        assert rows(ok(sql, f"SELECT * FROM {table}")) == theirs
    assert rows(ok(sql, "SELECT b FROM t WHERE a = 7")) == ["anew"]


def test_figures_of_a_source(database: Database, follow: Follow, coordinator: Coordinator) -> None:
    database("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 50)")
    sql, metrics = follow(), Metrics()
    add_stream_metrics(metrics, coordinator)
    caught_up(database, sql)  # with the snapshot
    database("INSERT INTO t VALUES (51)")
    caught_up(database, sql)
    shown = metrics.render().decode()
    found = dict(re.findall(r'^everview_source_(\w+)\{source="public.p"\} (\S+)$', shown, re.M))
    assert float(found["updates_total"]) >= 51 and float(found["bytes_total"]) > 0
    assert float(found["lag_seconds"]) >= 0 and float(found["lag_bytes"]) >= 0 and found["failing"] == "0.0"
    assert 'updates_total{source="public.t"}' not in shown


def test_values_that_were_left_out_and_truncated_tables(database: Database, follow: Follow) -> None:
    database(
        "CREATE TABLE t (a int PRIMARY KEY, long text, n int); ALTER TABLE t ALTER long SET STORAGE EXTERNAL;"
        "INSERT INTO t SELECT g, repeat(md5(g::text), 300), g FROM generate_series(1, 20) AS g;"
        "CREATE TABLE u (a int PRIMARY KEY)"
    )
    sql = follow()
    with database.db.transaction():
        database("UPDATE t SET n = n + 1 WHERE a <= 5")
        database("UPDATE t SET n = n + 1 WHERE a <= 3")
        database("UPDATE t SET a = -a WHERE a = 1")
        database("UPDATE t SET long = 'short' WHERE a = 2")
        database("UPDATE t SET n = 0 WHERE a = 2")
    query = "SELECT a, md5(long), n FROM t"
    caught_up(database, sql)
    assert rows(ok(sql, query)) == sorted("|".join(map(str, row)) for row in database.rows(query))
    with database.db.transaction():
        database("INSERT INTO u VALUES (1)")
        database("UPDATE t SET n = -1")
        database("TRUNCATE t, u")
        database("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2)")
        database("DELETE FROM t WHERE a = 2")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM t")) == ["1|x|1"] and rows(ok(sql, "SELECT * FROM u")) == []
    with database.db.transaction():
        database("TRUNCATE t")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM t")) == []


TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN positive AS int CHECK (VALUE > 0);"
    "CREATE TABLE v (id int PRIMARY KEY, a smallint, b bigint, c real, d double precision, e numeric, f numeric(38, 5),"
    " g varchar(5), h char(4), i bytea, j date, k time, l timestamp, m timestamptz, n interval, o uuid, p jsonb,"
    " q json, r boolean, s mood, t positive, u int[], w text[], x name, y numeric(6, 2)[])"
)
VALUES = (
    r"(1, -3, 1099511627776, 0.1, 'NaN', 12.125, 1.5, 'ab', 'cd', '\x00ff', '2026-01-02', '23:59:59.5',"
    " '1999-12-31 23:59:59',"
    " '2026-05-06 07:08:09.123456+02', '1 mon 2 days 03:04:05', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',"
    """ '{"b": [1, 2], "a": null}', '{"z": 1}', true, 'glad', 7, '{1,NULL,3}',"""
    r""" '{"a b",NULL,"c\"d"}', 'me', '{1.5,2}')""",
    "(2" + ", NULL" * 24 + ")",
    "(3, 0, 0, '-Infinity', '-0', 0, 0, '', '', '', 'infinity', '00:00', '-infinity', 'infinity', '0', "
    "'00000000-0000-0000-0000-000000000000', '1', 'null', false, 'sad', 1, '{}', '{}', '', '{}')",
)


def test_values_of_all_types_arrive_in_a_snapshot_as_in_the_stream(database: Database, follow: Follow) -> None:
    database(TYPES)
    for row in VALUES[:2]:
        database(f"INSERT INTO v VALUES {row}")
    sql = follow()
    before = ok(sql, "SELECT * FROM v WHERE id < 10")
    database(f"INSERT INTO v VALUES {VALUES[2]}")
    database("CREATE TEMP TABLE w AS SELECT * FROM v; UPDATE w SET id = id + 10; INSERT INTO v SELECT * FROM w")
    caught_up(database, sql)
    assert rows(before) == rows(ok(sql, "SELECT * FROM v WHERE id < 3"))
    every = ", ".join(f"v.{name}" for name in "abcdefghijklmnopqrstuwxy")
    streamed = ok(sql, f"SELECT id - 10 AS id, {every} FROM v WHERE id > 10")
    assert rows(streamed) == rows(ok(sql, "SELECT * FROM v WHERE id < 10"))
    shown = dict(zip(before[0].split("|"), rows(before)[0].split("|"), strict=True))
    expected = {
        "a": "-3", "b": "1099511627776", "c": "0.1", "d": "NaN", "e": "12.125", "f": "1.50000", "g": "ab", "h": "cd  ",
        "i": r"\x00ff", "j": "2026-01-02", "k": "23:59:59.5", "l": "1999-12-31 23:59:59",
        "m": "2026-05-06 05:08:09.123456+00", "n": "1 mon 2 days 03:04:05", "o": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "p": '{"a": null, "b": [1, 2]}', "q": '{"z": 1}', "r": "t", "s": "glad", "t": "7", "u": "{1,NULL,3}",
        "w": r'{"a b",NULL,"c\"d"}', "x": "me", "y": "{1.50,2.00}",
    }  # fmt: skip
    assert {name: shown[name].rstrip() for name in expected} == {name: text.rstrip() for name, text in expected.items()}


@pytest.mark.parametrize("when", ["snapshot", "stream"])
def test_a_number_that_does_not_fit_stops_its_table_and_no_other(database: Database, follow: Follow, when: str) -> None:
    database("CREATE TABLE t (a int PRIMARY KEY, n numeric); CREATE TABLE u (a int PRIMARY KEY)")
    odd = "INSERT INTO t VALUES (2, 1.0000000000000000001); INSERT INTO u VALUES (2)"
    database("INSERT INTO t VALUES (1, 1.5)")
    if when == "snapshot":
        database(odd)
    sql = follow()
    if when == "stream":
        assert rows(ok(sql, "SELECT * FROM t")) == ["1|1.5"]
        database(odd)
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM u")) == ["2"]
    (answer,) = sql("SELECT * FROM t")
    assert answer.startswith("! 55000 a value of public.t.n cannot be kept as numeric"), answer
    state, error = status(sql, "t")
    assert state == "stopped" and "more than 18 digits behind the point" in error
    assert status(sql, "u")[0] == "running"


def test_definitions_that_change_stop_a_table_and_new_ones_do_not(
    database: Database, follow: Follow, tmp_path: Path
) -> None:
    for name in ("same", "narrow", "retyped", "renamed", "dropped", "rekeyed", "made_anew"):
        database(f"CREATE TABLE {name} (a int PRIMARY KEY, b text, c int); INSERT INTO {name} VALUES (1, 'x', 1)")
    sql = follow()
    database("ALTER TABLE same ADD COLUMN d int DEFAULT 5; CREATE TABLE later (a int PRIMARY KEY)")
    database("INSERT INTO same VALUES (2, 'y', 2, 3); INSERT INTO later VALUES (1)")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM same")) == ["1|x|1", "2|y|2"]
    database("ALTER TABLE narrow DROP COLUMN b; UPDATE narrow SET c = 2")
    database("ALTER TABLE retyped ALTER COLUMN c TYPE bigint; UPDATE retyped SET c = 2")
    database("ALTER TABLE renamed RENAME COLUMN b TO d; UPDATE renamed SET c = 2")
    database("DROP TABLE dropped")
    database("ALTER TABLE rekeyed REPLICA IDENTITY FULL; UPDATE rekeyed SET c = 2")
    database("DROP TABLE made_anew; CREATE TABLE made_anew (a int PRIMARY KEY, b text, c int)")
    database("INSERT INTO same VALUES (3, 'z', 3, 3)")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM same")) == ["1|x|1", "2|y|2", "3|z|3"]
    reasons = {
        "narrow": 'column "b"', "retyped": 'column "c"', "renamed": 'column "b"', "dropped": "it was dropped upstream",
        "rekeyed": "", "made_anew": "it was dropped upstream",
    }  # fmt: skip
    for name, reason in reasons.items():
        state, error = status(sql, name)
        assert state == "stopped" and reason in error, (name, error)
        assert sql(f"SELECT * FROM {name}")[0].startswith("! 55000"), name
    ok(sql, "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM narrow")
    assert sql("SELECT * FROM v")[0].startswith("! 55000")


def test_what_keeps_a_source_from_being_is_said_with_the_remedy(database: Database, sql: SessionClient) -> None:
    ok(sql, connection(database))

    def refused(tables: str = "FOR ALL TABLES", options: str = "") -> str:
        session = sql.session
        with pytest.raises(Exception) as failed:
            text = f"CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION 'pub'{options}) {tables}"
            session.run(session.prepare(text))
        session.fail()
        session.sync()
        error = failed.value
        return f"{error.message}; {error.hint}"  # type: ignore[attr-defined]

    assert "CREATE PUBLICATION" in refused()
    database("CREATE PUBLICATION pub FOR ALL TABLES WITH (publish = 'insert')")
    assert 'ALTER PUBLICATION "pub" SET (publish = ' in refused()
    database("ALTER PUBLICATION pub SET (publish = 'insert, update, delete, truncate')")
    assert "has no tables" in refused()
    database("CREATE TABLE bare (a int, b point)")
    assert "REPLICA IDENTITY FULL" in refused(options=", EXCLUDE COLUMNS (bare.b)")
    assert "TEXT COLUMNS (public.bare.b)" in refused()
    assert "names columns with their tables" in refused(options=", TEXT COLUMNS (b)")
    assert "no table of the source has the column bare.z" in refused(options=", EXCLUDE COLUMNS (bare.z)")
    database("CREATE TABLE made (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a + 1) STORED)")
    assert "publish_generated_columns = stored" in refused("FOR TABLES (made)")
    assert 'table "nowhere" is not in publication' in refused("FOR TABLES (nowhere)")
    assert 'no table in schema "nowhere"' in refused("FOR SCHEMAS (nowhere)")
    database("CREATE SCHEMA other; CREATE TABLE other.made (a int PRIMARY KEY)")
    assert "name its schema" in refused("FOR TABLES (made)")
    assert 'two tables would be called "made"' in refused(
        "FOR TABLES (public.made, other.made)", ", EXCLUDE COLUMNS (made.b)"
    )
    assert "would have a name that the source needs" in refused("FOR TABLES (other.made AS p_progress)")
    database("CREATE ROLE weak LOGIN")
    ok(sql, "ALTER CONNECTION c SET (USER 'weak')")
    assert "ALTER ROLE weak REPLICATION" in refused("FOR TABLES (other.made)").replace('"', "")
    assert not database.slots()
    database("DROP ROLE weak")


def test_names_options_and_what_is_shown_of_them(database: Database, sql: SessionClient) -> None:
    database('CREATE SCHEMA shop; CREATE TABLE shop."Odd name" (a int PRIMARY KEY, p point, secret text)')
    database(
        "INSERT INTO shop.\"Odd name\" VALUES (1, '(1,2)', 'hush'); CREATE PUBLICATION pub FOR TABLES IN SCHEMA shop"
    )
    statement = (
        "CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION 'pub', TEXT COLUMNS (\"Odd name\".p),"
        ' EXCLUDE COLUMNS (shop."Odd name".secret)) FOR TABLES (shop."Odd name" AS odd)'
    )
    ok(sql, connection(database), statement)
    assert ok(sql, "SELECT * FROM odd") == ["a|p", "1|(1,2)"]
    shown = ok(sql, "SHOW CREATE SOURCE p")[1].partition("|")[2]
    ok(sql, "DROP SOURCE p")
    assert not database.slots()
    ok(sql, shown)
    assert ok(sql, "SELECT * FROM odd") == ["a|p", "1|(1,2)"]
    assert ok(sql, "SHOW CREATE SOURCE p")[1].partition("|")[2] == shown
    assert ok(sql, "DROP CONNECTION c CASCADE") == ["DROP CONNECTION"]
    assert not database.slots()


def test_a_source_goes_on_after_restarts_and_pauses(database: Database, tmp_path: Path) -> None:
    database("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1); CREATE PUBLICATION pub FOR ALL TABLES")
    with Coordinator.open(tmp_path / "own") as coordinator:
        sql = SessionClient(coordinator)
        ok(sql, connection(database), "CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION 'pub') FOR ALL TABLES")
        assert rows(ok(sql, "SELECT * FROM t")) == ["1"]
    database("INSERT INTO t VALUES (2)")
    with Coordinator.open(tmp_path / "own") as coordinator:
        sql = SessionClient(coordinator)
        caught_up(database, sql)
        assert rows(ok(sql, "SELECT * FROM t")) == ["1", "2"]
        ok(sql, "ALTER SOURCE p PAUSE")
        database("INSERT INTO t VALUES (3)")
        assert rows(ok(sql, "SELECT * FROM t")) == ["1", "2"] and status(sql, "p")[0] == "paused"
    with Coordinator.open(tmp_path / "own") as coordinator:
        sql = SessionClient(coordinator)
        assert rows(ok(sql, "SELECT * FROM t")) == ["1", "2"] and status(sql, "p")[0] == "paused"
        ok(sql, "ALTER SOURCE p RESUME")
        caught_up(database, sql)
        assert rows(ok(sql, "SELECT * FROM t")) == ["1", "2", "3"]


def test_a_server_that_is_away_is_waited_for(database: Database, follow: Follow) -> None:
    database("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")
    sql = follow()
    assert rows(ok(sql, "SELECT * FROM t")) == ["1"]
    database.server.kill()
    eventually(lambda: status(sql, "p")[0] == "stalled")
    assert rows(ok(sql, "SELECT * FROM t")) == ["1"]  # local time goes on
    database.server.start()
    database.again()
    database("INSERT INTO t VALUES (2)")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM t")) == ["1", "2"] and status(sql, "p")[0] == "running"


LOSSES = {
    "slot": ("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots", "is gone"),
    "publication": ("DROP PUBLICATION pub", "was dropped"),
    "another publication": ("DROP PUBLICATION pub; CREATE PUBLICATION pub FOR ALL TABLES", "made anew"),
    "moved slot": (
        "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_lsn())"
        " FROM pg_replication_slots WHERE database = current_database()",
        "moved on by someone else",
    ),
}


@pytest.mark.parametrize("what", LOSSES)
def test_what_is_lost_is_said_and_nothing_wrong_is_shown(database: Database, follow: Follow, what: str) -> None:
    database("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")
    sql = follow()
    caught_up(database, sql)
    statement, said = LOSSES[what]
    if "publication" not in what:
        ok(sql, "ALTER SOURCE p PAUSE")
        eventually(lambda: not database.rows("SELECT 1 FROM pg_replication_slots WHERE active_pid IS NOT NULL"))
    database("CREATE TABLE other (a int PRIMARY KEY)")
    database(statement)
    database("INSERT INTO t VALUES (9)")
    if "publication" not in what:
        ok(sql, "ALTER SOURCE p RESUME")
    eventually(lambda: said in status(sql, "p")[1], shown=lambda: status(sql, "p"))
    # Until the next second, a read may be at a time before: then it is what was there.
    eventually(lambda: sql("SELECT * FROM t") != ["a", "1"])
    (answer,) = sql("SELECT * FROM t")
    assert answer.startswith("! 55000") and said in answer
    ok(sql, "DROP SOURCE p")
    assert not database.slots()


def test_views_over_tables_follow_them(database: Database, follow: Follow) -> None:
    database(
        "CREATE TABLE customer (id int PRIMARY KEY, name text);"
        "CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10, 2));"
        "INSERT INTO customer SELECT g, 'c' || g FROM generate_series(1, 20) AS g;"
        "INSERT INTO orders SELECT g, g % 20 + 1, g FROM generate_series(1, 500) AS g"
    )
    sql = follow()
    joined = "customer AS c JOIN orders AS o ON o.customer = c.id"
    query = f"SELECT name, sum(amount) AS total, count(*) AS n FROM {joined} GROUP BY name"
    ok(sql, f"CREATE MATERIALIZED VIEW spent AS {query}", "CREATE INDEX by_name ON spent (name)")
    for statement in (
        "UPDATE orders SET amount = amount * 2 WHERE id <= 100",
        "DELETE FROM customer WHERE id > 15; UPDATE orders SET customer = 1 WHERE customer > 15",
        "UPDATE customer SET id = 100 WHERE id = 1; UPDATE orders SET customer = 100 WHERE customer = 1",
        "TRUNCATE customer; INSERT INTO customer VALUES (2, 'only')",
    ):
        database(statement)
        caught_up(database, sql)
        theirs = sorted("|".join(map(str, row)) for row in database.rows(query))
        assert rows(ok(sql, "SELECT * FROM spent")) == theirs


def test_tables_that_are_not_taken_may_change_as_they_like(
    database: Database, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "TRANSACTION_BYTES_MAX", 100_000)
    database("CREATE TABLE t (a int PRIMARY KEY, m text); CREATE TABLE large (a int PRIMARY KEY, x text)")
    sql = follow("FOR TABLES (t)")
    with database.db.transaction():
        database("INSERT INTO large SELECT g, repeat('x', 100) FROM generate_series(1, 5000) AS g")
        database("INSERT INTO t VALUES (1, 'x')")
    caught_up(database, sql)
    assert rows(ok(sql, "SELECT * FROM t")) == ["1|x"]
    database("INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(2, 5000) AS g")
    eventually(lambda: "a transaction upstream is too large" in status(sql, "p")[-1], shown=lambda: status(sql, "p"))
    assert rows(ok(sql, "SELECT * FROM t")) == ["1|x"]
