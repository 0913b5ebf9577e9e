"""Spark and the local engine give the same rows, for every query of the front end's tests and all of TPC-H."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from everview.compute.engine.local.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.engine.local.collection import Rows, rows_of
from everview.compute.engine.local.evaluate import evaluate
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import SMALL, profile
from everview.compute.ir.relation import Relation, types
from everview.compute.ir.types import SqlType
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Catalog
from tests.compute.sql.tables import TABLES, Tables
from tests.compute.sql.test_against_postgres import QUERIES, contents
from tests.tpch.miniature import generate
from tests.tpch.queries import QUERIES as TPCH_QUERIES
from tests.tpch.schema import TABLES as TPCH_TABLES
from tests.tpch.test_binding import Tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Schemas = Mapping[str, Mapping[str, SqlType]]


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> SparkEngine:
    return SparkEngine(profile(spark, SMALL))


def collections(data: Mapping[str, Sequence[tuple[Any, ...]]], schemas: Schemas) -> dict[str, Rows]:
    return {
        name: rows_of([(row, 1) for row in rows], tuple(schemas[name].values())) for name, rows in data.items()
    }


def difference(engine: SparkEngine, relation: Relation, inputs: Mapping[str, Rows], schemas: Schemas) -> str | None:
    """What the two engines disagree on."""
    tables = {name: rows_to_arrow(rows, tuple(schemas[name].values())) for name, rows in inputs.items()}
    try:
        found = rows_from_arrow(engine.run(relation, tables), types(relation))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:800]}"
    expected = evaluate(relation, inputs)
    if expected.errors:
        return f"errors on the local engine: {expected.errors}"
    if found == expected.rows:
        return None
    missing = {row: count for row, count in expected.rows.items() if found.get(row) != count}
    extra = {row: count for row, count in found.items() if expected.rows.get(row) != count}
    return f"only local {missing}\n    only spark {extra}"


def check(engine: SparkEngine, queries: Sequence[str], catalog: Catalog, inputs: dict[str, Rows], schemas: Schemas) -> None:
    wrong = []
    for query in queries:
        found = difference(engine, optimize(plan(query, catalog).relation), inputs, schemas)
        if found:
            wrong.append(f"{query}\n    {found}")
    assert not wrong, f"{len(wrong)} of {len(queries)} queries:\n" + "\n".join(wrong)


@pytest.mark.timeout(180)
def test_the_same_rows_for_every_query(engine: SparkEngine) -> None:
    check(engine, QUERIES, Tables(), collections(contents(random.Random(1)), TABLES), TABLES)


@pytest.mark.timeout(180)
def test_the_same_rows_for_tpch(engine: SparkEngine) -> None:
    queries = list(TPCH_QUERIES.values())
    check(engine, queries, Tpch(), collections(generate(random.Random(7)), TPCH_TABLES), TPCH_TABLES)
