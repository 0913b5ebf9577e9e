"""Calls inside of calls inside of calls: what Spark is told stays in proportion to what was written, or is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from everview.adapter.errors import sqlstate_of
from everview.compute.engine.contract import TooComplex
from everview.compute.engine.spark.engine import SparkEngine, statement_of
from everview.compute.engine.spark.session import profiles
from everview.compute.ir.relation import Relation
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.collection import rows_of
from everview.compute.sql.query import plan
from everview.recursion import deepen
from tests.compute.engine.test_spark import disagreement
from tests.compute.sql.tables import TABLES, Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = tuple(TABLES["t"].values())

# Each says an argument several times in Spark SQL: what is put in front, around what, and what follows.
NESTED = {
    "trimmed": ("ltrim(", "name", ", 'x')"),
    "repeated": ("repeat(", "name", ", 1)"),
    "padded": ("lpad(", "name", ", 9, 'xy')"),
    "quoted": ("quote_ident(", "name", ")"),
    "pieces": ("substring(", "name", ", 1)"),
    "binned": ("date_bin('1 day', ", "day::timestamp", ", '2000-01-01'::timestamp)"),
    "divided": ("(1 + ", "id", " / (k + 100))"),
    "not strict": ("(1 + ", "id", " / coalesce(k, 7))"),
    "chosen": ("CASE WHEN k > 0 THEN ", "id", " ELSE 1 / (id + 1) END"),
    "concatenated arrays": ("", "ARRAY[k]", " || ARRAY[k, 1]"),
}
DEEP = {"binned": 2, "quoted": 4, "not strict": 3, "pieces": 9}


def written(name: str, depth: int) -> str:
    before, innermost, after = NESTED[name]
    return before * depth + innermost + after * depth


def planned(*columns: str) -> Relation:
    return optimize(plan(f"SELECT id, {', '.join(columns)} FROM t", Tables()).relation)


def told(name: str, depth: int) -> str:
    """The statement for Spark, made where statements are: on a thread with a large stack."""
    deepen()
    with ThreadPoolExecutor(1) as deep:
        return deep.submit(lambda: statement_of(planned(written(name, depth)), {"t": "t"}, guarded=True)).result()


@pytest.mark.parametrize("name", NESTED)
def test_statements_do_not_explode(name: str) -> None:
    """Forty of them would be more characters than there is memory in the world."""
    lengths = [len(told(name, depth)) for depth in (10, 20, 40)]
    assert lengths[2] < 2 << 20, lengths
    assert lengths[2] < 5 * lengths[1], lengths  # to say which call fails takes all that is inside of it once more


def test_what_is_too_long_is_refused() -> None:
    with pytest.raises(TooComplex, match="too complex") as refused:
        told("not strict", 1_500)
    assert sqlstate_of(refused.value) == "54001"


@pytest.mark.spark
@pytest.mark.timeout(600)  # Spark shares the machine
def test_nested_calls_mean_the_same(spark: SparkSession) -> None:
    values = [
        (1, 2, "xaX ", None, 1, None, True),
        (2, None, None, None, 2, None, None),
        (0, -1, "", None, 3, None, False),
    ]
    inputs = rows_of([(row, 1) for row in values], SCHEMA)
    # Deep enough for names, and no deeper: Spark's parser looks through all of a nested call at each level of it.
    nested = planned(*(written(name, DEEP.get(name, 6)) for name in NESTED))
    assert disagreement(SparkEngine(profiles(spark).small), nested, {"t": inputs}) is None
