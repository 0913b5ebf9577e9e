"""Functions of the bounds of temporal filters over floats: from which argument on a float of a time reaches another.

Each is the inverse of a cast or a function of SQL that only grows, or only falls: the least argument at which its
result is not below a float, or is above it, or no longer is if the function falls. It asks the function itself, which
rounds. NaN is above all other floats, and -0 is 0. None of these fails; SQL has no names for them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal

from everview.compute.functions.naming import key_of
from everview.compute.functions.numbers import EXACT, real
from everview.compute.functions.order import sort_key
from everview.compute.functions.signatures import Family
from everview.compute.functions.temporal import TIME_MAX, TIME_MIN
from everview.compute.ir.scalar import Call, Literal, Scalar
from everview.compute.ir.types import FLOAT8, INT8, TEXT, Kind, SqlType, numeric

FUNCTIONS = Family()
define = FUNCTIONS.define

_place = sort_key(FLOAT8)
_INFINITE_PLACE = 0x7FF << 52  # that of infinity, if floats are counted from 0

# By name: the function with its other operand, which some ignore, and whether it falls.
_STEPS: dict[str, Callable[[float, float], float]] = {
    "add": lambda value, by: value + by,
    "sub": lambda value, by: value - by,
    "from": lambda value, by: by - value,
    "mul": lambda value, by: value * by,
    "div": lambda value, by: value / by,
    "neg": lambda value, _: -value,
    "real": lambda value, _: _as_float(value, "real"),
    "floor": lambda value, _: float(math.floor(value)),
    "ceil": lambda value, _: float(math.ceil(value)),
    "ceiling": lambda value, _: float(math.ceil(value)),
    "trunc": lambda value, _: float(math.trunc(value)),
    "round": lambda value, _: float(round(value)),
}


def _as_float(value: float | Decimal, kind: str) -> float:
    """A number as a float of this kind, by the rounding of the cast."""
    return real(float(value), Kind.FLOAT4 if kind == "real" else Kind.FLOAT8, infinite=True)


def _reaching(least: float, *, strict: bool) -> Callable[[float], bool]:
    """Whether a float is not below the least one, or is above it."""
    place = _place(least)
    return (lambda value: _place(value) > place) if strict else (lambda value: _place(value) >= place)


def _first(reaches: Callable[[int], bool], low: int, high: int, near: int) -> int:
    """The first number that reaches, where all behind it do too; `high`, which is not asked, if there is none."""
    if reaches(low):
        return low
    start = end = min(max(near, low), high - 1)
    step = 1
    while start > low and reaches(start):
        end, start, step = start, max(start - step, low), 2 * step
    step = 1
    while end < high and not reaches(end):
        start, end, step = end, min(end + step, high), 2 * step
    while end - start > 1:
        middle = (start + end) // 2
        start, end = (start, middle) if reaches(middle) else (middle, end)
    return end


def _near(least: float, scale: int = 0) -> int:
    """About where a number reaches a float, in units of this scale."""
    return 0 if math.isnan(least) else int(min(max(least * 10.0**scale, -1e38), 1e38))


def _whole_reaches(*, strict: bool) -> Callable[[float, str], int]:
    """The least whole number that reaches a float once it is cast."""

    def evaluate(least: float, kind: str) -> int:
        reaches = _reaching(least, strict=strict)
        return _first(lambda number: reaches(_as_float(number, kind)), TIME_MIN, TIME_MAX, _near(least))

    return evaluate


def _number_reaches(*, strict: bool) -> Callable[[SqlType, float, str], Decimal]:
    """The least number of a scale that reaches a float once it is cast."""

    def evaluate(to: SqlType, least: float, kind: str) -> Decimal:
        reaches, most = _reaching(least, strict=strict), 10**38 - 1

        def number(units: int) -> Decimal:
            return EXACT.scaleb(Decimal(units), -to.scale)

        found = _first(lambda units: reaches(_as_float(number(units), kind)), -most, most, _near(least, to.scale))
        return number(found)

    return evaluate


def _second_reaches(*, strict: bool) -> Callable[[float], int]:
    """The least number of microseconds whose seconds reach a float, as date_part gives them."""

    def evaluate(least: float) -> int:
        reaches = _reaching(least, strict=strict)
        return _first(lambda micros: reaches(micros / 1_000_000), TIME_MIN, TIME_MAX, _near(least, 6))

    return evaluate


def _float_of(place: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", abs(place)))[0]
    return -value if place < 0 else value


def _place_of(value: float) -> int:
    """The place of a float among all of them in their order, with 0 at 0."""
    found: int = struct.unpack("<q", struct.pack("<d", abs(value)))[0]
    return -found if value < 0 else found


def _float_reaches(*, strict: bool) -> Callable[[float, str, float], float]:
    """The least float that a function takes as far as another one, or no longer as far if it falls."""

    def evaluate(least: float, name: str, by: float) -> float:
        if name not in _STEPS or (name in ("mul", "div") and (not by or not math.isfinite(by))):
            return math.inf
        step, reaches = _STEPS[name], _reaching(least, strict=strict)
        rising = not (name in ("neg", "from") or (name in ("mul", "div") and by < 0))
        near = 0 if math.isnan(least) else _place_of(least)

        def found(place: int) -> bool:
            return reaches(step(_float_of(place), by)) is rising

        return _float_of(_first(found, 1 - _INFINITE_PLACE, _INFINITE_PLACE, near))

    return evaluate


for _word, _strict in (("from", False), ("past", True)):
    define(f"the whole number {_word}(float8, text) -> int8", _whole_reaches(strict=_strict))
    define(f"the number {_word}(float8, text) -> numeric", _number_reaches(strict=_strict), typed=True)
    define(f"the second {_word}(float8) -> int8", _second_reaches(strict=_strict))
    define(f"the float {_word}(float8, text, float8) -> float8", _float_reaches(strict=_strict))


def of_whole(least: Scalar, kind: Kind, *, strict: bool) -> Scalar:
    """From which whole number on its cast to this kind of float reaches another float."""
    return Call(key_of(_named("the whole number", strict), (FLOAT8, TEXT)), (least, _kind(kind)), INT8)


def of_number(least: Scalar, kind: Kind, scale: int, *, strict: bool) -> Scalar:
    """From which number of this scale on its cast to this kind of float reaches another float."""
    key = key_of(_named("the number", strict), (FLOAT8, TEXT))
    return Call(key, (least, _kind(kind)), numeric(38, scale))


def of_seconds(least: Scalar, *, strict: bool) -> Scalar:
    """From which number of microseconds on their seconds reach a float."""
    return Call(key_of(_named("the second", strict), (FLOAT8,)), (least,), INT8)


def of_float(least: Scalar, name: str, by: Scalar | None = None, *, strict: bool) -> Scalar:
    """From which float on one of these functions reaches another float, or no longer does if it falls."""
    key = key_of(_named("the float", strict), (FLOAT8, TEXT, FLOAT8))
    return Call(key, (least, Literal(name, TEXT), by or Literal(0.0, FLOAT8)), FLOAT8)


def _named(what: str, strict: bool) -> str:
    return f"{what} past" if strict else f"{what} from"


def _kind(kind: Kind) -> Literal:
    return Literal("real" if kind is Kind.FLOAT4 else "double precision", TEXT)
