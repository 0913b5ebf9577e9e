"""Statements are lexed, parsed and bound once: bound, they travel from where they are prepared to where they run."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from everview.adapter import planner
from everview.adapter.coordinator import Coordinator
from everview.adapter.statement_cache import (
    ENTRY_BYTES_MAX,
    IN_USE_MAX,
    LATEST_MAX,
    TEXT_CHARACTERS_MAX,
    Key,
    StatementCache,
)
from everview.adapter.statement_context import Meaning
from everview.compute.ir.types import INT4, TEXT
from everview.compute.sql import lexer, query
from everview.compute.sql.parse import EverviewSql
from tests.adapter.scripts import SessionClient


@dataclass
class Counted:
    """How often text was read to words, words to syntax trees, and trees to plans."""

    lexed: int = 0
    parsed: int = 0
    bound: int = 0
    optimized: int = 0

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    found = Counted()

    def count(module: Any, name: str, what: str) -> None:
        original: Callable[..., Any] = getattr(module, name)

        def counting(*args: Any, **kwargs: Any) -> Any:
            setattr(found, what, getattr(found, what) + 1)
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, counting)

    count(lexer, "scan", "lexed")
    count(EverviewSql.Parser, "_parse", "parsed")
    count(planner, "bind_change", "bound")
    for name in ("plan", "definition", "value"):
        count(query, name, "bound")
    count(planner, "optimize", "optimized")
    return found


ONCE = Counted(lexed=1, parsed=1, bound=1, optimized=1)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (1, 'one')",
        "INSERT INTO t VALUES " + ", ".join(f"({n}, 'a longer text')" for n in range(TEXT_CHARACTERS_MAX // 10)),
        "INSERT INTO t VALUES (2, 'two') RETURNING k",
        "UPDATE t SET v = 'other' WHERE k = 1",
        "DELETE FROM t USING (SELECT 5 AS k) AS x WHERE t.k = x.k",
        "WITH x AS (SELECT 5 AS k) INSERT INTO t SELECT k FROM x",
        "SELECT k FROM t WHERE v = 'x'",
        "SELECT k FROM t WHERE v = '" + "x" * TEXT_CHARACTERS_MAX + "'",
        "SELECT now(), current_user, k FROM t",
        "SELECT k FROM t AS OF AT LEAST 0 ORDER BY k",
        "TABLE t;",
        "/* ; */ SELECT k FROM t -- ;",
    ],
    ids=lambda text: text[:30],
)
def test_a_statement_is_read_and_bound_once(sql: SessionClient, counted: Counted, statement: str) -> None:
    sql("CREATE TABLE t (k int, v text)")
    counted.clear()
    assert not sql(statement)[0].startswith("!")
    extra = 1 if "AS OF" in statement else 0  # the expression that is the time
    assert counted == Counted(1, 1 + extra, 1 + extra, 1), statement


def test_the_difference_of_a_replacement_is_bound_as_a_tree(sql: SessionClient, counted: Counted) -> None:
    """Only the words of the statement are read, none of a query that would stand for it."""
    name = '"a ""quoted"" name"'
    sql("CREATE TABLE t (k int, v text)")
    sql("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    sql(f"CREATE MATERIALIZED VIEW mv AS SELECT k AS {name}, v FROM t")
    sql(f"CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT k + 1 AS {name}, v FROM t WHERE k < 3")
    counted.clear()
    shown = sql("SHOW REPLACEMENT DIFF r LIMIT 3")
    assert shown == ['mz_diff|a "quoted" name|v', "-1|1|one", "1|2|one", "-1|2|two"]
    assert (counted.lexed, counted.parsed, counted.bound) == (1, 0, 1)


def test_a_statement_that_comes_again_is_not_read_at_all(
    coordinator: Coordinator, sql: SessionClient, counted: Counted
) -> None:
    sql("CREATE TABLE t (k int, v text)")
    sql("SELECT k FROM t WHERE v = 'x'")
    counted.clear()
    other = SessionClient(coordinator)
    for client in (sql, other):
        assert client("SELECT k FROM t WHERE v = 'x';") == ["k"]
    assert counted == Counted()


def test_a_prepared_statement_is_read_and_bound_once(sql: SessionClient, counted: Counted) -> None:
    sql("CREATE TABLE t (k int, v text)")
    sql("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    for text, types, given in (
        ("SELECT v FROM t WHERE k = $1 AND v <> $2", (INT4, TEXT), (1, "two")),
        ("SELECT v, now() > '2000-01-01' FROM t WHERE k = $1 + 1", (INT4,), (0,)),
        ("INSERT INTO t VALUES ($1, $2)", (INT4, TEXT), (3, "three")),
    ):
        counted.clear()
        prepared = sql.session.prepare(text)
        assert prepared.parameters == types
        for _ in range(5):
            sql.session.run(prepared, given)
            sql.session.sync()
        assert counted == ONCE, text
    assert sql("SELECT count(*) FROM t WHERE k = 3") == ["count", "5"]


def test_a_view_is_read_and_bound_once(sql: SessionClient, counted: Counted) -> None:
    sql("CREATE TABLE t (k int, v text)")
    for kind in ("MATERIALIZED VIEW", "VIEW"):
        counted.clear()
        name = kind.split()[0].lower()
        assert sql(f"CREATE {kind} {name} AS SELECT v, count(*) AS n FROM t GROUP BY v") == [f"CREATE {kind}"]
        assert (counted.lexed, counted.parsed, counted.bound) == (1, 1, 1)
    assert "everview.public.t AS t" in sql("SHOW CREATE VIEW view")[1]


def test_a_subscription_is_read_and_bound_once(sql: SessionClient, counted: Counted) -> None:
    sql("CREATE TABLE t (k int, v text)")
    sql("BEGIN")
    for statement, parsed in (("SUBSCRIBE (SELECT k FROM t)", 1), ("SUBSCRIBE t", 0)):
        counted.clear()
        assert sql(f"DECLARE c{parsed} CURSOR FOR {statement}") == ["DECLARE CURSOR"]
        assert (counted.lexed, counted.parsed, counted.bound) == (1, parsed, 1)
    sql("ROLLBACK")


def test_parameters_whose_types_places_decide_have_their_values(sql: SessionClient) -> None:
    """Also where the first place decides nothing, and where types are only known with the values."""
    sql("CREATE TABLE t (k int, v text)")
    sql("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    for name, statement, values, expected in (
        ("a", "SELECT $1, $1 + 1", "4", ["?column?|?column?", "4|5"]),
        ("b", "SELECT $1 UNION ALL SELECT 2 ORDER BY 1", "1", ["?column?", "1", "2"]),
        ("c", "SELECT k FROM t ORDER BY k LIMIT $1", "1", ["k", "1"]),
        ("d", "SELECT $1", "'x'", ["?column?", "x"]),
        ("e", "SELECT k FROM t WHERE v IN ($1, $2) ORDER BY k", "'one', 'two'", ["k", "1", "2"]),
        ("f", "VALUES ($1, $2::varchar(2)), (3, 'y')", "1, 'xyz'", ["column1|column2", "1|xy", "3|y"]),
        ("g", "SELECT CASE WHEN $1 THEN $2 ELSE 'no' END", "true, 'yes'", ["case", "yes"]),
        ("h", "SELECT coalesce($1, v) FROM t WHERE k = 1", "NULL", ["coalesce", "one"]),
        ("i", "SELECT $1::regclass = 't'::regclass", "'t'", ["?column?", "t"]),
        ("j", "SELECT $1::oid", "'5'", ["oid", "5"]),
        ("k", "SELECT v FROM t WHERE v SIMILAR TO $1", "'(o|x)n%'", ["v", "one"]),
        ("l", "SELECT * FROM regexp_split_to_table($1, $2) AS s", "'a1b', '[0-9]'", ["s", "a", "b"]),
        ("m", "SELECT $1::int + 1, ARRAY[$2, 'y']", "3, 'x'", ["?column?|array", "4|{x,y}"]),
        ("n", "SELECT k FROM t ORDER BY k OFFSET $1", "1", ["k", "2"]),
        ("o", "SELECT current_setting($1)", "'search_path'", ["current_setting", "public"]),
    ):
        assert sql(f"PREPARE {name} AS {statement}") == ["PREPARE"]
        for _ in range(2):
            assert sorted(sql(f"EXECUTE {name} ({values})")) == sorted(expected), statement


def test_what_was_prepared_is_bound_anew_when_names_mean_something_else(
    coordinator: Coordinator, sql: SessionClient
) -> None:
    sql("CREATE TABLE t (k int)")
    sql("CREATE SCHEMA other")
    sql("CREATE TABLE other.t (k int)")
    sql("INSERT INTO t VALUES (1)")
    prepared = sql.session.prepare("INSERT INTO t VALUES (5)")
    sql("SET search_path = other")
    sql.session.run(prepared)
    sql.session.sync()
    assert sql("SELECT k FROM other.t") == ["k", "5"]
    assert sql("SELECT k FROM public.t") == ["k", "1"]
    read = sql.session.prepare("SELECT k FROM t")
    SessionClient(coordinator)("DROP TABLE other.t")
    with pytest.raises(Exception, match="does not exist"):
        sql.session.run(read)


def key(text: str, version: int = 1) -> Key:
    return Key(text, (), Meaning(version))


def test_texts_that_come_once_push_nothing_out() -> None:
    cache = StatementCache()
    for number in range(IN_USE_MAX):
        cache.put(key(f"{number}"), number, 100)
        assert cache.get(key(f"{number}")) == number
    for number in range(10 * IN_USE_MAX):
        cache.put(key(f"once {number}"), number, 100)
    assert all(cache.get(key(f"{number}")) == number for number in range(IN_USE_MAX))
    known = [cache.get(key(f"once {number}")) is not None for number in range(10 * IN_USE_MAX)]
    assert sum(known) == LATEST_MAX and all(known[-LATEST_MAX:])


def test_entries_take_a_bounded_amount_of_memory() -> None:
    cache = StatementCache(bytes_max=1_000)
    for number in range(20):
        cache.put(key(f"{number}"), number, 100)
        cache.get(key(f"{number}"))
    assert [number for number in range(20) if cache.get(key(f"{number}")) is not None] == list(range(10, 20))
    cache.put(key("large"), 0, ENTRY_BYTES_MAX + 1)
    cache.put(key("x" * (TEXT_CHARACTERS_MAX + 1)), 0, 1)
    assert cache.get(key("large")) is None and cache.get(key("x" * (TEXT_CHARACTERS_MAX + 1))) is None


def test_entries_go_with_their_catalog() -> None:
    cache = StatementCache()
    cache.put(key("a", 5), "a", 1)
    cache.put(key("draft", -1), "draft", 1)
    assert cache.get(key("a", 5)) == "a" and cache.get(key("draft", -1)) is None
    cache.put(key("b", 6), "b", 1)
    cache.put(key("late", 5), "late", 1)
    assert cache.get(key("a", 5)) is None and cache.get(key("late", 5)) is None and cache.get(key("b", 6)) == "b"


def test_a_short_text_that_means_a_long_value_is_not_kept(coordinator: Coordinator, sql: SessionClient) -> None:
    """Hundreds of kept plans of megabytes each would take the memory of everyone."""
    tracemalloc.start()
    try:
        for number in range(40):
            assert sql(f"SELECT length(repeat('x', 5000000)) + {number}")[1:] == [str(5_000_000 + number)]
            assert sql(f"SELECT repeat('x', 5000000) || {number} = ''")[1:] == ["f"]
            assert len(sql(f"SELECT repeat('x', 2000000) || {number}")[1]) > 2_000_000
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 60_000_000
    finally:
        tracemalloc.stop()


def test_prepared_statements_of_a_session_take_a_bounded_amount_of_memory(sql: SessionClient) -> None:
    told = [sql(f"PREPARE p{number} AS SELECT repeat('{number}', 5000000)")[0] for number in range(1, 16)]
    assert told[:5] == ["PREPARE"] * 5
    assert told[-1].startswith("! 53200"), told
    assert sql("PREPARE small AS SELECT 1") == ["PREPARE"]
    assert sql("DEALLOCATE p1") == ["DEALLOCATE"]
