"""Statements that write to tables: INSERT, UPDATE, DELETE, TRUNCATE, and the rows of COPY.

What only brings rows is kept for the end of its transaction. What reads before it writes, standing alone, does both
while nobody else writes to what it reads; in a block it reads at the transaction's time, and the block's end checks
what it read. `mz_now()` is the time of the write in a statement that stands alone, and in a block the time of the
block, at which it reads: there is one for all of its statements, and COMMIT is later.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, replace

import pyarrow as pa

from everview.adapter.bound_statement import BoundQuery, at_time, speaks_of_time
from everview.adapter.catalog.items import Table
from everview.adapter.contract import Done, Result
from everview.adapter.errors import as_sql_errors
from everview.adapter.execute.context import Context
from everview.adapter.execute.given_rows import made_of
from everview.adapter.peek import NOTHING, OwnWrites
from everview.adapter.peek_rows import ordered
from everview.adapter.results import RowList, columns_of
from everview.adapter.settings import STRICT
from everview.adapter.statements import nodes
from everview.adapter.tables import changes, check_rows
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir import relation as ir
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.arrow import rows_from_arrow
from everview.compute.rows.collection import Rows, add
from everview.compute.sql.dml import RETURNED, Change, ChangeKind
from everview.compute.sql.errors import SqlError, unsupported
from everview.storage.contract import GlobalId

ATTEMPTS_MAX = 4  # at a statement that reads and writes, before it holds up others
AHEAD_MS_MIN = 5  # how far ahead the time of a write is chosen at least, if the next one has passed

_VERBS = {ChangeKind.INSERT: "INSERT 0", ChangeKind.UPDATE: "UPDATE", ChangeKind.DELETE: "DELETE"}


@dataclass(frozen=True, slots=True)
class Effect:
    """What a statement does to a table: its changes, the rows that RETURNING sees, how many, and what `mz_now()` is."""

    delta: Rows
    returned: Rows
    count: int
    time: int


def run_modify(context: Context, statement: nodes.Modify) -> Result:
    context.transaction.check_may_write()
    bound = context.statement
    make = made_of(bound)
    if make is None or bound is None or bound.change is None:
        return _modify(context, *context.bind_change(statement.text))
    item = context.around.catalog.items[bound.change.target.id]
    assert isinstance(item, Table)
    with as_sql_errors():
        rows = make(context.values, context.around)
    check_rows(item, rows)
    context.transaction.write(item, rows)
    return Done(f"{_VERBS[bound.change.kind]} {sum(rows.values())}")


def _modify(context: Context, change: Change, bound: BoundQuery) -> Result:
    item = context.around.catalog.items[change.target.id]
    assert isinstance(item, Table)
    bound = replace(bound, uses=bound.uses | {item.id})
    effect = _carried_out(context, item, change, bound)
    if change.returning is None:
        return Done(f"{_VERBS[change.kind]} {effect.count}")
    plan = change.returning
    assert plan is not None
    items = context.around.catalog.items
    if any(isinstance(each, ir.Get) and each.id in items for each in ir.walk(plan.relation)):
        raise unsupported("a query in RETURNING")
    result = evaluate(optimize(at_time(plan.relation, effect.time)), {RETURNED: effect.returned})
    if result.errors:
        raise SqlError(*min(result.errors))
    rows = ordered(result.rows, (), len(plan.names), ir.types(plan.relation))
    return RowList(columns_of(plan.names, plan.types), rows, _VERBS[change.kind])


def run_truncate(context: Context, statement: nodes.Truncate) -> Result:
    context.transaction.check_may_write()
    for path in statement.tables:
        with as_sql_errors():
            change, bound = context.coordinator.planner.delete_all(path, context.around)
        _modify(context, change, bound)
    return Done("TRUNCATE TABLE")


def _carried_out(context: Context, item: Table, change: Change, bound: BoundQuery) -> Effect:
    if context.session.alone and bound.reads:
        return _alone(context, item, change, bound)
    if context.session.alone and _speaks_of_time(change):
        if bound.system or bound.asked:  # these may take their time, and time must not stand still meanwhile
            return _alone(context, item, change, bound)
        return _stamped(context, item, change)
    time = context.time_for(_timed(bound) if _speaks_of_time(change) else bound)
    peeks, own = context.coordinator.peeks, context.own(bound, time)
    rows = peeks.collection(change.relation, time, context.around, optimized=bound.optimized, own=own)
    effect = _effect(item, change, rows, time)
    context.transaction.write(item, effect.delta)
    return effect


def _speaks_of_time(change: Change) -> bool:
    return speaks_of_time(change.relation) or (
        change.returning is not None and speaks_of_time(change.returning.relation)
    )


def _alone(context: Context, item: Table, change: Change, bound: BoundQuery) -> Effect:
    """Read and write while nobody else writes to the same tables; durable when this returns.

    Views may take a while to be complete. That is waited for before the turn comes, so that it holds up nobody. They
    are read at that time if no table below has changed since.

    A statement that speaks of its time means the time T at which it writes. It is evaluated for the next T. If the
    clock passes T meanwhile, as it does with every write of others, it is evaluated again for a T that is ahead by more
    than that took. Only if this fails again and again, time stands still for everyone until it is done.
    """
    timeline, catalog = context.coordinator.timeline, context.coordinator.catalog
    turn, below = context.session.interrupts.turn(), context.tables_below(bound)
    attempt = _Attempt(context, item, change, bound)
    waits = any(not isinstance(context.around.catalog.items[id], Table) for id in bound.reads)
    ahead_ms = 0
    for _ in range(ATTEMPTS_MAX):
        begun = time.monotonic()
        try:
            if waits:
                attempt.read_time()
            with timeline.exclusive([item.id], below, turn):
                effect = attempt.run(ahead_ms, waited=waits)
        finally:
            context.session.restart_transaction()
        if effect is not None:
            return effect
        if attempt.may_be_ahead:
            ahead_ms = 2 * max(ahead_ms, int((time.monotonic() - begun) * 1000)) + AHEAD_MS_MIN
    try:
        with (
            timeline.exclusive([item.id], below, turn),
            catalog.lock if bound.system else nullcontext(),
            timeline.still() if attempt.exact else nullcontext(),
        ):
            effect = attempt.run(0, waited=False)
    finally:
        context.session.restart_transaction()
    assert effect is not None
    return effect


class _Attempt:
    """Reads and writes at one time, or finds that the time has passed."""

    def __init__(self, context: Context, item: Table, change: Change, bound: BoundQuery) -> None:
        self._context, self._item, self._change, self._bound = context, item, change, bound
        self._timeline = context.coordinator.timeline
        below = {item.id, *context.tables_below(bound)}
        self._timed = _speaks_of_time(change)
        # Rows that leave by themselves between the two times would be read, and be gone when the result is written.
        self.exact = self._timed or self._timeline.expiring.any_of(below)
        # Views cannot be asked what they will hold when rows below them have left.
        self.may_be_ahead = self.exact and not self._timeline.expiring.any_of(below - bound.reads - {item.id})

    def read_time(self) -> int:
        """The time at which the statement reads, once all that it reads is complete there."""
        return self._context.time_for(_timed(self._bound) if self.exact else self._bound, isolation=STRICT)

    def run(self, ahead_ms: int, *, waited: bool) -> Effect | None:
        """Read, and write what comes of it, `ahead_ms` from now.

        None if the clock has passed that time, or if a table has changed since the time was chosen, where that was
        before the turn came (`waited`).
        """
        context, item, change, timeline = self._context, self._item, self._change, self._timeline
        begun = time.monotonic()
        at, own = None, NOTHING
        with timeline.still() if self.exact else nullcontext():  # for a moment: what is waited for is there
            read = self.read_time()
            if waited and not context.transaction.unchanged(context.coordinator.environment, timeline):
                return None
            if self.exact:
                at, own = self._write_time(timeline.now_ms + ahead_ms if ahead_ms else 0)
        relation = change.relation if at is None or not self._timed else at_time(change.relation, at)
        peeks, optimized = context.coordinator.peeks, self._bound.optimized and not self._timed
        rows = peeks.collection(relation, read, context.around, optimized=optimized, own=own)
        effect = _effect(item, change, rows, read + 1 if at is None else at)
        if not effect.delta:
            return effect
        if at is not None:  # the clock should not run ahead of the wall
            context.session.interrupts.wait(lambda: timeline.upper > at, begun + ahead_ms / 1000 - time.monotonic())
        tables, writers = {item.id: changes(effect.delta, item.types)}, {item.id: item.writer or ""}
        return None if timeline.write_exclusively(tables, writers, at) is None else effect

    def _write_time(self, wanted: int) -> tuple[int, OwnWrites]:
        """The time of the write, `wanted` or the next one, and what will have left the tables just before it."""
        next_time, items = self._timeline.upper, self._context.around.catalog.items
        leaving = self._timeline.expiring.leaving(self._bound.reads, wanted) if wanted > next_time else None
        if leaving is None:
            return next_time, NOTHING
        return wanted, OwnWrites({id: rows_from_arrow(rows, items[id].types) for id, rows in leaving.items()})


def _stamped(context: Context, item: Table, change: Change) -> Effect:
    """Rows that say at which time they are written: made when that is known."""
    made: list[Effect] = []

    def rows_at(time: int) -> dict[GlobalId, pa.Table]:
        rows = context.coordinator.peeks.collection(at_time(change.relation, time), time, context.around)
        made[:] = [_effect(item, change, rows, time)]
        return {item.id: changes(made[0].delta, item.types)}

    context.coordinator.timeline.write(rows_at, {item.id: item.writer or ""}, context.session.interrupts.turn())
    return made[0]


def _timed(bound: BoundQuery) -> BoundQuery:
    """The same, read at the present."""
    return replace(bound, present=True)


def _effect(item: Table, change: Change, rows: Rows, time: int) -> Effect:
    if any(multiplicity < 0 for multiplicity in rows.values()):
        raise SqlError("XX000", "internal error: rows with a negative multiplicity")
    count = sum(rows.values())
    if change.kind is ChangeKind.INSERT:
        check_rows(item, rows)
        return Effect(rows, rows, count, time)
    if change.kind is ChangeKind.DELETE:
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
