"""Views that Spark computes for the first time: how far they are, and that dropping one ends its jobs for good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.adapter.coordinator import Coordinator
from everview.compute import dataflow
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import Spark, profiles
from tests.adapter.scripts import SessionClient
from tests.adapter.test_hydrating import check_nothing_is_left
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


# A task of the small form goes on when its job is gone, until it next reads a row: of 27 billion pairs, for good.
@pytest.mark.parametrize("large", [pytest.param(False, marks=pytest.mark.long), True])
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
