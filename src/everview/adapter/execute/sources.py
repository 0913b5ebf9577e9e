"""CREATE SOURCE and ALTER SOURCE … RESET, for all kinds of sources.

What is outside is looked at before the catalog is locked, for that takes its time. Collections are made next, and are
in the catalog with one commit: until then whoever opens the environment removes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from everview.adapter.catalog.items import ColumnInfo, Part, Source
from everview.adapter.catalog.state import shown_timeline
from everview.adapter.catalog.store import Change
from everview.adapter.connections import check_connects
from everview.adapter.contract import Done, Result
from everview.adapter.errors import INVALID_PARAMETER_VALUE, WRONG_OBJECT_TYPE, as_sql_errors
from everview.adapter.execute.alterations import existing
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import NAME_BYTES_MAX, columns_of, exists
from everview.adapter.execute.ownership import check_may_reach, check_owner
from everview.adapter.retention import lag_ms, retain_ms
from everview.adapter.secrets import without_secrets
from everview.adapter.sources.registry import kind_named, kind_of
from everview.adapter.statements import nodes
from everview.adapter.stream_locations import CONFINED, absolute
from everview.adapter.stream_timeline import StreamTimeline
from everview.adapter.tables import shard_schema
from everview.adapter.timeline import Timeline
from everview.compute.sql.errors import SqlError
from everview.sources.contract import Column, Given, Output, OwnTimeline, SourceKind, Table, Upstream
from everview.storage.contract import Create, Follow, ReadCapability

_DONE = Done("CREATE SOURCE")


def create_source(context: Context, statement: nodes.CreateSource) -> Result:
    kind, name, interrupts = kind_named(statement.kind), statement.path[-1], context.session.interrupts
    if exists(context, context.around.schema_for(statement.path), name, if_not_exists=statement.if_not_exists):
        return _DONE
    given, retain, own_name = _given(context, statement, kind)
    with as_sql_errors(), without_secrets():
        found = kind.look(given, lambda seconds: interrupts.wait(lambda: False, seconds))
    coordinator = context.coordinator
    with context.coordinator.catalog.lock:
        context = context.anew()
        schema = context.around.schema_for(statement.path)
        if exists(context, schema, name, if_not_exists=statement.if_not_exists):
            return _DONE
        for table in found.tables:
            if table.name:
                exists(context, schema, table.name, if_not_exists=False)
        id = coordinator.catalog.draw_id()
        timeline: Timeline | StreamTimeline = coordinator.timeline
        if own_name is not None:
            timeline = coordinator.timelines.named_or_new(own_name, id)
        with timeline.still():
            if isinstance(timeline, StreamTimeline):
                spec, at = replace(found.spec, timeline=OwnTimeline(timeline.name, timeline.key)), found.begins
                moves = timeline.began()
            else:  # which stands still while nobody needs it; a source begins at the present
                at = max(timeline.upper, timeline.now_ms)
                spec, moves = kind.begun(found.spec, at), timeline.step()
            change = coordinator.catalog.change(context.around.user)
            connection = kind.connection(spec)
            depends = () if connection is None else (connection,)
            if connection is not None and connection not in context.around.catalog.items:
                raise SqlError("42704", "the connection of the source was dropped meanwhile")
            item = Source(id, name, schema.id, context.around.user, retain_ms=retain, spec=spec, depends=depends)
            outputs, readers = _collections(context, change, item, found.tables, at)
            lag = lag_ms(retain)
            follows = [Follow(reader, timeline.history_clock, lag) for reader in readers]
            coordinator.catalog.commit(change, *follows, *kind.enter(id, outputs), *moves)
        coordinator.feed(coordinator.catalog.state.source(id))
    return _DONE


def _collections(
    context: Context, change: Change, item: Source, tables: Sequence[Table], at: int
) -> tuple[dict[str, Output], list[ReadCapability]]:
    """Make the collections of a source, which is one itself or has one for each table, and enter them."""
    catalog = context.coordinator.catalog
    if tables[0].name:
        change.create(item)
    ids = [catalog.draw_id() if table.name else item.id for table in tables]
    creates = [
        Create(id, shard_schema(table.types), _key_of(table), at=at) for id, table in zip(ids, tables, strict=True)
    ]
    made = context.coordinator.environment.commit(*creates)
    outputs: dict[str, Output] = {}
    for id, table, (read, write) in zip(ids, tables, made, strict=True):
        columns = tuple(ColumnInfo(each.name, each.type, each.nullable) for each in table.columns)
        filled = replace(item, id=id, columns=columns, reader=read.token, writer=write.token)
        if table.name:
            filled = replace(filled, name=table.name, depends=(item.id,), spec=Part(item.id, table.name))
        change.create(filled)
        outputs[table.name] = Output(id, write.token, table.columns)
    return outputs, [read for read, _ in made]


def _key_of(table: Table) -> list[str] | None:
    """The columns of the collection by which rows are looked up; None for all."""
    names = [each.name for each in table.columns]
    return [f"c{names.index(name)}" for name in table.key] or None


def _given(
    context: Context, statement: nodes.CreateSource, kind: SourceKind[Any]
) -> tuple[Given, int | None, str | None]:
    """What a statement says to the kind, how much history it wants, and the name of a timeline."""
    arguments = statement.arguments
    if kind.reaches is not None:
        what = f"create a source from {kind.reaches}"
        if check_may_reach(context, what, statement.kind, absolute(arguments)):
            arguments = {**arguments, CONFINED: "true"}
    options = dict(statement.options)
    retain = retain_ms(options.pop("retain history")) if "retain history" in options else None
    own_name = _timeline_name(options.pop("timeline")) if kind.keeps_times and "timeline" in options else None
    if unknown := options.keys() - {*kind.options}:
        known = (*kind.options, "retain history", *(["timeline"] if kind.keeps_times else []))
        hint = f"{' and '.join(each.upper() for each in known)} can be given"
        raise SqlError(INVALID_PARAMETER_VALUE, f"unknown option {min(unknown).upper()}", hint=hint)
    if (statement.tables is not None) != kind.connects:
        what = "takes no connection" if statement.tables is not None else "needs a connection"
        raise SqlError("42601", f"a source from {kind.name.upper()} {what}", hint=kind.usage)
    if statement.columns and not kind.takes_columns:
        raise SqlError("42P16", f"a {kind.name} has columns of its own", hint="leave them out")
    if any(each.default is not None for each in statement.columns):
        raise SqlError("42P16", "columns of a source have no defaults", detail="all values come from the stream")
    infos = columns_of(context, statement.columns) if statement.columns else ()
    columns = tuple(Column(each.name, each.type, each.nullable) for each in infos)
    name, upstream = statement.path[-1], _upstream(context, statement, kind)
    given = Given(statement.kind, statement.argument, arguments, options, columns, own_name is not None, name, upstream)
    return given, retain, own_name


def _upstream(context: Context, statement: nodes.CreateSource, kind: SourceKind[Any]) -> Upstream | None:
    """What a source with many tables takes, by a connection that its user owns."""
    said = statement.tables
    if said is None:
        return None
    connection = check_connects(context.around.relation(said.connection), kind.name)
    check_owner(context, connection)
    way = functools.partial(context.coordinator.connections.for_source, connection)
    return Upstream(connection.id, way, said.schemas, said.tables, said.text_columns, said.excluded)


def _timeline_name(text: str) -> str:
    if not text.strip() or len(text.encode()) > NAME_BYTES_MAX:
        hint = f"a name of at most {NAME_BYTES_MAX} bytes"
        raise SqlError(INVALID_PARAMETER_VALUE, f'invalid value for TIMELINE: "{text}"', hint=hint)
    return text


def _check_can(item: Source, what: str, can: Callable[[SourceKind[Any]], bool]) -> None:
    """Raise unless a source is a whole one of a kind that can do this."""
    if isinstance(item.spec, Part) or not can(kind_of(item.spec)):
        detail = "it is a part of a source" if isinstance(item.spec, Part) else f"it is a {item.spec.kind}"
        raise SqlError(WRONG_OBJECT_TYPE, f'source "{item.name}" cannot be {what}', detail=detail)


def pause_source(context: Context, statement: nodes.PauseSource, change: Change) -> Result:
    """ALTER SOURCE … PAUSE and RESUME: a paused source stays as it is, and local time goes on over it."""
    item = existing(context, Source, statement.path, if_exists=statement.if_exists, change=change)
    if item is not None:
        _check_can(item, "paused", lambda kind: kind.connects)
        paused = replace(item, paused=statement.paused)
        change.alter(paused, action="pause" if statement.paused else "resume")
        change.after.append(lambda: context.coordinator.feed_again(paused))
    return Done("ALTER SOURCE")


def reset_source(context: Context, statement: nodes.ResetSource) -> Result:
    """ALTER SOURCE … RESET: read the stream again, from its beginning."""
    coordinator, done = context.coordinator, Done("ALTER SOURCE")
    with context.coordinator.catalog.lock:
        context = context.anew()
        item = existing(context, Source, statement.path, if_exists=statement.if_exists)
        if item is None:
            return done
        _check_can(item, "reset", lambda kind: kind.resettable)
        if item.timeline is not None:
            detail = f"it has the times of its stream, on {shown_timeline(item.timeline.name)}, and these are told"
            hint = "drop it and create it again: it is then what the stream says now"
            raise SqlError(WRONG_OBJECT_TYPE, f'source "{item.name}" cannot be reset', detail=detail, hint=hint)
        with as_sql_errors(), without_secrets():
            coordinator.reset_source(item.id)
    return done
