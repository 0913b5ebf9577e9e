"""Figures of sources, sinks and durable subscriptions for Prometheus: how far they are, and what keeps them from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from everview.adapter.catalog.items import Item, Sink, Source, Subscription
from everview.adapter.coordinator import Coordinator
from everview.adapter.durable import ACTIVE, LAPSED, PlaceStatus
from everview.adapter.sinks.contract import DRIFTED, FENCED, STALLED, DeliveryStatus
from everview.cdc.times import bound_of
from everview.server.metrics import Metrics
from everview.sources.contract import Reading, Status

T = TypeVar("T", bound=Item)
Figures = Iterator[tuple[tuple[str, ...], float]]
_FAILING = (STALLED, FENCED, DRIFTED)

_SOURCE_GAUGES: tuple[tuple[str, str, Callable[[Status], float | None]], ...] = (
    ("failing", "whether a source cannot go on", lambda found: float(found.state in _FAILING)),
    ("stalls", "times that stay open", lambda found: None if found.read is None else len(found.read.stalls)),
    ("bad_records", "undecodable records", lambda found: None if found.read is None else found.read.bad_records),
    ("frontier", "the time up to which a source is complete, of its stream", lambda found: _frontier(found.read)),
    ("open_updates", "updates at open times", lambda found: None if found.read is None else found.read.open_updates),
)
_SINK_GAUGES: tuple[tuple[str, str, Callable[[DeliveryStatus], float | None]], ...] = (
    ("failing", "whether a sink cannot go on", lambda found: float(found.state in _FAILING)),
    ("lag_seconds", "how far a sink is behind", lambda found: None if found.lag_ms is None else found.lag_ms / 1000),
)
_SINK_COUNTERS: tuple[tuple[str, str, Callable[[DeliveryStatus], float | None]], ...] = (
    ("rows", "rows or updates that were delivered", lambda found: sum(each.rows for each in found.splits)),
    ("transactions", "transactions or steps", lambda found: sum(each.transactions for each in found.splits)),
    ("failures", "failed tries", lambda found: sum(each.failures for each in found.splits)),
)

_SUBSCRIPTION_GAUGES: tuple[tuple[str, str, Callable[[PlaceStatus], float]], ...] = (
    ("held_seconds", "how much of the past a durable subscription holds", lambda found: found.held_ms / 1000),
    ("lapsed", "whether a durable subscription has lapsed", lambda found: float(found.state == LAPSED)),
    ("read", "whether someone reads a durable subscription now", lambda found: float(found.state == ACTIVE)),
)


def _frontier(read: Reading | None) -> float | None:
    bound = None if read is None else bound_of(read.frontier)
    return None if bound is None else float(bound)


def add_stream_metrics(metrics: Metrics, coordinator: Coordinator) -> None:
    """Add the figures of all sources that read change streams, of all sinks and of all durable subscriptions."""

    def items(kind: type[T]) -> Iterator[tuple[str, T]]:
        state = coordinator.catalog.state
        for item in state.of(kind):
            yield f"{state.schemas[item.schema].name}.{item.name}", item

    def of_sources(figure: Callable[[Status], float | None]) -> Callable[[], Figures]:
        def read() -> Figures:
            for name, item in items(Source):
                found = coordinator.source_status(item.id)
                value = None if found is None else figure(found)
                if value is not None:
                    yield (name,), value

        return read

    def of_sinks(figure: Callable[[DeliveryStatus], float | None]) -> Callable[[], Figures]:
        def read() -> Figures:
            for name, item in items(Sink):
                found = coordinator.sink_status(item.id)
                value = None if found is None else figure(found)
                if value is not None:
                    yield (name,), value

        return read

    def of_subscriptions(figure: Callable[[PlaceStatus], float]) -> Callable[[], Figures]:
        def read() -> Figures:
            for name, item in items(Subscription):
                found = coordinator.durable_status(item)
                if found is not None:
                    yield (name,), figure(found)

        return read

    for name, text, source_figure in _SOURCE_GAUGES:
        metrics.gauge(f"everview_source_{name}", text, ("source",), of_sources(source_figure))
    updates = of_sources(lambda found: None if found.read is None else found.read.updates_total)
    metrics.counter("everview_source_updates", "updates that a source has taken in", ("source",), updates)
    failures = of_sources(lambda found: found.failures)
    metrics.counter("everview_source_failures", "failed tries to read a source", ("source",), failures)
    for name, text, sink_figure in _SINK_GAUGES:
        metrics.gauge(f"everview_sink_{name}", text, ("sink",), of_sinks(sink_figure))
    for name, text, sink_figure in _SINK_COUNTERS:
        metrics.counter(f"everview_sink_{name}", text, ("sink",), of_sinks(sink_figure))
    for name, text, place_figure in _SUBSCRIPTION_GAUGES:
        metrics.gauge(f"everview_subscription_{name}", text, ("subscription",), of_subscriptions(place_figure))
