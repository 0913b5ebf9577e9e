"""Functions that give whole numbers: common divisors and multiples, buckets of a histogram, numbers of NULLs."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

from everview.compute.functions.contract import Failure
from everview.compute.functions.family import Family
from everview.compute.functions.naming import ANY, NUMERIC
from everview.compute.functions.numbers import EXACT, whole
from everview.compute.functions.order import sort_key
from everview.compute.functions.spark_sql import not_on_spark
from everview.compute.ir.types import (
    DATE,
    FLOAT8,
    INT4,
    INT8,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
    array_of,
)

FUNCTIONS = Family()
_add = FUNCTIONS.add
_BAD_BUCKETS = "2201G"


def _multiples() -> None:
    """Of the smallest number the divisor may be one that there is no positive number for."""

    def within(function: Callable[[int, int], int], kind: Kind) -> Callable[[int, int], int]:
        return lambda a, b: whole(function(a, b), kind)

    for of in (INT4, INT8):
        _add("gcd", (of, of), of, within(math.gcd, of.kind), not_on_spark("gcd"), fails=True)
        _add("lcm", (of, of), of, within(math.lcm, of.kind), not_on_spark("lcm"), fails=True)


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
_buckets()
_nulls()
