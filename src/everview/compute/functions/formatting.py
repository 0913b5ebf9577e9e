"""to_char, to_date and to_timestamp: dates and times by pattern.

On Spark the pattern must be a literal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from everview.compute.functions.civil import DAY, HOUR, MINUTE, SECOND, day, days_of, month_length, timestamp
from everview.compute.functions.contract import Failure
from everview.compute.functions.family import Family
from everview.compute.functions.spark_sql import NotOnSpark, let, quoted, timestamp_of, unquoted
from everview.compute.ir.types import DATE, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType

FUNCTIONS = Family()

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def _named(names: Sequence[str], place: str) -> str:
    return f"element_at(array({', '.join(map(quoted, names))}), {place})"


_MONTH_SQL = _named(_MONTHS, "month(x.a)")
_DAY_SQL = _named(_DAYS, "dayofweek(x.a)")
_MICROS_SQL = "pmod(unix_micros(cast(x.a as timestamp)), 1000000L)"
_SHORT_MONTH = f"substring({_MONTH_SQL}, 1, 3)"
_SHORT_DAY = f"substring({_DAY_SQL}, 1, 3)"


def _weekday(value: datetime) -> str:
    return _DAYS[value.isoweekday() % 7]


# A pattern: how wide its numbers are (0 of names, which have 9 letters with FM's absence), its value, and Spark's.
_Piece = tuple[int, Callable[[datetime], Any], str]
_PATTERNS: dict[str, _Piece] = {
    "HH24": (2, lambda v: v.hour, "hour(x.a)"),
    "HH12": (2, lambda v: (v.hour + 11) % 12 + 1, "(hour(x.a) + 11) % 12 + 1"),
    "HH": (2, lambda v: (v.hour + 11) % 12 + 1, "(hour(x.a) + 11) % 12 + 1"),
    "MI": (2, lambda v: v.minute, "minute(x.a)"),
    "SS": (2, lambda v: v.second, "second(x.a)"),
    "MS": (3, lambda v: v.microsecond // 1000, f"{_MICROS_SQL} div 1000"),
    "US": (6, lambda v: v.microsecond, _MICROS_SQL),
    "YYYY": (4, lambda v: v.year, "year(x.a)"),
    "YYY": (3, lambda v: v.year % 1000, "year(x.a) % 1000"),
    "YY": (2, lambda v: v.year % 100, "year(x.a) % 100"),
    "IYYY": (4, lambda v: v.isocalendar()[0], "extract(YEAROFWEEK FROM x.a)"),
    "IW": (2, lambda v: v.isocalendar()[1], "weekofyear(x.a)"),
    "ID": (1, lambda v: v.isoweekday(), "weekday(x.a) + 1"),
    "MM": (2, lambda v: v.month, "month(x.a)"),
    "DDD": (3, lambda v: v.timetuple().tm_yday, "dayofyear(x.a)"),
    "DD": (2, lambda v: v.day, "day(x.a)"),
    "D": (1, lambda v: v.isoweekday() % 7 + 1, "dayofweek(x.a)"),
    "WW": (2, lambda v: (v.timetuple().tm_yday - 1) // 7 + 1, "(dayofyear(x.a) - 1) div 7 + 1"),
    "W": (1, lambda v: (v.day - 1) // 7 + 1, "(day(x.a) - 1) div 7 + 1"),
    "Q": (1, lambda v: (v.month + 2) // 3, "quarter(x.a)"),
    "CC": (2, lambda v: (v.year + 99) // 100, "(year(x.a) + 99) div 100"),
    "J": (0, lambda v: v.toordinal() + 1_721_425, "unix_date(cast(x.a as date)) + 2440588"),
}
_NAMES: dict[str, tuple[int, Callable[[datetime], str], str]] = {
    "MONTH": (9, lambda v: _MONTHS[v.month - 1], _MONTH_SQL),
    "MON": (3, lambda v: _MONTHS[v.month - 1][:3], _SHORT_MONTH),
    "DAY": (9, _weekday, _DAY_SQL),
    "DY": (3, lambda v: _weekday(v)[:3], _SHORT_DAY),
    "AM": (2, lambda v: "AM" if v.hour < 12 else "PM", "CASE WHEN hour(x.a) < 12 THEN 'AM' ELSE 'PM' END"),
    "PM": (2, lambda v: "AM" if v.hour < 12 else "PM", "CASE WHEN hour(x.a) < 12 THEN 'AM' ELSE 'PM' END"),
}
_WORDS = sorted({*_PATTERNS, *_NAMES}, key=len, reverse=True)
_TOKEN = re.compile(rf'(FM)?({"|".join(_WORDS)})(TH)?|"([^"]*)"|(.)', re.IGNORECASE | re.DOTALL)
_ENDINGS = ("th", "st", "nd", "rd", *("th",) * 6)


def _ending(number: int) -> str:
    """What makes an ordinal of a number: 1st, 2nd, 11th."""
    return "th" if number // 10 % 10 == 1 else _ENDINGS[number % 10]


def _ending_sql(number: str) -> str:
    tenth = f"element_at(array({', '.join(map(quoted, _ENDINGS))}), cast(({number}) % 10 as int) + 1)"
    return f"CASE WHEN ({number}) div 10 % 10 = 1 THEN 'th' ELSE {tenth} END"


def _as_written(text: str, like: str) -> str:
    return text.upper() if like.isupper() else text


def _case(word: str) -> str:
    """Whether a name is written MONTH, month or Month."""
    if word[:2].isupper() and (len(word) > 2 or word.isupper()):
        return "upper" if word.isupper() else "title"
    return "lower" if word.islower() else "title"


def _to_char(value: datetime, pattern: str) -> str:
    def piece(match: re.Match[str]) -> str:
        if match[2] is None:
            return str(match[4] if match[4] is not None else match[5])
        word, bare = match[2].upper(), bool(match[1])
        if word in _PATTERNS:
            width, of, _ = _PATTERNS[word]
            number = of(value)
            ending = _as_written(_ending(number), match[3]) if match[3] else ""
            return (str(number) if bare else str(number).zfill(width)) + ending
        width, name, _ = _NAMES[word]
        text = str(getattr(str, _case(match[2]))(name(value)))
        return text if bare else text.ljust(width)

    return _TOKEN.sub(piece, pattern)


def _to_char_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    pattern = unquoted(args[1])
    if pattern is None:
        raise NotOnSpark("to_char with a pattern from a column")
    pieces = []
    for match in _TOKEN.finditer(pattern):
        if match[2] is None:
            pieces.append(quoted(match[4] if match[4] is not None else match[5]))
            continue
        word, bare = match[2].upper(), bool(match[1])
        if word in _PATTERNS:
            width, _, sql = _PATTERNS[word]
            pieces.append(f"cast({sql} as string)" if bare or not width else f"lpad({sql}, {width}, '0')")
            if match[3]:
                ending = _ending_sql(sql)
                pieces.append(f"upper({ending})" if match[3].isupper() else ending)
            continue
        width, _, sql = _NAMES[word]
        named = sql if _case(match[2]) == "title" else f"{_case(match[2])}({sql})"
        pieces.append(named if bare else f"rpad({named}, {width}, ' ')")
    return let(f"CASE WHEN x.a IS NOT NULL THEN concat('', {', '.join(pieces) or quoted('')}) END", args[0], name="x")


_READ = {"YYYY": r"(\d{1,4})", "MM": r"(\d{1,2})", "DD": r"(\d{1,2})", "HH24": r"(\d{1,2})", "HH": r"(\d{1,2})",
         "MI": r"(\d{1,2})", "SS": r"(\d{1,2})", "MS": r"(\d{1,3})", "US": r"(\d{1,6})"}  # fmt: skip
_READ_TOKEN = re.compile(
    rf'({"|".join(sorted(_READ, key=len, reverse=True))})|"([^"]*)"|(.)', re.IGNORECASE | re.DOTALL
)


def _reader(pattern: str) -> tuple[str, list[str]]:
    """The regular expression of a pattern, for Python and Java both, and which field each group is."""
    expression, fields = r"^\s*", []
    for match in _READ_TOKEN.finditer(pattern):
        if match[1]:
            expression += _READ[match[1].upper()]
            fields.append(match[1].upper())
        else:
            literal = match[2] if match[2] is not None else match[3]
            if literal.isalpha():
                raise Failure("0A000", f'pattern "{pattern}" is not supported for reading dates')
            expression += r"\s*" if literal.isspace() else re.escape(literal)
    return expression, fields


def _read(text: str, pattern: str, kind: Kind) -> Any:
    expression, fields = _reader(pattern)
    match = re.match(expression, text, re.ASCII)
    if not match:
        raise Failure("22007", f'invalid value "{text}" for "{pattern}"')
    found = dict(zip(fields, match.groups(), strict=True))
    year, month, of_month = (int(found.get(name, default)) for name, default in (("YYYY", 1), ("MM", 1), ("DD", 1)))
    hour = int(found.get("HH24", found.get("HH", 0)))
    minute, second = int(found.get("MI", 0)), int(found.get("SS", 0))
    fraction = int(found.get("MS", "0").ljust(3, "0")) * 1000 + int(found.get("US", "0").ljust(6, "0"))
    valid = year >= 1 and 1 <= month <= 12 and 1 <= of_month <= month_length(year, month)
    if not (valid and hour < 24 and minute < 60 and second < 60):
        raise Failure("22008", f'date/time field value out of range: "{text}"')
    days = days_of(year, month, of_month)
    if kind is Kind.DATE:
        return day(days)
    return timestamp(days * DAY + hour * HOUR + minute * MINUTE + second * SECOND + fraction, kind)


def _read_sql(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    pattern = unquoted(args[1])
    if pattern is None:
        raise NotOnSpark(f"{'to_date' if result is DATE else 'to_timestamp'} with a pattern from a column")
    expression, fields = _reader(pattern)

    def part(*names: str, default: str = "0", width: int = 0) -> str:
        place = next((fields.index(name) + 1 for name in names if name in fields), None)
        if place is None:
            return default
        digits = f"regexp_extract(x.a, {quoted(expression)}, {place})"
        return f"cast({f'rpad({digits}, {width}, {quoted(chr(48))})' if width else digits} as bigint)"

    fraction = f"{part('MS', width=3)} * 1000 + {part('US', width=6)}"
    names = (
        part("YYYY", default="1"),
        part("MM", default="1"),
        part("DD", default="1"),
        part("HH24", "HH"),
        part("MI"),
    )
    inside = "y.a BETWEEN 1 AND 9999 AND y.b BETWEEN 1 AND 12 AND y.d < 24 AND y.e < 60 AND y.f < 60"
    made = "unix_date(make_date(cast(y.a as int), cast(y.b as int), 1))"
    length = "day(last_day(make_date(cast(y.a as int), cast(y.b as int), 1)))"
    days = f"({made} + y.c - 1)"
    if result.kind is Kind.DATE:
        built = f"date_from_unix_date(cast({days} as int))"
    else:
        built = timestamp_of(f"{days} * 86400000000L + ((y.d * 60 + y.e) * 60 + y.f) * 1000000L + y.g", result)
    checked = f"CASE WHEN {inside} THEN CASE WHEN y.c BETWEEN 1 AND {length} THEN {built} END END"
    read = let(checked, *names, part("SS"), fraction, name="y")
    return let(f"CASE WHEN x.a RLIKE {quoted(expression)} THEN {read} END", args[0], name="x")


for _of in (TIMESTAMP, TIMESTAMPTZ):
    FUNCTIONS.add("to_char", (_of, TEXT), TEXT, _to_char, _to_char_sql)
FUNCTIONS.add(
    "to_date", (TEXT, TEXT), DATE, lambda text, pattern: _read(text, pattern, Kind.DATE), _read_sql, fails=True
)
FUNCTIONS.add(
    "to_timestamp",
    (TEXT, TEXT),
    TIMESTAMPTZ,
    lambda text, pattern: _read(text, pattern, Kind.TIMESTAMPTZ),
    _read_sql,
    fails=True,
)
