"""Every rendering in Spark SQL gives what the Python evaluation gives, and NULL where that fails."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from everview.compute.functions.contract import Failure, Function
from everview.compute.functions.registry import FUNCTIONS
from everview.compute.functions.spark_sql import SETTINGS, NotOnSpark, quoted, render
from everview.compute.ir.types import Interval, Kind, SqlType, arrow_type
from tests.compute.functions.samples import LITERAL, Case, cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOT_ON_SPARK = {
    *("lt", "le", "gt", "ge", "greatest", "least"),  # of jsonb
    *("json_contains", "json_within", "jsonb_strip_nulls", "jsonb_set", "format"),
}
EXPRESSIONS_MAX = 24  # in one statement
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


def groups() -> dict[tuple[SqlType, ...], list[list[Case]]]:
    """Calls of functions, together by the types of their arguments."""
    found: dict[tuple[SqlType, ...], list[list[Case]]] = {}
    for function in FUNCTIONS.values():
        by_types: dict[tuple[SqlType, ...], list[Case]] = {}
        for case in cases(function):
            by_types.setdefault(case.types, []).append(case)
        for types, together in by_types.items():
            found.setdefault(types, []).append(together)
    return found


def rendered(function: Function, args: Sequence[str], case: Case) -> str | None:
    try:
        return render(function, args, case.types, case.result)
    except NotOnSpark:
        return None


def test_functions(session: SparkSession) -> None:
    wrong: list[str] = []
    missing: set[str] = set()
    for types, sets in groups().items():
        rows: dict[tuple[Any, ...], int] = {}
        columns: list[tuple[str, list[Case], list[int]]] = []
        for together in sets:
            function = together[0].function
            literal = LITERAL.get(function.key.split("(")[0])
            if literal:
                for case in together:
                    args = [
                        quoted(case.texts[at]) if at in literal and case.texts[at] is not None else f"a{at}"
                        for at in range(len(types))
                    ]  # type: ignore[arg-type]
                    sql = rendered(function, args, case) if not isinstance(case.evaluate(), Failure) else None
                    if sql:
                        columns.append((sql, [case], [rows.setdefault(_key(case), len(rows))]))
                continue
            sql = rendered(function, [f"a{at}" for at in range(len(types))], together[0])
            if sql is None:
                missing.add(function.key)
                continue
            columns.append((sql, together, [rows.setdefault(_key(case), len(rows)) for case in together]))
        wrong += compare(session, types, [values for _, values in rows], columns) if rows else []
    unexpected = {key for key in missing if key.split("(")[0] not in NOT_ON_SPARK and not key.startswith("cast(")}
    assert not unexpected
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:400])


class _key(tuple[str, tuple[Any, ...]]):
    """A row of arguments, equal by what it shows."""

    def __new__(cls, case: Case) -> _key:
        return super().__new__(cls, (repr(case.values), case.values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _key) and self[0] == other[0]

    def __hash__(self) -> int:
        return hash(self[0])


def compare(
    session: SparkSession,
    types: tuple[SqlType, ...],
    rows: list[tuple[Any, ...]],
    columns: list[tuple[str, list[Case], list[int]]],
) -> list[str]:
    """What differs between Spark and Python."""
    names = [f"a{at}" for at in range(len(types))]
    arrays = [pa.array([plain(row[at]) for row in rows], arrow_type(each)) for at, each in enumerate(types)]
    table = pa.table([pa.array(range(len(rows)), pa.int64()), *arrays], names=["n", *names])
    session.createDataFrame(table).createOrReplaceTempView("samples")
    wrong = []
    for start in range(0, len(columns), EXPRESSIONS_MAX):
        wrong += _compare_some(session, columns[start : start + EXPRESSIONS_MAX])
    return wrong


def _compare_some(session: SparkSession, columns: list[tuple[str, list[Case], list[int]]]) -> list[str]:
    selected = ", ".join(f"{sql} AS r{at}" for at, (sql, _, _) in enumerate(columns))
    try:
        answer = session.sql(f"SELECT n, {selected} FROM samples ORDER BY n").toArrow()
    except Exception as error:
        if len(columns) == 1:
            return [f"{columns[0][1][0].function.key}: {str(error)[:300]}"]
        return [line for column in columns for line in _compare_some(session, [column])]
    wrong = []
    for at, (sql, together, places) in enumerate(columns):
        found = answer.column(f"r{at}").to_pylist()
        for case, place in zip(together, places, strict=True):
            ours, theirs = case.evaluate(), value_of(found[place], case.result)
            if isinstance(ours, Failure):
                if theirs is not None or not case.function.fails:
                    wrong.append(
                        f"{case.function.key} {case.texts}: {ours.sqlstate}, Spark {theirs!r}, fails={case.function.fails}"
                    )
            elif not same(ours, theirs, approximate=case.function.name in APPROXIMATE):
                wrong.append(f"{case.function.key} {case.texts}: {ours!r}, Spark {theirs!r}")
            elif ours is None and case.function.fails and None not in case.values:
                wrong.append(f"{case.function.key} {case.texts}: NULL without a failure")
    return wrong
