"""CREATE and ALTER SUBSCRIPTION."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from everview.adapter.catalog.items import Item, Subscription
from everview.adapter.catalog.store import Change
from everview.adapter.contract import Done, Result
from everview.adapter.durable import HOLD_MS, named_subscription
from everview.adapter.errors import CONFIGURATION_LIMIT, INVALID_PARAMETER_VALUE
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import deliverable, exists
from everview.adapter.execute.ownership import check_owner
from everview.adapter.retention import retain_ms
from everview.adapter.statements import nodes
from everview.adapter.statements.options import boolean
from everview.adapter.timestamps import TimestampRequest
from everview.compute.sql.errors import SqlError
from everview.storage.contract import Clone, Command, ReadCapability

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator

SUBSCRIPTIONS_MAX = 1_000
_CREATED, _ALTERED = Done("CREATE SUBSCRIPTION"), Done("ALTER SUBSCRIPTION")
_OPTIONS = "HOLD FOR and SNAPSHOT exist"


def create_subscription(context: Context, statement: nodes.CreateSubscription, change: Change) -> Result:
    """CREATE SUBSCRIPTION: the entry in the catalog and the hold on the collection are one commit."""
    hold, given = _hold_ms(statement.options, _OPTIONS), statement.options.get("snapshot", "true")
    around, name = context.around, statement.path[-1]
    schema = around.schema_for(statement.path)
    if exists(context, schema, name, if_not_exists=statement.if_not_exists, change=change):
        return _CREATED
    if len(around.catalog.of(Subscription)) >= SUBSCRIPTIONS_MAX:
        raise SqlError(CONFIGURATION_LIMIT, f"there are {SUBSCRIPTIONS_MAX} durable subscriptions already")
    collection = deliverable(around, statement.collection, "subscription for")
    id, snapshot = context.coordinator.catalog.draw_id(), boolean(given or "true", "snapshot")
    item = Subscription(id, name, schema.id, around.user, on=collection.id, hold_ms=hold, snapshot=snapshot)
    item = replace(item, depends=(collection.id,), pins=around.catalog.pins([collection.id]))
    change.create(item)
    change.along.append(lambda change: _beginning(context.coordinator, item, collection))
    return _CREATED


def _hold_ms(options: Mapping[str, str], hint: str) -> int:
    unknown = set(options) - {"hold", *(["snapshot"] if hint == _OPTIONS else [])}
    if unknown:
        message = f"unknown option of a subscription: {min(unknown).upper()}"
        raise SqlError(INVALID_PARAMETER_VALUE, message, hint=hint)
    return retain_ms(options["hold"], "HOLD") if "hold" in options else HOLD_MS


@contextmanager
def _beginning(
    coordinator: Coordinator, item: Subscription, collection: Item, *, again: bool = False
) -> Iterator[Sequence[Command]]:
    """Let a subscription begin now: gives the commands for that. The catalog is locked."""
    environment, durable = coordinator.environment, coordinator.durable
    choice, hold = coordinator.timestamps.hold(TimestampRequest(frozenset({collection.id})), coordinator.catalog.state)
    try:
        reader = environment.present(collection.id, collection.reader or "")
        (capability,) = environment.commit(Clone(reader))  # if this is all, whoever opens next drops it
        assert isinstance(capability, ReadCapability)
        place, commands = durable.begin(item, capability, choice.time)
        yield [*(durable.letting_go(item) if again else ()), *commands]
        durable.begun(item.id, place)
    finally:
        hold.release()


def alter_subscription(context: Context, statement: nodes.AlterSubscription, change: Change) -> Result:
    """ALTER SUBSCRIPTION … RESTART and SET (HOLD FOR …)."""
    if statement.if_exists and context.around.find(statement.path) is None:
        change.notice(f'subscription "{".".join(statement.path)}" does not exist, skipping')
        return _ALTERED
    item = named_subscription(context.around, statement.path)
    check_owner(context, item)
    if statement.action == "set":
        hold = _hold_ms(statement.options, "HOLD FOR exists")
        change.alter(replace(item, hold_ms=hold), hold_ms=str(hold))
    else:
        change.alter(item, action="restart")
        collection = context.around.catalog.items[item.on]
        change.along.append(lambda change: _beginning(context.coordinator, item, collection, again=True))
    return _ALTERED


def acknowledge(context: Context, statement: nodes.AcknowledgeSubscription) -> Result:
    """ALTER SUBSCRIPTION … ACKNOWLEDGE: at once, also in a block, and for good."""
    item = named_subscription(context.around, statement.path)
    check_owner(context, item)
    moment = context.moment(statement.moment)
    if not context.coordinator.durable.acknowledge(item, moment + 1 if statement.through else moment):
        context.session.notice(f'subscription "{item.name}" was acknowledged so far before')
    return _ALTERED
