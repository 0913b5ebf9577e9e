"""Joins of joins become one n-ary join; a projection or a filter between them moves above.

An inner join stays where a filter above it can fail, and where a key of the outer one is over several of its inputs or
can fail, for such a key must not see rows that the inner join leaves out.
"""

from __future__ import annotations

from everview.compute.functions.lookup import any_can_fail, can_fail
from everview.compute.ir.parts import Equivalence, move_classes, owner_of, sides_of
from everview.compute.ir.relation import Filter, Join, Project, Relation, arity, transform
from everview.compute.ir.scalar import Scalar, columns_of, remap, shift

_NONE: tuple[Scalar, ...] = ()


def flatten_joins(plan: Relation) -> Relation:
    return transform(plan, _flatten)


def _flatten(relation: Relation) -> Relation:
    if not isinstance(relation, Join):
        return relation
    if len(relation.inputs) == 1 and not relation.equivalences and not relation.nullsafe:
        return relation.inputs[0]
    sides = sides_of(relation)
    parts = [
        _join_below(each, _members_over(relation, side)) for each, side in zip(relation.inputs, sides, strict=True)
    ]
    if all(part is None for part in parts):
        return relation
    inputs: list[Relation] = []
    equivalences: list[Equivalence] = []
    nullsafe: list[Equivalence] = []
    predicates: list[Scalar] = []
    places: list[int] = []  # where each column of the old join is in the new one
    width = 0
    for each, part in zip(relation.inputs, parts, strict=True):
        join, filters, columns = part or (Join((each,)), (), tuple(range(arity(each))))
        inputs += join.inputs
        equivalences += move_classes(join.equivalences, range(width, width + arity(join)).__getitem__)
        nullsafe += move_classes(join.nullsafe, range(width, width + arity(join)).__getitem__)
        predicates += (shift(predicate, width) for predicate in filters)
        places += (width + column for column in columns)
        width += arity(join)
    equivalences += move_classes(relation.equivalences, places.__getitem__)
    nullsafe += move_classes(relation.nullsafe, places.__getitem__)
    flat: Relation = Join(tuple(inputs), tuple(equivalences), tuple(nullsafe))
    if predicates:
        flat = Filter(flat, tuple(predicates))
    return flat if places == list(range(width)) else Project(flat, tuple(places))


def _members_over(join: Join, side: range) -> list[Scalar]:
    """The members of the join's classes that are over one input, as that input sees them."""
    members = (member for members in join.equivalences + join.nullsafe for member in members)
    return [shift(member, -side.start) for member in members if columns_of(member) and min(columns_of(member)) in side]


def _join_below(relation: Relation, keys: list[Scalar]) -> tuple[Join, tuple[Scalar, ...], tuple[int, ...]] | None:
    """The relation as a projection of a filtered join, if these keys can be computed above the join."""
    match relation:
        case Project(input, columns):
            below = input
        case _:
            below, columns = relation, tuple(range(arity(relation)))
    match below:
        case Join():
            join, predicates = below, _NONE
        case Filter(Join() as inner, filters) if not any_can_fail(filters):
            join, predicates = inner, filters
        case _:
            return None
    sides = sides_of(join)
    if any(can_fail(key) or owner_of(remap(key, columns.__getitem__), sides) is None for key in keys):
        return None
    return join, predicates, columns
