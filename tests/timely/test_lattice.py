"""Times are a lattice: the laws, and that join and meet are the bounds they claim to be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.timely.lattice import TIME_MAX, join, less_equal, less_than, meet
from tests.timely.times import SHAPES, same_shape, universe

any_times = st.one_of(same_shape(3), same_shape(3, greatest=TIME_MAX))


@given(any_times)
def test_the_order_is_partial(times: tuple[Any, ...]) -> None:
    a, b, c = times
    assert less_equal(a, a)
    assert not less_than(a, a)
    if less_equal(a, b) and less_equal(b, a):
        assert a == b
    if less_equal(a, b) and less_equal(b, c):
        assert less_equal(a, c)
    assert less_than(a, b) == (less_equal(a, b) and a != b)


@given(any_times)
def test_join_and_meet_obey_the_laws(times: tuple[Any, ...]) -> None:
    a, b, c = times
    for operation in (join, meet):
        assert operation(a, a) == a
        assert operation(a, b) == operation(b, a)
        assert operation(a, operation(b, c)) == operation(operation(a, b), c)
    assert join(a, meet(a, b)) == a == meet(a, join(a, b))
    assert meet(a, join(b, c)) == join(meet(a, b), meet(a, c))
    assert less_equal(a, b) == (join(a, b) == b) == (meet(a, b) == a)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_join_is_the_least_upper_bound_and_meet_the_greatest_lower(shape: Any) -> None:
    everything = universe(shape, 1)
    for a in everything:
        for b in everything:
            above = [t for t in everything if less_equal(a, t) and less_equal(b, t)]
            below = [t for t in everything if less_equal(t, a) and less_equal(t, b)]
            assert join(a, b) in above
            assert all(less_equal(join(a, b), t) for t in above)
            assert meet(a, b) in below
            assert all(less_equal(t, meet(a, b)) for t in below)


def test_a_product_is_ordered_component_by_component() -> None:
    assert less_equal((1, 2), (1, 3))
    assert not less_equal((1, 2), (2, 1))
    assert not less_equal((2, 1), (1, 2))
    assert join((1, 2), (2, 1)) == (2, 2)
    assert meet((1, 2), (2, 1)) == (1, 1)
    assert join(((1, 5), 3), ((4, 2), 1)) == ((4, 5), 3)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, (1,)),
        (1, ()),
        ((1, 2), (1, 2, 3)),
        ((1, 2), ()),
        ((1, 2), (1, (2,))),
        ((2, 1), (1, (1,))),  # the first component alone would decide
        (((1, 1), 1), ((1, 1, 1), 1)),
    ],
)
def test_different_shapes_do_not_compare(a: Any, b: Any) -> None:
    for operation in (less_equal, less_than, join, meet):
        for left, right in ((a, b), (b, a)):
            with pytest.raises(TypeError, match="different shapes"):
                operation(left, right)
