"""Join of X₀ … Xₙ₋₁: one path for each input that changes, in which the others are as they were or as they become.

    Δ(X₀ ⋈ … ⋈ Xₙ₋₁) = Σₚ  X₀⁺ ⋈ … ⋈ Xₚ₋₁⁺ ⋈ ΔXₚ ⋈ Xₚ₊₁⁻ ⋈ … ⋈ Xₙ₋₁⁻        where X⁺ = X⁻ + ΔX

An output update is at the latest of the times of its parts, and its diff is the product of theirs. All paths are one
join, whose rows are tagged with the paths that they belong to: a row of Xᵢ⁻ with those in which it was looked up, one
of ΔXᵢ with i and all after it. So a statement has n − 1 joins, not n(n − 1), and no intermediate result is remembered.

Along a path the driver finds the rows of one input after another, by keys of rows that it has: those of ΔXₚ first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.compute.delta.per_key import numbered
from everview.compute.delta.program import BEFORE, Source, at
from everview.compute.functions.resolve import call
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation, arity
from everview.compute.ir.scalar import Column, Scalar, columns_of, shift
from everview.compute.ir.types import INT8

if TYPE_CHECKING:
    from everview.compute.delta.differentiate import Build


@dataclass(frozen=True, slots=True)
class Class:
    """Columns that are equal: for each input that takes part, which of its columns does."""

    members: dict[int, Column]
    nullsafe: bool


def tidy(join: ir.Join) -> tuple[list[Relation], list[Class]]:
    """The inputs and classes with at most one member of each input.

    Further members of the same input, and constants, must equal the first, which is a filter on the input; so is that
    a member which meets no other must not be NULL.
    """
    starts = [sum(arity(each) for each in join.inputs[:side]) for side in range(len(join.inputs))]
    predicates: list[list[Scalar]] = [[] for _ in join.inputs]
    classes = []
    for place, members in enumerate(join.equivalences + join.nullsafe):
        nullsafe = place >= len(join.equivalences)
        equal = "is not distinct from" if nullsafe else "="
        constants = [member for member in members if not columns_of(member)]
        firsts: dict[int, Column] = {}
        for member in members:
            if not isinstance(member, Column):
                continue
            side = max(side for side, start in enumerate(starts) if start <= member.index)
            own = Column(member.index - starts[side], member.type)
            if side in firsts:
                predicates[side].append(call(equal, firsts[side], own))
            else:
                firsts[side] = own
                predicates[side] += [call(equal, own, constant) for constant in constants]
        if len(firsts) > 1:
            classes.append(Class(firsts, nullsafe))
        elif not nullsafe and not constants:
            predicates[next(iter(firsts))].append(call("is not null", next(iter(firsts.values()))))
    inputs = [ir.Filter(each, tuple(own)) if own else each for each, own in zip(join.inputs, predicates, strict=True)]
    return inputs, classes


def delta(changes: Sequence[Relation], classes: Sequence[Class], build: Build) -> Relation:
    """The change of a join of tidy inputs, whose changes are steps."""
    count = len(changes)
    readings = [build.reading((INT8, *ir.types(each)[1:])) for each in changes]
    for start in range(count):
        _path(start, changes, classes, readings, build)
    tagged = [
        ir.Union((_looked_up(reading), _changed(change, side, count)))
        for side, (change, reading) in enumerate(zip(changes, readings, strict=True))
    ]
    return _timed_join(tagged, classes)


def _path(
    start: int, changes: Sequence[Relation], classes: Sequence[Class], readings: Sequence[ir.Get], build: Build
) -> None:
    found: dict[int, str] = {}  # the look-up that gives the rows of an input
    bound = [start]
    while len(bound) < len(changes):
        side, by, joined = _next(bound, len(changes), classes)
        key = tuple(each.members[side].index for each in joined)
        columns = tuple(each.members[by] for each in joined)
        sources = [Source(found[by], columns)] if by in found else []
        if by <= start:
            sources += build.sources(changes[by], tuple(shift(each, 1) for each in columns))
        arrangement = build.remember(changes[side], key)
        found[side] = build.add_lookup(arrangement, tuple(sources), readings[side], tag=start)
        bound.append(side)


def _next(bound: Sequence[int], count: int, classes: Sequence[Class]) -> tuple[int, int, list[Class]]:
    """The input to look up next, the one whose rows have its keys, and the classes that the key is of.

    A class that few inputs share tells most: a nation's key is everywhere, an order's in two places.
    """
    best: tuple[tuple[int, int], int, int, list[Class]] | None = None
    for side in range(count):
        if side in bound:
            continue
        for by in bound:
            joined = [each for each in classes if side in each.members and by in each.members]
            if joined:
                rank = (min(len(each.members) for each in joined), -len(joined))
                if best is None or rank < best[0]:
                    best = (rank, side, by, joined)
    if best is None:
        return next(side for side in range(count) if side not in bound), bound[0], []  # crossed: all rows, if any
    return best[1], best[2], best[3]


def _looked_up(reading: ir.Get) -> Relation:
    """Tagged rows of before: (tag, time, row)."""
    width = arity(reading)
    timed = at(reading, BEFORE)
    return ir.Project(timed, (1, 0, *range(2, width + 1)))


def _changed(change: Relation, side: int, count: int) -> Relation:
    """Each update of an input once for every path that it belongs to: (tag, time, row)."""
    copies, tag = numbered(change, side, count - 1)
    return ir.Project(copies, (tag.index, *range(tag.index)))


def _timed_join(inputs: Sequence[Relation], classes: Sequence[Class]) -> Relation:
    starts = [sum(arity(each) for each in inputs[:side]) for side in range(len(inputs))]
    tags = tuple(Column(start, INT8) for start in starts)
    times = tuple(Column(start + 1, INT8) for start in starts)

    def moved(nullsafe: bool) -> tuple[tuple[Scalar, ...], ...]:
        return tuple(
            tuple(shift(member, starts[side] + 2) for side, member in each.members.items())
            for each in classes
            if each.nullsafe is nullsafe
        )

    joined = ir.Join(tuple(inputs), (tags, *moved(False)), moved(True))
    width = arity(joined)
    places = [start + index for start, each in zip(starts, inputs, strict=True) for index in range(2, arity(each))]
    return ir.Project(ir.Map(joined, (call("greatest", *times),)), (width, *places))
