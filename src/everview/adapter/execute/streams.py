"""CREATE SOURCE … FROM CDC: a change stream, read into a collection of this environment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from everview.adapter.catalog.items import ColumnInfo, Item, Source
from everview.adapter.catalog.specs import ChangeStream, LoadGenerator, OwnTimeline
from everview.adapter.catalog.state import shown_timeline
from everview.adapter.contract import Done, Result
from everview.adapter.errors import INVALID_PARAMETER_VALUE, WRONG_OBJECT_TYPE, as_sql_errors
from everview.adapter.execute.alterations import checked_kind
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import NAME_BYTES_MAX, columns_of, exists
from everview.adapter.execute.ownership import check_may_reach, check_owner
from everview.adapter.retention import lag_ms, retain_ms
from everview.adapter.secrets import shown_arguments, without_secrets
from everview.adapter.statements import nodes
from everview.adapter.stream_feeder import POLL_MS, StreamFeeder
from everview.adapter.stream_places import (
    CONFINED,
    FILES,
    SparkWhenThere,
    absolute,
    begins_at,
    check_arguments,
    columns_in,
    says_schema,
    schema_in,
    schema_to_read,
)
from everview.adapter.stream_timeline import StreamTimeline
from everview.adapter.tables import shard_schema
from everview.adapter.timeline import Timeline
from everview.cdc.codec.contract import codec_for
from everview.cdc.schema import StreamSchema
from everview.cdc.source import entry, forget, known
from everview.compute.functions.precision import is_rounded
from everview.compute.sql.errors import SqlError
from everview.storage.contract import Create, Follow, GlobalId
from everview.storage.environment import Environment

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator

_DONE = Done("CREATE SOURCE")
_POLL_MS_MAX = 86_400_000
SCHEMA_WAIT_S, SCHEMA_POLL_S = 3.0, 0.1


def create_stream_source(context: Context, statement: nodes.CreateSource) -> Result:
    """CREATE SOURCE … FROM CDC FILES and FROM CDC KAFKA."""
    coordinator = context.coordinator
    schema = context.around.schema_for(statement.path)
    if exists(context, schema, statement.path[-1], if_not_exists=statement.if_not_exists):
        return _DONE
    what = "create a source from a change stream"
    if check_may_reach(context, what, statement.kind, absolute(statement.arguments)):
        statement = replace(statement, arguments={**statement.arguments, CONFINED: "true"})
    if any(each.default is not None for each in statement.columns):
        raise SqlError("42P16", "columns of a source have no defaults", detail="all values come from the stream")
    columns = columns_of(context, statement.columns) if statement.columns else _columns_of_stream(context, statement)
    for each in columns:
        if is_rounded(each.type if each.type.element is None else each.type.element):
            detail = "values come from the stream as they are, and are not rounded"
            raise SqlError("42P16", f'column "{each.name}" of a source cannot be {each.type}', detail=detail)
    options = dict(statement.options)
    retain = retain_ms(options.pop("retain history")) if "retain history" in options else None
    poll_ms = _poll_ms(options.pop("poll_ms", str(POLL_MS)))
    name = _timeline_name(options.pop("timeline")) if "timeline" in options else None
    if options:
        hint = "POLL_MS, RETAIN HISTORY and TIMELINE exist"
        raise SqlError(INVALID_PARAMETER_VALUE, f"unknown option {min(options).upper()}", hint=hint)
    arguments = absolute(statement.arguments)
    with as_sql_errors(), without_secrets():
        _check(statement.kind, arguments, schema_to_read(columns))
        begins = 0 if name is None else begins_at(statement.kind, arguments)
    shown = shown_arguments(statement.kind, arguments)
    spec = ChangeStream(statement.kind, arguments, poll_ms, shown=shown)
    with coordinator.catalog.lock:
        context = replace(context, around=context.session.surroundings())
        schema = context.around.schema_for(statement.path)
        if exists(context, schema, statement.path[-1], if_not_exists=statement.if_not_exists):
            return _DONE
        id = coordinator.catalog.allocate()
        timeline = _timeline(coordinator, name, id)
        if isinstance(timeline, StreamTimeline):
            spec = replace(spec, timeline=OwnTimeline(timeline.name, timeline.key))
        with timeline.still():
            at = begins if isinstance(timeline, StreamTimeline) else timeline.upper
            created = Create(id, shard_schema([each.type for each in columns]), at=at)
            ((read, write),) = coordinator.environment.commit(created)
            change = coordinator.catalog.change(context.around.user)
            item = Source(
                id=id,
                name=statement.path[-1],
                schema=schema.id,
                owner=context.around.user,
                columns=columns,
                retain_ms=retain,
                reader=read.token,
                writer=write.token,
                spec=spec,
            )
            change.put_item(item, "create")
            coordinator.catalog.commit(
                change,
                Follow(read, timeline.history_clock, lag_ms(retain)),
                entry(id, id, write.token),
                *(timeline.began() if isinstance(timeline, StreamTimeline) else timeline.step()),
            )
        coordinator.feed(item)
    return _DONE


def reset_source(context: Context, statement: nodes.ResetSource) -> Result:
    """ALTER SOURCE … RESET: read the stream again, from its beginning."""
    coordinator, done = context.coordinator, Done("ALTER SOURCE")
    with coordinator.catalog.lock:
        around = context.session.surroundings()
        item = around.find(statement.path)
        if item is None:
            if not statement.if_exists:
                raise around.catalog.missing("source", statement.path, around.names())
            context.session.notice(f'source "{".".join(statement.path)}" does not exist, skipping')
            return done
        item = checked_kind(item, Source)
        check_owner(replace(context, around=around), item)
        if not isinstance(item.spec, ChangeStream):
            detail = "it is a load generator" if isinstance(item.spec, LoadGenerator) else None
            raise SqlError(WRONG_OBJECT_TYPE, f'source "{item.name}" cannot be reset', detail=detail)
        if item.timeline is not None:
            detail = f"it has the times of its stream, on {shown_timeline(item.timeline.name)}, and these are told"
            hint = "drop it and create it again: it is then what the stream says now"
            raise SqlError(WRONG_OBJECT_TYPE, f'source "{item.name}" cannot be reset', detail=detail, hint=hint)
        with as_sql_errors(), without_secrets():
            coordinator.reset_source(item.id)
    return done


def _columns_of_stream(context: Context, statement: nodes.CreateSource) -> tuple[ColumnInfo, ...]:
    """The columns that the stream says it has; a sink that was just made may not have written anything yet."""
    arguments = absolute(statement.arguments)
    with as_sql_errors(), without_secrets():
        check_arguments(statement.kind, arguments)
        over = time.monotonic() + SCHEMA_WAIT_S
        while (found := schema_in(statement.kind, arguments)) is None:
            if not says_schema(statement.kind, arguments) or time.monotonic() >= over:
                detail = "the stream is empty, or does not say its schema"
                hint = "CREATE SOURCE name (column type, …) FROM CDC …"
                raise SqlError("42P16", "the columns of the source are not known", detail=detail, hint=hint)
            context.session.interrupts.wait(lambda: False, SCHEMA_POLL_S)
        return columns_in(found)


def _check(kind: str, arguments: Mapping[str, str], schema: StreamSchema) -> None:
    """What can be known before anything is made: where the stream is, and that what is there has these columns."""
    check_arguments(kind, arguments)
    codec_for(".jsonl", schema)  # raises if data of some type cannot be in a stream
    found = schema_in(kind, arguments)
    if found is not None:
        schema.check(found, "the stream")
    if kind != FILES:
        import everview.cdc.kafka  # noqa: F401  raises where its library is missing


def _poll_ms(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= _POLL_MS_MAX:
        raise SqlError(INVALID_PARAMETER_VALUE, f'invalid value for POLL_MS: "{text}"', hint="milliseconds, from 1 on")
    return int(text)


def _timeline_name(text: str) -> str:
    if not text.strip() or len(text.encode()) > NAME_BYTES_MAX:
        hint = f"a name of at most {NAME_BYTES_MAX} bytes"
        raise SqlError(INVALID_PARAMETER_VALUE, f'invalid value for TIMELINE: "{text}"', hint=hint)
    return text


def _timeline(coordinator: Coordinator, name: str | None, id: GlobalId) -> Timeline | StreamTimeline:
    """The timeline for a new source; `id` is what a new timeline is known by."""
    if name is None:
        return coordinator.timeline
    return coordinator.timelines.named(name) or coordinator.timelines.new(name, id)


def stream_feeder_of(
    environment: Environment, timeline: Timeline, item: Source, spec: ChangeStream, spark: SparkWhenThere
) -> StreamFeeder:
    """The feeder of a source that reads a change stream."""

    def now_ms() -> int:
        """The present, and what the timeline has closed already if that is later."""
        return max(timeline.now_ms, timeline.upper - 1)

    local = None if spec.timeline is not None else now_ms
    return StreamFeeder(environment, item, spec, now_ms=local, spark=spark)


def forget_source(environment: Environment, item: Source) -> None:
    """A source was dropped: remove what is remembered of its stream."""
    if isinstance(item.spec, ChangeStream):
        forget(environment, item.id)


def forget_lost_sources(environment: Environment, items: Mapping[str, Item]) -> None:
    """Remove what is remembered of streams whose sources are gone, for a process ended before it could."""
    for name in known(environment):
        if name not in items:
            forget(environment, name)
