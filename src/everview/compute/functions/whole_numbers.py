"""Functions about whole numbers: common divisors and multiples, factorials, digits, buckets of a histogram, NULLs."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

from everview.compute.functions.contract import Failure
from everview.compute.functions.family import Family
from everview.compute.functions.naming import ANY, NUMERIC, wider_numeric
from everview.compute.functions.numbers import EXACT, fit, whole
from everview.compute.functions.order import sort_key
from everview.compute.functions.spark_sql import not_on_spark, spark_type
from everview.compute.ir.types import (
    DATE,
    FLOAT8,
    INT4,
    INT8,
    NUMERIC_SCALE,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
    array_of,
    numeric,
)

FUNCTIONS = Family()
_add = FUNCTIONS.add
_BAD_BUCKETS = "2201G"
_FACTORIAL_MAX = 33  # the factorial of the next number has more than 38 digits


def _multiples() -> None:
    """Of the smallest number the divisor may be one that there is no positive number for."""

    def within(function: Callable[[int, int], int], kind: Kind) -> Callable[[int, int], int]:
        return lambda a, b: whole(function(a, b), kind)

    for of in (INT4, INT8):
        _add("gcd", (of, of), of, within(math.gcd, of.kind), not_on_spark("gcd"), fails=True)
        _add("lcm", (of, of), of, within(math.lcm, of.kind), not_on_spark("lcm"), fails=True)
    pair = (NUMERIC, NUMERIC)
    _add("gcd", pair, wider_numeric, _of_decimals(math.gcd), not_on_spark("gcd"), typed=True, fails=True)
    _add("lcm", pair, _multiple_type, _of_decimals(math.lcm), not_on_spark("lcm"), typed=True, fails=True)


def _multiple_type(types: Sequence[SqlType]) -> SqlType:
    return numeric(38, max(each.scale for each in types))


def _of_decimals(function: Callable[[int, int], int]) -> Callable[[SqlType, Decimal, Decimal], Decimal]:
    """The function of whole numbers, over decimals in units of the last digit that either has."""

    def evaluate(to: SqlType, one: Decimal, other: Decimal) -> Decimal:
        found = function(*(int(each.scaleb(to.scale, EXACT)) for each in (one, other)))
        return fit(Decimal(found).scaleb(-to.scale, EXACT), to)

    return evaluate


def _factorial(value: int) -> Decimal:
    if value < 0:
        raise Failure("22003", "factorial of a negative number is undefined")
    if value > _FACTORIAL_MAX:
        raise Failure("22003", "value overflows numeric format")
    return Decimal(math.factorial(value))


def _digits_that_count(value: Decimal) -> int:
    """How many digits behind the point there are before nothing but zeros."""
    return max(-int(value.normalize(EXACT).as_tuple().exponent), 0)


def _digits_shown(value: Decimal) -> int:
    """How many digits behind the point its text has, which are those of its type if that was declared."""
    scale = -int(value.as_tuple().exponent)
    return _digits_that_count(value) if scale == NUMERIC_SCALE else scale


def _trimmed_type(types: Sequence[SqlType]) -> SqlType:
    """A numeric of no declared scale, of which no digits are shown that do not count."""
    most = NUMERIC.precision - NUMERIC.scale
    return NUMERIC if types[0].precision - types[0].scale <= most else replace(types[0], constrained=False)


def _digits() -> None:
    _add("factorial", (INT8,), numeric(38, 0), _factorial, not_on_spark("factorial"), fails=True)
    _add("scale", (NUMERIC,), INT4, _digits_shown, not_on_spark("scale"))
    _add("min_scale", (NUMERIC,), INT4, _digits_that_count, not_on_spark("min_scale"))
    _add(
        "trim_scale",
        (NUMERIC,),
        _trimmed_type,
        lambda to, value: fit(value, to),
        lambda args, _types, result: f"cast({args[0]} as {spark_type(result)})",
        typed=True,
    )


def _bucket(value: Any, low: Any, high: Any, count: int) -> int:
    if count <= 0:
        raise Failure(_BAD_BUCKETS, "count must be greater than zero")
    if isinstance(value, float) and (any(map(math.isnan, (value, low, high)))):
        raise Failure(_BAD_BUCKETS, "operand, lower bound, and upper bound cannot be NaN")
    if isinstance(low, float) and (math.isinf(low) or math.isinf(high)):
        raise Failure(_BAD_BUCKETS, "lower and upper bounds must be finite")
    if low == high:
        raise Failure(_BAD_BUCKETS, "lower bound cannot equal upper bound")
    down = low > high
    if value < low if not down else value > low:
        return 0
    if value >= high if not down else value <= high:
        return whole(count + 1, Kind.INT4)
    return _place(value, low, high, count) + 1


def _place(value: Any, low: Any, high: Any, count: int) -> int:
    """Which of the buckets, from 0 on, a value between the bounds is in."""
    if isinstance(value, Decimal):
        with localcontext(EXACT):
            return int((value - low) * count / (high - low))
    place = (
        int(count * ((value - low) / (high - low)))
        if math.isfinite(high - low)
        else int(count * ((value / 2 - low / 2) / (high / 2 - low / 2)))
    )
    return min(place, count - 1)  # rounding may reach the bound itself


def _buckets() -> None:
    for of in (NUMERIC, FLOAT8):
        _add("width_bucket", (of, of, of, INT4), INT4, _bucket, not_on_spark("width_bucket"), fails=True)
    for of in (INT4, INT8, NUMERIC, FLOAT8, DATE, TIMESTAMP, TIMESTAMPTZ):
        key = sort_key(of)

        def among(value: Any, thresholds: list[Any], key: Callable[[Any], Any] = key) -> int:
            if None in thresholds:
                raise Failure("22004", "thresholds array must not contain NULLs")
            return bisect_right(thresholds, key(value), key=key)

        _add("width_bucket", (of, array_of(of)), INT4, among, not_on_spark("width_bucket"), fails=True)


def _nulls() -> None:
    def rendered(test: str) -> Callable[[Sequence[str], Sequence[SqlType], SqlType], str]:
        return lambda args, _types, _result: (
            "(" + " + ".join(f"CASE WHEN {arg} {test} THEN 1 ELSE 0 END" for arg in args) + ")"
        )

    _add(
        "num_nulls",
        (ANY,),
        INT4,
        lambda *values: sum(value is None for value in values),
        rendered("IS NULL"),
        strict=False,
        variadic=True,
    )
    _add(
        "num_nonnulls",
        (ANY,),
        INT4,
        lambda *values: sum(value is not None for value in values),
        rendered("IS NOT NULL"),
        strict=False,
        variadic=True,
    )


_multiples()
_digits()
_buckets()
_nulls()
