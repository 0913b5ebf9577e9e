"""What a block has written, it reads: with every kind of statement, through views and indexes, and beside others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient


def rows(client: SessionClient, query: str) -> list[str]:
    return client(query)[1:]


@pytest.fixture
def tables(sql: SessionClient) -> SessionClient:
    for each in (
        "CREATE TABLE t (k int, v text)",
        "CREATE TABLE u (k int, n numeric(10, 2))",
        "CREATE VIEW joined AS SELECT t.k, t.v, u.n FROM t LEFT JOIN u ON t.k = u.k",
        "CREATE MATERIALIZED VIEW total AS SELECT count(*) AS c FROM t",
        "INSERT INTO t VALUES (1, 'one'), (2, 'two')",
        "INSERT INTO u VALUES (1, 1.5)",
    ):
        assert not sql(each)[0].startswith("!")
    return sql


def test_each_kind_of_read(tables: SessionClient) -> None:
    sql = tables
    sql("BEGIN")
    sql("INSERT INTO t VALUES (3, 'three'), (3, 'three')")
    assert rows(sql, "SELECT k, v FROM t ORDER BY k") == ["1|one", "2|two", "3|three", "3|three"]
    assert sql("UPDATE t SET v = v || '!' WHERE k >= 2") == ["UPDATE 3"]
    assert sql("DELETE FROM t WHERE k = 1") == ["DELETE 1"]
    assert rows(sql, "SELECT count(*) FROM t WHERE v LIKE '%!'") == ["3"]
    assert rows(sql, "INSERT INTO u SELECT k, count(*) FROM t GROUP BY k RETURNING k, n") == ["2|1.00", "3|2.00"]
    assert rows(sql, "SELECT k, v, n FROM joined ORDER BY k") == ["2|two!|1.00", "3|three!|2.00", "3|three!|2.00"]
    assert rows(sql, "SELECT sum(n) FROM u WHERE k IN (SELECT k FROM t)") == ["3.00"]
    assert rows(
        sql, "WITH RECURSIVE r (k) AS (SELECT 2 UNION SELECT t.k FROM r, t WHERE t.k = r.k + 1) SELECT k FROM r"
    ) == [
        "2",
        "3",
    ]
    sql("DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k")
    sql("TRUNCATE t")
    assert rows(sql, "FETCH ALL c") == ["2", "3", "3"], "a cursor has what there was when it was declared"
    assert rows(sql, "COPY t TO STDOUT") == []
    assert sql("COMMIT") == ["COMMIT"]
    assert rows(sql, "SELECT count(*) FROM t") == ["0"]
    assert rows(sql, "SELECT k, n FROM u ORDER BY k") == ["1|1.50", "2|1.00", "3|2.00"]


def test_nobody_else_sees_it(coordinator: Coordinator, tables: SessionClient) -> None:
    other = SessionClient(coordinator)
    tables("BEGIN")
    tables("DELETE FROM t")
    assert rows(other, "SELECT count(*) FROM t") == ["2"]
    assert rows(tables, "SELECT count(*) FROM t") == ["0"]
    tables("ROLLBACK")
    assert rows(tables, "SELECT count(*) FROM t") == ["2"]


def test_rows_that_are_gone_do_not_fail(tables: SessionClient) -> None:
    tables("INSERT INTO u VALUES (5, 0)")
    tables("BEGIN")
    tables("DELETE FROM u WHERE n = 0")
    assert rows(tables, "SELECT 3 / n > 1 FROM u") == ["t"]
    tables("ROLLBACK")


def test_through_indexes(tables: SessionClient, lookups: list[int]) -> None:
    sql = tables
    sql("CREATE INDEX t_k ON t (k)")
    sql("CREATE INDEX joined_k ON joined (k)")
    assert rows(sql, "SELECT v FROM t WHERE k = 2") == ["two"]
    assert rows(sql, "SELECT v FROM joined WHERE k = 2") == ["two"]
    sql("BEGIN")
    sql("INSERT INTO t VALUES (7, 'seven'), (2, 'two again')")
    sql("UPDATE t SET k = 8 WHERE k = 1")
    before = len(lookups)
    assert rows(sql, "SELECT v FROM t WHERE k = 7") == ["seven"]
    assert rows(sql, "SELECT v FROM t WHERE k = 2 ORDER BY v") == ["two", "two again"]
    assert rows(sql, "SELECT v FROM t WHERE k IN (1, 8)") == ["one"]
    assert len(lookups) == before + 3
    assert rows(sql, "SELECT v FROM joined WHERE k = 8") == ["one"], "the index of the view does not know it yet"
    sql("ROLLBACK")
    assert rows(sql, "SELECT v FROM joined WHERE k = 1") == ["one"]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELECT c FROM total", '"total" cannot be read in a transaction that has written to "t"'),
        ("INSERT INTO u SELECT c, c FROM total", '"total" cannot be read in a transaction that has written to "t"'),
        ("SELECT k FROM t AS OF 5", '"t" cannot be read with AS OF in a transaction that has written to it'),
        (
            "DECLARE c CURSOR FOR SUBSCRIBE t",
            '"t" cannot be read with SUBSCRIBE in a transaction that has written to it',
        ),
        (
            "DECLARE c CURSOR FOR SUBSCRIBE total",
            '"t" cannot be read with SUBSCRIBE in a transaction that has written to it',
        ),
    ],
)
def test_what_cannot_know_it_is_refused(tables: SessionClient, statement: str, error: str) -> None:
    tables("BEGIN")
    tables("INSERT INTO t VALUES (3, 'three')")
    tables("SAVEPOINT s")
    assert tables(statement) == [f"! 25000 {error}"]
    tables("ROLLBACK TO s")
    assert rows(tables, "SELECT count(*) FROM t") == ["3"]
    assert tables("COMMIT") == ["COMMIT"]
    assert rows(tables, "SELECT c FROM total") == ["3"]


def test_savepoints_undo_it(tables: SessionClient) -> None:
    sql = tables
    sql("BEGIN")
    sql("INSERT INTO t VALUES (3, 'three')")
    sql("SAVEPOINT s")
    sql("DELETE FROM t WHERE k = 3")
    assert rows(sql, "SELECT count(*) FROM t") == ["2"]
    sql("ROLLBACK TO s")
    assert rows(sql, "SELECT count(*) FROM t") == ["3"]
    sql("INSERT INTO t VALUES (4, 'four')")  # as many parts as before
    assert rows(sql, "SELECT k FROM t ORDER BY k") == ["1", "2", "3", "4"]
    assert sql("COMMIT") == ["COMMIT"]


def test_what_others_change_is_still_found_out(coordinator: Coordinator, tables: SessionClient) -> None:
    other = SessionClient(coordinator)
    tables("BEGIN")
    tables("INSERT INTO t VALUES (3, 'three')")
    assert rows(tables, "SELECT count(*) FROM t") == ["3"]
    other("INSERT INTO t VALUES (3, 'three')")
    assert rows(tables, "SELECT count(*) FROM t") == ["3"]
    assert tables("COMMIT")[0].startswith("! 40001")
    assert rows(tables, "SELECT count(*) FROM t") == ["3"]


def test_tables_of_the_block_itself(coordinator: Coordinator, tables: SessionClient) -> None:
    """As tools that migrate schemas do: make a table, fill it, read it."""
    sql = tables
    sql("BEGIN")
    sql("CREATE TABLE version (num text NOT NULL, n int DEFAULT 3)")
    assert rows(sql, "SELECT num FROM version") == []
    assert sql("INSERT INTO version (num) VALUES ('a1')") == ["INSERT 0 1"]
    assert rows(sql, "SELECT num, n FROM version") == ["a1|3"]
    assert sql("UPDATE version SET num = 'a2' WHERE num = 'a1'") == ["UPDATE 1"]
    assert rows(sql, "SELECT v.num, t.v FROM version v, t ORDER BY t.k") == ["a2|one", "a2|two"]
    sql("CREATE VIEW latest AS SELECT max(num) AS num FROM version")
    assert rows(sql, "SELECT num FROM latest") == ["a2"]
    assert sql("INSERT INTO version SELECT v, k FROM t") == ["INSERT 0 2"]
    sql("ALTER TABLE version RENAME TO versions")
    assert rows(sql, "SELECT count(*) FROM versions") == ["3"]
    sql("SAVEPOINT s")
    assert sql("SELECT num FROM versions AS OF 5")[0] == (
        '! 25000 "versions" cannot be read with AS OF in the transaction that defines it'
    )
    sql("ROLLBACK TO s")
    assert sql("COMMIT") == ["COMMIT"]
    assert rows(sql, "SELECT num, n FROM versions ORDER BY num") == ["a2|3", "one|1", "two|2"]
    assert rows(SessionClient(coordinator), "SELECT num FROM latest") == ["two"]


def test_rows_that_are_over_are_not_there(sql: SessionClient, clock: Clock) -> None:
    sql("CREATE TABLE e (k int, ts bigint) WITH (TTL '1 minute' ON ts)")
    sql("CREATE TABLE o (k int)")
    sql("CREATE INDEX e_k ON e (k)")
    sql("CREATE VIEW w AS SELECT k FROM e")
    sql("BEGIN")
    assert sql(f"INSERT INTO e VALUES (5, 0), (6, NULL), (7, {clock.now_ms})") == ["INSERT 0 3"]
    assert rows(sql, "SELECT k FROM e ORDER BY k") == ["6", "7"]
    assert rows(sql, "SELECT k FROM e WHERE k = 5") == []
    assert sql("UPDATE e SET ts = 0 WHERE k = 7") == ["UPDATE 1"]
    assert rows(sql, "SELECT k FROM w") == ["6"]
    assert sql("UPDATE e SET k = k + 10") == ["UPDATE 1"]
    assert sql("INSERT INTO o SELECT k FROM e") == ["INSERT 0 1"]
    assert sql("COMMIT") == ["COMMIT"]
    assert rows(sql, "SELECT k FROM o") == ["16"]
    assert rows(sql, "SELECT k FROM e") == ["16"]
    sql("BEGIN")
    sql("CREATE TABLE n (k int, ts bigint) WITH (TTL '1 minute' ON ts)")
    sql("INSERT INTO n VALUES (1, 0), (2, NULL)")
    assert sql("INSERT INTO o SELECT k FROM n") == ["INSERT 0 1"]
    assert sql("COMMIT") == ["COMMIT"]
    assert rows(sql, "SELECT k FROM o ORDER BY k") == ["2", "16"]


@pytest.mark.parametrize("made", ["before", "inside"])
@pytest.mark.parametrize("rolled_back", [False, True])
def test_its_own_row_leaves_before_it_ends(sql: SessionClient, clock: Clock, made: str, rolled_back: bool) -> None:
    """What was made of a row that no longer is there would stay."""
    sql("CREATE TABLE o (k int)")
    create = "CREATE TABLE e (k int, ts bigint) WITH (TTL '1 minute' ON ts)"
    if made == "before":
        sql(create)
    sql("BEGIN")
    if made == "inside":
        sql(create)
    sql(f"INSERT INTO e VALUES (5, {clock.now_ms})")
    assert sql("INSERT INTO o SELECT k FROM e") == ["INSERT 0 1"]
    sql("SAVEPOINT s")
    if rolled_back:
        sql("INSERT INTO e VALUES (6, NULL)")
        assert rows(sql, "SELECT count(*) FROM e") == ["2"]
        sql("ROLLBACK TO s")
    clock.now_ms += 120_000
    assert sql("COMMIT")[0].startswith("! 40001")
    assert rows(sql, "SELECT k FROM o") == []


def test_its_own_row_that_it_did_not_read_may_leave(sql: SessionClient, clock: Clock) -> None:
    sql("CREATE TABLE e (k int, ts bigint) WITH (TTL '1 minute' ON ts)")
    sql("BEGIN")
    assert rows(sql, "SELECT k FROM e") == []
    sql(f"INSERT INTO e VALUES (5, {clock.now_ms}), (6, NULL)")
    clock.now_ms += 120_000
    assert sql("COMMIT") == ["COMMIT"]
    assert rows(sql, "SELECT k FROM e") == ["6"]


TABLES = ("a", "b")
TYPES = "k int, s varchar(3), n numeric(8, 2), d timestamptz(0), f double precision, l int[]"


_DATES = ["'2024-01-01 00:00:00.4Z'", "'2024-01-01 00:00:00Z'", "'2020-01-01 00:00:00Z'", "NULL"]


def _value(rng: random.Random) -> str:
    """A row of literals, some of which are stored as something else than they are written."""
    row = (
        str(rng.randint(0, 4)),
        rng.choice(["'x'", "'y  '", "NULL", "''"]),
        rng.choice(["1.5", "1.500", "0", "NULL", "2.345"]),
        rng.choice(_DATES),
        rng.choice(["0.0", "'-0'", "'NaN'", "1e3"]),
        rng.choice(["'{1,2}'", "NULL", "'{}'", "'{1,NULL}'"]),
    )
    return f"({', '.join(row)})"


def _statement(rng: random.Random) -> str:
    one, two = rng.choice(TABLES), rng.choice(TABLES)
    condition = rng.choice(["k = 1", "k > 2", "n IS NULL", "s = 'x'", "f = 0", "true", f"k IN (SELECT k FROM {two})"])
    return rng.choice(
        [
            f"INSERT INTO {one} VALUES {', '.join(_value(rng) for _ in range(rng.randint(1, 3)))}",
            f"INSERT INTO {one} SELECT * FROM {two} WHERE {condition}",
            f"UPDATE {one} SET k = k + 1, s = 'z' WHERE {condition}",
            f"UPDATE {one} SET n = q.n FROM (SELECT k, max(n) AS n FROM {two} GROUP BY k) q WHERE q.k = {one}.k",
            f"UPDATE {one} SET d = {rng.choice(_DATES)} WHERE {condition}",
            f"DELETE FROM {one} WHERE {condition} RETURNING k, s, n",
            f"SELECT * FROM {one} WHERE {condition}",
            f"SELECT k, count(*), sum(n), max(s) FROM {one} GROUP BY k",
            f"SELECT x.k, y.s FROM {one} x JOIN {two} y ON x.k = y.k",
            f"SELECT DISTINCT s, n, d, f, l FROM {one}",
            f"SELECT * FROM both_of WHERE {condition.replace('k IN', 'k NOT IN')}",
        ]
    )


@pytest.fixture(params=["all", "indexed", "expiring"])
def twins(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> Iterator[tuple[SessionClient, SessionClient]]:
    """Two sessions, each in a schema of its own with the same in it."""
    with Coordinator.open(tmp_path, clock=clock, ticking=False) as coordinator:
        found = []
        for schema in ("one", "two"):
            client = SessionClient(coordinator)
            client(f"CREATE SCHEMA {schema}")
            client(f"SET search_path = {schema}")
            for name in TABLES:
                ttl = " WITH (TTL '1 minute' ON d)" if request.param == "expiring" else ""
                client(f"CREATE TABLE {name} ({TYPES}){ttl}")
                if request.param == "indexed":
                    client(f"CREATE INDEX ON {name} (k)")
            client("CREATE VIEW both_of AS SELECT * FROM a UNION ALL SELECT * FROM b")
            found.append(client)
        yield found[0], found[1]


@pytest.mark.parametrize("seed", range(3))
def test_a_block_reads_what_statements_by_themselves_would(
    twins: tuple[SessionClient, SessionClient], seed: int
) -> None:
    rng = random.Random(seed)
    block, apart = twins
    for _ in range(2):
        block("BEGIN")
        kept: list[list[str]] | None = None
        for _ in range(20):
            if kept is None and rng.random() < 0.1:
                block("SAVEPOINT s")
                kept = _contents(apart)
            elif kept is not None and rng.random() < 0.15:
                block("ROLLBACK TO s")
                _restore(apart, kept)
            statement = _statement(rng)
            inside, outside = block(statement), apart(statement)
            assert sorted(inside) == sorted(outside) and not inside[0].startswith("!"), statement
        assert block("COMMIT") == ["COMMIT"]
        assert _contents(block) == _contents(apart)


def _contents(client: SessionClient) -> list[list[str]]:
    return [sorted(client(f"SELECT * FROM {name}")) for name in TABLES]


def _restore(client: SessionClient, kept: list[list[str]]) -> None:
    for name, lines in zip(TABLES, kept, strict=True):
        client(f"DELETE FROM {name}")
        for line in lines:
            if line != "k|s|n|d|f|l":
                values = ", ".join("NULL" if each == "NULL" else f"'{each}'" for each in line.split("|"))
                assert client(f"INSERT INTO {name} VALUES ({values})") == ["INSERT 0 1"]
