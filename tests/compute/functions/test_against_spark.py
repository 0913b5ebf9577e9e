"""Every rendering in Spark SQL gives what the Python evaluation gives, and NULL where that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from everview.compute.engine.spark.python_calls import run_sql
from everview.compute.engine.spark.scalar import render_table
from everview.compute.functions.contract import Failure
from everview.compute.functions.naming import short_name
from everview.compute.functions.plan_functions import PARAMETER
from everview.compute.functions.registry import AGGREGATES, FUNCTIONS, TABLES
from everview.compute.functions.spark_sql import render, spark_type
from everview.compute.ir.infinite import as_numbers, to_python
from everview.compute.ir.types import INT4, TEXT, Kind, SqlType, arrow_type
from everview.quoting import spark_literal
from tests.compute.functions.on_spark import EXPRESSIONS_MAX, Samples, plain, representation, same, value_of
from tests.compute.functions.sets import groups, table_calls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# Arrays are cast by element, and the elements' casts are all here.
SOME_ARRAYS = ("int4[]", "text[]", "numeric[]", "timestamp[]", "interval[]")


def test_functions(session: SparkSession) -> None:
    samples = Samples()
    for function in FUNCTIONS.values():
        if function.volatile or function.key == PARAMETER:
            continue
        if function.name != "cast" or "[]" not in function.key or short_name(function.args[0]) in SOME_ARRAYS:
            samples.add(function)
    assert {key.split("(")[0] for key in samples.missing} == {"format"}  # NULL of it need not be a failure
    wrong = samples.compared(session)
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:400])


def test_aggregates(session: SparkSession) -> None:
    expressions, expected = [], []
    frames: dict[tuple[SqlType, ...], list[tuple[int, tuple[Any, ...]]]] = {}
    wrong, number = [], 0
    for aggregate in AGGREGATES.values():
        for group in groups(aggregate):
            if aggregate.name in ("single", "some") or (
                aggregate.name == "jsonb_object_agg" and aggregate.args[1] not in (INT4, TEXT)
            ):
                continue
            ours = group.evaluate()
            if isinstance(ours, Failure) or not group.rows:
                continue
            number += 1
            frames.setdefault(group.types, []).extend((number, row) for row in group.values)
            expected.append((group, number, ours))
    answers: dict[tuple[tuple[SqlType, ...], SqlType, str], dict[int, Any]] = {}
    for place, (types, rows) in enumerate(frames.items()):
        names = [f"a{at}" for at in range(len(types))]
        arrays = [
            pa.array(as_numbers([plain(row[at]) for _, row in rows], arrow_type(each)), arrow_type(each))
            for at, each in enumerate(types)
        ]
        table = pa.table([pa.array([number for number, _ in rows], pa.int64()), *arrays], names=["n", *names])
        casts = [f"cast({name} as {spark_type(each)}) AS {name}" for name, each in zip(names, types, strict=True)]
        session.createDataFrame(table).selectExpr("n", *casts).createOrReplaceTempView(f"groups{place}")
        wanted = {(group.result, group.aggregate.key): group for group, _, _ in expected if group.types == types}
        expressions = [render(group.aggregate, names, types, group.result) for group in wanted.values()]
        selected = ", ".join(f"{sql} AS r{at}" for at, sql in enumerate(expressions))
        answer = session.sql(f"SELECT n, {selected} FROM groups{place} GROUP BY n").toArrow()
        numbers = answer.column("n").to_pylist()
        for at, (result, key) in enumerate(wanted):
            wrong += representation(key, answer.schema.field(f"r{at}"), result)
            found = to_python(answer.column(f"r{at}"))
            answers[types, result, key] = dict(zip(numbers, found, strict=True))
    for group, number, ours in expected:
        theirs = value_of(answers[group.types, group.result, group.aggregate.key][number], group.result)
        rough = Kind.FLOAT4 in [each.kind for each in group.types] or Kind.FLOAT8 in [each.kind for each in group.types]
        if not same(ours, theirs, approximate=rough):
            wrong.append(f"{group.aggregate.key} {group.rows}: {ours!r}, Spark {theirs!r}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:60])


def test_table_functions(session: SparkSession) -> None:
    wrong: list[str] = []
    columns: list[Any] = []
    frames: list[Any] = []
    for function in TABLES.values():
        if function.volatile:  # those that look into a catalog, if any are loaded
            continue
        for made in table_calls(function):
            literal = range(1, len(made.types)) if function.name.startswith("regexp") else ()
            place = len(columns)
            names = [f"t{place}_{at}" for at in range(len(made.types))]
            args = [
                spark_literal(text) if at in literal and text else name
                for at, (text, name) in enumerate(zip(made.texts, names, strict=True))
            ]
            columns.append((made, render_table(function, args, made.types, made.columns)))
            frames += [(name, value, each) for name, value, each in zip(names, made.values, made.types, strict=True)]
    table = pa.table(
        [pa.array(as_numbers([plain(value)], arrow_type(each)), arrow_type(each)) for _, value, each in frames],
        names=[name for name, _, _ in frames],
    )
    typed = [f"cast({name} as {spark_type(each)}) AS {name}" for name, _, each in frames]
    session.createDataFrame(table).selectExpr(*typed).createOrReplaceTempView("tables")
    for start in range(0, len(columns), EXPRESSIONS_MAX):
        some = columns[start : start + EXPRESSIONS_MAX]
        selected = ", ".join(f"{sql} AS r{at}" for at, (_, sql) in enumerate(some))
        row = run_sql(session, f"SELECT {selected} FROM tables").toArrow()
        for at, (made, _) in enumerate(some):
            found = to_python(row.column(f"r{at}"))[0]
            ours = made.evaluate()
            if isinstance(ours, Failure):
                if found is not None or not made.function.fails:
                    wrong.append(f"{made.function.key} {made.texts}: {ours.sqlstate}, Spark {found!r}")
                continue
            theirs = (
                None
                if found is None
                else [
                    tuple(naive(value_of(entry[f"c{place}"], each), each) for place, each in enumerate(made.columns))
                    for entry in found
                ]
            )
            if theirs is None or not same(
                [list(each) for each in ours], [list(each) for each in theirs], approximate=False
            ):
                wrong.append(f"{made.function.key} {made.texts}: {ours!r}, Spark {theirs!r}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:60])


def naive(value: Any, sql_type: SqlType) -> Any:
    """Without the zone that PySpark gives, as Arrow, to timestamps inside other types."""
    return value.replace(tzinfo=None) if sql_type.kind is Kind.TIMESTAMP and value is not None else value
