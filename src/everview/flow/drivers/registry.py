"""Drivers by name. Each is imported when it is asked for: its library may not be installed."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from everview.flow.drivers.contract import Driver, Option
from everview.flow.errors import InvalidMaterialization

DRIVERS = {
    "sqlite": "sqlite.SqliteDriver",
    "postgres": "postgres.PostgresDriver",
    "delta": "delta.DeltaDriver",
    "parquet": "parquet.ParquetDriver",
    "redis": "redis.RedisDriver",
    "webhook": "webhook.WebhookDriver",
    "kafka": "kafka.KafkaDriver",
    "command": "command.CommandDriver",
    "connector": "command.ConnectorDriver",
}
# The options that stand in a statement first, without their names.
LEADING = {"command": "command", "connector": "connector"}


def driver_class(name: str) -> type[Driver]:
    where = DRIVERS.get(name.lower())
    if where is None:
        close = get_close_matches(name.lower(), DRIVERS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(DRIVERS)}"
        raise InvalidMaterialization(f"no driver is called {name}", hint=hint)
    module, _, attribute = where.partition(".")
    found: type[Driver] = getattr(import_module(f"everview.flow.drivers.{module}"), attribute)
    return found


def options_of(name: str) -> tuple[Option, ...]:
    """The options of a driver; none of one that is not there."""
    try:
        return driver_class(name).options
    except (ImportError, InvalidMaterialization):
        return ()


def open_driver(name: str, config: Mapping[str, Any]) -> Driver:
    return driver_class(name)(config)
