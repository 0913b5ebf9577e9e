"""Which columns identify a row, and whether every multiplicity is positive."""

from __future__ import annotations

from collections.abc import Mapping

from everview.compute.ir import relation as ir
from everview.compute.ir.parts import sides_of

UniqueKeys = list[frozenset[int]]


def unique_keys(relation: ir.Relation) -> UniqueKeys:
    """Sets of columns in which no two rows are equal; where there is one, every multiplicity is 1."""
    match relation:
        case ir.Reduce(_, keys):
            return [frozenset(range(len(keys)))]
        case ir.Constant(rows) if len(rows) <= 1 and all(multiplicity == 1 for _, multiplicity in rows):
            return [frozenset()]
        case ir.TopK(input, group, _, 1):
            return [*unique_keys(input), frozenset(group)]
        case ir.Map(input) | ir.Filter(input) | ir.Threshold(input) | ir.TopK(input) | ir.Window(input):
            return unique_keys(input)
        case ir.Project(input, columns):
            places = {column: columns.index(column) for column in columns}
            return [frozenset(places[column] for column in key) for key in unique_keys(input) if key <= places.keys()]
        case ir.Join(inputs):
            combined: UniqueKeys = [frozenset()]
            for each, side in zip(inputs, sides_of(relation), strict=True):
                mine = unique_keys(each)
                combined = [old | {side.start + column for column in key} for old in combined for key in mine[:2]]
            return combined
        case ir.Let(_, _, body):
            return unique_keys(body)
        case _:
            return []


def is_non_negative(relation: ir.Relation, bound: Mapping[str, bool]) -> bool:
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
            return is_non_negative(body, {**bound, id: is_non_negative(value, bound)})
        case _:
            return all(is_non_negative(each, bound) for each in ir.inputs_of(relation))
