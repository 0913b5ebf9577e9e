"""What a sink by the materialization protocol is defined by, as a statement gives it and as the catalog keeps it.

A sink delivers one collection or several, all of them in the same transactions. The catalog's entry of a sink with one
collection has the form that all entries had before there could be several: `on`, `keys` and single settings. With
several, `collections` in its `source` lists them, and `on` is the first.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everview.adapter.catalog.items import Item
from everview.adapter.catalog.state import Catalog
from everview.adapter.statements.options import boolean
from everview.flow.contract import Binding
from everview.flow.drivers.registry import driver_class
from everview.flow.errors import InvalidMaterialization
from everview.flow.materialization import Options, make_binding
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment

PROGRAMS = ("command", "connector")
COLLECTIONS = "collections"  # of the catalog's entry, where there are several
_OPTIONS: Mapping[str, type] = {
    "splits": int,
    "interval_ms": int,
    "stall_s": float,
    "heartbeat_s": float,
    "check_s": float,
}
_SPARK = "spark"  # whether splits are tasks of Spark
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class Delivered:
    """One collection of a sink, where it goes and how; `shown` is what anyone may see of where."""

    collection: GlobalId
    resource: Mapping[str, Any] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    delta_updates: bool = False
    reductions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As the catalog keeps it, where there are several."""
        return {
            "id": self.collection,
            "resource": self.resource,
            "key": self.key,
            "delta": self.delta_updates,
            "reduce": self.reductions,
            "shown": self.shown,
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Delivered:
        """From the catalog."""
        key, shown = tuple(said["key"]), said["shown"]
        return cls(said["id"], said["resource"], key, bool(said["delta"]), said["reduce"], shown)

    def binding(self, environment: Environment, collection: Item) -> Binding:
        """The binding of the collection, which is given as the sink knows it."""
        columns = [(each.name, each.type) for each in collection.columns]
        return make_binding(
            environment,
            collection.id,
            columns,
            self.key,
            resource=self.resource,
            delta_updates=self.delta_updates,
            reductions=self.reductions,
            places=() if collection.places == tuple(range(len(columns))) else collection.places,
            title=collection.name,
        )


@dataclass(frozen=True)
class Definition:
    """What a sink is defined by; `name` is that of its checkpoints, which no other environment has."""

    name: str
    driver: str
    config: Mapping[str, Any] = field(repr=False)
    collections: tuple[Delivered, ...]
    options: Mapping[str, int | float] = field(default_factory=dict)

    def to_source(self) -> dict[str, str]:
        """As the catalog keeps it."""
        source = {
            "kind": self.driver,
            "name": self.name,
            "config": json.dumps(self.config),
            "options": json.dumps(self.options),
        }
        if len(self.collections) > 1:
            return {**source, COLLECTIONS: json.dumps([each.to_json() for each in self.collections])}
        (only,) = self.collections
        return {
            **source,
            "resource": json.dumps(only.resource),
            "delta": "true" if only.delta_updates else "",
            "reduce": json.dumps(only.reductions),
        }

    @classmethod
    def of(cls, item: Item) -> Definition:
        """From the catalog."""
        spec = item.source
        config, options = (json.loads(spec[name]) for name in ("config", "options"))
        return cls(spec["name"], spec["kind"], config, delivered_by(item), options)

    def bindings(self, environment: Environment, collections: Sequence[Item]) -> list[Binding]:
        """The bindings of all collections, which are given in order, as the sink knows them."""
        return [
            each.binding(environment, collection)
            for each, collection in zip(self.collections, collections, strict=True)
        ]

    def running_options(self) -> Options:
        """How it runs."""
        return Options(**self.options)  # type: ignore[arg-type]


def delivered_by(item: Item) -> tuple[Delivered, ...]:
    """The collections of any sink, also of one that is a change stream."""
    spec = item.source
    if COLLECTIONS in spec:
        return tuple(map(Delivered.from_json, json.loads(spec[COLLECTIONS])))
    assert item.on is not None
    resource, reductions = (json.loads(spec.get(name, "{}")) for name in ("resource", "reduce"))
    return (Delivered(item.on, resource, item.keys, bool(spec.get("delta")), reductions),)


def seen_collections(catalog: Catalog, item: Item) -> list[Item]:
    """The collections of a sink, in order, with the columns that it knows them by."""
    return [catalog.seen_by(item, each.collection) for each in delivered_by(item)]


def unique_name(name: str) -> str:
    """A name for the checkpoints of a sink, which may be beside those of other environments."""
    return f"{_NO_NAME.sub('_', name)[:64]}-{secrets.token_hex(6)}"


def parted(driver: str, given: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, int | float]]:
    """What a statement gives, as the driver's settings, those of the place in it, and how the sink runs."""
    own = place_options(driver)
    config: dict[str, Any] = {}
    resource: dict[str, Any] = {}
    options: dict[str, int | float] = {}
    for name, value in given.items():
        if name in _OPTIONS:
            options[name] = _number(name, value)
        elif name == _SPARK:
            options[name] = boolean(value, name)
        elif driver in PROGRAMS and name in ("config", "resource"):
            target = _object(name, value)
            config.update({"config": target} if name == "config" else {})
            resource.update(target if name == "resource" else {})
        elif name in own:
            resource[name] = value
        else:
            config[name] = value
    return config, resource, options


def place_options(driver: str) -> set[str]:
    """The options of a statement that say where one collection goes."""
    if driver in PROGRAMS:
        return {"resource"}
    return {option.name for option in driver_class(driver).resource_options}


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
