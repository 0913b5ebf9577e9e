"""SUBSCRIBE: where its changes come from, at which time it begins, and how its rows look."""

from __future__ import annotations

from collections.abc import Callable

from everview.adapter.contract import Column, Row
from everview.adapter.envelopes import ByKey, Differences, Envelope, Sort
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import install, maintained_plan
from everview.adapter.execute.queries import refuse_unmaintainable
from everview.adapter.peek import ordered
from everview.adapter.planner import Bound
from everview.adapter.results import columns_of
from everview.adapter.statements import nodes
from everview.adapter.subscribe import Feed, SubscriptionRows, is_linear, output_columns, split_key
from everview.adapter.timeline import HISTORY
from everview.adapter.timestamps import Wanted
from everview.compute.engine.local.collection import rows_of
from everview.compute.engine.local.evaluate import evaluate
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation
from everview.compute.sql import query as sql
from everview.compute.sql.errors import SqlError
from everview.compute.sql.scope import Collection
from everview.storage.contract import Follow, GlobalId

_ROWS = "subscription"


def run_subscribe(context: Context, statement: nodes.Subscribe) -> SubscriptionRows:
    """SUBSCRIBE."""
    coordinator, catalog = context.coordinator, context.around.catalog
    bound = context.bind(statement.query)
    refuse_unmaintainable(context, bound, "a subscription")
    data = columns_of(bound.plan.names, bound.plan.types)
    columns = output_columns(statement, data)
    at_least = statement.as_of is not None and statement.as_of.at_least
    as_of, isolation = context.as_of(statement.as_of), context.transaction.isolation
    wanted = Wanted(bound.reads, isolation, bound.needs_time, as_of, at_least)
    up_to = None if statement.up_to is None else context.moment(statement.up_to)
    choice, hold = coordinator.timestamps.hold(wanted, catalog)
    try:
        if wanted.as_of is None:
            coordinator.timeline.advance(choice.time)
        if up_to is not None and up_to < choice.time:
            detail = f"it would begin at {choice.time} and end before {up_to}"
            raise SqlError("22023", "subscription UP TO must not be before its AS OF", detail=detail)
        envelope = _envelope(statement, data, columns)
        coordinator.timestamps.wait(bound.reads, choice.time, context.session.interrupts, catalog)
        feed = _feed(context, bound, maintained_plan(bound, len(data)), choice.time, up_to)
    except BaseException:
        hold.release()
        raise
    return SubscriptionRows(
        coordinator.environment,
        coordinator.timeline,
        context.session.interrupts,
        feed,
        hold,
        columns=columns,
        envelope=envelope,
        snapshot=statement.snapshot,
        progress=statement.progress,
    )


def _feed(context: Context, bound: Bound, plan: Relation, start: int, up_to: int | None) -> Feed:
    coordinator = context.coordinator
    uses = bound.uses

    def alive() -> bool:
        items = coordinator.catalog.state.items
        return all(id in items for id in uses)

    def error_of(id: GlobalId) -> Callable[[], Exception | None]:
        return lambda: coordinator.maintenance.error(id)

    def failing(id: GlobalId) -> Callable[[int, int], None]:
        return lambda lower, upper: coordinator.peeks.check_errors(id, lower, upper)

    entry = coordinator.subscribed(context.session, tuple(sorted(uses)))
    if is_linear(plan):
        id = next(part.id for part in ir.walk(plan) if isinstance(part, ir.Get))
        finish_it = lambda: coordinator.unsubscribed(entry)  # noqa: E731 - the other way to finish is a function too
        return Feed(id, plan, start, up_to, failing(id), alive, error_of(id), finish_it)
    try:
        with coordinator.catalog.lock:
            id, reader = install(context, plan, bound)
            coordinator.environment.commit(Follow(reader, HISTORY, 0))

        def finish() -> None:
            coordinator.unsubscribed(entry)
            coordinator.discard(id)

        coordinator.timestamps.wait([id], start, context.session.interrupts, context.around.catalog)
    except BaseException:
        coordinator.unsubscribed(entry)
        raise
    return Feed(id, ir.Get(id, ir.types(plan)), start, up_to, failing(id), alive, error_of(id), finish)


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
    plan = sql.plan(f"SELECT * FROM {_ROWS} ORDER BY {order.strip()}", _Rows(columns))

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
