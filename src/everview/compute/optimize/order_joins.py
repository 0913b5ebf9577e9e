"""The order of a join's inputs: the smallest first, then the inputs connected to it, smaller ones first.

There are no statistics: what is filtered, limited, grouped or written down counts as smaller than what is stored. A
projection on top puts the columns back.
"""

from __future__ import annotations

from everview.compute.ir import relation as ir
from everview.compute.ir.parts import move_classes, owner_of, sides_of
from everview.compute.ir.scalar import Call, Literal, Scalar

STORED_ROWS = 1_000_000.0
EQUAL_TO_LITERAL, OTHER_PREDICATE = 0.01, 0.3
GROUPS = 0.1
ROWS_OF_TABLE_FUNCTION = 10.0
MATCHES = 1.0 / STORED_ROWS  # of two rows, the chance that they are equal in an equivalence


def order_joins(plan: ir.Relation) -> ir.Relation:
    return ir.transform(plan, _order)


def _order(relation: ir.Relation) -> ir.Relation:
    if not isinstance(relation, ir.Join) or len(relation.inputs) < 2:
        return relation
    sides = sides_of(relation)
    order = _chosen(relation, sides)
    if order == sorted(order):
        return relation
    places: dict[int, int] = {}
    for index in order:
        for column in sides[index]:
            places[column] = len(places)
    join = ir.Join(
        tuple(relation.inputs[index] for index in order),
        move_classes(relation.equivalences, places.__getitem__),
        move_classes(relation.nullsafe, places.__getitem__),
    )
    return ir.Project(join, tuple(places[column] for column in range(len(places))))


def _chosen(join: ir.Join, sides: list[range]) -> list[int]:
    sizes = [estimated_rows(each) for each in join.inputs]
    classes = [{owner_of(member, sides) for member in members} for members in join.equivalences + join.nullsafe]
    left = set(range(len(join.inputs)))
    order: list[int] = []
    while left:
        connected = {index for index in left if any(index in inputs and inputs & set(order) for inputs in classes)}
        chosen = min(connected or left, key=lambda index: (sizes[index], index))
        order.append(chosen)
        left.remove(chosen)
    return order


def estimated_rows(relation: ir.Relation) -> float:
    """A guess at how many rows there are, only to compare with."""
    match relation:
        case ir.Constant(rows):
            return float(len(rows))
        case ir.Get():
            return STORED_ROWS
        case ir.Filter(input, predicates):
            size = estimated_rows(input)
            for predicate in predicates:
                size *= EQUAL_TO_LITERAL if _pins(predicate) else OTHER_PREDICATE
            return size
        case ir.FlatMap(input):
            return estimated_rows(input) * ROWS_OF_TABLE_FUNCTION
        case ir.Reduce(input, keys):
            return estimated_rows(input) * GROUPS if keys else 1.0
        case ir.TopK(input, group, _, limit):
            size = estimated_rows(input)
            return size if limit is None else min(size, limit * (size * GROUPS if group else 1.0))
        case ir.Join(inputs, equivalences, nullsafe):
            size = 1.0
            for each in inputs:
                size *= estimated_rows(each)
            for members in equivalences + nullsafe:
                size *= MATCHES ** (len(members) - 1)
            return size
        case ir.Union(inputs):
            return sum(map(estimated_rows, inputs))
        case ir.Let(_, _, body):
            return estimated_rows(body)
        case _:
            return estimated_rows(ir.inputs_of(relation)[0])


def _pins(predicate: Scalar) -> bool:
    return (
        isinstance(predicate, Call)
        and predicate.function.startswith("eq(")
        and any(isinstance(arg, Literal) for arg in predicate.args)
    )
