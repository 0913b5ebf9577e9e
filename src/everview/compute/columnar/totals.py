"""Sums over groups, exact: of whole numbers in words or two of them, and of floats as whole numbers of the smallest."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.compute.cancel import check_wanted
from everview.compute.functions.columns import WORD_MAX, Doubles, SomeRowFails, Words, largest, of_long_words, raw
from everview.compute.interpreter.limits import LOOK_ROWS

_EXACT_IN_A_DOUBLE = 2**53
_LONG_MAX = 10**38 >> 64  # of the upper word of a decimal: up to here it has no more than 38 digits
_HALF, _HALF_BITS = 0xFFFFFFFF, 32
_LEAST = 1074  # the smallest float is two to the power of minus this


def sums(ids: Words, groups: int, values: Words) -> Words | None:
    """The sum of the words of each group; None if one may not fit a word."""
    bound = largest(values) * max(1, len(values))
    if bound < _EXACT_IN_A_DOUBLE:
        return np.bincount(ids, weights=values, minlength=groups).astype(np.int64)
    if bound > WORD_MAX:
        return None
    found = np.zeros(groups, dtype=np.int64)
    np.add.at(found, ids, values)
    return found


def long_sums(ids: Words, groups: int, column: pa.Array, there: npt.NDArray[np.bool_] | None) -> pa.Array:
    """The sum of the decimals of each group, however long, with all digits."""
    pairs = raw(column, np.dtype((np.int64, 2)))
    low, high = pairs[:, 0].view(np.uint64), pairs[:, 1]
    assert there is None
    if largest(high) * max(1, len(high)) > WORD_MAX:
        raise SomeRowFails
    halves = [(low & np.uint64(_HALF)).view(np.int64), (low >> np.uint64(_HALF_BITS)).view(np.int64)]
    first, second, upper = (np.zeros(groups, dtype=np.int64) for _ in range(3))
    for total, part in ((first, halves[0]), (second, halves[1]), (upper, high)):
        np.add.at(total, ids, part)
    upper = upper + (second >> _HALF_BITS)
    lower = first.view(np.uint64) + ((second & _HALF) << _HALF_BITS).view(np.uint64)
    upper = upper + (lower < first.view(np.uint64))
    if len(upper) and (int(upper.max()) >= _LONG_MAX or int(upper.min()) <= -_LONG_MAX):
        raise SomeRowFails  # or nearly: the interpreter says which
    return of_long_words(upper, lower, None, pa.decimal128(38, column.type.scale))


def words_as_decimals(values: Words, scale: int) -> pa.Array:
    """Whole numbers in units of a digit as decimals of all digits."""
    return of_long_words(values >> 63, values.view(np.uint64), None, pa.decimal128(38, scale))


def float_sums(ids: Words, groups: int, values: Doubles) -> Doubles:
    """The float nearest to the sum of the floats of each group; raises `SomeRowFails` if no float is near."""
    finite = np.isfinite(values)
    result = np.zeros(groups)
    special: Any = None
    if not finite.all():
        special = np.zeros(groups)
        with np.errstate(invalid="ignore"):
            np.add.at(special, ids[~finite], values[~finite])
        ids, values = ids[finite], values[finite]
    limbs = _limbs(ids, groups, values)
    for group in range(groups) if limbs else ():
        if group % LOOK_ROWS == 0:
            check_wanted()
        number = 0
        for place, totals in limbs:
            number += totals[group] << place
        try:
            result[group] = number / (1 << _LEAST)
        except OverflowError:
            if special is None or np.isfinite(special[group]):
                raise SomeRowFails from None
    if special is not None:
        result = np.where(np.isfinite(special) & (special == 0), result, special)
    return result


def _limbs(ids: Words, groups: int, values: Doubles) -> list[tuple[int, list[int]]]:
    """For each place of 32 bits, its bits in whole numbers of the smallest float, and their total in each group."""
    fractions, exponents = np.frexp(values)
    whole = np.ldexp(fractions, 53).astype(np.int64)
    power = exponents.astype(np.int64) - 53 + _LEAST
    small = np.minimum(power, 0)  # of the smallest floats, whose last bits are zeros
    whole, power = whole >> -small, power - small
    digits, negative = np.abs(whole).view(np.uint64), whole < 0
    place, shift = power >> 5, (power & 31).astype(np.uint64)
    above = digits >> (np.uint64(_HALF_BITS) - shift)
    parts = [(digits << shift) & np.uint64(_HALF), above & np.uint64(_HALF), above >> np.uint64(_HALF_BITS)]
    signed = [np.where(negative, -part.view(np.int64), part.view(np.int64)) for part in parts]
    found: dict[int, Words] = {}
    for first in np.unique(place).tolist():
        here = place == first
        some = None if here.all() else here
        for offset, part in enumerate(signed):
            total = sums(ids if some is None else ids[some], groups, part if some is None else part[some])
            if total is None:
                raise SomeRowFails
            known = found.get(first + offset)
            found[first + offset] = total if known is None else known + total
    return [(_HALF_BITS * index, totals.tolist()) for index, totals in found.items() if totals.any()]
