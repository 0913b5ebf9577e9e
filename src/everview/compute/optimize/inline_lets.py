"""A Let whose collection is read at most once, or is nothing but another name, is replaced by its value.

What is never read goes, and its errors with it: they were nobody's.
"""

from __future__ import annotations

from everview.compute.ir.relation import (
    Constant,
    Get,
    Let,
    Recursive,
    Relation,
    inputs_of,
    transform,
    walk,
    with_inputs,
)


def inline_lets(plan: Relation) -> Relation:
    """The plan without the Lets that it can do without."""
    return transform(plan, _inline)


def _inline(relation: Relation) -> Relation:
    if not isinstance(relation, Let):
        return relation
    name, value, body = relation.id, relation.value, relation.body
    uses = count_uses(body, name)
    small = isinstance(value, Get) or (isinstance(value, Constant) and len(value.rows) <= 1)
    if uses > 1 and not small:
        return relation
    free = {each.id for each in walk(value) if isinstance(each, Get)}
    bound = {each.id for each in walk(body) if isinstance(each, Let | Recursive)}
    # An inner Let of a name that the value reads would capture it.
    return relation if free & bound else _replaced(body, name, value)


def count_uses(body: Relation, name: str) -> int:
    """How often the collection bound around `body` is read in it."""
    match body:
        case Get(id):
            return int(id == name)
        case Let(id, value, inner):
            return count_uses(value, name) + (0 if id == name else count_uses(inner, name))
        case Recursive(_, base, step):  # the step is evaluated in every round
            return count_uses(base, name) + 2 * count_uses(step, name)
        case _:
            return sum(count_uses(each, name) for each in inputs_of(body))


def _replaced(body: Relation, name: str, value: Relation) -> Relation:
    match body:
        case Get(id):
            return value if id == name else body
        case Let(id, inner_value, inner):
            return Let(id, _replaced(inner_value, name, value), inner if id == name else _replaced(inner, name, value))
        case _:
            return with_inputs(body, tuple(_replaced(each, name, value) for each in inputs_of(body)))
