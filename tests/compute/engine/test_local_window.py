"""Window functions on the local engine: by example, and against SQLite on random rows and frames."""

from __future__ import annotations

import sqlite3
from collections import Counter
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Frame, Order, Relation, Window, WindowFunction
from everview.compute.ir.types import DATE, FLOAT8, INT4, INT8, Interval
from everview.compute.rows.collection import NegativeMultiplicity, Result, rows_of
from tests.compute.terms import DEFAULT, aggregate, asc, call, col, compare, desc, get, lit, window

ROWS = {(1, 10): 1, (2, 10): 2, (3, 20): 1, (4, None): 1}


def values(function: WindowFunction, order: Order | None = None) -> list[Any]:
    """The function's values over `ROWS`, in the order of the first column."""
    plan = Window(get(), (), (order or asc(col(1)),), (function,))
    result = evaluate(plan, {"t": ROWS})
    assert result.errors == {}
    pairs = sorted((row for row, count in result.rows.items() for _ in range(count)), key=lambda row: row[0])
    return [row[2] for row in pairs]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (window("row_number()", INT8), [1, 2, 3, 4, 5]),
        (window("rank()", INT8), [1, 1, 1, 4, 5]),
        (window("dense_rank()", INT8), [1, 1, 1, 2, 3]),
        (window("percent_rank()", FLOAT8), [0.0, 0.0, 0.0, 0.75, 1.0]),
        (window("cume_dist()", FLOAT8), [0.6, 0.6, 0.6, 0.8, 1.0]),
        (window("ntile(int4)", INT4, lit(2)), [1, 1, 1, 2, 2]),
        (window("ntile(int4)", INT4, lit(7)), [1, 2, 3, 4, 5]),
        (window("ntile(int4)", INT4, lit(None)), [None] * 5),
        (window("lag(any)", INT4, col(0)), [None, 1, 2, 2, 3]),
        (window("lag(any,int4,any)", INT4, col(0), lit(2), lit(-1)), [-1, -1, 1, 2, 2]),
        (window("lead(any,int4)", INT4, col(1), lit(3)), [20, None, None, None, None]),
        (window("lead(any,int4)", INT4, col(1), lit(None)), [None] * 5),
        (window("first_value(any)", INT4, col(0)), [1, 1, 1, 1, 1]),
        (window("last_value(any)", INT4, col(0)), [2, 2, 2, 3, 4]),
        (window("last_value(any)", INT4, col(0), frame=Frame("rows", None, -1)), [None, 1, 2, 2, 3]),
        (window("nth_value(any,int4)", INT4, col(0), lit(4)), [None, None, None, 3, 3]),
        (window("sum(int4)", INT8, col(0)), [5, 5, 5, 8, 12]),
        (window("sum(int4)", INT8, col(0), frame=Frame("rows", -1, 0)), [1, 3, 4, 5, 7]),
        (window("count()", INT8, frame=Frame("range", None, None)), [5] * 5),
        (window("count()", INT8, frame=Frame("range", None, None, "current row")), [4] * 5),
        (window("count()", INT8, frame=Frame("range", None, None, "group")), [2, 2, 2, 4, 4]),
        (window("count()", INT8, frame=Frame("range", None, None, "ties")), [3, 3, 3, 5, 5]),
        (window("count()", INT8, frame=Frame("groups", -1, 1)), [4, 4, 4, 5, 2]),
        (window("count()", INT8, frame=Frame("range", -10, 0)), [3, 3, 3, 4, 1]),
        (window("count()", INT8, filter=compare("gt", col(0), lit(1))), [2, 2, 2, 3, 4]),
    ],
    ids=lambda each: each.function if isinstance(each, WindowFunction) else "",
)
def test_functions(function: WindowFunction, expected: list[Any]) -> None:
    assert values(function) == expected


def test_range_follows_the_direction() -> None:
    function = window("count()", INT8, frame=Frame("range", 0, 10))
    assert values(function, desc(col(1))) == [3, 3, 3, 4, 1]


def test_range_over_dates_counts_in_intervals() -> None:
    schema = (DATE,)
    days = [date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 31), date(2024, 4, 1)]
    frame = Frame("range", Interval(-1, 0, 0), 0)
    plan = Window(get(schema=schema), (), (asc(col(0, DATE)),), (window("count()", INT8, frame=frame),))
    result = evaluate(plan, {"t": {(day,): 1 for day in days}})
    assert [result.rows.get((day, count)) for day, count in zip(days, [1, 2, 2, 2], strict=True)] == [1] * 4


def test_partitions() -> None:
    plan = Window(get(), (col(0),), (), (window("sum(int4)", INT8, col(1)), window("row_number()", INT8)))
    rows = {(1, 2): 2, (1, 3): 1, (None, 5): 1}
    expected = {(1, 2, 7, 1): 1, (1, 2, 7, 2): 1, (1, 3, 7, 3): 1, (None, 5, 5, 1): 1}
    assert evaluate(plan, {"t": rows}) == Result(expected, {})


def test_failures() -> None:
    plan: Relation = Window(get(width=1), (), (), (window("ntile(int4)", INT4, col(0)),))
    error = ("22014", "argument of ntile must be greater than zero")
    assert evaluate(plan, {"t": {(0,): 2}}) == Result({}, {error: 2})
    division = call("div(int4,int4)", lit(1), col(0))
    plan = Window(get(width=1), (), (asc(division),), (window("count()", INT8),))
    zero = ("22012", "division by zero")
    assert evaluate(plan, {"t": {(0,): 2, (1,): 1}}) == Result({(1, 1): 1}, {zero: 2})
    with pytest.raises(NegativeMultiplicity):
        evaluate(plan, {"t": {(1,): -1}})


OFFSETS = st.sampled_from([None, -2, -1, 0, 1, 2])
EXCLUDES = st.sampled_from([None, "current row", "group", "ties"])
SQL_FUNCTIONS = {
    "row_number": "row_number()",
    "rank": "rank()",
    "dense_rank": "dense_rank()",
    "percent_rank": "percent_rank()",
    "cume_dist": "cume_dist()",
    "ntile": "ntile(3)",
    "lag": "lag(c, 1)",
    "lead": "lead(c, 2)",
    "first_value": "first_value(c)",
    "last_value": "last_value(c)",
    "nth_value": "nth_value(c, 2)",
    "sum": "sum(c)",
    "count": "count(c)",
}
C = col(2)
OUR_FUNCTIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "ntile": ("ntile(int4)", (lit(3),)),
    "lag": ("lag(any,int4)", (C, lit(1))),
    "lead": ("lead(any,int4)", (C, lit(2))),
    "first_value": ("first_value(any)", (C,)),
    "last_value": ("last_value(any)", (C,)),
    "nth_value": ("nth_value(any,int4)", (C, lit(2))),
    "sum": ("sum(int4)", (C,)),
    "count": ("count(any)", (C,)),
}


def bound_sql(bound: int | None, *, start: bool) -> str:
    if bound is None:
        return f"UNBOUNDED {'PRECEDING' if start else 'FOLLOWING'}"
    return "CURRENT ROW" if bound == 0 else f"{abs(bound)} {'PRECEDING' if bound < 0 else 'FOLLOWING'}"


def by_sqlite(rows: list[tuple[Any, ...]], order: str, frame: Frame, function: str) -> list[tuple[Any, ...]]:
    bounds = f"BETWEEN {bound_sql(frame.start, start=True)} AND {bound_sql(frame.end, start=False)}"
    exclude = f"EXCLUDE {frame.exclude}" if frame.exclude else ""
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE t (a INT, b INT, c INT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        window_sql = f"PARTITION BY a ORDER BY {order} {frame.unit} {bounds} {exclude}"
        return connection.execute(f"SELECT a, b, c, {SQL_FUNCTIONS[function]} OVER ({window_sql}) FROM t").fetchall()


small = st.sampled_from([None, 0, 1, 2, 5])


@given(
    rows=st.lists(st.tuples(st.sampled_from([0, 1]), small, small), max_size=12),
    unit=st.sampled_from(["rows", "range", "groups"]),
    start=OFFSETS,
    end=OFFSETS,
    exclude=EXCLUDES,
    descending=st.booleans(),
    nulls_first=st.booleans(),
    function=st.sampled_from(sorted(SQL_FUNCTIONS)),
)
def test_the_same_as_sqlite(
    *,
    rows: list[tuple[Any, ...]],
    unit: str,
    start: int | None,
    end: int | None,
    exclude: str | None,
    descending: bool,
    nulls_first: bool,
    function: str,
) -> None:
    if start is not None and end is not None and start > end:
        start, end = end, start
    frame = Frame(unit, start, end, exclude)
    direction = f"{'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
    order: tuple[Order, ...] = (Order(col(1), descending, nulls_first),)
    order_sql = f"b {direction}"
    by_position = unit == "rows" or function in ("row_number", "ntile", "lag", "lead") or function.endswith("_value")
    if by_position:  # there, which of two peers comes first shows; with the rest of the row behind there are none
        if unit == "range" and not {start, end} <= {None, 0}:
            rows = list({(a, b): (a, b, c) for a, b, c in rows}.values())
        else:
            order, order_sql = (*order, asc(col(0)), asc(C)), f"b {direction}, a NULLS LAST, c NULLS LAST"
    key, args = OUR_FUNCTIONS.get(function, (f"{function}()", ()))
    sql_type = aggregate(key, *args).type if function in ("sum", "count") else FLOAT8 if "_dist" in key else INT4
    if function == "percent_rank":
        sql_type = FLOAT8
    plan = Window(get(width=3), (col(0),), order, (WindowFunction(key, args, sql_type, frame),))
    result = evaluate(plan, {"t": rows_of([(row, 1) for row in rows], (INT4, INT4, INT4))})
    assert result.errors == {}
    assert Counter(result.rows) == Counter(by_sqlite(rows, order_sql, frame, function))


def test_the_default_frame_is_the_peers_and_all_before() -> None:
    assert Frame("range", None, 0) == DEFAULT
