"""Sums over partially ordered times: the least times at which changes sum to less than zero.

A sum over all changes up to a time can be new wherever times of changes meet. All those times are on the grid of the
changes' coordinates. A sweep along the longest axis of the grid holds the sums of one slice of it: a change adds to all
of the slice that is beyond its own place. The first wrong sum in the order of coordinates is a least one, and what is
beyond it is not looked at any more.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Point: TypeAlias = tuple[int, ...]  # the numbers of a time, from left to right
PointDiff: TypeAlias = tuple[Point, int]

SUMS_MAX = 1 << 24  # in a slice
ADDITIONS_MAX = 1 << 31
_INEXACT_COSTS = 16  # times as much as a sum of 64 bits


class GridTooLarge(Exception):
    """The changes meet at more times than can be looked at."""


def least_below(changes: Iterable[PointDiff], start: int, bounds: Sequence[Point]) -> list[PointDiff]:
    """The least points at which `start` and all changes up to there are less than 0, each with that sum.

    Points beyond any of the bounds are left out. Raises GridTooLarge.
    """
    changes = sorted(changes)
    if all(is_before(one, other) for (one, _), (other, _) in pairwise(changes)):
        return _least_in_a_row(changes, start, bounds)
    axes = [sorted({point[axis] for point, _ in changes}) for axis in range(len(changes[0][0]))]
    along = max(range(len(axes)), key=lambda axis: len(axes[axis]))
    across = [each for axis, each in enumerate(axes) if axis != along]
    fits = start + sum(abs(diff) for _, diff in changes) < 2**63
    size = math.prod(map(len, across))
    left = ADDITIONS_MAX // (size if fits else size * _INEXACT_COSTS) - len(changes) - len(axes[along])
    if size > SUMS_MAX or left < 0:
        raise GridTooLarge(f"{len(changes)} changes meet at more times than can be looked at")
    found: list[PointDiff] = []
    sums: npt.NDArray[Any] = np.full([len(each) for each in across], start, np.int64 if fits else object)
    done = np.zeros(sums.shape, np.bool_)  # beyond a bound, or a point that was found

    def beyond(point: Point) -> tuple[slice, ...]:
        rest = (number for axis, number in enumerate(point) if axis != along)
        return tuple(slice(bisect_left(each, number), None) for each, number in zip(across, rest, strict=True))

    waiting = sorted(changes, key=lambda change: change[0][along], reverse=True)
    limits = sorted(bounds, key=lambda point: point[along], reverse=True)
    for number in axes[along]:
        while limits and limits[-1][along] <= number:
            done[beyond(limits.pop())] = True
        while waiting and waiting[-1][0][along] == number:
            point, diff = waiting.pop()
            sums[beyond(point)] += diff
        wrong = (sums < 0) & ~done
        while wrong.any():
            left -= 1
            if left < 0:
                raise GridTooLarge(f"{len(changes)} changes sum to less than 0 at more times than can be looked at")
            place = np.unravel_index(int(wrong.argmax()), wrong.shape)
            numbers = [each[at] for each, at in zip(across, place, strict=True)]
            point = (*numbers[:along], number, *numbers[along:])
            found.append((point, int(sums[place])))
            wrong[beyond(point)] = False
            done[beyond(point)] = True
    return found


def _least_in_a_row(changes: list[PointDiff], start: int, bounds: Sequence[Point]) -> list[PointDiff]:
    total = start
    for place, (point, diff) in enumerate(changes):
        total += diff
        last = place + 1 == len(changes) or changes[place + 1][0] != point
        if last and total < 0:
            return [] if any(is_before(bound, point) for bound in bounds) else [(point, total)]
    return []


def least(points: Iterable[Point]) -> list[Point]:
    found: list[Point] = []
    for point in sorted(set(points)):
        if len(point) == 2 and found:  # the last of those found is the lowest of all before
            known = found[-1][1] <= point[1]
        else:
            known = any(is_before(other, point) for other in found)
        if not known:
            found.append(point)
    return found


def is_before(one: Point, other: Point) -> bool:
    """Whether a point is before another or equal to it."""
    return all(a <= b for a, b in zip(one, other, strict=True))
