"""Multiplicities that no collection has: a row that occurs fewer than zero times, or more often than can be counted.

A stream may be complete and still tell of such a row. It is then wrong in itself, whatever else comes, so the first
time at which that happens is held open like any other contradiction, and nothing at it or beyond becomes visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from everview.cdc.contract import NEGATIVE, OVERFLOW, UNJUDGED, Frontier, Update
from everview.cdc.least_times import GridTooLarge, Point, PointDiff, least, least_below
from everview.cdc.times import flatten, from_wire, shape_of
from everview.timely.lattice import Time

COUNT_MAX = 2**63 - 1

# Of all diffs so far: those that are positive, and the others without their sign.
Sums = tuple[int, int]

# How often each of some rows occurs before the updates; a row that is not given does not occur.
Before = Callable[[Sequence[Any]], Mapping[Any, int]]


@dataclass(frozen=True, slots=True)
class Offence:
    """The first time at which a row has an impossible multiplicity."""

    time: Time
    reason: str
    detail: str


def first_offence(updates: Iterable[Update[Any]], before: Before, sums: Sums = (0, 0)) -> Offence | None:
    """The least time at which a row occurs fewer than zero times, or too much has come or gone.

    The updates are at totally ordered times, in any order. `sums` are those of the diffs before them. Storage sums the
    diffs of a collection, each sign by itself, and has 63 bits for that.
    """
    updates = list(updates)
    found = _first_overflow(updates, sums)
    changes: dict[Any, list[tuple[Time, int]]] = {data: [] for data, _, diff in updates if diff < 0}
    if not changes:
        return found
    for data, time, diff in updates:
        if data in changes:
            changes[data].append((time, diff))
    for each in changes.values():
        each.sort()
    doubtful = [data for data, each in changes.items() if _first_below(each, 0) is not None]
    known = before(doubtful) if doubtful else {}
    for data in doubtful:
        first = _first_below(changes[data], known.get(data, 0))
        if first is None:
            continue
        ties = found is not None and first[0] == found.time and found.reason == OVERFLOW
        if found is None or ties or first[0] < found.time:  # type: ignore[operator]
            found = _negative(data, *first)
    return found


def _first_overflow(updates: list[Update[Any]], sums: Sums) -> Offence | None:
    added, removed = sums
    bound = max((abs(diff) for _, _, diff in updates), default=0) * len(updates)
    if max(added, removed) + bound < COUNT_MAX:
        return None
    for _, time, diff in sorted(updates, key=lambda update: update[1]):
        added, removed = added + max(diff, 0), removed + max(-diff, 0)
        if max(added, removed) >= COUNT_MAX:
            return _overflow("come" if added >= COUNT_MAX else "gone", time)
    return None


def _first_below(changes: list[tuple[Time, int]], count: int) -> tuple[Time, int] | None:
    for time, diff in changes:
        count += diff
        if count < 0:
            return time, count
    return None


def _overflow(which: str, time: Time, count: int = 0) -> Offence:
    return Offence(time, OVERFLOW, f"more than {COUNT_MAX - 1} rows would have {which} by then")


def _negative(data: Any, time: Time, count: int) -> Offence:
    return Offence(time, NEGATIVE, f"row {data!r} would occur {count} times")


def offences_among(updates: Iterable[Update[Any]], frontier: Frontier) -> list[Offence]:
    """The least closed times at which rows have impossible multiplicities, of a history from its start.

    Where times are partially ordered and too many to be judged, that is an offence as well, at the first of them.
    """
    updates = list(updates)
    if all(isinstance(time, int) for _, time, _ in updates):
        first = first_offence(updates, lambda rows: {})
        return [] if first is None else [first]
    shape = shape_of(updates[0][1])
    bounds = [flatten(time) for time in frontier]
    found: dict[Point, Offence] = {}
    for changes, start, offence in _sums(updates):
        try:
            wrong = {point: partial(offence, count=count) for point, count in least_below(changes, start, bounds)}
        except GridTooLarge as error:
            unknown = partial(Offence, reason=UNJUDGED, detail=str(error))
            wrong = dict.fromkeys(least(point for point, _ in changes), unknown)
        for point, make in wrong.items():
            if point not in found:
                found[point] = make(time=from_wire(list(point), shape))
    return [found[point] for point in least(found)]


def _sums(updates: list[Update[Any]]) -> Iterator[tuple[list[PointDiff], int, Callable[..., Offence]]]:
    """The sums that must not be negative: changes, the count before them, and the offence if they are."""
    rows: dict[Any, list[PointDiff]] = {data: [] for data, _, diff in updates if diff < 0}
    for data, time, diff in updates:
        if data in rows:
            rows[data].append((flatten(time), diff))
    for data, changes in rows.items():
        yield changes, 0, partial(_negative, data)
    for which, sign in (("come", 1), ("gone", -1)):
        room = [(flatten(time), -abs(diff)) for _, time, diff in updates if diff * sign > 0]
        if sum(diff for _, diff in room) <= -COUNT_MAX:
            yield room, COUNT_MAX - 1, partial(_overflow, which)
