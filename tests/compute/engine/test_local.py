"""The local engine, operator by operator."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from everview.compute.functions.lookup import UnknownFunction
from everview.compute.functions.naming import key_of
from everview.compute.interpreter.evaluate import UnknownCollection, evaluate
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.relation import (
    Constant,
    Filter,
    FlatMap,
    Join,
    Let,
    Map,
    Negate,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
    types,
)
from everview.compute.ir.scalar import And, Call, Case, Coalesce, Or, Scalar
from everview.compute.ir.types import BOOLEAN, DATE, FLOAT8, INT4, TEXT, SqlType, array_of, numeric
from everview.compute.rows.collection import NegativeMultiplicity, Result, Rows, rows_of
from tests.compute.terms import aggregate, asc, call, col, compare, constant, desc, get, lit, rows

ZERO = ("22012", "division by zero")
DIVISION = call("div(int4,int4)", lit(6), col(0))


def run(plan: Relation, **inputs: Rows | Result) -> Rows:
    result = evaluate(plan, inputs)
    assert result.errors == {}
    return result.rows


def scalar(expression: Scalar, row: tuple[Any, ...] = (), *schema: Any) -> Any:
    (result,) = run(Map(Constant(((row, 1),), schema), (expression,)))
    return result[-1]


FAILS = compare("eq", call("div(int4,int4)", lit(1), lit(0)), lit(1))
TRUE, FALSE, NULL = lit(True), lit(False), lit(None, BOOLEAN)


# The first is not among the constants.
AMONG: dict[SqlType, list[Any]] = {
    INT4: [7, 3, 1, 4, 15, 92, 65, 35, 89, 79],
    TEXT: ["a  ", "", "a", "A", "a ", "b", "ab", "é", "z", "0"],
    numeric(10, 2): [Decimal(each) for each in ("3", "1", "1.5", "-1.5", "0", "100", "2.25", "7", "8", "9")],
    DATE: [date(2023, 1, 1), Infinite.AFTER, Infinite.BEFORE, *(date(2024, 1, day) for day in range(1, 9))],
    BOOLEAN: [False, *[True] * 9],
    FLOAT8: [0.5, math.nan, -0.0, *map(float, range(1, 9))],
}


@pytest.mark.parametrize("sql_type", AMONG, ids=lambda each: each.kind.name)
@pytest.mark.parametrize("nulls", [0, 1])
def test_a_value_is_among_constants_as_when_they_are_compared_one_by_one(sql_type: SqlType, nulls: int) -> None:
    other, *values = AMONG[sql_type]
    constants = [*(lit(each, sql_type) for each in values), *[lit(None, sql_type)] * nulls]
    for operator, combined in (("eq", Or), ("ne", And)):
        key = key_of(operator, (sql_type.base, sql_type.base))
        parts = tuple(Call(key, (col(0, sql_type), each), BOOLEAN) for each in constants)
        half = len(parts) // 2  # so few are compared
        apart = combined((combined(parts[:half]), combined(parts[half:])))
        for value in (*values, other, None):
            assert scalar(combined(parts), (value,), sql_type) is scalar(apart, (value,), sql_type)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (And((TRUE, NULL)), None),
        (And((NULL, FALSE)), False),
        (And((FALSE, FAILS)), False),
        (And((TRUE, TRUE)), True),
        (Or((FALSE, NULL)), None),
        (Or((NULL, TRUE)), True),
        (Or((TRUE, FAILS)), True),
        (Or((FALSE, FALSE)), False),
        (Case(((NULL, FAILS), (FALSE, FAILS), (TRUE, FALSE)), FAILS, BOOLEAN), False),
        (Case(((FALSE, FAILS),), TRUE, BOOLEAN), True),
        (Coalesce((NULL, FALSE, FAILS), BOOLEAN), False),
        (Coalesce((NULL, NULL), BOOLEAN), None),
        (call("add(int4,int4)", lit(1), lit(None)), None),
        (call("is_null(any)", lit(None)), True),
    ],
)
def test_scalars(expression: Scalar, value: Any) -> None:
    assert scalar(expression) is value


@pytest.mark.parametrize("expression", [And((NULL, FAILS)), Or((NULL, FAILS)), Coalesce((NULL, FAILS), BOOLEAN)])
def test_what_is_reached_fails(expression: Scalar) -> None:
    assert evaluate(Map(constant((1,)), (expression,)), {}) == Result({}, {ZERO: 1})


def test_a_strict_function_evaluates_all_arguments() -> None:
    plan = Map(constant((0,)), (call("add(int4,int4)", lit(None), DIVISION),))
    assert evaluate(plan, {}).errors == {ZERO: 1}


def test_a_typed_function_is_given_its_type() -> None:
    cast = Call("cast(numeric->numeric)", (lit(None, numeric()),), numeric(10, 2))
    assert types(Map(constant((1,)), (cast,))) == (INT4, numeric(10, 2))


def test_constant_and_get() -> None:
    plan = Union((Constant((((1,), 2), ((1,), -2), ((2,), 3)), (INT4,)), get(width=1)))
    assert run(plan, t={(2,): 1}) == {(2,): 4}


def test_project_adds_up() -> None:
    assert run(Project(get(), (1,)), t={(1, 5): 1, (2, 5): 2, (3, 6): -1}) == {(5,): 3, (6,): -1}


def test_map_reads_what_it_adds() -> None:
    plan = Map(get(width=1), (call("add(int4,int4)", col(0), lit(1)), call("mul(int4,int4)", col(1), col(1))))
    assert run(plan, t={(2,): 1}) == {(2, 3, 9): 1}


def test_filter_stops_at_the_first_that_is_not_true() -> None:
    plan = Filter(get(width=1), (compare("ne", col(0), lit(0)), compare("ge", DIVISION, lit(2))))
    assert run(plan, t={(0,): 1, (None,): 1, (3,): 2, (6,): 1}) == {(3,): 2}


def test_errors_are_data() -> None:
    plan = Map(get(width=1), (DIVISION,))
    assert evaluate(plan, {"t": {(0,): 2, (1,): 1}}) == Result({(1, 6): 1}, {ZERO: 2})
    assert evaluate(plan, {"t": {(0,): -1}}) == Result({}, {ZERO: -1})
    both = Union((plan, Map(Negate(get(width=1)), (DIVISION,))))
    assert evaluate(both, {"t": {(0,): 1}}) == Result({}, {})


def test_errors_of_inputs_are_errors_of_the_output() -> None:
    broken = Result({(1, 1): 1}, {("XX000", "broken"): 1})
    plan = Threshold(Negate(Join((get(), get("u")))))
    assert evaluate(plan, {"t": broken, "u": {(2, 2): 1}}) == Result({}, broken.errors)


def test_the_errors_of_both_sides_of_an_except_stay() -> None:
    side = Map(get(width=1), (DIVISION,))
    plan = Threshold(Union((side, Negate(side))))
    assert evaluate(plan, {"t": {(0,): 1}}).errors == {ZERO: 2}


def test_flat_map() -> None:
    plan = FlatMap(get(), "generate_series(int4,int4)", (col(0), col(1)), (INT4,))
    assert run(plan, t={(1, 3): 2, (2, 1): 1, (None, 1): 1}) == {(1, 3, 1): 2, (1, 3, 2): 2, (1, 3, 3): 2}


def test_join_multiplies() -> None:
    plan = Join((get(), get("u")), ((col(1), col(2)),))
    t = {(1, 5): 2, (2, 6): 1, (3, None): 1}
    assert run(plan, t=t, u={(5, 7): 3, (5, 8): -1, (None, 9): 1}) == {(1, 5, 5, 7): 6, (1, 5, 5, 8): -2}


def test_join_of_three_with_one_class() -> None:
    plan = Join((get(width=1), get("u", 1), get("v", 1)), ((col(0), col(1), col(2)),))
    assert run(plan, t={(1,): 1, (2,): 1}, u={(1,): 1, (3,): 1}, v={(1,): 2, (2,): 1}) == {(1, 1, 1): 2}


def test_members_within_one_input_are_equal_too() -> None:
    plan = Join((get(), get("u", 1)), ((col(0), col(1), col(2)),))
    assert run(plan, t={(1, 1): 1, (1, 2): 1, (None, None): 1}, u={(1,): 1, (None,): 1}) == {(1, 1, 1): 1}


def test_null_equals_null_only_where_it_is_said() -> None:
    plan = Join((get(width=1), get("u", 1)), nullsafe=((col(0), col(1)),))
    assert run(plan, t={(None,): 1, (1,): 1}, u={(None,): 2, (2,): 1}) == {(None, None): 2}


def test_a_cross_join_and_a_join_of_nothing() -> None:
    assert run(Join((get(width=1), get("u", 1))), t={(1,): 2}, u={(2,): 3}) == {(1, 2): 6}
    assert run(Join(())) == {(): 1}


def test_floats_are_equal_by_value() -> None:
    schema = (FLOAT8,)
    t = rows_of([((math.nan,), 1), ((float("nan"),), 1), ((-0.0,), 1), ((0.0,), 1)], schema)
    assert sorted(t.values()) == [2, 2]
    plan = Join((get(schema=schema), get("u", schema=schema)), ((col(0, FLOAT8), col(1, FLOAT8)),))
    assert sorted(run(plan, t=t, u=t).values()) == [4, 4]


def test_distinct() -> None:
    assert run(Reduce(get(), (col(1),)), t={(1, 5): 2, (2, 5): 1, (3, None): 1}) == {(5,): 1, (None,): 1}


def test_reduce() -> None:
    plan = Reduce(
        get(),
        (col(0),),
        (
            aggregate("count()"),
            aggregate("count(any)", col(1)),
            aggregate("count(any)", col(1), distinct=True),
            aggregate("count()", filter=compare("gt", col(1), lit(1))),
            aggregate("array_agg(int4)", col(1), order=(desc(col(1)),)),
        ),
    )
    t = {(1, 1): 2, (1, 2): 1, (1, None): 1, (2, None): 1}
    assert run(plan, t=t) == {(1, 4, 3, 2, 1, (None, 2, 1, 1)): 1, (2, 1, 0, 0, 0, (None,)): 1}


def test_reduce_without_keys_is_empty_over_nothing() -> None:
    plan = Reduce(get(), (), (aggregate("count()"),))
    assert run(plan, t={}) == {}
    assert run(plan, t={(1, 1): 3}) == {(3,): 1}


def test_an_aggregate_is_a_function_of_the_multiset() -> None:
    plan = Reduce(get(), (), (aggregate("array_agg(int4)", col(1), order=(asc(col(0)),)),))
    assert run(plan, t={(1, 9): 1, (0, 5): 1, (1, 3): 2, (1, None): 1}) == {((5, 3, 3, 9, None),): 1}


def test_a_filter_of_an_aggregate_guards_its_arguments() -> None:
    guarded = aggregate("sum(int4)", DIVISION, filter=compare("ne", col(0), lit(0)))
    assert run(Reduce(get(width=1), (), (guarded,)), t={(0,): 1, (2,): 1}) == {(3,): 1}


@pytest.mark.parametrize("order", [(asc(DIVISION),), (desc(DIVISION),)])
def test_a_sort_key_that_fails_is_an_error(order: Any) -> None:
    assert evaluate(TopK(get(width=1), (), order, 5), {"t": {(0,): 2, (1,): 1}}) == Result({(1,): 1}, {ZERO: 2})


def test_topk() -> None:
    t = {(1, 5): 2, (1, 7): 1, (1, None): 1, (2, 1): 1}
    plan = TopK(get(), (0,), (asc(col(1)),), 2)
    assert run(plan, t=t) == {(1, 5): 2, (2, 1): 1}
    assert run(TopK(get(), (0,), (desc(col(1)),), 2), t=t) == {(1, None): 1, (1, 7): 1, (2, 1): 1}
    assert run(TopK(get(), (0,), (desc(col(1), nulls_first=False),), 2), t=t) == {(1, 7): 1, (1, 5): 1, (2, 1): 1}
    assert run(TopK(get(), (0,), (asc(col(1), nulls_first=True),), 1), t=t) == {(1, None): 1, (2, 1): 1}
    assert run(TopK(get(), (), (asc(col(1)),), 2, 1), t=t) == {(1, 5): 2}
    assert run(TopK(get(), (), (asc(col(1)),), None, 3), t=t) == {(1, 7): 1, (1, None): 1}


def test_ties_go_by_the_whole_row() -> None:
    t = rows(get(schema=(INT4, TEXT)), (1, "b"), (1, "a"), (1, None))
    assert run(TopK(get(schema=(INT4, TEXT)), (), (desc(col(0)),), 2), t=t) == {(1, "a"): 1, (1, "b"): 1}


@pytest.mark.parametrize(
    "plan", [Reduce(get(width=1), (col(0),)), TopK(get(width=1), (), (), 1)], ids=lambda plan: type(plan).__name__
)
def test_what_needs_a_plain_multiset_says_so(plan: Relation) -> None:
    with pytest.raises(NegativeMultiplicity, match="internal error"):
        evaluate(plan, {"t": {(1,): -1}})


def test_threshold_and_negate() -> None:
    assert run(Threshold(get(width=1)), t={(1,): 2, (2,): -1}) == {(1,): 2}
    assert run(Negate(get(width=1)), t={(1,): 2, (2,): -1}) == {(1,): -2, (2,): 1}


def test_let_shadows() -> None:
    plan = Let("t", Project(get(), (0,)), Union((get(width=1), Let("t", constant((7,)), get(width=1)))))
    assert run(plan, t={(1, 1): 1}) == {(1,): 1, (7,): 1}


def test_arrays_reach_functions_as_lists() -> None:
    schema = (array_of(INT4),)
    t = rows_of([(([1, None],), 1), (([1, None],), 1)], schema)
    assert t == {((1, None),): 2}
    plan = Map(get(schema=schema), (call("eq(int4[],int4[])", col(0, schema[0]), lit([1, 2], schema[0])),))
    assert run(plan, t=t) == {((1, None), False): 2}


def test_unknown_names() -> None:
    with pytest.raises(UnknownCollection):
        evaluate(get("missing"), {})
    with pytest.raises(UnknownFunction):
        evaluate(Map(get(), (Call("missing()", (), INT4),)), {"t": {}})
