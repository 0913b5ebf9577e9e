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

from everview.compute.functions.civil import make_interval
from everview.compute.functions.contract import (
    Additive,
    AggregateFunction,
    Extreme,
    Failure,
    InOrder,
    Result,
    Total,
    Unfit,
)
from everview.compute.functions.exact_floats import MEAN, exact_sum, sum_sql
from everview.compute.functions.intervals import divide_interval, divide_interval_sql
from everview.compute.functions.naming import ANY, ARRAYS, NUMERIC, ORDERED, as_numeric, key_of
from everview.compute.functions.numbers import EXACT, SURE_DIGITS, fit, quotient, real, significant, whole
from everview.compute.functions.order import sort_key, spark_sort_key
from everview.compute.functions.regression import deviation, total
from everview.compute.functions.spark_sql import Renderer, interval, let, spark_type
from everview.compute.ir.scalar import Scalar
from everview.compute.ir.types import (
    BOOLEAN,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC_PRECISION,
    NUMERIC_SCALE,
    Interval,
    Kind,
    SqlType,
    numeric,
)

AGGREGATES: list[AggregateFunction] = []
AVERAGE = "total by count"  # the scalar function of a total and a number of rows

COUNT, SUM, LEAST, GREATEST = Total(counts=True), Total(), Extreme(), Extreme(descending=True)
Rows = list[tuple[Any, ...]]


def _add(
    name: str,
    args: tuple[SqlType, ...],
    result: Result,
    evaluate: Callable[[SqlType, Rows], Any],
    spark: str | Renderer,
    **flags: Any,
) -> None:
    AGGREGATES.append(AggregateFunction(key_of(name, args), name, args, result, evaluate, spark, **flags))


def _column(rows: Rows) -> list[Any]:
    return [row[0] for row in rows]


def _itself(argument: Scalar) -> Scalar:
    return argument


def _sum_type(types: Sequence[SqlType]) -> SqlType:
    return replace(as_numeric(types[0]), precision=38)


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


def _in_order(evaluate: Callable[[SqlType, Rows], Any], value: str, streamed: str, of: SqlType) -> InOrder:
    """Of `s.a`, the sum of the values `l.a` one after the other, and the same by an aggregate of Spark's.

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


def _float_sums(of: SqlType) -> None:
    def whole(to: SqlType, rows: Rows) -> Any:
        return _float_sum(_column(rows), to.kind) if rows else None

    def running(to: SqlType, rows: Rows) -> Any:
        return _float_sum(_column(rows), to.kind, total) if rows else None

    exact = f"try_cast({_EXACT_SUM} as {spark_type(of)})"
    spark = let(
        f"CASE WHEN {_INFINITE.format('f.a')} AND NOT f.b THEN NULL ELSE f.a END", exact, _ANY_INFINITE, name="f"
    )
    in_order = _in_order(running, "s.a", "sum(cast({0} as double))", of)
    _add("sum", (of,), of, whole, spark, algebra=SUM, unfit=_TOO_LARGE, in_order=in_order)


def _float_averages(of: SqlType) -> None:
    def whole(_: SqlType, rows: Rows) -> Any:
        return _float_sum(_column(rows), Kind.FLOAT8) / len(rows) if rows else None

    def running(_: SqlType, rows: Rows) -> Any:
        return _float_sum(_column(rows), Kind.FLOAT8, total) / len(rows) if rows else None

    in_order = _in_order(running, "s.a / size(l.a)", "avg(cast({0} as double))", FLOAT8)
    spark = f"{_EXACT_SUM} / nullif(count({{0}}), 0L)"
    algebra = Additive((_itself,), key_of(MEAN, (FLOAT8, INT8)))
    _add("avg", (of,), FLOAT8, whole, spark, algebra=algebra, unfit=_TOO_LARGE, in_order=in_order)


def _counts() -> None:
    _add("count", (), INT8, lambda _, rows: len(rows), "count(*)", takes_nulls=True, algebra=COUNT, empty=0)
    _add("count", (ANY,), INT8, lambda _, rows: len(rows), "count({0})", algebra=COUNT, empty=0)


def _sums() -> None:
    for of in (INT2, INT4):
        _add(
            "sum",
            (of,),
            INT8,
            lambda _, rows: whole(sum(_column(rows)), Kind.INT8) if rows else None,
            "try_sum(cast({0} as bigint))",
            algebra=SUM,
        )
    exact: Callable[[SqlType, Rows], Any] = lambda to, rows: fit(_total(_column(rows)), to) if rows else None  # noqa: E731
    _add("sum", (INT8,), numeric(38, 0), exact, "try_sum(cast({0} as decimal(38,0)))", algebra=SUM)
    total = lambda args, _, result: f"cast(try_sum({args[0]}) as {spark_type(result)})"  # noqa: E731
    _add("sum", (NUMERIC,), _sum_type, exact, total, algebra=SUM, unfit=replace(_TOO_LONG, sure=_is_short))
    for of in (FLOAT4, FLOAT8):
        _float_sums(of)
    _add(
        "sum",
        (INTERVAL,),
        INTERVAL,
        lambda _, rows: _interval_sum(_column(rows)) if rows else None,
        interval("sum({0}.months)", "sum({0}.days)", "try_sum({0}.micros)"),
        unfit=_TOO_LONG_AN_INTERVAL,
    )


def _average_sql(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
    total = f"try_sum(cast({args[0]} as {spark_type(replace(as_numeric(types[0]), precision=38))}))"
    return average_sql(total, f"nullif(count({args[0]}), 0L)")


def average_sql(total: str, count: str) -> str:
    """Of a decimal of 38 digits and a bigint, of which Spark gives a decimal(38,18); NULL where that is too long."""
    return f"try_divide({total}, cast({count} as decimal(38,18)))"


def _averages() -> None:
    def exact(to: SqlType, rows: Rows) -> Any:
        return quotient(_total(_column(rows)), Decimal(len(rows)), to) if rows else None

    algebra = Additive((_itself,), key_of(AVERAGE, (NUMERIC, INT8)))
    for of in (INT2, INT4, INT8, NUMERIC):
        unfit = replace(_TOO_LONG, sure=_is_short)
        _add("avg", (of,), NUMERIC, exact, _average_sql, algebra=algebra, unfit=unfit)
    for of in (FLOAT4, FLOAT8):
        _float_averages(of)
    _add(
        "avg",
        (INTERVAL,),
        INTERVAL,
        lambda _, rows: divide_interval(_interval_sum(_column(rows)), float(len(rows))) if rows else None,
        _interval_average_sql,
        unfit=_TOO_LONG_AN_INTERVAL,
    )


def _interval_average_sql(args: Sequence[str], _types: Sequence[SqlType], _result: SqlType) -> str:

    total = interval(f"sum({args[0]}.months)", f"sum({args[0]}.days)", f"try_sum({args[0]}.micros)")
    return divide_interval_sql((total, f"cast(count({args[0]}) as double)"))


def _total_order(of: SqlType) -> Callable[[Any], Any]:
    """By which a least value is one, though 1 month and 30 days are equal: of the same rows it is always the same."""
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


def _extremes() -> None:
    def spark(name: str, of: SqlType) -> str | Renderer:
        if of.kind in (Kind.INTERVAL, Kind.ARRAY):
            return lambda args, types, _: f"{name}_by({args[0]}, {_total_order_sql(types[0], args[0])})"
        return f"{name}({{0}})"

    for of in (*ORDERED, *ARRAYS):
        if of.kind in (Kind.BOOLEAN, Kind.JSONB) or (of.element and of.element.kind is Kind.JSONB):
            continue
        for name, pick, algebra in (("min", min, LEAST), ("max", max, GREATEST)):
            key = _total_order(of)

            def evaluate(_: SqlType, rows: Rows, pick: Any = pick, key: Any = key) -> Any:
                return pick(_column(rows), key=key) if rows else None

            _add(name, (of,), lambda types: types[0], evaluate, spark(name, of), algebra=algebra)


def _booleans() -> None:
    """False is less than true."""
    every: Callable[[SqlType, Rows], Any] = lambda _, rows: all(_column(rows)) if rows else None  # noqa: E731
    some: Callable[[SqlType, Rows], Any] = lambda _, rows: any(_column(rows)) if rows else None  # noqa: E731
    for name in ("bool_and", "every"):
        _add(name, (BOOLEAN,), BOOLEAN, every, "bool_and({0})", algebra=LEAST)
    _add("bool_or", (BOOLEAN,), BOOLEAN, some, "bool_or({0})", algebra=GREATEST)


def _bits() -> None:
    for name, join in (("bit_and", operator.and_), ("bit_or", operator.or_), ("bit_xor", operator.xor)):
        for of in (INT2, INT4, INT8):

            def evaluate(_: SqlType, rows: Rows, join: Callable[[int, int], int] = join) -> Any:
                return reduce(join, _column(rows)) if rows else None

            _add(name, (of,), of, evaluate, f"cast({name}({{0}}) as {spark_type(of)})")


def _any_value() -> None:
    """Any value but NULL: the least, so that it is the same however and whenever it is computed."""
    for least in [each for each in AGGREGATES if each.name == "min"]:
        _add("any_value", least.args, least.result, least.evaluate, least.spark)
    _add("any_value", (BOOLEAN,), BOOLEAN, lambda _, rows: min(_column(rows)) if rows else None, "min({0})")


_EXACT_SCALE_MAX = 9  # the squares of such decimals have the scale that decimals can have


def exact_variance(values: list[Decimal], *, sample: bool, to: SqlType) -> Decimal:
    """From the number of values, their sum and the sum of their squares, as Spark computes it from these."""
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
    return let(
        f"CASE WHEN m.a > {int(sample)} THEN {ratio} END", f"cast({count} as decimal(18,0))", total, squares, name="m"
    )


def _float_variance(values: list[float], *, sample: bool) -> float:
    values = sorted(values)  # also over a window; where one is not finite, the order does not matter
    found = deviation(values, values) / (len(values) - sample)
    if not math.isfinite(found) and all(map(math.isfinite, values)):
        raise Failure("22003", "value out of range: overflow")
    return found + 0.0


def _float_variance_sql(*, sample: bool, root: bool) -> str:
    """From the values in order, so that it does not depend on that of the rows."""
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


def _numeric_variance(to: SqlType, rows: Rows, *, sample: bool, root: bool) -> Any:
    values = [Decimal(value) for value in _column(rows)]
    if len(values) <= sample:
        return None
    if -int(values[0].as_tuple().exponent) > _EXACT_SCALE_MAX:
        result = fit(significant(_float_variance([float(value) for value in values], sample=sample), digits=10), to)
    else:
        result = exact_variance(values, sample=sample, to=to)
    return fit(significant(math.sqrt(result)), to) if root else result


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


def _variances() -> None:
    spellings = (
        ("variance", True, False),
        ("var_samp", True, False),
        ("var_pop", False, False),
        ("stddev", True, True),
        ("stddev_samp", True, True),
        ("stddev_pop", False, True),
    )
    for name, sample, root in spellings:
        exact = partial(_numeric_variance, sample=sample, root=root)

        def inexact(_: SqlType, rows: Rows, sample: bool = sample, root: bool = root) -> Any:
            if len(rows) <= sample:
                return None
            variance = _float_variance(_column(rows), sample=sample)
            return math.sqrt(variance) if root else variance

        for of in (INT2, INT4, INT8, NUMERIC):
            unfit = replace(_TOO_LONG, least=1 + sample)
            _add(name, (of,), NUMERIC, exact, _numeric_variance_sql(sample=sample, root=root), unfit=unfit)
        for of in (FLOAT4, FLOAT8):
            unfit = replace(_TOO_LARGE, least=1 + sample)
            _add(name, (of,), FLOAT8, inexact, _float_variance_sql(sample=sample, root=root), unfit=unfit)


def _single() -> None:
    """The value of a subquery in an expression, which must have no more than one row."""

    def evaluate(_: SqlType, rows: Rows) -> Any:
        if len(rows) > 1:
            raise Failure("21000", "more than one row returned by a subquery used as an expression")
        return rows[0][0]

    _add(
        "single",
        (ANY,),
        lambda types: types[0],
        evaluate,
        "CASE WHEN count(*) = 1 THEN first({0}) END",
        takes_nulls=True,
    )


def _some() -> None:
    """The value of a group of one row; of a larger one, some value of it, that of the first in order."""
    _add("some", (ANY,), lambda types: types[0], lambda _, rows: rows[0][0], "first({0})", takes_nulls=True)


_single()
_some()
_counts()
_sums()
_averages()
_extremes()
_booleans()
_bits()
_any_value()
_variances()
