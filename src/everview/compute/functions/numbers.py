"""The arithmetic of the number types on Python values: ranges, rounding, and what PostgreSQL calls an overflow."""

from __future__ import annotations

import ctypes
import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, localcontext

from everview.compute.functions.contract import Failure
from everview.compute.ir.types import NUMERIC_PRECISION, Kind, SqlType

RANGES = {
    Kind.INT2: (-(2**15), 2**15 - 1, "smallint"),
    Kind.INT4: (-(2**31), 2**31 - 1, "integer"),
    Kind.INT8: (-(2**63), 2**63 - 1, "bigint"),
}
EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
_DIGITS_MAX = 100  # more than any numeric has, and fewer than are computed with
SURE_DIGITS = 33  # of numbers: of such, no fewer than a hundred thousand make a total too large
INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8)
FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
EXACT_KINDS = (*INTEGERS, Kind.NUMERIC)


def integer_of(text: str) -> int:
    """The integer that a text of digits says, with or without a sign and underscores.

    Of one that is longer than those of any type it is only said that it is too large: Python takes quadratic time for
    long ones, and at some length refuses them.
    """
    digits = text.lstrip("+-").replace("_", "").lstrip("0")
    value = int(digits or "0") if len(digits) <= _DIGITS_MAX else 10**_DIGITS_MAX
    return -value if text.startswith("-") else value


def whole(value: int, kind: Kind) -> int:
    """The integer; fails if it is out of the range of this kind."""
    low, high, name = RANGES[kind]
    if low <= value <= high:
        return value
    raise Failure("22003", f"{name} out of range")


def fit(value: Decimal, sql_type: SqlType, rounding: str = ROUND_HALF_UP) -> Decimal:
    """The decimal at the scale of its type, rounded half away from zero, if it has no more than 38 digits."""
    return _limited(value, sql_type.scale, NUMERIC_PRECISION, "value overflows numeric format", rounding)


def constrain(value: Decimal, sql_type: SqlType) -> Decimal:
    """The decimal as a value of a declared numeric(p,s)."""
    overflow = "numeric field overflow" if sql_type.constrained else "value overflows numeric format"
    return _limited(value, sql_type.scale, sql_type.precision, overflow)


def _limited(value: Decimal, scale: int, precision: int, overflow: str, rounding: str = ROUND_HALF_UP) -> Decimal:
    if value.adjusted() > _DIGITS_MAX:
        raise Failure("22003", overflow)
    # Without a zero's sign: equal values have equal representations.
    result = EXACT.plus(value.quantize(Decimal(1).scaleb(-scale), rounding, EXACT))
    if result.copy_abs() >= Decimal(10) ** (precision - scale):
        raise Failure("22003", overflow)
    return result


def quotient(dividend: Decimal, divisor: Decimal, sql_type: SqlType) -> Decimal:
    """The quotient at a scale, by way of 38 digits behind the point, as Spark computes it."""
    if not divisor:
        raise Failure("22012", "division by zero")
    with localcontext(EXACT):
        low, high = (
            fit(each, sql_type) if each.as_tuple().exponent < -sql_type.scale else each  # type: ignore[operator]
            for each in (dividend, divisor)
        )
        if not high:
            raise Failure("22012", "division by zero")
        return fit((low / high).quantize(Decimal("1e-38"), ROUND_HALF_UP), sql_type)


def truncated(value: Decimal) -> int:
    return int(value.to_integral_value(ROUND_DOWN, EXACT))


def real(value: float, kind: Kind, *, infinite: bool = False, nonzero: bool = False) -> float:
    """A float of this kind, zero without a sign; an infinity that no argument brought, or a lost value, fails."""
    result = ctypes.c_float(value).value if kind is Kind.FLOAT4 else value
    if math.isinf(result) and not infinite:
        raise Failure("22003", "value out of range: overflow")
    if nonzero and result == 0:
        raise Failure("22003", "value out of range: underflow")
    return result + 0.0


def significant(value: float, kind: Kind = Kind.FLOAT8, digits: int = 15) -> Decimal:
    """A float as a decimal of 15 digits (or, of a float4, 6), which any float of its kind holds.

    Of the shortest text that reads back as the float, and half up, which is how Java formats it.
    """
    if kind is Kind.FLOAT4:
        shortest, digits = Decimal(float4_text(value)), 6
    else:
        shortest = Decimal(repr(value))
    if not shortest:
        return Decimal(0)
    return shortest.quantize(Decimal(1).scaleb(shortest.adjusted() - digits + 1), ROUND_HALF_UP, EXACT)


def float4_text(value: float) -> str:
    """The shortest text that reads back as this float4."""
    import numpy as np

    return str(np.format_float_scientific(np.float32(value), unique=True, trim="-"))
