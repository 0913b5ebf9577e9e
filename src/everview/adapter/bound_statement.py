"""Bound statements: plans, with what they name and read, bound and optimized once for any values of their parameters.

In such a plan a parameter, and a function of the session such as `now()`, is a call of a function of its number that no
engine can evaluate. `filled` puts literals in the places of these calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from everview.adapter.statement_context import Meaning, StatementContext
from everview.compute.allowance import ROW_BYTES
from everview.compute.functions.plan_functions import PARAMETER
from everview.compute.functions.temporal import MZ_NOW
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import all_scalars, map_scalars
from everview.compute.ir.relation import Constant, Relation
from everview.compute.ir.scalar import Call, Literal, Scalar, transform, walk
from everview.compute.ir.types import MZ_TIMESTAMP, SqlType
from everview.compute.optimize.simplify import simplify
from everview.compute.sql.dml import Change
from everview.compute.sql.query import Plan
from everview.storage.contract import GlobalId

if TYPE_CHECKING:
    from everview.adapter.index_lookup import IndexLookup

SessionValue: TypeAlias = Callable[[StatementContext], Literal]


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A bound query. `uses` are the items that it names; `reads` the stored collections below all views."""

    plan: Plan
    uses: frozenset[GlobalId]
    reads: frozenset[GlobalId]
    system: frozenset[str]
    asked: frozenset[str]  # functions of the session
    optimized: bool = False
    present: bool = False  # it is read at the present, whatever it says
    definition: str = ""  # of a query that is to be stored: its text, with names in full

    @property
    def recursive(self) -> bool:
        """Whether it cannot be maintained because it refers to itself."""
        return any(isinstance(each, ir.Recursive) for each in ir.walk(self.plan.relation))

    @property
    def needs_time(self) -> bool:
        """Whether it speaks of its own time, or is to be read at the present for another reason."""
        return self.present or speaks_of_time(self.plan.relation)


UNKNOWN = object()


@dataclass(slots=True, eq=False)
class BoundStatement:
    """A bound statement: what it reads, and, if it writes, what it changes.

    It can be run as long as `meaning` has not changed. `parameters` are the types of parameters, `session_values` give
    the values of functions of the session when the statement runs. An `open` statement, such as `LIMIT $1`, can only be
    bound with all these values: its plan has NULLs instead, and only tells columns and types. `weight` is about how
    many bytes the values in the plan take: a short text can mean very long ones. `lookup` is the look-up in an index
    that the first run found the statement to be, `given` what makes the rows of an INSERT of its parameters
    (`execute/given_rows.py`).
    """

    meaning: Meaning
    bound: BoundQuery
    change: Change | None
    parameters: tuple[SqlType, ...] = ()
    session_values: tuple[SessionValue, ...] = ()
    open: bool = False
    weight: int = 0
    lookup: IndexLookup | None = None
    looked: bool = False
    given: Any = UNKNOWN

    def filled(self, values: Sequence[Literal], around: StatementContext) -> tuple[Change | None, BoundQuery]:
        """The statement with the values of its parameters and of its session."""
        session = [value(around) for value in self.session_values]
        if not values and not session:
            return self.change, self.bound
        relation = _filled(self.bound.plan.relation, values, session)
        bound = replace(self.bound, plan=replace(self.bound.plan, relation=relation))
        if self.change is None:
            return None, bound
        returning = self.change.returning
        if returning is not None:
            returning = replace(returning, relation=_filled(returning.relation, values, session))
        return replace(self.change, relation=relation, returning=returning), bound


def parameter_of(scalar: Scalar) -> int | None:
    """The number of the parameter, from 0, whose place a scalar is. None if it is something else."""
    match scalar:
        case Call(function, (Literal(int(number)),)) if function == PARAMETER and number > 0:
            return number - 1
        case _:
            return None


def session_value_of(scalar: Scalar) -> int | None:
    """The number of the session's value, from 0, whose place a scalar is. None if it is something else."""
    match scalar:
        case Call(function, (Literal(int(number)),)) if function == PARAMETER and number < 0:
            return -number - 1
        case _:
            return None


def _filled(relation: Relation, values: Sequence[Literal], session: Sequence[Literal]) -> Relation:
    def look(part: Scalar) -> Scalar | None:
        match part:
            case Call(function, (Literal(int(number)),)) if function == PARAMETER:
                return values[number - 1] if number > 0 else session[-number - 1]
            case _:
                return None

    def change(scalar: Scalar) -> Scalar:
        changed = transform(scalar, look)
        return scalar if changed is scalar or changed == scalar else simplify(changed)

    return map_scalars(relation, change)


def weight_of(relation: Relation) -> int:
    """About how many bytes the values in a plan take."""
    total = 0
    for part in ir.walk(relation):
        if isinstance(part, Constant):
            total += len(part.rows) * ROW_BYTES + sum(_length(value) for row, _ in part.rows for value in row)
    for scalar in all_scalars(relation):
        total += sum(_length(each.value) for each in walk(scalar) if isinstance(each, Literal))
    return total


def _length(value: Any) -> int:
    if isinstance(value, list | tuple):
        return sum(50 + _length(each) for each in value)
    return len(value) if isinstance(value, str | bytes) else 0


def speaks_of_time(relation: Relation) -> bool:
    """Whether `mz_now()` is in the plan."""
    return any(
        isinstance(part, Call) and part.function == MZ_NOW for scalar in all_scalars(relation) for part in walk(scalar)
    )


def at_time(relation: Relation, time: int) -> Relation:
    """The plan with `mz_now()` being this time."""

    def look(part: Scalar) -> Scalar | None:
        return Literal(time, MZ_TIMESTAMP) if isinstance(part, Call) and part.function == MZ_NOW else None

    return map_scalars(relation, lambda scalar: transform(scalar, look)) if speaks_of_time(relation) else relation
