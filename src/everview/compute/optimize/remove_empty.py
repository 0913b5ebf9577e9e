"""Operators over empty inputs become empty, and unions lose empty inputs.

Errors of what is no longer evaluated go with it, as those of `SELECT ... WHERE false` do.
"""

from __future__ import annotations

from everview.compute.functions.lookup import any_can_fail
from everview.compute.ir import relation as ir
from everview.compute.optimize.simplify import is_literal


def remove_empty(plan: ir.Relation) -> ir.Relation:
    return ir.transform(plan, _remove)


def is_empty(relation: ir.Relation) -> bool:
    return isinstance(relation, ir.Constant) and not relation.rows


def _remove(relation: ir.Relation) -> ir.Relation:
    match relation:
        case ir.Constant() | ir.Get() | ir.Let():
            return relation
        case ir.Union(inputs):
            kept = tuple(each for each in inputs if not is_empty(each))
            if not kept:
                return _nothing(relation)
            return relation if len(kept) == len(inputs) else kept[0] if len(kept) == 1 else ir.Union(kept)
        case ir.Join(inputs):
            return _nothing(relation) if any(map(is_empty, inputs)) else relation
        case ir.TopK(limit=0):
            return _nothing(relation)
        case ir.Filter() if _never_true(relation):
            return _nothing(relation)
        case _:
            return _nothing(relation) if is_empty(ir.inputs_of(relation)[0]) else relation


def _nothing(relation: ir.Relation) -> ir.Constant:
    return ir.Constant((), ir.types(relation))


def _never_true(filtering: ir.Filter) -> bool:
    for index, predicate in enumerate(filtering.predicates):
        if is_literal(predicate, False) or is_literal(predicate, None):
            return not any_can_fail(filtering.predicates[:index])
    return False
