"""Clauses that the parser knows and the binder does not are refused by name."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from everview.compute.ir.types import INT4, TEXT
from everview.compute.sql.dml import Target, bind_change
from everview.compute.sql.errors import SqlError
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection

COLUMNS = {"a": INT4, "b": TEXT}


class OneTable:
    """A catalog with one table."""

    def find(self, path: Sequence[str]) -> Collection | None:
        return Collection("t", tuple(COLUMNS), tuple(COLUMNS.values())) if path[-1] == "t" else None

    def names(self) -> list[str]:
        return ["t"]


def bind(text: str) -> None:
    """Bind a statement; what is refused is refused here."""
    if text.split(maxsplit=1)[0] in ("INSERT", "UPDATE", "DELETE") or "DELETE FROM" in text:
        target = Target("t", ("t",), tuple(COLUMNS), tuple(COLUMNS.values()), (None, None))
        bind_change(text, OneTable(), lambda path, position: target)
    else:
        plan(text, OneTable())


REFUSED = {
    "SELECT a FROM t TABLESAMPLE SYSTEM (10)": "TABLESAMPLE",
    "SELECT a INTO x FROM t": "SELECT INTO",
    "SELECT a FROM t ORDER BY a LIMIT 1 WITH TIES": "LIMIT … WITH TIES",
    "SELECT a FROM t LIMIT 1 BY a": "LIMIT … BY",
    "SELECT a FROM t UNION ALL BY NAME SELECT a FROM t": "a set operation BY NAME",
    "SELECT 1 GROUP BY ALL": "GROUP BY ALL without expressions",
    "SELECT * EXCLUDE (a) FROM t": "a star that leaves columns out",
    "SELECT a FROM t SORT BY a": "SORT BY",
    "SELECT a FROM t PIVOT (sum(a) FOR b IN ('x'))": "PIVOT",
    "SELECT a FROM t FOR SYSTEM_TIME AS OF now()": "the version of a table",
    "SELECT a FROM t AT (TIMESTAMP => now())": "a time of a table by itself",
    "SELECT a FROM t LEFT SEMI JOIN t AS s USING (a)": "LEFT SEMI JOIN",
    "SELECT t.a FROM t ANTI JOIN t AS s ON t.a = s.a": "ANTI JOIN",
    "SELECT t.a FROM t ASOF JOIN t AS s ON t.a = s.a": "ASOF JOIN",
    "SELECT a FROM (SELECT a FROM t SORT BY a) AS s": "SORT BY",
    "UPDATE t SET a = (SELECT 1 SORT BY 1)": "SORT BY",
    "SELECT a FROM t FOR UPDATE SKIP LOCKED": "NOWAIT or SKIP LOCKED",
    "SELECT a FROM t FOR UPDATE NOWAIT": "NOWAIT or SKIP LOCKED",
    "SELECT CAST('1' AS int FORMAT 'x')": "a cast with a FORMAT",
    "WITH RECURSIVE x (n) AS (SELECT 1) CYCLE n SET c USING p SELECT * FROM x": "SEARCH or CYCLE in a recursive query",
    "SELECT * FROM ROWS FROM (generate_series(1, 2)) WITH ORDINALITY AS g": "ROWS FROM",
    "WITH x AS (SELECT 1) DELETE FROM t": "WITH in front of DELETE",
    "DELETE FROM t LIMIT 1": "LIMIT of a change",
    "UPDATE t SET a = 1 ORDER BY a": "ORDER BY of a change",
    "INSERT OVERWRITE t VALUES (1)": "INSERT OVERWRITE",
    "INSERT INTO t PARTITION (a = 1) VALUES (1)": "PARTITION of a table",
    "SELECT sum(a) IGNORE NULLS FROM t": "IGNORE NULLS is not supported",
    "SELECT lag(a) RESPECT NULLS OVER (ORDER BY a) FROM t": "RESPECT NULLS as a window function",
    "SELECT mode() WITHIN GROUP (ORDER BY a) OVER () FROM t": "WITHIN GROUP as a window function",
    "SELECT concat(VARIADIC ARRAY[b]) FROM t": "VARIADIC is not supported",
    "VALUES (1) FOR UPDATE OF t": "FOR UPDATE OF around a set operation, VALUES or parentheses",
}


@pytest.mark.parametrize("text", REFUSED)
def test_it_is_refused(text: str) -> None:
    with pytest.raises(SqlError) as failed:
        bind(text)
    assert failed.value.sqlstate == "0A000"
    assert failed.value.message.startswith(REFUSED[text])


WRONG = {
    "SELECT a FROM t FOR UPDATE OF s": ("42P01", 'relation "s" in FOR UPDATE clause not found in FROM clause'),
    "SELECT a FROM t AS s FOR SHARE OF s, t": ("42P01", 'relation "t" in FOR SHARE clause not found in FROM clause'),
    "SELECT a FROM t FOR UPDATE OF public.t": ("42601", "FOR UPDATE must specify unqualified relation names"),
    "SELECT a FROM (SELECT a FROM t FOR UPDATE OF s) AS s": (
        "42P01",
        'relation "s" in FOR UPDATE clause not found in FROM clause',
    ),
    "SELECT a FROM t WINDOW w AS (ORDER BY a), w AS ()": ("42P20", 'window "w" is already defined'),
}


@pytest.mark.parametrize("text", WRONG)
def test_it_is_wrong(text: str) -> None:
    with pytest.raises(SqlError) as failed:
        bind(text)
    assert (failed.value.sqlstate, failed.value.message) == WRONG[text]


def test_the_parser_says_nothing_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SqlError):
        bind("SELECT sum(a) IGNORE NULLS FROM t")
    assert not caplog.records


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM ONLY t FOR UPDATE",
        "SELECT s.a FROM t JOIN t AS s USING (a) FOR UPDATE OF s FOR SHARE OF t",
        "INSERT INTO t AS s (a) VALUES (1)",
        "SELECT ALL a FROM t GROUP BY ALL a",
        "WITH x AS MATERIALIZED (SELECT 1) SELECT * FROM x FETCH FIRST 1 ROWS ONLY",
        "(SELECT a FROM t ORDER BY a LIMIT 1) UNION ALL (SELECT a FROM t OFFSET 2) ORDER BY 1 LIMIT 3",
        "SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY a ROWS UNBOUNDED PRECEDING)",
        "INSERT INTO t (a) VALUES (1) RETURNING *",
        "SELECT a, row_number() OVER (ORDER BY a) AS n FROM t QUALIFY n = 1",
    ],
)
def test_it_is_taken(text: str) -> None:
    bind(text)
