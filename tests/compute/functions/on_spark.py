"""Calls of functions side by side in Spark SQL and in Python, and what differs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.compute.engine.spark.python_calls import run_sql
from everview.compute.engine.spark.scalar import render_call
from everview.compute.functions.contract import Failure, Function
from everview.compute.functions.mathematics import ROUGH
from everview.compute.functions.spark_sql import NotOnSpark, spark_type
from everview.compute.ir.infinite import Infinite, as_numbers, to_python
from everview.compute.ir.types import INT4, TIMESTAMP, Interval, Kind, SqlType, array_of, arrow_type
from everview.quoting import spark_literal
from tests.compute.functions.samples import LITERAL, Case, cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPRESSIONS_MAX = 60  # in one statement


def value_of(found: Any, sql_type: SqlType) -> Any:
    """A value as Spark gives it, in our representation."""
    if found is None:
        return None
    if sql_type.kind is Kind.INTERVAL:
        return Interval(found["months"], found["days"], found["micros"])
    if sql_type == array_of(TIMESTAMP):  # as Arrow, PySpark gives a zone to timestamps in arrays that have none
        return [each.replace(tzinfo=None) if isinstance(each, datetime) else each for each in found]
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
                name if text is None else text if each is INT4 else spark_literal(text)
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

    def add_columns(self, function: Function, calls: Sequence[Case]) -> None:
        """Calls of a function with the same types, in one expression over columns alone."""
        first = calls[0]
        try:
            sql = render_call(function, self.names(first.types), first.types, first.result)
        except NotOnSpark:
            self.missing.add(function.key)
            return
        self.columns.append(Column(sql, [(self.row(case), case) for case in calls]))

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
                values = as_numbers([plain(row[at]) for _, row in rows.values()], arrow_type(each))
                arrays.append(pa.array([*values, *[None] * (height - len(values))], arrow_type(each)))
                names.append(name)
        return pa.table(arrays, names=names)

    def compared(self, session: SparkSession) -> list[str]:
        """What differs between Spark and Python."""
        everything = self.table()
        kinds = {name: each for types in self.rows for name, each in zip(self.names(types), types, strict=True)}
        wrong = []
        for start in range(0, len(self.columns), EXPRESSIONS_MAX):
            some = self.columns[start : start + EXPRESSIONS_MAX]
            used = sorted({name for column in some for name in re.findall(r"\bg\d+_\d+\b", column.sql)})
            typed = [f"cast({name} as {spark_type(kinds[name])}) AS {name}" for name in used]
            frame = session.createDataFrame(everything.select(["n", *used]))
            frame.selectExpr("n", *typed).createOrReplaceTempView("samples")
            wrong += differences(session, some)
        return wrong


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
            found = to_python(answer.column(f"r{at}"))
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
    if not same(ours, theirs, approximate=case.function.name in ROUGH):
        return f"{case.function.key} {case.texts}: {ours!r}, Spark {theirs!r}"
    named = case.function.name in ("extract", "date_part") and isinstance(case.values[-1], Infinite)
    if ours is None and fails and None not in case.values and not named:
        return f"{case.function.key} {case.texts}: NULL without a failure"
    return None
