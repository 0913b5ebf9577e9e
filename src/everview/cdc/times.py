"""Times on the wire, and sets of open times that can be asked for those inside an interval.

A time is a number or, in a product of orders, the list of its numbers from left to right; its *shape*, the least time
of the order (0, or nested tuples of zeros), tells how they nest. Sorting by those numbers never puts a time before one
that it is beyond.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from everview.timely.antichain import Antichain
from everview.timely.lattice import TIME_MAX, Time

Wire: TypeAlias = "int | list[int]"


def flatten(time: Time) -> tuple[int, ...]:
    return (time,) if isinstance(time, int) else tuple(number for part in time for number in flatten(part))


def to_wire(time: Time) -> Wire:
    return time if isinstance(time, int) else list(flatten(time))


def from_wire(value: Any, shape: Time) -> Time:
    """The time that was written down as `value`; raises ValueError."""
    if isinstance(shape, int):
        if type(value) is not int or not 0 <= value <= TIME_MAX:
            raise ValueError(f"not a time: {value!r}")
        return value
    size = len(flatten(shape))
    if (
        not isinstance(value, list)
        or len(value) != size
        or not all(type(n) is int and 0 <= n <= TIME_MAX for n in value)
    ):
        raise ValueError(f"not a time of {size} numbers: {value!r}")
    return _nested(shape, iter(value))


def _nested(shape: Time, numbers: Iterator[int]) -> Time:
    return next(numbers) if isinstance(shape, int) else tuple(_nested(part, numbers) for part in shape)


def shape_of(time: Time) -> Time:
    """The least time of the order that a time belongs to."""
    return 0 if isinstance(time, int) else tuple(shape_of(part) for part in time)


def frontier_from_wire(values: Any, shape: Time) -> Antichain[Time]:
    """The frontier that was written down as a list of times; raises ValueError."""
    if not isinstance(values, list):
        raise ValueError(f"not a frontier: {values!r}")
    times = [from_wire(value, shape) for value in values]
    frontier = Antichain(*times)
    if len(frontier) != len(times):
        raise ValueError(f"not a frontier, for some of its times are before others: {values!r}")
    return frontier


def bound_of(frontier: Antichain[Time]) -> int | None:
    """The only number of a frontier over totally ordered times; None if the frontier is empty."""
    if frontier.empty:
        return None
    time = frontier.only
    assert isinstance(time, int)
    return time


class TimeSet(Protocol):
    """A set of times."""

    def add(self, time: Any) -> None: ...

    def discard(self, time: Any) -> None: ...

    def minimal(self) -> Sequence[Time]:
        """Those that no other is before."""

    def inside(self, lower: Antichain[Time], upper: Antichain[Time]) -> Iterable[Time]:
        """Those beyond `lower` and not beyond `upper`."""

    def take_before(self, frontier: Antichain[Time]) -> list[Time]:
        """Remove and give those not beyond the frontier, none before one that it is beyond."""

    def __iter__(self) -> Iterator[Time]: ...

    def __len__(self) -> int: ...


def time_set(shape: Time) -> TimeSet:
    return Line() if isinstance(shape, int) else Product()


class Line:
    """Totally ordered times, sorted: those of an interval are a slice."""

    def __init__(self) -> None:
        self._times: list[int] = []

    def add(self, time: int) -> None:
        times = self._times
        if not times or times[-1] < time:  # nearly always
            times.append(time)
        elif times[bisect_left(times, time)] != time:
            insort(times, time)

    def discard(self, time: int) -> None:
        place = bisect_left(self._times, time)
        if place < len(self._times) and self._times[place] == time:
            del self._times[place]

    def minimal(self) -> Sequence[Time]:
        return self._times[:1]

    def inside(self, lower: Antichain[Time], upper: Antichain[Time]) -> Iterable[Time]:
        start, stop = self._place(lower), self._place(upper)
        return self._times[start:stop]

    def take_before(self, frontier: Antichain[Time]) -> list[Time]:
        stop = self._place(frontier)
        taken: list[Time] = list(self._times[:stop])
        del self._times[:stop]
        return taken

    def _place(self, frontier: Antichain[Time]) -> int:
        return len(self._times) if frontier.empty else bisect_left(self._times, frontier.only)

    def __iter__(self) -> Iterator[Time]:
        return iter(self._times)

    def __len__(self) -> int:
        return len(self._times)


class Product:
    """Partially ordered times: no one order serves all questions, so each looks at all of them."""

    def __init__(self) -> None:
        self._times: dict[Time, None] = {}
        self._minimal: Antichain[Time] | None = Antichain()

    def add(self, time: Time) -> None:
        if time not in self._times:
            self._times[time] = None
            if self._minimal is not None and not self._minimal.less_equal(time):
                self._minimal = Antichain(*self._minimal, time)

    def discard(self, time: Time) -> None:
        if self._times.pop(time, time) is None and self._minimal is not None and time in self._minimal.elements:
            self._minimal = None

    def minimal(self) -> Sequence[Time]:
        if self._minimal is None:
            self._minimal = Antichain(*self._times)
        return self._minimal.elements

    def inside(self, lower: Antichain[Time], upper: Antichain[Time]) -> Iterable[Time]:
        return [time for time in self._times if lower.less_equal(time) and not upper.less_equal(time)]

    def take_before(self, frontier: Antichain[Time]) -> list[Time]:
        taken = sorted((time for time in self._times if not frontier.less_equal(time)), key=flatten)
        for time in taken:
            del self._times[time]
        self._minimal = None
        return taken

    def __iter__(self) -> Iterator[Time]:
        return iter(self._times)

    def __len__(self) -> int:
        return len(self._times)
