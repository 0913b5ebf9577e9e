"""Figures of the environment for Prometheus: how fresh each view is, what maintaining it takes, what waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from everview.adapter.catalog.items import Item, is_maintained
from everview.compute.scheduler import Status
from everview.instance import Instance
from everview.serve.stream_metrics import add_stream_metrics
from everview.server.metrics import Metrics

Figures = Iterator[tuple[tuple[str, ...], float]]


def add_metrics(metrics: Metrics, instance: Instance) -> None:
    """Add the metrics of the environment to those of the server."""
    coordinator = instance.coordinator

    def maintained() -> Iterator[tuple[str, Item]]:
        state = coordinator.catalog.state
        for item in state.items.values():
            if is_maintained(item):
                schema = state.schemas[item.schema]
                yield f"{schema.name}.{item.name}", item

    def freshness() -> Figures:
        for name, item in maintained():
            frontiers = coordinator.frontiers(item.id)
            if frontiers is not None:
                known_ms = coordinator.timelines.of([item.id]).upper  # while nothing is written, nothing is behind
                behind_ms = 0 if frontiers.upper.empty else max(0, known_ms - frontiers.upper.only)
                yield (name,), behind_ms / 1000

    def each(figure: Callable[[Status], float]) -> Callable[[], Figures]:
        def read() -> Figures:
            statuses = instance.statuses()
            for name, item in maintained():
                if item.id in statuses:
                    yield (name,), figure(statuses[item.id])

        return read

    view = ("view",)
    metrics.gauge("everview_view_freshness_seconds", "how far each view is behind the timeline", view, freshness)
    counters: tuple[tuple[str, str, Callable[[Status], float]], ...] = (
        ("everview_view_ticks", "advances of each view", lambda status: status.ticks),
        ("everview_view_tick_seconds", "time spent in advances of each view", lambda status: status.busy_s),
        ("everview_view_spark_jobs", "statements that were run to advance each view", lambda status: status.statements),
        ("everview_view_input_updates", "updates that each view has taken in", lambda status: status.rows_in),
        ("everview_view_output_updates", "updates that each view has put out", lambda status: status.rows_out),
    )

    def phases() -> Figures:
        statuses = instance.statuses()
        for name, item in maintained():
            if item.id in statuses:
                for phase, seconds in statuses[item.id].phases_s.items():
                    yield (name, phase), seconds

    text = "time spent in advances of each view: to read input, look up state, compute and commit"
    metrics.counter("everview_view_tick_phase_seconds", text, ("view", "phase"), phases)
    for name, text, figure in counters:
        metrics.counter(name, text, view, each(figure))
    metrics.gauge(
        "everview_view_failures",
        "failed tries in a row to advance each view",
        view,
        each(lambda status: status.failures),
    )
    add_stream_metrics(metrics, coordinator)
    metrics.gauge("everview_sessions", "sessions", (), lambda: [((), len(coordinator.sessions()))])
    metrics.gauge("everview_subscriptions", "subscriptions", (), lambda: [((), len(coordinator.subscriptions()))])
    metrics.gauge(
        "everview_clock_jump_seconds",
        "how far the wall clock is from the time that is believed, while it is refused",
        (),
        lambda: [((), coordinator.clock_status.jump_ms / 1000)],
    )
    metrics.gauge(
        "everview_timeline_ahead_seconds",
        "how far the timeline is ahead of the wall clock, beyond the bound",
        (),
        lambda: [((), coordinator.clock_status.ahead_ms / 1000)],
    )
    metrics.counter(
        "everview_clock_jumps",
        "how often the wall clock was refused",
        (),
        lambda: [((), coordinator.clock_status.jumps)],
    )
    metrics.gauge("everview_spark_ready", "whether Spark is warm", (), lambda: [((), float(instance.ready))])
