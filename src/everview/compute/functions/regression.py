"""Aggregates over pairs of floats: covariances, correlation and the line that fits them best.

As in SQL the dependent value comes first: regr_slope(y, x). A pair takes part if neither value is NULL. With n pairs,
means ȳ and x̄, and Sxx = Σ(x - x̄)², Syy and Sxy likewise, each of them is a formula below. Sums of floats are rounded,
so the pairs are sorted first: then they do not depend on the order of the rows, to the last digit. Values that are all
the same deviate by exactly 0, however the mean of them is rounded, so that what divides by Sxx is NULL.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from everview.compute.functions.contract import Failure, GroupRows, Unfit
from everview.compute.functions.naming import key_of
from everview.compute.functions.signatures import Aggregates
from everview.compute.functions.spark_sql import Renderer, let
from everview.compute.ir.types import FLOAT8, SqlType

AGGREGATES = Aggregates()

_PAIR = (FLOAT8, FLOAT8)


def total(values: Iterable[float]) -> float:
    """The sum of floats, one after the other: what Spark does. `sum` does better, in some versions of Python."""
    return reduce(operator.add, values, 0.0)


def deviation(ones: Sequence[float], others: Sequence[float]) -> float:
    """The sum of the products of what two columns differ from their means; NaN where a value is not finite."""
    if not all(map(math.isfinite, (*ones, *others))):
        return math.nan
    if min(ones) == max(ones) or min(others) == max(others):
        return 0.0
    mean, other_mean = total(ones) / len(ones), total(others) / len(others)
    return total((one - mean) * (other - other_mean) for one, other in zip(ones, others, strict=True))


@dataclass(frozen=True, slots=True)
class _Line:
    count: int
    sum_x: float
    sum_y: float
    sxx: float
    syy: float
    sxy: float


# The root of a product that is too large, or too small, where the roots of both are not.
_ROOT_SQL = (
    "(CASE WHEN l.xx * l.yy > 0 AND l.xx * l.yy < double('Infinity') THEN sqrt(l.xx * l.yy)"
    " ELSE sqrt(l.xx) * sqrt(l.yy) END)"
)


def _correlation(line: _Line) -> float:
    """Within -1 and 1, which rounding may leave."""
    product = line.sxx * line.syy
    root = math.sqrt(product) if 0 < product < math.inf else math.sqrt(line.sxx) * math.sqrt(line.syy)
    found = line.sxy / root
    return found if math.isnan(found) else max(min(found, 1.0), -1.0)


def _evaluation(formula: Callable[[_Line], float | None]) -> Callable[[SqlType, GroupRows], Any]:
    def evaluate(_: SqlType, rows: GroupRows) -> Any:
        pairs = sorted(((row[1], row[0]) for row in rows), key=lambda pair: [(math.isnan(each), each) for each in pair])
        xs, ys = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        sums = (total(xs), total(ys), deviation(xs, xs), deviation(ys, ys), deviation(xs, ys))
        if not all(map(math.isfinite, sums)) and all(map(math.isfinite, (*xs, *ys))):
            raise Failure("22003", "value out of range: overflow")
        found = formula(_Line(len(rows), *sums))
        return None if found is None else found + 0.0

    return evaluate


def _pairs_sql(args: Sequence[str]) -> str:
    """The pairs that take part, in order."""
    pair = f"named_struct('x', {args[1]}, 'y', {args[0]})"
    there = f"{args[0]} IS NOT NULL AND {args[1]} IS NOT NULL"
    return f"array_sort(collect_list(CASE WHEN {there} THEN {pair} END))"


def _sum_sql(value: str) -> str:
    return f"aggregate(p.a, 0D, (s, e) -> s + {value})"


def _is_finite(*values: str) -> str:
    return " AND ".join(f"abs({value}) < double('Infinity')" for value in values)  # NaN is above all


_FINITE = _is_finite("m.xl", "m.xh", "m.yl", "m.yh")


def _deviation_sql(one: str, other: str) -> str:
    columns = sorted({one, other})
    finite = _is_finite(*(f"m.{each}{end}" for each in columns for end in "lh"))
    same = " OR ".join(f"m.{each}l = m.{each}h" for each in columns)
    spread = _sum_sql(f"(e.{one} - m.{one}) * (e.{other} - m.{other})")
    return f"CASE WHEN NOT ({finite}) THEN double('NaN') WHEN {same} THEN 0D ELSE {spread} END"


def _rendering(formula: str) -> Renderer:
    """NULL where sums of finite values are too large."""

    def rendered(args: Sequence[str], _types: Sequence[SqlType], _result: SqlType) -> str:
        means = ", ".join(
            f"'{each}', {_sum_sql(f'e.{each}')} / size(p.a), '{each}l', array_min(transform(p.a, e -> e.{each})),"
            f" '{each}h', array_max(transform(p.a, e -> e.{each}))"
            for each in "xy"
        )
        known = (
            f"'n', cast(size(p.a) as double), 'sx', {_sum_sql('e.x')}, 'sy', {_sum_sql('e.y')},"
            f" 'xx', {_deviation_sql('x', 'x')}, 'yy', {_deviation_sql('y', 'y')}, 'xy', {_deviation_sql('x', 'y')}"
        )
        sound = f"NOT ({_FINITE}) OR ({_is_finite('l.sx', 'l.sy', 'l.xx', 'l.yy', 'l.xy')})"
        value = f"transform(array(named_struct({known})), l -> CASE WHEN {sound} THEN {formula} + 0D END)[0]"
        found = f"transform(array(named_struct({means})), m -> {value})[0]"
        return let(f"CASE WHEN size(p.a) > 0 THEN {found} END", _pairs_sql(args), name="p")

    return rendered


# A slope may be NULL of its own; a sum of products is so only where sums are too large.
_UNFIT = Unfit(
    "22003", "value out of range: overflow", count=key_of("regr_count", _PAIR), witness=key_of("regr_sxy", _PAIR)
)


def _add(name: str, formula: Callable[[_Line], float | None], spark: str) -> None:
    """A formula, and the same in Spark SQL, where l.n … l.xy are the sums; None and NULL where it means nothing."""
    AGGREGATES.define(f"{name}(float8, float8) -> float8", _evaluation(formula), _rendering(spark), unfit=_UNFIT)


_CORR = (
    "CASE WHEN l.xx <> 0 AND l.yy <> 0 THEN"
    f" CASE WHEN isnan(l.xy) THEN l.xy ELSE least(greatest(l.xy / {_ROOT_SQL}, -1D), 1D) END END"
)
_R2 = (
    "CASE WHEN l.xx = 0 THEN NULL WHEN l.yy = 0 THEN 1D WHEN isnan(l.xy) THEN l.xy"
    f" ELSE least(pow(l.xy / {_ROOT_SQL}, 2D), 1D) END"
)
_INTERCEPT = "CASE WHEN l.xx <> 0 THEN (l.sy - l.sx * (l.xy / l.xx)) / l.n END"
_intercept = lambda of: (of.sum_y - of.sum_x * (of.sxy / of.sxx)) / of.count if of.sxx else None
_covariance = lambda of: of.sxy / (of.count - 1) if of.count > 1 else None
_add("regr_avgx", lambda of: of.sum_x / of.count, "l.sx / l.n")
_add("regr_avgy", lambda of: of.sum_y / of.count, "l.sy / l.n")
_add("regr_sxx", lambda of: of.sxx, "l.xx")
_add("regr_syy", lambda of: of.syy, "l.yy")
_add("regr_sxy", lambda of: of.sxy, "l.xy")
_add("covar_pop", lambda of: of.sxy / of.count, "l.xy / l.n")
_add("covar_samp", _covariance, "CASE WHEN l.n > 1 THEN l.xy / (l.n - 1) END")
_add("corr", lambda of: _correlation(of) if of.sxx and of.syy else None, _CORR)
_add("regr_r2", lambda of: None if not of.sxx else _correlation(of) ** 2 if of.syy else 1.0, _R2)
_add("regr_slope", lambda of: of.sxy / of.sxx if of.sxx else None, "CASE WHEN l.xx <> 0 THEN l.xy / l.xx END")
_add("regr_intercept", _intercept, _INTERCEPT)
_COUNT = "count(CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN 1 END)"
AGGREGATES.define("regr_count(float8, float8) -> int8", lambda _, rows: len(rows), _COUNT, empty=0)
