"""Reads by columns: what they answer, how they end, and what they may take."""

from __future__ import annotations

import threading

import pytest

from everview.adapter import peek
from everview.adapter.coordinator import Coordinator
from everview.adapter.peek_engines import by_columns
from everview.compute.columnar.batch import Batch
from tests.adapter.scripts import SessionClient
from tests.waiting import eventually

ROWS = 3_000


@pytest.fixture
def filled(coordinator: Coordinator) -> SessionClient:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE t (a int, b text, c numeric(10,2), d timestamp, f double precision)")
    columns = "g, 'b' || g % 7, g / 4.0, timestamp '2024-01-01' + g * interval '1 minute', g / 3.0"
    assert sql(f"INSERT INTO t SELECT {columns} FROM generate_series(1, {ROWS}) g") == [f"INSERT 0 {ROWS}"]
    sql("DELETE FROM t WHERE a % 3 = 0")
    sql("INSERT INTO t VALUES (7, NULL, NULL, NULL, 'NaN'), (7, NULL, NULL, 'infinity', '-Infinity')")
    return sql


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*), sum(a), min(c), max(b), avg(c), sum(f), max(d) FROM t",
        "SELECT b, count(*) AS n, avg(a), sum(DISTINCT c) FROM t GROUP BY b ORDER BY n DESC, b LIMIT 3",
        "SELECT x.a, y.a FROM t x JOIN t y ON x.a = y.a + 1 WHERE x.a < 500 ORDER BY 1, 2",
        "SELECT a, c, d FROM t WHERE a % 100 = 7 ORDER BY a DESC, d NULLS FIRST",
        "SELECT count(*) FROM t WHERE a < 99 AND a NOT IN (SELECT a FROM t WHERE a > 10 AND a < 99)",
        "SELECT a FROM t ORDER BY c DESC NULLS LAST, a LIMIT 4 OFFSET 2",
        "SELECT date_trunc('hour', d) AS h, count(*) FROM t GROUP BY 1 ORDER BY 1 LIMIT 9",
        "SELECT a, row_number() OVER (ORDER BY a, d) AS n FROM t WHERE a < 9 ORDER BY 2",
        "SELECT b, array_agg(a ORDER BY a) FROM t WHERE a < 50 GROUP BY b ORDER BY 1",
        "SELECT upper(b), CASE WHEN a > 7 THEN 100 / (a - 7) ELSE 0 END AS q FROM t ORDER BY 2 DESC, 1 LIMIT 5",
        "SELECT 1 / (a - 8) FROM t",
        "SELECT a FROM t EXCEPT SELECT a FROM t WHERE c > 100 ORDER BY 1 LIMIT 3",
    ],
)
def test_answers_are_those_by_rows(filled: SessionClient, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = filled(query)
    monkeypatch.setattr(peek, "INTERPRETED_UPDATES_MAX", 10**9)
    assert found == filled(query)


def test_explain_says_so(filled: SessionClient) -> None:
    assert filled("EXPLAIN SELECT b, count(*) FROM t GROUP BY b")[-1].endswith("Engine: columns, in the server")
    windowed = filled("EXPLAIN SELECT row_number() OVER (ORDER BY a) FROM t")[-1]
    assert windowed.endswith("Engine: columns, and rows for some operators, in the server")
    filled("CREATE TABLE few (a int)")
    assert filled("EXPLAIN SELECT count(*) FROM few")[-1].endswith("Engine: rows, in the server")


def test_columns_that_are_not_needed_are_not_read(filled: SessionClient, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[set[str]] = []
    of_some = Batch.of_some.__func__  # type: ignore[attr-defined]

    def counted(cls, table, names, types):  # type: ignore[no-untyped-def]
        read.append(set(names.values()))
        return of_some(cls, table, names, types)

    monkeypatch.setattr(Batch, "of_some", classmethod(counted))
    filled("SELECT count(*) FROM t WHERE a IN (1, 2, 4)")
    assert [each for each in read if each] == [{"c0"}]


def test_what_a_block_has_written_is_seen(filled: SessionClient) -> None:
    (_, before) = filled("SELECT count(*) FROM t")
    filled("BEGIN")
    filled("DELETE FROM t WHERE a < 100")
    filled("INSERT INTO t VALUES (1, 'new', 1, NULL, 1)")
    assert filled("SELECT a, b FROM t WHERE a < 101 ORDER BY a")[1:] == ["1|new", "100|b2"]
    (_, inside) = filled("SELECT count(*) FROM t")
    filled("ROLLBACK")
    assert int(inside) == int(before) - 67 - 1 + 1
    assert filled("SELECT count(*) FROM t") == ["count", before]


def test_a_join_that_would_be_too_large_ends_before_it_takes_memory(filled: SessionClient) -> None:
    filled("SET everview_local_memory = '64MB'")
    found = filled("SELECT count(*) FROM t x JOIN t y ON x.a > y.a WHERE x.f + y.f < 0 AND x.c <> y.c")
    assert found == ["! 53200 out of memory"]


def test_a_statement_is_canceled(filled: SessionClient, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def held(*args):  # type: ignore[no-untyped-def]
        begun.set()
        assert go_on.wait(60)
        return by_columns(*args)

    monkeypatch.setattr("everview.adapter.peek.by_columns", held)
    answers: list[str] = []
    running = threading.Thread(target=lambda: answers.extend(filled("SELECT sum(a) FROM t")))
    running.start()
    assert begun.wait(60)
    filled.session.cancel()
    go_on.set()
    eventually(lambda: not running.is_alive())
    assert answers == ["! 57014 canceling statement due to user request"]
