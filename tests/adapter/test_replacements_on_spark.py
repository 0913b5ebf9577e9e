"""A view that is maintained on Spark, in large ticks and small ones, is replaced and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.adapter.coordinator import Coordinator
from everview.compute import dataflow
from everview.compute.engine.contract import LargeEngine
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import Spark, profiles
from everview.compute.large_tick import LargeChanges, LargeTick
from everview.storage import compaction, landing, staging
from tests.adapter.delivery import id_of, ok
from tests.adapter.scripts import SessionClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(280)]
NEW = "SELECT k, sum(v * 2) AS s, max(v) AS m FROM t WHERE k > 1 GROUP BY k"


@pytest.fixture
def coordinator(tmp_path: Path, spark: SparkSession) -> Iterator[Coordinator]:
    started: Future[Spark] = Future()
    started.set_result(profiles(spark))
    with Coordinator.open(tmp_path, spark=started, engine=SparkEngine.of(profiles(spark))) as opened:
        yield opened


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The collections that were written by large ticks."""
    seen: list[str] = []
    run = LargeTick.run

    def counted(tick: LargeTick, engine: LargeEngine) -> LargeChanges:
        seen.append(tick.output)
        return run(tick, engine)

    monkeypatch.setattr(LargeTick, "run", counted)
    return seen


def test_it_goes_on_in_large_ticks_and_small_ones(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, large: list[str]
) -> None:
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
    assert id_of(coordinator, "mv") in large


def test_more_columns_and_fewer_again_in_large_ticks_and_small_ones(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, large: list[str]
) -> None:
    """Executors read parts of before, which lack columns, and write parts of a definition that has fewer."""
    for module in (staging, landing, compaction):
        monkeypatch.setattr(module, "INLINE_BYTES_MAX", 0)
    sql = SessionClient(coordinator)
    old = "SELECT k, sum(v) AS s FROM t GROUP BY k"
    wide = "SELECT k, sum(v) AS s, nullif(count(*), 40) AS c, min(v)::text AS m FROM t GROUP BY k"
    ok(sql, "CREATE TABLE t (k int, v int)", "INSERT INTO t SELECT g % 50, g FROM generate_series(1, 2000) g")
    ok(sql, f"CREATE MATERIALIZED VIEW mv AS {old}", "CREATE MATERIALIZED VIEW above AS SELECT * FROM mv WHERE k > 1")
    ok(sql, "SELECT * FROM above")
    other = "SELECT k::bigint AS k, sum(v) AS s, 'x' || k AS note FROM t GROUP BY k"  # gaps, and a wider type
    for definition, columns in ((wide, "k, s, c, m"), (old, "k, s"), (other, "k, s, note")):
        if definition == other:
            ok(sql, "DROP MATERIALIZED VIEW above")
        ok(sql, f"CREATE MATERIALIZED VIEW r REPLACING mv AS {definition}")
        ok(sql, "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
        if definition == other:
            ok(sql, "CREATE MATERIALIZED VIEW above AS SELECT k, s FROM mv WHERE k > 1 AND note <> ''")
        large.clear()
        for rows_min in (dataflow.LARGE_ROWS_MIN, 10):
            with monkeypatch.context() as patched:
                patched.setattr(dataflow, "LARGE_ROWS_MIN", rows_min)
                ok(sql, "INSERT INTO t SELECT g % 60, g FROM generate_series(1, 300) g")
                for engine in ("local", "spark")[: 1 + (rows_min == 10)]:
                    ok(sql, f"SET everview_peek_engine = {engine}")
                    found = ok(sql, "SELECT * FROM mv ORDER BY k")
                    assert found == ok(sql, f"SELECT {columns} FROM ({definition}) AS q ORDER BY k")
                    wanted = ok(sql, f"SELECT k, s FROM ({definition}) AS q WHERE k > 1 ORDER BY k")
                    assert ok(sql, "SELECT * FROM above ORDER BY k") == wanted
        assert {id_of(coordinator, name) for name in ("mv", "above")} <= set(large)


def test_a_chain_in_one_step(coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, large: list[str]) -> None:
    """A replacement that reads another's target, by a view between, in small ticks and large ones."""
    sql = SessionClient(coordinator)
    ok(sql, "CREATE TABLE t (k int, v int)", "INSERT INTO t SELECT g % 50, g FROM generate_series(1, 2000) g")
    ok(sql, "CREATE MATERIALIZED VIEW b AS SELECT k, sum(v) AS s FROM t GROUP BY k")
    ok(sql, "CREATE MATERIALIZED VIEW m AS SELECT k, s + 1 AS s FROM b WHERE k > 2")
    ok(sql, "CREATE MATERIALIZED VIEW a AS SELECT k % 5 AS k, max(s) AS s FROM m GROUP BY k % 5", "SELECT * FROM a")
    for rows_min, factor in ((dataflow.LARGE_ROWS_MIN, 2), (10, 3)):
        monkeypatch.setattr(dataflow, "LARGE_ROWS_MIN", rows_min)
        ok(sql, f"CREATE MATERIALIZED VIEW rb REPLACING b AS SELECT k, sum(v * {factor}) AS s FROM t GROUP BY k")
        ok(sql, "CREATE MATERIALIZED VIEW ra REPLACING a AS SELECT k % 7 AS k, min(s) AS s FROM m GROUP BY k % 7")
        ok(sql, "ALTER MATERIALIZED VIEW a, b APPLY REPLACEMENT ra, rb")
        for _ in range(2):
            text = f"SELECT k, sum(v * {factor}) + 1 AS s FROM t WHERE k > 2 GROUP BY k"
            wanted = ok(sql, f"SELECT k % 7 AS k, min(s) AS s FROM ({text}) AS q GROUP BY k % 7 ORDER BY k")
            assert ok(sql, "SELECT * FROM a ORDER BY k") == wanted
            ok(sql, "INSERT INTO t SELECT g % 60, g FROM generate_series(1, 300) g")
    assert id_of(coordinator, "m") in large
