"""to_date and to_timestamp: dates and times read by a pattern.

On Spark a pattern of numbers that is a literal is a regular expression; else this is called in Python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from everview.compute.allowance import ROW_BYTES, take
from everview.compute.cancel import check_wanted
from everview.compute.functions.calendar import DAY, HOUR, MINUTE, SECOND, civil, day, days_of, month_length, timestamp
from everview.compute.functions.contract import Failure
from everview.compute.functions.date_formatting import DAYS, MONTHS
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import NotOnSpark, let, timestamp_of, unquoted
from everview.compute.ir.types import DATE, Kind, SqlType
from everview.quoting import spark_literal

FUNCTIONS = Family()

_DIGITS = {
    **{"YYYY": 4, "YY": 2, "MM": 2, "DDD": 3, "DD": 2, "HH24": 2, "HH12": 2, "HH": 2, "MI": 2, "SS": 2},
    **{"MS": 3, "US": 6},
}
_FRACTIONS = ("MS", "US")
_HALVES = dict.fromkeys(("AM", "PM"), "([AaPp][Mm])") | dict.fromkeys(("A.M.", "P.M."), r"([AaPp]\.[Mm]\.)")
_NAMES = {
    "MONTH": tuple(each.upper() for each in MONTHS),
    "MON": tuple(each[:3].upper() for each in MONTHS),
    "DAY": tuple(each.upper() for each in DAYS),
    "DY": tuple(each[:3].upper() for each in DAYS),
}
_CHECK_EVERY = 1_024  # words of a pattern
_REMEMBERED_MAX = 4_096  # characters of a pattern that is worth to be remembered
_IN_SPARK = {"YYYY", "MM", "DD", "HH24", "MI", "SS", "MS", "US"}
_SEPARATORS = re.compile(r"[^A-Za-z0-9\"]+")
_READ_TOKEN = re.compile(
    rf"(?:FM)?({'|'.join(sorted(map(re.escape, {*_DIGITS, *_HALVES, *_NAMES}), key=len, reverse=True))})(?:TH)?"
    rf'|"([^"]*)"|({_SEPARATORS.pattern})|(.)',
    re.IGNORECASE | re.DOTALL,
)
_IN_SPARK_MAX = 100  # words of a pattern, so that Java's expression stays small


class _Reader(NamedTuple):
    """Reads texts by a pattern: regular expressions one behind the other, for Python and Java.

    Each takes as much as it can for good (the repetitions are possessive), so the time is in proportion to the text.
    """

    pieces: tuple[tuple[str, str | None], ...]  # and which field the group of a piece is, if it has one

    @property
    def fields(self) -> list[str]:
        """The fields that the groups read."""
        return [field for _, field in self.pieces if field is not None]

    @property
    def expression(self) -> str:
        """The pieces as one expression."""
        return "^" + "".join(piece for piece, _ in self.pieces)

    def read(self, text: str) -> dict[str, str] | None:
        """The fields of a text; None if the text does not match the pattern."""
        found: dict[str, str] = {}
        place = 0
        for count, (piece, field) in enumerate(self.pieces, 1):
            match = _compiled(piece).match(text, place)
            if match is None:
                return None
            place = match.end()
            if field is not None:
                found[field] = match[1]
            if count % _CHECK_EVERY == 0:
                check_wanted()
        return found


_compiled = lru_cache(256)(partial(re.compile, flags=re.ASCII))


def _reader(pattern: str) -> _Reader:
    return (_remembered if len(pattern) <= _REMEMBERED_MAX else _new_reader)(pattern)


def _new_reader(pattern: str) -> _Reader:
    """Separators stand for as many others at most, with any blanks, and quoted text for as many characters."""
    pieces: list[tuple[str, str | None]] = [(r"\s*+", None)]
    tokens = _READ_TOKEN.finditer(pattern)
    following = next(tokens, None)
    while (match := following) is not None:
        following = next(tokens, None)
        word = (match[1] or "").upper()
        if word in _DIGITS:
            # Where no other number follows, it has all digits that there are.
            limited = word in _FRACTIONS or (following is not None and (following[1] or "").upper() in _DIGITS)
            pieces.append((rf"(\d{{1,{_DIGITS[word]}}}+)" if limited else r"(\d{1,9}+)(?!\d)", word))
        elif word:
            pieces.append((_HALVES.get(word) or rf"((?>(?i:{'|'.join(_NAMES[word])})|[A-Za-z]+))", word))
        elif match[2] is not None:
            pieces.append((f"(?s:.{{{len(match[2])}}})", None))
        elif match[3]:
            pieces.append((rf"\s*+(?:[^\w\s]\s*+){{0,{len(match[3].replace(' ', '')) or 1}}}+", None))
        else:
            raise Failure("0A000", f'pattern "{pattern}" is not supported for reading dates')
        if len(pieces) % _CHECK_EVERY == 0:
            check_wanted()
            take(_CHECK_EVERY * ROW_BYTES)
    return _Reader(tuple(pieces))


_remembered = lru_cache(256)(_new_reader)


def _read(text: str, pattern: str, kind: Kind) -> Any:
    found = _reader(pattern).read(text)
    if found is None:
        raise Failure("22007", f'invalid value "{text}" for "{pattern}"')
    year, month, of_month = _day_read(found)
    hour = _hour_read(found)
    minute, second = int(found.get("MI", 0)), int(found.get("SS", 0))
    fraction = int(found.get("MS", "0").ljust(3, "0")) * 1000 + int(found.get("US", "0").ljust(6, "0"))
    valid = 1 <= year <= 9999 and 1 <= month <= 12 and 1 <= of_month <= month_length(year, month)
    if not (valid and hour < 24 and minute < 60 and second < 60):
        raise Failure("22008", f'date/time field value out of range: "{text}"')
    days = days_of(year, month, of_month)
    if kind is Kind.DATE:
        return day(days)
    return timestamp(days * DAY + hour * HOUR + minute * MINUTE + second * SECOND + fraction, kind)


def _day_read(found: Mapping[str, str]) -> tuple[int, int, int]:
    for word in ("DAY", "DY"):
        _named(found, word)
    year = int(found.get("YYYY", 1))
    if "YY" in found:  # the nearest to 2020 that ends so
        year = int(found["YY"]) + (2000 if int(found["YY"]) < 70 else 1900)
    month = _named(found, "MONTH") or _named(found, "MON") or int(found.get("MM", 1))
    if "DDD" not in found:
        return year, month, int(found.get("DD", 1))
    number = int(found["DDD"])
    if not 1 <= number <= 365 + (month_length(year, 2) == 29):
        raise Failure("22008", f"date/time field value out of range: {number}")
    return civil(days_of(year, 1, 1) + number - 1)


def _named(found: Mapping[str, str], word: str) -> int:
    """The number of a name, from 1 on. 0 if the pattern has no word for it."""
    text = found.get(word, "").upper()
    if word in found and text not in _NAMES[word]:
        raise Failure("22007", f'invalid value "{found[word]}" for "{word}"')
    return _NAMES[word].index(text) + 1 if text else 0


def _hour_read(found: Mapping[str, str]) -> int:
    half = next((found[word] for word in _HALVES if word in found), "")
    of_half = found.get("HH12", found.get("HH"))
    if of_half is None and not half:
        return int(found.get("HH24", "0"))
    hour = int(of_half or found.get("HH24", "12"))
    if not 1 <= hour <= 12:
        raise Failure("22007", f'hour "{hour}" is invalid for the 12-hour clock')
    return hour % 12 + (12 if half[:1] in ("P", "p") else 0)


def _read_sql(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    pattern = unquoted(args[1])
    if pattern is None:
        raise NotOnSpark(f"{'to_date' if result is DATE else 'to_timestamp'} with a pattern from a column")
    reader = _reader(pattern)
    expression, fields = reader.expression, reader.fields
    if not set(fields) <= _IN_SPARK or len(reader.pieces) > _IN_SPARK_MAX:
        raise NotOnSpark("names of months, hours of half a day, and long patterns")

    def part(*names: str, default: str = "0", width: int = 0) -> str:
        place = next((fields.index(name) + 1 for name in names if name in fields), None)
        if place is None:
            return default
        digits = f"regexp_extract(x.a, {spark_literal(expression)}, {place})"
        return f"cast({f'rpad({digits}, {width}, {spark_literal(chr(48))})' if width else digits} as bigint)"

    fraction = f"{part('MS', width=3)} * 1000 + {part('US', width=6)}"
    day_parts = (part(word, default="1") for word in ("YYYY", "MM", "DD"))
    inside = "y.a BETWEEN 1 AND 9999 AND y.b BETWEEN 1 AND 12 AND y.d < 24 AND y.e < 60 AND y.f < 60"
    made = "unix_date(make_date(cast(y.a as int), cast(y.b as int), 1))"
    length = "day(last_day(make_date(cast(y.a as int), cast(y.b as int), 1)))"
    days = f"({made} + y.c - 1)"
    if result.kind is Kind.DATE:
        built = f"date_from_unix_date(cast({days} as int))"
    else:
        built = timestamp_of(f"{days} * 86400000000L + ((y.d * 60 + y.e) * 60 + y.f) * 1000000L + y.g", result)
    checked = f"CASE WHEN {inside} THEN CASE WHEN y.c BETWEEN 1 AND {length} THEN {built} END END"
    read = let(checked, *day_parts, part("HH24", "HH"), part("MI"), part("SS"), fraction, name="y")
    return let(f"CASE WHEN x.a RLIKE {spark_literal(expression)} THEN {read} END", args[0], name="x")


_read_date, _read_timestamp = (partial(_read, kind=each) for each in (Kind.DATE, Kind.TIMESTAMPTZ))
FUNCTIONS.define("to_date(text, text) -> date", _read_date, _read_sql, fails=True)
FUNCTIONS.define("to_timestamp(text, text) -> timestamptz", _read_timestamp, _read_sql, fails=True)
