"""The readers under test, all behind one function: what a list of messages says, from a start on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from everview.cdc.codec.contract import codec_for
from everview.cdc.contract import Frontier, Message, Progress, Stall
from everview.cdc.errors import Contradiction
from everview.cdc.files import Folder
from everview.cdc.reader import START, Reader
from everview.cdc.schema import StreamSchema
from everview.cdc.times import shape_of
from everview.cdc.tracker import Tracker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = pa.schema([("n", pa.int64()), ("text", pa.string())])


@dataclass
class Outcome:
    """What a reader made of the messages."""

    updates: list[Any]
    frontier: Frontier
    stalls: list[Stall] = field(default_factory=list)
    contradiction: Contradiction | None = None

    @property
    def reasons(self) -> dict[Any, str]:
        return {stall.time: stall.reason for stall in self.stalls}


class Run(Protocol):
    """A reader, as a function."""

    def __call__(self, messages: Sequence[Message[Any]], start: Frontier = START) -> Outcome: ...


def iterator(parallelism: int, restart: bool = False) -> Run:
    """The iterator; it may be restarted from a checkpoint after every message."""

    def run(messages: Sequence[Message[Any]], start: Frontier = START) -> Outcome:
        reader: Reader[Any] = Reader(start, parallelism=parallelism)
        out = []
        for number, message in enumerate(messages):
            closed = reader.push(message)
            out += closed.updates if closed else []
            if restart:
                reader = Reader.restore(reader.checkpoint(), parallelism=1 + number % 8)
        return Outcome(out, reader.frontier, reader.stalls(), reader.contradiction())

    return run


def on_spark(session: SparkSession, folder: Path, suffix: str, partitions: int = 2) -> Run:
    """Spark, over the messages in a few files."""
    from everview.cdc.spark.reader import SparkReader

    runs = itertools.count()

    def run(messages: Sequence[Message[Any]], start: Frontier = START) -> Outcome:
        schema = StreamSchema(COLUMNS, shape_of(start.elements[0]) if start.elements else 0)
        codec, here = codec_for(suffix, schema), folder / str(next(runs))
        here.mkdir(parents=True)
        for number in range(3):
            (here / f"{number}{suffix}").write_bytes(codec.encode_file(messages[number::3]))
        with closing(Folder(str(here))) as files:
            names = [path.name for path in sorted(here.iterdir())]
            pile = SparkReader(session, schema, files, partitions=partitions).read(names, start)
        assert not pile.bad
        table = pile.updates().toArrow()
        times = [tuple(t) if isinstance(t, list) else t for t in table.column("_time").to_pylist()]
        rows = zip(table.column("n").to_pylist(), table.column("text").to_pylist(), strict=True)
        updates = list(zip(rows, times, table.column("_diff").to_pylist(), strict=True))
        outcome = Outcome(updates, pile.frontier, pile.tracker.stalls(), pile.tracker.contradiction())
        pile.close()
        return outcome

    return run


def covered_by(folder: Folder, schema: StreamSchema) -> Frontier:
    """How far the progress statements in a folder reach: where a writer that joins the stream goes on."""
    tracker = Tracker(START)
    for info in folder.files():
        for item in folder.items(info.key, schema):
            if isinstance(item, Progress):
                tracker.hear(item)
    return tracker.covered
