"""What the tests of passes share: a plan before and the text of the plan after, and short names for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from everview.compute.ir.relation import (
    Constant,
    FlatMap,
    Relation,
)
from everview.compute.ir.scalar import Call
from everview.compute.ir.types import BOOLEAN, INT4, INT8
from tests.compute.terms import aggregate, call, col, compare, get, lit, window


class Pair(NamedTuple):
    """What the test is about, the pass, the plan before and the text of the plan after."""

    about: str
    rewrite: Callable[[Relation], Relation]
    before: Relation
    after: str


T, U, V = get("t"), get("u"), get("v")
NONE = Constant((), (INT4, INT4))
A, B, C, D = (col(index) for index in range(4))
A1 = compare("gt", A, lit(1))
B1 = compare("gt", B, lit(1))
C1 = compare("gt", C, lit(1))
NULL = lit(None, BOOLEAN)
SAFE_SUM = call("bit_or(int4,int4)", A, B)
DIVISION = call("div(int4,int4)", A, B)
DIVIDES = compare("gt", DIVISION, lit(1))
ZERO = call("div(int4,int4)", lit(1), lit(0))
COUNT = aggregate("count()")
RANK = window("rank()", INT8)
SERIES = FlatMap(T, "generate_series(int4,int4)", (lit(1), A), (INT4,))


def eq(left: int, right: int) -> Call:
    return compare("eq", col(left), col(right))
