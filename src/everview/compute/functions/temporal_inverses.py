"""More functions of the bounds of temporal filters: how moments and numbers are cut, rounded, scaled and moved.

Each is the inverse of a function of SQL that only grows: from which argument on it reaches a value. What also falls now
and then, as a clock that is set back, takes a set of moments instead: where its intervals begin and end, in
microseconds, as an array (`TIMES`). Every step maps such a set to the set of the step before, end by end. None of these
functions fails, over NULL they are NULL, and SQL has no names for them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

from everview.compute.functions.calendar import DAY, HOUR, day, micros_of, timestamp
from everview.compute.functions.casts import to_time
from everview.compute.functions.contract import Failure
from everview.compute.functions.date_fields import STEADY_FIELDS, truncated
from everview.compute.functions.dates import at_zone, is_zone
from everview.compute.functions.naming import NUMERIC, base, key_of, named
from everview.compute.functions.numbers import EXACT, quotient
from everview.compute.functions.order import interval_micros
from everview.compute.functions.precision import ZERO_US
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import DAY_MAX, DAY_MIN, MICROS_MAX, MICROS_MIN
from everview.compute.functions.temporal import TIME_MAX, TIME_MIN
from everview.compute.functions.temporal_bounds import limited
from everview.compute.functions.time_sets import TIMES, in_times, moved_edges
from everview.compute.ir.scalar import Call, Literal, Scalar
from everview.compute.ir.types import INT8, INTERVAL, TEXT, TIMESTAMP, Interval, Kind, SqlType, numeric

FUNCTIONS = Family()
define = FUNCTIONS.define

_ENDS = (TIME_MIN, TIME_MAX)


def _without_pairs(edges: Iterable[int]) -> list[int]:
    """Ends in order; two ends at one place cancel out."""
    result: list[int] = []
    for edge in sorted(edges):
        if result and result[-1] == edge:
            result.pop()
        else:
            result.append(edge)
    return result


def _add(what: str, rule: Callable[..., int], arg: str = "", *, single: bool = True) -> None:
    """A function of a moment that only grows: `the moment ...`, and `moments ...` of all ends of a set."""

    def of_one(edge: int, *given: Any) -> int:
        return edge if edge in _ENDS else limited(rule(edge, *given))

    def of_all(edges: list[int], *given: Any) -> list[int]:
        return _without_pairs(of_one(edge, *given) for edge in edges if edge is not None)

    if single:
        define(f"the moment {what}(int8, {arg}) -> int8", of_one)
    define(f"moments {what}(int8[], {arg}) -> int8[]", of_all)


def _add_several(what: str, rule: Callable[[int, Any], list[int]], arg: str) -> None:
    """A function of a moment that rises and falls: `moments ...` of one, and of all ends of a set."""

    def of_one(edge: int, given: Any) -> list[int]:
        return [edge] if edge in _ENDS else [limited(each) for each in rule(edge, given)]

    def of_all(edges: list[int], given: Any) -> list[int]:
        return _without_pairs(each for edge in edges if edge is not None for each in of_one(edge, given))

    define(f"moments {what}(int8, {arg}) -> int8[]", of_one)
    define(f"moments {what}(int8[], {arg}) -> int8[]", of_all)


def _cut_up(least: int, unit: str) -> int:
    """The first moment whose century, year, month or week begins not before another one."""
    start = truncated(TIMESTAMP)

    def reaches(of: int) -> bool:
        try:
            return micros_of(start(unit, timestamp(of * DAY, Kind.TIMESTAMP))) >= least
        except Failure:  # no such unit, or it begins before the calendar
            return False

    days = _first_day(reaches)
    return TIME_MAX if days is None else days * DAY


def _first_day(reaches: Callable[[int], bool]) -> int | None:
    """The first day of the calendar that reaches the value, if all later days do."""
    low, high = DAY_MIN, DAY_MAX + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle + 1, high)
    return None if low > DAY_MAX else low


def _unrounded(least: int, step: int) -> int:
    """The first moment that is not before `least` once it is rounded, halves away from the year 2000."""
    step = max(step, 1)
    units = -(-(least - ZERO_US) // step)
    return ZERO_US + units * step - step // 2 + (0 if units > 0 or step == 1 else 1)


_LONG_US = 900 * 365 * DAY  # so far from the ends of the calendar nobody asks what time it is


def _calendar_from(right: int, span: Interval, sign: int) -> int:
    """The bound of a time that is moved far ahead, against infinity: where it leaves the calendar."""
    return MICROS_MAX + 1 if right == TIME_MAX and sign * interval_micros(span) > _LONG_US else right


def _calendar_past(right: int, span: Interval, sign: int) -> int:
    """The bound of a time that is moved far back, against -infinity: where it enters the calendar."""
    return MICROS_MIN - 1 if right == TIME_MIN and sign * interval_micros(span) < -_LONG_US else right


_CLOCKS_APART = 26 * HOUR  # more than the clocks of any two zones
_CLOCKS_MIN, _CLOCKS_MAX = (DAY_MIN + 3) * DAY, (DAY_MAX - 3) * DAY


def _by_clocks(kind: Kind) -> Callable[[int, str], list[int]]:
    """Where the moments begin and end that a zone shows as `least` or later, or that are so if it shows them.

    Between two changes of the clocks it is a plain shift. Clocks that are set back show an hour twice.
    """

    def evaluate(least: int, name: str) -> list[int]:
        if not is_zone(name):
            return []

        def ahead(moment: int) -> int:
            """By how much the result is ahead."""
            moment = min(max(moment, _CLOCKS_MIN), _CLOCKS_MAX)
            return micros_of(at_zone(name, timestamp(moment, kind))) - moment

        start, end = least - _CLOCKS_APART, least + _CLOCKS_APART
        edges, inside = [], False
        while start < end:
            shift = ahead(start)
            until = _change(ahead, start, end)
            first = least - shift  # from here on it is so, in this part
            if (first <= start) != inside:
                edges.append(start)
                inside = not inside
            if start < first < until:
                edges.append(first)
                inside = True
            start = until
        return edges if inside else [*edges, end]

    return evaluate


def _change(ahead: Callable[[int], int], start: int, end: int) -> int:
    """The first moment behind `start` at which clocks are changed, or the end."""
    shift, low = ahead(start), start
    while low < end:
        high = min(low + HOUR, end)
        if ahead(high) != shift:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if ahead(middle) == shift else (low, middle)
            return high
        low = high
    return end


# The first three have a single form in `temporal_bounds`.
_add("moved on", lambda edge, by: edge + by, "int8", single=False)
_add("moved back", lambda edge, by: edge - by, "int8", single=False)
_add("rounded up", lambda edge, unit: -(-edge // max(unit, 1)) * max(unit, 1), "int8", single=False)
_add("cut up", _cut_up, "text")
_add("unrounded", _unrounded, "int8")
_add_several("moved on", lambda edge, span: moved_edges(edge, span, 1), "interval")
_add_several("moved back", lambda edge, span: moved_edges(edge, span, -1), "interval")
_add_several("by the clocks of", _by_clocks(Kind.TIMESTAMPTZ), "text")
_add_several("of the clocks of", _by_clocks(Kind.TIMESTAMP), "text")
define("the calendar from(int8, interval, int8) -> int8", _calendar_from)
define("the calendar past(int8, interval, int8) -> int8", _calendar_past)


_times_of = lambda edges: in_times(edge for edge in edges if edge is not None and edge != TIME_MAX)
define("times of moments(int8[]) -> int8[]", _times_of)


# Numbers


def _field_reaches(*, strict: bool) -> Callable[[Decimal | float, str], int]:
    """The first moment whose year, or another field that only grows, is not below a number, or is above it."""

    def evaluate(least: Decimal | float, field: str) -> int:
        if field not in STEADY_FIELDS:
            return TIME_MAX
        of = STEADY_FIELDS[field]
        days = _first_day(lambda each: of(day(each)) > least if strict else of(day(each)) >= least)
        return TIME_MAX if days is None else TIME_MIN if days == DAY_MIN else days * DAY

    return evaluate


_ROUNDINGS = {"floor": ROUND_FLOOR, "trunc": ROUND_DOWN, "round": ROUND_HALF_UP}
_ROUNDINGS |= dict.fromkeys(("ceil", "ceiling"), ROUND_CEILING)


def _result(name: str, value: Decimal, by: Decimal, scale: int) -> Decimal:
    """The result of a growing function of numbers, however large it is."""
    unit = Decimal(1).scaleb(-scale)
    if name in _ROUNDINGS:
        digits = Decimal(1).scaleb(-int(by))
        return EXACT.multiply(EXACT.divide(value, digits).to_integral_value(_ROUNDINGS[name], EXACT), digits)
    if name == "mul":
        return EXACT.multiply(value, by).quantize(unit, ROUND_HALF_UP, EXACT)
    try:
        return quotient(value, by, numeric(38, scale))
    except Failure:  # too large for a numeric
        return Decimal("Infinity") if value > 0 else Decimal("-Infinity")


def _number_reaches(*, strict: bool) -> Callable[[SqlType, Decimal, str, Decimal, int], Decimal]:
    """The least number of a scale for which a function is not below another, or is above it."""

    def evaluate(to: SqlType, least: Decimal, name: str, by: Decimal, scale: int) -> Decimal:
        unit = Decimal(1).scaleb(-to.scale)
        most = int(EXACT.divide(Decimal(10) ** (38 - to.scale), unit)) - 1
        if name not in (*_ROUNDINGS, "mul", "div") or (name in ("mul", "div") and by <= 0) or not 0 <= scale <= 38:
            return EXACT.multiply(Decimal(most), unit)

        def reaches(units: int) -> bool:
            found = _result(name, EXACT.multiply(Decimal(units), unit), by, scale)
            return found > least if strict else found >= least

        near = EXACT.divide(least, by) if name == "mul" else EXACT.multiply(least, by) if name == "div" else least
        low = high = min(max(int(EXACT.divide(near, unit)), -most), most)
        step = 1
        while low > -most and reaches(low):
            low, step = max(low - step, -most), 2 * step
        step = 1
        while high < most and not reaches(high):
            high, step = min(high + step, most), 2 * step
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if reaches(middle) else (middle + 1, high)
        return EXACT.multiply(Decimal(low), unit)

    return evaluate


for _word, _strict in (("from", False), ("past", True)):
    define(f"the field {_word}(T, text) -> int8", _field_reaches(strict=_strict), T="numeric float8")
    _number = _number_reaches(strict=_strict)
    define(f"the number {_word}(numeric, text, numeric, int8) -> numeric", _number, typed=True)


# Arrays of what times are compared with


def _any(compare: Callable[[Any, Any], bool], *, every: bool) -> Callable[[int, list[int | None]], bool | None]:
    """Whether a time compares so with any element, or with every one of them."""

    def evaluate(time: int, times: list[int | None]) -> bool | None:
        known = [None if each is None else compare(time, each) for each in times]
        if (not every) in known:
            return not every
        return None if None in known else every

    return evaluate


_ELEMENTS = named("int2 int4 int8 numeric date timestamp timestamptz")
_as_times = lambda values: [None if each is None else to_time(each) for each in values]
define("the times of(T[]) -> int8[]", _as_times, fails=True, T=_ELEMENTS)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    for _word, _every in (("any", False), ("all", True)):
        define(f"{_word}_{_name}(mz_timestamp, int8[]) -> bool", _any(getattr(operator, _name), every=_every))


def can_be_times(array: SqlType) -> bool:
    """Whether the elements of an array of this type can be compared with times."""
    return array.element is not None and array.element.kind in {each.kind for each in _ELEMENTS}


def moments(name: str, *args: Scalar) -> Scalar:
    """A function of this family over a moment or a set of them, which gives a set."""
    return Call(key_of(f"moments {name}", tuple(base(arg.type) for arg in args)), args, TIMES)


def within_calendar(right: Scalar, span: Scalar, sign: int, *, strict: bool) -> Scalar:
    """The moment that counts, of a time that is moved by a span and is infinite where that leaves the calendar."""
    constant = span.value if isinstance(span, Literal) else None
    if constant is not None and abs(interval_micros(constant)) <= _LONG_US:
        return right
    key = key_of(f"the calendar {'past' if strict else 'from'}", (INT8, INTERVAL, INT8))
    return Call(key, (right, span, Literal(sign, INT8)), INT8)


def times_of(array: Scalar) -> Scalar:
    """The elements of an array as times."""
    return Call(key_of("the times of", (base(array.type),)), (array,), TIMES)


def number(name: str, least: Scalar, by: Scalar, left: Call, *, strict: bool) -> Scalar:
    """The least number of the scale of `left`'s argument that one of these functions takes as far as `least`."""
    inside = next(each for each in left.args if each.type.kind is Kind.NUMERIC and not isinstance(each, Literal))
    args = (least, Literal(name, TEXT), by, Literal(left.type.scale, INT8))
    key = key_of(f"the number {'past' if strict else 'from'}", (NUMERIC, TEXT, NUMERIC, INT8))
    return Call(key, args, numeric(38, inside.type.scale))
