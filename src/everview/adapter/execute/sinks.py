"""CREATE SINK and ALTER SINK.

Everything is checked before anything is written: the collection up to now, what the destination says of it, and the
statement itself. Looking at data and destinations takes its time, so it happens outside of the catalog's lock; the
sink then comes to be in one commit, with the catalog's entry and its hold on the collections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from everview.adapter import errors
from everview.adapter.catalog.items import Connection, Item, Schema, Sink
from everview.adapter.catalog.specs import Delivered, DriverSink, StreamSink
from everview.adapter.connection_kinds import CONNECTIONS
from everview.adapter.connections import check_connects
from everview.adapter.contract import Done, Result
from everview.adapter.execute.alterations import existing
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import deliverable, exists
from everview.adapter.execute.ownership import check_may_reach, check_owner
from everview.adapter.secrets import masked, shown_arguments, without_passwords
from everview.adapter.sinks import definition
from everview.adapter.sinks.materialized import MaterializedDelivery
from everview.adapter.sinks.streamed import StreamOptions
from everview.adapter.statements import nodes
from everview.adapter.statements.options import boolean
from everview.adapter.statements.words import Path
from everview.adapter.stream_locations import CONFINED, LOCATIONS, StreamLocation, absolute, is_stream, schema_of
from everview.cdc import sink as streams
from everview.cdc.errors import InvalidUse
from everview.cdc.reader import START
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError, unsupported
from everview.errors import EverviewError
from everview.flow.drivers.contract import Driver
from everview.flow.drivers.registry import driver_class
from everview.flow.materialization import Materialization, Options
from everview.storage.contract import GlobalId, ReadCapability

SINKS_MAX = 1_000
COLLECTIONS_MAX = 100  # of one sink
_CREATED, _ALTERED = Done("CREATE SINK"), Done("ALTER SINK")


def create_sink(context: Context, statement: nodes.CreateSink) -> Result:
    if _taken(context, statement) is None:
        return _CREATED
    into, connection = statement.into, _connection(context, statement)
    places = (absolute(each.place) for each in statement.collections)
    given = absolute({**into.arguments, **statement.options})
    if connection is None and check_may_reach(context, "create a sink", into.kind, given, *places):
        options = {name: value for name, value in statement.options.items() if name != CONFINED}
        into = replace(into, arguments={**into.arguments, CONFINED: "true"})
        statement = replace(statement, into=into, options=options)
    collections = [_collection(context, each.path) for each in statement.collections]
    context.around.catalog.check_one_timeline([each.id for each in collections], "delivered by one sink")
    # Until the collections are complete up to now: what is checked is then what is there.
    coordinator = context.coordinator
    ids = {each.id for each in collections}
    time = max(0, coordinator.timelines.of(ids).upper - 1)
    coordinator.timestamps.wait(ids, time, context.session.interrupts, context.around.catalog)
    with _failures(collections, statement.into.kind):
        if is_stream(statement.into.kind):
            _create_stream(context, statement, collections)
        else:
            _create_materialization(context, statement, collections, connection)
    return _CREATED


def _connection(context: Context, statement: nodes.CreateSink) -> Connection | None:
    """The connection by which a sink delivers, if one is named: then it alone says how the destination is reached."""
    into = statement.into
    if not into.connection:
        return None
    if into.kind not in CONNECTIONS:
        hint = f"sinks into {' and '.join(each.upper() for each in CONNECTIONS)} take connections"
        raise unsupported(f"a connection of a sink into {into.kind.upper()}", hint=hint)
    connection = check_connects(context.around.relation(into.connection), into.kind)
    check_owner(context, connection)
    config, _, _ = definition.parted(into.kind, {**into.arguments, **statement.options})
    if own := sorted({*config} & CONNECTIONS[connection.to].sink_settings):
        raise SqlError(errors.INVALID_PARAMETER_VALUE, f'{own[0].upper()} is what connection "{connection.name}" says')
    return connection


def _taken(context: Context, statement: nodes.CreateSink) -> Schema | None:
    """The schema for the sink. None if a sink of this name exists and IF NOT EXISTS was given."""
    if len(context.around.catalog.of(Sink)) >= SINKS_MAX:
        raise SqlError(errors.CONFIGURATION_LIMIT, f"there are {SINKS_MAX} sinks already")
    schema = context.around.schema_for(statement.path)
    return None if exists(context, schema, statement.path[-1], if_not_exists=statement.if_not_exists) else schema


def _collection(context: Context, path: Path) -> Item:
    """A collection that a sink can deliver."""
    item = deliverable(context.around, path, "sink from")
    if item.replaces is not None:
        detail = "it is a replacement that was not applied yet"
        raise SqlError(errors.WRONG_OBJECT_TYPE, f'cannot create a sink from "{item.name}"', detail=detail)
    return item


@contextmanager
def _failures(collections: Sequence[Item], kind: str) -> Iterator[None]:
    """Whatever fails within, as an error of the statement: with names that users know, and without secrets.

    Drivers know what is secret in their settings, and hide it themselves; of streams it is guessed by names.
    """
    shown = masked if is_stream(kind) else without_passwords
    try:
        yield
    except SqlError:
        raise
    except EverviewError as error:
        found = errors.sql_error(error)
        texts = [
            None if text is None else shown(definition.named(text, collections)) for text in (found.detail, found.hint)
        ]
        message = shown(definition.named(found.message, collections))
        raise SqlError(found.sqlstate, message, detail=texts[0], hint=texts[1]) from None
    except Exception as error:  # of a library that speaks to a destination
        message = "the destination failed"
        raise SqlError(errors.CONNECTION_FAILURE, message, detail=masked(f"{type(error).__name__}: {error}")) from None


# Materializations


def _create_materialization(
    context: Context, statement: nodes.CreateSink, collections: Sequence[Item], connection: Connection | None
) -> None:
    coordinator, kind = context.coordinator, statement.into.kind
    given = {**absolute(statement.into.arguments), **statement.options}
    config, resource, options = definition.parted(kind, given)
    delivered = _delivered(statement, collections, resource)
    by = None if connection is None else connection.id
    sink = DriverSink(kind, definition.unique_name(statement.path[-1]), config, delivered, options, connection=by)
    config = coordinator.connections.config_of(sink)
    _refuse_second(context, sink)
    environment = coordinator.environment
    bound = definition.bindings(environment, sink, collections)
    driver, spec = Materialization.validate(environment, sink.name, kind, config, bound)
    state = Materialization.prepare(driver, spec)
    with coordinator.catalog.lock:
        shown = {name: value for name, value in given.items() if name not in options}
        if len(delivered) == 1:
            shown |= absolute(statement.collections[0].place)
        else:
            places = [_visible(driver, absolute(each.place)) for each in statement.collections]
            delivered = tuple(replace(each, shown=own) for each, own in zip(delivered, places, strict=True))
        visible = replace(sink, collections=delivered, shown=_visible(driver, shown))
        item = _item(context, statement, collections, visible, connection)
        if item is None:
            return
        change = coordinator.catalog.change(context.around.user)
        change.create(item)
        with coordinator.timelines.of(each.id for each in collections).still():
            made = Materialization.found(
                environment,
                driver,
                spec,
                options=Options(**sink.options),  # type: ignore[arg-type]
                state=state,
                readable=coordinator.sinks.readable,
                also=change.commands,
                spark=coordinator.sinks.spark,
            )
        coordinator.catalog.committed(change)
        coordinator.sinks.add(item, MaterializedDelivery(made, collections))


def _delivered(
    statement: nodes.CreateSink, collections: Sequence[Item], resource: Mapping[str, Any]
) -> tuple[Delivered, ...]:
    """Where each collection goes, and how. `resource` is what stands behind INTO: for a sink of one collection."""
    kind, several = statement.into.kind, len(collections) > 1
    if len(collections) > COLLECTIONS_MAX:
        raise SqlError(errors.CONFIGURATION_LIMIT, f"a sink has at most {COLLECTIONS_MAX} collections")
    if several and (misplaced := {*statement.into.arguments, *statement.options} & definition.place_options(kind)):
        name = min(misplaced).upper()
        hint = f"write it behind each collection: FROM {collections[0].name} ({name} '…') KEY (…), …"
        message = f"{name} says where one collection goes, and the sink has {len(collections)}"
        raise SqlError(errors.INVALID_PARAMETER_VALUE, message, hint=hint)
    found = []
    for each, collection in zip(statement.collections, collections, strict=True):
        given = absolute(each.place)
        own = definition.place_of(kind, collection.name, given)
        if twice := sorted({*own} & {*resource}):
            raise SqlError(SYNTAX_ERROR, f"option {twice[0].upper()} specified more than once")
        found.append(Delivered(collection.id, {**resource, **own}, each.key, each.delta_updates, each.reductions))
    return tuple(found)


def _visible(driver: Driver, given: Mapping[str, str]) -> dict[str, str]:
    """Settings as anyone may see them."""
    shown = shown_arguments(driver.name, given)
    return {name: driver.shown(name, given[name]) or each for name, each in shown.items()}


def _refuse_second(context: Context, sink: DriverSink) -> None:
    """Two sinks that write to one place would undo one another's work."""
    if driver_class(sink.kind).shared:
        return
    for item in context.coordinator.catalog.state.of(Sink):
        other = item.spec
        if not isinstance(other, DriverSink) or (other.kind, other.connection) != (sink.kind, sink.connection):
            continue
        if _place(other.config) != _place(sink.config):
            continue
        theirs = [each.resource for each in other.collections]
        if any(each.resource in theirs for each in sink.collections):
            hint = "choose another place"
            raise SqlError("55006", f'sink "{item.name}" delivers to the same place already', hint=hint)


def _item(
    context: Context,
    statement: nodes.CreateSink,
    collections: Sequence[Item],
    spec: DriverSink | StreamSink,
    connection: Connection | None = None,
) -> Sink | None:
    """The entry in the catalog, under its lock: much may have happened since the statement was looked at first."""
    coordinator = context.coordinator
    context = context.anew()
    schema = _taken(context, statement)
    if schema is None:
        return None
    for each in (*collections, *(() if connection is None else (connection,))):
        if coordinator.catalog.state.items.get(each.id) != each:
            raise SqlError(errors.UNDEFINED_OBJECT, f'"{each.name}" was changed or dropped meanwhile', hint="try again")
    ids = tuple(dict.fromkeys(each.id for each in collections))
    pins = coordinator.catalog.state.pins(ids)
    id, owner = coordinator.catalog.draw_id(), context.around.user
    depends = ids if connection is None else (*ids, connection.id)
    return Sink(id, statement.path[-1], schema.id, owner, depends=depends, pins=pins, spec=spec)


# Change streams


def _create_stream(context: Context, statement: nodes.CreateSink, collections: Sequence[Item]) -> None:
    coordinator, kind = context.coordinator, statement.into.kind
    if len(collections) > 1:
        hint = "create a sink for each; their streams tell the same times, so a reader can put them together again"
        raise unsupported(f"{kind.upper()} of several collections", hint=hint)
    (collection,), (said,) = collections, statement.collections
    if said.place:
        hint = "options of a change stream stand behind INTO and WITH"
        message = f'{min(said.place).upper()} does not say where "{collection.name}" goes'
        raise SqlError(errors.INVALID_PARAMETER_VALUE, message, hint=hint)
    if said.key or said.delta_updates or said.reductions:
        hint = "leave KEY, DELTA UPDATES and REDUCE out"
        raise SqlError(errors.INVALID_PARAMETER_VALUE, "a change stream tells every change as it is", hint=hint)
    widened = next((each.name for each in collection.columns if each.earlier), None)
    if widened is not None:  # the stream begins with the past, in which the column is elsewhere
        hint = f'make a materialized view of "{collection.name}", and a sink of that'
        raise unsupported(f'a change stream of column "{widened}", whose type became wider', hint=hint)
    arguments, options = absolute(statement.into.arguments), dict(statement.options)
    joins = boolean(options.pop("join") or "true", "join") if "join" in options else False
    location = LOCATIONS[kind].parse(arguments)
    StreamOptions.parse(location, options)
    schema = schema_of(collection.columns)
    told = location.told(schema) if joins else START
    if joins and told == START:  # it would begin at its own time, and so does whoever makes the stream
        _check_alone(context, location)
        raise InvalidUse(
            "there is no change stream to join yet",
            detail="a stream can be joined when its first writer has told how far it is complete",
            hint="leave JOIN out to begin one, or try again in a moment",
        )
    if not joins and not location.is_empty(schema):
        raise InvalidUse(
            "there is a change stream already",
            hint="name an empty place, or WITH (JOIN) go on with it, if it tells of the same collection",
        )
    location.make(schema)
    outlet = location.outlet(schema)
    with coordinator.catalog.lock:
        spec = StreamSink(location, collection.id, options, shown_arguments(kind, arguments))
        item = _item(context, statement, collections, spec)
        if item is None:
            return
        _check_alone(context, location)
        change = coordinator.catalog.change(context.around.user)
        change.create(item)
        with coordinator.timelines.of([collection.id]).still():
            reader = coordinator.environment.present(collection.id, collection.reader or "")
            assert isinstance(reader, ReadCapability)
            environment, also, places = coordinator.environment, change.commands, collection.places
            streams.Sink.create(environment, item.id, reader, outlet, joined=told, columns=places, also=also)
        coordinator.catalog.committed(change)
        coordinator.sinks.add(item, coordinator.sinks.stream(item, collection))


def _check_alone(context: Context, location: StreamLocation, own: GlobalId | None = None) -> None:
    """A sink that has written nothing yet cannot be seen where it writes to, and a second one would start elsewhere."""
    for item in context.coordinator.catalog.state.of(Sink):
        if isinstance(item.spec, StreamSink) and item.spec.location == location and item.id != own:
            hint = "choose another place; WITH (JOIN) is for sinks of other environments"
            raise SqlError("55006", f'sink "{item.name}" writes to the same place already', hint=hint)


def _place(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What says where something is."""
    return {name: value for name, value in arguments.items() if name != CONFINED}


# ALTER SINK


def alter_sink(context: Context, statement: nodes.AlterSink) -> Result:
    """ALTER SINK … PAUSE, RESUME, BACKFILL and SET (option value, …)."""
    coordinator = context.coordinator
    if statement.action == "set":
        _check_settings(context.anew(), statement)
    with context.coordinator.catalog.lock:
        context = context.anew()
        item = existing(context, Sink, statement.path, if_exists=statement.if_exists)
        if item is None:
            return _ALTERED
        with _failures(definition.seen_collections(coordinator.catalog.state, item), item.spec.kind):
            if statement.action == "set":
                _set(context, statement, item)
            elif statement.action == "backfill":
                _backfill(context, item)
            else:
                _pause_or_resume(context, statement, item)
    return _ALTERED


def _is_confined(item: Sink) -> bool:
    """Whether a sink has to stay in folders that are allowed, whatever is changed about it."""
    if isinstance(item.spec, StreamSink):
        return item.spec.location.confined
    return boolean(str(item.spec.config.get(CONFINED, False)), CONFINED)


def _pause_or_resume(context: Context, statement: nodes.AlterSink, item: Sink) -> None:
    coordinator = context.coordinator
    delivery = coordinator.sinks.get(item.id)
    change = coordinator.catalog.change(context.around.user)
    pauses = statement.action == "pause"
    if pauses:
        delivery.halt()
    change.alter(replace(item, paused=pauses), action=statement.action)
    coordinator.catalog.commit(change)
    if not pauses:
        delivery.start()


def _backfill(context: Context, item: Sink) -> None:
    coordinator = context.coordinator
    delivery = coordinator.sinks.get(item.id)
    if not isinstance(delivery, MaterializedDelivery):
        detail = "a change stream tells what happened" if isinstance(item.spec, StreamSink) else delivery.status().error
        raise SqlError(errors.WRONG_OBJECT_TYPE, f'sink "{item.name}" cannot be delivered anew', detail=detail)
    change = coordinator.catalog.change(context.around.user)
    change.alter(item, action="backfill")
    delivery.materialization.backfill(change.commands)
    coordinator.catalog.committed(change)


def _check_settings(context: Context, statement: nodes.AlterSink) -> None:
    """Raise unless the user may change how the sink delivers, and its destination can be reached by the new settings.

    Superusers may, and owners of sinks that are confined. It takes its time, so it is done outside of the lock.
    """
    item = existing(context, Sink, statement.path, if_exists=statement.if_exists)
    if item is None:
        return
    if not _is_confined(item):
        check_may_reach(context, "change how a sink delivers", "", absolute(statement.options))
    collections = definition.seen_collections(context.around.catalog, item)
    environment = context.coordinator.environment
    with _failures(collections, item.spec.kind):
        if isinstance(item.spec, StreamSink):
            _check_stream_reach(context, item, item.spec, collections[0], statement.options)
            return
        changed, config = _changed(item.spec, statement.options)
        if config:
            bound, whole = (
                definition.bindings(environment, changed, collections),
                context.coordinator.connections.config_of(changed),
            )
            Materialization.check_reach(environment, changed.name, changed.kind, whole, bound)


def _changed(spec: DriverSink, given: Mapping[str, str]) -> tuple[DriverSink, dict[str, Any]]:
    """The sink with new settings, and those of them that say how its destination is reached."""
    config, _, options = definition.parted(spec.kind, given)
    places = {each.name for each in driver_class(spec.kind).options if each.place}
    if fixed := [name for name in given if name in places | definition.place_options(spec.kind)]:
        hint = "create another sink, and drop this one"
        raise SqlError(errors.INVALID_PARAMETER_VALUE, f"{fixed[0].upper()} of a sink cannot be changed", hint=hint)
    if spec.connection is not None and (own := sorted({*config} & CONNECTIONS[spec.kind].sink_settings)):
        hint = "ALTER CONNECTION … SET changes it for all that use it"
        raise SqlError(
            errors.INVALID_PARAMETER_VALUE, f"{own[0].upper()} is what the sink's connection says", hint=hint
        )
    return replace(spec, config={**spec.config, **config}, options={**spec.options, **options}), config


def _set(context: Context, statement: nodes.AlterSink, item: Sink) -> None:
    coordinator = context.coordinator
    delivery = coordinator.sinks.get(item.id)
    if isinstance(item.spec, StreamSink):
        _set_stream(context, statement, item, item.spec)
        return
    changed, config = _changed(item.spec, statement.options)
    given = {name: statement.options[name] for name in config}
    whole = coordinator.connections.config_of(changed)
    shown = {**changed.shown, **(_visible(driver_class(changed.kind)(whole), given) if given else {})}
    item = replace(item, spec=replace(changed, shown=shown))
    change = coordinator.catalog.change(context.around.user)
    change.alter(item, options=", ".join(sorted(statement.options)))
    if set(statement.options) == {"splits"}:
        if not isinstance(delivery, MaterializedDelivery):
            detail = delivery.status().error
            raise SqlError(errors.WRONG_OBJECT_TYPE, f'sink "{item.name}" has no splits', detail=detail)
        delivery.materialization.split(int(changed.options["splits"]), change.commands)
        coordinator.catalog.committed(change)
        return
    delivery.halt()
    if config and isinstance(delivery, MaterializedDelivery):
        delivery.materialization.change_settings(change.commands)
        coordinator.catalog.committed(change)
    else:
        coordinator.catalog.commit(change)
    again = coordinator.sinks.reopen(item, coordinator.catalog.state)
    if "splits" in statement.options and isinstance(again, MaterializedDelivery):
        again.materialization.split(int(changed.options["splits"]), ())


def _changed_stream(spec: StreamSink, given: Mapping[str, str]) -> StreamSink:
    """A change stream with new settings; which stream it is stays as it is."""
    arguments = {name: value for name, value in given.items() if name in spec.location.arguments}
    options = {**spec.options, **{name: value for name, value in given.items() if name not in arguments}}
    location = spec.location.changed(arguments)
    StreamOptions.parse(location, options)
    shown = {**spec.shown, **shown_arguments(spec.kind, arguments)}
    return replace(spec, location=location, options=options, shown=shown)


def _check_stream_reach(
    context: Context, item: Sink, spec: StreamSink, collection: Item, given: Mapping[str, str]
) -> None:
    """An error unless the topic of a change stream is found by the new settings, with what was written to it."""
    location = _changed_stream(spec, given).location
    if location == spec.location:
        return
    status = context.coordinator.sinks.status(item.id)
    location.schema()  # asks the schema registry, if there is one
    if location.is_empty(schema_of(collection.columns)) and status is not None and status.frontier is not None:
        raise InvalidUse(
            f"{location.title} has nothing of the stream there",
            detail="the sink has written to it, so these are other brokers",
            hint="create another sink, and drop this one",
        )


def _set_stream(context: Context, statement: nodes.AlterSink, item: Sink, spec: StreamSink) -> None:
    """Other options of a change stream, and other ways to reach it, from now on; where it is stays where it is."""
    coordinator, changed = context.coordinator, _changed_stream(spec, statement.options)
    _check_alone(context, changed.location, item.id)
    item = replace(item, spec=changed)
    change = coordinator.catalog.change(context.around.user)
    change.alter(item, options=", ".join(sorted(statement.options)))
    coordinator.sinks.get(item.id).halt()
    coordinator.catalog.commit(change)
    coordinator.sinks.reopen(item, coordinator.catalog.state)
