"""The rows of an INSERT … VALUES, made of the values of its parameters without a plan for each execution.

Parameters and what functions of the session give are columns of one row, from which the cells are computed. Whatever
reads, speaks of time or looks into the system has no such form, and is evaluated as other changes are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from everview.adapter.bound_statement import (
    UNKNOWN,
    BoundStatement,
    SessionValue,
    parameter_of,
    session_value_of,
    speaks_of_time,
)
from everview.adapter.statement_context import StatementContext
from everview.compute.functions.contract import Failure
from everview.compute.functions.lookup import is_volatile
from everview.compute.interpreter import limits
from everview.compute.interpreter.scalars import compile_row
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import all_scalars
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Column, Literal, Scalar, transform, walk
from everview.compute.rows.collection import Row, Rows, add, canonical_row
from everview.compute.sql.dml import ChangeKind
from everview.compute.sql.errors import SqlError

GivenRows: TypeAlias = Callable[[Sequence[Literal], StatementContext], Rows]


def given_rows(statement: BoundStatement) -> GivenRows | None:
    """What makes the rows of an INSERT. None if they are more than what its statement says."""
    change, bound = statement.change, statement.bound
    if change is None or change.kind is not ChangeKind.INSERT or change.returning is not None or statement.open:
        return None
    if bound.reads or bound.system or bound.needs_time or speaks_of_time(change.relation):
        return None
    lines = _lines(change.relation)
    if lines is None or any(isinstance(part, Column) for each in all_scalars(change.relation) for part in walk(each)):
        return None
    filled = [[_of_columns(cell, len(statement.parameters)) for cell in line] for line in lines]
    if any(is_volatile(cell) for line in filled for cell in line):
        return None
    makers = list(map(compile_row, filled))
    session_values: Sequence[SessionValue] = statement.session_values
    settle: Callable[[Sequence[object]], Row] | None = None

    def rows(values: Sequence[Literal], around: StatementContext) -> Rows:
        nonlocal settle
        given = [*values, *(value(around) for value in session_values)]
        settle = settle or canonical_row([each.type for each in given])
        row = settle([each.value for each in given])
        found: Rows = {}
        failures = []
        for make in limits.paced(makers, len(change.target.names)):
            try:
                add(found, make(row), 1)
            except Failure as failure:
                failures.append((failure.sqlstate, failure.message))
        if failures:
            raise SqlError(*min(failures))
        return found

    return rows


def _lines(relation: Relation) -> list[tuple[Scalar, ...]] | None:
    """The cells of each row. None if the relation is not rows of expressions."""
    match relation:
        case ir.Map(ir.Constant(rows, schema), scalars) if rows == (((), 1),) and not schema:
            return [scalars]
        case ir.Union(inputs):
            parts = [_lines(each) for each in inputs]
            return None if None in parts else [line for part in parts for line in part or ()]
        case _:
            return None


def _of_columns(scalar: Scalar, parameters: int) -> Scalar:
    """The expression with columns in the places of parameters, and behind these of what the session gives."""

    def look(part: Scalar) -> Scalar | None:
        number = parameter_of(part)
        if number is None:
            session = session_value_of(part)
            if session is None:
                return None
            number = parameters + session
        return Column(number, part.type)

    return transform(scalar, look)


def made_of(statement: BoundStatement | None) -> GivenRows | None:
    """The same, found out once for a statement."""
    if statement is None:
        return None
    if statement.given is UNKNOWN:
        statement.given = given_rows(statement)
    found: GivenRows | None = statement.given
    return found
