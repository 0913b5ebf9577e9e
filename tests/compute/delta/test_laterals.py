"""What LATERAL computes: on the row itself where that does, and elsewhere for the rows that can still be seen."""

from __future__ import annotations

import pytest

from everview.compute.delta.choices import each_bound
from everview.compute.ir.relation import Filter, Join, walk
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.query import plan
from everview.compute.view import View
from tests.compute.delta.test_temporal_random import Names


def view_of(query: str, form: int = 5) -> View:
    return View.of(optimize(plan(query, Names()).relation), form)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k, g FROM a, generate_series(1, a.k) AS g",
        "SELECT a.ms, unnest(a.list), a.list FROM a WHERE a.flag",
        "SELECT a.k, x.y, z.v FROM a, LATERAL (SELECT a.ms / a.k AS y) AS x, unnest(a.list) AS z (v) WHERE z.v > x.y",
        "SELECT a.k, g, h FROM a, generate_series(1, a.k) AS g, generate_series(g, a.k) AS h WHERE g <> a.ms",
        "SELECT a.k, g FROM a, LATERAL (SELECT g FROM unnest(a.list) AS g WHERE g > a.k AND a.flag) AS x WHERE g = 9",
        "SELECT a.k, g FROM a, LATERAL (SELECT g FROM generate_series(1, a.k) AS g WHERE a.k = 2) AS x",
        "SELECT g FROM (SELECT k FROM a UNION ALL SELECT k FROM b) AS c, generate_series(1, c.k) AS g",
    ],
)
def test_what_is_computed_of_a_row_keeps_nothing(query: str) -> None:
    assert not view_of(query).program.arrangements
    assert view_of(query, 4).program.arrangements, "as in views that were made so"


def test_the_key_of_a_join_is_found_behind_a_table_function() -> None:
    view = view_of("SELECT a.ms, g FROM b, a, generate_series(1, a.k) AS g WHERE a.k = b.k")
    (join,) = (each for each in walk(view.plan) if isinstance(each, Join))
    assert join.equivalences and len(view.program.arrangements) == 2


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("mz_now() < LEAST(a.till, b.till)", 2),
        ("LEAST(a.till, b.till, a.day) >= mz_now()", 3),
        ("mz_now() >= GREATEST(a.ms, b.ms) + 5", 2),
        ("mz_now() - a.span < LEAST(a.till, b.till) - INTERVAL '1 day'", 2),
        ("mz_now()::date < LEAST(a.till, b.till)::date + 3", 2),
        ("mz_now() < LEAST(a.till, b.till) + INTERVAL '1 month'", 0),  # the 30th may come behind the 31st
        ("mz_now() < LEAST(a.till, b.till) + a.span", 0),
        ("mz_now() < -LEAST(a.ms, b.ms)", 0),
        ("mz_now() < 5 - LEAST(a.ms, b.ms)", 0),
        ("mz_now() < GREATEST(a.till, b.till)", 0),
        ("mz_now() > LEAST(a.till, b.till)", 0),
        ("mz_now() = LEAST(a.till, b.till)", 0),
        ("mz_now() < COALESCE(a.till, b.till)", 0),
        ("LEAST(mz_now(), a.till) < b.till", 0),
        ("a.ms < LEAST(a.ms, b.ms)", 0),
    ],
)
def test_the_least_of_bounds_is_below_each(condition: str, count: int) -> None:
    """What follows is exact in `test_temporal_random`; here, from which comparisons something does."""
    relation = plan(f"SELECT a.k FROM a, b WHERE {condition}", Names()).relation
    (filtering,) = (each for each in walk(relation) if isinstance(each, Filter))
    (predicate,) = filtering.predicates
    assert len(each_bound(predicate)) == count
