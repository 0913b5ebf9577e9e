"""Definitions, decided as values and then done: alone in one step, or several of a transaction block at COMMIT.

A plan reads the catalog and says what a statement changes (`catalog.store.Change`): entries, tables to be made, what is
dropped, what goes along and follows, and what the client is told. It writes nothing: ids are drawn in memory, and given
by the commit that makes their objects. So a block plans a statement when it is sent, on top of those before it: errors
come at once, and what follows sees what it made. At COMMIT all are planned again, on what the catalog holds by then,
and done in one commit. Until then nobody else sees any of it, and ROLLBACK leaves nothing.

A block may hold any number of definitions that are entries of the catalog and no more: tables, views, indexes that need
no view to be maintained, schemas, roles, secrets, comments, new names and owners. It may write as well, also into
tables that it makes: rows and entries are one commit, at one time. A table gets its id anew at COMMIT, so what was
written into one of the block's own is found by the table's name. Or a block may drop several objects, or apply several
replacements, which is one commit as well. Anything else takes several steps, and has to be the only one of its block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from everview.adapter.catalog.items import Database, Role, Schema, Sink, Source, Table, is_maintained
from everview.adapter.catalog.state import Catalog
from everview.adapter.catalog.store import Change
from everview.adapter.contract import Result
from everview.adapter.errors import INVALID_TRANSACTION, PROGRAM_LIMIT
from everview.adapter.execute.replacements import pairs_of
from everview.adapter.retention import lag_ms
from everview.adapter.statements import nodes
from everview.adapter.tables import as_changes, shard_schema
from everview.adapter.timeline import CLOCK, HISTORY
from everview.adapter.transaction import DRAFTED, Transaction
from everview.compute.sql.errors import SqlError
from everview.storage.contract import Command, Create, Drop, Follow, GlobalId
from everview.storage.errors import StorageError

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator
    from everview.adapter.execute.context import Context

Handler: TypeAlias = "Callable[[Context, nodes.Statement], Result]"
Plan: TypeAlias = "Callable[[Context, Any, Change], Result]"  # for a statement of its kind
PlanOf: TypeAlias = "Callable[[Context, nodes.Statement], Plan | None]"  # None: it takes several steps
DEFINITIONS_MAX = 1_000
_NAMESPACES = (Schema, Database, Role)
# What else they do is not done for what a block has made itself.
_ALONE = (nodes.Drop, nodes.AlterTtl, nodes.AlterRetain, nodes.CreateSubscription, nodes.AlterSubscription)


# One by itself


def carry_out(context: Context, statement: nodes.Statement, plan: Plan, *, told: bool = False) -> Result:
    """Do what a plan says; `told` if the client was told its notices when it was rehearsed."""
    coordinator = context.coordinator
    with coordinator.catalog.lock:
        change = coordinator.catalog.change(context.around.user)
        try:
            result = plan(context.anew(), statement, change)
        finally:
            if not told:
                _tell(context, change)
        if change.dropped:
            drop(context, change)
        else:
            apply(coordinator, change)
    return result


def _tell(context: Context, change: Change) -> None:
    for each in change.notices:
        context.session.notice(*each)


def apply(coordinator: Coordinator, change: Change) -> None:
    """Make a change durable, with the collections that it needs. The catalog is locked."""
    if not (change.puts or change.after):
        return
    timeline = coordinator.timeline
    with timeline.still():
        with _made(coordinator, change) as follows:
            steps = timeline.step() if change.made or change.expiring else ()
            coordinator.catalog.commit(change, *follows, *steps)
        for follow in change.after:
            follow()


@contextmanager
def _made(coordinator: Coordinator, change: Change) -> Iterator[Sequence[Command]]:
    """Make the collections of a change, and begin what goes along with it: gives what is to be committed with it.

    What fails within undoes them.
    Until they are in the catalog, whoever opens the environment next removes them.
    """
    environment, timeline = coordinator.environment, coordinator.timeline
    follows: list[Command] = []
    tables = [change.state.items[id] for id in change.made]
    creates = [Create(each.id, shard_schema(each.types), at=timeline.upper) for each in tables]
    pairs = environment.commit(*creates) if creates else []
    try:
        for table, (read, write) in zip(tables, pairs, strict=True):
            assert isinstance(table, Table)
            change.fill(replace(table, reader=read.token, writer=write.token))
            follows += [Follow(read, HISTORY, lag_ms(table.retain_ms)), Follow(write, CLOCK)]
        for id in change.expiring:  # from the first row on, and what is due leaves in this step
            _expire(coordinator, change.state, id)
        with ExitStack() as stack:
            yield [*follows, *(each for along in change.along for each in stack.enter_context(along(change)))]
    except BaseException:
        for id in change.expiring:
            _expire(coordinator, coordinator.catalog.state, id)
        with suppress(StorageError):
            environment.commit(*(Drop(each) for pair in pairs for each in pair))
        raise


def _expire(coordinator: Coordinator, catalog: Catalog, id: GlobalId) -> None:
    table = catalog.items.get(id)
    if isinstance(table, Table):
        coordinator.expire(table)
    else:
        coordinator.timeline.expiring.remove(id)


def drop(context: Context, change: Change) -> None:
    """Drop what a change drops: what depends comes first, so nothing is let go that another still follows."""
    coordinator, order = context.coordinator, change.dropped
    maintained = [item.id for item in order if is_maintained(item)]
    for item in order:
        coordinator.stop_feeding(item)
    for id in maintained:
        coordinator.maintenance.abandon(id)
    try:
        with coordinator.timeline.still():
            commands = [command for item in order for command in coordinator.release(item)]
            coordinator.catalog.commit(change, *_once(commands))
    except BaseException:
        for id in maintained:
            coordinator.maintenance.restore(id)
        for item in order:
            if isinstance(item, Source):
                coordinator.feed(item)
            elif isinstance(item, Sink):
                coordinator.sinks.restore(item)
        raise
    for item in order:
        if (left := coordinator.dropped(item)) is not None:
            context.session.notice(f'sink "{item.name}" was dropped, and something stays: {left}', "01000", "WARNING")


def _once(commands: Sequence[Command]) -> list[Command]:
    """The commands, with each capability dropped once: of what is damaged, all are, whoever else drops them too."""
    kept: list[Command] = []
    seen: set[str] = set()
    for command in commands:
        if isinstance(command, Drop):
            if command.capability.token in seen:
                continue
            seen.add(command.capability.token)
        kept.append(command)
    return kept


# In a block


def define(context: Context, statement: nodes.Statement, plan_of: PlanOf) -> Result | None:
    """Plan a definition, and keep it for the end of the block."""
    transaction = context.transaction
    transaction.check_may_define()
    kept = (*transaction.definitions, statement)
    if len(kept) > DEFINITIONS_MAX:
        raise SqlError(PROGRAM_LIMIT, f"a transaction can have at most {DEFINITIONS_MAX} definitions")
    plans = [plan_of(context, each) for each in kept]
    alike = all(map(_is_entry, kept, plans)) or _are_drops(kept)
    if len(kept) > 1 and not alike and not _are_applied(kept):
        raise SqlError(
            "0A000",
            "these definitions cannot be made in one transaction",
            detail="several are one step if they are tables, views, schemas, roles and comments, if all are DROPs,"
            " or if all are APPLY REPLACEMENT",
            hint="commit first; in drivers, set autocommit",
        )
    if transaction.written and (not alike or isinstance(statement, nodes.Drop)):
        raise SqlError(
            INVALID_TRANSACTION,
            "a transaction that has written cannot have such definitions",
            detail="materialized views, sources, sinks and DROPs take more steps than one, and writes are one step",
            hint="commit first; in drivers, set autocommit",
        )
    result, plan, before = None, plans[-1], transaction.draft
    if plan is not None:
        # The statement sees the draft, and not what others have made since it was begun.
        transaction.draft = draft = (before or context.coordinator.catalog.change(context.around.user)).copy()
        try:
            result = plan(context.anew(), statement, draft)
            before = draft.copy() if alike else before
        finally:
            transaction.draft = before
            _tell(context, draft)
    elif _are_applied(kept):
        pairs_of(context, _applied_together(kept))
    transaction.definitions = kept
    return result


def conclude(context: Context, plan_of: PlanOf, handler: Handler) -> None:
    """COMMIT: make what the block defined. `handler` is for what is one definition."""
    transaction = context.transaction
    definitions, tried = transaction.definitions, transaction.draft
    transaction.definitions, transaction.draft = (), None
    if not definitions:
        return
    first, plans = definitions[0], [plan_of(context, each) for each in definitions]
    if all(map(_is_entry, definitions, plans)):
        assert tried is not None
        _enter(context, definitions, tried.state, plan_of)
    elif _are_applied(definitions):
        handler(context.anew(), _applied_together(definitions))
    elif plans[0] is None:
        handler(context.anew(), first)
    else:
        if isinstance(first, nodes.Drop):
            drops = [each for each in definitions if isinstance(each, nodes.Drop)]
            first = replace(first, paths=tuple(path for each in drops for path in each.paths))
        carry_out(context.anew(), first, plans[0], told=True)


def _enter(context: Context, definitions: Sequence[nodes.Statement], tried: Catalog, plan_of: PlanOf) -> None:
    coordinator, transaction, turn = context.coordinator, context.transaction, context.session.interrupts.turn()
    written = [id for id, (item, _) in transaction.written.items() if item.writer != DRAFTED]
    claimed = coordinator.timeline.exclusive(written, transaction.read, turn)
    timeline = coordinator.timeline
    with claimed, coordinator.catalog.lock, timeline.still():
        try:
            change = coordinator.catalog.change(context.around.user).copy()
            for each in definitions:
                transaction.draft = change = change.copy()
                plan = plan_of(context, each)
                if plan is None:
                    message = "what a definition of this transaction speaks of is another thing by now"
                    raise SqlError("40001", message, hint="try the transaction again")
                plan(context.anew(), each, change)
            with _made(coordinator, change) as follows:
                tables, writers = _written(transaction, tried, change.state)
                exact = transaction.reads_expiring(timeline)  # what leaves by itself until then is a change too
                if exact:
                    timeline.advance(timeline.now_ms)
                transaction.check_unchanged(coordinator.environment, timeline)
                steps = timeline.step(tables, writers, timeline.upper if exact else None)
                coordinator.catalog.commit(change, *follows, *steps)
            transaction.written = {}
        finally:
            transaction.draft = None
        for follow in change.after:
            follow()


def _written(
    transaction: Transaction, tried: Catalog, made: Catalog
) -> tuple[dict[GlobalId, pa.Table], dict[GlobalId, str]]:
    """What the block writes, by the tables that there are now, and the tokens of those who may write to them."""
    tables: dict[GlobalId, pa.Table] = {}
    writers: dict[GlobalId, str] = {}
    for id, (item, parts) in transaction.written.items():
        own = item.writer == DRAFTED
        found = made.find(tried.full_name(tried.items[id]), "", ()) if own else made.items.get(id)
        if not isinstance(found, Table) or found.columns != item.columns:
            raise SqlError(
                "40001",
                f'table "{item.name}" is not what it was when it was written to',
                detail="another session has defined or dropped it before this transaction could commit",
                hint="try the transaction again",
            )
        tables[found.id] = as_changes(parts, item.types)
        writers[found.id] = found.writer or ""
    return tables, writers


def _is_entry(statement: nodes.Statement, plan: Plan | None) -> bool:
    """Whether a definition is an entry of the catalog, and perhaps an empty collection."""
    return plan is not None and not isinstance(statement, _ALONE)


def _are_drops(statements: Sequence[nodes.Statement]) -> bool:
    """Whether these are one DROP in several statements."""
    first = statements[0]
    return isinstance(first, nodes.Drop) and all(
        isinstance(each, nodes.Drop)
        and each.kind not in _NAMESPACES
        and (each.kind, each.cascade, each.if_exists) == (first.kind, first.cascade, first.if_exists)
        for each in statements
    )


def _are_applied(statements: Sequence[nodes.Statement]) -> bool:
    """Whether these are replacements that are applied in one step."""
    return all(isinstance(each, nodes.ApplyReplacement) for each in statements)


def _applied_together(statements: Sequence[nodes.Statement]) -> nodes.ApplyReplacement:
    applied = [each for each in statements if isinstance(each, nodes.ApplyReplacement)]
    parts = [replace(part, also=()) for each in applied for part in (each, *each.also)]
    return replace(parts[0], also=tuple(parts[1:]))
