"""What a plan must keep to because values have one representation for each type: what meets is represented alike.

Both engines, the hashes of keys and storage count on it. `mismatches` says where a plan does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everview.compute.ir import relation as ir
from everview.compute.ir import scalar as scalars
from everview.compute.ir.parts import scalars_of
from everview.compute.ir.relation import Relation, types
from everview.compute.ir.scalar import Case, Coalesce, Column, Scalar
from everview.compute.ir.show import show, show_scalar
from everview.compute.ir.types import SqlType, arrow_type


def mismatches(plan: Relation, schemas: dict[str, tuple[SqlType, ...]] | None = None) -> Iterator[str]:
    """One line for each place; `schemas` are those of the collections that are known."""
    known = dict(schemas or {})
    known |= {each.id: types(each.value) for each in ir.walk(plan) if isinstance(each, ir.Let)}
    known |= {each.id: types(each.base) for each in ir.walk(plan) if isinstance(each, ir.Recursive)}
    for part in ir.walk(plan):
        for line in _of_relation(part, known):
            yield f"{line} in\n{show(part)}"


def _of_relation(part: Relation, known: dict[str, tuple[SqlType, ...]]) -> Iterator[str]:
    match part:
        case ir.Get(id, schema) if id in known:
            yield from _differing(f"the columns of {id}", schema, known[id])
        case ir.Union(inputs):
            for each in inputs[1:]:
                yield from _differing("the inputs of a union", types(inputs[0]), types(each))
        case ir.Recursive(base=base, step=step):
            yield from _differing("base and step", types(base), types(step))
        case ir.Join(_, equivalences, nullsafe):
            for members in equivalences + nullsafe:
                for member in members[1:]:
                    yield from _differing("the members of a class", (members[0].type,), (member.type,))
        case _:
            pass
    row = (
        types(part)
        if isinstance(part, ir.Map | ir.Join)
        else [each for below in ir.inputs_of(part) for each in types(below)]
    )
    for scalar in scalars_of(part):
        for inside in scalars.walk(scalar):
            yield from _of_scalar(inside, row)


def _of_scalar(scalar: Scalar, row: Sequence[SqlType]) -> Iterator[str]:
    match scalar:
        case Column(index, sql_type):
            yield from _differing(f"column #{index}", (sql_type,), (row[index],))
        case Case(branches, otherwise, sql_type):
            for each in (*(then for _, then in branches), otherwise):
                yield from _differing(show_scalar(scalar), (sql_type,), (each.type,))
        case Coalesce(args, sql_type):
            for each in args:
                yield from _differing(show_scalar(scalar), (sql_type,), (each.type,))
        case _:
            pass


def _differing(what: str, some: Sequence[SqlType], others: Sequence[SqlType]) -> Iterator[str]:
    for one, other in zip(some, others, strict=False):
        if arrow_type(one) != arrow_type(other):
            yield f"{what}: {one} and {other}"
