"""Times of several shapes for the tests: a strategy for each, and small universes of them to go through entirely."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import strategies as st

from everview.timely.lattice import Time

Shape = Any  # None for an integer, or a tuple of shapes

SHAPES: list[Shape] = [None, (None, None), ((None, None), None), (None, ((None,), None)), ()]


def times(shape: Shape, greatest: int) -> st.SearchStrategy[Any]:
    """Times of a shape."""
    if shape is None:
        return st.integers(0, greatest)
    return st.tuples(*(times(part, greatest) for part in shape))


def universe(shape: Shape, greatest: int) -> list[Time]:
    """Every time of a shape with integers up to `greatest`."""
    if shape is None:
        return list(range(greatest + 1))
    return list(itertools.product(*(universe(part, greatest) for part in shape)))


def same_shape(count: int, greatest: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    """Several times of one shape, close enough together to be often equal or comparable."""
    return st.sampled_from(SHAPES).flatmap(lambda shape: st.tuples(*[times(shape, greatest)] * count))
