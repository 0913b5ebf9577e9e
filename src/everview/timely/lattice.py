"""Partially ordered times with least upper and greatest lower bounds.

A time is a non-negative integer, ordered as usual, or a tuple of times, ordered component by component:
the product order of differential dataflow. Both form a lattice, so any two times have a join (the least
time beyond both) and a meet (the greatest time before both). Times of different shapes do not compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, TypeVar, cast

Time: TypeAlias = "int | tuple[Time, ...]"
T = TypeVar("T", bound=Time)

# The SQL timeline is milliseconds since the epoch in a signed 64-bit column. The largest value is kept out of
# use, so that the time after any legal time is itself representable.
TIME_MAX = 2**63 - 2


def less_equal(a: Time, b: Time) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    ordered = [less_equal(x, y) for x, y in _components(a, b)]  # all of them: one that decides does not excuse the rest
    return all(ordered)


def less_than(a: Time, b: Time) -> bool:
    return a != b and less_equal(a, b)


def join(a: T, b: T) -> T:
    """The least time that both `a` and `b` are less than or equal to."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return cast(T, tuple(join(x, y) for x, y in _components(a, b)))


def meet(a: T, b: T) -> T:
    """The greatest time that is less than or equal to both `a` and `b`."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return cast(T, tuple(meet(x, y) for x, y in _components(a, b)))


def _components(a: Time, b: Time) -> Iterator[tuple[Time, Time]]:
    """Pairs of components; comparing times of different shapes is a bug of the caller, never an answer."""
    if not isinstance(a, tuple) or not isinstance(b, tuple) or len(a) != len(b):
        raise TypeError(f"times of different shapes do not compare: {a!r} and {b!r}")
    return zip(a, b, strict=True)
