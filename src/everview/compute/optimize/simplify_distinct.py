"""Remove DISTINCT over distinct rows, and Threshold over rows that are never negative.

A stored collection holds no row fewer than zero times. Over changes, where that is not so, this pass must not run.
"""

from __future__ import annotations

from collections.abc import Mapping

from everview.compute.functions.lookup import any_can_fail
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import only, sides_of
from everview.compute.ir.scalar import Column, substitute

UniqueKeys = list[frozenset[int]]


def simplify_distinct(plan: ir.Relation) -> ir.Relation:
    return _simplify(plan, {})


def _simplify(relation: ir.Relation, bound: Mapping[str, bool]) -> ir.Relation:
    if isinstance(relation, ir.Let):
        value = _simplify(relation.value, bound)
        inside = {**bound, relation.id: _is_non_negative(value, bound)}
        return ir.Let(relation.id, value, _simplify(relation.body, inside))
    relation = ir.with_inputs(relation, tuple(_simplify(each, bound) for each in ir.inputs_of(relation)))
    match relation:
        case ir.Threshold(input) if _is_non_negative(input, bound):
            return input
        case ir.Reduce(aggregates=()):
            return _distinct(relation)
        case _:
            return relation


def _distinct(reduce: ir.Reduce) -> ir.Relation:
    below, keys = reduce.input, reduce.keys
    if isinstance(below, ir.Reduce) and not below.aggregates and not any_can_fail(below.keys):
        return _distinct(ir.Reduce(below.input, tuple(substitute(key, below.keys) for key in keys)))
    columns = {key.index for key in keys if isinstance(key, Column)}
    if not any(unique <= columns for unique in _unique_keys(below)):
        return reduce
    return only(below, keys)


def _unique_keys(relation: ir.Relation) -> UniqueKeys:
    """Sets of columns in which no two rows are equal; where there is one, every multiplicity is 1."""
    match relation:
        case ir.Reduce(_, keys):
            return [frozenset(range(len(keys)))]
        case ir.Constant(rows) if len(rows) <= 1 and all(multiplicity == 1 for _, multiplicity in rows):
            return [frozenset()]
        case ir.TopK(input, group, _, 1):
            return [*_unique_keys(input), frozenset(group)]
        case ir.Map(input) | ir.Filter(input) | ir.Threshold(input) | ir.TopK(input) | ir.Window(input):
            return _unique_keys(input)
        case ir.Project(input, columns):
            places = {column: columns.index(column) for column in columns}
            return [frozenset(places[column] for column in key) for key in _unique_keys(input) if key <= places.keys()]
        case ir.Join(inputs):
            combined: UniqueKeys = [frozenset()]
            for each, side in zip(inputs, sides_of(relation), strict=True):
                mine = _unique_keys(each)
                combined = [old | {side.start + column for column in key} for old in combined for key in mine[:2]]
            return combined
        case ir.Let(_, _, body):
            return _unique_keys(body)
        case _:
            return []


def _is_non_negative(relation: ir.Relation, bound: Mapping[str, bool]) -> bool:
    """Whether no row occurs fewer than zero times; stored collections have no such rows, `bound` tells for Lets."""
    match relation:
        case ir.Get(id):
            return bound.get(id, True)
        case ir.Constant(rows):
            return all(multiplicity > 0 for _, multiplicity in rows)
        case ir.Reduce() | ir.TopK() | ir.Window() | ir.Threshold() | ir.Accumulate() | ir.Occurring():
            return True
        case ir.Negate():
            return False
        case ir.Let(id, value, body):
            return _is_non_negative(body, {**bound, id: _is_non_negative(value, bound)})
        case _:
            return all(_is_non_negative(each, bound) for each in ir.inputs_of(relation))
