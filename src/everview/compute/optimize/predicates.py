"""`known_predicates`: what is true of every row of a relation, over its own columns."""

from __future__ import annotations

from collections.abc import Mapping

from everview.compute.functions.lookup import can_fail
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import sides_of
from everview.compute.ir.scalar import Column, Scalar, columns_of, remap, shift


def known_predicates(relation: ir.Relation) -> list[Scalar]:
    """Predicates that cannot fail and are true for every row."""
    match relation:
        case ir.Constant() | ir.Get() | ir.Recursive():
            return []
        case ir.Filter(input, predicates):
            return known_predicates(input) + [each for each in predicates if not can_fail(each)]
        case ir.Project(input, columns):
            return _moved(known_predicates(input), {column: columns.index(column) for column in columns})
        case ir.Reduce(input, keys):
            places = {key.index: index for index, key in enumerate(keys) if isinstance(key, Column)}
            return _moved(known_predicates(input), places)
        case ir.Join(inputs):
            pairs = zip(inputs, sides_of(relation), strict=True)
            return [shift(each, side.start) for input, side in pairs for each in known_predicates(input)]
        case ir.Union(inputs):
            first, *others = (known_predicates(each) for each in inputs)
            return [each for each in first if all(each in other for other in others)]
        case ir.Let(_, _, body):
            return known_predicates(body)
        case _:
            return known_predicates(ir.inputs_of(relation)[0])


def _moved(predicates: list[Scalar], places: Mapping[int, int]) -> list[Scalar]:
    """Those over columns that are still there, over where they are now."""
    return [remap(each, places.__getitem__) for each in predicates if columns_of(each) <= places.keys()]
