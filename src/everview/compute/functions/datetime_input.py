"""From text to dates, times and intervals, in the ISO forms, and intervals also in PostgreSQL's own."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Decimal, Overflow

from everview.compute.cancel import check_wanted
from everview.compute.functions.calendar import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    days_of,
    make_interval,
    month_length,
    timestamp,
)
from everview.compute.functions.contract import Failure
from everview.compute.functions.numbers import integer_of
from everview.compute.ir.infinite import Infinite, infinite_of
from everview.compute.ir.types import Interval, Kind

_DATE = r"(\d{4})-(\d{1,2})-(\d{1,2})"
_TIME = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d*))?)?"
_ZONE = r"\s*+(?:(Z|UTC|GMT)|([+-])(\d{1,2})(?::?(\d{2}))?)"
DATE = re.compile(rf"\s*+{_DATE}\s*+", re.ASCII)
TIME = re.compile(rf"\s*+{_TIME}\s*+", re.ASCII)
TIMESTAMP = re.compile(rf"\s*+{_DATE}(?:(?:\s*+T|\s++){_TIME}(?:{_ZONE})?)?\s*+", re.ASCII | re.IGNORECASE)

# How many months, days and microseconds a unit has, by all of its names.
_SPELLINGS = {
    **{"microsecond us usec": (0, 0, 1), "millisecond ms msec": (0, 0, 1000), "second sec s": (0, 0, SECOND)},
    **{"minute min m": (0, 0, MINUTE), "hour hr h": (0, 0, HOUR), "day d": (0, 1, 0), "week w": (0, 7, 0)},
    **{"month mon": (1, 0, 0), "year yr y": (12, 0, 0), "decade": (120, 0, 0), "century centurie": (1200, 0, 0)},
    "millennium": (12000, 0, 0),
}
_UNITS = {name: unit for names, unit in _SPELLINGS.items() for name in names.split()}
# Possessive repetitions never try a shorter match, so the time is linear.
_BLANKS = re.compile(r"\s*+")
_AMOUNT = re.compile(r"(?:([+-])\s*+)?(\d++(?:\.\d*+)?|\.\d++)\s*+([a-zA-Z]++)")
_YEARS = re.compile(r"([+-]?)(\d++)-(\d{1,2})(?=\s|$)")  # years and months, as the standard writes them
_DAYS = re.compile(r"([+-]?\d++)(?=\s++[+-]?\d++:)")  # a number before a time is days
_CLOCK = re.compile(r"([+-]?)(\d++):(\d{1,2})(?::(\d{1,2}(?:\.\d*+)?))?")
_ISO = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d*)?)S)?)?",
    re.IGNORECASE,
)

_AMOUNT_MAX = Decimal(10) ** 20  # months, days or microseconds: more than any interval has


def _invalid(text: str, name: str) -> Failure:
    return Failure("22007", f'invalid input syntax for type {name}: "{text}"')


def _out_of_range(text: str) -> Failure:
    return Failure("22008", f'date/time field value out of range: "{text}"')


def _days(text: str, year: str, month: str, day: str) -> int:
    if int(year) < 1 or not 1 <= int(month) <= 12 or not 1 <= int(day) <= month_length(int(year), int(month)):
        raise _out_of_range(text)
    return days_of(int(year), int(month), int(day))


def _clock(text: str, hour: str, minute: str, second: str | None, fraction: str | None) -> int:
    micros = int((Decimal(f"0.{fraction or 0}") * SECOND).quantize(Decimal(1), ROUND_HALF_EVEN))
    total = int(hour) * HOUR + int(minute) * MINUTE + int(second or 0) * SECOND + micros
    if int(minute) > 59 or int(second or 0) > 60 or total > DAY:
        raise _out_of_range(text)
    return total


def _infinite(text: str, name: str) -> Infinite:
    infinite = infinite_of(text)
    if infinite is None:
        raise _invalid(text, name)
    return infinite


def read_date(text: str) -> date | Infinite:
    """YYYY-MM-DD; what a timestamp says about the time is dropped."""
    if text.strip().lower() == "epoch":
        return date(1970, 1, 1)
    match = TIMESTAMP.fullmatch(text)
    if not match:
        return _infinite(text, "date")
    days = _days(text, *match.groups()[:3])
    if match[4]:
        _clock(text, *match.groups()[3:7])
    return date.fromordinal(days + date(1970, 1, 1).toordinal())


def read_time(text: str) -> int:
    """Read HH:MM, with or without seconds and a fraction."""
    match = TIME.fullmatch(text)
    if not match:
        raise _invalid(text, "time")
    return _clock(text, *match.groups())


def read_timestamp(text: str, kind: Kind) -> datetime | Infinite:
    """A date with or without a time; the zone counts for a timestamptz only."""
    if text.strip().lower() == "epoch":
        return timestamp(0, kind)
    match = TIMESTAMP.fullmatch(text)
    if not match:
        return _infinite(text, "timestamp" if kind is Kind.TIMESTAMP else "timestamp with time zone")
    micros = _days(text, *match.groups()[:3]) * DAY
    if match[4]:
        micros += _clock(text, *match.groups()[3:7])
    if match[9]:
        hours, minutes = int(match[10]), int(match[11] or 0)
        if hours > 15 or minutes > 59:
            raise Failure("22009", f'time zone displacement out of range: "{text}"')
        if kind is Kind.TIMESTAMPTZ:
            micros += (-1 if match[9] == "+" else 1) * (hours * HOUR + minutes * MINUTE)
    return timestamp(micros, kind)


def read_interval(text: str) -> Interval:
    """As in `1 year 2 mons 3 days 04:05:06`, `90 minutes ago` and `P1Y2M3DT4H`."""
    try:
        return _interval(text)
    except Overflow as error:  # so many digits
        raise Failure("22008", "interval out of range") from error


def _interval(text: str) -> Interval:
    stripped = text.strip()
    iso = _ISO.fullmatch(stripped)
    if iso and len(stripped) > 1:
        year, month, week, day, hour, minute = (integer_of(each or "0") for each in iso.groups()[:6])
        seconds = Decimal(iso[7] or 0) * SECOND
        if abs(seconds) > _AMOUNT_MAX:
            raise Failure("22008", "interval out of range")
        micros = int(seconds.quantize(Decimal(1), ROUND_HALF_EVEN))
        return make_interval(year * 12 + month, week * 7 + day, hour * HOUR + minute * MINUTE + micros)
    ago = stripped[-3:].lower() == "ago" and stripped[-4:-3].isspace()
    return _spread(*_amounts(text, (stripped[:-3] if ago else stripped).strip()), -1 if ago else 1)


def _amounts(text: str, stripped: str) -> tuple[Decimal, Decimal, Decimal]:
    """Months, days and microseconds, each with its fraction."""
    rest = stripped.removeprefix("@").lstrip()
    months, days, micros = Decimal(0), Decimal(0), Decimal(0)
    position = 0
    plain = re.fullmatch(r"\s*([+-]?\d+(?:\.\d*)?)", rest)  # a number alone is seconds
    if plain:
        return months, days, Decimal(plain[1]) * SECOND
    if not rest:
        raise _invalid(text, "interval")
    while position < len(rest):
        check_wanted()
        blanks = _BLANKS.match(rest, position)
        assert blanks is not None
        position = blanks.end()
        if clock := _CLOCK.match(rest, position):
            amount = integer_of(clock[2]) * HOUR + int(clock[3]) * MINUTE + Decimal(clock[4] or 0) * SECOND
            micros += -amount if clock[1] == "-" else amount
            position = clock.end()
        elif years := _YEARS.match(rest, position):
            both = integer_of(years[2]) * 12 + int(years[3])
            months += -both if years[1] == "-" else both
            position = years.end()
        elif before := _DAYS.match(rest, position):
            days += integer_of(before[1])
            position = before.end()
        elif match := _AMOUNT.match(rest, position):
            name = match[3].lower()
            unit = _UNITS.get(name) or _UNITS.get(name.removesuffix("s"))
            if unit is None:
                raise _invalid(text, "interval")
            number = Decimal((match[1] or "") + match[2])
            months, days, micros = (have + number * of for have, of in zip((months, days, micros), unit, strict=True))
            position = match.end()
        else:
            raise _invalid(text, "interval")
    return months, days, micros


def _spread(months: Decimal, days: Decimal, micros: Decimal, sign: int) -> Interval:
    """Fractions go to the next smaller unit: of a month to days of 30, of a day to microseconds."""
    if max(abs(months), abs(days), abs(micros)) > _AMOUNT_MAX:
        raise Failure("22008", "interval out of range")
    whole_months = int(months)
    days += (months - whole_months) * 30
    whole_days = int(days)
    micros += (days - whole_days) * DAY
    rounded = int(micros.quantize(Decimal(1), ROUND_HALF_EVEN))
    return make_interval(sign * whole_months, sign * whole_days, sign * rounded)


TIMEOUT_MS_MAX = 2**31 - 1
_MILLIS = {
    **{"us": Decimal("0.001"), "ms": Decimal(1), "s": Decimal(1_000), "min": Decimal(60_000)},
    **{"h": Decimal(3_600_000), "d": Decimal(86_400_000)},
}


def duration_ms(text: str, most_ms: int = TIMEOUT_MS_MAX) -> int:
    """Parse a duration: a number of milliseconds, a number with a unit, or an interval; `most_ms` at most."""
    stripped = text.strip().lower()
    for unit, factor in sorted(_MILLIS.items(), key=lambda pair: -len(pair[0])):
        number = stripped.removesuffix(unit).strip()
        if stripped.endswith(unit) and number.replace(".", "", 1).isdigit():
            return _checked(Decimal(number) * factor, most_ms)
    if stripped.isdigit():
        return _checked(Decimal(stripped), most_ms)
    try:
        interval = read_interval(text)
    except Failure as failure:
        raise ValueError("a duration is required, such as 500ms or 5s") from failure
    if interval.months:
        raise ValueError("months have no fixed length")
    return _checked(interval.days * 86_400_000 + Decimal(interval.micros) / 1_000, most_ms)


def _checked(milliseconds: Decimal, most_ms: int) -> int:
    if not 0 <= milliseconds <= most_ms:
        raise ValueError(f"must be between 0 and {most_ms} ms")
    return int(milliseconds)
