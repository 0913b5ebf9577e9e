"""Spark beside the iterator: every type through both codecs, whole shards through executors, random piles, damage."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from everview.cdc.codec.contract import Bad, Partial, codec_for
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.errors import InvalidUse
from everview.cdc.files import Folder, FolderInlet, FolderOutlet
from everview.cdc.mangle import mangle
from everview.cdc.reader import START, Reader
from everview.cdc.rows import rows_of, table_of, updates_of
from everview.cdc.schema import StreamSchema
from everview.cdc.sink import Sink
from everview.cdc.source import Source
from everview.compute.engine.spark.jobs import BACKGROUND
from everview.storage.contract import Extend, UpdateAndDowngrade
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.cdc import values
from tests.cdc.histories import closed_by, random_history
from tests.cdc.readers import on_spark
from tests.cdc.shards import COLUMNS, contents
from tests.cdc.test_property import DATA
from tests.spark_tasks import Jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]  # Spark shares the machine
SCHEMA = StreamSchema(COLUMNS)
RANDOM_SHORT, RANDOM_LONG = 3, 100


@pytest.mark.parametrize("suffix", [".jsonl", ".avro"])
def test_every_value_comes_back(spark: SparkSession, tmp_path: Path, suffix: str) -> None:
    from everview.cdc.spark.reader import SparkReader

    schema = StreamSchema(values.SCHEMA)
    updates = [(row, number, number + 1) for number, row in enumerate(values.rows())]
    said: list[Message[Any]] = [
        Updates(updates * 2),
        Progress(START, Antichain(99), tuple((n, 1) for n in range(len(updates)))),
    ]
    folder = Folder(str(tmp_path / "stream"))
    folder.put(f"all{suffix}", codec_for(suffix, schema).encode_file(said))
    pile = SparkReader(spark, schema, folder).read([f"all{suffix}"], START)
    table = pile.updates().toArrow()
    table = table.cast(pa.schema([("_time", pa.int64()), ("_diff", pa.int64()), *values.SCHEMA]))
    assert sorted(updates_of(table), key=lambda update: update[1]) == updates
    assert (pile.frontier, pile.bad, pile.closed_updates) == (Antichain(99), [], len(updates))
    pile.close()


def test_a_random_pile_says_what_the_iterator_says(
    spark: SparkSession, tmp_path: Path, rng: random.Random, long_forms: bool
) -> None:
    for number in range(RANDOM_LONG if long_forms else RANDOM_SHORT):
        history = random_history(rng, DATA, rng.choice((0, (0, 0))))
        messages = mangle(history.messages, rng, complete=rng.random() < 0.5)
        run = on_spark(spark, tmp_path / str(number), rng.choice((".jsonl", ".avro")), rng.randint(1, 8))
        outcome = run(messages, history.start)
        reader: Reader[Any] = Reader(history.start)
        wanted = [update for message in messages for update in (reader.push(message) or _NOTHING).updates]
        assert Counter(outcome.updates) == Counter(wanted)
        assert closed_by(outcome.frontier, history.shape) == closed_by(reader.frontier, history.shape)


class _Nothing:
    updates: tuple[Any, ...] = ()


_NOTHING = _Nothing()


def test_lines_that_are_no_messages_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    from everview.cdc.spark.reader import SparkReader

    codec = codec_for(".jsonl", SCHEMA)
    folder = Folder(str(tmp_path / "stream"))
    good = codec.encode(Updates([((1, "a"), 1, 1)]))
    bad = [
        b"nonsense",
        b"{}",
        b'{"updates":[{"data":{"n":1,"text":"a"},"time":1,"diff":0}]}',
        b'{"updates":[{"data":{"n":1,"text":"a"},"time":1}]}',
        b'{"updates":[{"data":{"n":"x","text":"a"},"time":2,"diff":1}]}',
        b'{"progress":{"lower":[0],"upper":[5],"counts":[{"time":7,"count":1}]}}',
        good[:-5],
    ]
    folder.put("a.jsonl", b"\n".join([codec.encode(Progress(START, Antichain(5), ((1, 1),))), good, *bad]))
    avro = codec_for(".avro", SCHEMA).encode_file([Updates([((n, "b"), 1, 1)]) for n in range(3)])
    folder.put("b.avro", avro[:-3])
    pile = SparkReader(spark, SCHEMA, folder).read(["a.jsonl", "b.avro"], START)
    said = [item for name in ("a.jsonl", "b.avro") for item in folder.items(name, SCHEMA)]
    wanted = [item for item in said if isinstance(item, (Bad, Partial))]
    assert sorted(pile.bad, key=repr) == sorted(wanted, key=repr) and len(wanted) == len(bad) + 1
    assert pile.closed_updates == 1 and pile.frontier == Antichain(5)
    assert pile.may_be_open(["a.jsonl", "b.avro"]) == [True, True]
    pile.close()
    with pytest.raises(InvalidUse, match="no files"):
        SparkReader(spark, SCHEMA, folder).read([], START)


@pytest.mark.parametrize("suffix", [".jsonl", ".avro"])
def test_a_shard_goes_through_executors_and_comes_back(
    spark: SparkSession, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from everview.cdc.spark import staging
    from everview.cdc.spark.writer import SparkWriter

    monkeypatch.setattr(staging, "STAGE_ROWS", 9_000)
    folder = Folder(str(tmp_path / "stream"))
    outlet = FolderOutlet(folder, codec_for(suffix, SCHEMA))
    writer = SparkWriter(spark, SCHEMA, folder, suffix, outlet.writer)
    with (
        Environment.open(tmp_path / "writing", background=False) as writing,
        Environment.open(tmp_path / "reading", background=False) as reading,
    ):
        reader, write = writing.create("view", COLUMNS)
        rows = [((n, f"a row with number {n}"), n % 5, 1) for n in range(20_000)]
        write = writing.append(write, table_of(rows, COLUMNS), Antichain(5))
        write = writing.append(write, table_of([((1, "b"), 5, 2), ((1, "b"), 5, -1)], COLUMNS), Antichain(6))
        sink = Sink.create(writing, "out", reader, outlet, start=2, bulk=writer.write, bulk_bytes=0)
        source, _ = Source.create(
            reading, "in", "copy", FolderInlet(folder, SCHEMA), SCHEMA, session=spark, bulk_bytes=1
        )
        jobs = Jobs(spark)
        sink.step()
        assert jobs.pools() == {BACKGROUND}
        while source.poll():
            pass
        assert jobs.pools() == {BACKGROUND}
        write = writing.append(write, table_of([(row, 6, -1) for row, _, _ in rows[:15_000]], COLUMNS), Antichain(7))
        sink.step()
        source.poll()
        source = Source(reading, "in", FolderInlet(folder, SCHEMA), SCHEMA, session=spark, bulk_bytes=1)
        while source.poll():
            pass
        assert not [info for info in folder.files() if "_counts" in info.key]
        assert source.status.frontier == sink.status.upper == Antichain(7)
        assert source.status.updates_total == sink.status.updates_total
        assert not contents(reading, "copy", 1)
        for as_of in range(2, 7):
            assert contents(reading, "copy", as_of) == contents(writing, "view", as_of)
        with reading.contents("copy", 6) as selection:
            assert len(rows_of(selection.contents())) == 5_001
        # The shard gets a column more, and rows that change only there: of that the stream says nothing.
        same = [row for row, _, _ in rows[15_000:16_000]]
        more = [((*row, None), 7, -1) for row in same] + [((*row, 1), 7, 1) for row in same] + [((-5, "new", 2), 7, 1)]
        wider = pa.schema([*COLUMNS, ("more", pa.int32())])
        writing.commit(Extend(write, wider), UpdateAndDowngrade(write, table_of(more, wider), Antichain(8)))
        before = sink.status.updates_total
        sink.step()
        assert sink.status.updates_total == before + 1
        while source.poll():
            pass
        assert contents(reading, "copy", 7) == contents(reading, "copy", 6) + Counter({(-5, "new"): 1})


def test_what_is_open_after_a_pile_is_read_again(spark: SparkSession, tmp_path: Path) -> None:
    codec, folder = codec_for(".jsonl", SCHEMA), Folder(str(tmp_path / "stream"))
    for time in range(100):
        statement = Progress(Antichain(time), Antichain(time + 1), ((time, 1),))
        said: list[Message[Any]] = [Updates([((time, "x"), time, 1)]), statement]
        folder.put(f"{time:03d}.jsonl", codec.encode_file(said if time != 90 else said[1:]))
    with Environment.open(tmp_path / "reading", background=False) as reading:
        inlet = FolderInlet(folder, SCHEMA)
        source, _ = Source.create(reading, "in", "copy", inlet, SCHEMA, session=spark, bulk_bytes=1)
        source.poll()
        assert source.status.frontier == Antichain(90)
        assert 50 < len(inlet._spent) < 91
        source.poll()
        assert source.status.open_updates == 9 and source.status.stalls[0].time == 90
        folder.put("late.jsonl", codec.encode_file([Updates([((90, "x"), 90, 1)])]))
        while source.poll():
            pass
        assert source.status.frontier == Antichain(100)
        assert contents(reading, "copy", 99) == Counter({(time, "x"): 1 for time in range(100)})
