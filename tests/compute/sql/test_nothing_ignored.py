"""Nothing of a syntax tree is ignored, over everything that the parser can produce.

Every kind of node that the corpus has is given every argument that sqlglot knows for its class: then the statement is
refused, or it means something else. An argument that is set and changes nothing would be one that is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from everview.compute.functions.contract import Failure
from everview.compute.sql.clauses import watch
from everview.compute.sql.dml import Target, _Binder
from everview.compute.sql.errors import SqlError
from everview.compute.sql.parse import check_all_read, parse_query
from everview.compute.sql.query import Queries
from tests.compute.sql.tables import TABLES, Tables

QUERIES = Path(__file__).parent / "queries.sql"
MORE = """
SELECT a.id, b.label FROM t AS a LEFT JOIN u AS b ON a.id = b.id CROSS JOIN LATERAL (SELECT a.k + 1 AS n) AS l
SELECT id FROM t FOR UPDATE OF t
SELECT id FROM ONLY t WHERE name SIMILAR TO 'a%' OR name LIKE 'b!%' ESCAPE '!' OR name ILIKE ANY (ARRAY['x', 'y'])
SELECT k, sum(qty) FILTER (WHERE flag) FROM t GROUP BY GROUPING SETS ((k), ()) HAVING count(DISTINCT id) > 1
SELECT k, grouping(k, qty) FROM t GROUP BY ROLLUP (k, qty)
SELECT k FROM t GROUP BY CUBE (k, qty)
SELECT id, lag(qty, 1) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY id DESC NULLS LAST) = 1
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY qty) FROM t
SELECT DISTINCT ON (k) id FROM t ORDER BY k, id
WITH x (a) AS MATERIALIZED (SELECT id FROM t) SELECT * FROM x FETCH FIRST 2 ROWS ONLY
SELECT id FROM t ORDER BY id FETCH FIRST 1 ROWS WITH TIES
SELECT id FROM t ORDER BY id OFFSET 1
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r
SELECT id FROM t UNION SELECT id FROM u EXCEPT SELECT 1 INTERSECT SELECT 2
(SELECT id FROM t ORDER BY id LIMIT 1) UNION ALL (SELECT id FROM u) ORDER BY 1 LIMIT 3 OFFSET 1
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v (x, y), generate_series(1, 2) WITH ORDINALITY AS g (n, o)
SELECT CASE WHEN flag THEN 1 ELSE 2 END, CASE k WHEN 1 THEN 'a' END, CAST(k AS numeric(4, 2)), k::text::int FROM t
SELECT extract(year FROM day), position('a' IN name), substring(name FROM 1 FOR 2), trim(LEADING 'x' FROM name) FROM t
SELECT overlay(name PLACING 'x' FROM 1), interval '1 day', day + interval '1' month, date '2024-01-01' FROM t
SELECT (ARRAY[1, 2])[1], (ARRAY[1, 2])[1:2], ARRAY(SELECT id FROM t), '{1}'::int[], '{"a": 1}'::jsonb -> 'a' FROM t
SELECT id IN (1, 2), id NOT IN (SELECT id FROM u), id BETWEEN SYMMETRIC 1 AND 2, EXISTS (SELECT 1), (SELECT 1) FROM t
SELECT id = ANY (ARRAY[1]), id <> ALL (SELECT id FROM u), (id, k) = (1, 2), id IS DISTINCT FROM k FROM t
SELECT -id, NOT flag, id & 1, id | 2, id # 3, ~id, id << 1, id >> 1, id % 2, id ^ 2, |/ id FROM t
SELECT name ~ 'a', name !~* 'b', flag IS NOT TRUE FROM t
SELECT '{"a": 1}'::jsonb @> '{}', ARRAY[1] <@ ARRAY[1], ARRAY[1] && ARRAY[2], '{"a": 1}'::jsonb ? 'a', 'x' ^@ 'y'
SELECT name COLLATE "C", day AT TIME ZONE 'UTC', coalesce(k, 1), nullif(k, 1), greatest(k, 1) FROM t
SELECT unnest(ARRAY[1, 2]), string_agg(name, ',' ORDER BY id) FROM t GROUP BY 1
SELECT t.id FROM t JOIN u USING (id) NATURAL JOIN empty
SELECT (date '2024-01-01', date '2024-02-01') OVERLAPS (date '2024-01-15', interval '1 day')
TABLE t
"""
CHANGES = """
INSERT INTO t (id, k) VALUES (1, 2), (3, DEFAULT) RETURNING id
INSERT INTO t SELECT * FROM t WHERE id > 1
INSERT INTO t DEFAULT VALUES
UPDATE t AS x SET k = x.k + 1, name = DEFAULT FROM u WHERE u.id = x.id RETURNING x.id
DELETE FROM t AS x USING u WHERE u.id = x.id RETURNING *
"""
# What may be set and changes nothing: the statement is answered as if it were not there, and that is what it asks for.
CHANGES_NOTHING = {
    ("CTE", "materialized"),  # when a query is computed, not what it gives
    ("Table", "only"),  # no table has children
    ("Lock", "update"),  # what a lock is for holds anyway
    ("Lock", "key"),
    ("Select", "locks"),
    ("Union", "locks"),
    ("Subquery", "locks"),
    ("LimitOptions", "rows"),  # a word that may be left out
    ("Group", "all"),  # GROUP BY ALL keys is GROUP BY keys; without keys it is refused
    ("With", "recursive"),  # a query that does not refer to itself
    # Marks that the parser sets by itself.
    ("DPipe", "safe"),
    ("Div", "typed"),
    ("Div", "safe"),
    ("DataType", "nested"),
}
TARGET = Target("t", ("t",), tuple(TABLES["t"]), tuple(TABLES["t"].values()), (None,) * len(TABLES["t"]))


def meaning(tree: Any) -> object:
    """The plan of a statement; raises if any part of it is not read."""
    if isinstance(tree, exp.Insert | exp.Update | exp.Delete):
        binder = _Binder(Tables(), lambda path, position: TARGET)
        kind = type(tree).__name__.lower()
        bound: object = getattr(binder, kind)(tree)
    else:
        bound = Queries(Tables()).plan(tree)
    check_all_read(tree)
    return bound


def corpus() -> list[str]:
    text = "\n".join(line for line in QUERIES.read_text().splitlines() if not line.startswith("--"))
    given = [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]
    return [*MORE.strip().splitlines(), *CHANGES.strip().splitlines(), *given]


# Some value here is one that no parser sets there, and that means nothing: a clause without its list, a name that is no
# node, a second form of what is there in another. The values that are left are refused.
NOT_PRODUCED = {
    *((kind, clause) for kind in ("Select", "Except", "Intersect", "Union", "Values") for clause in ("with_", "order")),
    *((kind, "limit") for kind in ("Select", "Except", "Intersect", "Union", "Values")),
    ("Select", "windows"),
    ("Join", "using"),
    ("Identifier", "quoted"),
    ("Identifier", "global_"),
    ("Identifier", "temporary"),
    ("Table", "db"),
    ("Table", "catalog"),
    ("TableAlias", "columns"),
    ("Literal", "is_string"),
    ("DataType", "kind"),
    ("In", "expressions"),
}


def dummies() -> list[Any]:
    """Values that the parser might set an argument to."""
    return [True, exp.Var(this="X"), [exp.column("id")], "X"]


def mutations() -> Iterator[tuple[str, str, str]]:
    """One statement for each kind of node that occurs, and each of its arguments that is not set there."""
    seen: set[tuple[str, str]] = set()
    for text in corpus():
        for node in parse_query(text).walk():
            for name in node.arg_types:
                key = (type(node).__name__, name)
                if key not in seen and not dict(node.args).get(name):
                    seen.add(key)
                    yield (text, *key)


@pytest.mark.parametrize("text", corpus())
def test_every_statement_of_the_corpus_is_read_whole(text: str) -> None:
    meaning(parse_query(text))


def test_what_is_set_is_refused_or_means_something() -> None:
    ignored = []
    tried = 0
    for text, kind, name in mutations():
        if (kind, name) in CHANGES_NOTHING | NOT_PRODUCED:
            continue
        before = meaning(parse_query(text))
        for number in range(4):
            tree = parse_query(text)
            node = next(each for each in tree.walk() if type(each).__name__ == kind and not dict(each.args).get(name))
            node.set(name, dummies()[number])
            tried += 1
            try:
                after = meaning(watch(tree))
            except (SqlError, Failure):
                continue
            except (AttributeError, TypeError, KeyError, IndexError, ValueError, AssertionError):
                continue  # it was read, and is nothing that the parser would have set
            if after == before:
                ignored.append(f"{kind}.{name} = {dummies()[number]!r} in {text}")
                break
    assert tried > 500
    assert not ignored, "\n".join(ignored)


# Nodes around an expression that mean nothing by themselves, or are what the place already has.
TRANSPARENT = ("Alias", "PivotAlias", "Column", "Pseudocolumn", "Paren", "Identifier", "Aliases")


def every_class() -> list[type[Any]]:
    """Every kind of node that sqlglot has."""
    found: dict[str, type[Any]] = {}
    waiting = [exp.Expression]
    while waiting:
        each = waiting.pop()
        waiting += each.__subclasses__()
        found[each.__name__] = each
    return [found[name] for name in sorted(found)]


def places() -> list[tuple[str, str]]:
    """Statements with a column named `here`, and what stands there to compare with."""
    return [
        ("SELECT here FROM t", "id"),
        ("SELECT id FROM t WHERE here", "flag"),
        ("SELECT id FROM t GROUP BY id, here", "id"),
        ("SELECT id FROM t ORDER BY here", "id"),
        ("SELECT sum(id) FILTER (WHERE here) FROM t", "flag"),
        ("SELECT row_number() OVER (PARTITION BY here) FROM t", "id"),
        ("SELECT abs(here) FROM t", "id"),
    ]


def test_every_kind_of_node_is_refused_or_means_something() -> None:
    """A node of any class around what stands in a place: the statement does not mean the same as without it."""
    ignored, tried, refused = [], 0, 0
    for text, plain in places():
        before = meaning(parse_query(text.replace("here", plain)))
        for kind in every_class():
            if kind.__name__ in TRANSPARENT:
                continue
            tree = parse_query(text)
            place = next(each for each in tree.find_all(exp.Column) if each.name == "here")
            try:
                node = kind(**{name: exp.column(plain) for name, needed in kind.arg_types.items() if needed})
                node.set("this", exp.column(plain))
                place.replace(node)
            except (AttributeError, TypeError, ValueError):
                continue
            tried += 1
            try:
                after = meaning(watch(tree))
            except (SqlError, Failure):
                refused += 1
                continue
            except (AttributeError, TypeError, LookupError, ValueError, AssertionError, NameError):
                continue  # it was read, and is nothing that the parser would have made
            if after == before:
                ignored.append(f"{kind.__name__} in {text}")
    assert tried > 3_000 and refused > 2_000
    assert not ignored, "\n".join(ignored)
