"""Files of a stream for Spark: tasks decode as the iterator does, with its codecs.

Spark's own reader of JSON is laxer than the codec (it takes a number for text, an array for a message), so a stream
would mean one thing to Spark and another to the iterator. What is plain JSON is read by Arrow, which is as fast.

Rows that are no updates hold a text: one letter says what it is, a statement or bytes that cannot be decoded. Each row
also marks the file that it came from with one bit, by the hash of its name. Some files share a bit.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from everview.cdc.codec.contract import Bad, Item, Partial
from everview.cdc.codec.json import JsonCodec, blocks
from everview.cdc.contract import Progress, Update, Updates
from everview.cdc.errors import SchemaDiffers
from everview.cdc.files import Folder
from everview.cdc.rows import Row, arrays_of
from everview.cdc.schema import StreamSchema, message_schema, stream_schema
from everview.cdc.spark.quick_json import QuickJson
from everview.cdc.spark.types import register, spark_type, time_type
from everview.cdc.times import to_wire
from everview.timely.hashing import hash_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OTHERS = ("diff bigint", "other string", "marks bigint")
_ROWS = 10_000
_TASKS_MAX = 64
_BAD_KEPT = 10  # of each file; the rest is only known to be there


def decoded(session: SparkSession, folder: Folder, names: Sequence[str], schema: StreamSchema) -> DataFrame:
    """The updates in files of a folder, as rows: the columns `c0`, `c1` and so on, `time`, and those of `_OTHERS`.

    What is no update has NULL in all of them but the last two.
    """
    columns = [f"c{place} {spark_type(field.type)}" for place, field in enumerate(schema.data)]
    declared = ", ".join([*columns, f"time {time_type(schema.shape)}", *_OTHERS])
    register(session, StreamFiles)
    reader = session.read.format(StreamFiles.name()).schema(declared)
    stream = json.dumps(message_schema(schema))
    return reader.options(url=folder.url, names=json.dumps(list(names)), stream=stream).load()


class StreamFiles(DataSource):
    """Files `names` of the folder at `url`, of the schema `stream`."""

    @classmethod
    def name(cls) -> str:
        return "everview_cdc_stream"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self.options["url"], json.loads(self.options["names"]), json.loads(self.options["stream"]))


class _Reader(DataSourceReader):
    def __init__(self, url: str, names: list[str], stream: Any) -> None:
        self._url, self._names, self._stream = url, names, stream

    def partitions(self) -> Sequence[InputPartition]:
        tasks = min(_TASKS_MAX, len(self._names))
        return [InputPartition(self._names[task::tasks]) for task in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        schema = stream_schema(self._stream)
        folder = Folder(self._url, read_only=True)
        for name in partition.value:
            yield from FileRows(folder, name, schema).rows()
        folder.close()


class FileRows:
    """What is in one file, as rows."""

    def __init__(self, folder: Folder, name: str, schema: StreamSchema) -> None:
        self._folder, self._name, self._schema = folder, name, schema
        self._codec = folder.codec(name, schema)
        (self._mark,) = marks_of([name])
        self._plain = JsonCodec(schema)
        self._others: list[str] = []
        self._bad = 0

    def rows(self) -> Iterator[pa.RecordBatch]:
        try:
            if self._codec.suffix == ".jsonl":
                yield from self._quickly()
            else:
                yield from self._decoded(self._folder.items(self._name, self._schema))
        except SchemaDiffers as error:
            self._other(Bad(0, b"", str(error).replace("\n", "; ")))
        columns = arrays_of([], self._schema.data)
        yield self._batch(columns, pa.array([], self._time_type), pa.array([], pa.int64()))

    def _quickly(self) -> Iterator[pa.RecordBatch]:
        """Lines in blocks: plain ones by Arrow, others by the codec."""
        quick = QuickJson(self._schema)
        for position, block in self._folder.read(self._name, blocks):
            found = quick.updates(block)
            others = [] if found is None else self._statements(block, found[1])
            if found is None or others is None:
                yield from self._decoded(self._items(block, position))
                continue
            for statement in others:
                self._other(statement)
            if len(found[0]):
                data, times, diffs = found[0].flatten()
                yield self._batch(data.flatten(), times, diffs)

    def _statements(self, block: bytes, numbers: list[int]) -> list[Progress] | None:
        """The statements in some lines of a block; None if there is anything else."""
        if not numbers:
            return []
        lines = block.split(b"\n")
        some = pa.BufferReader(b"\n".join(lines[number] for number in numbers))
        items = list(self._codec.decode_file(some, self._name))
        statements = [item for item in items if isinstance(item, Progress)]
        return statements if len(statements) == len(items) else None

    def _items(self, lines: bytes, position: int) -> Iterator[Item]:
        for item in self._codec.decode_file(pa.BufferReader(lines), self._name):
            if isinstance(item, Bad):
                yield Bad(position + item.position, item.raw, item.reason)
            elif isinstance(item, Partial):
                yield Partial(position + item.position, item.raw)
            else:
                yield item

    def _decoded(self, items: Iterator[Item]) -> Iterator[pa.RecordBatch]:
        updates = self._updates(items)
        while some := list(islice(updates, _ROWS)):
            columns = arrays_of([update[0] for update in some], self._schema.data)
            times = pa.array([to_wire(update[1]) for update in some], self._time_type)
            yield self._batch(columns, times, pa.array([update[2] for update in some], pa.int64()))

    def _updates(self, items: Iterator[Item]) -> Iterator[Update[Row]]:
        for item in items:
            if isinstance(item, Updates):
                yield from item.updates
            else:
                self._other(item)

    def _other(self, item: Progress | Bad | Partial) -> None:
        if isinstance(item, Progress):
            self._others.append(STATEMENT + self._plain.encode(item).decode())
            return
        self._bad += 1
        if self._bad <= _BAD_KEPT:
            self._others.append(text_of(item, self._name))

    @property
    def _time_type(self) -> pa.DataType:
        return pa.int64() if isinstance(self._schema.shape, int) else pa.list_(pa.int64())

    def _batch(self, columns: list[pa.Array], times: pa.Array, diffs: pa.Array) -> pa.RecordBatch:
        """Updates, followed by statements and undecodable bytes found so far."""
        others, self._others = self._others, []
        arrays = [*columns, times, diffs]
        if others:
            arrays = [pa.concat_arrays([array, pa.nulls(len(others), array.type)]) for array in arrays]
        other = pa.concat_arrays([pa.nulls(len(times), pa.string()), pa.array(others, pa.string())])
        marks = pa.array(np.full(len(other), self._mark, dtype=np.int64))
        names = [*(f"c{place}" for place in range(len(columns))), "time", "diff", "other", "marks"]
        return pa.RecordBatch.from_arrays([*arrays, other, marks], names=names)


STATEMENT, BAD, PARTIAL = "p", "b", "c"
MARKS = 63
BAD_BYTES_KEPT = 4096


def text_of(item: Bad | Partial, name: str) -> str:
    """Bytes that cannot be decoded, as a text that identifies them."""
    kind, reason = (BAD, item.reason) if isinstance(item, Bad) else (PARTIAL, "")
    return kind + json.dumps([name, item.position, b64encode(item.raw[:BAD_BYTES_KEPT]).decode(), reason])


def undecodable(text: str) -> Bad | Partial:
    """Read such a text."""
    _, position, held, reason = json.loads(text[1:])
    raw = b64decode(held)
    return Bad(position, raw, reason) if text[0] == BAD else Partial(position, raw)


def marks_of(names: Sequence[str]) -> list[int]:
    """The bit that stands for each file, by its name without folders."""
    hashes = hash_rows([pa.array([name.rpartition("/")[2] for name in names], pa.string())], len(names))
    return [1 << int(value) for value in hashes % MARKS]
