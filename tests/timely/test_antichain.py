"""Frontiers against a model: the set of times beyond a frontier, over a universe small enough to go through."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.timely.antichain import Antichain
from everview.timely.lattice import Time, less_equal, less_than
from tests.timely.times import Shape, times, universe

# The pairs are the ones with many antichains; the others differ in shape only.
UNIVERSES: list[tuple[Shape, int]] = [(None, 5), ((None, None), 3), ((None, None), 1), (((None, None), None), 1)]


@st.composite
def in_a_universe(draw: st.DrawFn, frontiers: int) -> tuple[list[Time], list[list[Time]]]:
    """A universe, and times in it to build some frontiers from, none at all now and then."""
    shape, greatest = draw(st.sampled_from(UNIVERSES))
    some = st.lists(times(shape, greatest), max_size=5)
    return universe(shape, greatest), [draw(some) for _ in range(frontiers)]


def beyond(everything: list[Any], frontier: list[Any] | Antichain[Any]) -> set[Any]:
    """The model: the times that some element is less than or equal to."""
    return {t for t in everything if any(less_equal(f, t) for f in frontier)}


@given(in_a_universe(1), st.randoms())
def test_it_holds_the_minimal_elements(given_times: Any, rng: Any) -> None:
    everything, (built_from,) = given_times
    frontier = Antichain(*built_from)
    assert set(frontier) <= set(built_from)
    assert len(set(frontier)) == len(frontier)
    assert not any(less_than(a, b) for a, b in itertools.permutations(frontier, 2))
    assert beyond(everything, frontier) == beyond(everything, built_from)
    assert frontier.empty == (not built_from) == (len(frontier) == 0)

    rng.shuffle(shuffled := [*built_from, *frontier])
    assert Antichain(*shuffled) == frontier
    assert hash(Antichain(*shuffled)) == hash(frontier)


@given(in_a_universe(1))
def test_less_equal_and_less_than_of_a_time(given_times: Any) -> None:
    everything, (built_from,) = given_times
    frontier = Antichain(*built_from)
    for t in everything:
        assert frontier.less_equal(t) == (t in beyond(everything, frontier))
        assert frontier.less_than(t) == any(less_equal(f, t) and f != t for f in built_from)


@given(in_a_universe(2))
def test_frontiers_are_ordered_and_combined_as_their_sets_are(given_times: Any) -> None:
    everything, (left, right) = given_times
    f, g = Antichain(*left), Antichain(*right)
    beyond_f, beyond_g = beyond(everything, f), beyond(everything, g)
    assert beyond(everything, f.join(g)) == beyond_f & beyond_g
    assert beyond(everything, f.meet(g)) == beyond_f | beyond_g
    for combined in (f.join(g), f.meet(g)):
        assert combined == Antichain(*combined), "minimal"
    assert (f <= g) == (g >= f) == (beyond_f >= beyond_g)
    assert (f < g) == (g > f) == (beyond_f > beyond_g)
    assert (f == g) == (beyond_f == beyond_g)
    assert (f <= g) == (f.join(g) == g) == (f.meet(g) == f)


@given(in_a_universe(1))
def test_the_empty_frontier_is_the_greatest(given_times: Any) -> None:
    _, (built_from,) = given_times
    frontier, empty = Antichain(*built_from), Antichain[Any]()
    assert frontier <= empty
    assert (empty <= frontier) == frontier.empty
    assert frontier.join(empty) == empty
    assert frontier.meet(empty) == frontier


@given(in_a_universe(1))
def test_advance_gives_the_latest_time_that_cannot_be_told_apart(given_times: Any) -> None:
    everything, (built_from,) = given_times
    frontier = Antichain(*built_from)
    if frontier.empty:
        with pytest.raises(ValueError, match="empty frontier"):
            frontier.advance(everything[0])
        return
    visible = beyond(everything, frontier)
    for time in everything:
        alike = [s for s in everything if all(less_equal(time, t) == less_equal(s, t) for t in visible)]
        advanced = frontier.advance(time)
        assert advanced in alike
        assert all(less_equal(s, advanced) for s in alike)
        assert frontier.advance(advanced) == advanced


def test_small_things() -> None:
    frontier = Antichain((0, 2), (1, 1), (2, 0), (2, 2))
    assert repr(frontier) == "{(0, 2), (1, 1), (2, 0)}"
    assert repr(Antichain[int]()) == "{}"
    assert Antichain(3, 5, 3).only == 3
    with pytest.raises(ValueError, match="unpack"):
        _ = Antichain[int]().only
    with pytest.raises(ValueError, match="unpack"):
        _ = frontier.only
    assert Antichain(3) != 3
    assert Antichain(3) != Antichain(4) != Antichain[int]()
    assert frontier.advance((0, 0)) == (0, 0)
    assert frontier.advance((3, 0)) == (3, 0)
    assert Antichain((1, 1)).advance((0, 3)) == (1, 3)


def test_different_shapes_do_not_meet_in_a_frontier() -> None:
    frontier: Antichain[Any] = Antichain((1, 1), (0, 2))
    attempts = [
        lambda: Antichain(1, (1, 1)),
        lambda: frontier.less_equal(1),
        lambda: frontier.less_than((1, 1, 1)),
        lambda: frontier.join(Antichain(1)),
        lambda: frontier.meet(Antichain(1)),
        lambda: frontier.advance(1),
        lambda: frontier <= Antichain(1),
        lambda: frontier < Antichain((2, (1,))),
    ]
    for attempt in attempts:
        with pytest.raises(TypeError, match="different shapes"):
            attempt()
