"""Look-ups from memory: the same rows as when the statement is run, or none at all and then it has to be run."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from everview.adapter.contract import Prepared, Row
from everview.adapter.coordinator import Coordinator
from everview.adapter.index_lookup import literal_template
from everview.adapter.results import RowList
from everview.adapter.served_indexes import LOOKUP_ROWS_MAX
from everview.adapter.session import CoordinatorSession
from everview.compute.ir.types import INT8, Kind
from everview.compute.sql.errors import SqlError
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient


class Asker:
    """A session that prepares statements, runs them, and looks them up."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.session: CoordinatorSession = coordinator.connect("everview", "everview", {})

    def prepare(self, text: str) -> Prepared:
        return self.session.prepare(text)

    def run(self, prepared: Prepared, *values: Any) -> list[Row]:
        result = self.session.run(prepared, values)
        assert isinstance(result, RowList)
        self.session.sync()
        return sorted(result.rows, key=repr)

    def do(self, text: str) -> None:
        """Run a statement inside whatever is under way."""
        self.session.run(self.prepare(text))

    def lookup(self, prepared: Prepared, *values: Any) -> Sequence[Row] | None:
        look = self.session.lookup(prepared)
        found = None if look is None else look(values)
        return None if found is None else sorted(found, key=repr)

    def recognized(self, text: str) -> Sequence[Row] | None:
        """What a text is found to be."""
        found = self.session.recognize(text)
        return None if found is None else self.lookup(found[0], *found[1])


@pytest.fixture
def asker(coordinator: Coordinator) -> Asker:
    return Asker(coordinator)


@pytest.fixture
def items(sql: SessionClient) -> SessionClient:
    sql("CREATE TABLE items (id int, name text, price numeric(10,2), tags text[])")
    sql("INSERT INTO items SELECT g, 'item ' || g, g, ARRAY['a', 'b'] FROM generate_series(1, 20) AS g")
    sql("INSERT INTO items VALUES (7, 'item 7', 7, ARRAY['a', 'b']), (NULL, 'none', 0, NULL)")
    sql("CREATE INDEX ON items (id)")
    sql("CREATE INDEX ON items (name, id)")
    return sql


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SELECT * FROM items WHERE id = $1", (3,)),
        ("SELECT * FROM items WHERE id = $1", (7,)),  # twice
        ("SELECT * FROM items WHERE id = $1", (99,)),
        ("SELECT * FROM items WHERE id = $1", (None,)),
        ("SELECT price, id, price FROM items WHERE $1 = id", (3,)),
        ("SELECT name FROM items WHERE id = $1::bigint", (3,)),
        ("SELECT name FROM items WHERE id = $1::smallint", (3,)),
        ("SELECT tags FROM items WHERE id = 4", ()),
        ("SELECT price FROM items WHERE id = $2 AND name = $1", ("item 5", 5)),
        ("SELECT price FROM items WHERE name = 'item 5' AND id = $1", (5,)),
        ("SELECT price FROM items WHERE name = 'failing' AND id = $1", (5,)),
    ],
)
def test_a_look_up_is_known_once_it_was_run(items: SessionClient, asker: Asker, text: str, values: tuple[Any]) -> None:
    prepared = asker.prepare(text)
    assert asker.lookup(prepared, *values) is None
    expected = asker.run(prepared, *values)
    assert asker.lookup(prepared, *values) == expected


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SELECT name FROM items WHERE id > $1", (3,)),
        ("SELECT name FROM items WHERE id = $1 AND price > 3", (3,)),
        ("SELECT name FROM items WHERE id = $1 AND id = $2", (3, 4)),
        ("SELECT name FROM items WHERE id = $1 + 1", (3,)),
        ("SELECT name FROM items WHERE id = $1 ORDER BY price", (3,)),
        ("SELECT name FROM items WHERE id = $1 LIMIT 1", (3,)),
        ("SELECT count(*) FROM items WHERE id = $1", (3,)),
        ("SELECT price + 1 FROM items WHERE id = $1", (3,)),
        ("SELECT mz_now() > 0 FROM items WHERE id = $1", (3,)),
        ("SELECT name FROM items WHERE price = $1", (3,)),
        ("SELECT name FROM items WHERE id = $1 AS OF AT LEAST 0", (3,)),
    ],
)
def test_what_is_more_than_a_look_up_is_run(items: SessionClient, asker: Asker, text: str, values: tuple[Any]) -> None:
    prepared = asker.prepare(text)
    asker.run(prepared, *values)
    assert asker.lookup(prepared, *values) is None


def test_numbers_that_equal_after_rounding_do_not_count(sql: SessionClient, asker: Asker) -> None:
    sql("CREATE TABLE n (a numeric(10,2))")
    sql("INSERT INTO n VALUES (1.00)")
    sql("CREATE INDEX ON n (a)")
    prepared = asker.prepare("SELECT a FROM n WHERE a = $1::numeric(10,3)")
    asker.run(prepared, 1)
    assert asker.lookup(prepared, 1) is None


def test_what_was_written_is_seen(items: SessionClient, asker: Asker) -> None:
    prepared = asker.prepare("SELECT price FROM items WHERE id = $1")
    before = asker.run(prepared, 3)
    items("UPDATE items SET price = 30 WHERE id = 3")
    assert asker.lookup(prepared, 3) is None
    after = asker.run(prepared, 3)
    assert after != before
    assert asker.lookup(prepared, 3) == after


def test_writes_elsewhere_change_nothing(items: SessionClient, asker: Asker, lookups: list[int]) -> None:
    items("CREATE TABLE other (a int)")
    prepared = asker.prepare("SELECT price FROM items WHERE id = $1")
    expected = asker.run(prepared, 3)
    for number in range(3):
        items(f"INSERT INTO other VALUES ({number})")
        assert asker.lookup(prepared, 3) == expected
    assert len(lookups) == 1


def test_transactions_are_run(items: SessionClient, asker: Asker) -> None:
    prepared = asker.prepare("SELECT price FROM items WHERE id = $1")
    expected = asker.run(prepared, 3)
    asker.do("BEGIN")
    assert asker.lookup(prepared, 3) is None
    asker.do("COMMIT")
    assert asker.lookup(prepared, 3) == expected
    asker.session.run(prepared, (3,))  # an implicit transaction that has not ended
    assert asker.lookup(prepared, 3) is None
    asker.session.sync()
    assert asker.lookup(prepared, 3) == expected


def test_definitions_and_settings_are_looked_at_again(items: SessionClient, asker: Asker) -> None:
    prepared = asker.prepare("SELECT name FROM items WHERE id = $1")
    expected = asker.run(prepared, 3)
    items("CREATE TABLE other (a int)")
    assert asker.lookup(prepared, 3) is None
    assert asker.run(prepared, 3) == expected
    assert asker.lookup(prepared, 3) == expected
    asker.do("SET everview_peek_engine = spark")
    asker.session.sync()
    assert asker.lookup(prepared, 3) is None
    asker.do("SET everview_peek_engine = local")
    asker.session.sync()
    assert asker.run(prepared, 3) == expected
    assert asker.lookup(prepared, 3) == expected
    items("CREATE SCHEMA s")
    items("CREATE TABLE s.items (id int, name text)")
    asker.do("SET search_path = s, public")
    asker.session.sync()
    assert asker.lookup(prepared, 3) is None
    assert asker.run(prepared, 3) == []


def test_a_dropped_table_is_gone(items: SessionClient, asker: Asker) -> None:
    prepared = asker.prepare("SELECT name FROM items WHERE id = $1")
    asker.run(prepared, 3)
    items("DROP TABLE items")
    assert asker.lookup(prepared, 3) is None


def test_a_closed_session_says_nothing(items: SessionClient, asker: Asker) -> None:
    prepared = asker.prepare("SELECT name FROM items WHERE id = $1")
    asker.run(prepared, 3)
    asker.session.close()
    assert asker.lookup(prepared, 3) is None


def test_many_rows_are_not_looked_up(sql: SessionClient, asker: Asker) -> None:
    sql("CREATE TABLE t (a int, b int)")
    sql(f"INSERT INTO t SELECT 1, g FROM generate_series(1, {LOOKUP_ROWS_MAX}) AS g")
    sql("CREATE INDEX ON t (a)")
    prepared = asker.prepare("SELECT b FROM t WHERE a = $1")
    expected = asker.run(prepared, 1)
    assert asker.lookup(prepared, 1) == expected
    sql("INSERT INTO t VALUES (1, 0)")
    assert len(asker.run(prepared, 1)) == LOOKUP_ROWS_MAX + 1
    assert asker.lookup(prepared, 1) is None


def test_keys_that_cannot_be_computed(sql: SessionClient, asker: Asker) -> None:
    sql("CREATE TABLE t (a int, b int)")
    sql("INSERT INTO t VALUES (1, 1)")
    sql("CREATE INDEX ON t ((10 / b))")
    prepared = asker.prepare("SELECT a FROM t WHERE 10 / b = $1")
    assert asker.run(prepared, 10) == [(1,)]
    assert asker.lookup(prepared, 10) == [(1,)]
    sql("INSERT INTO t VALUES (2, 0)")
    with pytest.raises(Exception, match="division by zero"):
        asker.run(prepared, 10)
    asker.session.sync()
    assert asker.lookup(prepared, 10) is None


def test_views_that_are_maintained(sql: SessionClient, asker: Asker) -> None:
    sql("CREATE TABLE t (a int, b int)")
    sql("CREATE MATERIALIZED VIEW m AS SELECT a, sum(100 / b) AS s FROM t GROUP BY a")
    sql("CREATE INDEX ON m (a)")
    sql("CREATE VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    sql("CREATE INDEX ON v (a)")
    sql("INSERT INTO t VALUES (1, 10), (1, 20), (2, 50)")
    of_m, of_v = asker.prepare("SELECT s FROM m WHERE a = $1"), asker.prepare("SELECT n FROM v WHERE a = $1")
    for prepared, expected in ((of_m, [(15,)]), (of_v, [(2,)])):
        assert asker.run(prepared, 1) == expected
        assert asker.lookup(prepared, 1) == expected
    sql("INSERT INTO t VALUES (1, 0)")
    with pytest.raises(Exception, match="division by zero"):
        asker.run(of_m, 1)
    asker.session.sync()
    assert asker.lookup(of_m, 1) is None
    assert asker.run(of_v, 1) == asker.lookup(of_v, 1) == [(3,)]


def test_what_changes_by_itself_is_run(sql: SessionClient, asker: Asker, clock: Clock) -> None:
    sql("CREATE TABLE t (a int, until bigint)")
    sql("CREATE MATERIALIZED VIEW m AS SELECT a, until FROM t WHERE mz_now() < until")
    sql("CREATE INDEX ON m (a)")
    sql(f"INSERT INTO t VALUES (1, {clock.now_ms + 1_000_000})")
    prepared = asker.prepare("SELECT a FROM m WHERE a = $1")
    assert asker.run(prepared, 1) == [(1,)]
    assert asker.lookup(prepared, 1) is None


def test_sources_are_run(sql: SessionClient, asker: Asker) -> None:
    sql("CREATE SOURCE s FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1s')")
    sql("CREATE INDEX ON s (counter)")
    prepared = asker.prepare("SELECT counter FROM s WHERE counter = $1")
    asker.run(prepared, 1)
    assert asker.lookup(prepared, 1) is None


def test_a_look_up_agrees_with_a_scan(coordinator: Coordinator, sql: SessionClient, rng: random.Random) -> None:
    sql("CREATE TABLE t (a int, b int)")
    sql("CREATE TABLE other (a int)")
    sql("CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n, sum(b) AS s FROM t GROUP BY a")
    sql("CREATE INDEX ON t (a)")
    sql("CREATE INDEX ON m (a)")
    asker, known = Asker(coordinator), 0
    look_ups = [asker.prepare(f"SELECT * FROM {name} WHERE a = $1") for name in ("t", "m")]
    scans = [asker.prepare(f"SELECT * FROM {name} WHERE a + 0 = $1") for name in ("t", "m")]
    for _ in range(80):
        a, b = rng.randrange(6), rng.randrange(3)
        sql(
            rng.choice(
                (
                    f"INSERT INTO t VALUES ({a}, {b})",
                    f"DELETE FROM t WHERE a = {a} AND b = {b}",
                    f"UPDATE t SET a = {a} WHERE b = {b}",
                    f"INSERT INTO other VALUES ({a})",
                    "SELECT 1",
                )
            )
        )
        if rng.random() < 0.3:
            coordinator.indexes.refresh(lambda _: coordinator.timeline.history)
        for look_up, scan in zip(look_ups, scans, strict=True):
            found, expected = asker.lookup(look_up, a), asker.run(scan, a)
            known += found is not None
            assert found in (None, expected)
            assert asker.run(look_up, a) == expected
    assert known


def test_nothing_that_was_acknowledged_is_missed(coordinator: Coordinator, sql: SessionClient) -> None:
    """A writer and readers at once: whatever was acknowledged before a look-up began, the look-up has."""
    sql("CREATE TABLE counter (k int, n int)")
    sql("INSERT INTO counter VALUES (1, 0)")
    sql("CREATE INDEX ON counter (k)")
    acknowledged, over, wrong = [0], threading.Event(), []

    def read() -> None:
        asker = Asker(coordinator)
        prepared = asker.prepare("SELECT n FROM counter WHERE k = $1")
        while not over.is_set():
            least = acknowledged[0]
            found = asker.lookup(prepared, 1)
            ((n,),) = asker.run(prepared, 1) if found is None else found
            assert isinstance(n, int)
            if n < least:
                wrong.append((least, n, found is None))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for each in readers:
        each.start()
    try:
        for number in range(1, 200):
            sql(f"UPDATE counter SET n = {number} WHERE k = 1")
            acknowledged[0] = number
    finally:
        over.set()
        for each in readers:
            each.join()
    assert not wrong


def test_rows_that_are_gone_leave_the_index(coordinator: Coordinator, sql: SessionClient, clock: Clock) -> None:
    sql("CREATE TABLE t (a int, b int)")
    sql("CREATE INDEX t_a ON t (a)")
    sql("INSERT INTO t VALUES (1, 0), (2, 0)")
    for number in range(1, 10):
        clock.now_ms += 5_000
        sql("DELETE FROM t WHERE a = 2")
        sql(f"UPDATE t SET b = {number} WHERE a = 1")
        assert sql("SELECT b FROM t WHERE a = 1") == ["b", str(number)]
    clock.now_ms += 5_000
    sql("INSERT INTO t VALUES (3, 0)")
    coordinator.indexes.refresh(lambda _: coordinator.timeline.history)
    assert list(coordinator.indexes.sizes().values()) == [2]
    assert sql("SELECT b FROM t WHERE a = 1") == ["b", "9"]
    assert sql("SELECT b FROM t WHERE a = 2") == ["b"]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("SELECT a FROM t WHERE a = 12;", ("SELECT a FROM t WHERE a = $1", (12,))),
        ("SELECT a FROM t1 WHERE a=1 AND b =02\n", ("SELECT a FROM t1 WHERE a=$1 AND b =$2", (1, 2))),
        ("SELECT 999999999", ("SELECT $1", (999_999_999,))),
        ("SELECT 1000000000", None),  # an integer or not, by its value
        ("SELECT 1.5", None),
        ("SELECT .5", None),
        ("SELECT 1.", None),
        ("SELECT 1e5", None),
        ("SELECT 0x1F", None),
        ("SELECT 1_000", None),
        ("SELECT a1", None),
        ("SELECT '1', 2", None),
        ('SELECT "1", 2', None),
        ("SELECT $1, 2", None),
        ("SELECT 1 -- 2", None),
        ("SELECT 1 /* 2 */", None),
        ("SELECT 1; SELECT 2", None),
        ("SELECT 1, 'ä'", None),
        ("SELECT ä, 1", None),
        ("SELECT a", None),
        (" ", None),
        ("SELECT " + "1, " * 21 + "a", None),
        ("SELECT 1" + " " * 1_000 + "FROM t", None),
    ],
)
def test_literal_templates(text: str, shape: tuple[str, tuple[int, ...]] | None) -> None:
    assert literal_template(text) == shape


def test_texts_that_differ_in_numbers_are_recognized(items: SessionClient, asker: Asker) -> None:
    assert asker.recognized("SELECT name, price FROM items WHERE id = 3") is None
    asker.run(asker.prepare("SELECT name, price FROM items WHERE id = 3"))
    for number in (1, 7, 21):
        text = f"SELECT name, price FROM items WHERE id = {number}"
        assert asker.recognized(f"{text};") == asker.run(asker.prepare(text))
    assert asker.recognized("SELECT name FROM items WHERE id = 3") is None
    assert asker.recognized("SELECT name, price FROM items WHERE id = 3; SELECT 1") is None
    items("CREATE TABLE other (a int)")
    assert asker.recognized("SELECT name, price FROM items WHERE id = 3") is None
    asker.run(asker.prepare("SELECT name, price FROM items WHERE id = 3"))
    assert asker.recognized("SELECT name, price FROM items WHERE id = 4") is not None


@pytest.mark.parametrize(
    ("known", "other"),
    [
        ("SELECT id, name FROM items WHERE id = 3 ORDER BY 1", "SELECT id, name FROM items WHERE id = 3 ORDER BY 2"),
        ("SELECT id, name FROM items WHERE id = 3 LIMIT 1", "SELECT id, name FROM items WHERE id = 3 LIMIT 0"),
        ("SELECT id, 5 FROM items WHERE id = 3", "SELECT id, 6 FROM items WHERE id = 3"),
        ("SELECT id FROM items WHERE id = 3 AND 1 = 1", "SELECT id FROM items WHERE id = 3 AND 1 = 2"),
        ("SELECT id FROM items WHERE id = 3 AND id = 3", "SELECT id FROM items WHERE id = 3 AND id = 4"),
        ("SELECT id FROM items WHERE id = -3", "SELECT id FROM items WHERE id = -4"),
        (
            "SELECT id FROM items WHERE id = CAST(3 AS numeric(3))",
            "SELECT id FROM items WHERE id = CAST(3 AS numeric(4))",
        ),
    ],
)
def test_numbers_that_mean_more_than_a_key(items: SessionClient, asker: Asker, known: str, other: str) -> None:
    asker.run(asker.prepare(known))
    found = asker.recognized(other)
    assert found is None or found == asker.run(asker.prepare(other))


def test_statements_are_kept_while_nothing_changes(items: SessionClient, asker: Asker) -> None:
    text = "SELECT name FROM items WHERE id = $1"
    first = asker.prepare(text)
    assert asker.prepare(f"{text};\n") is first
    assert asker.session.prepare(text, [INT8]) is not first
    items("CREATE SCHEMA s")
    second = asker.prepare(text)
    assert second is not first
    assert asker.prepare(text) is second
    items("CREATE TABLE s.items (id text, name int)")
    asker.do("SET search_path = s, public")
    asker.session.sync()
    other = asker.prepare(text)
    assert [column.type.kind for column in other.columns or ()] == [Kind.INT4]
    assert [each.kind for each in other.parameters] == [Kind.TEXT]


def test_statements_are_not_kept_in_a_transaction_that_defines(sql: SessionClient, asker: Asker) -> None:
    text = "SELECT * FROM t"
    with pytest.raises(SqlError, match="does not exist"):
        asker.prepare(text)
    asker.do("BEGIN")
    asker.do("CREATE TABLE t (a int)")
    drafted = asker.prepare(text)
    asker.do("ROLLBACK")
    assert drafted.columns is not None
    with pytest.raises(SqlError, match="does not exist"):
        asker.prepare(text)


def test_a_failed_block_refuses_what_is_kept(items: SessionClient, asker: Asker) -> None:
    text = "SELECT name FROM items WHERE id = 3"
    asker.prepare(text)
    asker.do("BEGIN")
    with pytest.raises(SqlError):
        asker.do("SELECT 1 / 0 FROM items")
    with pytest.raises(SqlError, match="aborted"):
        asker.prepare(text)
    asker.do("ROLLBACK")
