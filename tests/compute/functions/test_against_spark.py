"""Every rendering in Spark SQL gives what the Python evaluation gives, and NULL where that fails."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from everview.compute.engine.spark.python_calls import run_sql
from everview.compute.engine.spark.scalar import render_call
from everview.compute.functions.contract import Failure, Function
from everview.compute.functions.naming import short_name
from everview.compute.functions.registry import AGGREGATES, FUNCTIONS, TABLES
from everview.compute.functions.spark_sql import SETTINGS, NotOnSpark, quoted, render, spark_type
from everview.compute.ir.types import INT4, TEXT, TIMESTAMP, Interval, Kind, SqlType, array_of, arrow_type
from tests.compute.functions.samples import LITERAL, Case, cases
from tests.compute.functions.sets import groups, table_calls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EXPRESSIONS_MAX = 60  # in one statement
# Arrays are cast by element, and the elements' casts are all here.
SOME_ARRAYS = ("int4[]", "text[]", "numeric[]", "timestamp[]", "interval[]")
APPROXIMATE = {
    "cbrt",
    "exp",
    "ln",
    "log",
    "log10",
    "power",
    "pow",
    "^",
    "sin",
    "cos",
    "tan",
    "atan",
    "degrees",
    "radians",
}


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    own = spark.newSession()
    for name, value in {
        **SETTINGS,
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }.items():
        own.conf.set(name, value)
    yield own


def value_of(found: Any, sql_type: SqlType) -> Any:
    """A value as Spark gives it, in our representation."""
    if found is None:
        return None
    if sql_type.kind is Kind.INTERVAL:
        return Interval(found["months"], found["days"], found["micros"])
    if sql_type == array_of(TIMESTAMP):  # as Arrow, PySpark gives a zone to timestamps in arrays that have none
        return [each and each.replace(tzinfo=None) for each in found]
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        return [value_of(each, sql_type.element) for each in found]
    return found


def same(one: Any, other: Any, *, approximate: bool) -> bool:
    """Whether two values are the same, NaN too."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            same(a, b, approximate=approximate) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=1e-12) if approximate else repr(one) == repr(other)
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        if approximate:
            return math.isclose(one, other, rel_tol=1e-12)
        return one.as_tuple() == other.as_tuple()
    if isinstance(one, datetime) and isinstance(other, datetime):
        return one == other and (one.tzinfo is None) == (other.tzinfo is None)
    return type(one) is type(other) and one == other


def plain(value: Any) -> Any:
    """A value as Arrow takes it."""
    if isinstance(value, Interval):
        return value._asdict()
    return [plain(each) for each in value] if isinstance(value, list) else value


@dataclass
class Column:
    """One expression, and the calls that it computes, with the row that each is in."""

    sql: str
    calls: list[tuple[int, Case]]


@dataclass
class Samples:
    """All arguments in one table: each combination of types has columns of its own, and rows from 0 on."""

    columns: list[Column] = field(default_factory=list)
    rows: dict[tuple[SqlType, ...], dict[str, tuple[int, tuple[Any, ...]]]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    def add(self, function: Function) -> None:
        """The calls of a function: one expression, or with literals one for each call."""
        literal = LITERAL.get(function.key.split("(")[0], ())
        together: dict[tuple[Any, ...], Column] = {}
        for case in cases(function):
            if literal and (
                isinstance(case.evaluate(), Failure)
                or None in [case.texts[at] for at in literal if at < len(case.texts)]
            ):
                continue  # refused when the view is made
            names = self.names(case.types)
            texts = [text if at in literal else None for at, text in enumerate(case.texts)]
            args = [
                name if text is None else text if each is INT4 else quoted(text)
                for name, text, each in zip(names, texts, case.types, strict=True)
            ]
            try:
                sql = render_call(function, args, case.types, case.result)
            except NotOnSpark:
                self.missing.add(function.key)
                continue
            column = together.setdefault((case.types, case.result, *texts), Column(sql, []))
            column.calls.append((self.row(case), case))
        self.columns += together.values()

    def names(self, types: tuple[SqlType, ...]) -> list[str]:
        """The columns of a combination of types."""
        self.rows.setdefault(types, {})
        place = list(self.rows).index(types)
        return [f"g{place}_{at}" for at in range(len(types))]

    def row(self, case: Case) -> int:
        """The row in which the arguments of a call are."""
        rows = self.rows[case.types]
        return rows.setdefault(repr(case.values), (len(rows), case.values))[0]

    def table(self) -> pa.Table:
        """All of it; what a combination has no row for is NULL."""
        height = max(map(len, self.rows.values()))
        arrays, names = [pa.array(range(height), pa.int64())], ["n"]
        for types, rows in self.rows.items():
            for at, (name, each) in enumerate(zip(self.names(types), types, strict=True)):
                values = [plain(row[at]) for _, row in rows.values()]
                arrays.append(pa.array(values + [None] * (height - len(values)), arrow_type(each)))
                names.append(name)
        return pa.table(arrays, names=names)


def test_functions(session: SparkSession) -> None:
    samples = Samples()
    for function in FUNCTIONS.values():
        if function.volatile or function.name.startswith("parameter "):  # those of prepared plans, if any are loaded
            continue
        if function.name != "cast" or "[]" not in function.key or short_name(function.args[0]) in SOME_ARRAYS:
            samples.add(function)
    assert {key.split("(")[0] for key in samples.missing} == {"format"}  # NULL of it need not be a failure
    everything = samples.table()
    kinds = {name: each for types in samples.rows for name, each in zip(samples.names(types), types, strict=True)}
    wrong = []
    for start in range(0, len(samples.columns), EXPRESSIONS_MAX):
        some = samples.columns[start : start + EXPRESSIONS_MAX]
        used = sorted({name for column in some for name in re.findall(r"\bg\d+_\d+\b", column.sql)})
        typed = [f"cast({name} as {spark_type(kinds[name])}) AS {name}" for name in used]
        frame = session.createDataFrame(everything.select(["n", *used]))
        frame.selectExpr("n", *typed).createOrReplaceTempView("samples")
        wrong += differences(session, some)
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:400])


def differences(session: SparkSession, columns: list[Column]) -> list[str]:
    """What differs between Spark and Python."""
    selected = ", ".join(f"{column.sql} AS r{at}" for at, column in enumerate(columns))
    try:
        answer = run_sql(session, f"SELECT n, {selected} FROM samples ORDER BY n").toArrow()
    except Exception as error:
        if len(columns) == 1:
            return [f"{columns[0].calls[0][1].function.key}: {str(error)[:300]} {columns[0].sql[:200]}"]
        half = len(columns) // 2
        return differences(session, columns[:half]) + differences(session, columns[half:])
    wrong = []
    for at, column in enumerate(columns):
        wrong += representation(
            column.calls[0][1].function.key, answer.schema.field(f"r{at}"), column.calls[0][1].result
        )
        try:
            found = answer.column(f"r{at}").to_pylist()
        except OverflowError as error:
            wrong.append(f"{column.calls[0][1].function.key}: {error}")
            continue
        wrong += [line for place, case in column.calls if (line := difference(case, found[place]))]
    return wrong


def representation(key: str, found: pa.Field, sql_type: SqlType) -> list[str]:
    """Whether a decimal, or an array of such, has other digits than its type."""
    number = sql_type.element or sql_type
    given = found.type.value_type if sql_type.element else found.type
    if number.kind is not Kind.NUMERIC or given == arrow_type(number):
        return []
    return [f"{key} is {given}, and should be {arrow_type(number)}"]


def difference(case: Case, found: Any) -> str | None:
    """What differs in one call."""
    ours, theirs, fails = case.evaluate(), value_of(found, case.result), case.function.fails
    if isinstance(ours, Failure):
        right = theirs is None and fails
        return None if right else f"{case.function.key} {case.texts}: {ours.sqlstate}, Spark {theirs!r}, {fails=}"
    if not same(ours, theirs, approximate=case.function.name in APPROXIMATE):
        return f"{case.function.key} {case.texts}: {ours!r}, Spark {theirs!r}"
    if ours is None and fails and None not in case.values:
        return f"{case.function.key} {case.texts}: NULL without a failure"
    return None


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
        arrays = [pa.array([plain(row[at]) for _, row in rows], arrow_type(each)) for at, each in enumerate(types)]
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
            found = answer.column(f"r{at}").to_pylist()
            answers[types, result, key] = dict(zip(numbers, found, strict=True))
    for group, number, ours in expected:
        theirs = value_of(answers[group.types, group.result, group.aggregate.key][number], group.result)
        rough = Kind.FLOAT4 in [each.kind for each in group.types] or Kind.FLOAT8 in [each.kind for each in group.types]
        if not same(ours, theirs, approximate=rough):
            wrong.append(f"{group.aggregate.key} {group.rows}: {ours!r}, Spark {theirs!r}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:60])


def test_table_functions(session: SparkSession) -> None:
    wrong, columns, frames = [], [], []
    for function in TABLES.values():
        if function.volatile:  # those that look into a catalog, if any are loaded
            continue
        for made in table_calls(function):
            literal = range(1, len(made.types)) if function.name.startswith("regexp") else ()
            place = len(columns)
            names = [f"t{place}_{at}" for at in range(len(made.types))]
            args = [
                quoted(text) if at in literal and text else name
                for at, (text, name) in enumerate(zip(made.texts, names, strict=True))
            ]
            columns.append((made, function.spark(args, made.types, made.columns)))
            frames += [(name, value, each) for name, value, each in zip(names, made.values, made.types, strict=True)]
    table = pa.table(
        [pa.array([plain(value)], arrow_type(each)) for _, value, each in frames], names=[name for name, _, _ in frames]
    )
    typed = [f"cast({name} as {spark_type(each)}) AS {name}" for name, _, each in frames]
    session.createDataFrame(table).selectExpr(*typed).createOrReplaceTempView("tables")
    for start in range(0, len(columns), EXPRESSIONS_MAX):
        some = columns[start : start + EXPRESSIONS_MAX]
        row = session.sql(
            "SELECT " + ", ".join(f"{sql} AS r{at}" for at, (_, sql) in enumerate(some)) + " FROM tables"
        ).toArrow()
        for at, (made, _) in enumerate(some):
            found = row.column(f"r{at}").to_pylist()[0]
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
