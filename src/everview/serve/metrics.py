"""Metrics of the environment for Prometheus: freshness and cost of each view, sessions, clock and Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from everview.adapter.catalog.items import Item, is_maintained
from everview.compute.scheduler import Status
from everview.instance import Instance
from everview.serve.stream_metrics import add_stream_metrics
from everview.server.metrics import Metrics

Samples = Iterator[tuple[tuple[str, ...], float]]

_VIEW_COUNTERS: tuple[tuple[str, str, Callable[[Status], float]], ...] = (
    ("ticks", "advances of each view", lambda status: status.ticks),
    ("tick_seconds", "time spent in advances of each view", lambda status: status.busy_s),
    (
        "statements",
        "statements that were run, on Spark or interpreted, to advance each view",
        lambda status: status.statements,
    ),
    ("input_updates", "updates that each view has taken in", lambda status: status.rows_in),
    ("output_updates", "updates that each view has put out", lambda status: status.rows_out),
)


def add_metrics(metrics: Metrics, instance: Instance) -> None:
    """Add the metrics of the environment to those of the server."""
    coordinator = instance.coordinator

    def maintained() -> Iterator[tuple[str, Item]]:
        state = coordinator.catalog.state
        for item in state.items.values():
            if is_maintained(item):
                yield f"{state.schemas[item.schema].name}.{item.name}", item

    def freshness() -> Samples:
        for name, item in maintained():
            frontiers = coordinator.frontiers(item.id)
            if frontiers is not None:
                known_ms = coordinator.timelines.of([item.id]).upper  # while nothing is written, nothing is behind
                behind_ms = 0 if frontiers.upper.empty else max(0, known_ms - frontiers.upper.only)
                yield (name,), behind_ms / 1000

    def statuses() -> Iterator[tuple[str, Status]]:
        found = instance.statuses()
        return ((name, found[item.id]) for name, item in maintained() if item.id in found)

    def each(value: Callable[[Status], float]) -> Callable[[], Samples]:
        return lambda: (((name,), value(status)) for name, status in statuses())

    def phases() -> Samples:
        return (((name, phase), s) for name, status in statuses() for phase, s in status.phases_s.items())

    view = ("view",)
    metrics.gauge("everview_view_freshness_seconds", "how far each view is behind the timeline", view, freshness)
    metrics.counter(
        "everview_view_tick_phase_seconds",
        "time spent in advances of each view: to read input, look up state, compute here and in Spark, and commit",
        ("view", "phase"),
        phases,
    )
    for name, text, value in _VIEW_COUNTERS:
        metrics.counter(f"everview_view_{name}", text, view, each(value))
    text = "failed tries in a row to advance each view"
    metrics.gauge("everview_view_failures", text, view, each(lambda status: status.failures))
    add_stream_metrics(metrics, coordinator)

    def single(value: Callable[[], float]) -> Callable[[], list[tuple[tuple[str, ...], float]]]:
        return lambda: [((), value())]

    text = "how far the wall clock is from the time that is believed, while it is refused"
    jump = single(lambda: coordinator.clock_status.jump_ms / 1000)
    metrics.gauge("everview_clock_jump_seconds", text, (), jump)
    text = "how far the timeline is ahead of the wall clock, beyond the bound"
    ahead = single(lambda: coordinator.clock_status.ahead_ms / 1000)
    metrics.gauge("everview_timeline_ahead_seconds", text, (), ahead)
    jumps = single(lambda: coordinator.clock_status.jumps)
    metrics.counter("everview_clock_jumps", "how often the wall clock was refused", (), jumps)
    metrics.gauge("everview_sessions", "sessions", (), single(lambda: len(coordinator.sessions())))
    metrics.gauge("everview_subscriptions", "subscriptions", (), single(lambda: len(coordinator.subscriptions())))
    metrics.gauge("everview_spark_ready", "whether Spark is warm", (), single(lambda: float(instance.ready)))
