"""No numeric has more digits than its type declares, whatever function it comes from: values are kept by what is said.

Arguments are at the limits of their types and at random between, in types of few digits and of many.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from everview.compute.functions.casts import WIDENED, cast_between
from everview.compute.functions.contract import Failure
from everview.compute.functions.naming import base
from everview.compute.functions.numbers import EXACT, RANGES
from everview.compute.functions.registry import AGGREGATES, FUNCTIONS, TABLES
from everview.compute.functions.resolve import common_type, resolve, result_type
from everview.compute.ir.types import (
    FLOAT8,
    INT2,
    INT4,
    INT8,
    Kind,
    SqlType,
    array_of,
    arrow_type,
    numeric,
    stored_precision,
)

ROUNDS = 150
NUMBERS = (INT2, INT4, INT8, numeric())


def is_numeric(sql_type: SqlType) -> bool:
    return (sql_type.element or sql_type).kind is Kind.NUMERIC


def drawn_type(rng: random.Random, declared: SqlType) -> SqlType:
    """A type with modifiers: mostly of so few digits that results of it may still fit a word."""
    if declared.kind is Kind.ARRAY:
        assert declared.element is not None
        return array_of(drawn_type(rng, declared.element))
    if declared.kind is not Kind.NUMERIC:
        return declared
    precision = rng.choice([1, 2, rng.randint(1, 9), rng.randint(1, 18), 17, 18, 19, rng.randint(19, 38), 38, 0])
    return numeric(precision, rng.randint(0, precision)) if precision else numeric()


def drawn_value(rng: random.Random, sql_type: SqlType) -> Any:
    """A value of the type, often one of its limits."""
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        return [drawn_value(rng, sql_type.element) for _ in range(rng.randint(1, 3))]
    if sql_type.kind is Kind.NUMERIC:
        limit = 10**sql_type.precision - 1
        unscaled = rng.choice([limit, -limit, rng.randint(-limit, limit), limit // 2, 1, -1, 0, 10**sql_type.scale])
        return EXACT.scaleb(Decimal(min(unscaled, limit)), -sql_type.scale)
    if sql_type.kind in RANGES:
        low, high, _ = RANGES[sql_type.kind]
        return rng.choice([low, high, rng.randint(low, high), 0, 1, -1, 2, -3, 20, -40])
    if sql_type.kind is Kind.FLOAT8:
        return rng.choice([0.0, 0.3, 1.0])
    raise AssertionError(f"no values of {sql_type}")


def too_long(value: Any, sql_type: SqlType) -> bool:
    """Whether the value has more digits than its type declares, or than there is room for."""
    if value is None:
        return False
    if isinstance(value, list | tuple):
        return any(too_long(each, sql_type.element or sql_type) for each in value)
    unscaled = value.copy_abs().scaleb(sql_type.scale, EXACT)
    declared = min(sql_type.precision, stored_precision(sql_type))
    return bool(unscaled >= Decimal(10) ** declared or unscaled != unscaled.to_integral_value(context=EXACT))


def calls(kinds: Sequence[SqlType]) -> bool:
    return all((each.element or each).kind in (*RANGES, Kind.NUMERIC, Kind.FLOAT8) for each in kinds)


FUNCTIONS_OF_NUMBERS = [
    each
    for each in FUNCTIONS.values()
    if each.name not in ("cast", "assign")
    and calls(each.args)
    and is_numeric(result_type(each.result, list(each.args)))
]
AGGREGATES_OF_NUMBERS = [
    each
    for each in AGGREGATES.values()
    if calls(each.args) and each.args and is_numeric(result_type(each.result, list(each.args)))
]


def evaluated(evaluate: Any, *args: Any) -> Any:
    """The value; None if it fails, which is what happens to those that have too many digits."""
    try:
        return evaluate(*args)
    except Failure:
        return None


def test_there_are_such() -> None:
    names = {each.name for each in FUNCTIONS_OF_NUMBERS}
    assert {"+", "-", "*", "/", "%", "abs", "ceil", "floor", "round", "trunc", "sign", "greatest", "least"} <= names
    assert {"array_append", "array_cat", "subscript", "power", "div", "mod"} <= names
    assert {"sum", "avg", "min", "max", "variance"} <= {each.name for each in AGGREGATES_OF_NUMBERS}


@pytest.mark.parametrize("function", FUNCTIONS_OF_NUMBERS, ids=lambda each: str(each.key))
def test_functions(function: Any) -> None:
    rng = random.Random(function.key)
    for _ in range(ROUNDS):
        declared = function.args * (rng.randint(1, 3) if function.variadic else 1)
        given = [drawn_type(rng, each) for each in declared]
        if function.name in ("greatest", "least"):  # of which the binder makes all arguments one type
            given = [common_type(given)] * len(given)
        values = [drawn_value(rng, each) for each in given]
        literal = [each.kind is Kind.INT4 and rng.random() < 0.5 for each in given]
        known = [value if said else None for value, said in zip(values, literal, strict=True)]
        try:
            result = resolve(function.name, given, known).result
        except Exception:  # internal ones have no name that resolves
            result = result_type(function.result, given)
        found = evaluated(function.evaluate, *((result,) if function.typed else ()), *values)
        assert not too_long(found, result), f"{function.key} of {[*map(str, given)]} {values} is {found}: {result}"


@pytest.mark.parametrize("aggregate", AGGREGATES_OF_NUMBERS, ids=lambda each: str(each.key))
def test_aggregates(aggregate: Any) -> None:
    rng = random.Random(aggregate.key)
    for _ in range(ROUNDS // 5):
        given = [drawn_type(rng, each) for each in aggregate.args]
        rows = [tuple(drawn_value(rng, each) for each in given) for _ in range(rng.randint(1, 12))]
        result = result_type(aggregate.result, given)
        found = evaluated(aggregate.evaluate, result, rows)
        assert not too_long(found, result), f"{aggregate.key} of {[*map(str, given)]} {rows} is {found}: {result}"


def test_series() -> None:
    rng = random.Random("series")
    for function in TABLES.values():
        if function.name != "generate_series" or function.args[0] != numeric():
            continue
        for _ in range(ROUNDS):
            given = [drawn_type(rng, each) for each in function.args]
            start, *rest = (drawn_value(rng, each) for each in given)
            stop = EXACT.add(start, Decimal(rng.choice([-3, 0, 2]))).quantize(start, context=EXACT)
            columns = function.columns_of(given)
            result = columns[0]
            if too_long(stop, given[1]) or too_long(start, given[1]):
                continue
            rows = evaluated(function.evaluate, columns, start, stop, *rest[1:])
            assert not any(too_long(row[0], result) for row in rows or ()), f"{given} {start} {stop} {rest}"


def pairs(rng: random.Random) -> Iterator[tuple[SqlType, SqlType]]:
    for _ in range(2000):
        yield drawn_type(rng, rng.choice(NUMBERS)), drawn_type(rng, numeric())


def test_casts_that_cannot_fail_do_not() -> None:
    rng, seen = random.Random("casts"), 0
    for source, target in pairs(rng):
        found = cast_between(source, target)
        assert found is not None
        value = drawn_value(rng, source)
        if found.key is None:
            assert arrow_type(source) == arrow_type(target)
            assert not too_long(value, target)
        elif found.key == WIDENED:
            seen += 1
            assert FUNCTIONS[WIDENED].evaluate(target, value) == value
            assert not too_long(FUNCTIONS[WIDENED].evaluate(target, value), target)
        else:
            converted = evaluated(FUNCTIONS[found.key].evaluate, target, value)
            assert not too_long(converted, target)
    assert seen > 100


def test_a_common_type_holds_all_values_that_fit_one() -> None:
    rng = random.Random("common")
    for one, other in pairs(rng):
        common = common_type([one, other])
        for each in (one, other):
            cast = cast_between(each, common)
            assert cast is not None
            value = drawn_value(rng, each)
            held = value if cast.key is None else evaluated(FUNCTIONS[cast.key].evaluate, common, value)
            assert held is None or (held == value and not too_long(held, common)), f"{value}: {each} as {common}"


def test_what_is_declared_fits_its_representation() -> None:
    rng = random.Random("limits")
    for _ in range(2000):
        sql_type = drawn_type(rng, numeric())
        values = [drawn_value(rng, sql_type) for _ in range(5)]
        assert pa.array(values, arrow_type(sql_type)).to_pylist() == values
        assert stored_precision(sql_type) in (18, 38)
        assert base(sql_type) == numeric()
        assert FLOAT8.scale == 0
