"""Views that are computed for the first time: dropping one, what it costs others, and the first read after a start."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import Figure, Report
from everview.adapter.session import CoordinatorSession
from everview.instance import Folder, Instance

ROWS = 500_000
TIMES = 5
TICKS = 40
# So many pairs that no machine gets to the end of them.
RUNAWAY = "SELECT x.b, count(*) AS n FROM big AS x, big AS y WHERE x.a % 1000 = y.a % 1001 GROUP BY x.b"
START_S_MAX = 300.0


def run(report: Report, scale: float) -> None:
    """All of them."""
    report.title(f"views that are computed for the first time, over {round(ROWS * scale):,} rows")
    with (
        tempfile.TemporaryDirectory(prefix="everview-bench-", ignore_cleanup_errors=True) as scratch,
        Folder(Path(scratch, "data")) as folder,
    ):
        began = time.perf_counter()
        with Instance(folder) as instance:
            session = instance.coordinator.connect("everview", "everview", {})
            _first_read(report, instance, session, began)
            _do(session, "CREATE TABLE big (a int, b int)")
            series = f"generate_series(1, {round(ROWS * scale)}) AS g"
            _do(session, f"INSERT INTO big SELECT g, g % 100 FROM {series}")
            _drops(report, instance, session)
            _ticks(report, instance, session)


def _first_read(report: Report, instance: Instance, session: CoordinatorSession, began: float) -> None:
    """From a start to the first answer of a small view, beside Spark being warm."""
    _do(session, "CREATE TABLE small (k int, v int)", "INSERT INTO small VALUES (1, 10), (2, 20)")
    _do(session, "CREATE MATERIALIZED VIEW live AS SELECT k, sum(v) AS s FROM small GROUP BY k")
    _do(session, "SELECT * FROM live")
    ours = time.perf_counter() - began
    _until(lambda: instance.ready)
    warm = time.perf_counter() - began
    told = f"Spark is warm after {warm:.1f} s"
    report.add(Figure("from a start to the first answer of a view", f"{ours:.2f} s", told, ours / warm, 1 / 5))


def _drops(report: Report, instance: Instance, session: CoordinatorSession) -> None:
    idle, hydrating = [], []
    for _ in range(TIMES):
        _do(session, "CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM small GROUP BY k", "SELECT * FROM v")
        idle.append(_seconds(session, "DROP MATERIALIZED VIEW v"))
        _begin(instance, session)
        hydrating.append(_seconds(session, "DROP MATERIALIZED VIEW runaway"))
    ours, reference = max(hydrating), statistics.median(idle)
    told = f"DROP of one that is idle {reference * 1000:.0f} ms"
    report.add(Figure("longest DROP of a view that hydrates", f"{ours * 1000:.0f} ms", told, ours, 1.0, " s"))


def _ticks(report: Report, instance: Instance, session: CoordinatorSession) -> None:
    """From a write to the view that has it, while another view hydrates without end."""
    quiet = _latencies(session)
    _begin(instance, session)
    beside = _latencies(session)
    _do(session, "DROP MATERIALIZED VIEW runaway")
    for name, share in (("median", 50), ("95 of 100", 95)):
        alone, ours = (statistics.quantiles(each, n=100)[share - 1] for each in (quiet, beside))
        told = f"without {alone * 1000:.0f} ms"
        what = f"write to fresh view beside a runaway hydration, {name}"
        report.add(Figure(what, f"{ours * 1000:.0f} ms", told, ours / alone, 2.0))


def _latencies(session: CoordinatorSession) -> list[float]:
    for _ in range(TICKS // 4):  # so that statements are planned
        _seconds(session, "INSERT INTO small VALUES (1, 1)", "SELECT s FROM live WHERE k = 1")
    return [
        _seconds(session, "INSERT INTO small VALUES (1, 1)", "SELECT s FROM live WHERE k = 1") for _ in range(TICKS)
    ]


def _begin(instance: Instance, session: CoordinatorSession) -> None:
    """Let a view hydrate, and wait until Spark is at it."""
    _do(session, f"CREATE MATERIALIZED VIEW runaway AS {RUNAWAY}")
    jobs = instance.spark().bulk.sparkContext.statusTracker()
    _until(lambda: bool(jobs.getActiveStageIds()))
    time.sleep(1.0)


def _until(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + START_S_MAX
    while not ready():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)


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
