"""Files of updates for Spark to write: a data source whose tasks encode and store them, and count updates per time.

The counts of all tasks that succeeded end up in a file of the stream's folder that readers do not look at, under a name
that the driver chose: it need not run where Spark's driver does.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from everview.cdc.codec.contract import Codec, codec_for
from everview.cdc.contract import Updates
from everview.cdc.files import FILE_UPDATES, MESSAGE_UPDATES, Folder, file_name
from everview.cdc.rows import updates_of
from everview.cdc.schema import stream_schema


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
    """Writes a task's updates."""

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
        cuts = range(0, len(updates), MESSAGE_UPDATES)
        data = codec.encode_file(Updates(updates[at : at + MESSAGE_UPDATES]) for at in cuts)
        counts = Counter(time for _, time, _ in updates if isinstance(time, int))
        # A task that is tried again writes again, under another name: the same updates twice say nothing new.
        folder.put(file_name(min(counts), self._writer, secrets.token_hex(6), self._suffix), data)
        return counts
