"""Metrics for Prometheus: the server's own, and other layers', which are read when somebody asks.

Whoever starts the server adds what it knows, such as how fresh each view is:

    metrics.gauge("everview_view_freshness_seconds", "how far each view is behind", ("view",), lambda: ages.items())

A reader gives pairs of label values and number. A reader that fails is left out and counted; the others are served.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

Labels: TypeAlias = tuple[str, ...] | str
Reader: TypeAlias = Callable[[], Iterable[tuple[Labels, float]]]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_COMMAND = re.compile(r"[A-Z]+(?: [A-Z]+)*")


class Metrics:
    """A registry of metrics. The server counts in it; others add readers."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.connections = Gauge(
            "everview_connections", "client connections that are open, by state", ("state",), registry=self.registry
        )
        self.attempts = Counter(
            "everview_connection_attempts",
            "connections that were made, by outcome",
            ("outcome",),
            registry=self.registry,
        )
        self.throttled = Counter(
            "everview_throttled_logins", "logins that waited for wrong passwords before them", registry=self.registry
        )
        self.received_bytes = Gauge(
            "everview_received_bytes", "bytes of messages that no session has taken up yet", registry=self.registry
        )
        self._statements = Counter(
            "everview_statements", "statements that ended, by SQLSTATE", ("sqlstate",), registry=self.registry
        )
        self._succeeded = self._statements.labels("00000")
        self._seconds = Histogram(
            "everview_statement_seconds",
            "time from a statement's start to its last row",
            ("command",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._by_command: dict[str, Histogram] = {}  # a label of a metric takes longer to find than a short statement
        self._unreadable = Counter(
            "everview_unreadable_figures", "readers of figures that failed", ("name",), registry=self.registry
        )

    def statement(self, tag: str, seconds: float) -> None:
        """Count a completed statement with this command tag."""
        self._succeeded.inc()
        known = self._by_command.get(tag)
        if known is None:
            command = _COMMAND.match(tag)
            name = command[0] if command else ""
            known = self._by_command.setdefault(name, self._seconds.labels(name))
        known.observe(seconds)

    def failure(self, sqlstate: str) -> None:
        self._statements.labels(sqlstate).inc()

    def gauge(self, name: str, text: str, labels: Sequence[str], read: Reader) -> None:
        """Add a metric that goes up and down: freshness, the length of a queue."""
        self.registry.register(
            _Read(name, text, labels, read=read, family=GaugeMetricFamily, unreadable=self._unreadable)
        )

    def counter(self, name: str, text: str, labels: Sequence[str], read: Reader) -> None:
        """Add a metric that only grows: ticks, Spark jobs, the seconds that they took."""
        self.registry.register(
            _Read(name, text, labels, read=read, family=CounterMetricFamily, unreadable=self._unreadable)
        )

    def render(self) -> bytes:
        """All metrics in the format of Prometheus."""
        return generate_latest(self.registry)


class _Read(Collector):
    """A metric that is read when Prometheus asks."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        *,
        read: Reader,
        family: type[GaugeMetricFamily] | type[CounterMetricFamily],
        unreadable: Counter,
    ) -> None:
        self._name, self._text, self._labels, self._read, self._family = name, text, labels, read, family
        self._unreadable = unreadable

    def describe(self) -> Iterable[Metric]:
        return [self._family(self._name, self._text, labels=self._labels)]

    def collect(self) -> Iterator[Metric]:
        family = self._family(self._name, self._text, labels=self._labels)
        try:
            for labels, figure in self._read():
                family.add_metric((labels,) if isinstance(labels, str) else labels, figure)
        except Exception:  # the other metrics are still worth having, and one counts those that are missing
            self._unreadable.labels(self._name).inc()
            return
        yield family
