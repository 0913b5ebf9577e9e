"""Writing a range of a shard down: executors write files of updates, and say how many there are at each time."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from everview.cdc.files import FILE_UPDATES, Folder
from everview.cdc.schema import StreamSchema, message_schema
from everview.cdc.spark.failures import register, spark_failures
from everview.cdc.spark.files import UpdateFiles
from everview.cdc.spark.types import spark_type
from everview.compute.engine.spark.bulk import plain_paths
from everview.quoting import spark_identifier
from everview.storage.reading import Selection
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
        """Write the updates of a selection, times before `advance_to` as that time; gives how many are at each time."""
        with spark_failures("writing a stream"):
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
            frames.append(self._session.createDataFrame(inline, schema=_struct(declared)))  # type: ignore[call-overload]
        found = frames[0].unionAll(frames[1]) if len(frames) > 1 else frames[0]
        casts = [
            f"cast({spark_identifier(name)} as {spark_type(field.type)}) AS {spark_identifier(field.name)}"
            for name, field in zip(stored, self._schema.data, strict=True)
        ]
        return found.selectExpr(TIME, DIFF, *casts)


def _struct(declared: str) -> object:
    from pyspark.sql.types import StructType

    return StructType.fromDDL(declared)
