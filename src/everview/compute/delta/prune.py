"""`prune`: the steps of a program without what follows from tables that are known to be empty.

What reads nothing gives nothing. And where the rows of a join's input have only some tags, those with others in the
other inputs meet nothing: when a view is hydrated, of all paths only the last is left.
"""

from __future__ import annotations

from collections.abc import Iterable

from everview.compute.functions.plan_functions import NUMBERS
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation, Steps
from everview.compute.ir.scalar import Literal
from everview.compute.ir.types import INT8
from everview.compute.optimize.remove_empty import is_empty, remove_empty


def prune(steps: Steps, empty: Iterable[str]) -> tuple[Steps, set[str]]:
    """The steps that are left, and the names of all that is empty."""
    nothing = set(empty)
    kept: list[tuple[str, Relation]] = []
    for name, step in steps:
        left = remove_empty(ir.transform(step, lambda each: _emptied(each, nothing)))
        if is_empty(left):
            nothing.add(name)
        else:
            kept.append((name, ir.transform(left, _with_fewer_tags)))
    return kept, nothing


def _emptied(relation: Relation, empty: set[str]) -> Relation:
    if isinstance(relation, ir.Get) and relation.id in empty:
        return ir.Constant((), relation.schema)
    return relation


def _with_fewer_tags(relation: Relation) -> Relation:
    """A join on tags, its inputs without tags that some input does not have."""
    if not isinstance(relation, ir.Join):
        return relation
    tags = [_tags(each) for each in relation.inputs]
    known = [each for each in tags if each is not None]
    if not known:
        return relation
    low, high = max(each[0] for each in known), min(each[1] for each in known)
    inputs = tuple(
        each if mine is None or mine == (low, high) else _tagged(each, low, high)
        for each, mine in zip(relation.inputs, tags, strict=True)
    )
    return ir.Join(inputs, relation.equivalences, relation.nullsafe)


def _tags(relation: Relation) -> tuple[int, int] | None:
    """The range of tags of a join's input that has only changes: see `delta.join`."""
    match relation:
        case ir.Project(ir.FlatMap(input, function, (Literal(low), Literal(high))), (tag, *_)) if function.startswith(
            f"{NUMBERS}("
        ) and tag == ir.arity(input):
            return low, high
        case ir.Project(ir.Map(input, (Literal(low),)), (tag, *_)) if tag == ir.arity(input):
            return low, low
        case _:
            return None


def _tagged(relation: Relation, low: int, high: int) -> Relation:
    if low > high:
        return ir.Constant((), ir.types(relation))
    assert isinstance(relation, ir.Project) and isinstance(relation.input, ir.FlatMap)
    rows = relation.input.input
    if low == high:
        return ir.Project(ir.Map(rows, (Literal(low, INT8),)), relation.columns)
    bounds = (Literal(low, INT8), Literal(high, INT8))
    return ir.Project(ir.FlatMap(rows, relation.input.function, bounds, (INT8,)), relation.columns)
