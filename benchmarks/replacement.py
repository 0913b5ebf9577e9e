"""Replacing a view: from APPLY to the new contents being readable, beside dropping and making all of it anew."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.report import Figure, Report
from everview.adapter.coordinator import Coordinator
from everview.adapter.session import CoordinatorSession

ROWS = 500_000
KEYS = 2_000
ABOVE = 10
OLD = "SELECT k, sum(v) AS s, count(*) AS n FROM t GROUP BY k"
NEW = "SELECT k, sum(v) AS s, count(*) AS n FROM t WHERE v < 500 GROUP BY k"


def run(report: Report, scale: float) -> None:
    """All of them."""
    report.title(f"replacing a view with {ABOVE} views above it, over {round(ROWS * scale):,} rows")
    with _environment(scale) as coordinator:
        session = coordinator.connect("everview", "everview", {})
        anew_s = _anew(session)
        _do(session, f"CREATE MATERIALIZED VIEW r REPLACING mv AS {NEW}")
        _do(session, "SELECT count(*) FROM r")
        apply_s = _seconds(session, "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r", *_reads())
        report.add(
            Figure(
                "from APPLY until the view and all above it are read",
                f"{apply_s * 1000:.0f} ms",
                f"drop and make anew {anew_s * 1000:.0f} ms",
                apply_s / anew_s,
                1 / 20,
            )
        )
        _stalls(report, coordinator, session)


def _stalls(report: Report, coordinator: Coordinator, session: CoordinatorSession) -> None:
    """The longest write and the longest read while views are replaced, beside those while none is."""
    writes: list[tuple[float, float]] = []
    reads: list[tuple[float, float]] = []
    stop = threading.Event()
    loads = (("INSERT INTO t VALUES (1, 1)", writes), ("SELECT s FROM mv WHERE k = 1", reads))
    threads = [threading.Thread(target=_load, args=(coordinator, *load, stop)) for load in loads]
    for thread in threads:
        thread.start()
    time.sleep(5)
    quiet = time.perf_counter()
    applying: list[tuple[float, float]] = []
    for definition in (OLD, NEW, OLD):
        _do(session, f"CREATE MATERIALIZED VIEW r REPLACING mv AS {definition}")
        _do(session, "SELECT count(*) FROM r")
        began = time.perf_counter()
        _do(session, "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
        applying.append((began, time.perf_counter()))
    stop.set()
    for thread in threads:
        thread.join()
    for what, found in (("write", writes), ("read", reads)):
        before = [took for began, took in found if began + took < quiet]
        during = [took for began, took in found if any(began < end and began + took > start for start, end in applying)]
        report.add(
            Figure(
                f"longest {what} during APPLY",
                f"{max(during, default=0) * 1000:.0f} ms",
                f"longest without {max(before) * 1000:.0f} ms, median {statistics.median(before) * 1000:.0f} ms",
                max(during, default=0) / max(before),
                2,
            )
        )


def _load(coordinator: Coordinator, statement: str, found: list[tuple[float, float]], stop: threading.Event) -> None:
    session = coordinator.connect("everview", "everview", {})
    while not stop.is_set():
        began = time.perf_counter()
        _do(session, statement)
        found.append((began, time.perf_counter() - began))


@contextmanager
def _environment(scale: float) -> Iterator[Coordinator]:
    folder = Path(tempfile.mkdtemp(prefix="everview-bench-"))
    try:
        with Coordinator.open(folder / "data") as coordinator:
            session = coordinator.connect("everview", "everview", {})
            _do(session, "CREATE TABLE t (k int, v int)")
            series = f"generate_series(1, {round(ROWS * scale)}) AS g"
            _do(session, f"INSERT INTO t SELECT g % {KEYS}, g % 997 FROM {series}")
            yield coordinator
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _anew(session: CoordinatorSession) -> float:
    """Make everything, then drop it and make it once more, with the new definition: seconds of the latter."""
    _do(session, *_made(OLD))
    _do(session, *_reads())
    began = time.perf_counter()
    _do(session, "DROP MATERIALIZED VIEW mv CASCADE", *_made(NEW))
    _do(session, *_reads())
    took = time.perf_counter() - began
    _do(session, "DROP MATERIALIZED VIEW mv CASCADE", *_made(OLD))
    _do(session, *_reads())
    return took


def _made(definition: str) -> list[str]:
    above = [
        f"CREATE MATERIALIZED VIEW d{number} AS SELECT k, s + {number} AS s FROM mv WHERE k % {ABOVE} = {number}"
        for number in range(ABOVE)
    ]
    return [f"CREATE MATERIALIZED VIEW mv AS {definition}", "CREATE INDEX mv_by_k ON mv (k)", *above]


def _reads() -> list[str]:
    return ["SELECT s FROM mv WHERE k = 1", *(f"SELECT count(*) FROM d{number}" for number in range(ABOVE))]


def _seconds(session: CoordinatorSession, *statements: str) -> float:
    began = time.perf_counter()
    _do(session, *statements)
    return time.perf_counter() - began


def _do(session: CoordinatorSession, *statements: str) -> None:
    for statement in statements:
        result = session.run(session.prepare(statement))
        if hasattr(result, "batches"):
            list(result.batches())
        session.sync()
