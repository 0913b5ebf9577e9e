"""Executors read and write parts themselves: the same updates, hashes and order as if storage had staged them."""

from __future__ import annotations

import itertools
import random
import shutil
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everview.compute.engine.contract import PlanRefused, RunFailed
from everview.compute.engine.spark import bulk as bulk_module
from everview.compute.engine.spark.bulk import read_contents, read_updates, spark_type_of, write_updates
from everview.compute.engine.spark.reach import Unreachable, check_reach
from everview.compute.engine.spark.session import profiles
from everview.compute.functions.spark_sql import spark_type
from everview.compute.ir.types import SqlType, arrow_type
from everview.storage.blob.local import LocalBlob
from everview.storage.blob.memory import MemoryBlob
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.environment import Environment
from everview.storage.errors import InvalidUsage
from everview.storage.parts import ROW_GROUP_ROWS
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, HASH, TIME, int_column
from everview.timely.hashing import hash_rows
from tests.compute.engine.test_spark import ASCENDING
from tests.storage.test_landing import TYPES, every_reading, of_all_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


PAIR = pa.schema([("c0", pa.int64()), ("c1", pa.string())])
_views = itertools.count()


@pytest.fixture(scope="module")
def bulk(spark: SparkSession) -> SparkSession:
    return profiles(spark).bulk


@pytest.fixture(autouse=True, params=["runs", "spark's writer"])
def writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who writes: tasks by themselves, or Spark, as where they cannot."""
    if request.param != "runs":
        monkeypatch.setattr(bulk_module, "can_write_runs", lambda *_: False)
    return str(request.param)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    with Environment.open(tmp_path / "data", background=False) as opened:
        yield opened


def view(session: SparkSession, table: pa.Table) -> str:
    """The table as a temporary view."""
    name = f"given_{next(_views)}"
    declared = ", ".join(f"{field.name} {spark_type_of(field.type)}" for field in table.schema)
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(declared)
    assert isinstance(schema, StructType)
    session.createDataFrame(table, schema=schema).createOrReplaceTempView(name)
    return name


def normal(readings: list[list[Any]]) -> list[list[Any]]:
    """Texts of rows in which the two zeros are one: which of equal rows stands for all of them is anyone's choice."""
    return [sorted(text.replace("-0.0,", "0.0,") for text in reading) for reading in readings]


def rows_of(table: pa.Table | DataFrame) -> list[str]:
    """Updates or contents, added up, as texts."""
    table = table if isinstance(table, pa.Table) else table.toArrow()
    names = [name for name in table.column_names if name not in (HASH, DIFF)]
    total: Counter[str] = Counter()
    for row in table.to_pylist():
        total[str([repr(row[name]) for name in sorted(names)]).replace("'-0.0'", "'0.0'")] += row[DIFF]
    return sorted(f"{row}: {count}" for row, count in total.items() if count)


def check_spark_reads_the_same(session: SparkSession, environment: Environment, id: str) -> None:
    upper = environment.frontiers(id).upper.only
    for low, high in {(0, upper), (1, upper), (0, upper - 1)}:
        with environment.changes(id, low, high) as selection:
            if low == 0:
                assert rows_of(read_updates(session, selection)) == rows_of(selection.changes())
            else:
                assert rows_of(read_updates(session, selection, ["c0"])) == rows_of(selection.changes(["c0"]))
    with environment.contents(id, upper - 1) as selection:
        assert rows_of(read_contents(session, selection)) == rows_of(selection.contents())


@pytest.mark.parametrize("key", [None, ["c2", "c5", "c10"]])
@pytest.mark.parametrize("rows", [50, 3000])
def test_all_types_come_back_as_if_storage_had_staged_them(
    environment: Environment, bulk: SparkSession, rng: random.Random, key: list[str] | None, rows: int
) -> None:
    table = of_all_types(rng, rows)
    ours, theirs = (environment.create(id, TYPES, key=key)[1] for id in ("ours", "theirs"))
    environment.append(ours, table, Antichain(5))
    staged = write_updates(bulk, f"SELECT * FROM {view(bulk, table)}", environment.landing("theirs"))
    theirs = environment.append(theirs, staged, Antichain(5))
    (batch,) = environment.shard("theirs").batches.values()
    assert batch.inline == (rows == 50)
    for _ in range(2):
        assert normal(every_reading(environment, "theirs")) == normal(every_reading(environment, "ours"))
        check_spark_reads_the_same(bulk, environment, "theirs")
        environment.maintenance.compact("theirs")
    # Beside an inline batch that storage made, and read by Spark together with it.
    more = of_all_types(rng, 20)
    more = more.set_column(0, TIME, pa.array([5] * 20, pa.int64()))
    environment.append(theirs, more, Antichain(6))
    check_spark_reads_the_same(bulk, environment, "theirs")
    every_reading(environment, "theirs")


@pytest.mark.parametrize("sql_type", ASCENDING, ids=str)
def test_values_of_every_sql_type(environment: Environment, bulk: SparkSession, sql_type: SqlType) -> None:
    from everview.compute.rows.arrow import rows_to_arrow
    from everview.compute.rows.collection import rows_of as collection

    assert spark_type_of(arrow_type(sql_type)).replace("`", "").replace(":", ": ").replace(",", ", ") in (
        spark_type(sql_type),
        spark_type(sql_type).replace(",", ", "),
    )
    schema = pa.schema([("c0", arrow_type(sql_type))])
    plain = rows_to_arrow(
        collection([((value,), 1) for value in [None, *ASCENDING[sql_type]]], (sql_type,)), (sql_type,)
    )
    table = plain.append_column(TIME, pa.array([0] * plain.num_rows, pa.int64()))
    _, writer = environment.create("u1", schema)
    landing = environment.landing("u1")
    environment.append(writer, write_updates(bulk, f"SELECT * FROM {view(bulk, table)}", landing), Antichain(1))
    with environment.contents("u1", 0) as selection:
        assert rows_of(selection.contents()) == rows_of(plain)
        assert rows_of(read_contents(bulk, selection)) == rows_of(plain)


def test_what_cancels_out_is_not_written_and_the_rest_is_summed(environment: Environment, bulk: SparkSession) -> None:
    _, writer = environment.create("u1", PAIR)
    rows = "VALUES (0L, 1L, 'a', 1L), (0L, 1L, 'a', 2L), (1L, 1L, 'a', -3L), (0L, 2L, 'b', 1L), (0L, 2L, 'b', -1L)"
    query = f"SELECT /*+ COALESCE(1) */ * FROM {rows} AS t(_time, c0, c1, _diff)"
    writer = environment.append(writer, write_updates(bulk, query, environment.landing("u1")), Antichain(2))
    (batch,) = environment.shard("u1").batches.values()
    assert (batch.rows, batch.retractions) == (2, 1)
    landing = environment.landing("u1")
    staged = write_updates(bulk, query + " WHERE c0 = 2", landing)
    assert staged.batch is None and landing.keys() == []
    environment.append(writer, staged, Antichain(3))


@pytest.mark.parametrize("key", [["c0"], ["c1"], [], None])
def test_a_million_rows_in_few_sorted_parts(
    environment: Environment, bulk: SparkSession, tmp_path: Path, key: list[str] | None
) -> None:
    _, writer = environment.create("u1", PAIR, key=key)
    count = 1_000_000 if key == ["c0"] else ROW_GROUP_ROWS + 5_004
    query = f"SELECT id % 3 AS _time, id AS c0, concat('w', id % 5) AS c1, 1L AS _diff FROM range({count})"
    started = time.monotonic()
    staged = write_updates(bulk, query, environment.landing("u1"))
    environment.append(writer, staged, Antichain(3))
    took_s = time.monotonic() - started
    assert took_s < 60
    (batch,) = environment.shard("u1").batches.values()
    assert batch.rows == count and 1 <= len(batch.parts) <= 4
    for part in batch.parts:
        table = pq.read_table(tmp_path / "data" / "blob" / part.key)
        hashes = int_column(table, HASH)
        names = environment.shard("u1").spec.key
        assert (hashes == hash_rows([table.column(name) for name in names], table.num_rows)).all()
        assert (hashes[1:] >= hashes[:-1]).all()
    with environment.changes("u1", 0, 3) as selection:
        chunks = list(selection.chunks())
        assert sum(chunk.num_rows for chunk in chunks) == count
        assert max(chunk.num_rows for chunk in chunks) <= 4 * ROW_GROUP_ROWS
    wanted = pa.table({"c0": [0, 77, count], "c1": ["w0", "w2", "none"]})
    with environment.contents("u1", 2, environment.key_hashes("u1", wanted)) as selection:
        found = selection.contents()
        assert found.num_rows == (count if key == [] else count * 2 // 5 if key == ["c1"] else 2)
        assert rows_of(read_contents(bulk, selection)) == rows_of(found)
    environment.maintenance.compact("u1")
    with environment.contents("u1", 2) as selection:
        assert selection.contents().num_rows == count


def test_a_crash_before_the_commit_leaves_nothing(tmp_path: Path, bulk: SparkSession) -> None:
    first = Environment.open(tmp_path / "data", background=False)
    first.create("u1", PAIR)
    query = "SELECT 0L AS _time, id AS c0, 'x' AS c1, 1L AS _diff FROM range(100000)"
    assert write_updates(bulk, query, first.landing("u1")).batch is not None
    bulk.sql(query).write.parquet(first.landing("u1").uri)
    shutil.copytree(tmp_path / "data", tmp_path / "copy")  # as it is when the process dies here
    first.close()
    with Environment.open(tmp_path / "copy", background=False) as second:
        assert second.shard("u1").batches == {}
        second.maintenance.run()
        assert list(LocalBlob(tmp_path / "copy" / "blob").list("parts/")) == []


FAILING = {
    "SELECT 0L AS _time, id AS c0, 1L AS _diff FROM range(3)": (PlanRefused, "have no column c1"),
    "SELECT 0L AS _time, 1.5 AS c0, 'x' AS c1, 1L AS _diff": (PlanRefused, "decimal.2,1., and should be bigint"),
    "SELECT nothing": (PlanRefused, "UNRESOLVED_COLUMN"),
    "SELECT 0L AS _time, 1 div (id - 50000) AS c0, 'x' AS c1, 1L AS _diff FROM range(100000)": (
        RunFailed,
        "DIVIDE_BY_ZERO",
    ),
    "SELECT /*+ COALESCE(1) */ 0L AS _time, 1L AS c0, 'x' AS c1, 9223372036854775807L AS _diff FROM range(2)": (
        RunFailed,
        "(?i)overflow",
    ),
}


@pytest.mark.parametrize("query", FAILING)
def test_a_failure_says_why_and_leaves_nothing(environment: Environment, bulk: SparkSession, query: str) -> None:
    kind, said = FAILING[query]
    environment.create("u1", PAIR)
    landing = environment.landing("u1")
    with pytest.raises(kind, match=said):
        write_updates(bulk, query, landing)
    assert landing.keys() == []


def test_a_selection_of_times_and_hashes_is_read_exactly(tmp_path: Path, bulk: SparkSession) -> None:
    """Also from a folder whose name Spark would take for a pattern."""
    with Environment.open(tmp_path / "a [b]{c}*? d%20", background=False) as environment:
        _, writer = environment.create("u1", PAIR, key=["c0"])
        query = "SELECT id % 10 AS _time, id % 1000 AS c0, concat('w', id) AS c1, 1L AS _diff FROM range(50000)"
        writer = environment.append(writer, write_updates(bulk, query, environment.landing("u1")), Antichain(10))
        inline = pa.table({TIME: [10, 11], DIFF: [1, 1], "c0": [5, 2000], "c1": ["new", "new"]})
        environment.append(writer, inline, Antichain(12))
        hashes = environment.key_hashes("u1", pa.table({"c0": [5, 7, 2000]}))
        for low, high in ((0, 12), (5, 11), (11, 12), (5, 6)):
            for given in (None, hashes):
                with environment.changes("u1", low, high, given) as selection:
                    assert rows_of(read_updates(bulk, selection)) == rows_of(selection.changes())
        with environment.changes("u1", 11, 11) as selection:
            assert read_updates(bulk, selection).columns == [TIME, "c0", "c1", DIFF]
            assert read_contents(bulk, selection).toArrow().num_rows == 0


def test_a_damaged_part_is_not_believed(environment: Environment, bulk: SparkSession, tmp_path: Path) -> None:
    _, writer = environment.create("u1", PAIR)
    query = "SELECT 0L AS _time, id AS c0, cast(xxhash64(id) AS string) AS c1, 1L AS _diff FROM range(100000)"
    environment.append(writer, write_updates(bulk, query, environment.landing("u1")), Antichain(1))
    with environment.contents("u1", 0) as selection:
        path = Path(selection.uris[0].removeprefix("file://"))
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))
        with pytest.raises(Exception, match=r"could not verify (dictionary )?page integrity"):
            read_contents(bulk, selection).toArrow()


def test_rows_that_did_not_arrive_are_missed(
    environment: Environment, bulk: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.create("u1", PAIR)
    landing = environment.landing("u1")
    files, listed = landing.files, landing._blob.list
    monkeypatch.setattr(landing, "files", lambda: files()[:0])
    monkeypatch.setattr(landing._blob, "list", lambda prefix: [*listed(prefix)][:0])
    with pytest.raises(
        Exception, match=r"100 updates were written, 0 are in the 0 files|should have \d+ bytes, and has no"
    ):
        write_updates(bulk, "SELECT 0L AS _time, id AS c0, 'x' AS c1, 1L AS _diff FROM range(100)", landing)


def test_large_collections_are_divided_by_hash(
    environment: Environment, bulk: SparkSession, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    if writer != "runs":
        pytest.skip("Spark's writer always divides")
    monkeypatch.setattr(bulk_module, "UNDIVIDED_ROWS_MAX", 1000)
    monkeypatch.setattr(bulk_module, "RUN_ROWS", 10_000)
    for number, key in enumerate((["c0"], [], None)):
        _, own = environment.create(f"u{number}", PAIR, key=key)
        query = "SELECT 0L AS _time, id % 900 AS c0, concat('w', id) AS c1, 1L AS _diff FROM range(40000)"
        staged = write_updates(bulk, query, environment.landing(own.id), 40_000)
        assert staged.batch is not None
        parts = sorted(staged.batch.parts, key=lambda part: part.hash_min)
        assert len(parts) == 5 and staged.batch.rows == 40_000
        if key != []:
            assert all(before.hash_max < after.hash_min for before, after in itertools.pairwise(parts))
        environment.append(own, staged, Antichain(1))
        check_spark_reads_the_same(bulk, environment, own.id)


def test_what_a_task_tried_before_is_no_part(environment: Environment, bulk: SparkSession, writer: str) -> None:
    if writer != "runs":
        pytest.skip("Spark's writer tidies up by itself")
    environment.create("u1", PAIR)
    landing = environment.landing("u1")
    folder = Path(landing.uri.removeprefix("file://"))
    folder.mkdir(parents=True)
    for name in ("run-0.parquet", "_run-1.parquet"):  # of an attempt that failed in between, or is still to fail
        (folder / name).write_bytes(b"something")
    staged = write_updates(bulk, "SELECT 0L AS _time, id AS c0, 'x' AS c1, 1L AS _diff FROM range(50000)", landing)
    assert staged.batch is not None and staged.batch.rows == 50_000
    assert sorted(landing.keys()) == sorted(part.key for part in staged.batch.parts)


class Elsewhere(LocalBlob):
    """A folder that executors look for in another place: all of it, or only what they write."""

    written_only = False

    def uri(self, key: str) -> str:
        if self.written_only and key.endswith(".parquet"):
            return super().uri(key)
        return super().uri(key).replace("/blob/", "/elsewhere/")


class TestReach:
    def opened(self, blob: Any, tmp_path: Path) -> Environment:
        return Environment(MemoryConsensus(), blob, tmp_path / "folder", background=False)

    def test_a_folder_here_is_reached_and_left_clean(self, bulk: SparkSession, tmp_path: Path) -> None:
        blob = LocalBlob(tmp_path / "blob")
        reached = check_reach(bulk, self.opened(blob, tmp_path).blob_folder())
        assert list(blob.list()) == []
        (executor,) = reached.executors
        assert f"{socket.gethostname()}/" in executor and " process " in executor and reached.running == 1

    @pytest.mark.parametrize(
        ("written_only", "said"), [(False, "cannot read"), (True, "of 16 rows that they wrote, 0")]
    )
    def test_a_folder_that_is_not_shared(
        self, bulk: SparkSession, tmp_path: Path, written_only: bool, said: str
    ) -> None:
        blob = Elsewhere(tmp_path / "blob")
        blob.written_only = written_only
        with pytest.raises(Unreachable, match=said) as caught:
            check_reach(bulk, self.opened(blob, tmp_path).blob_folder())
        assert "mounted at the same path" in str(caught.value.hint)
        if written_only:
            assert f", and none of {socket.gethostname()}/" in str(caught.value.detail)

    def test_the_executor_that_cannot_read_is_named(self, bulk: SparkSession, tmp_path: Path) -> None:
        class Garbled(LocalBlob):
            def put(self, key: str, data: Any) -> None:
                super().put(key, b"no such thing" if key.endswith("-3.parquet") else data)

        with pytest.raises(Unreachable, match="cannot read") as caught:
            check_reach(bulk, self.opened(Garbled(tmp_path / "blob"), tmp_path).blob_folder())
        assert str(caught.value.detail).endswith(", executor driver)")

    def test_memory_has_no_address(self, bulk: SparkSession, tmp_path: Path) -> None:
        with pytest.raises(InvalidUsage, match="no address"):
            check_reach(bulk, self.opened(MemoryBlob(), tmp_path).blob_folder())

    def test_an_object_store_without_its_connector(
        self, bulk: SparkSession, tmp_path: Path, s3_url: Callable[[str], str]
    ) -> None:
        with Environment.open(tmp_path / "data", blob=s3_url("reach"), background=False) as environment:
            with pytest.raises(Unreachable) as caught:
                check_reach(bulk, environment.blob_folder())
            assert "hadoop-aws" in str(caught.value.hint)
            assert list(environment._blob.list("parts/")) == []
