"""Passes that move things, on plans small enough to read: the plan before, and as text the plan after."""

from __future__ import annotations

import pytest

from everview.compute.ir.relation import (
    Filter,
    Frame,
    Join,
    Let,
    Map,
    Negate,
    Project,
    Reduce,
    Threshold,
    TopK,
    Union,
    Window,
)
from everview.compute.ir.scalar import And, Or
from everview.compute.ir.show import show
from everview.compute.ir.types import INT8
from everview.compute.optimize.flatten_joins import flatten_joins
from everview.compute.optimize.join_keys import join_keys
from everview.compute.optimize.order_joins import order_joins
from everview.compute.optimize.prune_columns import prune_columns
from everview.compute.optimize.push_filters import push_filters
from tests.compute.optimize.pairs import (
    A1,
    B1,
    C1,
    COUNT,
    DIVIDES,
    DIVISION,
    RANK,
    SAFE_SUM,
    SERIES,
    A,
    B,
    C,
    D,
    Pair,
    T,
    U,
    V,
    eq,
)
from tests.compute.terms import aggregate, asc, call, col, compare, get, lit, window

PAIRS = [
    # push_filters
    Pair(
        "through project and map",
        push_filters,
        Filter(Map(Project(T, (1, 0)), (SAFE_SUM,)), (A1,)),
        "Map #2 = bit_or(#0, #1)\n  Project #1, #0\n    Filter gt(#1, 1)\n      Get t",
    ),
    Pair(
        "as what computes it",
        push_filters,
        Filter(Map(T, (SAFE_SUM,)), (C1,)),
        "Map #2 = bit_or(#0, #1)\n  Filter gt(bit_or(#0, #1), 1)\n    Get t",
    ),
    Pair(
        "not if that fails",
        push_filters,
        Filter(Map(T, (DIVISION,)), (C1, A1)),
        "Filter gt(#2, 1)\n  Map #2 = div(#0, #1)\n    Filter gt(#0, 1)\n      Get t",
    ),
    Pair(
        "what alternatives have in common",
        push_filters,
        Filter(T, (Or((And((A1, B1)), And((eq(0, 1), A1)))),)),
        "Filter gt(#0, 1) and (gt(#1, 1) or eq(#0, #1))\n  Get t",
    ),
    Pair(
        "an alternative that says no more",
        push_filters,
        Filter(T, (Or((And((A1, B1)), A1)),)),
        "Filter gt(#0, 1)\n  Get t",
    ),
    Pair(
        "nothing that may fail, though in common",
        push_filters,
        Filter(T, (Or((And((A1, DIVIDES)), And((B1, DIVIDES)))),)),
        "Filter ((gt(#0, 1) and gt(div(#0, #1), 1)) or (gt(#1, 1) and gt(div(#0, #1), 1)))\n  Get t",
    ),
    Pair(
        "what follows for one input of a join",
        push_filters,
        Filter(Join((T, U)), (Or((And((A1, C1)), And((eq(0, 1), C1, DIVIDES)), And((B1, eq(2, 3))))),)),
        "Filter ((gt(#0, 1) and gt(#2, 1)) or (eq(#0, #1) and gt(#2, 1) and gt(div(#0, #1), 1)) or "
        "(gt(#1, 1) and eq(#2, #3)))\n"
        "  Join\n"
        "    Filter (gt(#0, 1) or eq(#0, #1) or gt(#1, 1))\n      Get t\n"
        "    Filter (gt(#0, 1) or eq(#0, #1))\n      Get u",
    ),
    Pair(
        "a guard goes along",
        push_filters,
        Filter(Map(T, (SAFE_SUM,)), (And((B1, DIVIDES)),)),
        "Map #2 = bit_or(#0, #1)\n  Filter gt(#1, 1) and gt(div(#0, #1), 1)\n    Get t",
    ),
    Pair(
        "what fails stays above a join",
        push_filters,
        Filter(Join((T, U)), (A1, DIVIDES, C1)),
        "Filter gt(div(#0, #1), 1)\n  Join\n    Filter gt(#0, 1)\n      Get t\n    Filter gt(#0, 1)\n      Get u",
    ),
    Pair(
        "what reads both sides stays",
        push_filters,
        Filter(Join((T, U)), (compare("lt", A, C),)),
        "Filter lt(#0, #2)\n  Join\n    Get t\n    Get u",
    ),
    Pair(
        "through union",
        push_filters,
        Filter(Union((T, U)), (DIVIDES,)),
        "Union\n  Filter gt(div(#0, #1), 1)\n    Get t\n  Filter gt(div(#0, #1), 1)\n    Get u",
    ),
    Pair(
        "through negate, if it cannot fail",
        push_filters,
        Filter(Negate(T), (DIVIDES, A1)),
        "Filter gt(div(#0, #1), 1)\n  Negate\n    Filter gt(#0, 1)\n      Get t",
    ),
    Pair(
        "through the keys of a reduce",
        push_filters,
        Filter(Reduce(T, (B,), (COUNT,)), (A1, compare("lt", A, lit(9)))),
        "Reduce by #1: count(*)\n  Filter gt(#1, 1) and lt(#1, 9)\n    Get t",
    ),
    Pair(
        "not through aggregates",
        push_filters,
        Filter(Reduce(T, (B,), (COUNT,)), (call("gt(int8,int8)", col(1, INT8), lit(1, INT8)),)),
        "Filter gt(#1, 1)\n  Reduce by #1: count(*)\n    Get t",
    ),
    Pair(
        "through a table function",
        push_filters,
        Filter(SERIES, (C1, B1)),
        "Filter gt(#2, 1)\n  FlatMap #2 = generate_series(1, #0)\n    Filter gt(#1, 1)\n      Get t",
    ),
    Pair(
        "through partitions and groups",
        push_filters,
        Filter(Window(TopK(T, (0,), (), 1), (A, B), (), (RANK,)), (A1, B1)),
        "Window by #0, #1: #2 = rank()\n  Filter gt(#1, 1)\n    TopK by #0 limit 1\n"
        "      Filter gt(#0, 1)\n        Get t",
    ),
    Pair(
        "through let and threshold",
        push_filters,
        Filter(Let("x", T, Threshold(get("x"))), (A1,)),
        "Let x =\n  Get t\nThreshold\n  Filter gt(#0, 1)\n    Get x",
    ),
    # join_keys
    Pair(
        "equalities",
        join_keys,
        Filter(Join((T, U)), (eq(0, 2), A1, eq(0, 1))),
        "Filter gt(#0, 1) and eq(#0, #1)\n  Join on #0 = #2\n    Get t\n    Get u",
    ),
    Pair(
        "null-safe ones",
        join_keys,
        Filter(Join((T, U)), (call("is_not_distinct_from(int4,int4)", A, C),)),
        "Join on #0 <=> #2\n  Get t\n  Get u",
    ),
    Pair(
        "classes are transitive",
        join_keys,
        Filter(Join((T, U, V), ((A, C),)), (eq(2, 4),)),
        "Join on #0 = #2 = #4\n  Get t\n  Get u\n  Get v",
    ),
    Pair(
        "a null-safe class that is never null",
        join_keys,
        Join((T, U, V), ((A, C),), ((C, col(4)),)),
        "Join on #0 = #2 = #4\n  Get t\n  Get u\n  Get v",
    ),
    Pair(
        "what fails only if it must",
        join_keys,
        Filter(Join((T, U)), (compare("eq", DIVISION, C),)),
        "Join on div(#0, #1) = #2\n  Get t\n  Get u",
    ),
    Pair(
        "and else stays",
        join_keys,
        Filter(Join((T, U), ((A, D),)), (compare("eq", DIVISION, C),)),
        "Filter eq(div(#0, #1), #2)\n  Join on #0 = #3\n    Get t\n    Get u",
    ),
    Pair(
        "constants on both sides",
        join_keys,
        Join((Filter(T, (compare("eq", A, lit(5)), B1)), U), ((A, C),)),
        "Join on #0 = #2\n  Filter eq(#0, 5) and gt(#1, 1)\n    Get t\n  Filter eq(#0, 5)\n    Get u",
    ),
    # flatten_joins
    Pair(
        "joins of joins",
        flatten_joins,
        Join((Join((T, U), ((A, C),)), V), ((B, col(4)),)),
        "Join on #0 = #2 and #1 = #4\n  Get t\n  Get u\n  Get v",
    ),
    Pair(
        "through projects and filters",
        flatten_joins,
        Join((V, Project(Filter(Join((T, U)), (compare("lt", A, D),)), (3,))), ((A, C),)),
        "Project #0, #1, #5\n  Filter lt(#2, #5)\n    Join on #0 = #5\n      Get v\n      Get t\n      Get u",
    ),
    Pair(
        "a key over two inputs",
        flatten_joins,
        Join((Join((T, U)), V), ((call("bit_or(int4,int4)", A, C), col(4)),)),
        "Join on bit_or(#0, #2) = #4\n  Join\n    Get t\n    Get u\n  Get v",
    ),
    Pair(
        "a key that fails",
        flatten_joins,
        Join((Join((T, U)), V), ((DIVISION, col(4)),)),
        "Join on div(#0, #1) = #4\n  Join\n    Get t\n    Get u\n  Get v",
    ),
    Pair("a join of one", flatten_joins, Join((T,)), "Get t"),
    # order_joins
    Pair(
        "smaller first, then connected",
        order_joins,
        Join((T, U, Filter(V, (compare("eq", A, lit(1)),))), ((A, C), (D, col(4)))),
        "Project #4, #5, #2, #3, #0, #1\n  Join on #4 = #2 and #3 = #0\n    Filter eq(#0, 1)\n"
        "      Get v\n    Get u\n    Get t",
    ),
    Pair("good as it is", order_joins, Join((T, U), ((A, C),)), "Join on #0 = #2\n  Get t\n  Get u"),
    # prune_columns
    Pair(
        "join inputs",
        prune_columns,
        Project(Join((T, U), ((A, C),)), (3,)),
        "Project #2\n  Join on #0 = #1\n    Project #0\n      Get t\n    Get u",
    ),
    Pair(
        "unused scalars",
        prune_columns,
        Project(Map(T, (SAFE_SUM, DIVISION, call("neg(int4)", C))), (4,)),
        "Project #3\n  Map #2 = bit_or(#0, #1), #3 = neg(#2)\n    Get t",
    ),
    Pair(
        "unused aggregates",
        prune_columns,
        Project(Reduce(T, (A,), (aggregate("sum(int4)", B), COUNT)), (0, 2)),
        "Project #0, #1\n  Reduce by #0: count(*)\n    Project #0\n      Get t",
    ),
    Pair(
        "only what is behind the ties",
        prune_columns,
        Project(TopK(get("t", 4), (), (asc(B),), 1), (1,)),
        "Project #1\n  TopK order by #1 limit 1\n    Project #0, #1\n      Get t",
    ),
    Pair(
        "unused window functions",
        prune_columns,
        Project(Window(T, (A,), (), (RANK, window("count()", INT8, frame=Frame("rows", None, 0)))), (3,)),
        "Project #1\n"
        "  Window by #0: #1 = count() rows between unbounded preceding and current row\n    Project #0\n      Get t",
    ),
    Pair(
        "a window that nobody reads", prune_columns, Project(Window(T, (A,), (), (RANK,)), (1,)), "Project #1\n  Get t"
    ),
    Pair(
        "unions",
        prune_columns,
        Project(Union((T, U)), (1,)),
        "Project #0\n  Union\n    Project #1\n      Get t\n    Project #1\n      Get u",
    ),
    Pair("threshold needs all", prune_columns, Project(Threshold(T), (1,)), "Project #1\n  Threshold\n    Get t"),
    Pair(
        "bound collections",
        prune_columns,
        Let("x", Map(T, (A, B)), Union((Project(get("x", 4), (3,)), Project(get("x", 4), (1,))))),
        "Let x =\n  Project #1, #2\n    Map #2 = #1\n      Get t\nUnion\n  Project #1\n    Get x\n"
        "  Project #0\n    Get x",
    ),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.rewrite.__name__}: {pair.about}")
def test_pass(pair: Pair) -> None:
    assert show(pair.rewrite(pair.before)) == pair.after
