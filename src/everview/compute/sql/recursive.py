"""WITH RECURSIVE: a query that refers to itself, as PostgreSQL allows it, and what it refuses by name.

The form is `base UNION [ALL] step`. The step reads the rows of the round before, once, and not where rows that are not
there matter: inside a subquery of an expression, an aggregate, the side of an outer join that may be missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from everview.compute.ir import relation as ir
from everview.compute.ir.scalar import walk
from everview.compute.ir.types import Kind, SqlType
from everview.compute.sql import hir
from everview.compute.sql.coerce import coerce
from everview.compute.sql.errors import DATATYPE_MISMATCH, SYNTAX_ERROR, SqlError, unsupported
from everview.compute.sql.forms import identifier
from everview.compute.sql.parse import Tree, error_at, position_of

INVALID_RECURSION = "42P19"


def refers_to_itself(tree: Tree, name: str) -> bool:
    """Whether a query reads, by its text, a relation of this name."""
    return any(
        len(table.parts) == 1 and isinstance(table.this, exp.Identifier) and identifier(table.this) == name
        for table in tree.find_all(exp.Table)
    )


def check_form(tree: Tree, name: str) -> None:
    """Raise unless the query is a base and a step."""
    if not isinstance(tree, exp.Union):
        message = f'recursive query "{name}" does not have the form non-recursive-term UNION [ALL] recursive-term'
        raise error_at(tree, INVALID_RECURSION, message)
    for clause, shown in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if tree.args.get(clause):
            raise unsupported(f"{shown} in a recursive query", position_of(tree.args[clause]))
    if tree.args.get("with_"):
        raise unsupported("WITH inside a recursive query", position_of(tree))
    if refers_to_itself(tree.this, name):
        message = f'recursive reference to query "{name}" must not appear within its non-recursive term'
        raise error_at(tree.this, INVALID_RECURSION, message)


def of_types(step: hir.Query, wanted: Sequence[SqlType], values: Sequence[hir.HScalar], name: str) -> hir.Query:
    """Give the step the column types of the base. A column of another type is refused."""
    if len(values) != len(wanted):
        raise SqlError(SYNTAX_ERROR, "each UNION query must have the same number of columns")
    cast: list[hir.HScalar] = []
    for index, (value, to) in enumerate(zip(values, wanted, strict=True)):
        if value.type != to and value.type.kind is not Kind.UNKNOWN:
            message = f'recursive query "{name}" column {index + 1} has type {to} in non-recursive term'
            hint = "cast the output of the non-recursive term to the correct type"
            raise SqlError(DATATYPE_MISMATCH, f"{message} but type {value.type} overall", hint=hint)
        cast.append(coerce(value, to))
    return hir.mapped(step, cast)


def check_step(step: hir.Query, id: str, name: str) -> int:
    """How often the step reads the round before; raise where it may not."""
    count = _count(step, id, name)
    if count > 1:
        raise _misplaced(name, "more than once", within=False)
    return count


def _count(query: hir.Query, id: str, name: str) -> int:
    if isinstance(query, ir.Get):
        return int(query.id == id)
    for scalar in hir.scalars(query):
        for part in walk(scalar):
            if isinstance(part, hir.Subquery) and _count(part.query, id, name):
                raise _misplaced(name, "a subquery")
    found = [_count(each, id, name) for each in hir.inputs(query)]
    if not any(found):
        return 0
    match query:
        case hir.OuterJoin(kind=kind) if found[1] or kind == "full":
            raise _misplaced(name, "an outer join")
        case hir.Lateral(kind="left") if found[1]:
            raise _misplaced(name, "an outer join")
        case hir.Lateral() if found[1]:
            raise _misplaced(name, "a lateral subquery")
        case hir.GlobalReduce():
            raise _aggregated()
        case ir.Reduce(aggregates=aggregates) if aggregates:
            raise _aggregated()
        case ir.TopK():
            raise unsupported("LIMIT in a recursive query")
        case ir.Window():
            raise unsupported("a window function in a recursive query's recursive term")
        case ir.Threshold() | ir.Negate():
            raise _misplaced(name, "EXCEPT or INTERSECT")
        case _:
            return sum(found)


def _misplaced(name: str, where: str, *, within: bool = True) -> SqlError:
    place = f"within {where}" if within else where
    return SqlError(INVALID_RECURSION, f'recursive reference to query "{name}" must not appear {place}')


def _aggregated() -> SqlError:
    return SqlError(INVALID_RECURSION, "aggregate functions are not allowed in a recursive query's recursive term")
