"""Operators whose output for a key follows from the rows of that key: Reduce, TopK, Window, Threshold.

A tick may change a key at several times t₁ < t₂ < …; let t₀ stand for before the tick. At each tᵢ the rows of the key
are those of X⁻ and of ΔX at times up to tᵢ, and the operator over them gives the output outᵢ of the key from tᵢ on:

    Δout = Σᵢ  + outᵢ at tᵢ  (i ≥ 1)   − outᵢ at tᵢ₊₁  (where there is one)

All of it is one evaluation: each row of a changed key once for every time at which it counts, with that time and the
next one in front, and the operator with these two as part of its key. Keys that did not change are not touched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everview.compute.delta.program import BEFORE, TIME, at
from everview.compute.functions.resolve import resolve, resolve_window
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import with_scalars
from everview.compute.ir.relation import Frame, Order, Relation, WindowFunction, all_columns, arity
from everview.compute.ir.scalar import Call, Column, Literal, Scalar, shift
from everview.compute.ir.types import BOOLEAN, INT8

if TYPE_CHECKING:
    from everview.compute.delta.differentiate import Build

Operator = ir.Reduce | ir.TopK | ir.Window | ir.Threshold


def delta(operator: Operator, change: Relation, build: Build) -> Relation:
    """The change of the output, by the rule above."""
    key = key_of(operator)
    state = build.remember(change, key)
    build.look_up(state, change, key)
    moments = build.step(_moments(change, key))
    rows = _rows_at_moments(moments, ir.Union((at(state, BEFORE), change)), key)
    outputs = build.step(over_moments(operator, rows))
    time, following = Column(0, INT8), Column(1, INT8)
    width = arity(outputs)
    from_then = ir.Filter(outputs, (_call(">=", time, Literal(0, INT8)),))
    until_next = ir.Filter(outputs, (_call("is not null", following),))
    gained = ir.Project(from_then, (0, *range(2, width)))
    lost = ir.Negate(ir.Project(until_next, (1, *range(2, width))))
    return ir.Union((gained, lost))


def key_of(operator: Operator) -> tuple[Scalar, ...]:
    """What the operator's output is a function of the rows of."""
    columns = all_columns(operator.input)
    match operator:
        case ir.Reduce(keys=keys):
            return keys
        case ir.TopK(group=group):
            return tuple(columns[index] for index in group)
        case ir.Window(partition=partition):
            return partition
        case ir.Threshold():
            return columns


def over_moments(operator: Operator, rows: Relation) -> Relation:
    """The operator over rows with a moment and the next one in front, for each moment by itself."""
    moved = with_scalars(operator, lambda scalar: shift(scalar, 2))
    moment = (Column(0, INT8), Column(1, INT8))
    match moved:
        case ir.Reduce():
            return replace(moved, input=rows, keys=moment + moved.keys)
        case ir.TopK():
            return replace(moved, input=rows, group=(0, 1, *(index + 2 for index in moved.group)))
        case ir.Window():
            return replace(moved, input=rows, partition=moment + moved.partition)
        case _:
            return ir.Threshold(rows)


def _moments(change: Relation, key: tuple[Scalar, ...]) -> Relation:
    """For every changed key: before the tick and each time at which it changes, with the next one, then the key."""
    width = arity(change)
    # Updates that cancel out within a key are changes of the key all the same.
    either_way = ir.Union((ir.Threshold(change), ir.Threshold(ir.Negate(change))))
    keyed = ir.Map(either_way, tuple(shift(each, 1) for each in key))
    places = (0, *range(width, width + len(key)))
    changed = ir.Project(keyed, places)
    distinct = ir.Reduce(changed, all_columns(changed))
    keys = ir.Reduce(changed, all_columns(changed)[1:]) if key else _any(changed)
    all_moments = ir.Union((at(keys, BEFORE), distinct))
    lead, _, _ = resolve_window("lead", [INT8])
    following = WindowFunction(lead.key, (TIME,), INT8, Frame("range", None, 0))
    window = ir.Window(all_moments, all_columns(all_moments)[1:], (Order(TIME),), (following,))
    count = len(key)
    return ir.Project(window, (0, count + 1, *range(1, count + 1)))


def _any(changed: Relation) -> Relation:
    """One row without columns if anything changed."""
    marked = ir.Project(ir.Map(changed, (Literal(True, BOOLEAN),)), (arity(changed),))
    return ir.Project(ir.Reduce(marked, (Column(0, BOOLEAN),)), ())


def _rows_at_moments(moments: Relation, updates: Relation, key: tuple[Scalar, ...]) -> Relation:
    """Each update once for every moment of its key at or after it, that moment and the next in front."""
    front, width = arity(moments), arity(updates)
    ours = all_columns(moments)[2:]
    theirs = (shift(each, 1 + front) for each in key)
    pairs = tuple((mine, other) for mine, other in zip(ours, theirs, strict=True))
    joined = ir.Join((moments, updates), nullsafe=pairs)
    counts = _call("<=", Column(front, INT8), Column(0, INT8))
    return ir.Project(ir.Filter(joined, (counts,)), (0, 1, *range(front + 1, front + width)))


def _call(name: str, *args: Scalar) -> Scalar:
    found = resolve(name, [arg.type for arg in args])
    return Call(found.function.key, args, found.result)
