"""SUBSCRIBE: where its changes come from, at which time it begins, and how its rows look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from everview.adapter.bound_statement import BoundQuery
from everview.adapter.catalog.items import Item, Subscription
from everview.adapter.contract import Column, Row
from everview.adapter.durable import Reader, resumed
from everview.adapter.envelopes import ByKey, Differences, Envelope, Sort
from everview.adapter.errors import OBJECT_NOT_READY
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import install
from everview.adapter.execute.ownership import check_owner
from everview.adapter.execute.queries import maintained_plan, refuse_unmaintainable
from everview.adapter.peek_rows import ordered
from everview.adapter.read_holds import ReadHold
from everview.adapter.results import columns_of
from everview.adapter.statements import nodes
from everview.adapter.subscribe import Feed, SubscriptionRows, is_linear, output_columns, split_key
from everview.adapter.timestamps import TimestampChoice, TimestampRequest
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation
from everview.compute.optimize.prune_columns import columns_read
from everview.compute.rows.collection import rows_of
from everview.compute.sql import compose
from everview.compute.sql import query as sql
from everview.compute.sql.errors import SqlError
from everview.compute.sql.parse import parse_order
from everview.compute.sql.scope import Collection
from everview.storage.contract import Follow, GlobalId, TakeId

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator

_ROWS = "subscription"


def run_subscribe(context: Context, statement: nodes.Subscribe) -> SubscriptionRows:
    coordinator, catalog = context.coordinator, context.around.catalog
    statement, durable = resumed(statement, context.around)
    bound = context.prepared(statement.query, None if durable is None else durable.pins)
    refuse_unmaintainable(context, bound, "a subscription")
    context.transaction.check_unwritten(bound.reads, catalog, "SUBSCRIBE")
    data = columns_of(bound.plan.names, bound.plan.types)
    columns = output_columns(statement, data)
    at_least = statement.as_of is not None and statement.as_of.at_least
    as_of, isolation = context.as_of(statement.as_of), context.transaction.isolation
    if statement.resume is not None:
        as_of = context.moment(statement.resume) - 1  # all before that progress was told; at that time, nothing
        if as_of < 0:
            raise SqlError("22023", "RESUME FROM takes a progress of a subscription, which is above 0")
    up_to = None if statement.up_to is None else context.moment(statement.up_to)
    timeline = coordinator.timelines.of(bound.reads, catalog)
    plan = maintained_plan(bound, len(data))
    reader: Reader | None = None
    snapshot = statement.snapshot and statement.resume is None

    def held(at: int | None) -> tuple[TimestampRequest, TimestampChoice, ReadHold]:
        wanted = TimestampRequest(bound.reads, isolation, bound.needs_time, at, at_least)
        return wanted, *coordinator.timestamps.hold(wanted, catalog)

    if durable is None:
        wanted, choice, hold = held(as_of)
    else:
        _check_resumable(context, durable, plan)
        found: list[tuple[TimestampRequest, TimestampChoice, ReadHold]] = []
        place, reader = coordinator.durable.read(durable, context.session.number, lambda at: found.append(held(at)))
        ((wanted, choice, hold),) = found
        snapshot = place.snapshot
    try:
        if wanted.as_of is None and timeline is coordinator.timeline:
            coordinator.timeline.advance(choice.time)
        if up_to is not None and up_to < choice.time:
            detail = f"it would begin at {choice.time} and end before {up_to}"
            raise SqlError("22023", "subscription UP TO must not be before its AS OF", detail=detail)
        envelope = _envelope(statement, data, columns)
        coordinator.timestamps.wait(bound.reads, choice.time, context.session.interrupts, catalog)
        feed = _feed(context, bound, plan, choice.time, up_to, reading=reader)
        hold.narrow([feed.id])
    except BaseException:
        hold.release()
        if reader is not None:
            coordinator.durable.ended(reader)
        raise
    return SubscriptionRows(
        coordinator.environment,
        timeline,
        context.session.interrupts,
        feed,
        hold,
        columns=columns,
        envelope=envelope,
        snapshot=snapshot,
        progress=statement.progress,
    )


def _check_resumable(context: Context, item: Subscription, plan: Relation) -> None:
    """Raise unless the query goes row by row over the collection of a durable subscription, and the user owns that."""
    check_owner(context, item)
    read = {part.id for part in ir.walk(plan) if isinstance(part, ir.Get)}
    if read != {item.on} or not is_linear(plan):
        name = context.around.catalog.items[item.on].name
        hint = f'name "{name}", or a query of its rows one by one; for others, create a materialized view'
        message = f'subscription "{item.name}" cannot be resumed by this query'
        raise SqlError("0A000", message, detail=f'it holds the history of "{name}"', hint=hint)


def _feed(
    context: Context, bound: BoundQuery, plan: Relation, start: int, up_to: int | None, *, reading: Reader | None
) -> Feed:
    coordinator = context.coordinator
    uses = bound.uses if reading is None else bound.uses | {reading.item.id}
    timeline = coordinator.timelines.of(bound.reads, context.around.catalog)

    def alive() -> bool:
        items = coordinator.catalog.state.items
        return all(id in items for id in uses)

    def error_of(id: GlobalId) -> Callable[[], Exception | None]:
        return lambda: coordinator.maintenance.error(id)

    read = {id: columns_read(bound.plan.relation, id) for id in bound.reads}

    def failing(id: GlobalId) -> Callable[[int, int], None]:
        def check(lower: int, upper: int) -> None:
            _check_types(coordinator.catalog.state.items, read)
            coordinator.peeks.check_errors(id, lower, upper)

        return check

    entry = coordinator.subscribed(context.session, tuple(sorted(bound.uses)))
    if is_linear(plan):
        id = next(part.id for part in ir.walk(plan) if isinstance(part, ir.Get))
        finish_it = lambda: coordinator.unsubscribed(entry)  # noqa: E731 - the other way to finish is a function too
        feed = Feed(id, plan, start, up_to, failing(id), alive, error_of(id), finish_it)
        return feed if reading is None else _durable_feed(coordinator, reading, feed)
    installed: list[GlobalId] = []

    def finish() -> None:
        coordinator.unsubscribed(entry)
        for each in installed:
            coordinator.discard(each)

    try:
        with coordinator.catalog.lock:
            id, reader = install(context, plan, bound)
            installed.append(id)
            coordinator.environment.commit(TakeId(id), Follow(reader, timeline.history_clock, 0))
        coordinator.timestamps.wait([id], start, context.session.interrupts, context.around.catalog, timeline)
    except BaseException:
        finish()  # also when it is canceled while the view is computed for the first time
        raise
    return Feed(id, ir.Get(id, ir.types(plan)), start, up_to, failing(id), alive, error_of(id), finish)


def _durable_feed(coordinator: Coordinator, reader: Reader, feed: Feed) -> Feed:
    """The feed of a durable subscription: it also ends when another reader comes, and when the subscription lapses."""
    durable = coordinator.durable

    def check(lower: int, upper: int) -> None:
        failure = durable.failure(reader)
        if failure is not None:
            raise failure
        feed.check(lower, upper)

    def finish() -> None:
        durable.ended(reader)
        feed.finish()

    return replace(
        feed,
        check=check,
        error=lambda: durable.failure(reader) or feed.error(),
        finish=finish,
        acknowledge=lambda before: durable.acknowledge(reader.item, before, reader),
    )


def _check_types(items: Mapping[GlobalId, Item], read: Mapping[GlobalId, set[int]]) -> None:
    """Raise if a column that is read has a wider type by now, and so is elsewhere."""
    for id, places in read.items():
        for each in items[id].columns if id in items else ():
            if places & set(each.earlier) and items[id].places[items[id].names.index(each.name)] not in places:
                raise SqlError(
                    OBJECT_NOT_READY,
                    f'column "{each.name}" of "{items[id].name}" is {each.type} by now',
                    detail="the view was replaced by one whose column has a wider type than was subscribed to",
                    hint="subscribe again",
                )


def _envelope(statement: nodes.Subscribe, data: tuple[Column, ...], columns: tuple[Column, ...]) -> Envelope:
    types = [column.type for column in data]
    if statement.envelope is None:
        sort = None if statement.order is None else _sort(statement.order, columns)
        return Differences(types, progress=statement.progress, sort=sort)
    keys, values = split_key(statement, data)
    before = statement.envelope == "debezium"
    return ByKey(types, keys, values, progress=statement.progress, before=before)


def _sort(order: str, columns: tuple[Column, ...]) -> Sort:
    """WITHIN TIMESTAMP ORDER BY: the rows of one time in the order of expressions over their columns."""
    names, types = [column.name for column in columns], [column.type for column in columns]
    plan = sql.plan(compose.ordered(compose.relation([_ROWS]), parse_order(order)), _Rows(columns))

    def sort(rows: list[Row]) -> list[Row]:
        result = evaluate(plan.relation, {_ROWS: rows_of(((row, 1) for row in rows), types)})
        if result.errors:
            raise SqlError(*min(result.errors))
        return ordered(result.rows, plan.order, len(names), ir.types(plan.relation))

    return sort


class _Rows:
    """A catalog of one relation: the rows of a subscription."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        names = tuple(column.name for column in columns)
        self._collection = Collection(_ROWS, names, tuple(column.type for column in columns))

    def find(self, path: object) -> Collection | None:
        return self._collection if path == [_ROWS] else None

    def names(self) -> list[str]:
        return []
