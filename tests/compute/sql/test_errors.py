"""What is wrong with a statement is said with its SQLSTATE, its place in the text, and a way out."""

from __future__ import annotations

import pytest

from everview.compute.sql.errors import SqlError
from everview.compute.sql.query import plan
from tests.compute.sql.tables import Tables

RECURSIVE = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL"
CASES = [
    ("SELECT * FROM tt", "42P01", 'relation "tt" does not exist', "t", 15),
    ("SELECT nam FROM t", "42703", 'column "nam" does not exist', "name", 8),
    ("SELECT t.nam FROM t", "42703", "column t.nam does not exist", "name", 8),
    ("SELECT x.id FROM t", "42P01", 'missing FROM-clause entry for table "x"', None, 8),
    ("SELECT id FROM t, u", "42702", 'column reference "id" is ambiguous', None, 8),
    ("SELECT * FROM t, t", "42712", 'table name "t" specified more than once', "alias", None),
    ("SELECT uper(name) FROM t", "42883", "function uper(text) does not exist", "upper", 8),
    ("SELECT name + 1 FROM t", "42883", "operator does not exist: text + integer", "cast", 8),
    ("SELECT k FROM t GROUP BY flag", "42803", "must appear in the GROUP BY clause", None, None),
    ("SELECT count(*) FROM t WHERE count(*) > 1", "42803", "not allowed in WHERE", None, None),
    ("SELECT id FROM t WHERE id", "42804", "argument of WHERE must be type boolean", None, 24),
    ("SELECT id FROM t WHERE id = 'x'", "22P02", "invalid input syntax for type integer", None, None),
    ("SELECT 'x'::int", "22P02", "invalid input syntax for type integer", None, None),
    ("SELECT (SELECT id, k FROM t)", "42601", "subquery must return only one column", None, None),
    ("SELECT id FROM t UNION SELECT id, k FROM t", "42601", "same number of columns", None, None),
    ("SELECT name FROM t UNION SELECT id FROM t", "42804", "cannot be matched", None, None),
    ("VALUES (1), (1, 2)", "42601", "same length", None, None),
    ("SELECT id FROM t ORDER BY 3", "42P10", "position 3 is not in select list", None, None),
    ("SELECT DISTINCT id FROM t ORDER BY k", "42P10", "must appear in select list", None, None),
    ("SELECT id FROM t LIMIT -1", "2201W", "LIMIT must not be negative", None, None),
    ("SELECT id FROM t ORDER BY -1", "42P10", "position -1 is not in select list", None, None),
    ("SELECT id FROM t ORDER BY 'k'", "42601", "non-integer constant in ORDER BY", None, None),
    ("SELECT count(*) FROM t GROUP BY true", "42601", "non-integer constant in GROUP BY", None, None),
    ("SELECT id FROM t WHERE EXISTS (SELECT t.qty FROM u AS t)", "42703", "column t.qty does not exist", None, 39),
    ("SELECT id FROM t WHERE EXISTS (SELECT sum(t.id) FROM u)", "42803", "not allowed in WHERE", None, None),
    ("SELECT sum(rank() OVER ()) FROM t", "42803", "cannot contain window function calls", None, None),
    ("SELECT max(rank() OVER ()) OVER () FROM t", "42P20", "cannot be nested", None, None),
    ("SELECT k FROM t GROUP BY k HAVING rank() OVER () > 1", "42P20", "not allowed in HAVING", None, None),
    (
        "SELECT t.id, s.x FROM t FULL JOIN LATERAL (SELECT t.k AS x) AS s ON true",
        "42P01",
        "entry for table",
        None,
        None,
    ),
    ("SELECT id FROM t WINDOW w AS (ORDER BY nam)", "42703", 'column "nam" does not exist', "name", None),
    ("SELECT count(*) FROM t GROUP BY k WINDOW w AS (ORDER BY id)", "42803", "must appear in the GROUP BY", None, None),
    ("SELECT sum(1) FILTER (WHERE max(k) > 1) OVER () FROM t", "42803", "not allowed in FILTER", None, None),
    ("SELECT k AS n, qty AS n FROM t GROUP BY n", "42702", 'GROUP BY "n" is ambiguous', None, None),
    ("SELECT row_number() FROM t", "42809", "requires an OVER clause", None, None),
    ("SELECT 1 FROM (SELECT '1' AS x) AS q WHERE x = 1", "42883", "text = integer", "cast", None),
    ("SELECT regexp_like(name, 'a', 'q') FROM t", "22023", 'invalid regular expression option: "q"', None, 8),
    ("SELECT regexp_match(name, '[') FROM t", "2201B", "invalid regular expression", None, 8),
    ("SELECT 1e400", "22003", '"1e400" is out of range for type double precision', None, None),
    ("SELECT 123456789012345678901234567890123456789", "22003", "value overflows numeric format", None, None),
    ("SELECT FROM WHERE", "42601", "syntax error", None, None),
    ("WITH RECURSIVE r AS (SELECT * FROM r) SELECT * FROM r", "42P19", "does not have the form", None, None),
    (f"{RECURSIVE} SELECT r.i FROM r, r AS s) SELECT 1", "42P19", "must not appear more than once", None, None),
    (f"{RECURSIVE} SELECT count(*)::int FROM r) SELECT 1", "42P19", "aggregate functions are not allowed", None, None),
    (f"{RECURSIVE} SELECT t.id FROM t LEFT JOIN r ON true) SELECT 1", "42P19", "within an outer join", None, None),
    (f"{RECURSIVE} SELECT id FROM t WHERE id IN (SELECT i FROM r)) SELECT 1", "42P19", "within a subquery", None, None),
    (f"{RECURSIVE} SELECT i + 1.5 FROM r) SELECT 1", "42804", "column 1 has type integer in", "cast", None),
    (f"{RECURSIVE} SELECT 1 FROM r LIMIT 3) SELECT 1", "0A000", "LIMIT in a recursive query", None, None),
    (f"{RECURSIVE} SELECT i, i FROM r) SELECT 1", "42601", "the same number of columns", None, None),
    (
        "WITH RECURSIVE r AS (SELECT i FROM r UNION ALL SELECT 1) SELECT 1",
        *("42P19", "must not appear within its non-recursive term", None, None),
    ),
]


@pytest.mark.parametrize(("text", "sqlstate", "message", "hint", "position"), CASES, ids=[case[0] for case in CASES])
def test_errors(text: str, sqlstate: str, message: str, hint: str | None, position: int | None) -> None:
    with pytest.raises(SqlError) as caught:
        plan(text, Tables())
    error = caught.value
    assert (error.sqlstate, message in error.message) == (sqlstate, True), str(error)
    if hint is not None:
        assert hint in (error.hint or ""), error.hint
    if position is not None:
        assert error.position == position
