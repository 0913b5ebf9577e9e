"""Which columns identify a row, and whether every multiplicity is positive."""

from __future__ import annotations

from collections.abc import Mapping

from everview.compute.ir.relation import (
    Accumulate,
    Constant,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Occurring,
    Project,
    Recursive,
    Reduce,
    Relation,
    Temporal,
    Threshold,
    TopK,
    Union,
    Window,
    inputs_of,
)
from everview.compute.optimize.sides import sides_of

UniqueKeys = list[frozenset[int]]


def unique_keys(relation: Relation) -> UniqueKeys:
    """Sets of columns in which no two rows are equal; where there is one, every multiplicity is 1."""
    match relation:
        case Reduce(_, keys):
            return [frozenset(range(len(keys)))]
        case Constant(rows) if len(rows) <= 1 and all(multiplicity == 1 for _, multiplicity in rows):
            return [frozenset()]
        case TopK(input, group, _, 1):
            return [*unique_keys(input), frozenset(group)]
        case Map(input) | Filter(input) | Threshold(input) | TopK(input) | Window(input):
            return unique_keys(input)
        case Project(input, columns):
            places = {column: columns.index(column) for column in columns}
            return [frozenset(places[column] for column in key) for key in unique_keys(input) if key <= places.keys()]
        case Join(inputs):
            combined: UniqueKeys = [frozenset()]
            for each, side in zip(inputs, sides_of(relation), strict=True):
                mine = unique_keys(each)
                combined = [old | {side.start + column for column in key} for old in combined for key in mine[:2]]
            return combined
        case Let(_, _, body):
            return unique_keys(body)
        case _:
            return []


def is_non_negative(relation: Relation, bound: Mapping[str, bool]) -> bool:
    """Whether no row occurs fewer than zero times. In a stored collection none does; `bound` has those of Lets."""
    match relation:
        case Get(id):
            return bound.get(id, True)
        case Constant(rows):
            return all(multiplicity > 0 for _, multiplicity in rows)
        case Reduce() | TopK() | Window() | Threshold() | Accumulate() | Occurring():
            return True
        case Negate():
            return False
        case Let(id, value, body):
            return is_non_negative(body, {**bound, id: is_non_negative(value, bound)})
        case Project() | Map() | Filter() | FlatMap() | Join() | Union() | Temporal() | Recursive():
            return all(is_non_negative(each, bound) for each in inputs_of(relation))
