"""A sink whose splits are Spark tasks: exact at every checkpoint, through changes of its splits and a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.adapter.coordinator import Coordinator
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import Spark, profiles
from tests.adapter.delivery import delivered, id_of, in_sqlite, ok, rows
from tests.adapter.scripts import SessionClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
WAIT_S = 240.0


@pytest.fixture
def opened(tmp_path: Path, spark: SparkSession) -> Iterator[Callable[[], Coordinator]]:
    started: Future[Spark] = Future()
    started.set_result(profiles(spark))
    last: list[Coordinator] = []

    def open_again() -> Coordinator:
        while last:
            last.pop().close()
        last.append(Coordinator.open(tmp_path / "data", spark=started, engine=SparkEngine.of(profiles(spark))))
        return last[-1]

    yield open_again
    for each in last:
        each.close()


def test_splits_as_spark_tasks(opened: Callable[[], Coordinator], tmp_path: Path) -> None:
    coordinator = opened()
    sql = SessionClient(coordinator)
    ok(
        sql,
        "CREATE TABLE payments (id int, account int, amount numeric(10,2)) WITH (RETAIN HISTORY FOR '1h')",
        "INSERT INTO payments SELECT g, g % 40, g FROM generate_series(1, 400) AS g",
        f"CREATE SINK s FROM payments INTO SQLITE (PATH '{tmp_path}/out.db', TABLE 'payments') KEY (id)"
        " WITH (SPLITS 3, SPARK true, INTERVAL_MS 0)",
    )

    def check(splits: int) -> None:
        delivered(coordinator, "s", WAIT_S)
        status = coordinator.sinks.status(id_of(coordinator, "s"))
        assert status is not None and len(status.splits) == splits
        frontier, found = in_sqlite(tmp_path / "out.db", "payments")
        assert found == rows(sql(f"SELECT * FROM payments AS OF {frontier - 1}"))

    check(3)
    assert "SPARK true" in ok(sql, "SHOW CREATE SINK s")[-1]
    ok(sql, "UPDATE payments SET amount = amount + 1 WHERE account < 5", "DELETE FROM payments WHERE account = 7")
    check(3)
    ok(sql, "ALTER SINK s SET (SPLITS 2)", "INSERT INTO payments VALUES (1000, 1, 2.5)")
    check(2)
    coordinator = opened()
    sql = SessionClient(coordinator)
    ok(sql, "INSERT INTO payments VALUES (1001, 1, 2.5)", "DELETE FROM payments WHERE id = 1000")
    check(2)
