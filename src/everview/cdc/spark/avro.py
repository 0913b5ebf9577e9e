"""Avro files for Spark, which does not read them by itself: a data source whose tasks decode as the iterator does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from everview.cdc.codec.contract import Bad, Partial, codec_for
from everview.cdc.codec.json import JsonCodec
from everview.cdc.contract import Progress, Update, Updates
from everview.cdc.files import Folder
from everview.cdc.rows import Row, arrays_of
from everview.cdc.schema import StreamSchema, stream_schema
from everview.cdc.spark.other import BAD, PARTIAL, STATEMENT, marks_of
from everview.cdc.times import to_wire

_ROWS = 10_000
_TASKS_MAX = 64


class AvroFiles(DataSource):
    """Files `names` of the folder at `url`, of the schema `stream`, as rows of updates and of other things."""

    @classmethod
    def name(cls) -> str:
        return "everview_cdc_avro"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self.options["url"], json.loads(self.options["names"]), json.loads(self.options["stream"]))


class _Reader(DataSourceReader):
    """Decodes some files in each task."""

    def __init__(self, url: str, names: list[str], stream: Any) -> None:
        self._url, self._names, self._stream = url, names, stream

    def partitions(self) -> Sequence[InputPartition]:
        tasks = min(_TASKS_MAX, len(self._names))
        return [InputPartition(self._names[task::tasks]) for task in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        schema = stream_schema(self._stream)
        folder = Folder(self._url, read_only=True)
        for name in partition.value:
            yield from _file(folder, name, schema)


def _file(folder: Folder, name: str, schema: StreamSchema) -> Iterator[pa.RecordBatch]:
    codec, plain = codec_for(".avro", schema), JsonCodec(schema)
    (mark,) = marks_of([name])
    updates: list[Update[Row]] = []
    others: list[str] = []
    for item in folder.items(name, codec):
        match item:
            case Updates():
                updates += item.updates
            case Progress():
                others.append(STATEMENT + plain.encode(item).decode())
            case Bad(raw=raw):
                others.append(BAD + raw.decode(errors="backslashreplace"))
            case Partial(raw=raw):
                others.append(PARTIAL + raw.decode(errors="backslashreplace"))
        while len(updates) >= _ROWS:
            yield _rows(updates[:_ROWS], [], mark, schema)
            del updates[:_ROWS]
    yield _rows(updates, others, mark, schema)


def _rows(updates: Sequence[Update[Row]], others: list[str], mark: int, schema: StreamSchema) -> pa.RecordBatch:
    blank = len(others)
    columns = arrays_of([update[0] for update in updates], schema.data)
    columns = [pa.concat_arrays([column, pa.nulls(blank, column.type)]) for column in columns]
    time = pa.int64() if isinstance(schema.shape, int) else pa.list_(pa.int64())
    times = pa.array([*(to_wire(update[1]) for update in updates), *[None] * blank], time)
    diffs = pa.array([*(update[2] for update in updates), *[None] * blank], pa.int64())
    other = pa.array([*[None] * len(updates), *others], pa.string())
    marks = pa.array(np.full(len(updates) + blank, mark, dtype=np.int64))
    names = [*(f"c{place}" for place in range(len(columns))), "time", "diff", "other", "marks"]
    return pa.RecordBatch.from_arrays([*columns, times, diffs, other, marks], names=names)
