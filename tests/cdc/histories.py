"""Random histories, the messages that describe them, and what any pile of messages says about them.

`Model` is a second opinion: it knows times only as a set and compares them by numbers, without antichains.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from everview.cdc.contract import Frontier, Message, Update, Updates
from everview.timely.antichain import Antichain
from everview.timely.lattice import Time, join
from tests.cdc.writing import Writer

SHAPES: tuple[Time, ...] = (0, 0, (0, 0), (0, (0, 0)))
SIDE = 4


def numbers(time: Any) -> tuple[int, ...]:
    """The numbers of a time."""
    return (time,) if isinstance(time, int) else tuple(n for part in time for n in numbers(part))


def before(a: Time, b: Time) -> bool:
    """Whether a time comes before another or is it."""
    return all(x <= y for x, y in zip(numbers(a), numbers(b), strict=True))


def universe(shape: Time) -> list[Time]:
    """All the times that histories and frontiers of these tests use."""
    if isinstance(shape, int):
        return list(range(10))
    if shape == (0, 0):
        return list(product(range(SIDE), repeat=2))
    return [(a, (b, c)) for a, b, c in product(range(3), repeat=3)]


@dataclass(frozen=True)
class History:
    """Updates, at most one for each data and time, and messages that say all about them."""

    shape: Time
    updates: tuple[Update[Any], ...]
    messages: tuple[Message[Any], ...]
    frontiers: tuple[Frontier, ...]

    @property
    def start(self) -> Frontier:
        return Antichain(self.shape)


def random_history(rng: random.Random, data: Sequence[Any], shape: Time | None = None) -> History:
    """A history, written by a writer whose frontier takes random steps to the end, which may be the end of time."""
    shape = rng.choice(SHAPES) if shape is None else shape
    times = universe(shape)
    updates = {}
    for _ in range(rng.randrange(30)):
        updates[rng.choice(data), rng.choice(times)] = rng.choice((-2, -1, 1, 1, 3))
    writer: Writer[Any] = Writer(Antichain(shape), message_updates=rng.choice((1, 3, 100)))
    waiting = [(row, time, diff) for (row, time), diff in updates.items()]
    messages: list[Message[Any]] = []
    frontiers = []
    while not writer.frontier.empty:
        to = next_frontier(writer.frontier, times, rng)
        final = [update for update in waiting if not to.less_equal(update[1])]
        for row, time, diff in final:
            if rng.random() < 0.3:  # in steps, which the writer adds up
                writer.push([(row, time, diff + 5), (row, time, -5)])
            else:
                writer.push([(row, time, diff)])
        waiting = [update for update in waiting if to.less_equal(update[1])]
        messages += writer.advance(to)
        frontiers.append(to)
        if rng.random() < 0.03:
            break
    left = {id(update) for update in waiting}
    kept = tuple((row, time, diff) for (row, time), diff in updates.items())
    done = writer.frontier
    return History(
        shape, tuple(u for u in kept if not done.less_equal(u[1])) if left else kept, tuple(messages), tuple(frontiers)
    )


def next_frontier(frontier: Frontier, times: Sequence[Time], rng: random.Random) -> Frontier:
    """Some frontier beyond this one; sometimes the end."""
    if rng.random() < 0.1 or not any(frontier.less_equal(time) for time in times):
        return Antichain()
    later = [join(time, rng.choice(times)) for time in frontier for _ in range(rng.choice((1, 2)))]
    return Antichain(*later)


class Model:
    """What messages say, recomputed from all of them."""

    def __init__(self, shape: Time, messages: Iterable[Message[Any]], start: Iterable[Time] | None = None) -> None:
        self.times = universe(shape)
        self.updates: dict[tuple[Any, Time], int] = {}
        statements = []
        for message in messages:
            if isinstance(message, Updates):
                self.updates.update({(row, time): diff for row, time, diff in message.updates})
            else:
                statements.append(message)
        self.counts: dict[Time, int] = {}
        known: set[Time] = set()
        grown = True
        while grown:
            grown = False
            for each in statements:
                inside = {t for t in self.times if beyond(t, each.lower) and not beyond(t, each.upper)}
                if inside <= known or not all(t in known or beyond(t, each.lower) for t in self.times):
                    continue
                counts = dict(each.counts)
                self.counts.update({time: counts.get(time, 0) for time in inside})
                known |= inside
                grown = True
        self.known = known

    def closed(self) -> set[Time]:
        """The times that are known and complete, as are all times before them."""
        arrived = dict.fromkeys(self.times, 0)
        for _, time in self.updates:
            arrived[time] += 1
        complete = {time for time in self.known if arrived[time] == self.counts[time]}
        return {time for time in self.times if all(s in complete for s in self.times if before(s, time))}

    def closed_updates(self) -> set[Update[Any]]:
        """The updates at those times."""
        closed = self.closed()
        return {(row, time, diff) for (row, time), diff in self.updates.items() if time in closed}


def beyond(time: Time, frontier: Iterable[Time]) -> bool:
    """Whether a time is beyond some element of a frontier."""
    return any(before(element, time) for element in frontier)


def closed_by(frontier: Frontier, shape: Time) -> set[Time]:
    """The times that a reader at this frontier has closed."""
    return {time for time in universe(shape) if not beyond(time, frontier)}


def in_order(updates: Sequence[Update[Any]]) -> bool:
    """Whether no update comes after one that is at a later time."""
    return all(not (before(b, a) and a != b) for a, b in _pairs([time for _, time, _ in updates]))


def _pairs(times: Sequence[Time]) -> Iterator[tuple[Time, Time]]:
    distinct = list(dict.fromkeys(times))
    return ((a, b) for place, a in enumerate(distinct) for b in distinct[place + 1 :])
