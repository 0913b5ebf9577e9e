"""What reads nothing gives nothing: operators over no rows become no rows, and unions lose empty inputs.

Errors of what is no longer evaluated go with it, as those of `SELECT ... WHERE false` do.
"""

from __future__ import annotations

from everview.compute.ir.relation import (
    Constant,
    Filter,
    Get,
    Join,
    Let,
    Relation,
    TopK,
    Union,
    inputs_of,
    transform,
    types,
)
from everview.compute.optimize.failing import any_can_fail
from everview.compute.optimize.simplify import is_literal


def remove_empty(plan: Relation) -> Relation:
    """The plan without what is known to be empty."""
    return transform(plan, _remove)


def is_empty(relation: Relation) -> bool:
    """Whether there are certainly no rows."""
    return isinstance(relation, Constant) and not relation.rows


def _remove(relation: Relation) -> Relation:
    match relation:
        case Constant() | Get() | Let():
            return relation
        case Union(inputs):
            kept = tuple(each for each in inputs if not is_empty(each))
            if not kept:
                return _nothing(relation)
            return relation if len(kept) == len(inputs) else kept[0] if len(kept) == 1 else Union(kept)
        case Join(inputs):
            return _nothing(relation) if any(map(is_empty, inputs)) else relation
        case TopK(limit=0):
            return _nothing(relation)
        case Filter() if _never_true(relation):
            return _nothing(relation)
        case _:
            return _nothing(relation) if is_empty(inputs_of(relation)[0]) else relation


def _nothing(relation: Relation) -> Constant:
    return Constant((), types(relation))


def _never_true(filtering: Filter) -> bool:
    for index, predicate in enumerate(filtering.predicates):
        if is_literal(predicate, False) or is_literal(predicate, None):
            return not any_can_fail(filtering.predicates[:index])
    return False
