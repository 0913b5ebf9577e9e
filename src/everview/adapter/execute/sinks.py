"""CREATE SINK and ALTER SINK.

Everything is checked before anything is written: the collection up to now, what the destination says of it, and the
statement itself. Looking at data and destinations takes its time, so it happens outside of the catalog's lock; the
sink then comes to be in one commit, with the catalog's entry and its hold on the collection.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from everview.adapter.catalog.items import Item, Schema
from everview.adapter.contract import Done, Result
from everview.adapter.errors import (
    CONFIGURATION_LIMIT,
    CONNECTION_FAILURE,
    INVALID_PARAMETER_VALUE,
    UNDEFINED_OBJECT,
    WRONG_OBJECT_TYPE,
    sql_error,
)
from everview.adapter.execute.alterations import check_kind
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import exists
from everview.adapter.execute.ownership import check_owner
from everview.adapter.secrets import masked, shown_arguments
from everview.adapter.sinks.contract import PAUSED_FLAG, STATE
from everview.adapter.sinks.materialized import Definition, MaterializedDelivery, named, parted, unique_name
from everview.adapter.sinks.streamed import StreamOptions
from everview.adapter.statements import nodes
from everview.adapter.statements.parse import boolean
from everview.adapter.stream_places import (
    absolute,
    check_arguments,
    is_empty,
    is_stream,
    make_place,
    outlet_of,
    schema_of,
    told_so_far,
)
from everview.cdc.errors import InvalidUse
from everview.cdc.reader import START
from everview.cdc.sink import Sink
from everview.compute.sql.errors import SqlError
from everview.errors import EverviewError
from everview.flow.materialization import Materialization
from everview.storage.contract import ReadCapability

SINKS_MAX = 1_000
_CREATED, _ALTERED = Done("CREATE SINK"), Done("ALTER SINK")


def create_sink(context: Context, statement: nodes.CreateSink) -> Result:
    """CREATE SINK."""
    if _taken(context, statement) is None:
        return _CREATED
    collection = _collection(context, statement)
    _wait(context, collection)
    create = _create_stream if is_stream(statement.into.kind) else _create_materialization
    with _failures(collection):
        create(context, statement, collection)
    return _CREATED


def _taken(context: Context, statement: nodes.CreateSink) -> Schema | None:
    """The schema for the sink; None if there is one of its name, and that is all right."""
    sinks = [item for item in context.around.catalog.items.values() if item.kind == "sink"]
    if len(sinks) >= SINKS_MAX:
        raise SqlError(CONFIGURATION_LIMIT, f"there are {SINKS_MAX} sinks already")
    schema = context.around.schema_for(statement.path)
    return None if exists(context, schema, statement.path[-1], if_not_exists=statement.if_not_exists) else schema


def _collection(context: Context, statement: nodes.CreateSink) -> Item:
    """What the sink delivers."""
    item = context.around.relation(statement.collection)
    if item.kind == "view":
        hint = "create a materialized view of it, and the sink from that"
        raise SqlError(WRONG_OBJECT_TYPE, f'cannot create a sink from view "{item.name}"', hint=hint)
    if not item.stored:
        detail = f"it is a {item.kind}" if item.kind != "source" else "it has tables, and no rows of its own"
        hint = "a sink delivers a table, a materialized view or a source"
        raise SqlError(WRONG_OBJECT_TYPE, f'cannot create a sink from "{item.name}"', detail=detail, hint=hint)
    if item.replaces is not None:
        detail = "it is a replacement that was not applied yet"
        raise SqlError(WRONG_OBJECT_TYPE, f'cannot create a sink from "{item.name}"', detail=detail)
    return item


def _wait(context: Context, collection: Item) -> None:
    """Until the collection is complete up to now: what is checked is then what is there."""
    coordinator = context.coordinator
    time = coordinator.timeline.upper - 1
    coordinator.timestamps.wait({collection.id}, time, context.session.interrupts, context.around.catalog)


@contextmanager
def _failures(collection: Item) -> Iterator[None]:
    """Whatever fails within, as an error of the statement: with names that users know, and without secrets."""
    try:
        yield
    except SqlError:
        raise
    except EverviewError as error:
        found = sql_error(error)
        texts = [None if text is None else masked(named(text, collection)) for text in (found.detail, found.hint)]
        message = masked(named(found.message, collection))
        raise SqlError(found.sqlstate, message, detail=texts[0], hint=texts[1]) from None
    except Exception as error:  # of a library that speaks to a destination
        message = "the destination failed"
        raise SqlError(CONNECTION_FAILURE, message, detail=masked(f"{type(error).__name__}: {error}")) from None


# Materializations


def _create_materialization(context: Context, statement: nodes.CreateSink, collection: Item) -> None:
    coordinator, kind = context.coordinator, statement.into.kind
    given = {**absolute(statement.into.arguments), **statement.options}
    config, resource, options = parted(kind, given)
    definition = Definition(
        unique_name(statement.path[-1]),
        kind,
        config,
        resource,
        statement.key,
        statement.delta_updates,
        statement.reductions,
        options,
    )
    _refuse_second(context, definition)
    environment = coordinator.environment
    binding = definition.binding(environment, collection)
    driver, spec = Materialization.validate(environment, definition.name, kind, config, [binding])
    Materialization.prepare(driver, spec)
    with coordinator.catalog.lock:
        item = _item(context, statement, collection)
        if item is None:
            return
        shown = {name: value for name, value in given.items() if name not in options}
        source = {**definition.to_source(), "shown": json.dumps(shown_arguments(kind, shown))}
        item = replace(item, source=source)
        change = coordinator.catalog.change(context.around.user)
        change.put_item(item, "create")
        with coordinator.timeline.still():
            made = Materialization.found(
                environment,
                driver,
                spec,
                options=definition.running_options(),
                readable=coordinator.sinks.readable,
                also=change.commands,
                spark=coordinator.sinks.spark,
            )
        coordinator.catalog.committed(change)
        coordinator.sinks.add(item, MaterializedDelivery(made, collection))


def _refuse_second(context: Context, definition: Definition) -> None:
    """Two sinks that write to one place would undo one another's work."""
    mine = (definition.driver, definition.config, definition.resource)
    for item in context.coordinator.catalog.state.items.values():
        if (
            item.kind != "sink"
            or is_stream(item.source["kind"])
            or definition.driver in ("webhook", "command", "kafka")
        ):
            continue  # those take what many send
        other = Definition.of(item)
        if (other.driver, other.config, other.resource) == mine:
            hint = "choose another place"
            raise SqlError("55006", f'sink "{item.name}" delivers to the same place already', hint=hint)


def _item(context: Context, statement: nodes.CreateSink, collection: Item) -> Item | None:
    """The entry in the catalog, under its lock: much may have happened since the statement was looked at first."""
    coordinator = context.coordinator
    context = replace(context, around=context.session.surroundings())
    schema = _taken(context, statement)
    if schema is None:
        return None
    if coordinator.catalog.state.items.get(collection.id) != collection:
        raise SqlError(UNDEFINED_OBJECT, f'"{collection.name}" was changed or dropped meanwhile', hint="try again")
    return Item(
        coordinator.catalog.allocate(),
        "sink",
        statement.path[-1],
        schema.id,
        context.around.user,
        on=collection.id,
        keys=statement.key,
        depends=(collection.id,),
        pins=coordinator.catalog.state.pins([collection.id]),
    )


# Change streams


def _create_stream(context: Context, statement: nodes.CreateSink, collection: Item) -> None:
    coordinator, kind = context.coordinator, statement.into.kind
    if statement.key or statement.delta_updates or statement.reductions:
        hint = "leave KEY, DELTA UPDATES and REDUCE out"
        raise SqlError(INVALID_PARAMETER_VALUE, "a change stream tells every change as it is", hint=hint)
    arguments, options = absolute(statement.into.arguments), dict(statement.options)
    joins = boolean(options.pop("join") or "true", "join") if "join" in options else False
    check_arguments(kind, arguments)
    StreamOptions.parse(kind, options)
    schema = schema_of(collection.columns)
    told = told_so_far(kind, arguments, schema) if joins else START
    if not joins and not is_empty(kind, arguments, schema):
        raise InvalidUse(
            "there is a change stream already",
            hint="name an empty place, or WITH (JOIN) go on with it, if it tells of the same collection",
        )
    make_place(kind, arguments)
    outlet = outlet_of(kind, arguments, schema)
    with coordinator.catalog.lock:
        item = _item(context, statement, collection)
        if item is None:
            return
        _check_alone(context, kind, arguments)
        item = replace(item, source=_stream_source(kind, arguments, options))
        change = coordinator.catalog.change(context.around.user)
        change.put_item(item, "create")
        with coordinator.timeline.still():
            reader = coordinator.environment.present(collection.id, collection.reader or "")
            assert isinstance(reader, ReadCapability)
            width = len(collection.columns)
            also = change.commands
            Sink.create(coordinator.environment, item.id, reader, outlet, joined=told, columns=width, also=also)
        coordinator.catalog.committed(change)
        coordinator.sinks.add(item, coordinator.sinks.stream(item, collection))


def _check_alone(context: Context, kind: str, arguments: Mapping[str, str]) -> None:
    """A sink that has written nothing yet cannot be seen where it writes to, and a second one would start elsewhere."""
    for item in context.coordinator.catalog.state.items.values():
        if item.kind == "sink" and item.source["kind"] == kind and json.loads(item.source["arguments"]) == arguments:
            hint = "choose another place; WITH (JOIN) is for sinks of other environments"
            raise SqlError("55006", f'sink "{item.name}" writes to the same place already', hint=hint)


def _stream_source(kind: str, arguments: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    return {
        "kind": kind,
        "arguments": json.dumps(arguments),
        "options": json.dumps(options),
        "shown": json.dumps(shown_arguments(kind, arguments)),
    }


# ALTER SINK


def alter_sink(context: Context, statement: nodes.AlterSink) -> Result:
    """ALTER SINK … PAUSE, RESUME and SET (SPLITS n)."""
    coordinator = context.coordinator
    with coordinator.catalog.lock:
        context = replace(context, around=context.session.surroundings())
        item = context.around.find(statement.path)
        if item is None:
            if not statement.if_exists:
                raise context.around.catalog.missing("sink", statement.path, context.around.names())
            context.session.notice(f'sink "{".".join(statement.path)}" does not exist, skipping')
            return _ALTERED
        check_kind(item, "sink")
        check_owner(context, item)
        assert item.on is not None
        with _failures(coordinator.catalog.state.items[item.on]):
            _alter(context, statement, item)
    return _ALTERED


def _alter(context: Context, statement: nodes.AlterSink, item: Item) -> None:
    coordinator = context.coordinator
    delivery = coordinator.sinks.get(item.id)
    change = coordinator.catalog.change(context.around.user)
    source = {name: value for name, value in item.source.items() if name != STATE}
    if statement.action == "splits":
        if not isinstance(delivery, MaterializedDelivery):
            detail = "it is a change stream" if is_stream(item.source["kind"]) else delivery.status().error
            raise SqlError(WRONG_OBJECT_TYPE, f'sink "{item.name}" has no splits', detail=detail)
        options = {**json.loads(source["options"]), "splits": statement.splits}
        changed = replace(item, source={**item.source, "options": json.dumps(options)})
        change.put_item(changed, "alter", splits=str(statement.splits))
        delivery.split(statement.splits, change.commands)
        coordinator.catalog.committed(change)
        return
    if statement.action == "pause":
        source[STATE] = PAUSED_FLAG
        delivery.halt()
    change.put_item(replace(item, source=source), "alter", action=statement.action)
    coordinator.catalog.commit(change)
    if statement.action == "resume":
        delivery.start()
