"""Plans as text."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from everview.compute.ir.relation import (
    Constant,
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
    Threshold,
    TopK,
    Union,
    Window,
)
from everview.compute.ir.scalar import And, Case, Coalesce, Or
from everview.compute.ir.show import show, show_scalar
from everview.compute.ir.types import BOOLEAN, INT4, INT8, TEXT, Interval
from tests.compute.terms import aggregate, asc, call, col, compare, constant, desc, get, lit, window


def test_every_operator() -> None:
    joined = Join((get(), get("u")), ((col(0), col(2)),), ((col(1), col(3)),))
    filtered = Filter(joined, (compare("gt", col(1), lit(3)), Or((lit(True), lit(None, BOOLEAN)))))
    mapped = Map(Project(filtered, (0, 3)), (call("add(int4,int4)", col(0), lit(1)), col(2)))
    series = FlatMap(mapped, "generate_series(int4,int4)", (lit(1), col(0)), (INT4,))
    counted = Reduce(
        series,
        (col(0),),
        (
            aggregate("count()"),
            aggregate("sum(int4)", col(1), distinct=True, filter=compare("lt", col(2), lit(0))),
            aggregate("array_agg(int4)", col(1), order=(desc(col(2)),)),
        ),
    )
    best = TopK(Project(counted, (0,)), (0,), (asc(col(0)), Order(col(0), True, False)), 3, 1)
    frame = Frame("rows", -1, None, "ties")
    ranked = Window(
        best,
        (col(0),),
        (desc(col(0)),),
        (window("rank()", INT8), window("count()", INT8, frame=frame, filter=lit(True))),
    )
    distinct = Reduce(Threshold(Union((Negate(ranked), get("v", 3)))), (col(0), col(1)))
    plan = Let("l0", distinct, Join((get("l0", 2), Constant((((1,), 1), (("it's",), 2)), (TEXT,)))))
    assert (
        show(plan)
        == """\
Let l0 =
  Distinct by #0, #1
    Threshold
      Union
        Negate
          Window by #0 order by #0 desc nulls first: #1 = rank(), #2 = count() filter (true) \
rows between 1 preceding and unbounded following exclude ties
            TopK by #0 order by #0, #0 desc limit 3 offset 1
              Project #0
                Reduce by #0: count(*), sum(distinct #1) filter (lt(#2, 0)), array_agg(#1 order by #2 desc nulls first)
                  FlatMap #4 = generate_series(1, #0)
                    Map #2 = add(#0, 1), #3 = #2
                      Project #0, #3
                        Filter gt(#1, 3) and (true or null)
                          Join on #0 = #2 and #1 <=> #3
                            Get t
                            Get u
        Get v
Join
  Get l0
  Constant (1), ('it''s') x 2"""
    )


def test_long_and_empty_constants() -> None:
    assert show(Constant((), (INT4,))) == "Constant empty"
    assert show(constant(*((number,) for number in range(12)))).endswith("(9) and 2 more")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        (Decimal("1E+2"), "100"),
        (b"\x01", "'\\x01'"),
        (date(2024, 1, 2), "'2024-01-02'"),
        (datetime(2024, 1, 2, 3), "'2024-01-02 03:00:00'"),
        (Interval(1, 2, 3), "'1 months 2 days 3 us'"),
        ([1, None], "[1, null]"),
    ],
)
def test_values(value: Any, text: str) -> None:
    assert show_scalar(lit(value, INT4)) == text


def test_lazy_forms() -> None:
    branch = Case(((lit(True), lit(1)), (lit(False), lit(2))), lit(3), INT4)
    assert show_scalar(branch) == "case when true then 1 when false then 2 else 3 end"
    assert show_scalar(And((lit(True), lit(False)))) == "(true and false)"
    assert show_scalar(Coalesce((col(0), lit(1)), INT4)) == "coalesce(#0, 1)"


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (Frame("range", None, 0), ""),
        (Frame("groups", 0, 2), " groups between current row and 2 following"),
        (
            Frame("range", Interval(0, -1, 0), Interval(0, 1, 0)),
            " range between '0 months 1 days 0 us' preceding and '0 months 1 days 0 us' following",
        ),
    ],
)
def test_frames(frame: Frame, text: str) -> None:
    shown = show(Window(get(), (), (), (window("rank()", INT8, frame=frame),)))
    assert shown.splitlines()[0] == f"Window #2 = rank(){text}"
