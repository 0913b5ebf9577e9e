"""From when on an expression of `mz_now()` reaches what a row says: comparisons turned around, without loss.

An expression that only grows with time, as `mz_now() - INTERVAL '1 day'`, is not below a value from one time on, and
above it from one time on, the same or a later one; one that only falls, as `ts - mz_now()`, before a time. Moving by
months does neither, for months differ in length; then it is a set of times. All of it is computed with the functions
of `functions.bounds`, which do not fail: only what the row says itself can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from everview.compute.functions.bounds import bound, limited
from everview.compute.functions.calls import call
from everview.compute.functions.civil import DAY, HOUR, MINUTE, SECOND
from everview.compute.functions.order import interval_micros
from everview.compute.functions.temporal import MZ_NOW, Now
from everview.compute.functions.time_sets import times
from everview.compute.ir.scalar import Call, Literal, Scalar, walk
from everview.compute.ir.types import INT8, Interval, Kind
from everview.compute.sql.errors import FEATURE_NOT_SUPPORTED, SqlError

_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_WHOLE = (Kind.MZ_TIMESTAMP, Kind.INT8)
_UNITS = {"milliseconds": 1000, "second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}
_NOW_DIGITS = 19  # that many has a time at most
_TURN = "mz_now() is inside an expression that cannot be turned around"
_HINT = "compare mz_now() itself, or moved by what the row says, with an expression of the row"


@dataclass(frozen=True, slots=True)
class Reached:
    """A time: it is so from then on if it is `rising`, and before if not. Or a set of times, at which it is so."""

    times: Scalar
    rising: bool = True

    @property
    def turned(self) -> Reached:
        """The same for an expression that falls where this one rises."""
        return replace(self, rising=not self.rising)


def is_now(scalar: Scalar) -> bool:
    """Whether it is `mz_now()` itself."""
    return isinstance(scalar, Call) and scalar.function == MZ_NOW


def speaks_of_now(scalar: Scalar) -> bool:
    """Whether `mz_now()` is in it."""
    return any(map(is_now, walk(scalar)))


def refused(message: str, scalar: Scalar, hint: str = _HINT, detail: str | None = None) -> SqlError:
    """The error about `mz_now()` in this expression, at the place where it is written, if that is known."""
    places = [part.position for part in walk(scalar) if isinstance(part, Now) and part.position is not None]
    position = min(places, default=None)
    return SqlError(FEATURE_NOT_SUPPORTED, message, detail=detail, hint=hint, position=position)


def reached(left: Scalar, right: Scalar, *, strict: bool, saturating: bool = True) -> Reached:
    """When `left`, which speaks of now, is not below `right`, which does not; if `strict`, when it is above it.

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
    if kind is Kind.INTERVAL:
        span = bound("the span", right)
        if isinstance(right, Literal) and right.value is not None:
            span = Literal(limited(interval_micros(right.value)), INT8)
        return _span(left, span, strict=strict)
    raise refused(_TURN, left)


def name_of(scalar: Scalar) -> str:
    """The name of the function that it calls, if it does."""
    return scalar.function.partition("(")[0] if isinstance(scalar, Call) else ""


def _time(scalar: Scalar) -> Scalar:
    """The time that something is cast to. Dates always have one; of other things the cast may fail."""
    if name_of(scalar) == "cast" and isinstance(scalar, Call) and scalar.args[0].type.kind in _MOMENTS:
        return bound("the time at", scalar.args[0])
    return scalar


def _parts(left: Scalar) -> tuple[Scalar, Scalar, bool]:
    """Of a sum or difference, what speaks of now, what does not, and whether the latter comes first."""
    assert isinstance(left, Call)
    first, second = left.args
    if speaks_of_now(first) and speaks_of_now(second):
        raise refused("mz_now() is compared with an expression of itself", left)
    return (second, first, True) if speaks_of_now(second) else (first, second, False)


def _whole(left: Scalar, right: Scalar, *, strict: bool) -> Reached:
    """Of whole numbers, as times are."""
    if is_now(left):
        return Reached(bound("the time after", right) if strict else right)
    name = name_of(left)
    if not isinstance(left, Call):
        raise refused(_TURN, left)
    if name == "cast" and left.args[0].type.kind is Kind.MZ_TIMESTAMP:
        return _whole(left.args[0], right, strict=strict)
    if name not in ("add", "sub", "mul", "div") or len(left.args) != 2:
        raise refused(_TURN, left)
    inside, by, swapped = _parts(left)
    if inside.type.kind not in _WHOLE or by.type.kind not in _WHOLE:
        raise refused(_TURN, left)
    if name == "add":
        return _whole(inside, _moved(right, by, back=True), strict=strict)
    if name == "sub":
        if swapped:
            return _whole(inside, _moved(by, right, back=True), strict=not strict).turned
        return _whole(inside, _moved(right, by, back=False), strict=strict)
    factor = by.value if isinstance(by, Literal) else None
    if not factor or (name == "div" and swapped):
        raise refused(
            "mz_now() can be multiplied or divided only by a constant other than zero",
            left,
            "do with what the row says the opposite",
        )
    if factor < 0:  # -y is not below e where y is not above -e
        return _scaled(inside, name, -factor, _moved(Literal(0, INT8), right, back=True), strict=not strict).turned
    return _scaled(inside, name, factor, right, strict=strict)


def _moved(value: Scalar, by: Scalar, *, back: bool) -> Scalar:
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
    """Of dates and timestamps, where `right` is in microseconds."""
    if is_now(left):
        return Reached(bound("the time past" if strict else "the time from", right))
    if not isinstance(left, Call):
        raise refused(_TURN, left)
    name = name_of(left)
    if name == "cast" and left.args[0].type.kind in (*_MOMENTS, Kind.MZ_TIMESTAMP):
        if left.type.kind is Kind.DATE:
            return _rounded(left.args[0], DAY, right, strict=strict)
        if left.type.length is not None and left.type.length < 3:
            return _refuse_rounding(left)
        return _moment(left.args[0], right, strict=strict)
    if name == "date_trunc":
        unit = left.args[0].value if isinstance(left.args[0], Literal) else None
        if unit not in _UNITS:
            raise refused(
                _TURN, left, f"mz_now() can be cut to {', '.join(_UNITS)}: compare with where its unit begins"
            )
        return _rounded(left.args[1], _UNITS[unit], right, strict=strict)
    if name in ("add", "sub") and len(left.args) == 2:
        inside, by, _ = _parts(left)
        if by.type.kind is not Kind.INTERVAL:
            raise refused(_TURN, left)
        span = by.value if isinstance(by, Literal) else None
        if isinstance(span, Interval) and not span.months:
            micros = Literal(limited(span.days * DAY + span.micros), INT8)
            moved = bound("the moment moved back" if name == "add" else "the moment moved on", right, micros)
            return _moment(inside, moved, strict=strict)
        if not is_now(inside) and not (name_of(inside) == "cast" and is_now(inside.args[0])):  # type: ignore[union-attr]
            raise refused(
                "mz_now() can be moved by months, or by an interval of the row, only once and first",
                left,
                "add the other intervals to the other side of the comparison",
            )
        if strict:
            right = bound("the moment moved on", right, Literal(1, INT8))
        return Reached(times("moved on" if name == "add" else "moved back", right, by))
    raise refused(_TURN, left)


def _rounded(inside: Scalar, unit: int, right: Scalar, *, strict: bool) -> Reached:
    """Of what is cut to the start of its unit."""
    step = "the next moment rounded" if strict else "the moment rounded up"
    return _moment(inside, bound(step, right, Literal(unit, INT8)), strict=False)


def _refuse_rounding(left: Scalar) -> Reached:
    raise refused(
        "mz_now() cannot be rounded to a timestamp with fewer than three digits of a second",
        left,
        "cut it with date_trunc, or compare mz_now() itself",
    )


def _number(left: Scalar, right: Scalar, *, strict: bool) -> Reached:
    """Of numbers with a fraction."""
    name = name_of(left)
    if not isinstance(left, Call):
        raise refused(_TURN, left)
    fits = name == "cast" and left.type.precision - left.type.scale >= _NOW_DIGITS
    if fits and left.args[0].type.kind is Kind.NUMERIC and left.args[0].type.scale <= left.type.scale:
        return _number(left.args[0], right, strict=strict)
    if fits and left.args[0].type.kind in _WHOLE:
        number = bound("the whole number past" if strict else "the whole number from", right)
        return _whole(left.args[0], number, strict=False)
    if name == "extract" and isinstance(left.args[0], Literal) and left.args[0].value == "epoch":
        micros = bound("the second past" if strict else "the second from", right)
        return _moment(left.args[1], micros, strict=False)
    if name in ("add", "sub") and len(left.args) == 2:
        inside, by, swapped = _parts(left)
        if name == "sub" and swapped:
            return _number(inside, call("-", by, right), strict=not strict).turned
        return _number(inside, call("-" if name == "add" else "+", right, by), strict=strict)
    raise refused(_TURN, left)


def _span(left: Scalar, right: Scalar, *, strict: bool) -> Reached:
    """Of the difference of two moments, where `right` is in microseconds."""
    if name_of(left) != "sub" or not isinstance(left, Call):
        raise refused(_TURN, left)
    inside, other, swapped = _parts(left)
    if inside.type.kind not in (*_MOMENTS, Kind.MZ_TIMESTAMP) or other.type.kind not in _MOMENTS:
        raise refused(_TURN, left)
    moment = bound("the finite moment", other)
    if swapped:
        return _moment(inside, bound("the moment moved back", moment, right), strict=not strict).turned
    return _moment(inside, bound("the moment moved on", moment, right), strict=strict)
