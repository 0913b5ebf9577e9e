"""The sides of a join: which of its columns belong to which input."""

from __future__ import annotations

from collections.abc import Callable

from everview.compute.ir.relation import Join, arity
from everview.compute.ir.scalar import Scalar, columns_of, remap

Class = tuple[Scalar, ...]


def sides_of(join: Join) -> list[range]:
    """The columns of each input."""
    sides: list[range] = []
    start = 0
    for each in join.inputs:
        sides.append(range(start, start + arity(each)))
        start = sides[-1].stop
    return sides


def owner_of(scalar: Scalar, sides: list[range]) -> int | None:
    """The input that the scalar is over; the first for one without columns, None if it is over several."""
    columns = columns_of(scalar)
    return next((index for index, side in enumerate(sides) if all(column in side for column in columns)), None)


def move_classes(classes: tuple[Class, ...], place: Callable[[int], int]) -> tuple[Class, ...]:
    """Equivalences over columns that are elsewhere now."""
    return tuple(tuple(remap(member, place) for member in members) for members in classes)
