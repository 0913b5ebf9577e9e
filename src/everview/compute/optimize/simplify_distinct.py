"""Remove DISTINCT over distinct rows, and Threshold over rows that are never negative.

A stored collection holds no row fewer than zero times. Over changes, where that is not so, this pass must not run.
"""

from __future__ import annotations

from collections.abc import Mapping

from everview.compute.functions.lookup import any_can_fail
from everview.compute.ir.parts import only
from everview.compute.ir.relation import Let, Reduce, Relation, Threshold, inputs_of, with_inputs
from everview.compute.ir.scalar import Column, substitute
from everview.compute.optimize.unique_keys import is_non_negative, unique_keys


def simplify_distinct(plan: Relation) -> Relation:
    return _simplify(plan, {})


def _simplify(relation: Relation, bound: Mapping[str, bool]) -> Relation:
    if isinstance(relation, Let):
        value = _simplify(relation.value, bound)
        inside = {**bound, relation.id: is_non_negative(value, bound)}
        return Let(relation.id, value, _simplify(relation.body, inside))
    relation = with_inputs(relation, tuple(_simplify(each, bound) for each in inputs_of(relation)))
    match relation:
        case Threshold(input) if is_non_negative(input, bound):
            return input
        case Reduce(aggregates=()):
            return _distinct(relation)
        case _:
            return relation


def _distinct(reduce: Reduce) -> Relation:
    below, keys = reduce.input, reduce.keys
    if isinstance(below, Reduce) and not below.aggregates and not any_can_fail(below.keys):
        return _distinct(Reduce(below.input, tuple(substitute(key, below.keys) for key in keys)))
    columns = {key.index for key in keys if isinstance(key, Column)}
    if not any(unique <= columns for unique in unique_keys(below)):
        return reduce
    return only(below, keys)
