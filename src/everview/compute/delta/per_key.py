"""Operators whose output for a key follows from the rows of that key: Reduce, TopK, Window, Threshold.

A tick may change a key at several times t₁ < t₂ < …; let t₀ stand for before the tick. At each tᵢ the rows of the key
are those of X⁻ and of ΔX at times up to tᵢ, and the operator over them gives the output of the key from tᵢ until tᵢ₊₁.
So the output is a relation of moments, and all of it is one evaluation: each row of a changed key once for every time
at which it counts, with that time and the next one in front, and the operator with these two as part of its key. Keys
that did not change are not touched.

For the first rows in an order, or the least or greatest value, few rows of a key matter. These alone are looked up, if
the change is known by then; otherwise all of them are, as long as they are not many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from everview.compute.delta.first_rows import can_order
from everview.compute.delta.program import BEFORE, NEXT, TIME, First, at
from everview.compute.functions import lookup
from everview.compute.functions.contract import Extreme
from everview.compute.functions.plan_functions import NUMBERS
from everview.compute.functions.resolve import call
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
    known, changed = what_matters(firsts_of(operator), change, key, build)
    return over_moments(operator, rows_at_moments(_moments(changed, key), known, key))


def what_matters(
    firsts: Sequence[First], change: Relation, key: tuple[int, ...], build: Build
) -> tuple[Relation, Relation]:
    """Timed rows and changes from which the output of the changed keys follows, and which of them are changes.

    If more than one order matters, those rows that do in any of them; some are there several times then.
    """
    arrangement = build.remember(change, key)
    if not firsts or not build.is_known(change, key):
        found = build.look_up(arrangement, change, key, yields=bool(firsts))
        return ir.Union((at(found, BEFORE), change)), change
    if len(firsts) > 1:  # where something changes in one order, it has to be known what is first in the others
        firsts = [replace(each, unchanged=True) for each in firsts]
    readings = [build.look_up_first(arrangement, change, each) for each in firsts]
    known: Relation = ir.Union(tuple(readings)) if len(readings) > 1 else readings[0]
    return known, ir.Filter(known, (call(">", TIME, Literal(BEFORE, INT8)),))


def firsts_of(operator: Operator) -> list[First]:
    """The orders in which only the first rows of a key matter, and how many; empty if all rows matter."""
    match operator:
        case ir.TopK(order=order, limit=int(limit), offset=offset) if can_order(order):
            return [First(order, offset + limit)]
        case ir.Reduce(aggregates=aggregates) if aggregates and all(map(is_extreme, aggregates)):
            return list(dict.fromkeys(First((extreme_order(each),), 1) for each in aggregates))
        case _:
            return []


def is_extreme(aggregate: ir.Aggregate) -> bool:
    """Whether an aggregate is the least or greatest value of a column, in an order that can be kept."""
    known = isinstance(lookup.aggregate(aggregate.function).algebra, Extreme)
    return known and aggregate.filter is None and can_order((extreme_order(aggregate),))


def extreme_order(aggregate: ir.Aggregate) -> ir.Order:
    """The order in which the value comes first."""
    algebra = lookup.aggregate(aggregate.function).algebra
    assert isinstance(algebra, Extreme)
    return ir.Order(aggregate.args[0], descending=algebra.descending)


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
    """The moments of each changed key: before the tick and each time it changes, with the next; then the key."""
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


def rows_at_moments(moments: Relation, updates: Relation, key: tuple[int, ...]) -> Relation:
    """Each update once for every moment of its key at or after it, that moment and the next in front."""
    front, width = arity(moments), arity(updates)
    ours = all_columns(moments)[2:]
    theirs = [Column(1 + front + index, column.type) for index, column in zip(key, ours, strict=True)]
    pairs = tuple((mine, other) for mine, other in zip(ours, theirs, strict=True))
    joined = ir.Join((moments, updates), nullsafe=pairs)
    counts = call("<=", Column(front, INT8), TIME)
    return ir.Project(ir.Filter(joined, (counts,)), (0, 1, *range(front + 1, front + width)))
