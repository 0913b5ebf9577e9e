"""Passes that leave things out, on plans small enough to read: the plan before, and as text the plan after."""

from __future__ import annotations

import pytest

from everview.compute.ir.relation import (
    Filter,
    Join,
    Let,
    Map,
    Negate,
    Project,
    Reduce,
    Threshold,
    TopK,
    Union,
)
from everview.compute.ir.scalar import And, Case, Coalesce, Or
from everview.compute.ir.show import show
from everview.compute.ir.types import INT4
from everview.compute.optimize.fold_constants import fold_constants
from everview.compute.optimize.fuse import fuse
from everview.compute.optimize.lets import inline_lets
from everview.compute.optimize.remove_empty import remove_empty
from everview.compute.optimize.simplify_distinct import simplify_distinct
from tests.compute.optimize.pairs import (
    A1,
    B1,
    COUNT,
    DIVIDES,
    DIVISION,
    NONE,
    NULL,
    ZERO,
    A,
    B,
    C,
    Pair,
    T,
    U,
    V,
)
from tests.compute.terms import call, constant, get, lit

PAIRS = [
    # fold_constants
    Pair("calls of literals", fold_constants, Map(T, (call("add(int4,int4)", lit(1), lit(2)),)), "Map #2 = 3\n  Get t"),
    Pair("what fails stays", fold_constants, Map(T, (ZERO,)), "Map #2 = div(1, 0)\n  Get t"),
    Pair(
        "strict of null", fold_constants, Map(T, (call("bit_or(int4,int4)", A, lit(None)),)), "Map #2 = null\n  Get t"
    ),
    Pair(
        "not if another argument fails",
        fold_constants,
        Map(T, (call("bit_or(int4,int4)", DIVISION, lit(None)),)),
        "Map #2 = bit_or(div(#0, #1), null)\n  Get t",
    ),
    Pair(
        "and",
        fold_constants,
        Map(T, (And((A1, lit(True), And((B1, A1)))),)),
        "Map #2 = (gt(#0, 1) and gt(#1, 1))\n  Get t",
    ),
    Pair("and false", fold_constants, Map(T, (And((A1, lit(False), DIVIDES)),)), "Map #2 = false\n  Get t"),
    Pair(
        "and false after what fails",
        fold_constants,
        Map(T, (And((DIVIDES, lit(False), A1)),)),
        "Map #2 = (gt(div(#0, #1), 1) and false)\n  Get t",
    ),
    Pair(
        "or",
        fold_constants,
        Map(T, (Or((lit(False), A1)), Or((A1, lit(True))))),
        "Map #2 = gt(#0, 1), #3 = true\n  Get t",
    ),
    Pair(
        "case",
        fold_constants,
        Map(T, (Case(((NULL, A), (A1, B), (lit(True), lit(7)), (B1, A)), lit(8), INT4),)),
        "Map #2 = case when gt(#0, 1) then #1 else 7 end\n  Get t",
    ),
    Pair("case of the same", fold_constants, Map(T, (Case(((A1, B),), B, INT4),)), "Map #2 = #1\n  Get t"),
    Pair(
        "coalesce",
        fold_constants,
        Map(T, (Coalesce((lit(None), A, lit(1), B), INT4),)),
        "Map #2 = coalesce(#0, 1)\n  Get t",
    ),
    Pair(
        "not not", fold_constants, Filter(T, (call("not(bool)", call("not(bool)", A1)),)), "Filter gt(#0, 1)\n  Get t"
    ),
    Pair("predicates", fold_constants, Filter(T, (A1, lit(True), A1, NULL, DIVIDES)), "Filter false\n  Get t"),
    Pair(
        "operators over constants",
        fold_constants,
        Reduce(Filter(Union((constant((1, 2)), constant((3, 4)), constant((3, 5)))), (A1,)), (A,), (COUNT,)),
        "Constant (3, 2)",
    ),
    Pair(
        "constants that fail stay",
        fold_constants,
        Map(constant((1, 0)), (DIVISION,)),
        "Map #2 = div(#0, #1)\n  Constant (1, 0)",
    ),
    # fuse
    Pair("projects", fuse, Project(Project(T, (1, 0, 1)), (2, 1)), "Project #1, #0\n  Get t"),
    Pair("projects that undo each other", fuse, Project(Project(T, (1, 0)), (1, 0)), "Get t"),
    Pair("maps", fuse, Map(Map(T, (A,)), (C,)), "Map #2 = #0, #3 = #2\n  Get t"),
    Pair("filters", fuse, Filter(Filter(T, (A1,)), (B1, A1)), "Filter gt(#0, 1) and gt(#1, 1)\n  Get t"),
    Pair(
        "a project rises", fuse, Map(Project(T, (1,)), (A, B)), "Project #1, #2, #3\n  Map #2 = #1, #3 = #2\n    Get t"
    ),
    Pair("unions", fuse, Union((Union((T, U)), Union((V,)))), "Union\n  Get t\n  Get u\n  Get v"),
    Pair("what does nothing", fuse, Map(Filter(Negate(Negate(Project(T, (0, 1)))), ()), ()), "Get t"),
    # inline_lets
    Pair(
        "read once", inline_lets, Let("x", Filter(T, (A1,)), Negate(get("x"))), "Negate\n  Filter gt(#0, 1)\n    Get t"
    ),
    Pair("never read", inline_lets, Let("x", T, U), "Get u"),
    Pair(
        "read twice",
        inline_lets,
        Let("x", Negate(T), Union((get("x"), get("x")))),
        "Let x =\n  Negate\n    Get t\nUnion\n  Get x\n  Get x",
    ),
    Pair("another name", inline_lets, Let("x", T, Union((get("x"), get("x")))), "Union\n  Get t\n  Get t"),
    Pair(
        "no capture",
        inline_lets,
        Let("x", Negate(T), Let("t", Negate(U), Union((get("x"), get("t"), get("t"))))),
        "Let x =\n  Negate\n    Get t\nLet t =\n  Negate\n    Get u\nUnion\n  Get x\n  Get t\n  Get t",
    ),
    # remove_empty
    Pair("nothing joined", remove_empty, Map(Join((T, NONE)), (A,)), "Constant empty"),
    Pair("nothing united", remove_empty, Union((NONE, Reduce(NONE, (A, B)), T)), "Get t"),
    Pair("never true", remove_empty, Union((U, Filter(T, (A1, lit(False))))), "Get u"),
    Pair(
        "unless it fails before",
        remove_empty,
        Filter(T, (DIVIDES, lit(False))),
        "Filter gt(div(#0, #1), 1) and false\n  Get t",
    ),
    Pair("limit 0", remove_empty, TopK(T, (), (), 0), "Constant empty"),
    # simplify_distinct
    Pair(
        "distinct of groups",
        simplify_distinct,
        Reduce(Reduce(T, (A,), (COUNT,)), (A,)),
        "Project #2\n  Map #2 = #0\n    Reduce by #0: count(*)\n      Get t",
    ),
    Pair("distinct of distinct", simplify_distinct, Reduce(Reduce(T, (A, B)), (B,)), "Distinct by #1\n  Get t"),
    Pair(
        "distinct of fewer columns",
        simplify_distinct,
        Reduce(Reduce(T, (A, B), (COUNT,)), (A,)),
        "Distinct by #0\n  Reduce by #0, #1: count(*)\n    Get t",
    ),
    Pair(
        "distinct of one row a group",
        simplify_distinct,
        Reduce(TopK(T, (1,), (), 1), (B,)),
        "Project #2\n  Map #2 = #1\n    TopK by #1 limit 1\n      Get t",
    ),
    Pair(
        "threshold of a stored collection", simplify_distinct, Threshold(Filter(T, (A1,))), "Filter gt(#0, 1)\n  Get t"
    ),
    Pair(
        "threshold of a difference",
        simplify_distinct,
        Let("x", Negate(T), Threshold(Union((U, get("x"))))),
        "Let x =\n  Negate\n    Get t\nThreshold\n  Union\n    Get u\n    Get x",
    ),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.rewrite.__name__}: {pair.about}")
def test_pass(pair: Pair) -> None:
    assert show(pair.rewrite(pair.before)) == pair.after
