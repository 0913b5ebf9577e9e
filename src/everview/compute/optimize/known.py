"""What is known of every row of a relation: the predicates that it has passed, over its own columns."""

from __future__ import annotations

from collections.abc import Mapping

from everview.compute.functions.lookup import can_fail
from everview.compute.ir.relation import (
    Constant,
    Filter,
    Get,
    Join,
    Let,
    Project,
    Recursive,
    Reduce,
    Relation,
    Union,
    inputs_of,
)
from everview.compute.ir.scalar import Column, Scalar, columns_of, remap, shift
from everview.compute.optimize.sides import sides_of


def known(relation: Relation) -> list[Scalar]:
    """Predicates that cannot fail and are true for every row."""
    match relation:
        case Constant() | Get() | Recursive():
            return []
        case Filter(input, predicates):
            return known(input) + [each for each in predicates if not can_fail(each)]
        case Project(input, columns):
            return _moved(known(input), {column: columns.index(column) for column in columns})
        case Reduce(input, keys):
            places = {key.index: index for index, key in enumerate(keys) if isinstance(key, Column)}
            return _moved(known(input), places)
        case Join(inputs):
            sides = sides_of(relation)
            return [shift(each, side.start) for input, side in zip(inputs, sides, strict=True) for each in known(input)]
        case Union(inputs):
            first, *others = (known(each) for each in inputs)
            return [each for each in first if all(each in other for other in others)]
        case Let(_, _, body):
            return known(body)
        case _:
            return known(inputs_of(relation)[0])


def _moved(predicates: list[Scalar], places: Mapping[int, int]) -> list[Scalar]:
    """Those over columns that are still there, over where they are now."""
    return [remap(each, places.__getitem__) for each in predicates if columns_of(each) <= places.keys()]
