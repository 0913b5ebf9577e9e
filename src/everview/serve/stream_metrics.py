"""Figures of sources, sinks and durable subscriptions for Prometheus: how far they are, and what keeps them from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from everview.adapter.catalog.items import Item, Part, Sink, Source, Subscription
from everview.adapter.coordinator import Coordinator
from everview.adapter.durable import ACTIVE, LAPSED
from everview.adapter.sinks.contract import DRIFTED, FENCED, STALLED
from everview.cdc.times import bound_of
from everview.server.metrics import Metrics
from everview.sources.contract import Progress, Reading, Status

Figures = Iterator[tuple[tuple[str, ...], float]]
Figure = tuple[str, str, Callable[[Any], float | None]]  # a name, what it tells, and how it is read from a status

_FAILING = (STALLED, FENCED, DRIFTED)
_SOURCE_GAUGES: tuple[Figure, ...] = (
    ("failing", "whether a source cannot go on", lambda found: float(found.state in _FAILING)),
    ("stalls", "times that stay open", lambda found: None if found.read is None else len(found.read.stalls)),
    ("bad_records", "undecodable records", lambda found: None if found.read is None else found.read.bad_records),
    ("frontier", "the time up to which a source is complete, of its stream", lambda found: _frontier(found.read)),
    ("open_updates", "updates at open times", lambda found: None if found.read is None else found.read.open_updates),
    ("lag_seconds", "how far a source is behind", lambda found: _progress(found.progress, "lag_ms", 1000)),
    ("lag_bytes", "what a source has yet to read of its log", lambda found: _progress(found.progress, "lag_bytes")),
    (
        "snapshot_rows",
        "rows that a source has taken of a snapshot that is under way",
        lambda found: _progress(found.progress, "snapshot_rows"),
    ),
)
_SOURCE_COUNTERS: tuple[Figure, ...] = (
    (
        "updates",
        "updates that a source has taken in",
        lambda found: _progress(found.progress, "rows") if found.read is None else found.read.updates_total,
    ),
    ("bytes", "bytes that a source has taken in", lambda found: _progress(found.progress, "bytes")),
    ("failures", "failed tries to read a source", lambda found: found.failures),
)
_SINK_GAUGES: tuple[Figure, ...] = (
    ("failing", "whether a sink cannot go on", lambda found: float(found.state in _FAILING)),
    ("lag_seconds", "how far a sink is behind", lambda found: None if found.lag_ms is None else found.lag_ms / 1000),
)
_SINK_COUNTERS: tuple[Figure, ...] = (
    ("rows", "rows or updates that were delivered", lambda found: sum(each.rows for each in found.splits)),
    ("transactions", "transactions or steps", lambda found: sum(each.transactions for each in found.splits)),
    ("failures", "failed tries", lambda found: sum(each.failures for each in found.splits)),
)
_SUBSCRIPTION_GAUGES: tuple[Figure, ...] = (
    ("held_seconds", "how much of the past a durable subscription holds", lambda found: found.held_ms / 1000),
    ("lapsed", "whether a durable subscription has lapsed", lambda found: float(found.state == LAPSED)),
    ("read", "whether someone reads a durable subscription now", lambda found: float(found.state == ACTIVE)),
)


def _frontier(read: Reading | None) -> float | None:
    bound = None if read is None else bound_of(read.frontier)
    return None if bound is None else float(bound)


def _progress(progress: Progress | None, name: str, unit: int = 1) -> float | None:
    value = None if progress is None else getattr(progress, name)
    return None if value is None else float(value) / unit


def add_stream_metrics(metrics: Metrics, coordinator: Coordinator) -> None:
    """Add the figures of all sources, of all sinks and of all durable subscriptions."""

    def add(
        kind: type[Item], status: Callable[[Any], object], gauges: Sequence[Figure], counters: Sequence[Figure]
    ) -> None:
        def reading(figure: Callable[[Any], float | None]) -> Callable[[], Figures]:
            def read() -> Figures:
                state = coordinator.catalog.state
                for item in state.of(kind):
                    found = status(item)
                    value = None if found is None else figure(found)
                    if value is not None:
                        yield (f"{state.schemas[item.schema].name}.{item.name}",), value

            return read

        for name, text, figure in gauges:
            metrics.gauge(f"everview_{kind.noun}_{name}", text, (kind.noun,), reading(figure))
        for name, text, figure in counters:
            metrics.counter(f"everview_{kind.noun}_{name}", text, (kind.noun,), reading(figure))

    def source_status(item: Any) -> Status | None:
        found = coordinator.source_status(item.id)
        if found is not None and isinstance(item.spec, Part):  # the source of it says what all its tables have taken in
            return replace(found, progress=None)
        return found

    add(Source, source_status, _SOURCE_GAUGES, _SOURCE_COUNTERS)
    add(Sink, lambda item: coordinator.sinks.status(item.id), _SINK_GAUGES, _SINK_COUNTERS)
    add(Subscription, coordinator.durable.status, _SUBSCRIPTION_GAUGES, ())
