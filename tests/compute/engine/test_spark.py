"""Spark and the local engine give the same rows, for every query of the front end's tests and all of TPC-H."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyarrow import parquet

from everview.compute.engine.contract import NotSupported, Parts, PlanRefused
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import SMALL, profile, profiles
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import (
    Constant,
    Frame,
    Get,
    Map,
    Negate,
    Order,
    Reduce,
    Relation,
    TopK,
    Window,
    WindowFunction,
    types,
    walk,
)
from everview.compute.ir.scalar import Column, Literal
from everview.compute.ir.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    MZ_TIMESTAMP,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Interval,
    SqlType,
    array_of,
    numeric,
)
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.rows.collection import Rows, rows_of
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Catalog
from tests.compute.plans import Sample, samples
from tests.compute.sql.tables import TABLES, Tables
from tests.compute.sql.test_against_postgres import QUERIES, contents
from tests.tpch.miniature import generate
from tests.tpch.queries import QUERIES as TPCH_QUERIES
from tests.tpch.schema import TABLES as TPCH_TABLES
from tests.tpch.test_binding import Tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# Values of each type in ascending order.
ASCENDING: dict[SqlType, list[Any]] = {
    BOOLEAN: [False, True],
    INT2: [-(2**15), 0, 2**15 - 1],
    INT4: [-(2**31), 0, 2**31 - 1],
    INT8: [-(2**63), 0, 2**63 - 1],
    FLOAT4: [-math.inf, -0.5, 0.0, math.inf, math.nan],
    FLOAT8: [-math.inf, -1e300, 0.0, 5e-324, math.nan],
    numeric(38, 2): [Decimal("-" + "9" * 36 + ".99"), Decimal("0.00"), Decimal("1.50")],
    numeric(): [Decimal("-1.5").quantize(Decimal("1e-18")), Decimal(0).quantize(Decimal("1e-18"))],
    TEXT: ["", "A", "a'\\n\n\"%{}`", "é", "\uffff", "\U0001f600"],
    BYTEA: [b"", b"\x00", b"\x7f", b"\xff"],
    DATE: [date(1, 1, 1), date(1582, 10, 10), date(9999, 12, 31)],
    TIME: [0, 86_399_999_999],
    TIMESTAMP: [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(9999, 12, 31)],
    TIMESTAMPTZ: [datetime(1, 1, 1, tzinfo=UTC), datetime(2024, 3, 31, 1, 2, 3, 4, tzinfo=UTC)],
    INTERVAL: [Interval(0, -1, 0), Interval(0, 30, 0), Interval(1, 0, 0), Interval(0, 0, 2**62)],
    UUID: ["00000000-0000-0000-0000-000000000000", "ffffffff-0000-0000-0000-000000000000"],
    JSONB: ["null", '{"a": "\\\\"}'],
    MZ_TIMESTAMP: [0, 2**62],
}

Schemas = Mapping[str, Mapping[str, SqlType]]


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> SparkEngine:
    return SparkEngine(profiles(spark).small)


def collections(data: Mapping[str, Sequence[tuple[Any, ...]]], schemas: Schemas) -> dict[str, Rows]:
    return {name: rows_of([(row, 1) for row in rows], tuple(schemas[name].values())) for name, rows in data.items()}


def tables_of(relation: Relation, inputs: Mapping[str, Rows]) -> dict[str, pa.Table]:
    """What the plan reads as batches, in which every row stands twice and only the sum is right."""
    read = {each.id: each.schema for each in walk(relation) if isinstance(each, Get) and each.id in inputs}
    tables = {}
    for name, schema in read.items():
        table = rows_to_arrow(inputs[name], schema)
        more = table.set_column(len(schema), "_diff", pc.add(table["_diff"], 1))
        less = table.set_column(len(schema), "_diff", pa.array([-1] * table.num_rows, pa.int64()))
        tables[name] = pa.concat_tables([more, less])
    return tables


def run(engine: SparkEngine, relation: Relation, inputs: Mapping[str, Rows]) -> Rows:
    """The rows that Spark finds; says each of them once."""
    table = engine.run(relation, tables_of(relation, inputs))
    rows = rows_from_arrow(table, types(relation))
    assert len(rows) == table.num_rows
    return rows


def difference(found: Rows, expected: Rows) -> str | None:
    """What two collections disagree on; floats may differ in their last digits, for sums depend on the order."""
    spark, local = _rounded(found), _rounded(expected)
    return None if spark == local else f"only local {local - spark}\n    only spark {spark - local}"


def _rounded(rows: Rows) -> Counter[Any]:
    counted: Counter[Any] = Counter()
    for row, count in rows.items():
        counted[tuple(f"{value:.9g}" if isinstance(value, float) else value for value in row)] += count
    return counted


def disagreement(engine: SparkEngine, relation: Relation, inputs: Mapping[str, Rows]) -> str | None:
    """What the two engines disagree on."""
    expected = evaluate(relation, inputs)
    if expected.errors:
        return f"errors on the local engine: {expected.errors}"
    try:
        return difference(run(engine, relation, inputs), expected.rows)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:800]}"


def check(engine: SparkEngine, queries: Sequence[str], catalog: Catalog, inputs: dict[str, Rows]) -> None:
    wrong = []
    for query in queries:
        found = disagreement(engine, optimize(plan(query, catalog).relation), inputs)
        if found:
            wrong.append(f"{query}\n    {found}")
    assert not wrong, f"{len(wrong)} of {len(queries)} queries:\n" + "\n".join(wrong)


@pytest.mark.timeout(180)
def test_the_same_rows_for_every_query(engine: SparkEngine) -> None:
    check(engine, QUERIES, Tables(), collections(contents(random.Random(1)), TABLES))


@pytest.mark.timeout(180)
def test_the_same_rows_for_tpch(engine: SparkEngine) -> None:
    check(engine, list(TPCH_QUERIES.values()), Tpch(), collections(generate(random.Random(7)), TPCH_TABLES))


@pytest.mark.timeout(600)
def test_the_same_rows_for_random_plans(engine: SparkEngine, long_forms: bool) -> None:
    @settings(
        max_examples=500 if long_forms else 40,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(sample=samples(fails=False))
    def compare(sample: Sample) -> None:
        expected = evaluate(sample.plan, sample.inputs)
        if expected.errors:
            return
        try:
            found = run(engine, sample.plan, sample.inputs)
        except NotSupported:
            return
        assert not difference(found, expected.rows), difference(found, expected.rows)

    compare()


def every_type() -> dict[SqlType, list[Any]]:
    """Values of each type in ascending order, NULL last."""
    small = {sql_type: [*values, None] for sql_type, values in ASCENDING.items()}
    return small | {
        array_of(each): [[], *([value] for value in values[:2]), [None], None] for each, values in small.items()
    }


def test_values_of_every_type_go_in_and_out(engine: SparkEngine) -> None:
    rows, schema, inputs = [], tuple(every_type()), {}
    for place in range(max(map(len, every_type().values()))):
        rows.append(tuple(values[min(place, len(values) - 1)] for values in every_type().values()))
    inputs["t"] = rows_of([(row, 1) for row in rows], schema)
    assert run(engine, Get("t", schema), inputs) == inputs["t"]
    assert run(engine, Constant(tuple((row, 2) for row in rows), schema), {}) == dict.fromkeys(inputs["t"], 2)
    literals = Map(
        Constant((((), 1),), ()), tuple(Literal(value, each) for value, each in zip(rows[0], schema, strict=True))
    )
    assert run(engine, literals, {}) == {next(iter(inputs["t"])): 1}


def test_values_of_every_type_are_sorted_alike(engine: SparkEngine) -> None:
    wrong = []
    sorted_types = [each for each in every_type() if each != JSONB and each.element in (None, INT4, FLOAT8, INTERVAL)]
    for place, sql_type in enumerate(sorted_types):
        descending = bool(place % 2)
        inputs = {"t": rows_of([((value,), 2) for value in every_type()[sql_type]], [sql_type])}
        order = (Order(Column(0, sql_type), descending, nulls_first=descending),)
        plan = Window(
            Get("t", (sql_type,)), (), order, (WindowFunction("row_number()", (), INT8, Frame("rows", None, 0)),)
        )
        wrong += [f"{sql_type}: {found}" for found in [disagreement(engine, plan, inputs)] if found]
    assert not wrong, "\n".join(wrong)


def test_parquet_parts_are_inputs_too(engine: SparkEngine, tmp_path: Path) -> None:
    rows, folder = {(1,): 2, (2,): 1}, tmp_path / "{a,b} [c]"  # which is no pattern
    folder.mkdir()
    for number, row in enumerate(rows):
        parquet.write_table(rows_to_arrow({row: rows[row]}, [INT4]), folder / f"{number}.parquet")
    parts = Parts(tuple(str(folder / f"{number}.parquet") for number in range(2)))
    assert rows_from_arrow(engine.run(Get("t", (INT4,)), {"t": parts}), [INT4]) == rows
    assert engine.run(Get("t", (INT4,)), {"t": Parts(())}).num_rows == 0


def test_what_spark_refuses_shows_the_statement(engine: SparkEngine) -> None:
    mistaken = TopK(Get("t", (INT4,)), (7,), (), 1)
    with pytest.raises(PlanRefused, match="PARTITION BY c7"):
        run(engine, mistaken, {"t": {(1,): 1}})


def test_two_profiles_share_one_spark(spark: SparkSession) -> None:
    both = profiles(spark)
    both.warm_up()
    adaptive = "spark.sql.adaptive.enabled"
    assert (both.small.conf.get(adaptive), both.bulk.conf.get(adaptive)) == ("false", "true")
    assert both.small.sparkContext is both.bulk.sparkContext
    plan_, inputs = Reduce(Get("t", (INT4,)), (Column(0, INT4),)), {"t": {(1,): 2, (None,): 1}}
    assert run(SparkEngine(both.bulk), plan_, inputs) == {(1,): 1, (None,): 1}
    assert not both.small.catalog.listTables()  # no view is left behind


def test_the_comparison_notices(engine: SparkEngine) -> None:
    """A defect put in on purpose: Spark is given another plan than the local engine."""
    inputs = {"t": {(1,): 2, (None,): 1}}
    table = Get("t", (INT4,))
    expected = evaluate(table, inputs).rows
    assert difference(run(engine, table, inputs), expected) is None
    assert difference(run(engine, Reduce(table, (Column(0, INT4),)), inputs), expected)
    assert difference(run(engine, Negate(table), inputs), expected)


@pytest.mark.spark
def test_rules_that_were_excluded_stay_excluded(spark: SparkSession) -> None:
    name, other = "spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.CollapseProject"
    session = spark.newSession()
    session.conf.set(name, other)
    for _ in range(2):
        profile(session, SMALL)
        excluded = (session.conf.get(name) or "").split(",")
        assert sorted(excluded) == [other, "org.apache.spark.sql.catalyst.optimizer.ConstantPropagation"]
