"""Sinks by the materialization protocol: what a statement or the catalog says, as a materialization that runs."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everview.adapter.catalog.items import Item
from everview.adapter.secrets import masked
from everview.adapter.sinks.contract import (
    FENCED,
    PAUSED,
    RUNNING,
    STALLED,
    STARTING,
    DeliveryStatus,
    SplitStatus,
)
from everview.adapter.statements.parse import boolean
from everview.errors import EverviewError
from everview.flow.checkpoint import START
from everview.flow.contract import Binding
from everview.flow.drivers.registry import driver_class
from everview.flow.errors import InvalidMaterialization
from everview.flow.materialization import Materialization, Options, State, let_go, make_binding
from everview.flow.source import Readable
from everview.flow.spark_worker import SparkWhenThere
from everview.flow.worker import WorkerStatus
from everview.storage.contract import Command
from everview.storage.environment import Environment
from everview.storage.shard import FOREVER

_OPTIONS: Mapping[str, type] = {"splits": int, "interval_ms": int, "stall_s": float, "heartbeat_s": float}
_SPARK = "spark"  # whether splits are tasks of Spark
_STATES = {State.RUNNING: RUNNING, State.STALLED: STALLED, State.PAUSED: PAUSED, State.FENCED: FENCED}
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class Definition:
    """What a sink is defined by; `name` is that of its checkpoints, which no other environment has."""

    name: str
    driver: str
    config: Mapping[str, Any] = field(repr=False)
    resource: Mapping[str, Any] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    delta_updates: bool = False
    reductions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    options: Mapping[str, int | float] = field(default_factory=dict)

    def to_source(self) -> dict[str, str]:
        """As the catalog keeps it."""
        return {
            "kind": self.driver,
            "name": self.name,
            "config": json.dumps(self.config),
            "resource": json.dumps(self.resource),
            "delta": "true" if self.delta_updates else "",
            "reduce": json.dumps(self.reductions),
            "options": json.dumps(self.options),
        }

    @classmethod
    def of(cls, item: Item) -> Definition:
        """From the catalog."""
        spec = item.source
        config, resource, reductions, options = (
            json.loads(spec[name]) for name in ("config", "resource", "reduce", "options")
        )
        return cls(
            spec["name"], spec["kind"], config, resource, item.keys, bool(spec["delta"]), reductions, options
        )  # fmt: skip

    def binding(self, environment: Environment, collection: Item) -> Binding:
        """The binding of a collection."""
        columns = [(each.name, each.type) for each in collection.columns]
        return make_binding(
            environment,
            collection.id,
            columns,
            self.key,
            resource=self.resource,
            delta_updates=self.delta_updates,
            reductions=self.reductions,
        )

    def running_options(self) -> Options:
        """How it runs."""
        return Options(**self.options)  # type: ignore[arg-type]


def unique_name(name: str) -> str:
    """A name for the checkpoints of a sink, which may be beside those of other environments."""
    return f"{_NO_NAME.sub('_', name)[:64]}-{secrets.token_hex(6)}"


def parted(driver: str, given: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, int | float]]:
    """What a statement gives, as the driver's settings, those of the place in it, and how the sink runs."""
    kind = driver_class(driver)
    own = {option.name for option in kind.resource_options}
    config: dict[str, Any] = {}
    resource: dict[str, Any] = {}
    options: dict[str, int | float] = {}
    for name, value in given.items():
        if name in _OPTIONS:
            options[name] = _number(name, value)
        elif name == _SPARK:
            options[name] = boolean(value, name)
        elif driver == "command" and name in ("config", "resource"):
            target = _object(name, value)
            config.update({"config": target} if name == "config" else {})
            resource.update(target if name == "resource" else {})
        elif name in own:
            resource[name] = value
        else:
            config[name] = value
    return config, resource, options


def _number(name: str, text: str) -> int | float:
    try:
        value: int | float = _OPTIONS[name](text)
    except ValueError:
        value = -1
    least = 0 if name == "interval_ms" else 1 if name == "splits" else 0.001
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


class MaterializedDelivery:
    """A sink that is a materialization."""

    def __init__(self, materialization: Materialization, collection: Item) -> None:
        self._materialization, self._collection = materialization, collection

    @classmethod
    def resume(
        cls, environment: Environment, item: Item, collection: Item, readable: Readable, spark: SparkWhenThere
    ) -> MaterializedDelivery:
        """The sink as the catalog and its last commit tell."""
        definition = Definition.of(item)
        found = Materialization.resume(
            environment,
            definition.name,
            definition.driver,
            definition.config,
            [definition.binding(environment, collection)],
            options=definition.running_options(),
            readable=readable,
            spark=spark,
        )
        return cls(found, collection)

    def start(self) -> None:
        self._materialization.start()

    def halt(self) -> None:
        self._materialization.halt()

    def split(self, count: int, also: Sequence[Command]) -> None:
        """Change the number of splits; `also` are commands for the same durable step."""
        self._materialization.split(count, also)

    def status(self) -> DeliveryStatus:
        found = self._materialization.status()
        state = _STATES.get(found.state, PAUSED)
        if state == RUNNING and found.frontier == START:
            state = STARTING
        error = None if found.error is None else named(found.error, self._collection)
        splits = tuple(self._split(each, found.upper) for each in found.splits)
        return DeliveryStatus(state, _time(found.frontier), _lag(found.frontier, found.upper), error, splits)

    def _split(self, worker: WorkerStatus, upper: int) -> SplitStatus:
        return SplitStatus(
            str(worker.range),
            _time(worker.frontier),
            _lag(worker.frontier, upper),
            worker.transactions,
            worker.stored,
            worker.failures,
            None if worker.error is None else named(worker.error, self._collection),
        )

    def let_go(self) -> list[Command]:
        return self._materialization.let_go()

    def forget(self) -> str | None:
        try:
            self._materialization.forget()
        except EverviewError as error:
            return masked(error.message)
        except Exception as error:  # of a library that speaks to the destination
            return masked(self._materialization.hide(f"{type(error).__name__}: {error}"))
        return None


class FailedDelivery:
    """A sink that cannot be opened: a library is missing, say. It holds what it held, and can be dropped."""

    def __init__(self, environment: Environment, name: str, error: EverviewError) -> None:
        self._environment, self._name, self._error = environment, name, masked(str(error))

    def start(self) -> None:
        return None

    def halt(self) -> None:
        return None

    def status(self) -> DeliveryStatus:
        return DeliveryStatus(STALLED, None, None, self._error, ())

    def let_go(self) -> list[Command]:
        return let_go(self._environment, self._name)

    def forget(self) -> str | None:
        return "the destination could not be reached, and may keep the checkpoints of the sink"


def named(text: str, collection: Item) -> str:
    """A message of the layers below, which know the collection by its id, with the name that users know."""
    return re.sub(rf"\bcollection {re.escape(collection.id)}\b", f'"{collection.name}"', text)


def _time(frontier: int) -> int | None:
    """A frontier as it is shown: none before the first commit, and none when there is no end."""
    return None if frontier in (START, FOREVER) else frontier


def _lag(frontier: int, upper: int) -> int | None:
    return None if frontier == START else max(0, upper - frontier)
