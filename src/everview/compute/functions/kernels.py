"""What functions mean over whole columns of Arrow: comparisons, arithmetic, casts of numbers, texts.

Each is exact for what it answers, and says with None what it does not answer: then the function is called in Python.
A rendering that differs from Python's meaning in any bit, for any value, is a defect.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.functions.columns import (
    WORD_MAX,
    Doubles,
    Kernel,
    Mask,
    SomeRowFails,
    Values,
    Words,
    both,
    doubles,
    largest,
    of_bools,
    of_doubles,
    of_long_words,
    of_words,
    order_of_doubles,
    present,
    words,
)
from everview.compute.ir.types import NUMERIC_PRECISION, Kind, SqlType, arrow_type

_INTEGERS, _FLOATS = (Kind.INT2, Kind.INT4, Kind.INT8), (Kind.FLOAT4, Kind.FLOAT8)
NUMBERS = (*_INTEGERS, *_FLOATS, Kind.NUMERIC)
_ARROW_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"
}  # fmt: skip
_SCALE_MAX = 18


def _rows(args: Sequence[Values]) -> int:
    return max(len(each) for each in args if isinstance(each, pa.Array))


# Comparisons


def compared(name: str) -> Kernel:
    """A comparison of two values of one kind that are not compared by a key."""
    arrow, test = getattr(pc, _ARROW_COMPARISONS[name]), getattr(operator, name)

    def kernel(args: Sequence[Values], types: Sequence[SqlType], _result: SqlType) -> Values | None:
        kind = types[0].kind
        if kind in _FLOATS:
            left, right = (order_of_doubles(doubles(each)) for each in args)
        elif kind is Kind.NUMERIC:
            aligned = _aligned(args, types)
            if aligned is None:
                return None
            left, right = aligned
        else:
            return arrow(*args)
        return _of_mask(test(left, right), args)

    return kernel


def _of_mask(values: Mask, args: Sequence[Values]) -> pa.Array:
    there = both(*map(present, args))
    rows = _rows(args)
    if there is not None and len(there) != rows:
        there = np.broadcast_to(there, (rows,))
    return of_bools(values, there)


def distinct(*, negated: bool) -> Kernel:
    """IS DISTINCT FROM, or IS NOT DISTINCT FROM."""
    equal = compared("eq")

    def kernel(args: Sequence[Values], types: Sequence[SqlType], result: SqlType) -> Values | None:
        same = equal(args, types, result)
        if same is None:
            return None
        absent = [pc.is_null(each) for each in args]
        same = pc.if_else(pc.or_(*absent), pc.and_(*absent), same)
        return same if negated else pc.invert(same)

    return kernel


def _aligned(args: Sequence[Values], types: Sequence[SqlType]) -> tuple[Words, Words] | None:
    """Numbers in units of the last digit that either has."""
    scale = max(each.scale for each in types)
    found = []
    for arg, each in zip(args, types, strict=True):
        numbers = words(arg)
        scaled = None if numbers is None else _times(numbers, 10 ** (scale - each.scale), present(arg))
        if scaled is None:
            return None
        found.append(scaled)
    return found[0], found[1]


def _times(numbers: Words, factor: int, there: Mask | None) -> Words | None:
    """The numbers times a factor; None if one of them would not fit a word."""
    if factor == 1:
        return numbers
    return numbers * np.int64(factor) if largest(numbers, there) * factor <= WORD_MAX else None


# Whole numbers


def remainder(args: Sequence[Values], _types: Sequence[SqlType], result: SqlType) -> Values:
    """With the sign of the dividend."""
    left, right = map(words, args)
    assert left is not None and right is not None
    there = _there(args)
    zero = right == 0
    if (np.broadcast_to(zero, len(there)) & there if there is not None else zero).any():
        raise SomeRowFails
    with np.errstate(divide="ignore"):
        found = np.fmod(left, np.where((right == 0) | (right == -1), 1, right))
    return of_words(found, there, arrow_type(result))


def _there(args: Sequence[Values]) -> Mask | None:
    """Where the result is not NULL, a value for each row."""
    there, rows = both(*map(present, args)) if len(args) == 2 else present(args[0]), _rows(args)
    return there if there is None or len(there) == rows else np.broadcast_to(there, (rows,))


def _check(bad: Any, there: Mask | None) -> None:
    """Raise if it is so for some row."""
    if there is not None:
        bad = bad & there
    if np.any(bad):
        raise SomeRowFails


# Floats


def of_floats(operation: Callable[[Doubles, Doubles], Doubles], *, keeps_zero: bool = False) -> Kernel:
    """A sum, difference or product: an infinity must come from an argument, and a zero too if it `keeps_zero`."""

    def kernel(args: Sequence[Values], _types: Sequence[SqlType], result: SqlType) -> Values:
        left, right = map(doubles, args)
        there = _there(args)
        with np.errstate(all="ignore"):
            found = _as_kind(operation(left, right), result)
        _check(np.isinf(found) & ~np.isinf(left) & ~np.isinf(right), there)
        if keeps_zero:
            _check((found == 0) & (left != 0) & (right != 0), there)
        return of_doubles(found, there, arrow_type(result))

    return kernel


def float_quotient(args: Sequence[Values], _types: Sequence[SqlType], result: SqlType) -> Values:
    """A quotient of floats."""
    left, right = map(doubles, args)
    there = _there(args)
    _check((right == 0) & ~np.isnan(left), there)
    with np.errstate(all="ignore"):
        found = _as_kind(np.where((right == 0) & np.isnan(left), left, left / right), result)
    _check(np.isinf(found) & ~np.isinf(left), there)
    _check((found == 0) & (left != 0) & ~np.isinf(right), there)
    return of_doubles(found, there, arrow_type(result))


def negated_float(args: Sequence[Values], _types: Sequence[SqlType], result: SqlType) -> Values:
    """A float with the other sign."""
    return of_doubles(-doubles(args[0]), _there(args), arrow_type(result))


def absolute_float(args: Sequence[Values], _types: Sequence[SqlType], result: SqlType) -> Values:
    """A float without its sign."""
    return of_doubles(np.abs(doubles(args[0])), _there(args), arrow_type(result))


def _as_kind(values: Doubles, sql_type: SqlType) -> Doubles:
    """Doubles rounded to floats, if that is the type."""
    return values.astype(np.float32).astype(np.float64) if sql_type.kind is Kind.FLOAT4 else values


# Decimals


def numeric_sum(operation: Callable[[Words, Words], Words]) -> Kernel:
    """A sum or difference of decimals."""

    def kernel(args: Sequence[Values], types: Sequence[SqlType], result: SqlType) -> Values | None:
        aligned = _aligned(args, types)
        if aligned is None or sum(map(largest, aligned)) > WORD_MAX:
            return None
        return _decimal(operation(*aligned), max(each.scale for each in types), _there(args), result)

    return kernel


def numeric_product(args: Sequence[Values], types: Sequence[SqlType], result: SqlType) -> Values | None:
    """A product of decimals, rounded to the scale of its type."""
    left, right = map(words, args)
    if left is None or right is None or largest(left) * largest(right) > WORD_MAX:
        return None
    return _decimal(left * right, types[0].scale + types[1].scale, _there(args), result)


def numeric_negation(args: Sequence[Values], types: Sequence[SqlType], result: SqlType) -> Values | None:
    """A decimal with the other sign."""
    numbers = words(args[0])
    if numbers is None or largest(numbers) > WORD_MAX:
        return None
    return _decimal(-numbers, types[0].scale, _there(args), result)


def numeric_absolute(args: Sequence[Values], types: Sequence[SqlType], result: SqlType) -> Values | None:
    """A decimal without its sign."""
    numbers = words(args[0])
    if numbers is None or largest(numbers) > WORD_MAX:
        return None
    return _decimal(np.abs(numbers), types[0].scale, _there(args), result)


def _decimal(numbers: Words, scale: int, there: Mask | None, result: SqlType, digits: int = 38) -> Values | None:
    """Numbers in units of the digit at a scale as decimals, rounded half away from zero; fails beyond the digits."""
    rescaled = _rescaled(numbers, scale, result.scale, there)
    if rescaled is None:
        return None
    if digits < _SCALE_MAX + 1:
        _check((rescaled >= 10**digits) | (rescaled <= -(10**digits)), there)
    return of_words(rescaled, there, arrow_type(result))


def _rescaled(numbers: Words, scale: int, to: int, there: Mask | None) -> Words | None:
    if to >= scale:
        return _times(numbers, 10 ** (to - scale), there)
    if scale - to > _SCALE_MAX or largest(numbers) > WORD_MAX:
        return None
    unit = np.int64(10 ** (scale - to))
    whole, rest = np.divmod(np.abs(numbers), unit)
    rounded: Words = np.sign(numbers) * (whole + (rest >= unit - rest))
    return rounded


def numeric_quotient(args: Sequence[Values], types: Sequence[SqlType], result: SqlType) -> Values | None:
    """A quotient of decimals, or of a total and a count.

    In Python it is rounded at 38 digits first. Of such short divisors that does not matter: what is not half a digit is
    further from it than that.
    """
    left, right = map(words, args)
    scales = [each.scale if each.kind is Kind.NUMERIC else 0 for each in types]
    shift = result.scale + scales[1] - scales[0]
    if left is None or right is None or max(scales) > result.scale or not 0 <= shift <= _SCALE_MAX:
        return None
    if max(largest(left), largest(right)) > WORD_MAX:
        return None
    there, rows = _there(args), _rows(args)
    _check(np.broadcast_to(right == 0, (rows,)), there)
    divisor = np.abs(np.where(right == 0, 1, right))
    step = 18 - len(str(int(divisor.max()))) if len(divisor) else 1
    if step < 1:
        return None
    whole, rest = np.divmod(np.abs(left), divisor)
    fraction, digits = np.zeros(len(rest), dtype=np.int64), shift
    while digits:
        now = min(step, digits)
        more, rest = np.divmod(rest * np.int64(10**now), divisor)
        fraction, digits = fraction * np.int64(10**now) + more, digits - now
    fraction += rest >= divisor - rest
    high, low = _long_product(np.broadcast_to(whole, fraction.shape), 10**shift)
    high, low = _plus(high, low, fraction.view(np.uint64))
    negative = (left < 0) != (right < 0)
    high, low = np.where(negative, ~high + (low == 0), high), np.where(negative, ~low + np.uint64(1), low)
    return of_long_words(high, low, there, arrow_type(result))


def _long_product(numbers: Words, factor: int) -> tuple[Words, Any]:
    """Words that are not negative times a factor of no more than 62 bits, in two words."""
    half, bits = np.uint64(0xFFFFFFFF), np.uint64(32)
    one = numbers.astype(np.uint64)
    a, b, c, d = one >> bits, one & half, np.uint64(factor >> 32), np.uint64(factor & 0xFFFFFFFF)
    low, middle = b * d, a * d + b * c
    high, low = _plus((a * c + (middle >> bits)).view(np.int64), low, (middle & half) << bits)
    return high, low


def _plus(high: Words, low: Any, more: Any) -> tuple[Words, Any]:
    total = low + more
    return high + (total < low), total


# Casts of numbers


def cast(args: Sequence[Values], types: Sequence[SqlType], result: SqlType) -> Values | None:
    """Casts among whole numbers, decimals and floats, as far as they are exact or rounded as in Python."""
    (value,), (source,) = args, types
    assert isinstance(value, pa.Array)
    if source.kind in _INTEGERS and result.kind in _INTEGERS:
        return value.cast(arrow_type(result))
    if source.kind in _INTEGERS and result.kind is Kind.FLOAT8:
        numbers = words(value)
        assert numbers is not None
        return of_doubles(numbers.astype(np.float64), _there(args), arrow_type(result))
    if source.kind is Kind.FLOAT4 and result.kind is Kind.FLOAT8:
        return value.cast(arrow_type(result))
    if source.kind in (*_INTEGERS, Kind.NUMERIC) and result.kind is Kind.NUMERIC:
        numbers, scale = words(value), source.scale if source.kind is Kind.NUMERIC else 0
        if numbers is None:
            return None
        return _decimal(numbers, scale, _there(args), result, result.precision)
    if source.kind is Kind.NUMERIC and result.kind in _INTEGERS:
        numbers, there = words(value), _there(args)
        rounded = None if numbers is None else _rescaled(numbers, source.scale, 0, there)
        return None if rounded is None else of_words(rounded, there, pa.int64()).cast(arrow_type(result))
    return None


def widened(args: Sequence[Values], types: Sequence[SqlType], result: SqlType) -> Values | None:
    """A decimal as one of a type that holds more, which never fails."""
    numbers = words(args[0])
    return None if numbers is None else _decimal(numbers, types[0].scale, _there(args), result, NUMERIC_PRECISION)


# Text


def of_ascii(name: str) -> Kernel:
    """A function of Arrow that means the same for texts of ASCII alone."""
    function = getattr(pc, name)

    def kernel(args: Sequence[Values], _types: Sequence[SqlType], _result: SqlType) -> Values | None:
        ascii_only = pc.all(pc.string_is_ascii(args[0]), min_count=0).as_py()
        return function(args[0]) if ascii_only else None

    return kernel


def concatenated(args: Sequence[Values], _types: Sequence[SqlType], result: SqlType) -> Values:
    """Two texts, or bytes, one behind the other."""
    return pc.binary_join_element_wise(*args, pa.scalar("" if result.kind is Kind.TEXT else b"", arrow_type(result)))


def like(*, negated: bool) -> Kernel:
    """LIKE of a pattern that begins or ends with %, or both, and is plain otherwise."""

    def kernel(args: Sequence[Values], _types: Sequence[SqlType], _result: SqlType) -> Values | None:
        if len(args) != 2 or not isinstance(args[1], pa.Scalar) or not isinstance(args[0], pa.Array):
            return None
        pattern = args[1].as_py()
        middle = pattern.strip("%")
        if any(each in middle for each in "%_\\"):
            return None
        before, behind = pattern.startswith("%"), pattern.endswith("%")
        if not middle and not before:
            found = pc.equal(args[0], pa.scalar(""))
        elif before and behind:
            found = pc.match_substring(args[0], middle)
        elif before:
            found = pc.ends_with(args[0], middle)
        else:
            found = pc.starts_with(args[0], middle) if behind else pc.equal(args[0], args[1])
        return pc.invert(found) if negated else found

    return kernel
