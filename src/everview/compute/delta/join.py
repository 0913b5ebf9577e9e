"""Join of A and B: the change of each meets the other, as it was for one of them and as it becomes for the other.

    Δ(A ⋈ B) = ΔA ⋈ B⁻ + A⁺ ⋈ ΔB        where A⁺ = A⁻ + ΔA

An output update is at the later of the times of its parts, and its diff is the product of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everview.compute.delta.program import BEFORE, at
from everview.compute.functions.resolve import resolve
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation, arity
from everview.compute.ir.scalar import Call, Column, Scalar, remap, shift
from everview.compute.ir.types import INT8

if TYPE_CHECKING:
    from everview.compute.delta.differentiate import Build


def delta(join: ir.Join, changes: Sequence[Relation], build: Build) -> Relation:
    """The change of a join of two inputs."""
    left, right = changes
    left_key, right_key = keys(join)
    left_state, right_state = build.remember(left, left_key), build.remember(right, right_key)
    build.look_up(right_state, left, left_key)
    build.look_up(left_state, right, right_key)
    widths = [arity(each) for each in join.inputs]
    first = _timed_join(join, [left, at(right_state, BEFORE)], widths)
    second = _timed_join(join, [ir.Union((at(left_state, BEFORE), left)), right], widths)
    return ir.Union((first, second))


def keys(join: ir.Join) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """What each side is looked up by, over its own columns: its members of the classes, in the same order."""
    width = arity(join.inputs[0])
    pairs = join.equivalences + join.nullsafe
    return tuple(pair[0] for pair in pairs), tuple(shift(pair[1], -width) for pair in pairs)


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
