"""The fields of dates, times and intervals: extract, date_part and date_trunc."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from everview.compute.functions.calendar import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    civil,
    days_of,
    micros_of,
    rest,
    timestamp,
    units,
)
from everview.compute.functions.contract import Arguments, Failure
from everview.compute.functions.naming import display_name, named
from everview.compute.functions.numbers import EXACT, fit
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import (
    Renderer,
    carried,
    infinity,
    interval,
    is_infinite,
    let,
    spark_type,
    timestamp_of,
)
from everview.compute.functions.spark_sql import micros_of as micros_sql
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import INTERVAL, NUMERIC_SCALE, Interval, Kind, SqlType

FUNCTIONS = Family()
define = FUNCTIONS.define

# Each field, and the other names for it.
_SPELLINGS = """
    microseconds us usec microsecond, milliseconds ms msec millisecond, second sec seconds s, minute min mins minutes m,
    hour hours h hr, day d days, week w weeks, month mon mons months, year y yr years, decade decades,
    century c cent centuries, millennium mil millennia, quarter qtr
"""
_ALIASES = {alias: names.split()[0] for names in _SPELLINGS.split(",") for alias in names.split()[1:]}
_CLOCK: dict[str, tuple[Callable[[int], int | Decimal], str]] = {
    "microseconds": (lambda t: t % MINUTE, "{t} % 60000000"),
    "milliseconds": (lambda t: Decimal(t % MINUTE).scaleb(-3), "({t} % 60000000) / 1000BD"),
    "second": (lambda t: Decimal(t % MINUTE).scaleb(-6), "({t} % 60000000) / 1000000BD"),
    "minute": (lambda t: t // MINUTE % 60, "{t} div 60000000 % 60"),
    "hour": (lambda t: t // HOUR, "{t} div 3600000000"),
}
_DATE: dict[str, tuple[Callable[[date], int], str]] = {
    "day": (lambda d: d.day, "day({d})"),
    "dow": (lambda d: d.isoweekday() % 7, "dayofweek({d}) - 1"),
    "isodow": (lambda d: d.isoweekday(), "weekday({d}) + 1"),
    "doy": (lambda d: d.timetuple().tm_yday, "dayofyear({d})"),
    "week": (lambda d: d.isocalendar()[1], "weekofyear({d})"),
    "isoyear": (lambda d: d.isocalendar()[0], "extract(YEAROFWEEK FROM {d})"),
    "month": (lambda d: d.month, "month({d})"),
    "quarter": (lambda d: (d.month + 2) // 3, "quarter({d})"),
    "year": (lambda d: d.year, "year({d})"),
    "decade": (lambda d: d.year // 10, "year({d}) div 10"),
    "century": (lambda d: (d.year + 99) // 100, "(year({d}) + 99) div 100"),
    "millennium": (lambda d: (d.year + 999) // 1000, "(year({d}) + 999) div 1000"),
}
# Fields that never become less.
STEADY_FIELDS = {name: _DATE[name][0] for name in ("isoyear", "year", "decade", "century", "millennium")}
_JULIAN_EPOCH = 2_440_588  # the day 1970-01-01, counted from the first of 4714 BC
_ZONE = ("timezone", "timezone_hour", "timezone_minute")  # the session's is UTC
# Of an interval: `m` its months, `t` its microseconds, divided towards zero.
_SPAN: dict[str, tuple[Callable[[Interval], int | Decimal], str]] = {
    "microseconds": (lambda s: rest(s.micros, MINUTE), "{t} % 60000000"),
    "milliseconds": (lambda s: Decimal(rest(s.micros, MINUTE)).scaleb(-3), "({t} % 60000000) / 1000BD"),
    "second": (lambda s: Decimal(rest(s.micros, MINUTE)).scaleb(-6), "({t} % 60000000) / 1000000BD"),
    "minute": (lambda s: int(rest(s.micros, HOUR) / MINUTE), "({t} % 3600000000) div 60000000"),
    "hour": (lambda s: units(s.micros, HOUR), "{t} div 3600000000"),
    "day": (lambda s: s.days, "{i}.days"),
    "week": (lambda s: units(s.days, 7), "{i}.days div 7"),
    "month": (lambda s: rest(s.months, 12), "{m} % 12"),
    "quarter": (
        lambda s: units(rest(s.months, 12), 3) + (1 if s.months >= 0 else -1),
        "({m} % 12) div 3 + CASE WHEN {m} >= 0 THEN 1 ELSE -1 END",
    ),
    "year": (lambda s: units(s.months, 12), "{m} div 12"),
    "decade": (lambda s: units(s.months, 120), "{m} div 120"),
    "century": (lambda s: units(s.months, 1200), "{m} div 1200"),
    "millennium": (lambda s: units(s.months, 12000), "{m} div 12000"),
    "epoch": (
        lambda s: (
            Decimal(units(s.months, 12) * 31_557_600 + rest(s.months, 12) * 2_592_000 + s.days * 86_400)
            + Decimal(s.micros).scaleb(-6)
        ),
        "cast({m} div 12 as decimal(38,6)) * 31557600 + ({m} % 12) * 2592000BD + {i}.days * 86400BD + {t} / 1000000BD",
    ),
}


def unit_of(field: str) -> str:
    """The field by the name that is no abbreviation."""
    return _ALIASES.get(field.lower(), field.lower())


def field_scale(field: str, kind: Kind) -> int:
    """How many digits behind the point extract gives of a field."""
    if unit_of(field) == "julian" and kind is not Kind.DATE:
        return NUMERIC_SCALE
    return {"second": 6, "milliseconds": 3, "epoch": 0 if kind is Kind.DATE else 6}.get(unit_of(field), 0)


def _refused(field: str, of: SqlType, known: Iterable[str]) -> Failure:
    """The error about a field that a type does not have, though others of the known fields do."""
    if field in known:
        return Failure("0A000", f'unit "{field}" not supported for type {display_name(of)}')
    return Failure("22023", f'unit "{field}" not recognized for type {display_name(of)}')


# What goes on for ever with the calendar is infinite; what comes again and again is not there, and NULL.
_ENDLESS = ("epoch", "julian", "year", "isoyear", "decade", "century", "millennium")


def _of_infinite(name: str, value: Infinite, of: SqlType) -> float | None:
    if name in _ENDLESS:
        return value.number
    _extract(of)(name, _ANY[of.kind])  # which fails if there is no such field
    return None


def _extract(of: SqlType) -> Callable[[str, Any], int | Decimal | float | None]:
    def evaluate(field: str, value: Any) -> int | Decimal | float | None:
        found: tuple[Callable[[Any], int | Decimal], str] | None
        name = unit_of(field)
        if of.kind is Kind.INTERVAL:
            found = _SPAN.get(name)
        elif of.kind is Kind.TIME:
            found = _CLOCK.get(name)
        else:
            if isinstance(value, Infinite):
                return _of_infinite(name, value, of)
            micros = micros_of(value)
            if name == "epoch":
                return Decimal(micros).scaleb(-6)
            if name == "julian":
                return EXACT.divide(Decimal(micros + _JULIAN_EPOCH * DAY), Decimal(DAY))
            if name in _ZONE and of.kind is Kind.TIMESTAMPTZ:
                return 0
            if of.kind is not Kind.DATE and name in _CLOCK:
                return _CLOCK[name][0](micros % DAY)
            found = _DATE.get(name)
        if name == "epoch" and of.kind is Kind.TIME:
            return Decimal(value).scaleb(-6)
        if found is None:
            raise _refused(name, of, (*_CLOCK, *_DATE, "epoch", "julian", *_ZONE))
        return found[0](value)

    return evaluate


def _numeric(found: int | Decimal | float | None, to: SqlType) -> Decimal | None:
    """The result of extract, of which no infinite numeric exists."""
    if isinstance(found, float):
        raise Failure("22003", "numeric field overflow: the field of an infinite date or timestamp is infinite")
    return None if found is None else fit(Decimal(found), to)


def _with_infinities(branches: dict[str, str], of: SqlType, result: SqlType) -> dict[str, str]:
    if of.kind in (Kind.INTERVAL, Kind.TIME):
        return branches
    cases = " ".join(f"WHEN x.a = {infinity(of, each)} THEN double('{each.number}')" for each in Infinite)
    endless = f"{cases} ELSE" if result.kind is Kind.FLOAT8 else f"WHEN {is_infinite('x.a', of)} THEN NULL ELSE"
    absent = f"WHEN {is_infinite('x.a', of)} THEN NULL ELSE"
    return {name: f"CASE {endless if name in _ENDLESS else absent} {spark} END" for name, spark in branches.items()}


def _branches(of: SqlType) -> dict[str, str]:
    """The Spark SQL of each field of x.a."""
    if of.kind is Kind.INTERVAL:
        names = {"i": "x.a", "m": "x.a.months", "t": "x.a.micros"}
        return {name: spark.format(**names) for name, (_, spark) in _SPAN.items()}
    if of.kind is Kind.TIME:
        return {**{name: spark.format(t="x.a") for name, (_, spark) in _CLOCK.items()}, "epoch": "x.a / 1000000BD"}
    dated = {name: spark.format(d="x.a") for name, (_, spark) in _DATE.items()}
    micros = micros_sql("x.a", of)
    dated["epoch"] = f"({micros}) / 1000000BD"
    # Days and the part of a day apart: a quotient of all digits would keep too few behind the point.
    days, rest = f"floor(({micros}) / {DAY}BD) + {_JULIAN_EPOCH}", f"pmod({micros}, {DAY}L)"
    part = f"cast({rest} as decimal(30,18)) / cast({DAY} as decimal(11,0))"
    dated["julian"] = f"cast({days} as decimal(38,{NUMERIC_SCALE})) + cast({part} as decimal(19,{NUMERIC_SCALE}))"
    if of.kind is Kind.TIMESTAMPTZ:
        dated |= dict.fromkeys(_ZONE, "CASE WHEN x.a IS NOT NULL THEN 0 END")
    if of.kind is not Kind.DATE:
        dated |= {name: spark.format(t=f"pmod({micros}, 86400000000L)") for name, (_, spark) in _CLOCK.items()}
    return dated


def _extract_sql(of: SqlType) -> Renderer:
    def rendered(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
        branches = _with_infinities(_branches(of), of, result)
        return _by_field(args, branches, lambda value: f"cast({value} as {spark_type(result)})")

    return rendered


def _by_field(args: Sequence[str], branches: dict[str, str], finish: Callable[[str], str]) -> str:
    """The branch of the field that the first argument names, over the second as x.a; NULL for any other name."""
    if args[0].startswith("'"):
        return let(finish(branches.get(unit_of(args[0][1:-1]), "NULL")), args[1], name="x")
    spelled = {**{name: name for name in branches}, **{k: v for k, v in _ALIASES.items() if v in branches}}
    cases = " ".join(f"WHEN '{word}' THEN {finish(branches[name])}" for word, name in spelled.items())
    return let(f"CASE WHEN x.a IS NOT NULL THEN CASE lower(x.b) {cases} END END", args[1], args[0], name="x")


_UNITS = {"microseconds": 1, "milliseconds": 1000, "second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


def truncated(of: SqlType) -> Callable[[str, datetime | Infinite], datetime | Infinite]:
    """date_trunc of this type of timestamp."""

    def evaluate(field: str, value: datetime | Infinite) -> datetime | Infinite:
        name = unit_of(field)
        if isinstance(value, Infinite):
            evaluate(name, _ANY[of.kind])  # which fails if there is no such unit
            return value
        micros = micros_of(value)
        if name in _UNITS:
            return timestamp(micros // _UNITS[name] * _UNITS[name], of.kind)
        days = micros // DAY
        if name == "week":
            return timestamp((days - (days + 3) % 7) * DAY, of.kind)
        year, month, _ = civil(days)
        if name in ("century", "millennium"):
            size = 100 if name == "century" else 1000
            return timestamp(days_of((year - 1) // size * size + 1, 1, 1) * DAY, of.kind)
        if name not in _MONTHS:
            raise _refused(name, of, (*_ZONE, "week"))
        index = (year * 12 + month - 1) // _MONTHS[name] * _MONTHS[name]
        return timestamp(days_of(index // 12, index % 12 + 1, 1) * DAY, of.kind)

    return evaluate


def _truncated_sql(of: SqlType) -> Renderer:
    micros = micros_sql("x.a", of)
    branches = {name: f"{micros} - pmod({micros}, {size}L)" for name, size in _UNITS.items()}
    branches["week"] = "unix_date(cast(date_trunc('WEEK', x.a) as date)) * 86400000000L"
    months = {name: f"(year(x.a) * 12 + month(x.a) - 1) div {size} * {size}" for name, size in _MONTHS.items()}
    for name, size in (("century", 100), ("millennium", 1000)):
        months[name] = f"((year(x.a) - 1) div {size} * {size} + 1) * 12"
    for name, index in months.items():
        year, month = f"cast(({index}) div 12 as int)", f"cast(({index}) % 12 + 1 as int)"
        branches[name] = f"unix_date(make_date({year}, {month}, 1)) * 86400000000L"

    def finish(micros: str) -> str:
        return "NULL" if micros == "NULL" else carried("x.a", of, of, timestamp_of(micros, of))

    return lambda args, types, result: _by_field(args, branches, finish)


_SPAN_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}


def _truncated_span(field: str, value: Interval) -> Interval:
    name = unit_of(field)
    if name in _SPAN_MONTHS:
        return Interval(units(value.months, _SPAN_MONTHS[name]) * _SPAN_MONTHS[name], 0, 0)
    if name == "day":
        return Interval(value.months, value.days, 0)
    if name not in _UNITS:
        raise _refused(name, INTERVAL, (*_ZONE, "week"))
    return Interval(value.months, value.days, units(value.micros, _UNITS[name]) * _UNITS[name])


_SPAN_BRANCHES = {
    **{name: interval(f"x.a.months div {size} * {size}", "0", "0") for name, size in _SPAN_MONTHS.items()},
    **{name: interval("x.a.months", "x.a.days", f"x.a.micros div {size} * {size}") for name, size in _UNITS.items()},
    "day": interval("x.a.months", "x.a.days", "0"),
}


_ANY: dict[Kind, Any] = {
    **{Kind.DATE: date(2000, 2, 29), Kind.TIME: 1, Kind.INTERVAL: Interval(1, 1, 1)},
    **{Kind.TIMESTAMP: datetime(2000, 2, 29), Kind.TIMESTAMPTZ: datetime(2000, 2, 29, tzinfo=UTC)},
}


def _is_field(of: SqlType, *, finite: bool = False) -> Callable[[Arguments], bool]:
    """Whether the field is a literal and values of the type have it; if `finite`, one that is never infinite."""
    endless = _ENDLESS if finite and of.kind not in (Kind.TIME, Kind.INTERVAL) else ()

    def is_field(given: Arguments) -> bool:
        field = given.values[0]
        try:
            _extract(of)(field if isinstance(field, str) else "", _ANY[of.kind])
        except Failure:
            return False
        return unit_of(field) not in endless

    return is_field


for _of in named("date time timestamp timestamptz interval"):
    _find, _sql = _extract(_of), _extract_sql(_of)
    _extracted = lambda to, field, value, find=_find: _numeric(find(field, value), to)
    _finite = _is_field(_of, finite=True)
    define("extract(text, T) -> numeric(38,6)", _extracted, _sql, typed=True, fails=True, safe=_finite, T=_of)
    if _of.kind is not Kind.DATE:  # of which date_part takes the timestamp
        _part = lambda field, value, find=_find: None if (found := find(field, value)) is None else float(found)
        define("date_part(text, T) -> float8", _part, _sql, fails=True, safe=_is_field(_of), T=_of)
for _of in named("timestamp timestamptz"):
    define("date_trunc(text, T) -> T", truncated(_of), _truncated_sql(_of), fails=True, T=_of)
_truncated_span_sql = lambda args, _types, _result: _by_field(args, _SPAN_BRANCHES, lambda value: value)
define("date_trunc(text, interval) -> interval", _truncated_span, _truncated_span_sql, fails=True)
