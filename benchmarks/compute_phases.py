"""Where a tick's milliseconds go, and how many Spark jobs it takes, seen from outside.

Spans are put around what a tick calls in this process; what happens within Spark is told by a listener that Spark calls
after every statement. Listening costs a little, so these ticks are not the ones that are timed elsewhere.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from everview.compute.engine.spark.session import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PHASES = ("analysis", "optimization", "planning")


@dataclass
class Spans:
    """Milliseconds and numbers of calls by name. A span's time is without that of the spans within it."""

    took_ms: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    _open: threading.local = field(default_factory=threading.local)

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with a span around it."""

        def spanned(*args: Any, **options: Any) -> Any:
            around: list[float] = self._open.__dict__.setdefault("within_ms", [])
            around.append(0.0)
            started = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                took_ms = (time.perf_counter() - started) * 1000
                self.took_ms[name] += took_ms - around.pop()
                self.calls[name] += 1
                if around:
                    around[-1] += took_ms

        return spanned


@contextmanager
def spanning(points: dict[str, list[tuple[Any, str]]], measured: Spans) -> Iterator[None]:
    """While inside, calls of these methods (owner, name) are counted under the names of the points."""
    replaced: list[tuple[Any, str, Any]] = []
    try:
        for name, methods in points.items():
            for owner, method in methods:
                original = owner.__dict__[method]
                replaced.append((owner, method, original))
                setattr(owner, method, measured.wrap(name, original))
        yield
    finally:
        for owner, method, original in reversed(replaced):
            setattr(owner, method, original)


class _Listener:
    """Spark's QueryExecutionListener: the phases of every statement that ran.

    What Spark gives as the duration of a statement begins after its analysis and holds optimization and planning.
    Registering an input as a view is a command of its own: it is counted apart, and its time is left to the hand-over.
    """

    def __init__(self) -> None:
        self.phases_ms: Counter[str] = Counter()
        self.statements = self.commands = 0
        self._since_ms = time.time() * 1000

    def onSuccess(self, name: str, execution: Any, duration_ns: int) -> None:
        if name == "command":
            self.commands += 1
            return
        self.statements += 1
        phases = execution.tracker().phases()
        known = {phase: phases.get(phase).get() for phase in PHASES if phases.get(phase).isDefined()}
        # A prepared statement went through these phases long ago.
        took_ms = {name: each.durationMs() for name, each in known.items() if each.startTimeMs() >= self._since_ms}
        self.phases_ms.update(took_ms)
        self.phases_ms["execution"] += duration_ns / 1e6 - sum(took_ms.values()) + took_ms.get("analysis", 0)

    def onFailure(self, _name: str, _execution: Any, _error: Any) -> None:
        self.statements += 1

    class Java:
        implements = ("org.apache.spark.sql.util.QueryExecutionListener",)


@contextmanager
def listening(spark: Spark) -> Iterator[_Listener]:
    """While inside, the listener hears of every statement of both sessions."""
    from pyspark.java_gateway import ensure_callback_server_started

    gateway = spark.small.sparkContext._gateway
    ensure_callback_server_started(gateway)
    listener = _Listener()
    managers = [session._jsparkSession.listenerManager() for session in (spark.small, spark.bulk)]
    for manager in managers:
        manager.register(listener)
    try:
        yield listener
        drain(spark.small)
    finally:
        for manager in managers:
            manager.unregister(listener)


def drain(session: SparkSession) -> None:
    """Wait until Spark's listeners have heard of everything so far."""
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()


def jobs_so_far(spark: Spark) -> int:
    """How many jobs this Spark has run."""
    return int(spark.small.sparkContext._jsc.sc().dagScheduler().numTotalJobs())
