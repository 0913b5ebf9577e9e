"""All sinks of an environment: opened when it is, started, paused, looked at and dropped by their ids."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from everview.adapter.catalog.items import Item, Sink
from everview.adapter.catalog.specs import DriverSink, StreamSink
from everview.adapter.catalog.state import Catalog
from everview.adapter.sinks.contract import Delivery, DeliveryStatus
from everview.adapter.sinks.definition import seen_collections
from everview.adapter.sinks.materialized import FailedDelivery, MaterializedDelivery
from everview.adapter.sinks.streamed import StreamedDelivery
from everview.adapter.stream_locations import SparkWhenThere
from everview.cdc.sink import held_token
from everview.errors import EverviewError
from everview.flow.materialization import held_tokens
from everview.flow.recovery_log import begin_lineage
from everview.flow.source import Readable
from everview.storage.contract import Command, GlobalId
from everview.storage.environment import Environment

ConfigOf: TypeAlias = Callable[[DriverSink], Mapping[str, Any]]  # all settings, those of its connection too


class Sinks:
    def __init__(
        self, environment: Environment, readable: Readable, spark: SparkWhenThere, config_of: ConfigOf
    ) -> None:
        self._environment, self.readable, self.spark, self._config_of = environment, readable, spark, config_of
        begin_lineage(environment)  # before anything is written
        self._running: dict[GlobalId, Delivery] = {}
        self._lock = threading.Lock()

    def tokens(self, items: Iterable[Item]) -> set[str]:
        """The tokens of the capabilities by which the sinks among these items hold their collections."""
        found: set[str] = set()
        for item in items:
            match item:
                case Sink(spec=StreamSink()):
                    held = held_token(self._environment, item.id)
                    found |= set() if held is None else {held[1]}
                case Sink(spec=DriverSink(name=name)):
                    found |= set(held_tokens(self._environment, name).values())
        return found

    def resume(self, catalog: Catalog) -> None:
        """Go on with all sinks of a catalog that are not paused."""
        for item in catalog.of(Sink):
            self.add(item, self._open(item, catalog))

    def stream(self, item: Sink, collection: Item) -> Delivery:
        return StreamedDelivery(self._environment, item, collection, self.readable, spark=self.spark)

    def _open(self, item: Sink, catalog: Catalog) -> Delivery:
        try:
            if item.id in catalog.damaged:
                raise catalog.damaged[item.id]
            collections = seen_collections(catalog, item)
            if isinstance(item.spec, StreamSink):
                return self.stream(item, collections[0])
            spec = replace(item.spec, config=self._config_of(item.spec))
            return MaterializedDelivery.resume(self._environment, spec, collections, self.readable, self.spark)
        except (EverviewError, ValueError, LookupError, TypeError) as error:
            # One sink that cannot be must not keep everything else from being.
            return FailedDelivery(
                self._environment, item.spec.name if isinstance(item.spec, DriverSink) else item.id, error
            )

    def add(self, item: Sink, delivery: Delivery) -> None:
        """Take a sink on, and begin unless it is paused."""
        with self._lock:
            self._running[item.id] = delivery
        if not item.paused:
            delivery.start()

    def reopen(self, item: Sink, catalog: Catalog) -> Delivery:
        """Go on with a sink that was halted and changed."""
        self.add(item, self._open(item, catalog))
        return self._running[item.id]

    def get(self, id: GlobalId) -> Delivery:
        return self._running[id]

    def status(self, id: GlobalId) -> DeliveryStatus | None:
        found = self._running.get(id)
        return None if found is None else found.status()

    def halt(self, item: Item) -> None:
        """Stop a sink that is to be dropped; other items are none of ours."""
        delivery = self._running.get(item.id)
        if delivery is not None:
            delivery.halt()

    def release(self, item: Item) -> list[Command]:
        """The commands that let go of what a halted sink holds."""
        return self._running[item.id].let_go()

    def restore(self, item: Sink) -> None:
        """Go on with a sink that was not dropped after all."""
        if not item.paused:
            self._running[item.id].start()

    def dropped(self, item: Item) -> str | None:
        """A sink was dropped; tells what could not be removed at its destination."""
        with self._lock:
            delivery = self._running.pop(item.id, None)
        return None if delivery is None else delivery.forget()

    def close(self) -> None:
        """Stop all of them, at the same time."""
        with self._lock:
            running, self._running = list(self._running.values()), {}
        threads = [threading.Thread(target=each.halt, daemon=True) for each in running]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
