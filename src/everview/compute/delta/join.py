"""Join: with inputs A₁ … Aₙ, for each i the change of Aᵢ meets what is before it changed and what is behind unchanged.

    Δ(A₁ ⋈ … ⋈ Aₙ) = Σᵢ  A₁⁺ ⋈ … ⋈ Aᵢ₋₁⁺ ⋈ ΔAᵢ ⋈ Aᵢ₊₁⁻ ⋈ … ⋈ Aₙ⁻        where X⁺ = X⁻ + ΔX

An output update is at the latest of the times of its parts, and its diff is the product of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everview.compute.delta.program import BEFORE, at
from everview.compute.functions.resolve import resolve
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation, arity
from everview.compute.ir.scalar import Call, Column, Scalar, columns_of, remap, shift
from everview.compute.ir.types import INT8

if TYPE_CHECKING:
    from everview.compute.delta.differentiate import Build


def delta(join: ir.Join, changes: Sequence[Relation], build: Build) -> Relation:
    """One path for each input that can change."""
    widths = [arity(each) for each in join.inputs]
    states = [build.remember(change, key) for change, key in zip(changes, keys(join), strict=True)]
    paths = []
    for number, change in enumerate(changes):
        before = [ir.Union((at(states[i], BEFORE), changes[i])) for i in range(number)]
        behind = [at(states[i], BEFORE) for i in range(number + 1, len(changes))]
        paths.append(_timed_join(join, [*before, change, *behind], widths))
    return ir.Union(tuple(paths))


def keys(join: ir.Join) -> list[tuple[Scalar, ...]]:
    """For each input, its members of the equivalences, over its own columns: what it is looked up by."""
    starts = [0]
    for each in join.inputs:
        starts.append(starts[-1] + arity(each))
    result: list[list[Scalar]] = [[] for _ in join.inputs]
    for members in join.equivalences + join.nullsafe:
        for member in members:
            columns = columns_of(member)
            owner = next((i for i in range(len(result)) if columns and starts[i] <= min(columns) < starts[i + 1]), None)
            if owner is not None:
                result[owner].append(shift(member, -starts[owner]))
    return [tuple(dict.fromkeys(each)) for each in result]


def _timed_join(join: ir.Join, inputs: Sequence[Relation], widths: Sequence[int]) -> Relation:
    """The join of timed inputs, at the latest of their times."""
    times: list[Column] = []
    places: list[int] = []
    start = 0
    for width in widths:
        times.append(Column(start, INT8))
        places += range(start + 1, start + 1 + width)
        start += width + 1

    def moved(classes: tuple[tuple[Scalar, ...], ...]) -> tuple[tuple[Scalar, ...], ...]:
        return tuple(tuple(remap(member, lambda index: places[index]) for member in members) for members in classes)

    joined = ir.Join(tuple(inputs), moved(join.equivalences), moved(join.nullsafe))
    latest = Call(resolve("greatest", [INT8] * len(times)).function.key, tuple(times), INT8)
    return ir.Project(ir.Map(joined, (latest,)), (start, *places))
