"""to_char of timestamps and intervals: the words of a pattern, and what each shows.

Words are as PostgreSQL spells them, all in capitals or none (and Month, Mon, Day, Dy): anything else is shown as it is.
On Spark the pattern of a timestamp must be a literal; intervals are shown in Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from everview.compute.allowance import ROW_BYTES, take
from everview.compute.cancel import check_wanted
from everview.compute.functions.calendar import HOUR, MINUTE, SECOND, rest, units
from everview.compute.functions.contract import Failure
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import NotOnSpark, is_infinite, let, unquoted
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import Interval, Kind, SqlType
from everview.quoting import spark_literal

FUNCTIONS = Family()

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")


def _named(names: Sequence[str], place: str) -> str:
    return f"element_at(array({', '.join(map(spark_literal, names))}), {place})"


_MONTH_SQL = _named(MONTHS, "month(x.a)")
_DAY_SQL = _named(DAYS, "dayofweek(x.a)")
_weekday: Callable[[datetime], str] = lambda value: DAYS[value.isoweekday() % 7]
_seconds: Callable[[datetime], int] = lambda value: (value.hour * 60 + value.minute) * 60 + value.second
_iso_year: Callable[[datetime], int] = lambda value: value.isocalendar()[0]
_iso_day: Callable[[datetime], int] = lambda value: (value.isocalendar()[1] - 1) * 7 + value.isoweekday()
_MICROS_SQL = "pmod(unix_micros(cast(x.a as timestamp)), 1000000L)"
_ISO_YEAR_SQL = "extract(YEAROFWEEK FROM x.a)"
_ISO_DAY_SQL = "((weekofyear(x.a) - 1) * 7 + weekday(x.a) + 1)"
_SECONDS_SQL = "((hour(x.a) * 60 + minute(x.a)) * 60 + second(x.a))"


class _Number(NamedTuple):
    """A number: its width, its value, and the same in Spark SQL; FM removes leading zeros, unless it is `fixed`."""

    width: int
    value: Callable[[datetime], int]
    sql: str
    fixed: bool = False


class _Name(NamedTuple):
    """A name: its width, its text, and the same in Spark SQL; FM and TM remove the blanks behind."""

    width: int
    text: Callable[[datetime], str]
    sql: str


def _fraction(digits: int) -> _Number:
    unit = 10 ** (6 - digits)
    return _Number(digits, lambda v: v.microsecond // unit, f"{_MICROS_SQL} div {unit}", fixed=True)


_NUMBERS: dict[str, _Number] = {
    "HH24": _Number(2, lambda v: v.hour, "hour(x.a)"),
    **dict.fromkeys(("HH12", "HH"), _Number(2, lambda v: (v.hour + 11) % 12 + 1, "(hour(x.a) + 11) % 12 + 1")),
    "MI": _Number(2, lambda v: v.minute, "minute(x.a)"),
    "SS": _Number(2, lambda v: v.second, "second(x.a)"),
    **dict.fromkeys(("SSSS", "SSSSS"), _Number(0, _seconds, _SECONDS_SQL)),
    "MS": _fraction(3),
    "US": _Number(6, lambda v: v.microsecond, _MICROS_SQL, fixed=True),
    **{f"FF{digits}": _fraction(digits) for digits in range(1, 7)},
    "YYYY": _Number(4, lambda v: v.year, "year(x.a)"),
    "YYY": _Number(3, lambda v: v.year % 1000, "year(x.a) % 1000"),
    "YY": _Number(2, lambda v: v.year % 100, "year(x.a) % 100"),
    "Y": _Number(1, lambda v: v.year % 10, "year(x.a) % 10"),
    "IYYY": _Number(4, _iso_year, _ISO_YEAR_SQL),
    "IYY": _Number(3, lambda v: _iso_year(v) % 1000, f"{_ISO_YEAR_SQL} % 1000"),
    "IY": _Number(2, lambda v: _iso_year(v) % 100, f"{_ISO_YEAR_SQL} % 100"),
    "I": _Number(1, lambda v: _iso_year(v) % 10, f"{_ISO_YEAR_SQL} % 10"),
    "IW": _Number(2, lambda v: v.isocalendar()[1], "weekofyear(x.a)"),
    "IDDD": _Number(3, _iso_day, _ISO_DAY_SQL),
    "ID": _Number(1, lambda v: v.isoweekday(), "weekday(x.a) + 1"),
    "MM": _Number(2, lambda v: v.month, "month(x.a)"),
    "DDD": _Number(3, lambda v: v.timetuple().tm_yday, "dayofyear(x.a)"),
    "DD": _Number(2, lambda v: v.day, "day(x.a)"),
    "D": _Number(1, lambda v: v.isoweekday() % 7 + 1, "dayofweek(x.a)"),
    "WW": _Number(2, lambda v: (v.timetuple().tm_yday - 1) // 7 + 1, "(dayofyear(x.a) - 1) div 7 + 1"),
    "W": _Number(1, lambda v: (v.day - 1) // 7 + 1, "(day(x.a) - 1) div 7 + 1"),
    "Q": _Number(1, lambda v: (v.month + 2) // 3, "quarter(x.a)"),
    "CC": _Number(2, lambda v: (v.year + 99) // 100, "(year(x.a) + 99) div 100"),
    "J": _Number(0, lambda v: v.toordinal() + 1_721_425, "unix_date(cast(x.a as date)) + 2440588"),
}


def _of_half_day(before: str, after: str) -> _Name:
    sql = f"CASE WHEN hour(x.a) < 12 THEN '{before}' ELSE '{after}' END"
    return _Name(0, lambda v: before if v.hour < 12 else after, sql)


_NAMES: dict[str, _Name] = {
    "MONTH": _Name(9, lambda v: MONTHS[v.month - 1], _MONTH_SQL),
    "MON": _Name(0, lambda v: MONTHS[v.month - 1][:3], f"substring({_MONTH_SQL}, 1, 3)"),
    "DAY": _Name(9, _weekday, _DAY_SQL),
    "DY": _Name(0, lambda v: _weekday(v)[:3], f"substring({_DAY_SQL}, 1, 3)"),
    "RM": _Name(4, lambda v: _ROMAN[v.month - 1], _named(_ROMAN, "month(x.a)")),
    **dict.fromkeys(("AM", "PM"), _of_half_day("AM", "PM")),
    **dict.fromkeys(("A.M.", "P.M."), _of_half_day("A.M.", "P.M.")),
    **dict.fromkeys(("AD", "BC"), _Name(0, lambda _: "AD", "'AD'")),  # there are no years before 1
    **dict.fromkeys(("A.D.", "B.C."), _Name(0, lambda _: "A.D.", "'A.D.'")),
    "Y,YYY": _Name(
        0,
        lambda v: f"{v.year // 1000},{v.year % 1000:03d}",
        "concat(cast(year(x.a) div 1000 as string), ',', lpad(year(x.a) % 1000, 3, '0'))",
    ),
    # The session's zone is UTC, and a timestamp without one has no name for it.
    "TZ": _Name(0, lambda v: "UTC" if v.tzinfo else "", ""),
    **dict.fromkeys(("TZH", "OF"), _Name(0, lambda _: "+00", "'+00'")),
    "TZM": _Name(0, lambda _: "00", "'00'"),
    "FX": _Name(0, lambda _: "", "''"),
}
_CHECK_EVERY = 1_024  # words of a pattern
_REMEMBERED_MAX = 4_096  # characters of a pattern that is worth to be remembered
_UPPER = {*_NUMBERS, *_NAMES}
_WORDS = sorted({*_UPPER, *map(str.lower, _UPPER), "Month", "Mon", "Day", "Dy"}, key=lambda word: (-len(word), word))
_TOKEN = re.compile(
    r"(?P<front>FM|fm|TM|tm)?"
    rf"(?:(?P<word>{'|'.join(map(re.escape, _WORDS))})(?P<behind>TH|th|SP)?"
    r'|"(?P<text>(?:[^"\\]|\\.)*)(?:"|$)|\\(?P<quote>")|(?P<other>.)|$)',
    re.DOTALL,
)
_ENDINGS = ("th", "st", "nd", "rd", *("th",) * 6)


class Word(NamedTuple):
    """A word of a pattern as it is written, or text to show unchanged."""

    written: str
    is_text: bool = False
    bare: bool = False  # without what is only there for the width
    ordinal: str = ""

    @property
    def name(self) -> str:
        """In capitals."""
        return self.written.upper()


def words(pattern: str) -> Iterable[Word]:
    return _remembered_words(pattern) if len(pattern) <= _REMEMBERED_MAX else _words(pattern)


@lru_cache(256)
def _remembered_words(pattern: str) -> tuple[Word, ...]:
    return tuple(_words(pattern))


def _words(pattern: str) -> Iterator[Word]:
    for count, match in enumerate(_TOKEN.finditer(pattern), 1):
        if count % _CHECK_EVERY == 0:
            check_wanted()
            take(_CHECK_EVERY * ROW_BYTES)
        if match["word"]:
            ordinal = match["behind"] if match["behind"] in ("TH", "th") else ""
            front = (match["front"] or "").upper()  # TM is about names, and here they are English
            bare = front == "FM" or (front == "TM" and match["word"].upper() in ("MONTH", "DAY"))
            yield Word(match["word"], bare=bare, ordinal=ordinal)
        elif match["text"]:
            yield Word(re.sub(r"\\(.)", r"\1", match["text"], flags=re.DOTALL), is_text=True)
        elif text := match["quote"] or match["other"]:
            yield Word(text, is_text=True)


def _ending(number: int) -> str:
    """The ending of an ordinal number: 1st, 2nd, 11th."""
    number = abs(number)
    return "th" if number // 10 % 10 == 1 else _ENDINGS[number % 10]


def _ending_sql(number: str) -> str:
    tenth = f"element_at(array({', '.join(map(spark_literal, _ENDINGS))}), cast(({number}) % 10 as int) + 1)"
    return f"CASE WHEN ({number}) div 10 % 10 = 1 THEN 'th' ELSE {tenth} END"


def _in_case(text: str, written: str) -> str:
    return text.upper() if written.isupper() else text.lower() if written.islower() else text


def _with_ending(text: str, number: int, word: Word) -> str:
    return text + (_in_case(_ending(number), word.ordinal) if word.ordinal else "")


def _to_char(value: datetime, pattern: str) -> str | None:
    def shown(word: Word) -> str:
        if word.is_text:
            return word.written
        number = _NUMBERS.get(word.name)
        if number is not None:
            found = number.value(value)
            bare = word.bare and not number.fixed
            return _with_ending(str(found) if bare else str(found).zfill(number.width), found, word)
        width, text, _ = _NAMES[word.name]
        return _in_case(text(value), word.written).ljust(0 if word.bare else width)

    return "".join(map(shown, words(pattern))) if pattern and not isinstance(value, Infinite) else None


def _to_char_sql(args: Sequence[str], types: Sequence[SqlType], _result: Any) -> str:
    pattern = unquoted(args[1])
    if pattern is None:
        raise NotOnSpark("to_char with a pattern from a column")
    if not pattern:
        return "cast(NULL as string)"
    zone = "'UTC'" if types[0].kind is Kind.TIMESTAMPTZ else "''"
    pieces = [piece for word in words(pattern) for piece in _word_sql(word, zone)]
    finite = f"NOT ({is_infinite('x.a', types[0])})"
    return let(f"CASE WHEN {finite} THEN concat('', {', '.join(pieces) or spark_literal('')}) END", args[0], name="x")


def _word_sql(word: Word, zone: str) -> Iterator[str]:
    if word.is_text:
        yield spark_literal(word.written)
        return
    number = _NUMBERS.get(word.name)
    if number is not None:
        bare = (word.bare and not number.fixed) or not number.width
        yield f"cast({number.sql} as string)" if bare else f"lpad({number.sql}, {number.width}, '0')"
        if word.ordinal:
            ending = _ending_sql(number.sql)
            yield f"upper({ending})" if word.ordinal.isupper() else ending
        return
    width, _, sql = _NAMES[word.name]
    sql = zone if word.name == "TZ" else sql
    named = f"upper({sql})" if word.written.isupper() else f"lower({sql})" if word.written.islower() else sql
    yield named if word.bare or not width else f"rpad({named}, {width}, ' ')"


# Of an interval: its months, days and microseconds as years, months, … of which each has the sign of its part.
_SPANS: dict[str, tuple[int, Callable[[Interval], int]]] = {
    "HH24": (2, lambda s: units(s.micros, HOUR)),
    **dict.fromkeys(("HH12", "HH"), (2, lambda s: rest(units(s.micros, HOUR), 12) or 12)),
    "MI": (2, lambda s: units(rest(s.micros, HOUR), MINUTE)),
    "SS": (2, lambda s: units(rest(s.micros, MINUTE), SECOND)),
    **dict.fromkeys(("SSSS", "SSSSS"), (0, lambda s: units(s.micros, SECOND))),
    "MS": (3, lambda s: units(rest(s.micros, SECOND), 1000)),
    "US": (6, lambda s: rest(s.micros, SECOND)),
    **{
        f"FF{digits}": (digits, lambda s, unit=10 ** (6 - digits): units(rest(s.micros, SECOND), unit))  # type: ignore[misc]
        for digits in range(1, 7)
    },
    "YYYY": (4, lambda s: units(s.months, 12)),
    "YYY": (3, lambda s: rest(units(s.months, 12), 1000)),
    "YY": (2, lambda s: rest(units(s.months, 12), 100)),
    "Y": (1, lambda s: rest(units(s.months, 12), 10)),
    "MM": (2, lambda s: rest(s.months, 12)),
    "DD": (2, lambda s: s.days),
}
_SIGNED_WIDTH = ("HH24", "HH12", "HH", "MI", "SS", "MM", "YYYY", "YYY", "YY", "Y")  # a sign comes before the zeros
_FIXED = ("MS", "US", *(f"FF{digits}" for digits in range(1, 7)))
_WITHOUT_MEANING = ("MONTH", "MON", "DAY", "DY", "D", "ID", "TZ", "TZH", "TZM", "OF", "AD", "BC", "A.D.", "B.C.")


def _span_shown(value: Interval, word: Word) -> str:
    if word.is_text:
        return word.written
    if word.name in ("AM", "PM", "A.M.", "P.M."):
        half = "AM" if 0 <= rest(units(value.micros, HOUR), 24) < 12 or value.micros < 0 else "PM"
        return _in_case(half if "." not in word.name else f"{half[0]}.M.", word.written)
    if word.name in _WITHOUT_MEANING:
        raise Failure("22007", "invalid format specification for an interval value")
    if word.name not in _SPANS:
        raise Failure("0A000", f'to_char of an interval by the pattern "{word.written}" is not supported')
    width, of = _SPANS[word.name]
    number = of(value)
    if word.bare and word.name not in _FIXED:
        return _with_ending(str(number), number, word)
    wider = number < 0 and word.name in _SIGNED_WIDTH
    return _with_ending(f"{number:0{width + wider}d}" if width else str(number), number, word)


FUNCTIONS.define("to_char(T, text) -> text", _to_char, _to_char_sql, T="timestamp timestamptz")
_interval_to_char = lambda value, pattern: "".join(_span_shown(value, word) for word in words(pattern))
FUNCTIONS.define("to_char(interval, text) -> text", _interval_to_char, fails=True)
