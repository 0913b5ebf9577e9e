"""From when on an expression of `mz_now()` reaches what a row says: comparisons turned around, without loss.

An expression that only grows with time, as `mz_now() - INTERVAL '1 day'`, is not below a value from one time on, and
above it from one time on, the same or a later one; one that only falls, as `ts - mz_now()`, before a time. Moving by
months does neither, for months differ in length, nor do clocks that are set back; then it is a set of times. All of it
is computed with the functions of `temporal_bounds` and `temporal_inverses`, which do not fail: only what the row says
itself can. Choices, as CASE and GREATEST, are taken apart before: see `choices`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from math import isfinite
from typing import Any

from everview.compute.functions.calendar import DAY, HOUR, MINUTE, SECOND
from everview.compute.functions.date_fields import STEADY_FIELDS, unit_of
from everview.compute.functions.dates import is_zone
from everview.compute.functions.naming import as_numeric
from everview.compute.functions.order import interval_micros
from everview.compute.functions.resolve import call, cast
from everview.compute.functions.temporal import MZ_NOW, Now
from everview.compute.functions.temporal_bounds import bound, limited
from everview.compute.functions.temporal_floats import of_float, of_number, of_seconds, of_whole
from everview.compute.functions.temporal_inverses import moments, number, within_calendar
from everview.compute.functions.time_sets import TIMES, times
from everview.compute.ir.scalar import Call, Literal, Scalar, walk
from everview.compute.ir.types import FLOAT8, INT8, TEXT, Interval, Kind, numeric
from everview.compute.sql.errors import FEATURE_NOT_SUPPORTED, SqlError

_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
_SMALL = (Kind.INT2, Kind.INT4)
_WHOLE = (Kind.MZ_TIMESTAMP, Kind.INT8, *_SMALL)
_UNITS = {"microseconds": 1, "milliseconds": 1000, "second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}
_LONG_UNITS = ("week", "month", "quarter", "year", "decade", "century", "millennium")
_NOW_DIGITS = 19  # that many has a time at most
_ROUNDINGS = ("floor", "ceil", "ceiling", "round", "trunc")
_JUSTIFIED = ("justify_hours", "justify_days", "justify_interval")  # which are as long as they were
_ZERO, _ONE = Literal(0, INT8), Literal(1, INT8)
_TURN = "mz_now() is inside an expression that cannot be turned around"
_HINT = "compare mz_now() itself, or moved by what the row says, with an expression of the row"


@dataclass(frozen=True, slots=True)
class Reached:
    """A time, from which a comparison holds if it is `rising` and before which otherwise; or a set of times."""

    times: Scalar
    rising: bool = True

    @property
    def turned(self) -> Reached:
        """The same for an expression that falls where this one rises."""
        return replace(self, rising=not self.rising)


def is_now(scalar: Scalar) -> bool:
    return isinstance(scalar, Call) and scalar.function == MZ_NOW


def speaks_of_now(scalar: Scalar) -> bool:
    return any(map(is_now, walk(scalar)))


def refused(message: str, scalar: Scalar, hint: str = _HINT, detail: str | None = None) -> SqlError:
    """The error about `mz_now()` in this expression, with the position in the statement if it is known."""
    places = [part.position for part in walk(scalar) if isinstance(part, Now) and part.position is not None]
    position = min(places, default=None)
    return SqlError(FEATURE_NOT_SUPPORTED, message, detail=detail, hint=hint, position=position)


def reached(left: Scalar, right: Scalar, *, strict: bool, saturating: bool = True) -> Reached:
    """When `left`, which reads the time, is not below `right`, which does not; if `strict`, when it is above it.

    Without `saturating`, intervals are moved over to `right` by the operators of SQL, which may fail there.
    """
    if not saturating:
        while name_of(left) in ("add", "sub") and isinstance(left, Call) and left.args[-1].type.kind is Kind.INTERVAL:
            right = call("-" if name_of(left) == "add" else "+", right, left.args[1])
            left = left.args[0]
            if is_now(left):
                return Reached(bound("the time past" if strict else "the time from", bound("the moment", right)))
    kind = left.type.kind
    if kind in _WHOLE:
        return _whole(left, _time(right), strict=strict)
    if kind in _MOMENTS:
        return _moment(left, bound("the moment", right), strict=strict)
    if kind is Kind.NUMERIC:
        return _number(left, right, strict=strict)
    if kind in _FLOATS:
        return _float(left, cast(right, FLOAT8), strict=strict)
    if kind is Kind.INTERVAL:
        return _span(left, _length(right), strict=strict)
    raise refused(_TURN, left)


def name_of(scalar: Scalar) -> str:
    """The name of the function that it calls, if it does."""
    return scalar.function.partition("(")[0] if isinstance(scalar, Call) else ""


def _time(scalar: Scalar) -> Scalar:
    """The time that something is cast to. Dates always have one; of other things the cast may fail."""
    if name_of(scalar) == "cast" and isinstance(scalar, Call) and scalar.args[0].type.kind in _MOMENTS:
        return bound("the time at", scalar.args[0])
    return _long(scalar)


def _long(scalar: Scalar) -> Scalar:
    return cast(scalar, INT8) if scalar.type.kind in _SMALL else scalar


def _length(span: Scalar) -> Scalar:
    """An interval in microseconds, as comparisons count it."""
    if isinstance(span, Literal) and span.value is not None:
        return Literal(limited(interval_micros(span.value)), INT8)
    return bound("the span", span)


def _parts(left: Scalar) -> tuple[Scalar, Scalar, bool]:
    """Split a sum or difference: the operand with `mz_now()`, the other, and whether the other comes first."""
    assert isinstance(left, Call)
    first, second = left.args
    if speaks_of_now(first) and speaks_of_now(second):
        raise refused("mz_now() is compared with an expression of itself", left)
    return (second, first, True) if speaks_of_now(second) else (first, second, False)


def _whole(left: Scalar, right: Scalar, *, strict: bool) -> Reached:
    """The bound of whole numbers, which times are."""
    if is_now(left):
        return Reached(bound("the time after", right) if strict else right)
    name = name_of(left)
    if not isinstance(left, Call):
        raise refused(_TURN, left)
    if name == "cast":
        return _cast_to_whole(left, right, strict=strict)
    if name == "pos":
        return _whole(left.args[0], right, strict=strict)
    if name == "neg":  # -e is not below y where e is not above -y
        return _whole(left.args[0], _moved(_ZERO, right, back=True), strict=not strict).turned
    if name not in ("add", "sub", "mul", "div") or len(left.args) != 2:
        raise refused(_TURN, left)
    inside, by, swapped = _parts(left)
    if name == "sub" and inside.type.kind is by.type.kind is Kind.DATE:
        return _days(inside, by, right, swapped=swapped, strict=strict)
    if inside.type.kind not in _WHOLE or by.type.kind not in _WHOLE:
        raise refused(_TURN, left)
    if name == "add":
        return _whole(inside, _moved(right, by, back=True), strict=strict)
    if name == "sub":
        if swapped:
            return _whole(inside, _moved(by, right, back=True), strict=not strict).turned
        return _whole(inside, _moved(right, by, back=False), strict=strict)
    factor = _factor(left, by, swapped=swapped)
    if factor < 0:
        return _scaled(inside, name, -factor, _moved(_ZERO, right, back=True), strict=not strict).turned
    return _scaled(inside, name, factor, right, strict=strict)


def _factor(left: Call, by: Scalar, *, swapped: bool) -> Any:
    """The constant that is multiplied with, or divided by."""
    factor = by.value if isinstance(by, Literal) else None
    if not factor or (name_of(left) == "div" and swapped):
        raise refused(
            "mz_now() can be multiplied or divided only by a constant other than zero",
            left,
            "do with what the row says the opposite",
        )
    return factor


def _cast_to_whole(left: Call, right: Scalar, *, strict: bool) -> Reached:
    (source,) = left.args
    if source.type.kind is Kind.NUMERIC and left.type.kind is not Kind.MZ_TIMESTAMP:
        least = cast(right, numeric(_NOW_DIGITS, 0))
        rounded = number("round", least, _numeral(0), left, strict=strict)
        return _number(source, rounded, strict=False)
    if source.type.kind in _MOMENTS and left.type.kind is Kind.MZ_TIMESTAMP:  # without what is less than a millisecond
        least = bound("the time after", right) if strict else right
        least = bound("the number", least) if least.type.kind is Kind.MZ_TIMESTAMP else least
        return _moment(source, bound("the span of milliseconds", least), strict=False)
    if source.type.kind in _SMALL or (source.type.kind in _WHOLE and left.type.kind not in _SMALL):
        return _whole(source, right, strict=strict)
    raise refused(_TURN, left)


def _numeral(value: int) -> Scalar:
    return Literal(Decimal(value), numeric(_NOW_DIGITS, 0))


def _days(inside: Scalar, other: Scalar, right: Scalar, *, swapped: bool, strict: bool) -> Reached:
    """The bound of the number of days from one date to another."""
    start, span = bound("the finite moment", other), bound("the span of days", right)
    if swapped:
        return _moment(inside, bound("the moment moved back", start, span), strict=not strict).turned
    return _moment(inside, bound("the moment moved on", start, span), strict=strict)


def _moved(value: Scalar, by: Scalar, *, back: bool) -> Scalar:
    value, by = _long(value), _long(by)
    if by.type.kind is Kind.MZ_TIMESTAMP and not back:
        value, by = by, value
    if by.type.kind is Kind.MZ_TIMESTAMP:
        by = bound("the number", by)
    return bound("the time moved back" if back else "the time moved on", value, by)


def _scaled(inside: Scalar, name: str, factor: int, right: Scalar, *, strict: bool) -> Reached:
    if strict:
        right = bound("the time after", right)
    if right.type.kind is Kind.MZ_TIMESTAMP:
        right = bound("the number", right)
    step = "the factor from" if name == "mul" else "the dividend from"
    return _whole(inside, bound(step, right, Literal(factor, INT8)), strict=False)


def _moment(left: Scalar, right: Scalar, *, strict: bool) -> Reached:
    """The bound of a date or timestamp. `right` is in microseconds: one moment, or a set of moments."""
    if is_now(left):
        if right.type == TIMES:
            return Reached(times("of moments", right))
        return Reached(bound("the time past" if strict else "the time from", right))
    if not isinstance(left, Call):
        raise refused(_TURN, left)
    name = name_of(left)
    if name == "cast" and left.args[0].type.kind in (*_MOMENTS, Kind.MZ_TIMESTAMP):
        if left.type.kind is Kind.DATE:
            return _rounded(left.args[0], DAY, right, strict=strict)
        digits = left.type.length
        if digits is not None and digits < 6:
            step = Literal(10 ** (6 - digits), INT8)
            return _moment(left.args[0], _each("unrounded", _from(right, strict=strict), step), strict=False)
        return _moment(left.args[0], right, strict=strict)
    if name == "date_trunc":
        return _cut(left, right, strict=strict)
    if name == "date_bin":
        return _binned(left, right, strict=strict)
    if name == "timezone":
        return _by_clocks(left, right, strict=strict)
    if name in ("add", "sub") and len(left.args) == 2:
        return _moved_moment(left, right, strict=strict)
    raise refused(_TURN, left)


def _each(what: str, right: Scalar, *args: Scalar) -> Scalar:
    """A step over a moment, or over the ends of a set of them."""
    return moments(what, right, *args) if right.type == TIMES else bound(f"the moment {what}", right, *args)


def _from(right: Scalar, *, strict: bool) -> Scalar:
    """The first moment that counts."""
    return _each("moved on", right, _ONE) if strict else right


def _rounded(inside: Scalar, unit: int, right: Scalar, *, strict: bool) -> Reached:
    """The bound of an expression that is cut to the start of its unit."""
    size = Literal(unit, INT8)
    if right.type == TIMES:
        return _moment(inside, moments("rounded up", right, size), strict=False)
    step = "the next moment rounded" if strict else "the moment rounded up"
    return _moment(inside, bound(step, right, size), strict=False)


def _cut(left: Call, right: Scalar, *, strict: bool) -> Reached:
    """The bound of date_trunc."""
    unit = unit_of(left.args[0].value) if isinstance(left.args[0], Literal) and left.args[0].value else ""
    if unit in _UNITS:
        return _rounded(left.args[1], _UNITS[unit], right, strict=strict)
    if unit not in _LONG_UNITS:
        raise refused(_TURN, left, f"mz_now() can be cut to {', '.join((*_UNITS, *_LONG_UNITS))}")
    cut = _each("cut up", _from(right, strict=strict), Literal(unit, TEXT))
    return _moment(left.args[1], cut, strict=False)


def _binned(left: Call, right: Scalar, *, strict: bool) -> Reached:
    """The bound of date_bin, which cuts to units that are counted from an origin."""
    stride, inside, origin = left.args
    span = stride.value if isinstance(stride, Literal) else None
    size = 0 if not isinstance(span, Interval) or span.months else span.days * DAY + span.micros
    if size <= 0 or speaks_of_now(origin):
        raise refused(_TURN, left, "the stride of date_bin is a constant without months, and its origin one of the row")
    start = bound("the origin", origin)
    since = _each("moved back", _from(right, strict=strict), start)
    binned = _each("rounded up", since, Literal(limited(size), INT8))
    return _moment(inside, _each("moved on", binned, start), strict=False)


def _by_clocks(left: Call, right: Scalar, *, strict: bool) -> Reached:
    """The bound of AT TIME ZONE."""
    zone = left.args[0].value if isinstance(left.args[0], Literal) else None
    if not isinstance(zone, str) or not is_zone(zone):
        raise refused(_TURN, left, "the time zone is a constant, and one that there is")
    if zone.upper() in ("UTC", "Z", "GMT"):
        return _moment(left.args[1], right, strict=strict)
    word = "by" if left.args[1].type.kind is Kind.TIMESTAMPTZ else "of"
    shown = moments(f"{word} the clocks of", _from(right, strict=strict), Literal(zone, TEXT))
    return _moment(left.args[1], shown, strict=False)


def _moved_moment(left: Call, right: Scalar, *, strict: bool) -> Reached:
    """The bound of a sum or difference with an interval, or with a number of milliseconds or days."""
    inside, by, _ = _parts(left)
    on, back = ("moved back", "moved on") if name_of(left) == "add" else ("moved on", "moved back")
    span = by.value if isinstance(by, Literal) else None
    micros: Scalar | None = None
    if isinstance(span, Interval) and not span.months:
        micros = Literal(limited(span.days * DAY + span.micros), INT8)
    elif by.type.kind in _WHOLE and inside.type.kind in (Kind.DATE, Kind.MZ_TIMESTAMP):
        unit = "days" if inside.type.kind is Kind.DATE else "milliseconds"
        number_of = bound("the number", by) if by.type.kind is Kind.MZ_TIMESTAMP else _long(by)
        micros = bound(f"the span of {unit}", number_of)
    elif by.type.kind is not Kind.INTERVAL or inside.type.kind is Kind.INTERVAL:
        raise refused(_TURN, left)
    if inside.type.kind is Kind.MZ_TIMESTAMP and by.type.kind is Kind.INTERVAL and right.type != TIMES:
        right = within_calendar(right, by, 1 if name_of(left) == "add" else -1, strict=strict)
    if micros is not None:
        return _moment(inside, _each(on, right, micros), strict=strict)
    first = is_now(inside) or (name_of(inside) == "cast" and is_now(inside.args[0]))  # type: ignore[union-attr]
    right = _from(right, strict=strict)
    if first and inside.type.length is None and inside.type.kind is not Kind.DATE and right.type != TIMES:
        return Reached(times(back, right, by))
    return _moment(inside, moments(back, right, by), strict=False)


def _number(left: Scalar, right: Scalar, *, strict: bool) -> Reached:
    """The bound of numbers with a fraction."""
    name = name_of(left)
    if not isinstance(left, Call):
        raise refused(_TURN, left)
    if name == "cast":
        return _cast_to_number(left, right, strict=strict)
    if name == "extract":
        return _field(left, right, strict=strict)
    if name == "pos":
        return _number(left.args[0], right, strict=strict)
    if name == "neg":
        return _number(left.args[0], call("-", right), strict=not strict).turned
    if name in _ROUNDINGS and not speaks_of_now(left.args[-1]) and not isinstance(left.args[-1], Literal):
        raise refused(_TURN, left, "mz_now() can be rounded only to a constant number of digits")
    if name in _ROUNDINGS:
        digits = left.args[1].value if len(left.args) == 2 else 0  # type: ignore[union-attr]
        if digits is None:
            raise refused(_TURN, left)
        return _number(left.args[0], number(name, right, _numeral(digits), left, strict=strict), strict=False)
    if name not in ("add", "sub", "mul", "div") or len(left.args) != 2:
        raise refused(_TURN, left)
    inside, by, swapped = _parts(left)
    if name == "sub" and swapped:
        return _number(inside, call("-", by, right), strict=not strict).turned
    if name in ("add", "sub"):
        return _number(inside, call("-" if name == "add" else "+", right, by), strict=strict)
    if _factor(left, by, swapped=swapped) > 0:
        return _number(inside, number(name, right, by, left, strict=strict), strict=False)
    least = number(name, call("-", right), call("-", by), left, strict=not strict)
    return _number(inside, least, strict=False).turned


def _cast_to_number(left: Call, right: Scalar, *, strict: bool) -> Reached:
    (source,) = left.args
    room = left.type.precision - left.type.scale
    if source.type.kind is Kind.NUMERIC and room >= min(_NOW_DIGITS, source.type.precision - source.type.scale):
        if source.type.scale > left.type.scale:
            right, strict = number("mul", right, _numeral(1), left, strict=strict), False
        return _number(source, right, strict=strict)
    digits = as_numeric(source.type).precision if source.type.kind in _SMALL else _NOW_DIGITS
    if source.type.kind in _WHOLE and room >= digits:
        least = bound("the whole number past" if strict else "the whole number from", right)
        return _whole(source, least, strict=False)
    raise refused(_TURN, left)


def _float(left: Scalar, right: Scalar, *, strict: bool) -> Reached:
    """The bound of floats. `right` is one of 64 bits, which every one of 32 is too."""
    if not isinstance(left, Call):
        raise refused(_TURN, left)
    name = name_of(left)
    if name == "date_part":
        return _field(left, right, strict=strict)
    if name == "cast":
        return _cast_to_float(left, right, strict=strict)
    if name == "pos":
        return _float(left.args[0], right, strict=strict)
    if name == "neg" or (name in _ROUNDINGS and len(left.args) == 1):
        found = _float(left.args[0], of_float(right, name, strict=strict), strict=False)
        return found.turned if name == "neg" else found
    if name not in ("add", "sub", "mul", "div") or len(left.args) != 2 or left.type.kind is Kind.FLOAT4:
        raise refused(_TURN, left)
    inside, by, swapped = _parts(left)
    falls = name == "sub" and swapped
    if name in ("mul", "div"):
        factor = _factor(left, by, swapped=swapped)
        if not isfinite(factor):
            raise refused(_TURN, left)
        falls = factor < 0
    step = "from" if name == "sub" and swapped else name
    found = _float(inside, of_float(right, step, cast(by, FLOAT8), strict=strict), strict=False)
    return found.turned if falls else found


def _cast_to_float(left: Call, right: Scalar, *, strict: bool) -> Reached:
    (source,) = left.args
    kind = left.type.kind
    if source.type.kind in _WHOLE:
        return _whole(source, of_whole(right, kind, strict=strict), strict=False)
    if source.type.kind is Kind.NUMERIC:
        return _number(source, of_number(right, kind, source.type.scale, strict=strict), strict=False)
    if source.type.kind in _FLOATS:
        if kind is Kind.FLOAT4 and source.type.kind is Kind.FLOAT8:
            right, strict = of_float(right, "real", strict=strict), False
        return _float(source, right, strict=strict)
    raise refused(_TURN, left)


def _field(left: Call, right: Scalar, *, strict: bool) -> Reached:
    """The bound of extract and date_part, for fields that never decrease."""
    field = unit_of(left.args[0].value) if isinstance(left.args[0], Literal) and left.args[0].value else ""
    value = left.args[1]
    if field == "epoch":
        if right.type.kind is Kind.FLOAT8:
            micros = of_seconds(right, strict=strict)
        else:
            micros = bound("the second past" if strict else "the second from", right)
        if value.type.kind is not Kind.INTERVAL:
            return _moment(value, micros, strict=False)
        if name_of(value) == "sub" and isinstance(value, Call) and value.args[0].type.kind is not Kind.INTERVAL:
            return _span(value, micros, strict=False)
    if field in STEADY_FIELDS and value.type.kind in _MOMENTS:
        start = bound("the field past" if strict else "the field from", right, Literal(field, TEXT))
        return _moment(value, start, strict=False)
    hint = f"the fields that never become less are epoch, {', '.join(STEADY_FIELDS)}"
    raise refused(_TURN, left, hint)


def _span(left: Scalar, right: Scalar, *, strict: bool) -> Reached:
    """The bound of the difference of two moments. `right` is in microseconds."""
    name = name_of(left)
    if not isinstance(left, Call):
        raise refused(_TURN, left)
    if name in _JUSTIFIED or name == "pos":
        return _span(left.args[0], right, strict=strict)
    if name == "neg":
        return _span(left.args[0], _moved(_ZERO, right, back=True), strict=not strict).turned
    if name not in ("add", "sub") or len(left.args) != 2:
        raise refused(_TURN, left)
    inside, other, swapped = _parts(left)
    if inside.type.kind is other.type.kind is Kind.INTERVAL:
        length = _length(other)
        if name == "sub" and swapped:
            return _span(inside, _moved(length, right, back=True), strict=not strict).turned
        return _span(inside, _moved(right, length, back=name == "add"), strict=strict)
    if name == "add" or inside.type.kind not in (*_MOMENTS, Kind.MZ_TIMESTAMP) or other.type.kind not in _MOMENTS:
        raise refused(_TURN, left)
    of_time = inside.type.kind is Kind.MZ_TIMESTAMP  # which is no timestamp, so there is an interval without end
    moment = bound("the moment subtracted" if of_time else "the finite moment", other)
    if swapped:
        return _moment(inside, bound("the moment moved back", moment, right), strict=not strict).turned
    return _moment(inside, bound("the moment moved on", moment, right), strict=strict)
