"""The arithmetic of intervals: sums, products, and moving parts from one unit to the next."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from everview.compute.functions.civil import DAY, make_interval
from everview.compute.functions.contract import Failure
from everview.compute.functions.family import Family
from everview.compute.functions.spark_sql import Renderer, interval, let
from everview.compute.ir.types import FLOAT8, INT4, INTERVAL, Interval

FUNCTIONS = Family()
_add = FUNCTIONS.add


def _out_of_range() -> Failure:
    return Failure("22008", "interval out of range")


def _scaled(span: Interval, months: float, days: float, micros: float) -> Interval:
    """The parts as floats, their fractions carried down: of a month to days of 30, of a day to seconds."""
    if not all(map(math.isfinite, (months, days, micros))):
        raise _out_of_range()
    if abs(months) >= 2**31 or abs(days) >= 2**31:
        raise _out_of_range()
    month_days = _to_micros((months - int(months)) * 30)
    seconds = _to_micros((days - int(days) + month_days - int(month_days)) * 86_400)
    whole_days = int(days)
    if abs(seconds) >= 86_400:
        whole_days += int(seconds / 86_400)
        seconds -= int(seconds / 86_400) * 86_400
    total = micros + seconds * 1_000_000
    if not abs(total) < 2**63:
        raise _out_of_range()
    return make_interval(int(months), whole_days + int(month_days), round(total))


def _to_micros(value: float) -> float:
    return round(value * 1_000_000) / 1_000_000


def multiply_interval(span: Interval, factor: float) -> Interval:
    """`span * factor`."""
    return _scaled(span, span.months * factor, span.days * factor, span.micros * factor)


def divide_interval(span: Interval, divisor: float) -> Interval:
    """`span / divisor`."""
    if divisor == 0:
        raise Failure("22012", "division by zero")
    return _scaled(span, span.months / divisor, span.days / divisor, span.micros / divisor)


def _scaled_sql(args: Sequence[str], operator: str) -> str:
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


def multiply_interval_sql(args: Sequence[str]) -> str:
    """The same in Spark."""
    return _scaled_sql(args, "*")


def divide_interval_sql(args: Sequence[str]) -> str:
    """The same in Spark."""
    return _scaled_sql(args, "/")


def _moved(amount: int, size: int) -> tuple[int, int]:
    """So many whole units, rounded towards zero, and the rest."""
    units = int(math.copysign(abs(amount) // size, amount)) if amount else 0
    return units, amount - units * size


def justify_hours(span: Interval) -> Interval:
    """24 hours are a day; both parts of one sign."""
    units, micros = _moved(span.micros, DAY)
    days = span.days + units
    if days > 0 > micros:
        days, micros = days - 1, micros + DAY
    elif days < 0 < micros:
        days, micros = days + 1, micros - DAY
    return make_interval(span.months, days, micros)


def justify_days(span: Interval) -> Interval:
    """30 days are a month; both parts of one sign."""
    units, days = _moved(span.days, 30)
    months = span.months + units
    if months > 0 > days:
        months, days = months - 1, days + 30
    elif months < 0 < days:
        months, days = months + 1, days - 30
    return make_interval(months, days, span.micros)


def justify_interval(span: Interval) -> Interval:
    """Both, and all three parts of one sign."""
    units, micros = _moved(span.micros, DAY)
    more, days = _moved(span.days + units, 30)
    months = span.months + more
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + 30
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - 30
    if days > 0 > micros:
        days, micros = days - 1, micros + DAY
    elif days < 0 < micros:
        days, micros = days + 1, micros - DAY
    return make_interval(months, days, micros)


def _signs(high: str, low: str, size: str) -> tuple[str, str]:
    """Two parts of which the lower is less than one of the higher, made to have one sign."""
    step = f"(CASE WHEN {high} > 0 AND {low} < 0 THEN 1 WHEN {high} < 0 AND {low} > 0 THEN -1 ELSE 0 END)"
    return f"{high} - {step}", f"{low} + {step} * {size}"


def justify_hours_sql(value: str) -> str:
    """The same in Spark."""
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


def _sum_sql(args: Sequence[str], operation: str) -> str:
    parts = [f"{operation}(i.a.{part}, i.b.{part})" for part in ("months", "days", "micros")]
    return let(interval(*parts), *args, name="i")


def _make_sql(args: Sequence[str]) -> str:
    whole = [f"cast({each} as bigint)" for each in args[:6]]
    seconds = f"rint({args[6]} * 1000000D)" if len(args) > 6 else "0"
    micros = (
        f"try_add(({whole[4]} * 60 + {whole[5]}) * 60000000, try_cast({seconds} as bigint))"
        if len(args) > 5
        else (f"{whole[4]} * 3600000000" if len(args) > 4 else "0")
    )
    months = f"{whole[0]} * 12" + (f" + {whole[1]}" if len(args) > 1 else "")
    days = " + ".join(f"{part} * {size}" for part, size in zip(whole[2:4], (7, 1), strict=False)) or "0"
    return interval(months, days, micros)


def _make(*args: float) -> Interval:
    year, month, week, day, hour, minute, second = [*args, 0, 0, 0, 0, 0, 0][:7]
    if not math.isfinite(second * 1_000_000.0):
        raise _out_of_range()
    clock = (int(hour) * 60 + int(minute)) * 60_000_000 + round(second * 1_000_000.0)
    return make_interval(int(year) * 12 + int(month), int(week) * 7 + int(day), clock)


def _one(spark: Callable[[str], str]) -> Renderer:
    return lambda args, types, result: spark(args[0])


_pair = (INTERVAL, INTERVAL)
_add(
    "+",
    _pair,
    INTERVAL,
    lambda a, b: make_interval(a.months + b.months, a.days + b.days, a.micros + b.micros),
    lambda a, t, r: _sum_sql(a, "try_add"),
    word="add",
    fails=True,
)
_add(
    "-",
    _pair,
    INTERVAL,
    lambda a, b: make_interval(a.months - b.months, a.days - b.days, a.micros - b.micros),
    lambda a, t, r: _sum_sql(a, "try_subtract"),
    word="sub",
    fails=True,
)
_add(
    "-",
    (INTERVAL,),
    INTERVAL,
    lambda a: make_interval(-a.months, -a.days, -a.micros),
    lambda a, t, r: _sum_sql(("named_struct('months', 0, 'days', 0, 'micros', 0L)", a[0]), "try_subtract"),
    word="neg",
    fails=True,
)
_add(
    "*",
    (INTERVAL, FLOAT8),
    INTERVAL,
    multiply_interval,
    lambda a, t, r: multiply_interval_sql(a),
    word="mul",
    fails=True,
)
_add(
    "*",
    (FLOAT8, INTERVAL),
    INTERVAL,
    lambda f, a: multiply_interval(a, f),
    lambda a, t, r: multiply_interval_sql((a[1], a[0])),
    word="mul",
    fails=True,
)
_add("/", (INTERVAL, FLOAT8), INTERVAL, divide_interval, lambda a, t, r: divide_interval_sql(a), word="div", fails=True)
for _name, _python, _spark in (
    ("justify_hours", justify_hours, justify_hours_sql),
    ("justify_days", justify_days, _justify_days_sql),
    ("justify_interval", justify_interval, _justify_interval_sql),
):
    _add(_name, (INTERVAL,), INTERVAL, _python, _one(_spark), fails=True)
for _count in range(1, 8):
    _add(
        "make_interval",
        (*(INT4,) * min(_count, 6), *(FLOAT8,) * (_count == 7)),
        INTERVAL,
        _make,
        lambda a, t, r: _make_sql(a),
        fails=True,
    )
