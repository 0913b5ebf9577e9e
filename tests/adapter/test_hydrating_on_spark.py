"""Views that Spark computes for the first time: how far they are, and that dropping one ends its jobs for good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.settings import PEEK_ENGINE, SPARK
from everview.compute import dataflow
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import Spark, profiles
from tests.adapter.scripts import SessionClient
from tests.adapter.test_hydrating import check_nothing_is_left
from tests.spark_tasks import running_tasks
from tests.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(280)]

# 27 billion rows, from one task or from several.
ENDLESS = "SELECT x.a % 3 AS c, count(*) AS n FROM t x, t y, t z WHERE x.a * y.a % 7 + z.a % 5 = 3 GROUP BY x.a % 3"


@pytest.fixture
def coordinator(tmp_path: Path, spark: SparkSession) -> Iterator[Coordinator]:
    started: Future[Spark] = Future()
    started.set_result(profiles(spark))
    with Coordinator.open(tmp_path, spark=started, engine=SparkEngine.of(profiles(spark))) as opened:
        yield opened


def parts(folder: Path, id: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and f"/parts/{id}" in str(path)]


@pytest.mark.parametrize("large", [False, True])
def test_dropping_ends_the_jobs(
    coordinator: Coordinator, spark: SparkSession, tmp_path: Path, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE t (a int)")
    sql("CREATE MATERIALIZED VIEW live AS SELECT count(*) AS n FROM t")
    count = 60_000 if large else 3_000  # so many are stored in a file
    sql(f"INSERT INTO t SELECT g FROM generate_series(1, {count}) g")
    assert sql("SELECT n FROM live") == ["n", f"{count}"]
    jobs = spark.sparkContext.statusTracker()
    if large:
        monkeypatch.setattr(dataflow, "LARGE_ROWS_MIN", 0)
    assert sql(f"CREATE MATERIALIZED VIEW slow AS {ENDLESS}") == ["CREATE MATERIALIZED VIEW"]
    id = next(item.id for item in coordinator.catalog.state.items.values() if item.name == "slow")
    eventually(lambda: bool(jobs.getActiveJobsIds()))
    if large:
        told = (
            "SELECT rows_read BETWEEN 0 AND rows_total FROM mz_internal.mz_hydration_statuses WHERE rows_total >= 60000"
        )
        eventually(lambda: sql(told)[1:] == ["t"])
    time.sleep(0.5)  # so that it is not only planning
    assert sql("DROP MATERIALIZED VIEW slow") == ["DROP MATERIALIZED VIEW"]
    eventually(lambda: not jobs.getActiveJobsIds())
    eventually(lambda: not running_tasks(spark))
    eventually(lambda: not parts(tmp_path, id))
    check_nothing_is_left(coordinator)
    monkeypatch.undo()
    sql("INSERT INTO t VALUES (1)")
    assert sql("SELECT n FROM live") == ["n", f"{count + 1}"]
    assert not parts(tmp_path, id)


def test_closing_ends_the_jobs(coordinator: Coordinator, spark: SparkSession) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE t (a int)")
    sql("INSERT INTO t SELECT g FROM generate_series(1, 3000) g")
    sql(f"CREATE MATERIALIZED VIEW slow AS {ENDLESS}")
    jobs = spark.sparkContext.statusTracker()
    eventually(lambda: bool(jobs.getActiveJobsIds()))
    coordinator.close()
    eventually(lambda: not jobs.getActiveJobsIds())
    eventually(lambda: not running_tasks(spark))


# Computations that nobody waits for the end of, by what goes through the rows. Hardly a row passes the conditions.
RUNAWAYS = {
    "pairs": "SELECT count(*) AS n FROM t x, t y, t z WHERE x.a + y.a + z.a = -1",
    "pairs of groups": """SELECT count(*) AS n FROM (SELECT a, count(*) AS c FROM t GROUP BY a) x,
        (SELECT a FROM t GROUP BY a) y, (SELECT a FROM t GROUP BY a) z WHERE x.a + y.a + z.a = -1""",
    "rows of one key": """SELECT count(*) AS n FROM t x JOIN t y ON x.k = y.k JOIN t z ON y.k = z.k
        WHERE x.a * y.a + z.a = -1""",
    "rows of table functions": """SELECT count(*) AS n FROM t, generate_series(1, 3000 + k) g,
        generate_series(1, 3000 + k) h WHERE a + g + h = -1""",
    "frames": """SELECT max(n) AS n FROM (SELECT min(x.a * y.a % 1009) OVER (
        PARTITION BY x.k ORDER BY x.a, y.a ROWS BETWEEN 1000000 PRECEDING AND CURRENT ROW) AS n FROM t x, t y)""",
}


# Frames over billions of rows are first sorted, on disk: how soon a sort looks whether it is to end depends on that.
@pytest.mark.parametrize(
    ("what", "large"),
    [
        pytest.param(what, large, marks=pytest.mark.long if large and what == "frames" else ())
        for what in RUNAWAYS
        for large in (False, True)
    ],
)
def test_what_is_dropped_and_canceled_gives_all_cores_back(
    coordinator: Coordinator,
    spark: SparkSession,
    *,
    what: str,
    large: bool,
    long_forms: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE t (a int, k int)")
    count = 60_000 if large else 3_000
    sql(f"INSERT INTO t SELECT g, 0 FROM generate_series(1, {count}) g")
    monkeypatch.setattr(dataflow, "LARGE_ROWS_MIN", 0 if large else 10**9)
    cores = spark.sparkContext.defaultParallelism
    for _ in range(2 * cores if long_forms or what == "pairs" else 1):
        sql(f"CREATE MATERIALIZED VIEW slow AS {RUNAWAYS[what]}")
        eventually(lambda: running_tasks(spark))
        assert sql("DROP MATERIALIZED VIEW slow") == ["DROP MATERIALIZED VIEW"]
    eventually(lambda: not running_tasks(spark))
    sql(f"SET {PEEK_ENGINE} = {SPARK}")
    sql("SET statement_timeout = '2s'")
    for _ in range(cores if long_forms else 1):
        assert sql(RUNAWAYS[what]) == ["! 57014 canceling statement due to statement timeout"]
    eventually(lambda: not running_tasks(spark))
    sql("SET statement_timeout = 0")
    assert sql("SELECT count(*) FROM t") == ["count", f"{count}"]
