"""Aggregates: their meaning over the rows of a group, and how Spark aggregates the same.

An aggregate's `evaluate` is given the rows that take part, in the order asked for: without the rows whose argument is
NULL, unless it takes NULLs. The Spark rendering skips NULLs itself. A sum beyond 38 digits, or beyond the floats, is
NULL on Spark, where the rows that take part are counted too (`Unfit`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import partial, reduce
from typing import Any

from everview.compute.functions.calendar import make_interval
from everview.compute.functions.contract import Additive, Extreme, Failure, GroupRows, InOrder, OneRow, Total, Unfit
from everview.compute.functions.exact_floats import MEAN, exact_sum, sum_sql
from everview.compute.functions.intervals import divide_interval, scaled_interval_sql
from everview.compute.functions.naming import ARRAYS, NUMERIC, ORDERED, as_numeric, key_of, named
from everview.compute.functions.numbers import EXACT, SURE_DIGITS, fit, quotient, real, significant, whole
from everview.compute.functions.order import sort_key, spark_sort_key
from everview.compute.functions.regression import deviation, total
from everview.compute.functions.signatures import Aggregates
from everview.compute.functions.spark_sql import Renderer, interval, let, spark_type
from everview.compute.ir.types import FLOAT8, INT8, NUMERIC_PRECISION, NUMERIC_SCALE, Interval, Kind, SqlType, numeric

AGGREGATES = Aggregates()
define = AGGREGATES.define
SOME = "some(any)"  # the key of the aggregate that takes the value of any row
AVERAGE = "total by count"  # the scalar function of a total and a number of rows

COUNT, SUM, LEAST, GREATEST = Total(counts=True), Total(), Extreme(), Extreme(descending=True)


def _of_values(function: Callable[[list[Any]], Any]) -> Callable[[SqlType, GroupRows], Any]:
    """An aggregate of the values of its only argument; NULL over no values."""
    return lambda _, rows: function([row[0] for row in rows]) if rows else None


def _of_values_as(function: Callable[[SqlType, list[Any]], Any]) -> Callable[[SqlType, GroupRows], Any]:
    """An aggregate like `_of_values` whose function is given the result's type first."""
    return lambda to, rows: function(to, [row[0] for row in rows]) if rows else None


def _total(values: Sequence[Decimal | int]) -> Decimal:
    with localcontext(EXACT):
        return sum((Decimal(value) for value in values), Decimal(0))


def _float_sum(values: list[float], kind: Kind, add: Callable[[list[float]], float] = exact_sum) -> float:
    return real(add(values), kind, infinite=any(map(math.isinf, values)))


def _interval_sum(values: list[Interval]) -> Interval:
    return make_interval(*(sum(parts) for parts in zip(*values, strict=True)))


def _is_short(types: Sequence[SqlType]) -> bool:
    """Whether no total is too long, nor an average, which has as many digits before the point as are left."""
    number = as_numeric(types[0])
    return number.precision <= SURE_DIGITS and number.precision - number.scale <= NUMERIC_PRECISION - NUMERIC_SCALE


_TOO_LONG = Unfit("22003", "value overflows numeric format")
_TOO_LARGE = Unfit("22003", "value out of range: overflow")
_TOO_LONG_AN_INTERVAL = Unfit("22008", "interval out of range")
_INFINITE = "NOT (abs({}) < double('Infinity'))"  # NaN is above all
_ANY_INFINITE = f"bool_or({_INFINITE.format('cast({0} as double)')})"


def _in_order(evaluate: Callable[[SqlType, GroupRows], Any], value: str, streamed: str, of: SqlType) -> InOrder:
    """A sum of `l.a` one value after the other, from `s.a` in an array, and the same by an aggregate of Spark's.

    NULL where it is not finite, though all values are.
    """
    sound = f"exists(l.a, e -> {_INFINITE.format('e')})"
    checked = f"CASE WHEN {_INFINITE.format('r.a')} AND NOT {sound} THEN NULL ELSE r.a END"
    found = let(checked, f"cast({value} as {spark_type(of)})", name="r")
    summed = let(found, "aggregate(l.a, 0D, (s, e) -> s + e)", name="s")
    result = f"cast({streamed} as {spark_type(of)})"
    lost = f"{_INFINITE.format(result)} AND NOT bool_or({_INFINITE.format('cast({0} as double)')})"
    return InOrder(
        evaluate,
        lambda values: let(f"CASE WHEN size(l.a) > 0 THEN {summed} END", values, name="l"),
        f"CASE WHEN {lost} THEN NULL ELSE {result} END",
    )


_EXACT_SUM = sum_sql("collect_list(cast({0} as double))")


def _float_sum_sql(of: SqlType) -> str:
    exact = f"try_cast({_EXACT_SUM} as {spark_type(of)})"
    finite = f"CASE WHEN {_INFINITE.format('f.a')} AND NOT f.b THEN NULL ELSE f.a END"
    return let(finite, exact, _ANY_INFINITE, name="f")


def _float_mean(values: list[float], add: Callable[[list[float]], float] = exact_sum) -> float:
    return _float_sum(values, Kind.FLOAT8, add) / len(values)


def _average_sql(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
    total = f"try_sum(cast({args[0]} as {spark_type(replace(as_numeric(types[0]), precision=38))}))"
    return average_sql(total, f"nullif(count({args[0]}), 0L)")


def average_sql(total: str, count: str) -> str:
    """Divide a decimal of 38 digits by a bigint: Spark gives a decimal(38,18), and NULL if that is too long."""
    return f"try_divide({total}, cast({count} as decimal(38,18)))"


def _interval_average_sql(args: Sequence[str], _types: Sequence[SqlType], _result: SqlType) -> str:
    total = interval(f"sum({args[0]}.months)", f"sum({args[0]}.days)", f"try_sum({args[0]}.micros)")
    return scaled_interval_sql((total, f"cast(count({args[0]}) as double)"), "/")


def _total_order(of: SqlType) -> Callable[[Any], Any]:
    """The key to find a least value by: it tells 1 month from 30 days, so the same rows give the same value."""
    key = sort_key(of)
    if of.kind is Kind.INTERVAL:
        return lambda value: (key(value), value[:2])
    if of.element is not None and of.element.kind is Kind.INTERVAL:
        return lambda value: (key(value), [each[:2] for each in value if each is not None])
    return key


def _total_order_sql(of: SqlType, value: str) -> str:
    key = spark_sort_key(of, value)
    if of.kind is Kind.INTERVAL:
        return f"CASE WHEN {value} IS NOT NULL THEN struct({key}, {value}.months, {value}.days) END"
    if of.element is not None and of.element.kind is Kind.INTERVAL:
        parts = f"transform(filter({value}, i -> i IS NOT NULL), i -> struct(i.months, i.days))"
        return f"CASE WHEN {value} IS NOT NULL THEN struct({key}, {parts}) END"
    return key


def _extreme_sql(name: str, of: SqlType) -> str | Renderer:
    if of.kind in (Kind.INTERVAL, Kind.ARRAY):
        return lambda args, types, _: f"{name}_by({args[0]}, {_total_order_sql(types[0], args[0])})"
    return f"{name}({{0}})"


_EXACT_SCALE_MAX = 9  # the squares of such decimals have the scale that decimals can have


def exact_variance(values: list[Decimal], *, sample: bool, to: SqlType) -> Decimal:
    """The variance as Spark computes it: from the count, the sum, and the sum of squares."""
    count, scale = len(values), -int(values[0].as_tuple().exponent)
    wide = numeric(38, 2 * scale)
    with localcontext(EXACT):
        squares, total = sum((value * value for value in values), Decimal(0)), _total(values)
        spread = fit(fit(squares * count, wide) - fit(total * total, wide), wide)
        ratio = (spread / (count * (count - sample))).quantize(Decimal("1e-38"), ROUND_HALF_UP)
        return fit(fit(ratio, numeric(38, 18 + scale)), to)


def variance_sql(count: str, total: str, squares: str, scale: int, *, sample: bool) -> str:
    """The variance from additive accumulators: a bigint, and decimals of scale `scale` and `2 * scale`."""
    product = f"try_cast(try_multiply(m.b, m.b) as decimal(38,{2 * scale}))"
    spread = f"try_subtract(try_cast(try_multiply(m.c, m.a) as decimal(38,{2 * scale})), {product})"
    below = "cast(m.a * (m.a - 1) as decimal(38,0))" if sample else "cast(m.a * m.a as decimal(38,0))"
    ratio = f"try_cast(try_divide(cast({spread} as decimal(38,{2 * scale})), {below}) as decimal(38,18))"
    body = f"CASE WHEN m.a > {int(sample)} THEN {ratio} END"
    return let(body, f"cast({count} as decimal(18,0))", total, squares, name="m")


def _float_variance(values: list[float], *, sample: bool) -> float:
    values = sorted(values)  # also over a window; where one is not finite, the order does not matter
    found = deviation(values, values) / (len(values) - sample)
    if not math.isfinite(found) and all(map(math.isfinite, values)):
        raise Failure("22003", "value out of range: overflow")
    return found + 0.0


def _float_variance_sql(*, sample: bool, root: bool) -> str:
    """The variance of the sorted values, so that it does not depend on the order of the rows."""
    finite = f"NOT exists(l.a, e -> {_INFINITE.format('e')})"
    squares = let("aggregate(l.a, 0D, (s, e) -> s + (e - m.a) * (e - m.a))", _MEAN_SQL, name="m")
    spread = f"CASE WHEN NOT v.b THEN double('NaN') WHEN l.a[0] = l.a[size(l.a) - 1] THEN 0D ELSE {squares} END"
    variance = f"w.a / (size(l.a) - {int(sample)})"
    value = f"sqrt({variance})" if root else variance
    checked = let(f"CASE WHEN v.b AND {_INFINITE.format('w.a')} THEN NULL ELSE {value} END", spread, name="w")
    found = let(checked, "0", finite)
    values = "array_sort(collect_list(cast({0} as double)))"
    return let(f"CASE WHEN size(l.a) > {int(sample)} THEN {found} END", values, name="l")


_MEAN_SQL = "aggregate(l.a, 0D, (s, e) -> s + e) / size(l.a)"


def _numeric_variance(to: SqlType, rows: GroupRows, *, sample: bool, root: bool) -> Any:
    values = [Decimal(row[0]) for row in rows]
    if len(values) <= sample:
        return None
    if -int(values[0].as_tuple().exponent) > _EXACT_SCALE_MAX:
        result = fit(significant(_float_variance([float(value) for value in values], sample=sample), digits=10), to)
    else:
        result = exact_variance(values, sample=sample, to=to)
    return fit(significant(math.sqrt(result)), to) if root else result


def _real_variance(_: SqlType, rows: GroupRows, *, sample: bool, root: bool) -> Any:
    if len(rows) <= sample:
        return None
    variance = _float_variance([row[0] for row in rows], sample=sample)
    return math.sqrt(variance) if root else variance


def _numeric_variance_sql(*, sample: bool, root: bool) -> Renderer:
    def rendered(args: Sequence[str], types: Sequence[SqlType], result: SqlType) -> str:
        scale = as_numeric(types[0]).scale
        if scale > _EXACT_SCALE_MAX:
            rough = _float_variance_sql(sample=sample, root=False).format(args[0])
            variance = f"try_cast(format_string('%.9e', {rough}) as decimal(38,18))"
        else:
            value = f"cast({args[0]} as decimal(38,{scale}))"
            squares = f"try_sum(try_cast(try_multiply({value}, {value}) as decimal(38,{2 * scale})))"
            variance = variance_sql(f"count({args[0]})", f"try_sum({value})", squares, scale, sample=sample)
        if root:
            variance = f"try_cast(format_string('%.14e', sqrt(cast({variance} as double))) as decimal(38,18))"
        return f"try_cast({variance} as {spark_type(result)})"

    return rendered


def _single(_: SqlType, rows: GroupRows) -> Any:
    """The value of a subquery in an expression, which must have no more than one row."""
    if len(rows) > 1:
        raise Failure("21000", "more than one row returned by a subquery used as an expression")
    return rows[0][0]


_SINGLE = "CASE WHEN count(*) = 1 THEN first({0}) END"
define("single(any) -> $1", _single, _SINGLE, takes_nulls=True, algebra=OneRow(enforced=True))
define(f"{SOME} -> $1", lambda _, rows: rows[0][0], "first({0})", takes_nulls=True, algebra=OneRow())
define("count() -> int8", lambda _, rows: len(rows), "count(*)", takes_nulls=True, algebra=COUNT, empty=0)
define("count(any) -> int8", lambda _, rows: len(rows), "count({0})", algebra=COUNT, empty=0)

_sum_of_integers = _of_values(lambda values: whole(sum(values), Kind.INT8))
_exact_sum = _of_values_as(lambda to, values: fit(_total(values), to))
_interval_total = _of_values(_interval_sum)
_EXACT_SUM_SQL: Renderer = lambda args, _, result: f"cast(try_sum({args[0]}) as {spark_type(result)})"
_INTERVAL_SUM_SQL = interval("sum({0}.months)", "sum({0}.days)", "try_sum({0}.micros)")
_SHORT = replace(_TOO_LONG, sure=_is_short)
define("sum(T) -> int8", _sum_of_integers, "try_sum(cast({0} as bigint))", algebra=SUM, T="int2 int4")
define("sum(int8) -> numeric(38,0)", _exact_sum, "try_sum(cast({0} as decimal(38,0)))", algebra=SUM)
_sum_type = lambda types: replace(as_numeric(types[0]), precision=38)
define("sum(numeric)", _exact_sum, _EXACT_SUM_SQL, result=_sum_type, algebra=SUM, unfit=_SHORT)
define("sum(interval) -> interval", _interval_total, _INTERVAL_SUM_SQL, unfit=_TOO_LONG_AN_INTERVAL)
for _of in named("float4 float8"):
    _evaluate = _of_values_as(lambda to, values: _float_sum(values, to.kind))
    _running = _of_values_as(lambda to, values: _float_sum(values, to.kind, total))
    _over_window = _in_order(_running, "s.a", "sum(cast({0} as double))", _of)
    _float_sum_of: Any = {"algebra": SUM, "unfit": _TOO_LARGE, "in_order": _over_window}
    define("sum(T) -> T", _evaluate, _float_sum_sql(_of), **_float_sum_of, T=_of)

_average = _of_values_as(lambda to, values: quotient(_total(values), Decimal(len(values)), to))
_interval_average = _of_values(lambda values: divide_interval(_interval_sum(values), float(len(values))))
_running = _of_values(lambda values: _float_mean(values, total))
_algebra = Additive((lambda argument: argument,), key_of(AVERAGE, (NUMERIC, INT8)))
_float_algebra = Additive((lambda argument: argument,), key_of(MEAN, (FLOAT8, INT8)))
define("avg(T) -> numeric", _average, _average_sql, algebra=_algebra, unfit=_SHORT, T="int2 int4 int8 numeric")
_over_window = _in_order(_running, "s.a / size(l.a)", "avg(cast({0} as double))", FLOAT8)
_float_mean_of: Any = {"algebra": _float_algebra, "unfit": _TOO_LARGE, "in_order": _over_window}
_MEAN = f"{_EXACT_SUM} / nullif(count({{0}}), 0L)"
define("avg(T) -> float8", _of_values(_float_mean), _MEAN, **_float_mean_of, T="float4 float8")
define("avg(interval) -> interval", _interval_average, _interval_average_sql, unfit=_TOO_LONG_AN_INTERVAL)

for _of in (*ORDERED, *ARRAYS):
    if Kind.JSONB in (_of.kind, (_of.element or _of).kind) or _of.kind is Kind.BOOLEAN:
        continue
    _least, _greatest = (_of_values(partial(each, key=_total_order(_of))) for each in (min, max))
    define("min(T) -> $1", _least, _extreme_sql("min", _of), algebra=LEAST, T=_of)
    define("max(T) -> $1", _greatest, _extreme_sql("max", _of), algebra=GREATEST, T=_of)
    # Any value but NULL: the least, so that it is the same however and whenever it is computed.
    define("any_value(T) -> $1", _least, _extreme_sql("min", _of), T=_of)
# False is less than true.
define("any_value(bool) -> bool", _of_values(min), "min({0})")
define("bool_and, every(bool) -> bool", _of_values(all), "bool_and({0})", algebra=LEAST)
define("bool_or(bool) -> bool", _of_values(any), "bool_or({0})", algebra=GREATEST)
for _of in named("int2 int4 int8"):
    for _name, _join in (("bit_and", operator.and_), ("bit_or", operator.or_), ("bit_xor", operator.xor)):
        _joined = _of_values(partial(reduce, _join))
        define(f"{_name}(T) -> T", _joined, f"cast({_name}({{0}}) as {spark_type(_of)})", T=_of)
for _name, _of_sample, _root in (
    ("variance, var_samp", True, False),
    ("var_pop", False, False),
    ("stddev, stddev_samp", True, True),
    ("stddev_pop", False, True),
):
    _which: Any = {"sample": _of_sample, "root": _root}
    _long, _large = (replace(each, least=1 + _of_sample) for each in (_TOO_LONG, _TOO_LARGE))
    _numeric, _numeric_sql = partial(_numeric_variance, **_which), _numeric_variance_sql(**_which)
    define(f"{_name}(T) -> numeric", _numeric, _numeric_sql, unfit=_long, T="int2 int4 int8 numeric")
    _real, _real_sql = partial(_real_variance, **_which), _float_variance_sql(**_which)
    define(f"{_name}(T) -> float8", _real, _real_sql, unfit=_large, T="float4 float8")
