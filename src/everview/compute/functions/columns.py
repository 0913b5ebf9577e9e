"""Arrow columns as numpy arrays, and back: what the meanings of functions over whole columns are written with.

A column of a type has the Arrow type of `ir.types`, and canonical values: one NaN, no negative zero. Where a value is
NULL, the number in its place is arbitrary. Decimals whose digits all fit a word are computed with as words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.functions.numbers import EXACT
from everview.compute.ir.types import SqlType, arrow_type

Values: TypeAlias = pa.Array | pa.Scalar  # a value for each row, or one for all
# The meaning of a function over its arguments, like a rendering in Spark SQL: arguments, their types, the type of the
# result. It gives None if it has no answer for these very values, and raises `SomeRowFails` or ArrowInvalid if the
# function fails for some row.
Kernel: TypeAlias = Callable[[Sequence[Values], Sequence[SqlType], SqlType], Values | None]
Words: TypeAlias = npt.NDArray[np.int64]
Doubles: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

WORD_MAX = 2**63 - 1
_WORD_PAIR = np.dtype((np.int64, 2))  # a decimal, the low word first


class SomeRowFails(Exception):
    """A function fails for some row. Which one, and how, an evaluation row by row tells."""


def named(name: str) -> Kernel:
    """The function of Arrow of this name, which means the same for all values."""
    function = getattr(pc, name)
    return lambda args, _types, _result: function(*args)


def present(values: Values) -> Mask | None:
    """Where values are not NULL. None if all are there."""
    if isinstance(values, pa.Scalar):
        return None if values.is_valid else np.zeros(1, dtype=bool)
    if not values.null_count:
        return None
    return values.is_valid().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def both(one: Mask | None, other: Mask | None) -> Mask | None:
    """Where both are present."""
    return other if one is None else one if other is None else one & other


def raw(values: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values of a column of numbers, dates or timestamps as they are stored."""
    width, buffer = np.dtype(dtype), values.buffers()[1]
    if buffer is None or not len(values):
        return np.zeros(len(values), dtype=width)
    return np.frombuffer(buffer, dtype=width, count=len(values), offset=values.offset * width.itemsize)


def doubles(values: Values) -> Doubles:
    """Floats of either size as doubles."""
    if isinstance(values, pa.Scalar):
        return np.array([values.as_py() if values.is_valid else 0.0], dtype=np.float64)
    return raw(values, np.float32 if values.type == pa.float32() else np.float64).astype(np.float64, copy=False)


def of_doubles(values: Doubles, there: Mask | None, dtype: pa.DataType) -> pa.Array:
    """Doubles as a canonical column of floats."""
    values = values + 0.0
    nan = np.isnan(values)
    if nan.any():
        values[nan] = np.nan
    return pa.array(values.astype(dtype.to_pandas_dtype(), copy=False), dtype, mask=None if there is None else ~there)


def canonical_floats(values: pa.Array) -> pa.Array:
    """A column of floats with one NaN and without negative zeros."""
    return of_doubles(doubles(values), present(values), values.type)


def words(values: Values) -> Words | None:
    """Whole numbers, or decimals in units of their last digit, as words; None if one of them does not fit."""
    dtype = values.type
    if isinstance(values, pa.Scalar):
        if not values.is_valid:
            return np.zeros(1, dtype=np.int64)
        value = values.as_py()
        value = int(value.scaleb(dtype.scale, EXACT)) if pa.types.is_decimal(dtype) else int(value)
        return np.array([value], dtype=np.int64) if -WORD_MAX - 1 <= value <= WORD_MAX else None
    if pa.types.is_decimal128(dtype):
        pairs = raw(values, _WORD_PAIR)
        low, high = pairs[:, 0], pairs[:, 1]
        there = present(values)
        short = (low >> 63) == high
        if dtype.precision > 18 and not (short if there is None else short | ~there).all():
            return None
        return low if there is None else np.where(there, low, 0)
    if pa.types.is_boolean(dtype):
        bits = values.fill_null(False) if values.null_count else values
        return bits.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]
    numbers, there = raw(values, f"i{dtype.bit_width // 8}").astype(np.int64, copy=False), present(values)
    return numbers if there is None else np.where(there, numbers, 0)


def largest(numbers: Words, there: Mask | None = None) -> int:
    """The largest absolute value. 0 without values."""
    if there is not None and len(there) == len(numbers):
        numbers = numbers[there]
    return max(int(numbers.max()), -int(numbers.min())) if len(numbers) else 0


def of_words(numbers: Words, there: Mask | None, dtype: pa.DataType) -> pa.Array:
    """Words as a column of whole numbers, dates or timestamps, or of decimals in units of their last digit."""
    if pa.types.is_decimal128(dtype):
        return of_long_words(numbers >> 63, numbers.view(np.uint64), there, dtype)
    width = np.dtype(f"i{dtype.bit_width // 8}")
    return _column(np.ascontiguousarray(numbers.astype(width, copy=False)), len(numbers), there, dtype)


def of_long_words(high: Words, low: npt.NDArray[np.uint64], there: Mask | None, dtype: pa.DataType) -> pa.Array:
    """Decimals of the words that they have."""
    pairs = np.empty((len(low), 2), dtype=np.int64)
    pairs[:, 0], pairs[:, 1] = low.view(np.int64), high
    return _column(pairs, len(low), there, dtype)


def _column(data: npt.NDArray[Any], rows: int, there: Mask | None, dtype: pa.DataType) -> pa.Array:
    bits = None if there is None else pa.array(there).buffers()[1]
    return pa.Array.from_buffers(dtype, rows, [bits, pa.py_buffer(data)])


def of_bools(values: Mask, there: Mask | None) -> pa.Array:
    """Truth values as a column."""
    return pa.array(values, pa.bool_(), mask=None if there is None else ~there)


def scalar(value: Any, sql_type: SqlType) -> pa.Scalar:
    """A value in Arrow."""
    return pa.scalar(value, arrow_type(sql_type))


def order_of_doubles(values: Doubles) -> Words:
    """Whole numbers that are ordered, and equal, as the floats are: NaN is the greatest. It is its own inverse."""
    bits = np.ascontiguousarray(values).view(np.int64)
    return bits ^ ((bits >> 63) & WORD_MAX)


def doubles_of_order(codes: Words) -> Doubles:
    """The floats of these whole numbers."""
    return (codes ^ ((codes >> 63) & WORD_MAX)).view(np.float64)


def spread(numbers: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    """A number for each row, also where there is one for all."""
    return np.broadcast_to(numbers, (rows,)) if len(numbers) == 1 != rows else numbers
