"""Large reads go to Spark, and what they answer is what is answered here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.settings import PEEK_ENGINE, SPARK
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import Spark, profiles
from tests.adapter.scripts import SessionClient
from tests.spark_tasks import running_tasks
from tests.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(280)]
QUERIES = (
    "SELECT count(*), sum(a), min(c), max(b) FROM t",
    "SELECT b, count(*) AS n FROM t GROUP BY b ORDER BY n DESC, b LIMIT 3",
    "SELECT x.a, y.a FROM t x JOIN t y ON x.a = y.a + 1 WHERE x.a < 5 ORDER BY 1, 2",
    "SELECT a, c, d FROM t WHERE a % 1000 = 7 ORDER BY a",
    "SELECT count(*) FROM t WHERE a NOT IN (SELECT a FROM t WHERE a > 10)",
    "SELECT a FROM t ORDER BY c DESC NULLS LAST, a LIMIT 4 OFFSET 2",
)


@pytest.fixture
def coordinator(tmp_path: Path, spark: SparkSession) -> Iterator[Coordinator]:
    started: Future[Spark] = Future()
    started.set_result(profiles(spark))
    with Coordinator.open(tmp_path, spark=started, engine=SparkEngine.of(profiles(spark))) as opened:
        assert opened.ready()
        yield opened


def test_a_read_that_is_not_wanted_any_more_ends_its_jobs(coordinator: Coordinator, spark: SparkSession) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE t (a int)")
    sql("INSERT INTO t SELECT g FROM generate_series(1, 3000) g")
    sql(f"SET {PEEK_ENGINE} = {SPARK}")
    assert sql("SELECT count(*) FROM t") == ["count", "3000"]
    endless = "SELECT count(*) FROM t x, t y, t z WHERE x.a * y.a % 7 + z.a % 5 = 3"  # 27 billion rows
    jobs = spark.sparkContext.statusTracker()

    def cancel() -> None:
        eventually(jobs.getActiveJobsIds)
        sql.session.cancel()

    canceling = threading.Thread(target=cancel)
    canceling.start()
    assert sql(endless) == ["! 57014 canceling statement due to user request"]
    canceling.join()
    sql("SET statement_timeout = '3s'")
    assert sql(endless) == ["! 57014 canceling statement due to statement timeout"]
    eventually(lambda: not jobs.getActiveJobsIds() and not running_tasks(spark))
    sql("SET statement_timeout = 0")
    assert sql("SELECT sum(a) FROM t") == ["sum", "4501500"]


def test_answers_are_equal(coordinator: Coordinator) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE t (a int, b text, c numeric(10,2), d timestamp)")
    columns = "g, 'b' || g % 7, g / 4.0, timestamp '2024-01-01' + g * interval '1 minute'"
    assert sql(f"INSERT INTO t SELECT {columns} FROM generate_series(1, 3000) g") == ["INSERT 0 3000"]
    sql("DELETE FROM t WHERE a % 3 = 0")
    sql("INSERT INTO t VALUES (7, NULL, NULL, NULL)")
    for query in QUERIES:
        coordinator.peeks._local_updates_max = 0
        on_spark = sql(query)
        coordinator.peeks._local_updates_max = 10**9
        assert on_spark == sql(query), query
    coordinator.peeks._local_updates_max = 0
    assert sql("SELECT 1 / (a - 8) FROM t") == ["! 22012 division by zero"]
    sql("CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n, sum(a) AS s FROM t GROUP BY b")
    maintained = sql("SELECT * FROM m ORDER BY b")
    assert maintained == sql("SELECT b, count(*) AS n, sum(a) AS s FROM t GROUP BY b ORDER BY b")
    assert not any(line.startswith("!") for line in maintained)


def test_what_a_block_has_written_goes_along(coordinator: Coordinator) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE own (k int, s varchar(3), n numeric(8, 2), d timestamptz(0), f double precision, l int[])")
    sql("INSERT INTO own SELECT g % 10, 'x', g, '2024-01-01 00:00:00Z', g, ARRAY[g] FROM generate_series(1, 500) g")
    queries = (
        "SELECT k, s, count(*), sum(n), max(l) FROM own GROUP BY k, s",
        "SELECT x.k, count(*) FROM own x JOIN own y ON x.n = y.n WHERE x.s IS DISTINCT FROM 'x' GROUP BY x.k",
        "SELECT 1 / (k - 3) FROM own WHERE n < 20",
    )
    sql("BEGIN")
    for statement in (
        "DELETE FROM own WHERE k = 3",
        "UPDATE own SET s = 'y' WHERE k < 3 AND n < 100",
        "INSERT INTO own SELECT * FROM own WHERE k = 1 AND n < 30",
        "INSERT INTO own VALUES (99, NULL, NULL, NULL, 'NaN', '{}')",
    ):
        assert not sql(statement)[0].startswith("!")
    inside = []
    for query in queries:
        sql(f"SET {PEEK_ENGINE} = local")
        inside.append(sorted(sql(query)))
        sql(f"SET {PEEK_ENGINE} = {SPARK}")
        assert sorted(sql(query)) == inside[-1]
    assert sql("COMMIT") == ["COMMIT"]
    assert [sorted(sql(query)) for query in queries] == inside
    assert all(len(each) > 3 for each in inside)
