"""A view that is maintained on Spark, in large ticks and small ones, is replaced and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.adapter.coordinator import Coordinator
from everview.compute import dataflow
from everview.compute.engine.spark.session import Spark, profiles
from tests.adapter.scripts import SessionClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(280)]
NEW = "SELECT k, sum(v * 2) AS s, max(v) AS m FROM t WHERE k > 1 GROUP BY k"


@pytest.fixture
def coordinator(tmp_path: Path, spark: SparkSession) -> Iterator[Coordinator]:
    started: Future[Spark] = Future()
    started.set_result(profiles(spark))
    with Coordinator.open(tmp_path, spark=started) as opened:
        yield opened


def test_it_goes_on_in_large_ticks_and_small_ones(coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE t (k int, v int)")
    sql("INSERT INTO t SELECT g % 50, g FROM generate_series(1, 2000) g")
    sql("CREATE MATERIALIZED VIEW mv AS SELECT k, sum(v) AS s, min(v) AS m FROM t GROUP BY k")
    sql("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n, sum(s) AS s FROM mv")
    sql("SELECT * FROM above")
    sql(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {NEW}")
    assert sql("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r") == ["ALTER MATERIALIZED VIEW"]
    for rows_min in (dataflow.LARGE_ROWS_MIN, 100):
        monkeypatch.setattr(dataflow, "LARGE_ROWS_MIN", rows_min)
        sql("INSERT INTO t SELECT g % 60, g FROM generate_series(1, 300) g")
        found = sql("SELECT * FROM mv ORDER BY k")
        assert not found[0].startswith("!"), found
        assert found == sql(f"{NEW} ORDER BY k")
        assert sql("SELECT * FROM above") == sql(f"SELECT count(*) AS n, sum(s) AS s FROM ({NEW}) AS q")
