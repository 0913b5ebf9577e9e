"""What a statement takes and what it gives, found out without running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.adapter.contract import Column
from everview.adapter.execute.queries import EXPLAINED
from everview.adapter.execute.replacements import difference_query
from everview.adapter.execute.resuming import resumed
from everview.adapter.execute.showing import SHOWN_CREATE, objects_query
from everview.adapter.results import columns_of, text_columns
from everview.adapter.statements import nodes
from everview.adapter.subscribe import output_columns
from everview.adapter.surroundings import Surroundings
from everview.adapter.templates import Template
from everview.compute.ir.types import TEXT, SqlType
from everview.compute.sql.errors import SqlError
from everview.compute.sql.hosting import ParameterTypes

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator
    from everview.adapter.session import CoordinatorSession


@dataclass(frozen=True, slots=True)
class Described:
    """The columns of the result, None if there is none; the types of the parameters; the template, if there is one."""

    columns: tuple[Column, ...] | None
    parameters: tuple[SqlType, ...]
    template: Template | None = None


def described(
    coordinator: Coordinator,
    session: CoordinatorSession,
    node: nodes.Statement,
    around: Surroundings,
    given: Sequence[SqlType | None],
) -> Described:
    """What can be known of a statement before it is run."""
    if isinstance(node, nodes.Query | nodes.Modify) and "$" not in node.text and not given:
        template = coordinator.planner.template(node.text, around, (), change=isinstance(node, nodes.Modify))
        if template is not None:
            return Described(_given_back(template), (), template)
    types = ParameterTypes({number + 1: each for number, each in enumerate(given) if each is not None}, len(given))
    columns = _columns(coordinator, session, node, around, types)
    missing = next((n for n in range(1, types.highest + 1) if n not in types.known), None)
    if missing is not None and not _takes_text(node):
        raise SqlError("42P18", f"could not determine data type of parameter ${missing}")
    return Described(columns, tuple(types.known.get(number, TEXT) for number in range(1, types.highest + 1)))


def _given_back(template: Template) -> tuple[Column, ...] | None:
    plan = template.bound.plan if template.change is None else template.change.returning
    return None if plan is None else columns_of(plan.names, plan.types)


def _takes_text(node: nodes.Statement) -> bool:
    """Where nothing decides the type of a parameter, it is text; a parameter that is not used has no type."""
    return isinstance(node, nodes.Query | nodes.Modify | nodes.Explain | nodes.Declare | nodes.Copy | nodes.Subscribe)


def _columns(
    coordinator: Coordinator,
    session: CoordinatorSession,
    node: nodes.Statement,
    around: Surroundings,
    types: ParameterTypes,
) -> tuple[Column, ...] | None:
    planner = coordinator.planner
    match node:
        case nodes.Query(text):
            plan, _ = planner.parameters(text, around, types, change=False)
            assert plan is not None
            return columns_of(plan.names, plan.types)
        case nodes.Modify(text):
            plan, _ = planner.parameters(text, around, types, change=True)
            return None if plan is None else columns_of(plan.names, plan.types)
        case nodes.Subscribe():
            statement, durable = resumed(node, around)
            pins = None if durable is None else durable.pins
            plan, _ = planner.parameters(statement.query, around, types, change=False, pins=pins)
            assert plan is not None
            return output_columns(node, columns_of(plan.names, plan.types))
        case nodes.Explain(stage, inner):
            _columns(coordinator, session, inner, around, types)
            return text_columns("Timestamp") if stage == "timestamp" else EXPLAINED
        case nodes.Declare(_, inner) | nodes.Copy(source=inner):
            if inner is not None:
                _columns(coordinator, session, inner, around, types)
            return None
        case nodes.Show(name):
            return text_columns("name", "setting", "description") if name is None else text_columns(_shown(name))
        case nodes.ShowCreate():
            return SHOWN_CREATE
        case nodes.ShowObjects():
            plan, _ = planner.parameters(objects_query(node, around), around, types, change=False)
            assert plan is not None
            return columns_of(plan.names, plan.types)
        case nodes.ShowReplacementDiff():
            plan, _ = planner.parameters(difference_query(node, around), around, types, change=False)
            assert plan is not None
            return columns_of(plan.names, plan.types)
        case nodes.Fetch(cursor, move=False):
            return session.columns_of_cursor(cursor)
        case nodes.Execute(name):
            prepared = session.statements.get(name)
            return None if prepared is None else prepared.columns
        case _:
            return None


def _shown(name: str) -> str:
    return name.lower()
