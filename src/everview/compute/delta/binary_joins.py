"""`binary_joins`: joins of many inputs as joins of two, so that each side is looked up by one key.

The inputs are taken in their order. Of each equivalence, one member of what is joined so far meets one of the next
input. Further members of the same input, and constants, must equal the first, which is a filter on the input; so is
that a member which meets no other must not be NULL. A side that takes part in no equivalence is crossed.
"""

from __future__ import annotations

from everview.compute.functions.resolve import resolve
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation, arity
from everview.compute.ir.scalar import Call, Scalar, columns_of, shift


def binary_joins(plan: Relation) -> Relation:
    """The plan with every join of exactly two inputs."""
    return ir.transform(plan, lambda each: _binary(each) if isinstance(each, ir.Join) else each)


def _binary(join: ir.Join) -> Relation:
    classes = [(members, False) for members in join.equivalences] + [(members, True) for members in join.nullsafe]
    joined, _ = _restricted(join.inputs[0], 0, classes)
    width = arity(join.inputs[0])
    for other in join.inputs[1:]:
        right, firsts = _restricted(other, width, classes)
        pairs: dict[bool, list[tuple[Scalar, ...]]] = {False: [], True: []}
        for (members, nullsafe), theirs in zip(classes, firsts, strict=True):
            ours = next((m for m in members if max(columns_of(m), default=-1) < width and columns_of(m)), None)
            if ours is not None and theirs is not None:
                pairs[nullsafe].append((ours, theirs))
        joined = ir.Join((joined, right), tuple(pairs[False]), tuple(pairs[True]))
        width += arity(other)
    return joined


def _restricted(
    relation: Relation, start: int, classes: list[tuple[tuple[Scalar, ...], bool]]
) -> tuple[Relation, list[Scalar | None]]:
    """An input whose own members of each class are equal, and the first of them, over the columns of the whole join."""
    end = start + arity(relation)
    firsts: list[Scalar | None] = []
    predicates = []
    for members, nullsafe in classes:
        own = [m for m in members if columns_of(m) and start <= min(columns_of(m)) < end]
        firsts.append(own[0] if own else None)
        constants = [m for m in members if not columns_of(m)] if own else []
        for other in own[1:] + constants:
            equal = "is not distinct from" if nullsafe else "="
            predicates.append(_call(equal, shift(own[0], -start), shift(other, -start)))
        if len(members) == len(own) == 1 and not nullsafe:
            predicates.append(_call("is not null", shift(own[0], -start)))
    return (ir.Filter(relation, tuple(predicates)) if predicates else relation), firsts


def _call(name: str, *args: Scalar) -> Scalar:
    found = resolve(name, [arg.type for arg in args])
    return Call(found.function.key, args, found.result)
