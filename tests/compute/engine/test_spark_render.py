"""What plans look like as Spark SQL; no Spark is needed for that."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from everview.compute.engine.contract import NotSupported
from everview.compute.engine.spark.canceled_tasks import CANCELED
from everview.compute.engine.spark.engine import statement_of
from everview.compute.engine.spark.literal import render_literal
from everview.compute.engine.spark.render import render_steps
from everview.compute.engine.spark.window import attach
from everview.compute.functions.registry import AGGREGATES
from everview.compute.ir.relation import (
    Filter,
    FlatMap,
    Frame,
    Join,
    Let,
    Map,
    Negate,
    Order,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
    Window,
)
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
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Interval,
    SqlType,
    array_of,
    numeric,
)
from tests.compute.terms import aggregate, asc, col, compare, constant, desc, get, lit, window

VIEWS = {"t": "view_t", "u": "view_u"}


def rendered(plan: Relation) -> str:
    """The statement in one line."""
    return " ".join(statement_of(plan, VIEWS).split()).replace("( ", "(").replace(" )", ")")


PLANS: dict[str, tuple[Relation, str]] = {
    "project": (
        Project(get(width=3), (2, 0)),
        "SELECT c0, c1, sum(_diff) AS _diff FROM (SELECT c2 AS c0, c0 AS c1, _diff FROM view_t)"
        " GROUP BY c0, c1 HAVING sum(_diff) <> 0",
    ),
    "a scalar that reads the one before it": (
        Threshold(Map(get(width=1), (compare("eq", col(0), lit(1)), compare("eq", col(0), lit(2)), col(1, BOOLEAN)))),
        "SELECT c0, c1, c2, c3, _diff FROM (SELECT c0, c1, c2, c3, sum(_diff) AS _diff FROM (SELECT c0, c1, c2,"
        " c1 AS c3, _diff FROM (SELECT c0, (c0 = 1) AS c1, (c0 = 2) AS c2, _diff FROM view_t)) GROUP BY c0, c1, c2, c3"
        " HAVING sum(_diff) > 0)",
    ),
    "join": (
        Threshold(Join((get(), get("u"), get("u")), ((col(0), col(2)),), ((col(1), col(4)),))),
        "SELECT c0, c1, c2, c3, c4, c5, _diff FROM (SELECT c0, c1, c2, c3, c4, c5, sum(_diff) AS _diff FROM (SELECT"
        " j0.c0 AS c0, j0.c1 AS c1, j1.c0 AS c2, j1.c1 AS c3, j2.c0 AS c4, j2.c1 AS c5,"
        " j0._diff * j1._diff * j2._diff AS _diff FROM view_t AS j0 JOIN view_u AS j1 ON j0.c0 = j1.c0"
        " JOIN view_u AS j2 ON j0.c1 <=> j2.c0) GROUP BY c0, c1, c2, c3, c4, c5 HAVING sum(_diff) > 0)",
    ),
    "sums need no consolidated input": (
        Reduce(get(), (col(0),), (aggregate("count()"),)),
        "SELECT c0, c1, _diff FROM (SELECT k0 AS c0, sum(_diff) AS c1, 1L AS _diff FROM (SELECT c0 AS k0, _diff"
        " FROM view_t) GROUP BY k0 HAVING sum(_diff) > 0)",
    ),
    "extremes do": (
        Reduce(get(), (col(0),), (aggregate("max(int4)", col(1)),)),
        "SELECT c0, c1, _diff FROM (SELECT k0 AS c0, max(x0) AS c1, 1L AS _diff FROM (SELECT k0, x0, sum(_diff)"
        " AS _diff FROM (SELECT c0 AS k0, c1 AS x0, _diff FROM view_t) GROUP BY k0, x0 HAVING sum(_diff) > 0)"
        " GROUP BY k0 HAVING sum(_diff) > 0)",
    ),
    "top": (
        TopK(Reduce(get(width=1), (col(0),)), (), (desc(col(0)),), 2, 1),
        "SELECT c0, _diff FROM (SELECT c0, least(stop, 3L) - greatest(stop - _diff, 1L) AS _diff FROM (SELECT c0,"
        " _diff, sum(_diff) OVER (ORDER BY c0 DESC NULLS FIRST, c0 ASC NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND"
        " CURRENT ROW) AS stop FROM (SELECT k0 AS c0, 1L AS _diff FROM (SELECT c0 AS k0, _diff FROM view_t) GROUP BY k0"
        " HAVING sum(_diff) > 0)) WHERE least(stop, 3L) - greatest(stop - _diff, 1L) > 0)",
    ),
    "let": (
        Let("x", Filter(get(width=1), (compare("gt", col(0), lit(1)),)), Union((get("x", 1), Negate(get("x", 1))))),
        "WITH let0 AS (SELECT c0, _diff FROM view_t AS s WHERE (c0 > 1)) SELECT c0, sum(_diff) AS _diff FROM (SELECT"
        " c0, _diff FROM let0 UNION ALL SELECT c0, -_diff AS _diff FROM let0) GROUP BY c0 HAVING sum(_diff) <> 0",
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_one_statement(name: str) -> None:
    plan, statement = PLANS[name]
    assert rendered(plan) == statement


@pytest.mark.parametrize(
    ("value", "sql_type", "written"),
    [
        (None, INT4, "cast(NULL as int)"),
        (True, BOOLEAN, "true"),
        (-1, INT2, "(-1S)"),
        (7, INT8, "7L"),
        (float("nan"), FLOAT8, "cast('NaN' as double)"),
        (-0.5, FLOAT4, "cast('-0.5' as float)"),
        (Decimal("1.50"), numeric(10, 2), "cast('1.50' as decimal(18,2))"),
        (Decimal("1.50"), numeric(19, 2), "cast('1.50' as decimal(38,2))"),
        (Decimal("1.5").quantize(Decimal("1e-18")), numeric(), "cast('1.500000000000000000' as decimal(38,18))"),
        ("it's \\ a", TEXT, "'it\\'s \\\\ a'"),
        (b"\x00\xff", BYTEA, "X'00ff'"),
        (date(33, 1, 2), DATE, "DATE '0033-01-02'"),
        (datetime(2024, 1, 2, 3, 4, 5, 6), TIMESTAMP, "TIMESTAMP_NTZ '2024-01-02 03:04:05.000006'"),
        (datetime(2024, 1, 2, tzinfo=UTC), TIMESTAMPTZ, "TIMESTAMP '2024-01-02 00:00:00+00:00'"),
        (Interval(1, -2, 3), INTERVAL, "named_struct('months', 1, 'days', -2, 'micros', 3L)"),
        ([1, None], array_of(INT4), "cast(array(1, cast(NULL as int)) as array<int>)"),
        ([], array_of(TEXT), "cast(array() as array<string>)"),
    ],
)
def test_literals_have_their_type(value: Any, sql_type: SqlType, written: str) -> None:
    assert render_literal(value, sql_type) == written


def test_a_frame_that_spark_has_not_is_refused_by_name() -> None:
    frame = Frame("rows", None, None, exclude="ties")
    plan = Window(get(), (), (asc(col(0)),), (window("count()", INT8, frame=frame),))
    with pytest.raises(NotSupported, match="a window frame with EXCLUDE TIES has no equivalent on spark"):
        statement_of(plan, VIEWS)


def test_the_order_of_jsonb_is_refused_by_name() -> None:
    with pytest.raises(NotSupported, match="the order of jsonb"):
        statement_of(TopK(get(schema=[JSONB]), (), (Order(col(0, JSONB)),), 1), VIEWS)


def test_a_window_goes_behind_every_aggregate_of_a_rendering() -> None:
    assert attach("try_divide(try_sum(x0), count(coalesce(x0, (1))))", "OVER w") == (
        "try_divide(try_sum(x0) OVER w, count(coalesce(x0, (1))) OVER w)"
    )
    assert attach("array_max(transform(a, e -> e))", "OVER w") == "array_max(transform(a, e -> e))"


def test_every_aggregate_has_a_window_behind_it() -> None:
    written = [each for each in AGGREGATES.values() if isinstance(each.spark, str)]
    assert len(written) > 20
    for each in written:
        assert isinstance(each.spark, str)
        rendered = each.spark.format("x0", "x1", "x2", args="x0")
        assert attach(rendered, "OVER w").count("OVER w") > 0, each.key


@pytest.mark.parametrize("columns", [(0, 1), (2, 1), (1, 2)])
def test_what_keeps_a_key_is_not_consolidated_again(columns: tuple[int, ...]) -> None:
    grouped = Reduce(get(width=1), (col(0),), (aggregate("count()"),))
    copied = Map(grouped, (col(0),))
    assert "sum(_diff) AS _diff" not in rendered(Project(copied, columns))
    assert "sum(_diff) AS _diff" in rendered(Project(copied, (1, 1)))


def test_a_constant_names_its_columns() -> None:
    assert "VALUES (1, 'a', 1L) AS v(c0, c1, _diff)" in rendered(constant((1, "a")))
    assert rendered(constant(schema=[INT4])).startswith(
        "SELECT c0, _diff FROM (SELECT cast(NULL as int) AS c0, 0L AS _diff"
    )


@pytest.mark.parametrize("single", [False, True])
def test_rows_ask_whether_their_task_is_canceled_before_they_are_multiplied(single: bool) -> None:
    join = Join((get(), get("u"), get("u")), ((col(0), col(2)),), ((col(1), col(4)),))
    flat = FlatMap(get(), "generate_series(int4,int4)", (col(0), col(1)), (INT4,))
    for plan, count in ((join, 4), (flat, 1), (Threshold(get()), 0)):
        statements = [
            render_steps([("s", plan)], ["s"], VIEWS, single=single, asking=asking)[0] for asking in (False, True)
        ]
        assert [each.count(CANCELED) for each in statements] == [0, count]


def test_what_asks_reads_no_column_that_is_equal_to_another() -> None:
    """Spark would derive the same of the other, and of that one of the next."""
    chain = tuple((col(2 * number), col(2 * number + 2)) for number in range(3))
    statement, _ = render_steps([("s", Join((get(),) * 4, chain))], ["s"], VIEWS, asking=True)
    asked = set(re.findall(r"hash\(([^)]*)\)", statement))
    assert asked == {
        "j0.c1, j0._diff",
        *(f"j{number}._diff, j{number}.c1" for number in (1, 2, 3)),
        "j0.c1, j1.c1",
        "j0.c1, j2.c1",
    }
