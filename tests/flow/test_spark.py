"""With Spark: splits that run as its tasks, and Delta tables that it reads back."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.compute.engine.spark.jobs import URGENT
from everview.compute.ir.types import INT8, TEXT
from everview.flow import spark as flow_spark
from everview.flow.check.harness import Endpoint, Harness
from everview.flow.check.workload import summary
from everview.flow.errors import DriverFailed, FencedOff
from everview.flow.keyrange import WHOLE
from everview.flow.materialization import Materialization, Options, State
from everview.flow.recovery_log import RecoveryLog
from everview.flow.runtime import Delivery, Limits
from everview.flow.source import Collections
from everview.flow.spark import Rounds
from tests.flow.created import created
from tests.flow.ledger import Ledger
from tests.spark_tasks import Jobs
from tests.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("driver", ["sqlite", "parquet", "delta"])
def test_splits_run_as_spark_tasks(
    spark: SparkSession, driver: str, endpoint: Callable[[str], Endpoint], tmp_path: Path
) -> None:
    harness = Harness(endpoint(driver), tmp_path, name=f"spark-{driver}")
    jobs = Jobs(spark)
    for splits in (2, 3, 1):
        harness.write(3)
        done = rounds_of(harness, splits).run(spark, harness.workload.time)
        assert done.frontier == harness.workload.time and sum(map(sum, done.stored_by.values())) > 0
        harness.verify()
    assert jobs.pools() == {URGENT}
    harness.write(2)
    harness.deliver()  # a worker of this process goes on from there
    harness.verify()
    harness.close()


def rounds_of(harness: Harness, splits: int) -> Rounds:
    environment, spec = harness.environment, harness.spec
    source, log = Collections(environment, spec.bindings), RecoveryLog(environment, spec.name)
    driver = harness.endpoint.driver
    return Rounds(driver, spec, WHOLE.split(splits), Delivery.by(driver, source, log, limits=Limits(stall_s=60)))


@pytest.mark.parametrize("driver", ["sqlite", "delta"])
def test_a_round_whose_answers_are_lost_is_not_repeated(
    spark: SparkSession,
    driver: str,
    endpoint: Callable[[str], Endpoint],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tasks have done their work, and committed it where the endpoint is authoritative, when their answers are lost."""
    harness = Harness(endpoint(driver), tmp_path, name=f"spark-lost-{driver}")
    rounds = rounds_of(harness, 2)
    answers = flow_spark._answers

    def lost(*args: Any) -> Any:
        answers(*args)
        raise ConnectionError("Spark is gone")

    for broken in (False, True, True, False):
        harness.write(2)
        monkeypatch.setattr(flow_spark, "_answers", lost if broken else answers)
        if broken:
            with pytest.raises(ConnectionError):
                rounds.run(spark, harness.workload.time)
        else:
            assert rounds.run(spark, harness.workload.time).frontier == harness.workload.time
            harness.verify()
    harness.close()


def test_who_takes_over_is_left_alone(spark: SparkSession, endpoint: Callable[[str], Endpoint], tmp_path: Path) -> None:
    harness = Harness(endpoint("sqlite"), tmp_path, name="spark-takes-over")
    first, second = rounds_of(harness, 2), rounds_of(harness, 3)
    harness.write(2)
    first.run(spark, harness.workload.time)
    second.open()
    harness.write(2)
    with pytest.raises(FencedOff):
        first.run(spark, harness.workload.time)
    second.run(spark, harness.workload.time)
    harness.verify()
    harness.close()


def test_a_materialization_with_its_splits_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, ("id", INT8), ("name", TEXT), ("n", INT8))
    binding = ledger.binding(["name"], resource={"table": "sink"}, reductions={"n": "sum", "id": "maximize"})
    config = {"path": str(tmp_path / "sink.db")}
    options = Options(splits=3, spark=True, interval_ms=0, heartbeat_s=3600, backoff_s=0.05, backoff_s_max=0.2)
    there: list[SparkSession] = []
    sink = created(
        ledger.environment,
        "m",
        "sqlite",
        config,
        [binding],
        options=options,
        spark=lambda: there[0] if there else None,
    )
    totals: Counter[str] = Counter()

    def write(*numbers: int) -> None:
        for number in numbers:
            totals[f"name {number % 7}"] += number
        ledger.write(*((1, (number, f"name {number % 7}", number)) for number in numbers))

    def check() -> None:
        assert sink.wait(ledger.upper, 240), sink.status()
        with closing(sqlite3.connect(tmp_path / "sink.db")) as db:
            assert Counter(dict(db.execute("SELECT name, n FROM sink").fetchall())) == totals

    write(*range(1, 30))
    sink.start()
    eventually(lambda: sink.status().state is State.STALLED, shown=sink.status)  # Spark has not started yet
    assert "Spark is not there" in (sink.status().error or "")
    there.append(spark)
    check()
    assert sink.status().state is State.RUNNING and sum(sink.status().stored_by) == len(totals)
    write(*range(30, 40))
    check()
    assert [each.transactions for each in sink.status().splits] == [2, 2, 2]
    ledger.write()  # time goes on, and nothing happens
    check()
    assert [each.transactions for each in sink.status().splits] == [2, 2, 2]
    sink.pause()
    write(40, 41)
    sink.split(2)
    sink.start()
    check()
    assert len(sink.status().splits) == 2
    sink.close()
    write(42)
    sink = Materialization.resume(ledger.environment, "m", "sqlite", config, [binding])  # threads go on from there
    sink.start()
    check()
    sink.close()
    ledger.close()


def test_a_task_that_fails_says_why(
    spark: SparkSession, endpoint: Callable[[str], Endpoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = Harness(endpoint("sqlite"), tmp_path, name="spark-fails")
    harness.write(2)
    driver, config = harness.endpoint.driver, dict(harness.endpoint.driver.config)
    monkeypatch.setattr(driver, "config", {**config, "path": str(tmp_path / "nowhere" / "x.db")})
    monkeypatch.setattr(driver, "connect", type(driver)(config).connect)
    with pytest.raises(DriverFailed, match="2 of 2 splits failed") as raised:
        rounds_of(harness, 2).run(spark, harness.workload.time)
    assert "cannot open the SQLite file" in (raised.value.detail or "")
    harness.close()


def test_spark_reads_what_is_in_delta(spark: SparkSession, endpoint: Callable[[str], Endpoint], tmp_path: Path) -> None:
    from deltalake import DeltaTable

    harness = Harness(endpoint("delta"), tmp_path, name="spark-reads")
    for _ in range(3):
        harness.write(3)
        harness.deliver()
    for name, binding in zip(harness.names, harness.spec.bindings, strict=True):
        files = DeltaTable(str(binding.resource["path"])).file_uris()
        rows = [(row.asDict(), False) for row in spark.read.parquet(*files).collect()]
        found = summary(name, rows, deltas=False)
        assert found == harness.workload.expected(name)
        assert not isinstance(found, Counter) or found.total() > 0
    harness.close()
