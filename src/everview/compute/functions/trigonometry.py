"""Trigonometric and hyperbolic functions, and the error function, of floats.

Java's library rounds some of these in another way than C's, and a row that one engine adds must be the one that another
takes away, so on Spark they are called in Python. Those of degrees are exact where the angle is a round one, as
PostgreSQL's are: they are scaled so that sind(30) is 0.5 and tand(45) is 1.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

from everview.compute.functions.contract import Failure
from everview.compute.functions.signatures import Family

FUNCTIONS = Family()
_SIN_30 = math.sin(math.radians(30))
_ONE_LESS_COS_60 = 1 - math.cos(math.radians(60))
_ASIN_HALF, _ACOS_HALF, _ATAN_ONE = math.asin(0.5), math.acos(0.5), math.atan(1)


def _within(low: float, high: float, function: Callable[[float], float]) -> Callable[[float], float]:
    """The function where its argument is between the bounds, or NaN."""

    def evaluate(value: float) -> float:
        if value < low or value > high:
            raise Failure("22003", "input is out of range")
        return math.nan if math.isnan(value) else function(value)

    return evaluate


def _of_finite(function: Callable[[float], float]) -> Callable[[float], float]:
    return _within(-sys.float_info.max, sys.float_info.max, function)


def _ratio(above: float, below: float) -> float:
    """A quotient as C has it: infinite at a pole."""
    return above / below if below else math.inf


def _unbounded(function: Callable[[float], float], *, odd: bool) -> Callable[[float], float]:
    """Infinite where C's overflows."""

    def evaluate(value: float) -> float:
        try:
            return function(value)
        except OverflowError:
            return -math.inf if odd and value < 0 else math.inf

    return evaluate


def _inverse_tangent_of_hyperbola(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) == 1 else math.atanh(value)


def _sine_to_30(degrees: float) -> float:
    return math.sin(math.radians(degrees)) / _SIN_30 / 2


def _cosine_to_60(degrees: float) -> float:
    return 1 - (1 - math.cos(math.radians(degrees))) / _ONE_LESS_COS_60 / 2


def _sine(degrees: float) -> float:
    """The sine of an angle between 0 and 90 degrees."""
    return _sine_to_30(degrees) if degrees <= 30 else _cosine_to_60(90 - degrees)


def _cosine(degrees: float) -> float:
    return _cosine_to_60(degrees) if degrees <= 60 else _sine_to_30(90 - degrees)


_TAN_45, _COT_45 = _sine(45) / _cosine(45), _cosine(45) / _sine(45)


def _quadrant(degrees: float) -> tuple[float, int, int]:
    """The angle between 0 and 90 with the same sine and cosine but for their signs, and these signs."""
    angle, sine, cosine = math.fmod(degrees, 360), 1, 1
    if angle < 0:
        angle, sine = -angle, -sine
    if angle > 180:
        angle, sine = 360 - angle, -sine
    if angle > 90:
        angle, cosine = 180 - angle, -cosine
    return angle, sine, cosine


# Of the angle between 0 and 90, and of the signs that the sine and the cosine have in its quadrant.
_OF_DEGREES: dict[str, Callable[[float, int, int], float]] = {
    "sind": lambda angle, sine, cosine: sine * _sine(angle),
    "cosd": lambda angle, sine, cosine: cosine * _cosine(angle),
    "tand": lambda angle, sine, cosine: sine * cosine * (_ratio(_sine(angle), _cosine(angle)) / _TAN_45),
    "cotd": lambda angle, sine, cosine: sine * cosine * (_ratio(_cosine(angle), _sine(angle)) / _COT_45),
}


def _asind(value: float) -> float:
    size = abs(value)
    angle = math.asin(size) / _ASIN_HALF * 30 if size <= 0.5 else 90 - math.acos(size) / _ACOS_HALF * 60
    return angle if value >= 0 else -angle


def _acosd(value: float) -> float:
    if value < 0:
        return 90 - _asind(value)
    return 90 - math.asin(value) / _ASIN_HALF * 30 if value <= 0.5 else math.acos(value) / _ACOS_HALF * 60


def _add(signature: str, function: Callable[..., float], *, fails: bool = False) -> None:
    # A zero has no sign: equal values have equal representations.
    FUNCTIONS.define(f"{signature} -> float8", lambda *args: function(*args) + 0.0, fails=fails)


_add("asin(float8)", _within(-1, 1, math.asin), fails=True)
_add("acos(float8)", _within(-1, 1, math.acos), fails=True)
_add("asind(float8)", _within(-1, 1, _asind), fails=True)
_add("acosd(float8)", _within(-1, 1, _acosd), fails=True)
for _name, _of_degrees in _OF_DEGREES.items():
    _function = lambda degrees, of=_of_degrees: of(*_quadrant(degrees))
    _add(f"{_name}(float8)", _of_finite(_function), fails=True)
_add("cot(float8)", _of_finite(lambda value: _ratio(1, math.tan(value))), fails=True)
_add("atan2(float8, float8)", math.atan2)
_add("atand(float8)", lambda value: math.atan(value) / _ATAN_ONE * 45)
_add("atan2d(float8, float8)", lambda above, beside: math.atan2(above, beside) / _ATAN_ONE * 45)
_add("sinh(float8)", _unbounded(math.sinh, odd=True))
_add("cosh(float8)", _unbounded(math.cosh, odd=False))
_add("tanh(float8)", math.tanh)
_add("asinh(float8)", math.asinh)
_add("acosh(float8)", _within(1, math.inf, math.acosh), fails=True)
_add("atanh(float8)", _within(-1, 1, _inverse_tangent_of_hyperbola), fails=True)
_add("erf(float8)", math.erf)
_add("erfc(float8)", math.erfc)
