"""Functions about whole numbers: common divisors and multiples, factorials, digits, buckets of a histogram, NULLs."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

from everview.compute.functions.contract import Failure, ResultType
from everview.compute.functions.naming import NUMERIC, named, wider_numeric
from everview.compute.functions.numbers import EXACT, fit, whole
from everview.compute.functions.order import sort_key
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import Renderer, spark_type
from everview.compute.ir.types import NUMERIC_SCALE, Kind, SqlType, numeric

FUNCTIONS = Family()
define = FUNCTIONS.define
_BAD_BUCKETS = "2201G"
_FACTORIAL_MAX = 33  # the factorial of the next number has more than 38 digits


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
    """The digits behind the point in the number's text: the declared scale, else the significant ones."""
    scale = -int(value.as_tuple().exponent)
    return _digits_that_count(value) if scale == NUMERIC_SCALE else scale


def _trimmed_type(types: Sequence[SqlType]) -> SqlType:
    """A numeric of no declared scale, of which no digits are shown that do not count."""
    most = NUMERIC.precision - NUMERIC.scale
    return NUMERIC if types[0].precision - types[0].scale <= most else replace(types[0], constrained=False)


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
    if not math.isfinite(high - low):
        value, low, high = value / 2, low / 2, high / 2
    place = int(count * ((value - low) / (high - low)))
    return min(place, count - 1)  # rounding may reach the bound itself


def _bucket_among(key: Callable[[Any], Any]) -> Callable[[Any, list[Any]], int]:
    def evaluate(value: Any, thresholds: list[Any]) -> int:
        if None in thresholds:
            raise Failure("22004", "thresholds array must not contain NULLs")
        return bisect_right(thresholds, key(value), key=key)

    return evaluate


def _counted_sql(test: str) -> Renderer:
    return lambda args, types, result: (
        "(" + " + ".join(f"CASE WHEN {arg} {test} THEN 1 ELSE 0 END" for arg in args) + ")"
    )


for _name, _function in (("gcd", math.gcd), ("lcm", math.lcm)):
    for _of in named("int4 int8"):  # of the smallest number the divisor may be one that there is no positive number for
        _within = lambda a, b, of=_of, function=_function: whole(function(a, b), of.kind)
        define(f"{_name}(T, T) -> T", _within, fails=True, T=_of)
    _multiple: ResultType = lambda types: numeric(38, max(each.scale for each in types))
    _type = wider_numeric if _name == "gcd" else _multiple
    define(f"{_name}(numeric, numeric)", _of_decimals(_function), result=_type, typed=True, fails=True)

define("factorial(int8) -> numeric(38,0)", _factorial, fails=True)
define("scale(numeric) -> int4", _digits_shown)
define("min_scale(numeric) -> int4", _digits_that_count)
_WIDENED: Renderer = lambda args, types, result: f"cast({args[0]} as {spark_type(result)})"
define("trim_scale(numeric)", lambda to, value: fit(value, to), _WIDENED, result=_trimmed_type, typed=True)

define("width_bucket(T, T, T, int4) -> int4", _bucket, fails=True, T="numeric float8")
for _of in named("int4 int8 numeric float8 date timestamp timestamptz"):
    define("width_bucket(T, T[]) -> int4", _bucket_among(sort_key(_of)), fails=True, T=_of)

_nulls = lambda *values: values.count(None)
_values = lambda *values: len(values) - values.count(None)
define("num_nulls(any...) -> int4", _nulls, _counted_sql("IS NULL"), strict=False)
define("num_nonnulls(any...) -> int4", _values, _counted_sql("IS NOT NULL"), strict=False)
