"""Frontiers: lower bounds on times, as sets of mutually incomparable elements.

A frontier F stands for the times beyond it: `{t : some f in F has f <= t}`. The empty frontier stands for no
time at all, so it is the *greatest* frontier: a collection whose upper is empty can never change again.
Frontiers are ordered by the order of their elements: `F <= G` when every time beyond G is beyond F.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from everview.timely.lattice import Time, join, less_equal, less_than, meet

T = TypeVar("T", bound=Time)


class Antichain(Generic[T]):
    """An immutable set of mutually incomparable times: the minimal elements of what it is built from."""

    __slots__ = ("elements",)

    elements: tuple[T, ...]

    def __init__(self, *times: T) -> None:
        self.elements = times if len(times) < 2 else _minimal(times)

    @property
    def empty(self) -> bool:
        """Whether no time is beyond this frontier."""
        return not self.elements

    def less_equal(self, time: T) -> bool:
        """Whether `time` is beyond this frontier: some element is less than or equal to it."""
        return any(less_equal(element, time) for element in self.elements)

    def less_than(self, time: T) -> bool:
        """Whether some element is strictly less than `time`."""
        return any(less_than(element, time) for element in self.elements)

    def join(self, other: Antichain[T]) -> Antichain[T]:
        """The frontier of the times that are beyond both."""
        return Antichain(*(join(a, b) for a in self.elements for b in other.elements))

    def meet(self, other: Antichain[T]) -> Antichain[T]:
        """The frontier of the times that are beyond either."""
        return Antichain(*self.elements, *other.elements)

    def advance(self, time: T) -> T:
        """The latest time that no read beyond this frontier can tell from `time`.

        It is the meet over the elements of `time` joined with each: for every t beyond the frontier, `time <= t`
        exactly when the result is. The empty frontier can tell nothing apart and has no such time.
        """
        if self.empty:
            raise ValueError("no time can be advanced to the empty frontier")
        result = join(time, self.elements[0])
        for element in self.elements[1:]:
            result = meet(result, join(time, element))
        return result

    @property
    def only(self) -> T:
        """The single element of a frontier over totally ordered times that is not empty."""
        (element,) = self.elements
        return element

    def __le__(self, other: Antichain[T]) -> bool:
        return all(self.less_equal(time) for time in other.elements)

    def __lt__(self, other: Antichain[T]) -> bool:
        return self <= other and self != other

    def __ge__(self, other: Antichain[T]) -> bool:
        return other <= self

    def __gt__(self, other: Antichain[T]) -> bool:
        return other < self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Antichain):
            return NotImplemented
        return self.elements == other.elements or frozenset(self.elements) == frozenset(other.elements)

    def __hash__(self) -> int:
        return hash(frozenset(self.elements))

    def __iter__(self) -> Iterator[T]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __repr__(self) -> str:
        return "{" + ", ".join(map(repr, self.elements)) + "}"


def _minimal(times: Iterable[T]) -> tuple[T, ...]:
    """The minimal elements among `times`, each once, in order of arrival."""
    kept: list[T] = []
    for time in times:
        if any(less_equal(other, time) for other in kept):
            continue
        kept = [other for other in kept if not less_equal(time, other)]
        kept.append(time)
    return tuple(kept)
