"""Statements that drop, rename and alter objects, with regard for those that depend on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from everview.adapter.catalog import items
from everview.adapter.catalog.state import Catalog
from everview.adapter.catalog.store import Change
from everview.adapter.contract import Done, Result
from everview.adapter.errors import DEPENDENT_OBJECTS, DUPLICATE_TABLE, WRONG_OBJECT_TYPE
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import is_namespace, namespace, ttl_of
from everview.adapter.execute.ownership import check_may_give, check_owner, check_owner_of
from everview.adapter.retention import follow_history, retain_ms
from everview.adapter.statements import nodes
from everview.compute.sql.errors import DUPLICATE_COLUMN, UNDEFINED_COLUMN, SqlError, unsupported
from everview.compute.sql.references import qualified
from everview.storage.contract import Command

T = TypeVar("T", bound=items.Item)

NOTICED_MAX = 100  # objects that a cascade names


def drop(context: Context, statement: nodes.Drop, change: Change) -> Result:
    kind, if_exists = statement.kind, statement.if_exists
    if is_namespace(kind):
        for path in statement.paths:
            _drop_namespace(context, statement, path, change)
    else:
        named = [
            _allowed(context, kind, path, context.around.find_any(path), change, if_exists=if_exists)
            for path in statement.paths
        ]
        _drop_items(change, [item.id for item in named if item is not None], cascade=statement.cascade)
    return Done(f"DROP {kind.noun.upper()}")


def existing(
    context: Context, kind: type[T], path: tuple[str, ...], *, if_exists: bool, change: Change | None = None
) -> T | None:
    """The sound item that a name means, of a kind, and the user's. None, with a notice, where IF EXISTS allows that."""
    item = _allowed(context, kind, path, context.around.find(path), change, if_exists=if_exists)
    return None if item is None else checked_kind(item, kind)


def _allowed(
    context: Context,
    kind: items.ObjectKind,
    path: tuple[str, ...],
    item: items.Item | None,
    change: Change | None,
    *,
    if_exists: bool,
) -> items.Item | None:
    """The item that was found by a name, once it is of the kind, and the user's."""
    if item is None:
        if not if_exists:
            raise context.around.catalog.missing(kind.noun, path, context.around.names())
        (context.session if change is None else change).notice(
            f'{kind.noun} "{".".join(path)}" does not exist, skipping'
        )
        return None
    check_kind(item, kind)
    check_owner(context, item)
    return item


def check_kind(item: items.Item, kind: items.ObjectKind) -> None:
    """Raise unless the item is, or was before it was damaged, of this kind."""
    if kind not in (type(item), item.was if isinstance(item, items.Damaged) else None):
        article = "an" if kind.noun[0] in "aeiou" else "a"
        hint = f"use DROP {item.kind.upper()} or ALTER {item.kind.upper()}"
        raise SqlError(WRONG_OBJECT_TYPE, f'"{item.name}" is not {article} {kind.noun}', hint=hint)


def checked_kind(item: items.Item, kind: type[T]) -> T:
    """A sound item that has to be of this kind."""
    check_kind(item, kind)
    assert isinstance(item, kind)
    return item


def _drop_items(change: Change, ids: Iterable[str], *, cascade: bool) -> None:
    """Drop items, the indexes on them, and with CASCADE all that depends on them."""
    catalog = change.state
    wanted = set(ids)
    order = catalog.closure(wanted)
    for item in order:
        if item.id in wanted and item.whole != item.id and item.whole not in wanted:
            hint = f"drop the whole source: DROP SOURCE {catalog.items[item.whole].name}"
            raise SqlError(DEPENDENT_OBJECTS, f'"{item.name}" is part of a source', hint=hint)
    others = [
        item for item in order if item.id not in wanted and not (isinstance(item, items.Index) or item.whole in wanted)
    ]
    if others and not cascade:
        raise _dependents(catalog, wanted, others)
    for item in others[:NOTICED_MAX]:
        change.notice(f"drop cascades to {item.kind} {catalog.shown(item)}")
    for item in order:  # what depends comes first
        change.drop_item(item)


def _dependents(catalog: Catalog, wanted: set[str], others: list[items.Item]) -> SqlError:
    first = catalog.items[next(iter(sorted(wanted)))]
    lines = []
    for item in others:
        on = next((each for each in item.depends if each in wanted), None)
        target = f"{catalog.items[on].kind} {catalog.shown(catalog.items[on])}" if on else "it"
        lines.append(f"{item.kind} {catalog.shown(item)} depends on {target}")
    message = f'cannot drop {first.kind} "{first.name}" because other objects depend on it'
    hint = "use DROP … CASCADE to drop the dependent objects too"
    return SqlError(DEPENDENT_OBJECTS, message, detail="\n".join(lines[:NOTICED_MAX]), hint=hint)


def _drop_namespace(context: Context, statement: nodes.Drop, path: tuple[str, ...], change: Change) -> None:
    assert is_namespace(statement.kind)
    try:
        entry = namespace(context, statement.kind, path)
    except SqlError:
        if not statement.if_exists:
            raise
        change.notice(f'{statement.kind.noun} "{".".join(path)}" does not exist, skipping')
        return
    state = change.state
    check_owner_of(context, entry)
    if isinstance(entry, items.Role):
        _drop_role(context, change, entry)
        return
    one = isinstance(entry, items.Schema)
    schemas = [each for each in state.schemas.values() if (each.id if one else each.database) == entry.id]
    inside = [item.id for schema in schemas for item in state.in_schema(schema.id)]
    if inside and not statement.cascade:
        detail = "\n".join(
            f"{state.items[each].kind} {state.shown(state.items[each])}" for each in inside[:NOTICED_MAX]
        )
        message = f'cannot drop {entry.noun} "{path[-1]}" because it is not empty'
        raise SqlError(DEPENDENT_OBJECTS, message, detail=detail, hint="use CASCADE to drop what is in it too")
    if not one and path[-1] == context.around.database:
        raise SqlError("55006", "cannot drop the currently open database")
    _drop_items(change, inside, cascade=True)
    for schema in schemas:
        change.drop(schema)
    if not one:
        change.drop(entry)


def _drop_role(context: Context, change: Change, role: items.Role) -> None:
    state = change.state
    if role.name == context.around.user:
        raise SqlError("55006", "current user cannot be dropped")
    owned = [item for item in state.items.values() if item.owner == role.name]
    if owned:
        detail = "\n".join(f"owner of {item.kind} {state.shown(item)}" for item in owned[:NOTICED_MAX])
        message = f'role "{role.name}" cannot be dropped because some objects depend on it'
        raise SqlError(DEPENDENT_OBJECTS, message, detail=detail)
    change.drop(role)


# ALTER


def rename(context: Context, statement: nodes.Rename, change: Change) -> Result:
    kind, catalog = statement.kind, change.state
    done = Done(f"ALTER {kind.noun.upper()}")
    if not issubclass(kind, items.Item):
        raise unsupported(f"renaming a {kind.noun}")
    found, if_exists = context.around.find(statement.path), statement.if_exists
    item = _allowed(context, kind, statement.path, found, change, if_exists=if_exists)
    if item is None:
        return done
    if statement.column is not None:
        change.alter(_column_renamed(catalog, item, statement.column, statement.to))
        return done
    if catalog.item(catalog.schemas[item.schema], statement.to) is not None:
        raise SqlError(DUPLICATE_TABLE, f'relation "{statement.to}" already exists')
    before = catalog.full_name(item)
    change.alter(replace(item, name=statement.to), before=".".join(before))
    after = (*before[:2], statement.to)

    def renamed(query: str) -> str:
        return qualified(query, lambda path: after if tuple(path) == before else None)

    for each in catalog.dependents(item.id):
        if isinstance(each, items.View | items.MaterializedView):
            change.alter(replace(each, query=renamed(each.query)))
    for view in change.state.of(items.MaterializedView):  # what ROLLBACK REPLACEMENT would stage
        history = tuple(replace(each, query=renamed(each.query)) for each in view.history)
        if history != view.history:
            change.alter(replace(view, history=history))
    return done


def _column_renamed(catalog: Catalog, item: items.Item, column: str, to: str) -> items.Item:
    others = catalog.dependents(item.id)
    if others:
        detail = "\n".join(f"{each.kind} {catalog.shown(each)} depends on it" for each in others[:NOTICED_MAX])
        raise SqlError(DEPENDENT_OBJECTS, f'cannot rename columns of "{item.name}"', detail=detail)
    if column not in item.names:
        raise SqlError(UNDEFINED_COLUMN, f'column "{column}" of relation "{item.name}" does not exist')
    if to in item.names:
        raise SqlError(DUPLICATE_COLUMN, f'column "{to}" of relation "{item.name}" already exists')
    place = item.places[item.names.index(column)]

    def renamed(columns: Sequence[items.ColumnInfo]) -> tuple[items.ColumnInfo, ...]:
        pairs = zip(columns, items.places_of(columns), strict=True)
        return tuple(replace(each, name=to) if at == place else each for each, at in pairs)

    if isinstance(item, items.MaterializedView):
        history = tuple(replace(each, columns=renamed(each.columns)) for each in item.history)
        return replace(item, columns=renamed(item.columns), history=history)
    assert isinstance(item, items.Collection | items.View)
    return replace(item, columns=renamed(item.columns))


def alter_owner(context: Context, statement: nodes.AlterOwner, change: Change) -> Result:
    catalog, kind, owner = change.state, statement.kind, statement.owner
    catalog.named_role(owner)
    check_may_give(context, owner)
    if is_namespace(kind):
        entry = namespace(context, kind, statement.path)
        check_owner_of(context, entry)
        assert not isinstance(entry, items.Role)  # which has no owner, as the parser knows
        change.alter(replace(entry, owner=owner))
    else:
        item = context.around.relation(statement.path)
        check_kind(item, kind)
        check_owner(context, item)
        change.alter(replace(item, owner=owner), owner=owner)
    return Done(f"ALTER {kind.noun.upper()}")


def alter_ttl(context: Context, statement: nodes.AlterTtl, change: Change) -> Result:
    """ALTER TABLE … SET (TTL …) and RESET (TTL): rows that are due by then leave in the same step."""
    item = checked_kind(context.around.relation(statement.path), items.Table)
    check_owner(context, item)
    ttl = None if statement.ttl is None else ttl_of(item.columns, *statement.ttl)
    change.alter(replace(item, ttl=ttl))
    change.expiring.append(item.id)
    return Done("ALTER TABLE")


def alter_retain(context: Context, statement: nodes.AlterRetain, change: Change) -> Result:
    coordinator, item = context.coordinator, context.around.relation(statement.path)
    check_kind(item, statement.kind)
    check_owner(context, item)
    if not isinstance(item, items.Collection) or item.reader is None:
        raise SqlError(WRONG_OBJECT_TYPE, f"a {item.kind} has no history of its own")
    retain = None if statement.retain is None else retain_ms(statement.retain)
    change.alter(replace(item, retain_ms=retain))

    @contextmanager
    def following(change: Change) -> Iterator[Sequence[Command]]:
        with coordinator.timelines.of([item.id]).still():
            yield [follow_history(coordinator.environment, item, retain)]

    change.along.append(following)
    return Done(f"ALTER {statement.kind.noun.upper()}")
