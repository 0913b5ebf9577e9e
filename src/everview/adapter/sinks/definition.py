"""What a sink by the materialization protocol is defined by: what a statement gives, and what a driver takes."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from everview.adapter.catalog.items import Item, Sink
from everview.adapter.catalog.specs import DriverSink
from everview.adapter.catalog.state import Catalog
from everview.adapter.statements.options import boolean
from everview.flow.contract import Binding
from everview.flow.drivers.registry import driver_class
from everview.flow.errors import InvalidMaterialization
from everview.flow.materialization import make_binding
from everview.storage.environment import Environment

_OPTIONS: Mapping[str, type] = {
    "splits": int,
    "interval_ms": int,
    "stall_s": float,
    "heartbeat_s": float,
    "check_s": float,
}
_SPARK = "spark"  # whether splits are tasks of Spark
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")


def bindings(environment: Environment, spec: DriverSink, collections: Sequence[Item]) -> list[Binding]:
    """The bindings of all collections, which are given in order, as the sink knows them."""
    return [
        make_binding(
            environment,
            collection.id,
            [(column.name, column.type) for column in collection.columns],
            each.key,
            resource=each.resource,
            delta_updates=each.delta_updates,
            reductions=each.reductions,
            places=() if collection.places == tuple(range(len(collection.columns))) else collection.places,
            title=collection.name,
        )
        for each, collection in zip(spec.collections, collections, strict=True)
    ]


def seen_collections(catalog: Catalog, item: Sink) -> list[Item]:
    """The collections of a sink, in order, with the columns that it knows them by."""
    return [catalog.seen_by(item, each.collection) for each in item.spec.collections]


def unique_name(name: str) -> str:
    """A name for the checkpoints of a sink. Checkpoints of other environments may be in the same place."""
    return f"{_NO_NAME.sub('_', name)[:64]}-{secrets.token_hex(6)}"


def parted(driver: str, given: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, int | float]]:
    """The options of a statement by what they set: the driver, the place in it, and how the sink runs."""
    kind, own = driver_class(driver), place_options(driver)
    objects = {option.name for option in kind.options if option.kind is dict}
    config: dict[str, Any] = {}
    resource: dict[str, Any] = {}
    options: dict[str, int | float] = {}
    for name, value in given.items():
        if name in _OPTIONS:
            options[name] = _number(name, value)
        elif name == _SPARK:
            options[name] = boolean(value, name)
        elif name in objects:
            config[name] = _object(name, value)
        elif name in own and kind.own_resource:
            resource |= _object(name, value)
        elif name in own:
            resource[name] = value
        else:
            config[name] = value
    return config, resource, options


def place_options(driver: str) -> set[str]:
    """The options of a statement that say where one collection goes."""
    kind = driver_class(driver)
    return {"resource"} if kind.own_resource else {option.name for option in kind.resource_options}


def place_of(driver: str, collection: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Where a collection goes, by the options that stand behind it."""
    own = place_options(driver)
    if other := [name for name in given if name not in own]:
        known = f"; {' and '.join(name.upper() for name in sorted(own))} may stand here" if own else ""
        raise InvalidMaterialization(
            f'{other[0].upper()} does not say where "{collection}" goes in {driver}',
            hint=f"options of the whole sink stand behind INTO and WITH{known}",
        )
    return parted(driver, given)[1]


def _number(name: str, text: str) -> int | float:
    try:
        value: int | float = _OPTIONS[name](text)
    except ValueError:
        value = -1
    least = 0 if name in ("interval_ms", "check_s") else 1 if name == "splits" else 0.001
    if not least <= value < 1 << 31:  # also what is not a number at all
        raise InvalidMaterialization(f'invalid value for {name.upper()}: "{text}"', hint=f"at least {least}")
    return value


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InvalidMaterialization(f"{name.upper()} must be a JSON object")
    return value


def named(text: str, collections: Sequence[Item]) -> str:
    """A message of the layers below, which know collections by their ids, with the names that users know."""
    for each in collections:
        text = re.sub(rf"\bcollection {re.escape(each.id)}\b", f'"{each.name}"', text)
    return text
