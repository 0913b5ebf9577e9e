"""Pools of Spark's scheduler: jobs of hydrations and of large ticks are in those that give way, of ticks in another."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.adapter.coordinator import Coordinator
from everview.compute import dataflow
from everview.compute.cancel import in_background
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.jobs import BACKGROUND, DEFAULT, FOLLOWING, URGENT, fair_scheduling, jobs_of_run
from everview.compute.engine.spark.session import Spark, profiles
from tests.adapter.scripts import SessionClient
from tests.spark_tasks import Jobs, running_tasks
from tests.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(280)]

# 27 billion rows, in one task: a core is left for others.
ENDLESS = "SELECT x.a % 3 AS c, count(*) AS n FROM t x, t y, t z WHERE x.a * y.a % 7 + z.a % 5 = 3 GROUP BY x.a % 3"


@pytest.fixture
def coordinator(tmp_path: Path, spark: SparkSession) -> Iterator[Coordinator]:
    started: Future[Spark] = Future()
    started.set_result(profiles(spark))
    with Coordinator.open(tmp_path, spark=started, engine=SparkEngine.of(profiles(spark))) as opened:
        yield opened


@pytest.mark.parametrize("large", [False, True])
def test_a_hydration_is_in_the_pool_that_gives_way_and_ticks_are_not(
    coordinator: Coordinator, spark: SparkSession, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE t (a int, b int)")
    count = 60_000 if large else 700  # so many are stored in a file
    sql(f"INSERT INTO t SELECT g % 7, g FROM generate_series(1, {count}) g")
    jobs = Jobs(spark)
    if large:  # the outputs are written by several threads
        monkeypatch.setattr(dataflow, "LARGE_ROWS_MIN", 0)
    sql("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n, max(b) AS most FROM t GROUP BY a")
    view = next(item for item in coordinator.catalog.state.items.values() if item.name == "v")
    eventually(lambda: coordinator.hydrated(view) and coordinator.maintenance.hydration(view.id) is None)
    assert jobs.pools() == {BACKGROUND}
    monkeypatch.undo()
    # A large tick may have begun meanwhile, which gives way as well.
    eventually(
        lambda: sql("SELECT count(*) FROM v") == ["count", "7"] and coordinator.maintenance.hydration(view.id) is None
    )
    jobs.pools()
    sql("INSERT INTO t VALUES (1, 70000)")
    assert sql("SELECT n, most FROM v WHERE a = 1") == ["n|most", f"{(count + 6) // 7 + 1}|70000"]
    assert jobs.pools() == {URGENT}
    if large:
        monkeypatch.setattr(dataflow, "LARGE_ROWS_MIN", 0)
        sql("INSERT INTO t VALUES (1, 80000)")
        assert sql("SELECT n, most FROM v WHERE a = 1") == ["n|most", f"{(count + 6) // 7 + 2}|80000"]
        assert jobs.pools() == {FOLLOWING}


def test_views_tick_in_their_own_pool_while_another_hydrates_without_end(
    coordinator: Coordinator, spark: SparkSession
) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE t (a int)")
    sql("INSERT INTO t SELECT g FROM generate_series(1, 3000) g")
    sql("CREATE TABLE u (a int)")
    sql("CREATE MATERIALIZED VIEW live AS SELECT a, count(*) AS n FROM u GROUP BY a")
    sql("INSERT INTO u VALUES (1)")
    assert sql("SELECT n FROM live") == ["n", "1"]
    jobs = Jobs(spark)
    sql(f"CREATE MATERIALIZED VIEW slow AS {ENDLESS}")
    running = spark.sparkContext.statusTracker()
    eventually(lambda: bool(running.getActiveJobsIds()))
    assert jobs.pools() == {BACKGROUND}
    sql("INSERT INTO u VALUES (1)")
    assert sql("SELECT n FROM live") == ["n", "2"]
    assert jobs.pools() == {URGENT}
    assert running.getActiveJobsIds(), "the other one goes on"
    assert sql("DROP MATERIALIZED VIEW slow") == ["DROP MATERIALIZED VIEW"]
    eventually(lambda: not running.getActiveJobsIds())
    eventually(lambda: not running_tasks(spark))


def test_a_thread_that_has_hydrated_is_urgent_again_afterwards(spark: SparkSession) -> None:
    def pool(name: str) -> tuple[int, str | None]:
        within = jobs_of_run(spark) if name == URGENT else in_background(follows=name == FOLLOWING)
        with within, jobs_of_run(spark):
            return threading.get_ident(), spark.sparkContext.getLocalProperty("spark.scheduler.pool")

    names = [BACKGROUND, URGENT, FOLLOWING, URGENT, BACKGROUND]
    with ThreadPoolExecutor(1) as one:
        seen = [one.submit(pool, name).result() for name in names]
    assert len({thread for thread, _ in seen}) == 1
    assert [name for _, name in seen] == names


def test_spark_reads_from_the_file_that_ticks_weigh_more(spark: SparkSession, tmp_path: Path) -> None:
    settings = fair_scheduling(tmp_path)
    assert settings["spark.scheduler.mode"] == "FAIR"
    java: Any = spark.sparkContext._jsc
    scheduler = spark.sparkContext._jvm.org.apache.spark.scheduler  # type: ignore[union-attr]
    root = scheduler.Pool("", scheduler.SchedulingMode.FAIR(), 0, 0)
    conf, name = java.sc().conf(), "spark.scheduler.allocation.file"
    conf.set(name, settings[name])
    try:
        scheduler.FairSchedulableBuilder(root, java.sc()).buildPools()
    finally:
        conf.remove(name)
    pools = {pool: root.getSchedulableByName(pool) for pool in (URGENT, DEFAULT, FOLLOWING, BACKGROUND)}
    shares = {pool: (found.weight(), found.minShare()) for pool, found in pools.items()}
    assert shares == {URGENT: (100, 1), DEFAULT: (100, 0), FOLLOWING: (10, 0), BACKGROUND: (1, 0)}


def test_what_a_program_does_with_a_frame_is_in_the_default_pool(spark: SparkSession) -> None:
    jobs = Jobs(spark)
    with ThreadPoolExecutor(1) as one:  # of the program, in which nothing of ours has run
        assert one.submit(spark.range(3).count).result() == 3
    assert jobs.pools() == {DEFAULT}
