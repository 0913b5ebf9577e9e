"""An instance whose Spark is not there yet: views are made, read and followed, and go on when Spark comes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.api import Database
from everview.compute.engine.spark import service
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import Spark, profiles
from everview.errors import EverviewError
from everview.instance import Folder, Instance
from tests.waiting import WAIT_S_MAX, eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(280)]

SOLD = "SELECT item, count(*) AS n, sum(price) AS total FROM sales GROUP BY item"
BEST = "SELECT item, total FROM sold ORDER BY total DESC LIMIT 1"


class Lent(Spark):
    """The Spark of all tests, which goes on when an instance ends."""

    def stop(self) -> None:
        pass


@pytest.fixture
def held(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Whatever starts Spark waits until this is set."""
    release, lent = threading.Event(), profiles(spark)

    def start(*_: object, **__: object) -> Spark:
        assert release.wait(4 * WAIT_S_MAX)
        return Lent(lent.small, lent.bulk)

    monkeypatch.setattr(service, "start", start)
    yield release
    release.set()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that Spark was asked to run."""
    seen: list[str] = []
    run = SparkEngine.run_steps

    def run_steps(self, steps, outputs, inputs, **options):  # type: ignore[no-untyped-def]
        seen.extend(outputs)
        return run(self, steps, outputs, inputs, **options)

    monkeypatch.setattr(SparkEngine, "run_steps", run_steps)
    return seen


def rows(database: Database, query: str) -> list[tuple[object, ...]]:
    # Whoever waits for Spark would wait for ever: then this ends the statement, and with it the test.
    database.sql(f"SET statement_timeout = '{WAIT_S_MAX:.0f}s'")
    return [tuple(row) for row in database.sql(query)]


def test_views_answer_before_spark_is_there(tmp_path: Path, held: threading.Event, runs: list[str]) -> None:
    with Folder(tmp_path / "data") as folder, Instance(folder) as instance, Database(instance, folder) as database:
        database.sql("CREATE TABLE sales (item text, price int)")
        database.sql("INSERT INTO sales VALUES ('kite', 12), ('kite', 13), ('atlas', 40)")
        database.sql(f"CREATE MATERIALIZED VIEW sold AS {SOLD}")
        database.sql(f"CREATE MATERIALIZED VIEW best AS {BEST}")
        assert rows(database, "SELECT * FROM sold ORDER BY item") == [("atlas", 1, 40), ("kite", 2, 25)]
        assert rows(database, "SELECT * FROM best") == [("atlas", 40)]
        database.sql("INSERT INTO sales VALUES ('kite', 30)")
        assert rows(database, "SELECT * FROM best") == [("kite", 55)]
        assert not instance.ready and runs == []

    # Opened again, the first read of a view does not wait either; then Spark comes, and goes on from the same state.
    with Folder(tmp_path / "data") as folder, Instance(folder) as instance, Database(instance, folder) as database:
        assert rows(database, "SELECT * FROM sold ORDER BY item") == [("atlas", 1, 40), ("kite", 3, 55)]
        database.sql("DELETE FROM sales WHERE price = 12")
        assert rows(database, "SELECT * FROM best") == [("kite", 43)]
        assert not instance.ready and runs == []
        held.set()
        eventually(lambda: instance.ready)
        database.sql("INSERT INTO sales VALUES ('atlas', 5), ('globe', 90)")
        assert rows(database, "SELECT * FROM sold ORDER BY item") == [
            ("atlas", 2, 45),
            ("globe", 1, 90),
            ("kite", 2, 43),
        ]
        assert rows(database, "SELECT * FROM best") == [("globe", 90)]
        assert runs == [], "so few rows are not worth a statement of Spark"
        database.sql("INSERT INTO sales SELECT 'lot ' || n, n FROM generate_series(1, 500) AS n")
        assert rows(database, "SELECT count(*), sum(total) FROM sold") == [(503, 125_428)]
        assert rows(database, "SELECT * FROM best") == [("lot 500", 500)]
        assert runs != [], "Spark has computed these"
        assert rows(database, "SELECT * FROM sold ORDER BY item") == rows(database, f"{SOLD} ORDER BY item")


def test_what_may_be_rounded_otherwise_waits_for_spark(tmp_path: Path, held: threading.Event, runs: list[str]) -> None:
    with Folder(tmp_path / "data") as folder, Instance(folder) as instance, Database(instance, folder) as database:
        database.sql("CREATE TABLE t (x float8)")
        database.sql("INSERT INTO t VALUES (0), (1)")
        database.sql("CREATE MATERIALIZED VIEW plain AS SELECT sum(x) AS s FROM t")
        database.sql("CREATE MATERIALIZED VIEW rough AS SELECT sum(exp(x)) AS s FROM t")
        assert rows(database, "SELECT s FROM plain") == [(1.0,)]
        database.sql("SET statement_timeout = '200ms'")
        with pytest.raises(EverviewError, match="statement timeout"):
            database.sql("SELECT s FROM rough")
        assert runs == []
        held.set()
        assert rows(database, "SELECT round(s::numeric, 6)::text AS s FROM rough") == [("3.718282",)]
        assert runs != []
