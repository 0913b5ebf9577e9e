"""Rows whose number in their partition is limited: the window functions need see no others.

`row_number() OVER (PARTITION BY a ORDER BY b) <= 3` is how SQL asks for the first three of each a. The numbers of these
follow from these alone, so an order and limit below the window gives the same; and of that only the rows that may be
among the first are looked at when something changes, not the whole partition.
"""

from __future__ import annotations

from dataclasses import replace

from everview.compute.functions import lookup
from everview.compute.ir.relation import Filter, Map, Project, Relation, TopK, Window, arity, transform
from everview.compute.ir.scalar import Call, Column, Literal, Scalar

_FROM_ROWS_BEFORE = ("row_number()", "rank()", "dense_rank()")  # rows behind the last one of interest do not matter
_TURNED = {">": "<", ">=": "<=", "=": "="}


def limit_windows(plan: Relation) -> Relation:
    return transform(plan, _limited)


def _limited(relation: Relation) -> Relation:
    if not isinstance(relation, Filter) or not isinstance(relation.input, Window):
        return relation
    window = relation.input
    if not all(each.function in _FROM_ROWS_BEFORE for each in window.functions):
        return relation
    width = arity(window.input)
    numbers = [width + place for place, each in enumerate(window.functions) if each.function == "row_number()"]
    limits = [limit for each in relation.predicates if (limit := _limit(each, numbers)) is not None]
    if not limits or _is_limited(window, limit := max(0, min(limits))):
        return relation
    computed = tuple(each for each in window.partition if not isinstance(each, Column))
    places = iter(range(width, width + len(computed)))
    group = tuple(each.index if isinstance(each, Column) else next(places) for each in window.partition)
    first: Relation = TopK(Map(window.input, computed) if computed else window.input, group, window.order, limit)
    if computed:
        first = Project(first, tuple(range(width)))
    return replace(relation, input=replace(window, input=first))


def _limit(predicate: Scalar, numbers: list[int]) -> int | None:
    """The greatest number of a row for which the predicate can be true, if it says so."""
    if not isinstance(predicate, Call) or len(predicate.args) != 2:
        return None
    operator = lookup.function(predicate.function).name
    left, right = predicate.args
    if isinstance(left, Literal):
        left, right, operator = right, left, _TURNED.get(operator, "")
    if not (isinstance(left, Column) and left.index in numbers and isinstance(right, Literal)):
        return None
    if not isinstance(right.value, int) or operator not in ("<", "<=", "="):
        return None
    return right.value - 1 if operator == "<" else right.value


def _is_limited(window: Window, limit: int) -> bool:
    below = window.input.input if isinstance(window.input, Project) else window.input
    return isinstance(below, TopK) and below.order == window.order and below.limit is not None and below.limit <= limit
