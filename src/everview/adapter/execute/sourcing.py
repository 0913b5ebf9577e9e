"""CREATE SOURCE: the kinds of sources that there are, each by the words after FROM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from everview.adapter.catalog.items import ColumnInfo, Source
from everview.adapter.catalog.specs import ChangeStream, LoadGenerator, Part
from everview.adapter.catalog.store import Change
from everview.adapter.contract import Done, Result
from everview.adapter.durations import duration_ms
from everview.adapter.errors import INVALID_PARAMETER_VALUE
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import exists, retain_option
from everview.adapter.execute.streams import create_stream_source, stream_feeder_of
from everview.adapter.retention import lag_ms
from everview.adapter.statements import nodes
from everview.adapter.stream_feeder import StreamFeeder
from everview.adapter.stream_places import SparkWhenThere, is_stream
from everview.adapter.tables import shard_schema
from everview.adapter.timeline import HISTORY, Timeline
from everview.compute.functions.contract import Failure
from everview.compute.functions.datetime_input import read_timestamp
from everview.compute.ir.types import Kind
from everview.compute.sql.errors import SqlError, did_you_mean, unsupported
from everview.sources.generator.auction import Auction
from everview.sources.generator.contract import Generator
from everview.sources.generator.counter import Counter
from everview.sources.generator.feeder import Feeder, Output
from everview.sources.generator.tpch import Tpch
from everview.storage.contract import Command, Create, Follow
from everview.storage.environment import Environment

OPTIONS = {
    "counter": ("tick interval", "start at", "max cardinality"),
    "auction": ("tick interval", "start at", "seed", "bids per tick"),
    "tpch": ("tick interval", "start at", "seed", "scale factor"),
}
PAST_TICKS_MAX = 100_000
SCALE_MAX = 1.0
_DONE = Done("CREATE SOURCE")
T = TypeVar("T")


def create_source(context: Context, statement: nodes.CreateSource) -> Result:
    """CREATE SOURCE."""
    if is_stream(statement.kind):
        return create_stream_source(context, statement)
    if statement.kind != "load generator":
        hint = "FROM LOAD GENERATOR, FROM CDC FILES and FROM CDC KAFKA exist"
        raise unsupported(f"a source from {statement.kind.upper()}", hint=hint)
    if statement.columns:
        raise SqlError("42P16", "a load generator has columns of its own", hint="leave them out")
    coordinator = context.coordinator
    retain = retain_option(dict(statement.options))
    with coordinator.catalog.lock:
        context = replace(context, around=context.session.surroundings())
        schema = context.around.schema_for(statement.path)
        if exists(context, schema, statement.path[-1], if_not_exists=statement.if_not_exists):
            return _DONE
        with coordinator.timeline.still():
            # The timeline stands still while nobody needs it; a generator starts at the present.
            now = max(coordinator.timeline.upper, coordinator.timeline.now_ms)
            options = dict(statement.arguments)
            spec = LoadGenerator(statement.argument, options, _start(options, now), now)
            generator, interval = generator_of(spec)
            _check_past(now - spec.start_ms, interval)
            for table in generator.tables:
                if table.name:
                    exists(context, schema, table.name, if_not_exists=False)
            change = coordinator.catalog.change(context.around.user)
            item = Source(
                id=coordinator.catalog.allocate(),
                name=statement.path[-1],
                schema=schema.id,
                owner=context.around.user,
                retain_ms=retain,
                spec=spec,
            )
            follows = _outputs(context, change, item, generator, now)
            coordinator.catalog.commit(change, *follows, *coordinator.timeline.step())
            made = coordinator.catalog.state.items[item.id]
        assert isinstance(made, Source)
        coordinator.feed(made)
    return _DONE


def _outputs(context: Context, change: Change, item: Source, generator: Generator, start: int) -> list[Command]:
    """The collections of a generator: the source itself, or one for each of its tables."""
    coordinator = context.coordinator
    commands: list[Command] = []
    if generator.tables[0].name:
        change.put_item(item, "create")
    for table in generator.tables:
        columns = tuple(ColumnInfo(name, each) for name, each in table.columns)
        id = coordinator.catalog.allocate() if table.name else item.id
        ((read, write),) = coordinator.environment.commit(Create(id, shard_schema(table.types), at=start))
        filled = replace(item, id=id, columns=columns, reader=read.token, writer=write.token)
        if table.name:
            filled = replace(filled, name=table.name, depends=(item.id,), spec=Part(item.id, table.name))
        change.put_item(filled, "create")
        commands.append(Follow(read, HISTORY, lag_ms(item.retain_ms)))
    return commands


def generator_of(source: LoadGenerator) -> tuple[Generator, int]:
    """The generator that a source is defined by, and its interval in milliseconds."""
    kind, spec = source.name, source.options
    if kind not in OPTIONS:
        known = f"{', '.join(each.upper() for each in OPTIONS)} exist"
        message = f"there is no load generator {kind.upper()}"
        raise SqlError(INVALID_PARAMETER_VALUE, message, hint=did_you_mean(kind, OPTIONS) or known)
    unknown = set(spec) - set(OPTIONS[kind])
    if unknown:
        hint = did_you_mean(min(unknown), OPTIONS[kind])
        raise SqlError(INVALID_PARAMETER_VALUE, f"unknown option {min(unknown).upper()}", hint=hint)
    interval = _option(spec, "tick interval", "1s", duration_ms)
    if interval < 1:
        raise SqlError(INVALID_PARAMETER_VALUE, "TICK INTERVAL must be at least a millisecond")
    seed = _option(spec, "seed", "0", int)
    match kind:
        case "counter":
            keep = _option(spec, "max cardinality", "0", int)
            return Counter(keep or None), interval
        case "auction":
            bids = _option(spec, "bids per tick", "10", int)
            return Auction(seed, source.start_ms, interval, bids), interval
        case _:
            scale = _option(spec, "scale factor", "0.001", float)
            if not 0 < scale <= SCALE_MAX:
                raise SqlError(INVALID_PARAMETER_VALUE, f"SCALE FACTOR must be above 0 and at most {SCALE_MAX}")
            return Tpch(seed, scale), interval


def _start(spec: Mapping[str, str], now: int) -> int:
    """The time of the first tick: START AT, if it is given."""
    if "start at" not in spec:
        return now
    return _option(spec, "start at", "", _milliseconds)


def _milliseconds(text: str) -> int:
    """A time of the timeline, as a number or as a timestamp, in UTC unless it names a zone."""
    if text.isdigit():
        return int(text)
    try:
        found = read_timestamp(text, Kind.TIMESTAMPTZ)
    except Failure as failure:
        raise ValueError(failure.message) from failure
    if not isinstance(found, datetime) or found.timestamp() < 0:
        raise ValueError("a moment from 1970 on is required")
    return int(found.timestamp() * 1000)


def _check_past(past_ms: int, interval: int) -> None:
    if past_ms // interval > PAST_TICKS_MAX:
        detail = f"that is {past_ms // interval} ticks ago, and {PAST_TICKS_MAX} are the most"
        raise SqlError(INVALID_PARAMETER_VALUE, "START AT is too long ago", detail=detail)


def _option(spec: Mapping[str, str], name: str, default: str, read: Callable[[str], T]) -> T:
    text = spec.get(name, default)
    try:
        return read(text)
    except ValueError as error:
        message = f'invalid value for {name.upper()}: "{text}"'
        raise SqlError(INVALID_PARAMETER_VALUE, message, detail=str(error)) from error


def feeder_of(
    environment: Environment,
    timeline: Timeline,
    item: Source,
    parts: Mapping[str, Source],
    spark: SparkWhenThere,
) -> Feeder | StreamFeeder:
    """The feeder of a source; `parts` are the items of its tables by their names."""
    spec = item.spec
    if isinstance(spec, ChangeStream):
        return stream_feeder_of(environment, timeline, item, spec, spark)
    assert isinstance(spec, LoadGenerator)
    generator, interval = generator_of(spec)
    outputs = {name: Output(each.id, each.writer or "") for name, each in parts.items()}
    return Feeder(
        environment,
        generator,
        outputs,
        start_ms=spec.start_ms,
        interval_ms=interval,
        now_ms=lambda: max(timeline.now_ms, timeline.upper),  # complete up to the latest read
        from_ms=spec.from_ms,
    )
