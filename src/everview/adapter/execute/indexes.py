"""CREATE INDEX: rows of a relation found by key without a scan; of a view, that the view is maintained for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.adapter.catalog.items import NO_RELATIONS, Index, Item
from everview.adapter.catalog.store import Change
from everview.adapter.contract import Done, Result
from everview.adapter.errors import WRONG_OBJECT_TYPE, as_sql_errors
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import exists, install
from everview.adapter.execute.ownership import check_owner
from everview.adapter.execute.queries import maintained_plan, refuse_unmaintainable
from everview.adapter.retention import lag_ms
from everview.adapter.statements import nodes
from everview.compute.ir.scalar import Scalar
from everview.compute.sql.errors import SqlError
from everview.compute.sql.references import quoted
from everview.storage.contract import Follow

_DONE = Done("CREATE INDEX")


def create_index(context: Context, statement: nodes.CreateIndex, change: Change) -> Result:
    """CREATE INDEX and CREATE DEFAULT INDEX, on what is stored."""
    found = _planned(context, statement, change)
    if found is not None:
        on, item, keys = found
        item = replace(item, id=context.coordinator.catalog.draw_id())
        change.create(item, on=context.around.catalog.shown(on))
        change.after.append(lambda: context.coordinator.serve(item, on, keys))
    return _DONE


def create_maintained_index(context: Context, statement: nodes.CreateIndex) -> Result:
    """The same on a view, which is maintained for it."""
    coordinator = context.coordinator
    with context.coordinator.catalog.lock:
        context = context.anew()
        catalog, found = context.around.catalog, _planned(context, statement)
        if found is None:
            return _DONE
        on, item, keys = found
        bound = context.bind(nodes.Named(catalog.full_name(on)))
        refuse_unmaintainable(context, bound, "an indexed view")
        id, reader = install(context, maintained_plan(bound, len(on.columns)), bound)
        item = replace(item, id=id, reader=reader.token)
        change = coordinator.catalog.change(context.around.user)
        change.create(item, on=catalog.shown(on))
        history = coordinator.timelines.of(bound.reads).history_clock
        coordinator.catalog.commit(change, Follow(reader, history, lag_ms(None)))
        coordinator.serve(item, on, keys)
    return _DONE


def _planned(
    context: Context, statement: nodes.CreateIndex, change: Change | None = None
) -> tuple[Item, Index, Sequence[Scalar]] | None:
    """The relation, the index without an id, and its keys. None if it exists and IF NOT EXISTS was given."""
    catalog = context.around.catalog
    on = context.around.relation(statement.on)
    if isinstance(on, (Index, *NO_RELATIONS)):
        raise SqlError(WRONG_OBJECT_TYPE, f'cannot create an index on {on.kind} "{on.name}"')
    check_owner(context, on)
    catalog.check_lasting(statement.name or "index", [on.id])
    keys = tuple(map(str, statement.keys or map(quoted, on.names)))
    name = statement.name or _free_name(context, on, statement.keys)
    if exists(context, catalog.schemas[on.schema], name, if_not_exists=statement.if_not_exists, change=change):
        return None
    with as_sql_errors():
        scalars = context.coordinator.planner.keys(catalog, on, keys, context.around)
    return on, Index("", name, on.schema, context.around.user, depends=(on.id,), on=on.id, keys=keys), scalars


def _free_name(context: Context, on: Item, keys: Sequence[str]) -> str:
    plain = [key.strip('"') for key in keys if key.strip('"') in on.names]
    middle = "_".join(plain) if keys and len(plain) == len(keys) else "expr" if keys else "primary"
    schema = context.around.catalog.schemas[on.schema]
    first = f"{on.name}_{middle}_idx"
    name, number = first, 0
    while context.around.catalog.item(schema, name) is not None:
        number += 1
        name = f"{first}{number}"
    return name
