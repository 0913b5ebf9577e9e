"""Names, comments, parameters and texts of users reach Spark as what they are: in reads, writes, views and streams."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.settings import LOCAL, PEEK_ENGINE, SPARK
from everview.cdc.codec.contract import codec_for
from everview.cdc.files import Folder, FolderInlet, FolderOutlet
from everview.cdc.rows import table_of
from everview.cdc.schema import StreamSchema
from everview.cdc.sink import Sink
from everview.cdc.source import Source
from everview.compute import dataflow
from everview.compute.engine.contract import LargeEngine
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import Spark, profiles
from everview.compute.large_tick import LargeChanges, LargeTick
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.adapter.delivery import ok, rows
from tests.adapter.scripts import SessionClient
from tests.cdc.shards import contents
from tests.compute.sql.test_strings import ALL, HOSTILE, literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]  # Spark shares the machine

# Names that differ in their case alone are two, and so are ours and those of users.
NAMES = (
    "`", "``x", '"', "'", "it''s", "\\", "\\u0041", "${env:HOME}", "{{ x }}", "{0}", "a.b", "a b", "--", "/*", "*", "%",
    "a", "A", "c0", "C0", "everview_input_0", "@input0@", "select", "1", "\n", "\u00e9", "\U0001f600",
)  # fmt: skip
TABLE = "${env:HOME} `{{'\"--"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture
def coordinator(tmp_path: Path, spark: SparkSession) -> Iterator[Coordinator]:
    started: Future[Spark] = Future()
    started.set_result(profiles(spark))
    with Coordinator.open(tmp_path, spark=started, engine=SparkEngine.of(profiles(spark))) as opened:
        assert opened.ready()
        yield opened


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The collections that were written by large ticks."""
    run, seen = LargeTick.run, list[str]()

    def counted(tick: LargeTick, engine: LargeEngine) -> LargeChanges:
        seen.append(tick.output)
        return run(tick, engine)

    monkeypatch.setattr(LargeTick, "run", counted)
    return seen


def test_nothing_of_users_means_anything_to_spark(
    coordinator: Coordinator, large: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sql, table = SessionClient(coordinator), quoted(TABLE)
    columns = ", ".join(map(quoted, NAMES))
    texts = ", ".join(f"({number}, {literal(text)})" for number, text in enumerate(HOSTILE))
    copies = ", ".join(f"v || {literal(name)}" for name in NAMES)
    ok(
        sql,
        f"CREATE TABLE {table} (k int, {', '.join(f'{quoted(name)} text' for name in NAMES)})",
        "CREATE TABLE h (i int, v text)",
        f"INSERT INTO h VALUES {texts}",
        f"SET {PEEK_ENGINE} = {SPARK}",
        f"INSERT INTO {table} SELECT i /* ' ` ${{env:HOME}} */, {copies} -- ' ${{env:HOME}} {{{{\n FROM h",
    )
    definition = f"""SELECT k, {columns}, {quoted("`")} || {literal(ALL)} AS {quoted("{0}`'")} -- it's ${{env:HOME}} `
        FROM {table} /* ' " ` ${{env:HOME}} {{{{ */ AS {quoted("`t`")} WHERE {quoted("`")} <> {literal(ALL)}"""
    grouped = f"""SELECT {quoted("a")} || {quoted("A")} AS {quoted("A")}, max({quoted("`t`")}.{quoted("a.b")}) AS m,
        count(*) FILTER (WHERE {quoted("'")} LIKE '%''') AS n, normalize(min({literal(ALL)} || {quoted("*")})) AS p
        FROM {table} AS {quoted("`t`")} WHERE {quoted("`")} IN ({", ".join(literal(f"{each}`") for each in HOSTILE)})
        GROUP BY 1"""
    monkeypatch.setattr(dataflow, "LARGE_ROWS_MIN", 0)
    ok(sql, f"CREATE MATERIALIZED VIEW {quoted('`v`')} AS {definition}", f"CREATE MATERIALIZED VIEW g AS {grouped}")
    changes = (
        f"DELETE FROM {table} WHERE k % 5 = 0",
        f"INSERT INTO {table} SELECT k + 100, {columns} FROM {table} WHERE {quoted('`')} LIKE '%''`' OR k < 9",
    )
    for rows_min, change in ((10**9, changes[0]), (0, changes[1])):
        monkeypatch.setattr(dataflow, "LARGE_ROWS_MIN", rows_min)
        before = len(large)
        ok(sql, change)
        for view, query in ((quoted("`v`"), definition), ("g", grouped)):
            found = {}
            for engine in (LOCAL, SPARK):
                ok(sql, f"SET {PEEK_ENGINE} = {engine}")
                found[engine], found[f"{engine}, view"] = rows(sql(query)), rows(sql(f"SELECT * FROM {view}"))
            assert len(found[LOCAL]) > 20
            assert {name for name, each in found.items() if each != found[LOCAL]} == set(), f"{view} after {change}"
        assert rows_min or len(large) > before, "the tick was of the size that was wanted"


def test_parameters_mean_nothing_to_spark(coordinator: Coordinator) -> None:
    sql = SessionClient(coordinator)
    texts = ", ".join(f"({number}, {literal(text)})" for number, text in enumerate(HOSTILE))
    ok(sql, "CREATE TABLE h (i int, v text)", f"INSERT INTO h VALUES {texts}", f"SET {PEEK_ENGINE} = {SPARK}")
    query = "SELECT i, $1 || v, normalize($1 || $2) FROM h WHERE v = $2 OR v = ANY ($3)"
    values = [ALL, HOSTILE[0], HOSTILE[1:]]
    found = {}
    for engine in (LOCAL, SPARK):
        ok(sql, f"SET {PEEK_ENGINE} = {engine}")
        result: Any = sql.session.run(sql.session.prepare(query), values)
        found[engine] = sorted(row for batch in result.batches() for row in batch)
        sql.session.sync()
    assert found[LOCAL] == found[SPARK]
    assert [row[0] for row in found[SPARK]] == list(range(len(HOSTILE)))


@pytest.mark.parametrize("suffix", [".jsonl", ".avro"])
def test_columns_of_a_stream_may_have_any_name(spark: SparkSession, tmp_path: Path, suffix: str) -> None:
    """Executors write the collection down, and executors read it."""
    from everview.cdc.spark.writer import SparkWriter

    bulk = profiles(spark).bulk
    columns = pa.schema([(name, pa.string()) for name in NAMES])
    schema, folder = StreamSchema(columns), Folder(str(tmp_path / "stream"))
    outlet = FolderOutlet(folder, codec_for(suffix, schema))
    writer = SparkWriter(bulk, schema, folder, suffix, outlet.writer)
    with (
        Environment.open(tmp_path / "writing", background=False) as writing,
        Environment.open(tmp_path / "reading", background=False) as reading,
    ):
        reader, write = writing.create("view", columns)
        updates = [(tuple(f"{name}{text}" for name in NAMES), 1, 1) for text in HOSTILE]
        writing.append(write, table_of(updates, columns), Antichain(5))
        sink = Sink.create(writing, "out", reader, outlet, start=0, bulk=writer.write, bulk_bytes=0)
        inlet = FolderInlet(folder, schema)
        source, _ = Source.create(reading, "in", "copy", inlet, schema, session=bulk, bulk_bytes=1)
        sink.step()
        while source.poll():
            pass
        assert source.status.frontier == sink.status.upper == Antichain(5)
        assert contents(reading, "copy", 4) == contents(writing, "view", 4)
        assert len(contents(reading, "copy", 4)) == len(HOSTILE)
