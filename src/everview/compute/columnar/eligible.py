"""Which operators are computed by columns: a function of the plan alone.

What is computed by columns means the same to the bit as in the interpreter. An operator may be so although an
expression of it has no kernel: that is then called in Python, once for each combination of arguments.
"""

from __future__ import annotations

from everview.compute.columnar.order import is_ordered
from everview.compute.columnar.reduce import is_totalled
from everview.compute.functions import lookup
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import scalars_of
from everview.compute.ir.scalar import Failed, FailedTable, walk
from everview.compute.ir.types import Kind, SqlType


def is_columnar(relation: ir.Relation) -> bool:
    """Whether the operator itself is computed by columns, whatever is below it."""
    for scalar in scalars_of(relation):
        if lookup.is_volatile(scalar) or any(isinstance(part, Failed | FailedTable) for part in walk(scalar)):
            return False
    match relation:
        case ir.Constant() | ir.Get() | ir.Let() | ir.Project() | ir.Map() | ir.Filter() | ir.Union() | ir.Negate():
            return True
        case ir.Threshold():
            return True
        case ir.Join(_, equivalences, nullsafe):
            return all(_has_numbers(each.type) for members in equivalences + nullsafe for each in members)
        case ir.Reduce(_, keys, aggregates):
            return all(_has_numbers(each.type) for each in keys) and all(map(is_totalled, aggregates))
        case ir.TopK(input, group, order):
            types = ir.types(input)
            sorted_by = [*types, *(each.scalar.type for each in order)]
            return all(_has_numbers(types[each]) for each in group) and all(map(is_ordered, sorted_by))
        case _:
            return False


def is_wholly_columnar(plan: ir.Relation) -> bool:
    """Whether all operators of the plan are."""
    return all(map(is_columnar, ir.walk(plan)))


def _has_numbers(sql_type: SqlType) -> bool:
    """Whether values of the type can be numbered, so that equal ones are found."""
    return sql_type.kind is not Kind.ARRAY
