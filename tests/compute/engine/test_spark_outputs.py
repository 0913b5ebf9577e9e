"""Several outputs of one statement: what they share is computed once, and each is what it would be alone."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from everview.compute.delta.program import updates_of
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.outputs import layout
from everview.compute.engine.spark.render import render_steps
from everview.compute.engine.spark.session import profiles
from everview.compute.functions.resolve import call
from everview.compute.ir.relation import Filter, Get, Join, Map, Negate, Project, Relation, Union, types
from everview.compute.ir.scalar import Case, Column, Literal, Scalar
from everview.compute.ir.types import BOOLEAN, INT8, numeric
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = (INT8, INT8)
T, U = Get("t", ROW), Get("u", ROW)
A, B = Column(0, INT8), Column(1, INT8)
JOINED = Join((T, U), ((A, Column(2, INT8)),))
HEAVY = ("heavy", Project(JOINED, (0, 1, 3)))
_HEAVY = Get("heavy", (INT8, INT8, INT8))


def number(value: int) -> Literal:
    return Literal(value, INT8)


def positive(column: Scalar) -> Scalar:
    return call(">", column, number(0))


CASES: dict[str, list[tuple[str, Relation]]] = {
    "a filter over what is an output too": [HEAVY, ("some", Filter(_HEAVY, (positive(B),)))],
    "moments and their updates": [
        HEAVY,
        ("moments", Map(_HEAVY, (Case(((positive(B), A),), Literal(None, INT8), INT8),))),
        ("updates", updates_of(Get("moments", (INT8, INT8, INT8, INT8)))),
    ],
    "both signs of the same rows": [HEAVY, ("nothing", Union((_HEAVY, Negate(_HEAVY)))), ("back", Negate(_HEAVY))],
    "two filters, and rows that pass neither": [
        HEAVY,
        ("low", Filter(_HEAVY, (call("<", B, number(-1)),))),
        ("high", Filter(_HEAVY, (call(">", B, number(1)),))),
    ],
    "two passes over one input": [
        ("first", Filter(T, (positive(A),))),
        ("second", Map(Project(T, (1,)), (call("+", A, number(1)),))),
    ],
    "what is never NULL, in some rows only": [
        HEAVY,
        ("ones", Map(Project(Filter(_HEAVY, (positive(B),)), ()), (number(1),))),
        (
            "counts",
            Map(Filter(_HEAVY, (call("is not null", B),)), (Case(((positive(B), number(1)),), number(0), INT8),)),
        ),
    ],
    "a condition that is a column": [
        ("kept", Filter(Map(T, (call("is null", B),)), (Column(2, BOOLEAN),))),
        ("all", Filter(U, (Literal(True, BOOLEAN),))),
    ],
    "what is used again and again": [
        HEAVY,
        ("twice", Map(_HEAVY, (call("+", A, B),))),
        ("squared", Map(Get("twice", (INT8,) * 4), (call("*", Column(3, INT8), Column(3, INT8)),))),
    ],
    "numbers of several scales": [
        HEAVY,
        ("cents", Map(_HEAVY, (Literal(Decimal("0.25"), numeric(3, 2)),))),
        ("whole", Map(_HEAVY, (Literal(Decimal("7"), numeric(38, 0)),))),
    ],
}
INPUTS = {
    "t": rows_to_arrow({(1, 1): 1, (1, -2): 2, (2, None): 1, (3, 2): -1, (None, 5): 1}, ROW),
    "u": rows_to_arrow({(1, 10): 1, (2, 20): 1, (3, 30): 2}, ROW),
}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES)
def test_what_outputs_share_is_said_once(steps: list[tuple[str, Relation]]) -> None:
    statement, _ = render_steps(steps, [name for name, _ in steps], {"t": "t", "u": "u"})
    assert statement.count(" JOIN ") <= 1
    assert statement.count("step_0") <= 2, "where it is made, and where it is read"


@pytest.mark.spark
@pytest.mark.parametrize("steps", CASES.values(), ids=CASES)
def test_each_is_what_it_would_be_alone(steps: list[tuple[str, Relation]], spark: SparkSession) -> None:
    ours, theirs = SparkEngine(profiles(spark).small), LocalEngine()
    names = [name for name, _ in steps]
    for outputs in (names, names[-1:], names[::-1]):
        found, expected = (engine.run_steps(steps, outputs, INPUTS) for engine in (ours, theirs))
        for name in outputs:
            schema = types(dict(steps)[name])
            assert rows_from_arrow(found[name], schema) == rows_from_arrow(expected[name], schema), name


def test_a_filter_stays_behind_what_can_fail() -> None:
    divided = ("divided", Map(T, (call("/", number(1), call("-", A, number(3))),)))
    steps: list[tuple[str, Relation]] = [
        divided,
        ("kept", Filter(Get("divided", (INT8,) * 3), (call("<", A, number(3)),))),
    ]
    assert [branch.base for branch in layout(steps, ["kept"]).branches] == ["kept"]


def test_scalars_do_not_grow_without_end() -> None:
    steps: list[tuple[str, Relation]] = [HEAVY]
    width, last = 3, "heavy"
    for place in range(20):
        doubled = call("+", Column(width - 1, INT8), Column(width - 1, INT8))
        steps.append((f"s{place}", Map(Get(last, (INT8,) * width), (doubled,))))
        last, width = f"s{place}", width + 1
    statement, _ = render_steps(steps, [last], {"t": "t", "u": "u"})
    assert len(statement) < 20_000
