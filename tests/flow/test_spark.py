"""With Spark: splits that run as its tasks, and Delta tables that it reads back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.flow.check.harness import Endpoint, Harness
from everview.flow.check.workload import summary
from everview.flow.errors import DriverFailed
from everview.flow.keyrange import WHOLE
from everview.flow.spark import deliver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("driver", ["sqlite", "parquet", "delta"])
def test_splits_run_as_spark_tasks(
    spark: SparkSession, driver: str, endpoint: Callable[[str], Endpoint], tmp_path: Path
) -> None:
    harness = Harness(endpoint(driver), tmp_path, name=f"spark-{driver}")
    for splits in (2, 3, 1):
        harness.write(3)
        ranges = WHOLE.split(splits)
        done = deliver(spark, harness.environment, harness.endpoint.driver, harness.spec, ranges, stall_s=60)
        assert done.frontier == harness.workload.time and done.stored > 0
        harness.verify()
    harness.write(2)
    harness.deliver()  # a worker of this process goes on from there
    harness.verify()
    harness.close()


def test_a_task_that_fails_says_why(
    spark: SparkSession, endpoint: Callable[[str], Endpoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = Harness(endpoint("sqlite"), tmp_path, name="spark-fails")
    harness.write(2)
    driver, config = harness.endpoint.driver, dict(harness.endpoint.driver.config)
    monkeypatch.setattr(driver, "config", {**config, "path": str(tmp_path / "nowhere" / "x.db")})
    monkeypatch.setattr(driver, "connect", type(driver)(config).connect)
    with pytest.raises(DriverFailed, match="2 of 2 splits failed") as raised:
        deliver(spark, harness.environment, driver, harness.spec, WHOLE.split(2), stall_s=60)
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
