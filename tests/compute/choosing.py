"""Where the generators of plans get their choices: from hypothesis, which shrinks, or from a seed, which is quick."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

Item = TypeVar("Item")


class Choose(Protocol):
    """A source of choices."""

    def integer(self, low: int, high: int) -> int:
        """One of the integers from `low` to `high`."""

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items."""


class Drawn:
    """Choices that hypothesis makes."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def pick(self, items: Sequence[Item]) -> Item:
        chosen: Item = self.draw(st.sampled_from(items))
        return chosen


class Seeded:
    """Choices by a generator of random numbers."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def integer(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def pick(self, items: Sequence[Item]) -> Item:
        return self.rng.choice(items)


def flip(choose: Choose) -> bool:
    """Yes or no."""
    return choose.pick((False, True))
