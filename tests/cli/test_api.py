"""`everview.open`: rows, parameters, transactions, streams, and DataFrames of the contents at a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

import everview
from everview.api import Database
from everview.compute.ir.types import Interval

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with everview.open(tmp_path / "data", spark=None) as opened:
        yield opened


def test_rows_have_names(db: Database) -> None:
    answer = db.sql("SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, NULL ORDER BY a")
    assert (answer.names, answer.tag) == (("a", "b"), "SELECT 2")
    assert answer == [(1, "x"), (2, None)]
    assert answer[0].b == "x" and answer[0].asdict() == {"a": 1, "b": "x"}
    assert repr(answer[1]) == "Row(a=2, b=None)"
    with pytest.raises(AttributeError, match="no column c; there are a, b"):
        _ = answer[0].c


@pytest.mark.parametrize(
    ("type_name", "given", "read"),
    [
        ("int", 7, 7),
        ("bool", True, True),
        ("float8", 1.5, 1.5),
        ("numeric(6,2)", 1.5, Decimal("1.50")),
        ("numeric(6,2)", Decimal("2.25"), Decimal("2.25")),
        ("text", "it's", "it's"),
        ("bytea", b"\x00\xff", b"\x00\xff"),
        ("date", date(2026, 1, 2), date(2026, 1, 2)),
        ("timestamptz", datetime(2026, 1, 2, 3, tzinfo=UTC), datetime(2026, 1, 2, 3, tzinfo=UTC)),
        ("interval", timedelta(days=2, seconds=3, microseconds=4), Interval(0, 2, 3_000_004)),
        ("uuid", UUID(int=5), str(UUID(int=5))),
        ("jsonb", {"a": [1, None]}, '{"a": [1, null]}'),
        ("int[]", [1, None, 3], [1, None, 3]),
        ("int", None, None),
    ],
)
def test_parameters(db: Database, type_name: str, given: Any, read: Any) -> None:
    assert db.sql(f"SELECT $1::{type_name} AS x", [given])[0].x == read


def test_wrong_parameters_are_refused(db: Database) -> None:
    for params, state in ((["x"], "22P02"), ([], "08P01"), ([1, 2], "08P01"), ([object()], "22P02")):
        with pytest.raises(everview.SqlError) as refused:
            db.sql("SELECT $1::int", params)
        assert refused.value.sqlstate == state
    with pytest.raises(everview.SqlError, match="only a single statement"):
        db.sql("SELECT $1::int; SELECT 2", [1])


def test_several_statements_are_one_transaction(db: Database) -> None:
    db.sql("CREATE TABLE t (a int)")
    with pytest.raises(everview.SqlError, match="division by zero"):
        db.sql("INSERT INTO t VALUES (1); INSERT INTO t SELECT 1 / 0")
    assert db.sql("SELECT * FROM t") == []
    db.sql("BEGIN")
    db.sql("INSERT INTO t VALUES (2)")
    db.sql("ROLLBACK")
    assert db.sql("INSERT INTO t VALUES (3), (4)").tag == "INSERT 0 2"
    assert sorted(db.sql("TABLE t")) == [(3,), (4,)]


def test_copy_takes_and_gives_rows(db: Database) -> None:
    db.sql("CREATE TABLE t (a int, b text)")
    assert db.sql("COPY t FROM STDIN", [(1, "x"), (2, None)]).tag == "COPY 2"
    assert sorted(db.sql("COPY t TO STDOUT")) == [(1, "x"), (2, None)]


def test_a_stream_goes_on(db: Database) -> None:
    db.sql("CREATE TABLE t (a int)")
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
    with pytest.raises(everview.SqlError, match="gives no rows to stream"):
        next(db.stream("BEGIN"))
    changes: Any = db.stream("SUBSCRIBE TO m")
    assert next(changes).n == 0
    db.sql("INSERT INTO t VALUES (1)")
    assert sorted((row.mz_diff, row.n) for row in (next(changes), next(changes))) == [(-1, 0), (1, 1)]
    changes.close()


def test_it_is_there_when_opened_again(tmp_path: Path) -> None:
    with everview.open(tmp_path, spark=None) as db:
        db.sql("CREATE TABLE t (a int)")
        db.sql("INSERT INTO t VALUES (1)")
        with pytest.raises(everview.EverviewError, match="is open in process"):
            everview.open(tmp_path, spark=None)
    with everview.open(tmp_path, spark=None) as db:
        assert db.sql("SELECT * FROM t") == [(1,)]
        db.close()


@pytest.mark.spark
def test_frames(tmp_path: Path, spark: SparkSession) -> None:
    with everview.open(tmp_path, spark=spark) as db:
        db.sql("CREATE TABLE t (\"Key\" int, v text) WITH (RETAIN HISTORY FOR '1h')")
        db.sql("INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, NULL)")
        db.sql("CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM t GROUP BY v")
        before = db.sql("SELECT mz_now() AS now FROM t LIMIT 1")[0].now
        db.sql("DELETE FROM t WHERE v = 'a'")
        assert db.frame("t").columns == ["Key", "v"]
        assert [tuple(row) for row in db.frame("t").collect()] == [(2, None)]
        assert sorted(tuple(row) for row in db.frame("public.t", as_of=before).where("v = 'a'").collect()) == [
            (1, "a"),
            (1, "a"),
        ]
        then = datetime.fromtimestamp(before / 1000, UTC) + timedelta(microseconds=500)
        assert db.frame("t", as_of=then).count() == 3
        assert [tuple(row) for row in db.frame("m").collect()] == [(None, 1)]
        assert {row.v for row in db.sql("SELECT v FROM m")} == {None}
        for more, rows in ((", 7 AS x", [(None, 1, 7)]), ("", [(None, 1)])):  # a column more, and not any longer
            db.sql(f"CREATE MATERIALIZED VIEW r REPLACING m AS SELECT v, count(*) AS n{more} FROM t GROUP BY v")
            db.sql("ALTER MATERIALIZED VIEW m APPLY REPLACEMENT r")
            assert [tuple(row) for row in db.frame("m").collect()] == rows
        db.sql("CREATE VIEW w AS SELECT 1")
        for name, message in (("nope", "does not exist"), ("w", "stores no rows"), ("t.", "is not the name")):
            with pytest.raises(everview.SqlError, match=message):
                db.frame(name)
        with pytest.raises(everview.SqlError, match="no time zone"):
            db.frame("t", as_of=datetime(2026, 1, 1))
        with pytest.raises(everview.SqlError, match="could not find a valid timestamp"):
            db.frame("t", as_of=1)
    assert spark.range(3).count() == 3, "a Spark that was given goes on"
