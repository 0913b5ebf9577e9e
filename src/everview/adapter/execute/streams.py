"""CREATE SOURCE … FROM CDC: a change stream, read into a collection of this environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from everview.adapter.catalog.items import Item
from everview.adapter.contract import Done, Result
from everview.adapter.errors import INVALID_PARAMETER_VALUE, as_sql_errors
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import columns_of, exists, lag_ms, retain_ms
from everview.adapter.secrets import shown_arguments, without_secrets
from everview.adapter.statements import nodes
from everview.adapter.stream_feeder import POLL_MS, StreamFeeder
from everview.adapter.stream_places import (
    FILES,
    SparkWhenThere,
    absolute,
    check_arguments,
    folder_of,
    is_stream,
    schema_to_read,
)
from everview.adapter.tables import shard_schema
from everview.adapter.timeline import HISTORY, Timeline
from everview.cdc.codec.contract import codec_for
from everview.cdc.schema import StreamSchema
from everview.cdc.source import entry, forget, known
from everview.compute.functions.precision import is_rounded
from everview.compute.sql.errors import SqlError
from everview.storage.contract import Create, Follow
from everview.storage.environment import Environment

_DONE = Done("CREATE SOURCE")
_POLL_MS_MAX = 86_400_000


def create_stream_source(context: Context, statement: nodes.CreateSource) -> Result:
    """CREATE SOURCE … FROM CDC FILES and FROM CDC KAFKA."""
    coordinator = context.coordinator
    if not statement.columns:
        hint = "CREATE SOURCE name (column type, …) FROM CDC …"
        raise SqlError("42P16", "a source from a change stream needs its columns", hint=hint)
    if any(each.default is not None for each in statement.columns):
        raise SqlError("42P16", "columns of a source have no defaults", detail="all values come from the stream")
    columns = columns_of(context, statement.columns)
    for each in columns:
        if is_rounded(each.type if each.type.element is None else each.type.element):
            detail = "values come from the stream as they are, and are not rounded"
            raise SqlError("42P16", f'column "{each.name}" of a source cannot be {each.type}', detail=detail)
    options = dict(statement.options)
    retain = retain_ms(options.pop("retain history")) if "retain history" in options else None
    poll_ms = _poll_ms(options.pop("poll_ms", str(POLL_MS)))
    if options:
        hint = "POLL_MS and RETAIN HISTORY exist"
        raise SqlError(INVALID_PARAMETER_VALUE, f"unknown option {min(options).upper()}", hint=hint)
    schema = context.around.schema_for(statement.path)
    if exists(context, schema, statement.path[-1], if_not_exists=statement.if_not_exists):
        return _DONE
    arguments = absolute(statement.arguments)
    with as_sql_errors(), without_secrets():
        _check(statement.kind, arguments, schema_to_read(columns))
    source = {
        "kind": statement.kind,
        "arguments": json.dumps(arguments),
        "shown": json.dumps(shown_arguments(statement.kind, arguments)),
        "poll_ms": str(poll_ms),
    }
    with coordinator.catalog.lock:
        context = replace(context, around=context.session.surroundings())
        schema = context.around.schema_for(statement.path)
        if exists(context, schema, statement.path[-1], if_not_exists=statement.if_not_exists):
            return _DONE
        id = coordinator.catalog.allocate()
        with coordinator.timeline.still():
            created = Create(id, shard_schema([each.type for each in columns]), at=coordinator.timeline.upper)
            ((read, write),) = coordinator.environment.commit(created)
            change = coordinator.catalog.change(context.around.user)
            item = Item(
                id, "source", statement.path[-1], schema.id, context.around.user, columns,
                retain_ms=retain, reader=read.token, writer=write.token, source=source,
            )  # fmt: skip
            change.put_item(item, "create")
            coordinator.catalog.commit(
                change,
                Follow(read, HISTORY, lag_ms(retain)),
                entry(id, id, write.token),
                *coordinator.timeline.step(),
            )
        coordinator.feed(item)
    return _DONE


def _check(kind: str, arguments: Mapping[str, str], schema: StreamSchema) -> None:
    """What can be known before anything is made: where the stream is, and that what is there has these columns."""
    check_arguments(kind, arguments)
    codec_for(".jsonl", schema)  # raises if data of some type cannot be in a stream
    if kind == FILES:
        folder = folder_of(arguments)
        found = folder.schema()
        folder.close()
        if found is not None:
            schema.check(found, "the stream")
    else:
        import everview.cdc.kafka  # noqa: F401  raises where its library is missing


def _poll_ms(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= _POLL_MS_MAX:
        raise SqlError(INVALID_PARAMETER_VALUE, f'invalid value for POLL_MS: "{text}"', hint="milliseconds, from 1 on")
    return int(text)


def stream_feeder_of(environment: Environment, timeline: Timeline, item: Item, spark: SparkWhenThere) -> StreamFeeder:
    """The feeder of a source that reads a change stream."""
    arguments, poll_ms = json.loads(item.source["arguments"]), int(item.source["poll_ms"])

    def now_ms() -> int:
        """The present, and what the timeline has closed already if that is later."""
        return max(timeline.now_ms, timeline.upper - 1)

    return StreamFeeder(environment, item, arguments, now_ms=now_ms, poll_ms=poll_ms, spark=spark)


def forget_source(environment: Environment, item: Item) -> None:
    """A source was dropped: remove what is remembered of its stream."""
    if is_stream(item.source.get("kind", "")):
        forget(environment, item.id)


def forget_lost_sources(environment: Environment, items: Mapping[str, Item]) -> None:
    """Remove what is remembered of streams whose sources are gone, for a process ended before it could."""
    for name in known(environment):
        if name not in items:
            forget(environment, name)
