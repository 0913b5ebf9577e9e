"""Writing a range of a shard down: executors write files of updates, and say how many there are at each time.

They do so through a data source of ours. The counts of all tasks that succeeded end up in a file of the stream's folder
that readers do not look at, under a name that the driver chose: the commit need not run where Spark's driver does.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from everview.cdc.codec.contract import Codec, codec_for
from everview.cdc.contract import in_messages
from everview.cdc.files import FILE_UPDATES, Folder, file_name
from everview.cdc.rows import updates_of
from everview.cdc.schema import StreamSchema, message_schema, stream_schema
from everview.cdc.spark.types import register, spark_failures, spark_type
from everview.compute.cancel import in_background
from everview.compute.engine.spark.bulk import plain_paths
from everview.compute.engine.spark.jobs import jobs_of_run
from everview.quoting import spark_identifier
from everview.storage.selection import Selection
from everview.timely.consolidate import DIFF, HASH, TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS_MAX = 1000


class SparkWriter:
    """Writes files into a folder or prefix that the executors can reach as well."""

    def __init__(
        self,
        session: SparkSession,
        schema: StreamSchema,
        folder: Folder,
        suffix: str,
        writer: str,
        *,
        places: Sequence[int] | None = None,
    ) -> None:
        """`places` say which columns of the collection the stream has; by default the first."""
        self._session, self._schema, self._folder = session, schema, folder
        self._suffix, self._writer = suffix, writer
        self._places = range(len(schema.data)) if places is None else places

    def write(self, selection: Selection, advance_to: int | None = None) -> dict[int, int]:
        """Write the updates of a selection, times before `advance_to` as that time; gives how many are at each time.

        So many at once are the contents of a collection, which give way to ticks as hydrations do.
        """
        with spark_failures("writing a stream"), in_background(), jobs_of_run(self._session):
            counts = self._write(selection, advance_to)
        return {} if counts is None else dict(json.loads(self._folder.take(counts)))

    def _write(self, selection: Selection, advance_to: int | None) -> str | None:
        """Let executors write the files; gives the name of the file with the counts, if there is anything to count."""
        names = [spark_identifier(name) for name in self._schema.data.names]
        updates = self._updates(selection)
        low, high = selection.time_range
        time = TIME if advance_to is None else f"greatest({TIME}, {advance_to}L)"
        updates = updates.where(f"{TIME} >= {low}L AND {TIME} < {high}L").selectExpr(f"{time} AS {TIME}", DIFF, *names)
        # A file for each task: left to itself, Spark makes tasks by bytes, too few of them for what encoding takes.
        # Counting reads one column, and of a selection only the most that it may have is known.
        tasks = min(TASKS_MAX, -(-updates.count() // FILE_UPDATES))
        if not tasks:
            return None
        consolidated = (
            updates.repartition(tasks, TIME, *names)
            .groupBy(TIME, *names)
            .agg({DIFF: "sum"})
            .withColumnRenamed(f"sum({DIFF})", DIFF)
            .where(f"{DIFF} <> 0")
        )
        # In the order of time, so that times close as such files are read.
        ordered = consolidated.select(TIME, DIFF, *names).sortWithinPartitions(TIME)
        counts = f"_counts/{self._writer}-{secrets.token_hex(6)}.json"
        register(self._session, UpdateFiles)
        ordered.write.format(UpdateFiles.name()).mode("append").options(
            url=self._folder.url,
            stream=json.dumps(message_schema(self._schema)),
            suffix=self._suffix,
            writer=self._writer,
            counts=counts,
        ).save()
        return counts

    def _updates(self, selection: Selection) -> DataFrame:
        # The collection's columns may have other names than the stream's, and there may be more of them.
        stored = [selection.spec.schema.names[place] for place in self._places]
        columns = [f"{spark_identifier(name)} {spark_type(selection.spec.schema.field(name).type)}" for name in stored]
        declared = ", ".join([f"{TIME} bigint", f"{DIFF} bigint", *columns])
        names = [TIME, DIFF, *stored]
        frames = []
        if selection.parts:
            frames.append(self._session.read.schema(declared).parquet(*plain_paths(selection.uris)))
        if selection.inline or not frames:
            inline = selection.inline_updates().drop_columns([HASH]).select(names)
            frames.append(self._session.createDataFrame(inline, schema=StructType.fromDDL(declared)))  # type: ignore[call-overload]
        found = frames[0].unionAll(frames[1]) if len(frames) > 1 else frames[0]
        casts = [
            f"cast({spark_identifier(name)} as {spark_type(field.type)}) AS {spark_identifier(field.name)}"
            for name, field in zip(stored, self._schema.data, strict=True)
        ]
        return found.selectExpr(TIME, DIFF, *casts)


@dataclass
class Counts(WriterCommitMessage):
    """How many updates at which times a task has written."""

    counts: dict[int, int]


class UpdateFiles(DataSource):
    """New files in the folder at `url`; `stream`, `suffix` and `writer` say how they look, `counts` where counts go."""

    @classmethod
    def name(cls) -> str:
        return "everview_cdc_files"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return _Writer(*(self.options[name] for name in ("url", "stream", "suffix", "writer", "counts")))


class _Writer(DataSourceArrowWriter):
    def __init__(self, url: str, stream: str, suffix: str, writer: str, counts: str) -> None:
        self._url, self._stream, self._suffix = url, stream, suffix
        self._writer, self._counts = writer, counts

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        folder, codec = Folder(self._url), codec_for(self._suffix, stream_schema(json.loads(self._stream)))
        counts: Counter[int] = Counter()
        pending: list[pa.RecordBatch] = []
        for batch in iterator:
            if batch.num_rows:
                pending.append(batch)
            if sum(each.num_rows for each in pending) >= FILE_UPDATES:
                counts.update(self._store(folder, codec, pending))
                pending = []
        if pending:
            counts.update(self._store(folder, codec, pending))
        folder.close()
        return Counts(dict(counts))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        total: Counter[int] = Counter()
        for message in messages:
            if isinstance(message, Counts):
                total.update(message.counts)
        Folder(self._url).put(self._counts, json.dumps(sorted(total.items())).encode())

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """What was written stays: it is true, and will be said again."""

    def _store(self, folder: Folder, codec: Codec, batches: list[pa.RecordBatch]) -> Counter[int]:
        updates = updates_of(pa.Table.from_batches(batches))
        data = codec.encode_file(in_messages(updates))
        counts = Counter(time for _, time, _ in updates if isinstance(time, int))
        # A task that is tried again writes again, under another name: the same updates twice say nothing new.
        folder.put(file_name(min(counts), self._writer, secrets.token_hex(6), self._suffix), data)
        return counts
