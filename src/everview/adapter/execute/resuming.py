"""What a SUBSCRIBE that names a durable subscription stands for."""

from __future__ import annotations

from dataclasses import replace

from everview.adapter.catalog.items import Subscription
from everview.adapter.errors import INVALID_PARAMETER_VALUE, UNDEFINED_OBJECT, WRONG_OBJECT_TYPE
from everview.adapter.statements import nodes
from everview.adapter.statements.words import Path
from everview.adapter.surroundings import Surroundings
from everview.compute.sql.errors import SqlError, did_you_mean
from everview.compute.sql.references import quoted


def named_subscription(around: Surroundings, path: Path) -> Subscription:
    """The durable subscription that a name means."""
    item = around.find(path)
    if item is None:
        message = f'subscription "{".".join(path)}" does not exist'
        raise SqlError(UNDEFINED_OBJECT, message, hint=did_you_mean(path[-1], around.names()))
    if not isinstance(item, Subscription):
        raise SqlError(WRONG_OBJECT_TYPE, f'"{item.name}" is not a subscription', detail=f"it is a {item.kind}")
    return item


def resumed(statement: nodes.Subscribe, around: Surroundings) -> tuple[nodes.Subscribe, Subscription | None]:
    """A SUBSCRIBE with what it resumes, if that is a durable subscription: `TO s` means its collection, resuming s."""
    path = statement.subscription
    if not path and statement.name:
        found = around.find(statement.name)
        if isinstance(found, Subscription):
            path = statement.name
    if not path:
        if statement.acknowledge is not None:
            hint = "CREATE SUBSCRIPTION makes one that can be acknowledged"
            raise SqlError(INVALID_PARAMETER_VALUE, "only a durable subscription is acknowledged", hint=hint)
        return statement, None
    if statement.as_of is not None or statement.resume is not None or not statement.snapshot:
        detail = "it begins where it was acknowledged"
        raise SqlError("42601", "a durable subscription takes no AS OF, RESUME FROM and SNAPSHOT", detail=detail)
    item = named_subscription(around, path)
    if path == statement.name and not statement.subscription:
        name = ".".join(map(quoted, around.catalog.full_name(around.catalog.items[item.on])))
        statement = replace(statement, query=f"TABLE {name}")
    return statement, item
