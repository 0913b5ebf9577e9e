"""Evaluate now what does not depend on the data: expressions over literals, and operators over written-down rows.

An evaluation that fails is left as it is: it fails only if a row needs it.
"""

from __future__ import annotations

from math import prod

from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.parts import scalars_of, with_scalars
from everview.compute.ir.relation import (
    Constant,
    Filter,
    FlatMap,
    Let,
    Recursive,
    Relation,
    inputs_of,
    transform,
    types,
)
from everview.compute.ir.scalar import Scalar
from everview.compute.optimize.failing import any_can_fail, is_volatile
from everview.compute.optimize.simplify import FALSE, is_literal, simplify
from everview.compute.rows.collection import NegativeMultiplicity, plain

ROWS_MAX = 1_000


def fold_constants(plan: Relation) -> Relation:
    """The plan with constants folded."""
    return transform(plan, _fold)


def _fold(relation: Relation) -> Relation:
    relation = with_scalars(relation, simplify)
    if isinstance(relation, Filter):
        relation = Filter(relation.input, _predicates(relation.predicates))
    return _evaluated(relation)


def _predicates(predicates: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Without those that are always true, and without those that come after one that never is."""
    kept: dict[Scalar, None] = {}
    for predicate in predicates:
        if is_literal(predicate, True):
            continue
        if is_literal(predicate, False) or is_literal(predicate, None):
            return (*kept, FALSE) if any_can_fail(kept) else (FALSE,)
        kept[predicate] = None
    return tuple(kept)


def _evaluated(relation: Relation) -> Relation:
    """The rows of an operator over constants. Table functions are left: they may make many rows out of one."""
    below = inputs_of(relation)
    if (
        not below
        or isinstance(relation, FlatMap | Let | Recursive)
        or not all(isinstance(each, Constant) for each in below)
    ):
        return relation
    if prod(len(each.rows) for each in below if isinstance(each, Constant)) > ROWS_MAX:
        return relation
    if any(is_volatile(scalar) for scalar in scalars_of(relation)):
        return relation
    try:
        result = evaluate(relation, {})
    except NegativeMultiplicity:
        return relation
    if result.errors:
        return relation
    schema = types(relation)
    thaws = [plain(each) for each in schema]
    rows = tuple(
        (tuple(thaw(value) if thaw else value for thaw, value in zip(thaws, row, strict=True)), multiplicity)
        for row, multiplicity in result.rows.items()
    )
    return Constant(rows, schema)
