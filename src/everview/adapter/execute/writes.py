"""Statements that write to tables: INSERT, UPDATE, DELETE, TRUNCATE, and the rows of COPY.

What only brings rows is kept for the end of its transaction. What reads before it writes, standing alone, does both
while nobody else writes to what it reads; in a block it reads at the transaction's time, and the block's end checks
what it read. `mz_now()` is the time of the write in a statement that stands alone, and in a block the time of the
block, at which it reads: there is one for all of its statements, and COMMIT is later.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from everview.adapter.catalog.items import Item
from everview.adapter.contract import Done, Result
from everview.adapter.errors import as_sql_errors
from everview.adapter.execute.context import Context
from everview.adapter.peek import ordered
from everview.adapter.planner import Bound, at_time, speaks_of_time
from everview.adapter.results import RowList, columns_of
from everview.adapter.settings import STRICT
from everview.adapter.statements import nodes
from everview.adapter.tables import changes, check_rows
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir import relation as ir
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.collection import Rows, add
from everview.compute.sql.dml import RETURNED, Change
from everview.compute.sql.errors import SqlError, unsupported
from everview.compute.sql.references import quoted
from everview.storage.contract import GlobalId

_VERBS = {"insert": "INSERT 0", "update": "UPDATE", "delete": "DELETE"}


@dataclass(frozen=True, slots=True)
class Effect:
    """What a statement does to a table: its changes, the rows that RETURNING sees, how many, and what `mz_now()` is."""

    delta: Rows
    returned: Rows
    count: int
    time: int


def run_modify(context: Context, statement: nodes.Modify) -> Result:
    """INSERT, UPDATE and DELETE."""
    context.transaction.check_may_write()
    with as_sql_errors():
        change, bound = context.coordinator.planner.write(statement.text, context.around, context.values)
    item = context.around.catalog.items[change.target.id]
    bound = replace(bound, uses=bound.uses | {item.id})
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
    if context.session.alone and bound.reads:
        return _alone(context, item, change, bound)
    if context.session.alone and _speaks_of_time(change):
        if bound.system or bound.asked:  # these may take their time, and time must not stand still meanwhile
            return _alone(context, item, change, bound)
        return _stamped(context, item, change)
    time = context.time_for(_timed(bound) if _speaks_of_time(change) else bound)
    peeks, own = context.coordinator.peeks, context.own(bound)
    rows = peeks.collection(change.relation, time, context.around, optimized=bound.optimized, own=own)
    effect = _effect(item, change, rows, time)
    context.transaction.write(item, effect.delta)
    return effect


def _speaks_of_time(change: Change) -> bool:
    return speaks_of_time(change.relation) or (
        change.returning is not None and speaks_of_time(change.returning.relation)
    )


def _alone(context: Context, item: Item, change: Change, bound: Bound) -> Effect:
    """Read and write while nobody else writes to the same tables; durable when this returns.

    Views may take a while to be complete. That is waited for before anyone is held up, and again, shortly, after.
    """
    timeline, catalog = context.coordinator.timeline, context.coordinator.catalog
    if any(context.around.catalog.items[id].kind != "table" for id in bound.reads):
        context.time_for(bound, isolation=STRICT)
        context.session.restart_transaction()
    with timeline.exclusive([item.id], context.tables_below(bound), context.session.interrupts.turn()):
        effect = _attempt(context, item, change, bound)
        if effect is None:  # time has passed beyond that of the write, so it stands still for once
            with catalog.lock if bound.system else nullcontext(), timeline.still():
                effect = _attempt(context, item, change, bound)
    assert effect is not None
    return effect


def _attempt(context: Context, item: Item, change: Change, bound: Bound) -> Effect | None:
    """Read, and write what comes of it; None if it was to be at one time, which has passed meanwhile.

    A statement that speaks of its time means the time at which it writes, and reads what was there just before. So does
    one that reads tables whose rows leave by themselves, as some might between the two times.
    """
    timeline, timed = context.coordinator.timeline, _speaks_of_time(change)
    exact = timed or timeline.expiring.any_of({item.id, *context.tables_below(bound)})
    try:
        read = context.time_for(_timed(bound) if exact else bound, isolation=STRICT)
        relation = at_time(change.relation, read + 1) if timed else change.relation
        peeks, optimized = context.coordinator.peeks, bound.optimized and not timed
        effect = _effect(item, change, peeks.collection(relation, read, context.around, optimized=optimized), read + 1)
        if not effect.delta:
            return effect
        tables, writers = {item.id: changes(effect.delta, item.types)}, {item.id: item.writer or ""}
        return effect if timeline.write_exclusively(tables, writers, read + 1 if exact else None) else None
    finally:
        context.session.restart_transaction()


def _stamped(context: Context, item: Item, change: Change) -> Effect:
    """Rows that say at which time they are written: made when that is known."""
    made: list[Effect] = []

    def rows_at(time: int) -> dict[GlobalId, pa.Table]:
        rows = context.coordinator.peeks.collection(at_time(change.relation, time), time, context.around)
        made[:] = [_effect(item, change, rows, time)]
        return {item.id: changes(made[0].delta, item.types)}

    context.coordinator.timeline.write(rows_at, {item.id: item.writer or ""}, context.session.interrupts.turn())
    return made[0]


def _timed(bound: Bound) -> Bound:
    """The same, read at the present."""
    return replace(bound, present=True)


def _effect(item: Item, change: Change, rows: Rows, time: int) -> Effect:
    if any(multiplicity < 0 for multiplicity in rows.values()):
        raise SqlError("XX000", "internal error: rows with a negative multiplicity")
    count = sum(rows.values())
    if change.kind == "insert":
        check_rows(item, rows)
        return Effect(rows, rows, count, time)
    if change.kind == "delete":
        return Effect({row: -multiplicity for row, multiplicity in rows.items()}, rows, count, time)
    width = len(item.columns)
    delta: Rows = {}
    new: Rows = {}
    for row, multiplicity in rows.items():
        add(delta, row[:width], -multiplicity)
        add(delta, row[width:], multiplicity)
        add(new, row[width:], multiplicity)
    check_rows(item, new)
    return Effect(delta, new, count, time)


def _returning(context: Context, change: Change, effect: Effect) -> Result:
    plan = change.returning
    assert plan is not None
    others = [each.id for each in ir.walk(plan.relation) if isinstance(each, ir.Get) and each.id in _ids(context)]
    if others:
        raise unsupported("a query in RETURNING")
    result = evaluate(optimize(at_time(plan.relation, effect.time)), {RETURNED: effect.returned})
    if result.errors:
        raise SqlError(*min(result.errors))
    rows = ordered(result.rows, (), len(plan.names), ir.types(plan.relation))
    return RowList(columns_of(plan.names, plan.types), rows, _VERBS[change.kind])


def _ids(context: Context) -> Any:
    return context.around.catalog.items
