"""`mz_now()` compared with the rows of a query, by IN, ANY and ALL: exact at all times, and empty in the end."""

from __future__ import annotations

import random

import pytest

from everview.compute.engine.local import LocalEngine
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.errors import SqlError
from everview.compute.sql.query import plan
from tests.compute.delta.history import Maintained
from tests.compute.delta.test_temporal_random import OPERATORS, Names, check_text

SIDES = {
    "mz_now()": ("b.ms", "b.tz", "b.day", "b.ms / 1000.0 * 1000", "NULL::bigint"),
    "mz_now() - INTERVAL '1 month'": ("b.tz", "b.till"),
    "mz_now()::bigint / 3600000": ("b.ms / 3600000",),
}
# {c} is a comparison with a query; a is bounded besides.
SHAPES = (
    "{c}",
    "NOT {c}",
    "NOT ({c})",
    "({c}) AND a.k > 0",
    "a.flag OR {c}",
    "a.k = 1 AND NOT ({c}) OR {c}",
    "(a.flag OR ({c})) AND mz_now() > a.tz",
)


def comparison(rng: random.Random) -> str:
    side = rng.choice(list(SIDES))
    rows = f"SELECT {rng.choice(SIDES[side])} FROM b WHERE mz_now() < b.till"
    rows += rng.choice((" AND a.k = b.k", " AND a.k = b.k AND b.flag", " AND a.ms < b.ms"))
    if rng.random() < 0.2:
        return f"{side} {rng.choice(('', 'NOT '))}IN ({rows})"
    return f"{side} {rng.choice(OPERATORS)} {rng.choice(('ANY', 'SOME', 'ALL'))} ({rows})"


@pytest.mark.parametrize("shape", SHAPES)
def test_exact_and_empty_in_the_end(shape: str, rng: random.Random, long_forms: bool) -> None:
    for _ in range(200 if long_forms else 10):
        text = f"SELECT a.k, a.ms FROM a WHERE ({shape.format(c=comparison(rng))}) AND mz_now() < a.till"
        check_text(rng, text, LocalEngine(), 8)


@pytest.mark.parametrize(
    "condition",
    [
        "(mz_now() < ALL (SELECT ms FROM b)) IS TRUE",
        "CASE WHEN flag THEN mz_now() IN (SELECT ms FROM b) END",
        "(mz_now() < ANY (SELECT ms FROM b)) = flag",
    ],
)
def test_inside_of_other_expressions(condition: str) -> None:
    with pytest.raises(SqlError) as caught:
        Maintained(optimize(plan(f"SELECT k FROM a WHERE {condition}", Names()).relation), LocalEngine())
    assert caught.value.sqlstate == "0A000"
    assert "IN, ANY or ALL with a query inside of another expression" in (caught.value.detail or "")
