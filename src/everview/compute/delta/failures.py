"""`separate`: split a plan into one without the rows that fail, and plans of these rows.

Errors are data: a row for which an expression fails is left out of the view, and stands in its error collection
instead, with the same multiplicity, for as long as it is there. Both follow from the input of the operator, so the
rows that fail are a view like any other. The plan must have its computed columns: only Map, Filter and FlatMap fail.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.compute.functions import lookup
from everview.compute.functions.lookup import can_fail
from everview.compute.functions.resolve import call
from everview.compute.ir.parts import mapped_columns
from everview.compute.ir.relation import Filter, FlatMap, Let, Map, Relation, arity, inputs_of, with_inputs
from everview.compute.ir.scalar import Case, Failed, FailedTable, Literal, Or, Scalar
from everview.compute.ir.types import BOOLEAN


@dataclass(frozen=True, slots=True)
class FailingRows:
    """Rows for which the evaluation of one of the scalars fails, which is the error, or a table function does."""

    plan: Relation
    scalars: tuple[Scalar, ...]


def separate(plan: Relation) -> tuple[Relation, list[FailingRows]]:
    """The plan, in which no evaluation fails any more, and the rows that are missing."""
    failing: list[FailingRows] = []
    return _separate(plan, (), failing), failing


def _separate(plan: Relation, bound: tuple[tuple[str, Relation], ...], failing: list[FailingRows]) -> Relation:
    if isinstance(plan, Let):
        value = _separate(plan.value, bound, failing)
        return Let(plan.id, value, _separate(plan.body, (*bound, (plan.id, value)), failing))
    below = tuple(_separate(each, bound, failing) for each in inputs_of(plan))
    plan = with_inputs(plan, below) if below else plan
    scalars = _failing_scalars(plan)
    if not scalars:
        return plan
    (input,) = below
    fails: Scalar = _failed(scalars[0]) if len(scalars) == 1 else Or(tuple(map(_failed, scalars)))
    missing: Relation = Filter(input, (fails,))
    for id, value in reversed(bound):
        missing = Let(id, value, missing)
    failing.append(FailingRows(missing, tuple(scalars)))
    return with_inputs(plan, (Filter(input, (call("not", fails),)),))


def _failing_scalars(plan: Relation) -> list[Scalar]:
    """The scalars of the operator that can fail, over the columns of its input."""
    match plan:
        case Map(input, scalars):
            return [each for each in mapped_columns(input, scalars)[arity(input) :] if can_fail(each)]
        case Filter(_, predicates) if any(can_fail(each) for each in predicates):
            passes: Scalar = Literal(True, BOOLEAN)
            for predicate in reversed(predicates):  # one that is not true ends the evaluation
                passes = Case(((predicate, passes),), Literal(False, BOOLEAN), BOOLEAN)
            return [passes]
        case FlatMap(_, function, args, added) if lookup.table_function(function).fails:
            return [FailedTable(function, args, added)]
        case _:
            return []


def _failed(scalar: Scalar) -> Scalar:
    return scalar if isinstance(scalar, FailedTable) else Failed(scalar)
