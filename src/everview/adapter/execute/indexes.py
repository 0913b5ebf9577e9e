"""CREATE INDEX: rows of a relation found by key without a scan; of a view, that the view is maintained for it."""

from __future__ import annotations

from dataclasses import replace

from everview.adapter.catalog.items import Index, Item, Sink, Subscription, View
from everview.adapter.contract import Done, Result
from everview.adapter.errors import WRONG_OBJECT_TYPE, as_sql_errors
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import exists, install
from everview.adapter.execute.ownership import check_owner
from everview.adapter.execute.queries import maintained_plan, refuse_unmaintainable
from everview.adapter.retention import lag_ms
from everview.adapter.statements import nodes
from everview.compute.sql.errors import SqlError
from everview.compute.sql.references import quoted
from everview.storage.contract import Command, Follow, ReadCapability

_DONE = Done("CREATE INDEX")


def create_index(context: Context, statement: nodes.CreateIndex) -> Result:
    """CREATE INDEX and CREATE DEFAULT INDEX."""
    coordinator = context.coordinator
    with coordinator.catalog.lock:
        context = replace(context, around=context.session.surroundings())
        catalog = context.around.catalog
        on = context.around.relation(statement.on)
        if isinstance(on, Index | Sink | Subscription):
            raise SqlError(WRONG_OBJECT_TYPE, f'cannot create an index on {on.kind} "{on.name}"')
        check_owner(context, on)
        catalog.check_lasting(statement.name or "index", [on.id])
        keys = statement.keys or tuple(map(quoted, on.names))
        schema = catalog.schemas[on.schema]
        name = statement.name or _free_name(context, on, statement.keys)
        if exists(context, schema, name, if_not_exists=statement.if_not_exists):
            return _DONE
        with as_sql_errors():
            scalars = coordinator.planner.keys(catalog, on, keys, context.around)
        reader: ReadCapability | None = None
        commands: list[Command] = []
        if isinstance(on, View):
            bound = context.bind(f"TABLE {'.'.join(map(quoted, catalog.full_name(on)))}")
            refuse_unmaintainable(context, bound, "an indexed view")
            id, reader = install(context, maintained_plan(bound, len(on.columns)), bound)
            history = coordinator.timelines.of(bound.reads).history_clock
            commands.append(Follow(reader, history, lag_ms(None)))
        else:
            id = coordinator.catalog.allocate()
        token = None if reader is None else reader.token
        owner = context.around.user
        item = Index(id, name, on.schema, owner, depends=(on.id,), on=on.id, keys=keys, reader=token)
        change = coordinator.catalog.change(context.around.user)
        change.put_item(item, "create", on=catalog.shown(on))
        coordinator.catalog.commit(change, *commands)
        coordinator.serve(item, on, scalars)
    return _DONE


def _free_name(context: Context, on: Item, keys: tuple[str, ...]) -> str:
    plain = [key.strip('"') for key in keys if key.strip('"') in on.names]
    middle = "_".join(plain) if keys and len(plain) == len(keys) else "expr" if keys else "primary"
    schema = context.around.catalog.schemas[on.schema]
    first = f"{on.name}_{middle}_idx"
    name, number = first, 0
    while context.around.catalog.item(schema, name) is not None:
        number += 1
        name = f"{first}{number}"
    return name
