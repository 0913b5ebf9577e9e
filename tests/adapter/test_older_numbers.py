"""An environment of before numbers of few digits were kept as such: all numerics in it have 38 digits at rest.

It opens, its tables and views are read and written, and views whose state would be found under other hashes say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from everview.adapter.coordinator import Coordinator
from everview.compute import dataflow
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import Spark, profiles
from everview.compute.functions import spark_sql
from everview.compute.functions.casts import cast_between
from everview.compute.ir import types
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE = (
    "CREATE TABLE t (id int, p numeric(10, 2), q numeric(30, 2), r numeric(6, 2)[])",
    "CREATE TABLE gone (p numeric(5, 1))",
    "CREATE MATERIALIZED VIEW plain AS SELECT id, p + 1 AS more FROM t WHERE p > 1",
    "CREATE MATERIALIZED VIEW counted AS SELECT id, count(*) AS n FROM t GROUP BY id",
    "CREATE MATERIALIZED VIEW summed AS SELECT id, sum(p) AS s FROM t GROUP BY id",
    "CREATE MATERIALIZED VIEW grouped AS SELECT p, count(*) AS n FROM t GROUP BY p",
    "CREATE INDEX by_id ON plain (id)",
    "INSERT INTO t VALUES (1, 1.50, 1.50, '{1.5,NULL}'), (2, 2.25, 2.00, '{}'), (3, NULL, 3, NULL)",
    "INSERT INTO t VALUES (1, -7.5, 0, '{-1}')",
    "INSERT INTO gone VALUES (1.5)",
)


@pytest.fixture
def as_before(monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """A context in which all numerics are kept with 38 digits."""

    @contextmanager
    def patched() -> Iterator[None]:
        cast_between.cache_clear()  # which casts change nothing depends on how values are kept
        with monkeypatch.context() as patch:
            for module in (types, spark_sql):
                patch.setattr(module, "stored_precision", lambda _: types.NUMERIC_PRECISION)
            yield
        cast_between.cache_clear()

    return patched


def digits(coordinator: Coordinator, name: str) -> list[int]:
    """Of the numerics of a table or view at rest."""
    item = next(each for each in coordinator.catalog.state.items.values() if each.name == name)
    schema = coordinator.environment.shard(item.id).spec.schema
    return [each.type.precision for each in schema if pa.types.is_decimal128(each.type)]


def run(sql: SessionClient, statements: tuple[str, ...]) -> None:
    for statement in statements:
        answer = sql(statement)
        assert not answer or not answer[0].startswith("!"), f"{statement}: {answer}"


def test_tables_and_views_go_on(tmp_path: Path, clock: Clock, as_before: Callable[[], Iterator[None]]) -> None:
    with as_before(), Coordinator.open(tmp_path, clock=clock, ticking=False) as coordinator:  # type: ignore[attr-defined]
        sql = SessionClient(coordinator)
        run(sql, BEFORE)
        assert sql("SELECT * FROM grouped WHERE p > 2") == ["p|n", "2.25|1"]
        assert digits(coordinator, "t") == [38, 38]
    with Coordinator.open(tmp_path, clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        assert digits(coordinator, "t") == [38, 38]
        assert sql("SELECT id, p, q, r FROM t ORDER BY id, p") == [
            "id|p|q|r",
            "1|-7.50|0.00|{-1.00}",
            "1|1.50|1.50|{1.50,NULL}",
            "2|2.25|2.00|{}",
            "3|NULL|3.00|NULL",
        ]
        run(
            sql,
            (
                "INSERT INTO t VALUES (4, 2.25, 99.99, '{2}'), (1, 1.50, 1, NULL)",
                "UPDATE t SET p = p + 1 WHERE id = 2",
                "DELETE FROM t WHERE p = -7.5",
                "CREATE TABLE u (id int, p numeric(12, 2))",
                "CREATE MATERIALIZED VIEW joined AS SELECT t.id, u.id AS other, t.p FROM t JOIN u ON t.p = u.p",
                "INSERT INTO u VALUES (10, 2.25), (11, 3.25), (12, 1.50)",
                "INSERT INTO t VALUES (5, 3.25, 0, NULL)",
            ),
        )
        assert digits(coordinator, "u") == [18]
        assert sql("SELECT id, p, q FROM t ORDER BY id, q") == [
            *("id|p|q", "1|1.50|1.00", "1|1.50|1.50", "2|3.25|2.00", "3|NULL|3.00", "4|2.25|99.99", "5|3.25|0.00")
        ]
        assert sql("SELECT * FROM plain ORDER BY 1, 2") == [
            *("id|more", "1|2.50", "1|2.50", "2|4.25", "4|3.25", "5|4.25")
        ]
        assert sql("SELECT * FROM plain WHERE id = 4") == ["id|more", "4|3.25"]
        assert sql("SELECT * FROM counted ORDER BY 1") == ["id|n", "1|2", "2|1", "3|1", "4|1", "5|1"]
        assert sql("SELECT * FROM summed ORDER BY 1") == ["id|s", "1|3.00", "2|3.25", "3|NULL", "4|2.25", "5|3.25"]
        joined = ["id|other|p", "1|12|1.50", "1|12|1.50", "2|11|3.25", "4|10|2.25", "5|11|3.25"]
        assert sql("SELECT * FROM joined ORDER BY 1, 2") == joined
        assert "made by another version" in sql("SELECT * FROM grouped")[0]
        run(
            sql,
            (
                "CREATE REPLACEMENT MATERIALIZED VIEW g FOR grouped AS SELECT p, count(*) AS n FROM t GROUP BY p",
                "ALTER MATERIALIZED VIEW grouped APPLY REPLACEMENT g",
                "CREATE REPLACEMENT MATERIALIZED VIEW h FOR plain AS"
                " SELECT id, p + 1 AS more, p * 2 AS twice, q FROM t WHERE p > 2",
                "ALTER MATERIALIZED VIEW plain APPLY REPLACEMENT h",
                "INSERT INTO t VALUES (6, 2.25, 6, NULL)",
                "DROP TABLE gone",
            ),
        )
        grouped = ["p|n", "1.50|2", "2.25|2", "3.25|2", "NULL|1"]
        plain = ["id|more|twice|q", "2|4.25|6.50|2.00", "4|3.25|4.50|99.99", "5|4.25|6.50|0.00", "6|3.25|4.50|6.00"]
        assert sql("SELECT * FROM grouped ORDER BY 1") == grouped
        assert sql("SELECT * FROM plain ORDER BY 1") == plain
    with Coordinator.open(tmp_path, clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        run(sql, ("INSERT INTO t VALUES (7, 1.50, 7, NULL)",))
        assert sql("SELECT * FROM grouped ORDER BY 1") == ["p|n", "1.50|3", *grouped[2:]]
        assert sql("SELECT * FROM plain ORDER BY 1") == plain


@pytest.mark.spark
@pytest.mark.timeout(280)
def test_large_collections_are_read_and_written_by_spark(
    tmp_path: Path, as_before: Callable[[], Iterator[None]], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with as_before(), Coordinator.open(tmp_path) as coordinator:  # type: ignore[attr-defined]
        sql = SessionClient(coordinator)
        run(
            sql,
            (
                "CREATE TABLE t (id int, p numeric(10, 2), q numeric(30, 2))",
                "CREATE MATERIALIZED VIEW plain AS SELECT id, p + 1 AS more FROM t WHERE p > 1",
                "INSERT INTO t SELECT g, g / 4.0 - 100, g FROM generate_series(1, 12000) AS g",
            ),
        )
        expected = sql("SELECT count(*), sum(p), min(p), max(p) FROM t")
    started: Future[Spark] = Future()
    started.set_result(profiles(spark))
    monkeypatch.setattr(dataflow, "LARGE_ROWS_MIN", 0)
    with Coordinator.open(tmp_path, spark=started, engine=SparkEngine.of(profiles(spark))) as coordinator:
        assert coordinator.ready()
        sql = SessionClient(coordinator)
        assert digits(coordinator, "t") == [38, 38]
        for limit in (0, 10**9):
            coordinator.peeks._local_updates_max = limit
            assert sql("SELECT count(*), sum(p), min(p), max(p) FROM t") == expected
            assert sql("SELECT x.id, y.id FROM t AS x JOIN t AS y ON x.p = y.q WHERE y.id < 2") == ["id|id", "404|1"]
        run(
            sql,
            (
                "CREATE MATERIALIZED VIEW grouped AS SELECT p, count(*) AS n, sum(q) AS s FROM t GROUP BY p",
                "CREATE MATERIALIZED VIEW joined AS SELECT x.id, y.p FROM t AS x JOIN t AS y ON x.p = y.q",
                "INSERT INTO t SELECT g, g / 4.0 - 100, g FROM generate_series(11000, 12100) AS g",
            ),
        )
        for view, query in (
            ("plain", "SELECT id, p + 1 AS more FROM t WHERE p > 1"),
            ("grouped", "SELECT p, count(*) AS n, sum(q) AS s FROM t GROUP BY p"),
            ("joined", "SELECT x.id, y.p FROM t AS x JOIN t AS y ON x.p = y.q"),
        ):
            kept = sql(f"SELECT * FROM {view} ORDER BY 1, 2")
            assert len(kept) > 1000
            assert kept == sql(f"{query} ORDER BY 1, 2")
