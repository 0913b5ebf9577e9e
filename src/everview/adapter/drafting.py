"""Definitions inside a transaction block: tried out at once on a draft of the catalog, made at COMMIT in one step.

A block may hold any number of definitions that are entries of the catalog and no more: tables, views, indexes that
need no view to be maintained, schemas, roles, comments, new names and owners. They become durable in one commit. Or it
may drop several objects, or apply several replacements, which is one commit as well. Anything else is a definition that
takes several steps, and has to be the only one of its block. Until COMMIT nobody else sees any of it, and ROLLBACK
leaves nothing.

A block of entries may write as well, also into tables that it makes: rows and entries are one commit, at one time. A
table gets its id anew at COMMIT, so what was written into one of the block's own is found by the table's name.

Each statement is carried out twice by the code that carries it out outside of blocks. When it is sent, it is with
stand-ins for storage and timeline, so that errors come at once and what follows in the block sees what it made. At
COMMIT it is on what the catalog holds by then, with collections made for real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.adapter.catalog.items import Table, View
from everview.adapter.catalog.state import Catalog
from everview.adapter.catalog.store import DraftCatalog
from everview.adapter.errors import INVALID_TRANSACTION, PROGRAM_LIMIT
from everview.adapter.execute.replacements import pairs_of
from everview.adapter.statements import nodes
from everview.adapter.tables import as_changes
from everview.adapter.transaction import DRAFTED, Transaction
from everview.compute.sql.errors import SqlError
from everview.storage.contract import Create, Drop, GlobalId

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator
    from everview.adapter.execute.context import Context

Handler = Callable[[Any, Any], Any]
DEFINITIONS_MAX = 1_000
_NAMESPACES = ("schema", "database", "role")
_ENTRIES = (
    *(nodes.CreateTable, nodes.CreateView, nodes.CreateIndex, nodes.CreateNamespace, nodes.CreateRole),
    *(nodes.AlterRole, nodes.Rename, nodes.AlterOwner, nodes.CommentOn),
)


def define(context: Context, statement: nodes.Statement, handler: Handler) -> Any:
    """Try a definition out, and keep it for the end of the block."""
    transaction = context.transaction
    transaction.check_may_define()
    kept = (*transaction.definitions, statement)
    if len(kept) > DEFINITIONS_MAX:
        raise SqlError(PROGRAM_LIMIT, f"a transaction can have at most {DEFINITIONS_MAX} definitions")
    alike = all(_is_entry(context, each) for each in kept) or _are_drops(kept)
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
    result = None
    if alike:
        # The statement sees the draft, and not what others have made since it was begun.
        before, draft = transaction.draft, transaction.draft or context.coordinator.catalog.draft()
        trial: Any = _Trial(context.coordinator, draft)
        transaction.draft = draft
        try:
            result = handler(replace(context, coordinator=trial), statement)
        except BaseException:
            transaction.draft = before
            raise
    elif _are_applied(kept):
        pairs_of(context, _applied_together(kept))
    transaction.definitions = kept
    return result


def conclude(context: Context, handlers: Callable[[nodes.Statement], Handler]) -> None:
    """COMMIT: make what the block defined."""
    transaction, coordinator = context.transaction, context.coordinator
    definitions, tried = transaction.definitions, transaction.draft
    transaction.definitions, transaction.draft = (), None
    if not definitions:
        return
    with context.session.silently() if len(definitions) > 1 or _is_entry(context, definitions[0]) else nullcontext():
        if _are_drops(definitions):
            merged = _merged(definitions)
            handlers(merged)(_anew(context), merged)
        elif _are_applied(definitions):
            together = _applied_together(definitions)
            handlers(together)(_anew(context), together)
        elif all(_is_entry(context, each) for each in definitions):
            assert tried is not None
            _enter(context, coordinator, definitions, tried, handlers)
        else:
            (only,) = definitions
            handlers(only)(_anew(context), only)


def _anew(context: Context) -> Context:
    return replace(context, around=context.session.surroundings())


def _enter(
    context: Context,
    coordinator: Coordinator,
    definitions: Sequence[nodes.Statement],
    tried: DraftCatalog,
    handlers: Callable[[nodes.Statement], Handler],
) -> None:
    transaction, turn = context.transaction, context.session.interrupts.turn()
    written = [id for id, (item, _) in transaction.written.items() if item.writer != DRAFTED]
    claimed = coordinator.timeline.exclusive(written, transaction.read, turn)
    with claimed, coordinator.catalog.lock, coordinator.timeline.still():
        draft = context.transaction.draft = coordinator.catalog.draft()
        making: Any = _Making(coordinator, draft)
        try:
            for each in definitions:
                handlers(each)(replace(_anew(context), coordinator=making), each)
            tables, writers = _written(transaction, tried.state, draft.state)
            timeline = coordinator.timeline
            exact = timeline.expiring.any_of(transaction.read)  # what leaves by itself until then is a change as well
            if exact:
                timeline.advance(timeline.now_ms)
            transaction.check_unchanged(coordinator.environment, timeline)
            coordinator.catalog.enter(draft, *timeline.step(tables, writers, timeline.upper if exact else None))
            transaction.written = {}
        except BaseException:
            making.discard()
            raise
        finally:
            context.transaction.draft = None
        for follow in making.after:
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


def _is_entry(context: Context, statement: nodes.Statement) -> bool:
    """Whether a definition is an entry of the catalog, and perhaps an empty collection."""
    match statement:
        case nodes.CreateView(materialized=materialized):
            return not materialized
        case nodes.CreateIndex(on=on):
            found = context.session.surroundings().find(on)
            return not isinstance(found, View)
        case _:
            return isinstance(statement, _ENTRIES)


def _are_drops(statements: Sequence[nodes.Statement]) -> bool:
    """Whether these are one DROP in several statements."""
    first = statements[0]
    return isinstance(first, nodes.Drop) and all(
        isinstance(each, nodes.Drop)
        and each.kind not in _NAMESPACES
        and (each.kind, each.cascade, each.if_exists) == (first.kind, first.cascade, first.if_exists)
        for each in statements
    )


def _merged(statements: Sequence[nodes.Statement]) -> nodes.Statement:
    drops = [each for each in statements if isinstance(each, nodes.Drop)]
    return replace(drops[0], paths=tuple(path for each in drops for path in each.paths))


def _are_applied(statements: Sequence[nodes.Statement]) -> bool:
    """Whether these are replacements that are applied in one step."""
    return all(isinstance(each, nodes.ApplyReplacement) for each in statements)


def _applied_together(statements: Sequence[nodes.Statement]) -> nodes.ApplyReplacement:
    applied = [each for each in statements if isinstance(each, nodes.ApplyReplacement)]
    parts = [replace(part, also=()) for each in applied for part in (each, *each.also)]
    return replace(parts[0], also=tuple(parts[1:]))


class _Still:
    """The timeline for who holds it already."""

    def __init__(self, timeline: Any) -> None:
        self._timeline = timeline

    @contextmanager
    def still(self) -> Iterator[None]:
        """It is."""
        yield

    def step(self) -> list[Any]:
        """The present is closed once, at the end."""
        return []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._timeline, name)


class _Making:
    """The coordinator for definitions that are made now, and entered in the catalog together."""

    def __init__(self, coordinator: Coordinator, draft: DraftCatalog) -> None:
        self._coordinator = coordinator
        self.catalog, self.timeline, self.environment = draft, _Still(coordinator.timeline), self
        self.after: list[Callable[[], None]] = []
        self._made: list[Any] = []
        self._expiring: list[GlobalId] = []

    def commit(self, *commands: Any) -> list[Any]:
        """For storage: collections are made at once. Until they are in the catalog, whoever opens next removes them."""
        results = self._coordinator.environment.commit(*commands)
        for command, result in zip(commands, results, strict=True):
            if isinstance(command, Create):
                self._made += result
        return results

    def serve(self, *args: Any) -> None:
        """An index is served once it is there."""
        self.after.append(lambda: self._coordinator.serve(*args))

    def expire(self, item: Table) -> None:
        """A table has its TTL from the first row on."""
        self._coordinator.expire(item)
        self._expiring.append(item.id)

    def discard(self) -> None:
        """Let go of collections that nobody will know of."""
        for id in self._expiring:
            before = self._coordinator.catalog.state.items.get(id)
            if isinstance(before, Table):
                self._coordinator.expire(before)
            else:
                self._coordinator.timeline.expiring.remove(id)
        if self._made:
            self._coordinator.environment.commit(*map(Drop, self._made))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coordinator, name)


class _Trial:
    """The coordinator for a definition that is only tried out: nothing is made, stopped or served."""

    def __init__(self, coordinator: Coordinator, draft: DraftCatalog) -> None:
        self._coordinator = coordinator
        self.catalog, self.timeline = draft, _Still(coordinator.timeline)
        self.environment = SimpleNamespace(commit=_pretended, shard=lambda id: SimpleNamespace(held={}))
        self.maintenance = SimpleNamespace(abandon=_nothing, restore=_nothing)
        self.sinks = SimpleNamespace(release=lambda item: [], restore=_nothing)
        self.serve = self.expire = self.stop_feeding = self.dropped = _nothing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coordinator, name)


def _nothing(*_: Any) -> None:
    return None


def _pretended(*commands: Any) -> list[Any]:
    capability = SimpleNamespace(token=DRAFTED)
    return [(capability, capability) if isinstance(each, Create) else None for each in commands]
