"""Change data capture: updates written and read back, by the iterator and by Spark, and the memory of a reader."""

from __future__ import annotations

import gc
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyarrow as pa

from benchmarks.report import Figure, Report, seconds
from everview.cdc.codec.contract import codec_for
from everview.cdc.contract import MESSAGE_UPDATES, Message, Progress, Updates
from everview.cdc.files import FILE_UPDATES, Folder, FolderOutlet
from everview.cdc.reader import START, Reader
from everview.cdc.rows import Row, table_of
from everview.cdc.schema import StreamSchema
from everview.cdc.sink import Sink
from everview.cdc.spark.reader import SparkReader
from everview.cdc.spark.writer import SparkWriter
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = StreamSchema(pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())]))
UPDATES_PER_TIME = 1000
REPEATED = 0.2
TRIES = 5


def run(report: Report, scale: float) -> None:
    """All of them."""
    from everview.compute.engine.spark.session import start

    folder = Path(tempfile.mkdtemp(prefix="everview-bench-"))
    try:
        memory(report, scale)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        spark = start(scratch=folder / "spark")
        spark.warm_up()
        for suffix in (".jsonl", ".avro"):
            through_files(report, scale, folder / suffix[1:], suffix, spark.bulk)
        through_executors(report, scale, folder / "executors", spark.bulk)
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def messages(updates: int, repeated: float = 0.0) -> Iterator[Message[Row]]:
    """A stream whose times close as they go, some of it said twice."""
    rng = random.Random(1)
    for time in range(updates // UPDATES_PER_TIME):
        numbers = range(time * UPDATES_PER_TIME, (time + 1) * UPDATES_PER_TIME)
        batch = Updates([((n, f"name-{n % 100_000}", n / 7), time, 1) for n in numbers])
        yield batch
        if rng.random() < repeated:
            yield batch
        yield Progress(Antichain(time), Antichain(time + 1), ((time, UPDATES_PER_TIME),))


def memory(report: Report, scale: float) -> None:
    """A reader over many updates: what it needs at the end beside what it needed after a tenth."""
    count = max(100_000, int(10_000_000 * scale))
    report.title(f"memory of a reader over {count:,} updates whose times close as they go")
    process = psutil.Process()
    reader: Reader[Row] = Reader()
    early = closed = 0
    for number, message in enumerate(messages(count)):
        result = reader.push(message)
        closed += len(result.updates) if result else 0
        if not early and closed >= count // 10:
            gc.collect()
            early = process.memory_info().rss
        assert reader.open_updates <= UPDATES_PER_TIME, number
    gc.collect()
    late = process.memory_info().rss
    assert closed == count // UPDATES_PER_TIME * UPDATES_PER_TIME
    what = f"reader's process after {count:,} updates"
    ours, reference = f"{late / 2**20:,.0f} MiB", f"{early / 2**20:,.0f} MiB after a tenth of them"
    report.add(Figure(what, ours, reference, late / early, 1.1))


def through_files(report: Report, scale: float, path: Path, suffix: str, session: SparkSession) -> None:
    """The same files read by the iterator, by Spark, and by Spark with nothing but `dropDuplicates`."""
    count = max(20_000, int(1_000_000 * scale))
    report.title(f"{count:,} updates through {suffix[1:]} files, a fifth of them said twice")
    codec, folder = codec_for(suffix, SCHEMA), Folder(str(path))
    said = list(messages(count, REPEATED))
    written = seconds(lambda: FolderOutlet(folder, codec).write(said))
    report.note(f"written by the iterator: {count / written:,.0f} updates/s")
    names = [info.key for info in folder.files()]

    def iterate() -> None:
        reader: Reader[Row] = Reader()
        total = 0
        for name in names:
            for item in folder.items(name, codec):
                result = reader.push(item)  # type: ignore[arg-type]
                total += len(result.updates) if result else 0
        assert total == count

    def on_spark() -> None:
        pile = SparkReader(session, SCHEMA, folder).read(names, START)
        assert pile.closed_updates == count
        pile.updates().write.format("noop").mode("overwrite").save()
        pile.close()

    iterator = seconds(iterate, 2)
    if suffix == ".avro":
        # Spark does not read Avro without a library of its own, so there is nothing to stand beside but the iterator.
        ours = seconds(on_spark, TRIES)
        report.note(f"read by the iterator: {count / iterator:,.0f} updates/s, by Spark: {count / ours:,.0f} updates/s")
        return
    uris = [folder.uri(name) for name in names]
    # In turns: the first tries of each are slow, for Java compiles while it runs, and the machine is not always alike.
    tries = [(seconds(on_spark), seconds(lambda: plainly(session, uris))) for _ in range(TRIES)]
    ours, plain = (min(column) for column in zip(*tries, strict=True))
    reference = f"dropDuplicates {count / plain:,.0f}/s"
    report.add(Figure("read by the iterator, one core", f"{count / iterator:,.0f}/s", reference, iterator / plain, 1.5))
    report.add(Figure("read by Spark", f"{count / ours:,.0f}/s", reference, ours / plain, 1.5))


def plainly(session: SparkSession, uris: list[str]) -> None:
    """What anyone would write who trusts that every file is there and sound."""
    data = "struct<id: bigint, name: string, price: double>"
    lines: DataFrame = session.read.schema(f"updates array<struct<data: {data}, time: bigint, diff: bigint>>").json(
        uris
    )
    rows = lines.selectExpr("inline(updates)").select("data.*", "time", "diff")
    rows.dropDuplicates().write.format("noop").mode("overwrite").save()


def through_executors(report: Report, scale: float, path: Path, session: SparkSession) -> None:
    """A shard written down by one process, and by Spark."""
    count = max(20_000, int(1_000_000 * scale))
    report.title(f"a shard of {count:,} updates written as a stream")
    table = table_of([u for m in messages(count) if isinstance(m, Updates) for u in m.updates], SCHEMA.data)
    with Environment.open(path / "data", background=False) as environment:
        reader, write = environment.create("u1", SCHEMA.data)
        environment.append(write, table, Antichain(count))

        def written(name: str, by_spark: bool) -> float:
            """The seconds that a sink needs for all of it."""
            folder = Folder(str(path / name))
            outlet = FolderOutlet(folder, codec_for(".jsonl", SCHEMA))
            bulk = SparkWriter(session, SCHEMA, folder, ".jsonl", outlet.writer).write if by_spark else None
            return seconds(Sink.create(environment, name, reader, outlet, bulk=bulk, bulk_bytes=0).step)

        iterator = min(written(f"iterator{number}", False) for number in range(2))
        written("first", True)  # a Spark that has never done this takes several times as long
        spark = min(written(f"spark{number}", True) for number in range(3))
    report.note(f"files of {FILE_UPDATES:,} updates, messages of {MESSAGE_UPDATES:,}")
    ours, reference = count / spark, count / iterator
    report.add(
        Figure("written by Spark", f"{ours:,.0f}/s", f"by the iterator {reference:,.0f}/s", reference / ours, 1.5)
    )
