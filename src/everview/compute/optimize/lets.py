"""A Let whose collection is read at most once, or is nothing but another name, is replaced by its value.

What is never read goes, and its errors with it: they were nobody's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from everview.compute.ir import relation as ir


def inline_lets(plan: ir.Relation) -> ir.Relation:
    return ir.transform(plan, _inline)


def _inline(relation: ir.Relation) -> ir.Relation:
    if not isinstance(relation, ir.Let):
        return relation
    name, value, body = relation.id, relation.value, relation.body
    uses = count_uses(body, name)
    small = isinstance(value, ir.Get) or (isinstance(value, ir.Constant) and len(value.rows) <= 1)
    if uses > 1 and not small:
        return relation
    free = {each.id for each in ir.walk(value) if isinstance(each, ir.Get)}
    bound = {each.id for each in ir.walk(body) if isinstance(each, ir.Let | ir.Recursive)}
    # An inner Let of a name that the value reads would capture it.
    return relation if free & bound else _replaced(body, name, value)


def count_uses(body: ir.Relation, name: str) -> int:
    """How often the collection bound around `body` is read in it."""
    match body:
        case ir.Get(id):
            return int(id == name)
        case ir.Let(id, value, inner):
            return count_uses(value, name) + (0 if id == name else count_uses(inner, name))
        case ir.Recursive(_, base, step):  # the step is evaluated in every round
            return count_uses(base, name) + 2 * count_uses(step, name)
        case _:
            return sum(count_uses(each, name) for each in ir.inputs_of(body))


def _replaced(body: ir.Relation, name: str, value: ir.Relation) -> ir.Relation:
    match body:
        case ir.Get(id):
            return value if id == name else body
        case ir.Let(id, inner_value, inner):
            return ir.Let(
                id, _replaced(inner_value, name, value), inner if id == name else _replaced(inner, name, value)
            )
        case _:
            return ir.with_inputs(body, tuple(_replaced(each, name, value) for each in ir.inputs_of(body)))


def unique_lets(plan: ir.Relation) -> ir.Relation:
    """Every Let with a name of its own, so that a name means one thing wherever it stands; those nobody reads go."""
    return _rename(plan, {}, itertools.count())


def _rename(plan: ir.Relation, names: Mapping[str, str], numbers: Iterator[int]) -> ir.Relation:
    if isinstance(plan, ir.Get):
        return ir.Get(names[plan.id], plan.schema) if plan.id in names else plan
    if isinstance(plan, ir.Let):
        name = f"let:{next(numbers)}"
        body = _rename(plan.body, {**names, plan.id: name}, numbers)
        if not any(isinstance(each, ir.Get) and each.id == name for each in ir.walk(body)):
            return body  # what nobody reads is not evaluated, and cannot fail
        return ir.Let(name, _rename(plan.value, names, numbers), body)
    below = ir.inputs_of(plan)
    return ir.with_inputs(plan, tuple(_rename(each, names, numbers) for each in below)) if below else plan
