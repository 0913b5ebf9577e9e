"""Evaluate now what does not depend on the data: expressions over literals, and operators over written-down rows.

An evaluation that fails is left as it is: it fails only if a row needs it.
"""

from __future__ import annotations

from math import prod

from everview.compute.functions.lookup import any_can_fail, is_volatile
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import scalars_of, with_scalars
from everview.compute.ir.scalar import Scalar
from everview.compute.optimize.simplify import FALSE, is_literal, simplify
from everview.compute.rows.collection import NegativeMultiplicity, plain

ROWS_MAX = 1_000


def fold_constants(plan: ir.Relation) -> ir.Relation:
    return ir.transform(plan, _fold)


def _fold(relation: ir.Relation) -> ir.Relation:
    relation = with_scalars(relation, simplify)
    if isinstance(relation, ir.Filter):
        relation = ir.Filter(relation.input, _predicates(relation.predicates))
    return _evaluated(relation)


def _predicates(predicates: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """The predicates that may be false, up to the first that is never true."""
    kept: dict[Scalar, None] = {}
    for predicate in predicates:
        if is_literal(predicate, True):
            continue
        if is_literal(predicate, False) or is_literal(predicate, None):
            return (*kept, FALSE) if any_can_fail(kept) else (FALSE,)
        kept[predicate] = None
    return tuple(kept)


def _evaluated(relation: ir.Relation) -> ir.Relation:
    """The rows of an operator over constants. Table functions are left: they may make many rows out of one."""
    below = ir.inputs_of(relation)
    if (
        not below
        or isinstance(relation, ir.FlatMap | ir.Let | ir.Recursive)
        or not all(isinstance(each, ir.Constant) for each in below)
    ):
        return relation
    if prod(len(each.rows) for each in below if isinstance(each, ir.Constant)) > ROWS_MAX:
        return relation
    if any(is_volatile(scalar) for scalar in scalars_of(relation)):
        return relation
    try:
        result = evaluate(relation, {})
    except NegativeMultiplicity:
        return relation
    if result.errors:
        return relation
    schema = ir.types(relation)
    thaws = [plain(each) for each in schema]
    rows = tuple(
        (tuple(thaw(value) if thaw else value for thaw, value in zip(thaws, row, strict=True)), multiplicity)
        for row, multiplicity in result.rows.items()
    )
    return ir.Constant(rows, schema)
