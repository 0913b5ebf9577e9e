"""What a statement takes and what it gives, found out by binding it, before it is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.adapter.bound_statement import BoundStatement
from everview.adapter.contract import Column
from everview.adapter.durable import resumed
from everview.adapter.execute.queries import EXPLAINED
from everview.adapter.execute.replacements import difference_query
from everview.adapter.execute.show import SHOWN_CREATE, objects_query
from everview.adapter.planner import Planner
from everview.adapter.results import columns_of, text_columns
from everview.adapter.statement_context import StatementContext
from everview.adapter.statements import nodes
from everview.adapter.subscribe import output_columns
from everview.compute.ir.types import SqlType
from everview.compute.sql.errors import SqlError
from everview.compute.sql.hosting import ParameterTypes

if TYPE_CHECKING:
    from everview.adapter.session import CoordinatorSession


@dataclass(frozen=True, slots=True)
class Described:
    """The columns of the result, the types of the parameters, and the bound query or change of a statement."""

    columns: tuple[Column, ...] | None
    parameters: tuple[SqlType, ...]
    bound: BoundStatement | None


def described(
    planner: Planner,
    session: CoordinatorSession,
    node: nodes.Statement,
    around: StatementContext,
    given: Sequence[SqlType | None],
) -> Described:
    """What can be known of a statement before it is run."""
    found = _bound(planner, node, around, given)
    if found is None:
        for number, each in enumerate(given, 1):
            if each is None:
                raise SqlError("42P18", f"could not determine data type of parameter ${number}")
        return Described(_columns(session, node, None), tuple(each for each in given if each is not None), None)
    bound, _ = found
    return Described(_columns(session, node, bound), bound.parameters, bound)


def _bound(
    planner: Planner,
    node: nodes.Statement,
    around: StatementContext,
    given: Sequence[SqlType | None],
    stage: str | None = None,
) -> tuple[BoundStatement, ParameterTypes] | None:
    """Bind the query or change of a statement; for EXPLAIN, as its `stage` needs it. None for other statements."""
    match node:
        case nodes.Query(query):
            indexed, optimized = stage != "maintained", stage is None
            return planner.statement(query, around, given, indexed=indexed, optimized=optimized)
        case nodes.Modify(text):
            return planner.statement(text, around, given, change=True, optimized=stage is None)
        case nodes.Subscribe():
            subscribe, durable = resumed(node, around)
            pins = None if durable is None else durable.pins
            return planner.statement(subscribe.query, around, given, indexed=False, optimized=False, pins=pins)
        case nodes.Explain(stage, inner):
            return _bound(planner, inner, around, given, stage)
        case nodes.Declare(_, inner):
            return _bound(planner, inner, around, given)
        case nodes.Copy(source=inner) if inner is not None:
            return _bound(planner, inner, around, given)
        case nodes.ShowObjects():
            return planner.statement(objects_query(node, around), around, given)
        case nodes.ShowReplacementDiff():
            return planner.statement(difference_query(node, around), around, given)
        case _:
            return None


def _columns(
    session: CoordinatorSession, node: nodes.Statement, bound: BoundStatement | None
) -> tuple[Column, ...] | None:
    plan = None if bound is None else bound.bound.plan
    match node:
        case nodes.Query() | nodes.ShowObjects() | nodes.ShowReplacementDiff():
            assert plan is not None
            return columns_of(plan.names, plan.types)
        case nodes.Modify():
            assert bound is not None and bound.change is not None
            plan = bound.change.returning
            return None if plan is None else columns_of(plan.names, plan.types)
        case nodes.Subscribe():
            assert plan is not None
            return output_columns(node, columns_of(plan.names, plan.types))
        case nodes.Explain(stage):
            return text_columns("Timestamp") if stage == "timestamp" else EXPLAINED
        case nodes.Show(name):
            return text_columns("name", "setting", "description") if name is None else text_columns(name.lower())
        case nodes.ShowCreate():
            return SHOWN_CREATE
        case nodes.Fetch(cursor, move=False):
            return session.columns_of_cursor(cursor)
        case nodes.Execute(name):
            prepared = session.statements.get(name)
            return None if prepared is None else prepared.columns
        case _:
            return None
