"""Operators whose output for a key follows from the rows of that key: Reduce, TopK, Window, Threshold.

A tick may change a key at several times t₁ < t₂ < …; let t₀ stand for before the tick. At each tᵢ the rows of the key
are those of X⁻ and of ΔX at times up to tᵢ, and the operator over them gives the output of the key from tᵢ until tᵢ₊₁.
So the output is a relation of moments, and all of it is one evaluation: each row of a changed key once for every time
at which it counts, with that time and the next one in front, and the operator with these two as part of its key. Keys
that did not change are not touched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everview.compute.delta.program import BEFORE, NEXT, TIME, First, at, call
from everview.compute.first_rows import can_order
from everview.compute.functions.internal import NUMBERS
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import with_scalars
from everview.compute.ir.relation import Relation, all_columns, arity
from everview.compute.ir.scalar import Case, Column, Literal, shift
from everview.compute.ir.types import INT8

if TYPE_CHECKING:
    from everview.compute.delta.differentiate import Build

Operator = ir.Reduce | ir.TopK | ir.Window | ir.Threshold


def delta(operator: Operator, change: Relation, build: Build) -> Relation:
    """The moments of the output."""
    key = key_of(operator)
    arrangement, first = build.remember(change, key), first_of(operator)
    if first is None:
        known: Relation = ir.Union((at(build.look_up(arrangement, change, key), BEFORE), change))
        changed = change
    else:
        known = build.look_up_first(arrangement, change, first)
        changed = ir.Filter(known, (call(">", TIME, Literal(BEFORE, INT8)),))
    return over_moments(operator, _rows_at_moments(_moments(changed, key), known, key))


def first_of(operator: Operator) -> First | None:
    """Of an order and limit over everything: how many rows of what was there may matter."""
    if not isinstance(operator, ir.TopK) or operator.group or operator.limit is None or not can_order(operator.order):
        return None
    return First(operator.order, operator.offset + operator.limit)


def key_of(operator: Operator) -> tuple[int, ...]:
    """The columns that the operator's output is a function of the rows of. A literal among them tells nothing apart."""
    match operator:
        case ir.Reduce(keys=scalars) | ir.Window(partition=scalars):
            return tuple(dict.fromkeys(each.index for each in scalars if isinstance(each, Column)))
        case ir.TopK(group=group):
            return group
        case ir.Threshold(input):
            return tuple(range(arity(input)))


def over_moments(operator: Operator, rows: Relation) -> Relation:
    """The operator over rows with a moment and the next one in front, for each moment by itself."""
    moved = with_scalars(operator, lambda scalar: shift(scalar, 2))
    moment = (TIME, NEXT)
    match moved:
        case ir.Reduce():
            return replace(moved, input=rows, keys=moment + moved.keys)
        case ir.TopK():
            return replace(moved, input=rows, group=(0, 1, *(index + 2 for index in moved.group)))
        case ir.Window():
            return replace(moved, input=rows, partition=moment + moved.partition)
        case _:
            return ir.Threshold(rows)


def _moments(change: Relation, key: tuple[int, ...]) -> Relation:
    """For every changed key: before the tick and each time at which it changes, with the next one, then the key."""
    # Updates that cancel out within a key are changes of the key all the same.
    keyed = ir.Project(ir.Occurring(change), (0, *(index + 1 for index in key)))
    twice, place = numbered(keyed, 0, 1)
    before_or_then = Case(((call("=", place, Literal(0, INT8)), Literal(BEFORE, INT8)),), TIME, INT8)
    width = arity(twice)
    timed = ir.Project(ir.Map(twice, (before_or_then,)), (width, *range(1, width - 1)))
    return ir.Accumulate(timed, len(key))


def numbered(relation: Relation, first: int, last: int) -> tuple[Relation, Column]:
    """Each row once for every number from first to last, and the column that has the number."""
    if first == last:
        return ir.Map(relation, (Literal(first, INT8),)), Column(arity(relation), INT8)
    bounds = (Literal(first, INT8), Literal(last, INT8))
    return ir.FlatMap(relation, f"{NUMBERS}(int8,int8)", bounds, (INT8,)), Column(arity(relation), INT8)


def _rows_at_moments(moments: Relation, updates: Relation, key: tuple[int, ...]) -> Relation:
    """Each update once for every moment of its key at or after it, that moment and the next in front."""
    front, width = arity(moments), arity(updates)
    ours = all_columns(moments)[2:]
    theirs = [Column(1 + front + index, column.type) for index, column in zip(key, ours, strict=True)]
    pairs = tuple((mine, other) for mine, other in zip(ours, theirs, strict=True))
    joined = ir.Join((moments, updates), nullsafe=pairs)
    counts = call("<=", Column(front, INT8), TIME)
    return ir.Project(ir.Filter(joined, (counts,)), (0, 1, *range(front + 1, front + width)))
