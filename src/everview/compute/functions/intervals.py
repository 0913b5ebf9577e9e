"""The arithmetic of intervals: sums, products, and moving parts from one unit to the next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from everview.compute.functions.calendar import DAY, make_interval, rest, units
from everview.compute.functions.contract import Failure
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import Renderer, interval, let
from everview.compute.ir.types import Interval

FUNCTIONS = Family()
define = FUNCTIONS.define


def _scaled(months: float, days: float, micros: float) -> Interval:
    """The parts as floats, their fractions carried down: of a month to days of 30, of a day to seconds."""
    if not all(map(math.isfinite, (months, days, micros))):
        raise Failure("22008", "interval out of range")
    if abs(months) >= 2**31 or abs(days) >= 2**31:
        raise Failure("22008", "interval out of range")
    month_days = _to_micros((months - int(months)) * 30)
    seconds = _to_micros((days - int(days) + month_days - int(month_days)) * 86_400)
    whole_days = int(days)
    if abs(seconds) >= 86_400:
        whole_days += int(seconds / 86_400)
        seconds -= int(seconds / 86_400) * 86_400
    total = micros + seconds * 1_000_000
    if not abs(total) < 2**63:
        raise Failure("22008", "interval out of range")
    return make_interval(int(months), whole_days + int(month_days), round(total))


def _to_micros(value: float) -> float:
    return round(value * 1_000_000) / 1_000_000


def multiply_interval(span: Interval, factor: float) -> Interval:
    return _scaled(span.months * factor, span.days * factor, span.micros * factor)


def divide_interval(span: Interval, divisor: float) -> Interval:
    if divisor == 0:
        raise Failure("22012", "division by zero")
    return _scaled(span.months / divisor, span.days / divisor, span.micros / divisor)


def scaled_interval_sql(args: Sequence[str], operator: str) -> str:
    """`multiply_interval` or `divide_interval` in Spark SQL, by the operator."""
    by = "i.b" if operator == "*" else "nullif(i.b, 0D)"
    floats = [f"cast(i.a.{part} as double) {operator} {by}" for part in ("months", "days", "micros")]
    month_days = "rint((f.a - g.a) * 30 * 1000000) / 1000000"
    seconds = "rint((f.b - g.b + h.a - cast(h.a as bigint)) * 86400 * 1000000) / 1000000"
    days = "g.b + cast(h.a as bigint) + CASE WHEN abs(k.a) >= 86400 THEN cast(k.a / 86400 as bigint) ELSE 0L END"
    rest = "k.a - CASE WHEN abs(k.a) >= 86400 THEN cast(k.a / 86400 as bigint) * 86400 ELSE 0L END"
    total = f"rint(f.c + ({rest}) * 1000000)"
    micros = f"CASE WHEN abs({total}) < 9223372036854775807D THEN cast({total} as bigint) END"
    built = let(interval("g.a", days, micros), seconds, name="k")
    whole = let(let(built, month_days, name="h"), "cast(f.a as bigint)", "cast(f.b as bigint)", name="g")
    bounded = "abs(f.a) < 2147483648D AND abs(f.b) < 2147483648D AND NOT isnan(f.c)"
    return let(let(f"CASE WHEN {bounded} THEN {whole} END", *floats, name="f"), *args, name="i")


def _one_sign(high: int, low: int, size: int) -> tuple[int, int]:
    """Two parts of which the lower is less than one of the higher, made to have one sign."""
    step = 1 if high > 0 > low else -1 if high < 0 < low else 0
    return high - step, low + step * size


def justify_hours(span: Interval) -> Interval:
    """24 hours are a day; both parts of one sign."""
    days, micros = _one_sign(span.days + units(span.micros, DAY), rest(span.micros, DAY), DAY)
    return make_interval(span.months, days, micros)


def justify_days(span: Interval) -> Interval:
    """30 days are a month; both parts of one sign."""
    months, days = _one_sign(span.months + units(span.days, 30), rest(span.days, 30), 30)
    return make_interval(months, days, span.micros)


def justify_interval(span: Interval) -> Interval:
    """Both, and all three parts of one sign."""
    total, micros = span.days + units(span.micros, DAY), rest(span.micros, DAY)
    months, days = span.months + units(total, 30), rest(total, 30)
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + 30
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - 30
    return make_interval(months, *_one_sign(days, micros, DAY))


def _signs(high: str, low: str, size: str) -> tuple[str, str]:
    step = f"(CASE WHEN {high} > 0 AND {low} < 0 THEN 1 WHEN {high} < 0 AND {low} > 0 THEN -1 ELSE 0 END)"
    return f"{high} - {step}", f"{low} + {step} * {size}"


def justify_hours_sql(value: str) -> str:
    days, micros = _signs("j.a", "j.b", "86400000000L")
    inner = let(
        interval("i.a.months", days, micros),
        "cast(i.a.days as bigint) + i.a.micros div 86400000000",
        "i.a.micros % 86400000000",
        name="j",
    )
    return let(inner, value, name="i")


def _justify_days_sql(value: str) -> str:
    months, days = _signs("j.a", "j.b", "30")
    inner = let(
        interval(months, days, "i.a.micros"), "cast(i.a.months as bigint) + i.a.days div 30", "i.a.days % 30", name="j"
    )
    return let(inner, value, name="i")


def _justify_interval_sql(value: str) -> str:
    days = "(cast(i.a.days as bigint) + i.a.micros div 86400000000)"
    step = (
        "(CASE WHEN j.a > 0 AND (j.b < 0 OR (j.b = 0 AND j.c < 0)) THEN 1"
        " WHEN j.a < 0 AND (j.b > 0 OR (j.b = 0 AND j.c > 0)) THEN -1 ELSE 0 END)"
    )
    fixed_days, micros = _signs("k.b", "j.c", "86400000000L")
    inner = let(interval("k.a", fixed_days, micros), f"j.a - {step}", f"j.b + {step} * 30", name="k")
    outer = let(
        inner, f"cast(i.a.months as bigint) + {days} div 30", f"{days} % 30", "i.a.micros % 86400000000", name="j"
    )
    return let(outer, value, name="i")


def _sum_sql(operation: str) -> Renderer:
    def rendered(args: Sequence[str], _types: Any, _result: Any) -> str:
        parts = [f"{operation}(i.a.{part}, i.b.{part})" for part in ("months", "days", "micros")]
        return let(interval(*parts), *args, name="i")

    return rendered


def _negated_sql(args: Sequence[str], types: Any, result: Any) -> str:
    return _sum_sql("try_subtract")(("named_struct('months', 0, 'days', 0, 'micros', 0L)", args[0]), types, result)


def _make_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    given = {place: f"cast({each} as bigint)" for place, each in enumerate(args[:6])}
    months = f"{given[0]} * 12" + (f" + {given[1]}" if 1 in given else "")
    days = " + ".join(f"{given[place]} * {size}" for place, size in ((2, 7), (3, 1)) if place in given) or "0"
    micros = f"{given[4]} * 3600000000" if 4 in given else "0"
    if 5 in given:
        seconds = f"rint({args[6]} * 1000000D)" if len(args) > 6 else "0"
        micros = f"try_add(({given[4]} * 60 + {given[5]}) * 60000000, try_cast({seconds} as bigint))"
    return interval(months, days, micros)


def _make(*args: float) -> Interval:
    year, month, week, day, hour, minute, second = [*args, 0, 0, 0, 0, 0, 0][:7]
    if not math.isfinite(second * 1_000_000.0):
        raise Failure("22008", "interval out of range")
    clock = (int(hour) * 60 + int(minute)) * 60_000_000 + round(second * 1_000_000.0)
    return make_interval(int(year) * 12 + int(month), int(week) * 7 + int(day), clock)


def _scaling(operator: str, *, swapped: bool = False) -> Renderer:
    return lambda args, types, result: scaled_interval_sql(args[::-1] if swapped else args, operator)


def _sum(a: Interval, b: Interval, sign: int = 1) -> Interval:
    return make_interval(a.months + sign * b.months, a.days + sign * b.days, a.micros + sign * b.micros)


_PAIR = "(interval, interval) -> interval"
define("+ add" + _PAIR, _sum, _sum_sql("try_add"), fails=True)
define("- sub" + _PAIR, lambda a, b: _sum(a, b, -1), _sum_sql("try_subtract"), fails=True)
define("- neg(interval) -> interval", lambda a: _sum(Interval(0, 0, 0), a, -1), _negated_sql, fails=True)
define("* mul(interval, float8) -> interval", multiply_interval, _scaling("*"), fails=True)
_multiplied = lambda factor, span: multiply_interval(span, factor)
define("* mul(float8, interval) -> interval", _multiplied, _scaling("*", swapped=True), fails=True)
define("/ div(interval, float8) -> interval", divide_interval, _scaling("/"), fails=True)
for _name, _python, _spark in (
    ("justify_hours", justify_hours, justify_hours_sql),
    ("justify_days", justify_days, _justify_days_sql),
    ("justify_interval", justify_interval, _justify_interval_sql),
):
    _justified: Renderer = lambda args, types, result, spark=_spark: spark(args[0])  # type: ignore[misc]
    define(f"{_name}(interval) -> interval", _python, _justified, fails=True)
_PARTS = "int4 [, int4 [, int4 [, int4 [, int4 [, int4 [, float8]]]]]]"
define(f"make_interval({_PARTS}) -> interval", _make, _make_sql, fails=True)
