"""Statements that write to tables: INSERT, UPDATE, DELETE, TRUNCATE, and the rows of COPY.

What only brings rows is kept for the end of its transaction. What reads before it writes, standing alone, does both
while nobody else writes; in a block it reads at the transaction's time, and the block's end checks what it read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everview.adapter.catalog.items import Item
from everview.adapter.contract import Done, Result
from everview.adapter.errors import as_sql_errors
from everview.adapter.execute.context import Context
from everview.adapter.peek import ordered
from everview.adapter.planner import Bound, at_time, speaks_of_time
from everview.adapter.results import RowList, columns_of
from everview.adapter.statements import nodes
from everview.adapter.tables import changes, check_rows
from everview.compute.engine.local.collection import Rows, add
from everview.compute.engine.local.evaluate import evaluate
from everview.compute.ir import relation as ir
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.dml import RETURNED, Change
from everview.compute.sql.errors import SqlError, unsupported
from everview.compute.sql.references import quoted

_VERBS = {"insert": "INSERT 0", "update": "UPDATE", "delete": "DELETE"}


@dataclass(frozen=True, slots=True)
class Effect:
    """What a statement does to a table: its changes, the rows that RETURNING sees, and how many there are."""

    delta: Rows
    returned: Rows
    count: int


def run_modify(context: Context, statement: nodes.Modify) -> Result:
    """INSERT, UPDATE and DELETE."""
    context.transaction.check_may_write()
    with as_sql_errors():
        change, bound = context.coordinator.planner.write(statement.text, context.around, context.values)
    item = context.around.catalog.items[change.target.id]
    effect = _carried_out(context, item, change, bound)
    if change.returning is None:
        return Done(f"{_VERBS[change.kind]} {effect.count}")
    return _returning(context, change, effect)


def run_truncate(context: Context, statement: nodes.Truncate) -> Result:
    """TRUNCATE: all rows go."""
    for path in statement.tables:
        run_modify(context, nodes.Modify(f"DELETE FROM {'.'.join(map(quoted, path))}", "delete"))
    return Done("TRUNCATE TABLE")


def _carried_out(context: Context, item: Item, change: Change, bound: Bound) -> Effect:
    if speaks_of_time(change.relation):
        return _at_write_time(context, item, change, bound)
    if not bound.reads:
        effect = _effect(item, change, context.read_collection(bound))
        context.transaction.write(item, effect.delta)
        return effect
    if context.session.alone:
        return _alone(context, item, change, bound)
    effect = _effect(item, change, context.read_collection(bound))
    context.transaction.write(item, effect.delta)
    return effect


def _alone(context: Context, item: Item, change: Change, bound: Bound) -> Effect:
    """Read and write while nobody else writes; durable when this returns."""
    timeline = context.coordinator.timeline
    with timeline.exclusive(context.session.interrupts.check):
        effect = _effect(item, change, context.read_collection(bound))
        if effect.delta:
            timeline.write_exclusively({item.id: changes(effect.delta, item.types)}, {item.id: item.writer or ""})
    context.session.restart_transaction()
    return effect


def _at_write_time(context: Context, item: Item, change: Change, bound: Bound) -> Effect:
    """A statement that speaks of its time means the time at which it writes, so it is carried out at that time."""
    if not context.session.alone:
        raise unsupported("mz_now() in a statement that writes inside a transaction block")
    timeline, coordinator = context.coordinator.timeline, context.coordinator
    with timeline.still():
        time = max(timeline.upper, timeline.now_ms)
        if bound.reads:
            transaction_time = context.time_for(bound)
            relation = at_time(change.relation, time)
            rows = coordinator.peeks.collection(relation, transaction_time, context.around)
        else:
            rows = coordinator.peeks.collection(at_time(change.relation, time), time, context.around)
        effect = _effect(item, change, rows)
        timeline.write_exclusively({item.id: changes(effect.delta, item.types)}, {item.id: item.writer or ""}, at=time)
    context.session.restart_transaction()
    return effect


def _effect(item: Item, change: Change, rows: Rows) -> Effect:
    if any(multiplicity < 0 for multiplicity in rows.values()):
        raise SqlError("XX000", "internal error: rows with a negative multiplicity")
    count = sum(rows.values())
    if change.kind == "insert":
        check_rows(item, rows)
        return Effect(rows, rows, count)
    if change.kind == "delete":
        return Effect({row: -multiplicity for row, multiplicity in rows.items()}, rows, count)
    width = len(item.columns)
    delta: Rows = {}
    new: Rows = {}
    for row, multiplicity in rows.items():
        add(delta, row[:width], -multiplicity)
        add(delta, row[width:], multiplicity)
        add(new, row[width:], multiplicity)
    check_rows(item, new)
    return Effect(delta, new, count)


def _returning(context: Context, change: Change, effect: Effect) -> Result:
    plan = change.returning
    assert plan is not None
    others = [each.id for each in ir.walk(plan.relation) if isinstance(each, ir.Get) and each.id in _ids(context)]
    if others or speaks_of_time(plan.relation):
        raise unsupported("a query, or mz_now(), in RETURNING")
    result = evaluate(optimize(plan.relation), {RETURNED: effect.returned})
    if result.errors:
        raise SqlError(*min(result.errors))
    rows = ordered(result.rows, (), len(plan.names), ir.types(plan.relation))
    return RowList(columns_of(plan.names, plan.types), rows, _VERBS[change.kind])


def _ids(context: Context) -> Any:
    return context.around.catalog.items
