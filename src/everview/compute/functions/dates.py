"""Sums and differences of dates, times and timestamps, time zones, and functions that make dates and times.

UTC is the session's time zone. Functions without Spark SQL are called in Python on Spark too, where a zone's clock that
goes back is read as PostgreSQL reads it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from everview.compute.functions import date_fields
from everview.compute.functions.calendar import (
    DAY,
    add_interval,
    civil,
    day,
    days_of,
    micros_of,
    month_length,
    timestamp,
)
from everview.compute.functions.contract import Failure
from everview.compute.functions.intervals import justify_hours, justify_hours_sql
from everview.compute.functions.numbers import whole
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import (
    NotOnSpark,
    Renderer,
    carried,
    date_of,
    infinity,
    interval,
    is_infinite,
    let,
    let_arguments,
    once,
    timestamp_of,
    unquoted,
)
from everview.compute.functions.spark_sql import days_of as days_sql
from everview.compute.functions.spark_sql import micros_of as micros_sql
from everview.compute.ir.infinite import INFINITY, MINUS_INFINITY, Infinite
from everview.compute.ir.types import DATE, TIMESTAMP, TIMESTAMPTZ, Interval, Kind, SqlType

FUNCTIONS = Family()
define = FUNCTIONS.define


def add_interval_sql(value: str, span: str, sql_type: SqlType, sign: int = 1) -> str:
    """A date or timestamp and an interval, months first; NULL if out of range."""
    minus = "-" if sign < 0 else ""
    result = TIMESTAMP if sql_type.kind is Kind.DATE else sql_type
    # Beyond these no sum is in range, and none overflows on the way.
    bounded = "abs(i.b.months) < 240000 AND abs(i.b.days) < 8000000 AND abs(i.b.micros) < 700000000000000000L"
    moved = f"unix_micros(timestampadd(MONTH, {minus} i.b.months, cast(i.a as timestamp)))"
    total = f"{moved} {'-' if sign < 0 else '+'} (i.b.days * 86400000000L + i.b.micros)"
    finite = f"CASE WHEN {bounded} THEN {timestamp_of(total, result)} END"
    return let(carried("i.a", sql_type, result, finite, ["i.b"]), value, span, name="i")


def _moved(value: Any, span: Interval, sign: int = 1) -> datetime | Infinite:
    if isinstance(value, Infinite):
        return value
    kind = Kind.TIMESTAMPTZ if getattr(value, "tzinfo", None) else Kind.TIMESTAMP
    return timestamp(add_interval(micros_of(value), span, sign), kind)


def _require_finite(one: date | Infinite, other: date | Infinite, what: str) -> None:
    """Raise if one of two is infinite: there are no infinite intervals."""
    if isinstance(one, Infinite) or isinstance(other, Infinite):
        raise Failure("22008", f"cannot subtract infinite {what}")


def _difference(one: datetime | Infinite, other: datetime | Infinite) -> Interval:
    _require_finite(one, other, "timestamps")
    return justify_hours(Interval(0, 0, micros_of(one) - micros_of(other)))


def _days_between(one: date | Infinite, other: date | Infinite) -> int:
    _require_finite(one, other, "dates")
    return (micros_of(one) - micros_of(other)) // DAY


def _day_moved(value: date | Infinite, by: int) -> date | Infinite:
    return value if isinstance(value, Infinite) else day(micros_of(value) // DAY + by)


def _day_moved_sql(value: str, by: str, sign: str) -> str:
    moved = date_of(f"cast({days_sql('n.a')} as bigint) {sign} n.b")
    return let(carried("n.a", DATE, DATE, moved, ["n.b"]), value, by, name="n")


def _at_time(value: date | Infinite, time: int) -> datetime | Infinite:
    return value if isinstance(value, Infinite) else timestamp(micros_of(value) + time, Kind.TIMESTAMP)


def _at_time_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    at = timestamp_of(f"{micros_sql('n.a', DATE)} + n.b", TIMESTAMP)
    return let(carried("n.a", DATE, TIMESTAMP, at, ["n.b"]), *args, name="n")


_DIFFERENCE_SQL: Renderer = lambda args, types, result: justify_hours_sql(
    interval("0", "0", f"{micros_sql(args[0], types[0])} - {micros_sql(args[1], types[1])}")
)
_TIME_SUM_SQL = "pmod({{{}}} {} {{{}}}.micros % 86400000000L, 86400000000L)".format


def _age(one: datetime | Infinite, other: datetime | Infinite) -> Interval:
    """The difference in years, months and days of the calendar, which borrow from the earlier one's month."""
    _require_finite(one, other, "timestamps")
    high, low = micros_of(one), micros_of(other)
    sign = 1
    if high < low:
        high, low, sign = low, high, -1
    (year1, month1, day1), (year2, month2, day2) = civil(high // DAY), civil(low // DAY)
    months, days, micros = (year1 - year2) * 12 + month1 - month2, day1 - day2, high % DAY - low % DAY
    if micros < 0:
        micros, days = micros + DAY, days - 1
    while days < 0:
        days, months = days + month_length(year2, month2), months - 1
    return Interval(sign * months, sign * days, sign * micros)


def _age_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    length = "day(last_day(u.b))"
    months = "(year(u.a) - year(u.b)) * 12 + month(u.a) - month(u.b)"
    borrow = "CASE WHEN w.b >= 0 THEN 0 WHEN w.b + w.d >= 0 THEN 1 ELSE 2 END"
    built = interval(f"w.f * (w.a - ({borrow}))", f"w.f * (w.b + w.d * ({borrow}))", "w.f * w.c")
    clock = "(pmod(unix_micros(u.a), 86400000000L) - pmod(unix_micros(u.b), 86400000000L))"
    fields = (
        months,
        f"day(u.a) - day(u.b) - CASE WHEN {clock} < 0 THEN 1 ELSE 0 END",
        f"CASE WHEN {clock} < 0 THEN {clock} + 86400000000L ELSE {clock} END",
        length,
        "0",
        "u.c",
    )
    fielded = let(built, *fields, name="w")
    stamps = let(fielded, "greatest(t.a, t.b)", "least(t.a, t.b)", "CASE WHEN t.a < t.b THEN -1 ELSE 1 END", name="u")
    one, other = (f"cast({each} as timestamp)" for each in args)
    finite = " AND ".join(f"NOT ({is_infinite(each, TIMESTAMPTZ)})" for each in ("t.a", "t.b"))
    return let(f"CASE WHEN {finite} THEN {stamps} END", one, other, name="t")


def _bin(stride: Interval, value: datetime | Infinite, origin: datetime | Infinite) -> datetime | Infinite:
    if isinstance(value, Infinite):
        return value
    if isinstance(origin, Infinite):
        raise Failure("22008", "origin out of range")
    if stride.months:
        raise Failure("0A000", "timestamps cannot be binned into intervals containing months or years")
    size = stride.days * DAY + stride.micros
    if size <= 0:
        raise Failure("22008", "stride must be greater than zero")
    start = micros_of(origin)
    kind = Kind.TIMESTAMPTZ if value.tzinfo else Kind.TIMESTAMP
    return timestamp(start + (micros_of(value) - start) // size * size, kind)


def _bin_sql(args: Sequence[str], types: Sequence[SqlType], result: SqlType) -> str:
    size = f"CASE WHEN {args[0]}.months = 0 THEN {args[0]}.days * 86400000000L + {args[0]}.micros END"
    start = "b.c + (b.b - b.c) - pmod(b.b - b.c, b.a)"
    return let(
        carried("b.d", types[1], result, f"CASE WHEN b.a > 0 THEN {timestamp_of(start, result)} END", ["b.e", "b.f"]),
        size,
        micros_sql(args[1], types[1]),
        micros_sql(args[2], types[2]),
        args[1],
        args[0],
        args[2],
        name="b",
    )


def zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo("UTC" if name.upper() in ("UTC", "Z", "GMT") else name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Failure("22023", f'time zone "{name}" not recognized') from None


def is_zone(name: str) -> bool:
    try:
        return bool(zone(name))
    except Failure:
        return False


def at_zone(name: str, value: datetime | Infinite) -> datetime | Infinite:
    """The local time of a zone at a moment, or the moment of a local time."""
    if isinstance(value, Infinite):
        return value
    try:
        if value.tzinfo:
            return value.astimezone(zone(name)).replace(tzinfo=None)
        return value.replace(tzinfo=zone(name)).astimezone(UTC)
    except OverflowError:
        raise Failure("22008", "timestamp out of range") from None


def _at_zone_sql(args: Sequence[str], types: Sequence[SqlType], result: SqlType) -> str:
    """An unknown name ends a query of Spark's: a name from a column is for Python to look up."""
    name = unquoted(args[0])
    if name is None or not is_zone(name):
        raise NotOnSpark("a time zone from a column")
    source, target = ("'UTC'", args[0]) if types[1].kind is Kind.TIMESTAMPTZ else (args[0], "'UTC'")

    def moved(of: str) -> str:
        local = f"convert_timezone({source}, {target}, cast({of} as timestamp_ntz))"
        return carried(of, types[1], result, timestamp_of(micros_sql(local, TIMESTAMP), result))

    return once(args[1], moved, "k")


def _make_date(year: int, month: int, of_month: int) -> Any:
    if not (1 <= year <= 9999 and 1 <= month <= 12 and 1 <= of_month <= month_length(year, month)):
        raise Failure("22008", f"date field value out of range: {year}-{month:02d}-{of_month:02d}")
    return day(days_of(year, month, of_month))


def _clock(hour: int, minute: int, second: float) -> int:
    valid = 0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= second <= 60
    micros = hour * 3_600_000_000 + minute * 60_000_000 + round(second * 1_000_000) if valid else DAY + 1
    if micros > DAY:
        raise Failure("22008", f"time field value out of range: {hour}:{minute:02d}:{second:02g}")
    return micros


def make_timestamp(*args: Any) -> datetime:
    """The timestamp with this year, month, day, hour, minute and second."""
    return timestamp(micros_of(_make_date(*args[:3])) + _clock(*args[3:6]), Kind.TIMESTAMP)


_CLOCK_SQL = let_arguments(
    "CASE WHEN v.a BETWEEN 0 AND 24 AND v.b BETWEEN 0 AND 59 AND v.c BETWEEN 0 AND 60 AND"
    " v.a * 3600000000L + v.b * 60000000L + rint(v.c * 1000000) <= 86400000000L THEN"
    " v.a * 3600000000L + v.b * 60000000L + cast(rint(v.c * 1000000) as bigint) END",
    3,
)
_DATE_SQL = let_arguments(
    "CASE WHEN d.a BETWEEN 1 AND 9999 AND d.b BETWEEN 1 AND 12 AND"
    " d.c BETWEEN 1 AND day(last_day(make_date(d.a, d.b, 1))) THEN make_date(d.a, d.b, d.c) END",
    3,
    "d",
)


def _timestamp_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    days, clock = _DATE_SQL.format(*args[:3]), _CLOCK_SQL.format(*args[3:])
    return timestamp_of(f"unix_date({days}) * 86400000000L + {clock}", TIMESTAMP)


_FROM_EPOCH_SQL = let_arguments(
    f"CASE WHEN abs(e.a) < 1e15D THEN {timestamp_of('cast(rint(e.a * 1000000) as bigint)', TIMESTAMPTZ)}"
    f" WHEN e.a = double('Infinity') THEN {infinity(TIMESTAMPTZ)}"
    f" WHEN e.a = double('-Infinity') THEN {infinity(TIMESTAMPTZ, MINUS_INFINITY)} END",
    1,
    "e",
)


def _from_epoch(seconds: float) -> datetime | Infinite:
    if math.isinf(seconds):
        return INFINITY if seconds > 0 else MINUS_INFINITY
    if math.isnan(seconds) or abs(seconds) >= 1e15:
        raise Failure("22008", "timestamp out of range")
    return timestamp(whole(round(seconds * 1_000_000), Kind.INT8), Kind.TIMESTAMPTZ)


_BELOW_DAYS = ("microseconds", "milliseconds", "second", "minute", "hour")


def _make_timestamptz(*args: Any) -> Any:
    local: Any = make_timestamp(*args[:6])
    return local.replace(tzinfo=UTC) if len(args) == 6 else at_zone(args[6], local)


def _truncated_in_zone(field: str, value: datetime | Infinite, name: str) -> Any:
    """Truncate in the zone's calendar. Parts of an hour keep their offset: an hour may come twice."""
    if isinstance(value, Infinite):
        zone(name)
        return date_fields.truncated(TIMESTAMPTZ)(field, value)
    local: Any = at_zone(name, value)
    found: Any = date_fields.truncated(TIMESTAMP)(field, local)
    if date_fields.unit_of(field) in _BELOW_DAYS:
        return timestamp(micros_of(value) - (micros_of(local) - micros_of(found)), Kind.TIMESTAMPTZ)
    try:
        return found.replace(tzinfo=zone(name)).astimezone(UTC)
    except OverflowError:
        raise Failure("22008", "timestamp out of range") from None


def _overlaps(start: Any, end: Any, other_start: Any, other_end: Any) -> bool | None:
    """Whether two periods have a moment in common, without their ends; a NULL is an end that is not known."""
    one, other = _ordered(start, end), _ordered(other_start, other_end)
    if one is None or other is None:
        return None
    if one[0] > other[0]:
        one, other = other, one
    if one[0] == other[0]:
        return None if one[1] is None or other[1] is None else True
    if one[1] is None:
        return None
    return True if other[0] < one[1] else None if other[1] is None else False


def _ordered(start: Any, end: Any) -> tuple[Any, Any] | None:
    """The earlier end first, a known end before an unknown one. None if both are unknown."""
    if start is None or end is None:
        known = end if start is None else start
        return None if known is None else (known, None)
    return (start, end) if start <= end else (end, start)


def _swapped(spark: Renderer) -> Renderer:
    return lambda args, types, result: spark(args[::-1], types[::-1], result)


_LATER: Renderer = lambda args, types, result: add_interval_sql(args[0], args[1], types[0])
_EARLIER: Renderer = lambda args, types, result: add_interval_sql(args[0], args[1], types[0], -1)
_DAYS_LATER: Renderer = lambda args, types, result: _day_moved_sql(args[0], args[1], "+")
_DAYS_EARLIER: Renderer = lambda args, types, result: _day_moved_sql(args[0], args[1], "-")
for _of, _to in ((DATE, TIMESTAMP), (TIMESTAMP, TIMESTAMP), (TIMESTAMPTZ, TIMESTAMPTZ)):
    define("+ add(T, interval) -> S", _moved, _LATER, fails=True, T=_of, S=_to)
    define("+ add(interval, T) -> S", lambda span, a: _moved(a, span), _swapped(_LATER), fails=True, T=_of, S=_to)
    define("- sub(T, interval) -> S", lambda a, span: _moved(a, span, -1), _EARLIER, fails=True, T=_of, S=_to)
define("- sub(T, T) -> interval", _difference, _DIFFERENCE_SQL, fails=True, T="timestamp timestamptz")
_days_between_sql = f"cast({days_sql('{0}')} - {days_sql('{1}')} as int)"
define("- sub(date, date) -> int4", _days_between, _days_between_sql, fails=True)
define("+ add(date, int4) -> date", _day_moved, _DAYS_LATER, fails=True)
define("+ add(int4, date) -> date", lambda n, a: _day_moved(a, n), _swapped(_DAYS_LATER), fails=True)
define("- sub(date, int4) -> date", lambda a, n: _day_moved(a, -n), _DAYS_EARLIER, fails=True)
define("+ add(date, time) -> timestamp", _at_time, _at_time_sql, fails=True)
define("+ add(time, date) -> timestamp", lambda t, a: _at_time(a, t), _swapped(_at_time_sql), fails=True)
define("+ add(time, interval) -> time", lambda t, span: (t + span.micros) % DAY, _TIME_SUM_SQL(0, "+", 1))
define("+ add(interval, time) -> time", lambda span, t: (t + span.micros) % DAY, _TIME_SUM_SQL(1, "+", 0))
define("- sub(time, interval) -> time", lambda t, span: (t - span.micros) % DAY, _TIME_SUM_SQL(0, "-", 1))
_time_between: Renderer = lambda a, t, r: interval("0", "0", f"{a[0]} - {a[1]}")
define("- sub(time, time) -> interval", lambda a, b: Interval(0, 0, a - b), _time_between)

_finite_sql: Renderer = lambda a, t, r: f"(NOT {is_infinite(a[0], t[0])})"
define("isfinite(T) -> bool", lambda a: not isinstance(a, Infinite), _finite_sql, T="date timestamp timestamptz")
# There are no infinite intervals.
define("isfinite(interval) -> bool", lambda _: True, "CASE WHEN {0} IS NOT NULL THEN true END")
define("age(T, T) -> interval", _age, _age_sql, fails=True, T="timestamp timestamptz")
define("date_bin(interval, T, T) -> T", _bin, _bin_sql, fails=True, T="timestamp timestamptz")
define("timezone(text, timestamptz) -> timestamp", at_zone, _at_zone_sql, fails=True)
define("timezone(text, timestamp) -> timestamptz", at_zone, _at_zone_sql, fails=True)
define("make_date(int4, int4, int4) -> date", _make_date, _DATE_SQL, fails=True)
define("make_time(int4, int4, float8) -> time", _clock, _CLOCK_SQL, fails=True)
_PARTS = "int4, int4, int4, int4, int4, float8"
define(f"make_timestamp({_PARTS}) -> timestamp", make_timestamp, _timestamp_sql, fails=True)
define(f"make_timestamptz({_PARTS} [, text]) -> timestamptz", _make_timestamptz, fails=True)
define("to_timestamp(float8) -> timestamptz", _from_epoch, _FROM_EPOCH_SQL, fails=True)
define("date_trunc(text, timestamptz, text) -> timestamptz", _truncated_in_zone, fails=True)
define("overlaps(T, T, T, T) -> bool", _overlaps, strict=False, T="time timestamp timestamptz")
