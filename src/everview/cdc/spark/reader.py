"""Reading any pile of files at once: executors parse and deduplicate, the driver finds out which times are closed.

Updates are exchanged by the hash of (data, time) and deduplicated there, once; what results is kept for as long as the
pile is. Counts per time go to the driver, as do progress statements and what cannot be decoded, and a tracker, the same
that the iterator uses, says how far the history is complete. There is no state between piles: files with anything
open in them are read again with the next one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from everview.cdc.codec.contract import Bad, Partial
from everview.cdc.codec.json import JsonCodec
from everview.cdc.contract import Frontier, Progress, Stall
from everview.cdc.errors import Contradiction, InvalidUse, Undecodable
from everview.cdc.files import Folder
from everview.cdc.schema import StreamSchema, message_schema
from everview.cdc.spark.avro import AvroFiles
from everview.cdc.spark.failures import register, spark_failures
from everview.cdc.spark.other import BAD, MARKS, PARTIAL, STATEMENT, marks_of
from everview.cdc.spark.types import beyond, is_time, name_of, spark_type, time_type
from everview.cdc.times import from_wire
from everview.cdc.tracker import Tracker
from everview.compute.functions.spark_sql import quoted
from everview.timely.lattice import Time

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TIMES_MAX = 5_000_000
PARTITION_BYTES = 32 << 20


class Pile:
    """What a pile of files says; close it when done with its updates."""

    def __init__(self, deduplicated: DataFrame, schema: StreamSchema, start: Frontier) -> None:
        self._deduplicated = deduplicated
        self._schema = schema
        self._tracker = Tracker(start)
        self.bad: list[Bad | Partial] = []
        self.closed_updates = 0
        self._statements: list[tuple[Progress, int]] = []
        self._open_marks = 0
        try:
            self._weigh()
        except BaseException:
            self.close()
            raise

    @property
    def frontier(self) -> Frontier:
        """All times not beyond this are closed."""
        return self._tracker.frontier

    @property
    def covered(self) -> Frontier:
        """How far progress statements reach without a gap."""
        return self._tracker.covered

    def stalls(self) -> list[Stall]:
        """What keeps times open."""
        return self._tracker.stalls()

    def contradiction(self) -> Contradiction | None:
        """What contradicts itself at an open time, if anything does."""
        return self._tracker.contradiction()

    def updates(self) -> DataFrame:
        """The updates at closed times: `_time`, `_diff` and the data columns."""
        names = self._schema.data.names
        data = (f"c{place} AS {name_of(name)}" for place, name in enumerate(names))
        closed = self._deduplicated.where(f"other IS NULL AND NOT {beyond('time', self.frontier)}")
        return closed.selectExpr("time AS _time", "low AS _diff", *data)

    def may_be_open(self, names: Sequence[str]) -> list[bool]:
        """For each of the files, whether it may hold anything that is open or cannot be decoded."""
        return [bool(self._open_marks & mark) for mark in marks_of(names)]

    def close(self) -> None:
        """Let go of the updates."""
        self._deduplicated.unpersist()

    def _weigh(self) -> None:
        by_time = self._deduplicated.groupBy("time", "other")
        open_now = by_time.agg(
            *_expressions("count(*) AS updates", "count_if(low <> high) AS conflicts", "bit_or(marks) AS marks")
        )
        rows = open_now.toArrow()
        if rows.num_rows > TIMES_MAX:
            raise InvalidUse(f"a pile of files has more than {TIMES_MAX} open times", hint="read fewer files at once")
        columns = [rows.column(name).to_pylist() for name in ("time", "other", "updates", "conflicts", "marks")]
        counts: dict[Time, tuple[int, int]] = {}
        for wire, other, updates, conflicts, marks in zip(*columns, strict=True):
            if other is not None:
                self._other(other, marks)
                continue
            time = from_wire(wire, self._schema.shape)
            counts[time] = (updates, marks)
            self._tracker.arrive(time, updates)
            for _ in range(min(conflicts, 1)):
                self._tracker.conflict(time)
        for statement, _ in self._statements:
            self._tracker.hear(statement)
        self._tracker.settle()
        for time, (updates, marks) in counts.items():
            if self._tracker.is_open(time):
                self._open_marks |= marks
            else:
                self.closed_updates += updates
        for statement, marks in self._statements:
            if not statement.upper <= self.frontier:
                self._open_marks |= marks

    def _other(self, text: str, marks: int) -> None:
        """A line that holds no updates: a progress statement, or something that cannot be decoded."""
        kind, raw = text[0], text[1:]
        if kind == PARTIAL:
            self.bad.append(Partial(-1, raw.encode()))
        elif kind == BAD:
            self.bad.append(Bad(-1, raw.encode(), "not a message of this stream"))
        else:
            try:
                message = JsonCodec(self._schema).decode(raw.encode())
            except Undecodable as error:
                self.bad.append(Bad(-1, raw.encode(), error.detail or error.message))
            else:
                if isinstance(message, Progress):
                    self._statements.append((message, marks))
                    return
        self._open_marks |= marks


class SparkReader:
    """Reads piles of files of one stream in a session of Spark."""

    def __init__(
        self, session: SparkSession, schema: StreamSchema, folder: Folder, *, partitions: int | None = None
    ) -> None:
        self._session, self._schema, self._folder = session, schema, folder
        self._partitions = partitions

    def read(self, names: Sequence[str], start: Frontier) -> Pile:
        """What these files of the folder say about the times from `start` on."""
        with spark_failures("reading a stream"):
            parsers = {".jsonl": self._json, ".avro": self._avro}
            by_suffix = {suffix: [name for name in names if name.endswith(suffix)] for suffix in parsers}
            frames = [parsers[suffix](named) for suffix, named in by_suffix.items() if named]
            if not frames:
                raise InvalidUse("no files to read", hint="name files that end in .jsonl or .avro")
            rows = frames[0]
            for frame in frames[1:]:
                rows = rows.unionAll(frame)
            rows = rows.where(f"other IS NOT NULL OR {beyond('time', start)}")
            keys = [*(f"c{place}" for place in range(len(self._schema.data))), "time", "other"]
            # Exchanged here and not by the aggregation, for Spark does not adapt the number of tasks of what is kept.
            rows = rows.repartition(self._partitions or self._enough(names), *keys)
            aggregates = _expressions("min(diff) AS low", "max(diff) AS high", "bit_or(marks) AS marks")
            return Pile(rows.groupBy(*keys).agg(*aggregates).persist(), self._schema, start)

    def _enough(self, names: Sequence[str]) -> int:
        """So many partitions that each has a modest share of the files' bytes."""
        wanted = set(names)
        size = sum(info.size_bytes for info in self._folder.files() if info.key in wanted)
        return max(2, -(-size // PARTITION_BYTES))

    @property
    def _columns(self) -> list[str]:
        return [f"c{place} {spark_type(field.type)}" for place, field in enumerate(self._schema.data)]

    def _json(self, names: list[str]) -> DataFrame:
        """Rows of the updates in JSON files; other lines have their text in `other`."""
        time = time_type(self._schema.shape)
        data = ", ".join(f"{name_of(field.name)}: {spark_type(field.type)}" for field in self._schema.data)
        declared = (
            f"schema string, updates array<struct<data: struct<{data}>, time: {time}, diff: bigint>>, "
            "progress string, _broken string"
        )
        lines = self._session.read.text([self._folder.uri(name) for name in names]).selectExpr(
            "value",
            f"from_json(value, {quoted(declared)}, "
            "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '_broken')) AS m",
            f"shiftleft(1L, cast(pmod(xxhash64(_metadata.file_name), {MARKS}L) as int)) AS marks",
        )
        sound = f"coalesce(({self._surely_sound()}) OR forall(m.updates, u -> {self._sound()}), false)"
        judged = lines.where("trim(value) <> ''").selectExpr(
            "value",
            "m",
            "marks",
            f"m._broken IS NULL AND m.progress IS NULL AND m.updates IS NOT NULL AND {sound} AS sound",
        )
        # A line that holds no sound updates becomes one row with nothing but the text.
        rows = judged.selectExpr(
            "marks",
            "CASE WHEN sound THEN NULL"
            f" WHEN m._broken IS NOT NULL THEN concat('{BAD}', value)"
            f" WHEN m.progress IS NOT NULL AND m.updates IS NULL THEN concat('{STATEMENT}', value)"
            " WHEN m.schema IS NOT NULL AND m.updates IS NULL THEN NULL"
            f" ELSE concat('{BAD}', value) END AS other",
            "inline_outer(CASE WHEN sound THEN m.updates END)",
        )
        columns = [f"data.{name_of(field.name)} AS c{place}" for place, field in enumerate(self._schema.data)]
        return rows.where("other IS NOT NULL OR time IS NOT NULL").selectExpr(
            *columns, "time", "diff", "other", "marks"
        )

    def _sound(self) -> str:
        """The condition that an update is one."""
        required = [f"u.data.{name_of(field.name)} IS NOT NULL" for field in self._schema.data if not field.nullable]
        parts = ["u.data IS NOT NULL", "coalesce(u.diff <> 0, false)", is_time("u.time", self._schema.shape), *required]
        return " AND ".join(parts)

    def _surely_sound(self) -> str:
        """A condition that holds only where all updates of a line are sound, and holds of nearly all that are.

        Looking at each update costs more than parsing it. `array_contains` is false only where nothing is NULL.
        """
        if self._schema.shape != 0 or not all(field.nullable for field in self._schema.data):
            return "false"
        nothing = ", ".join(f"{quoted(f.name)}, cast(null as {spark_type(f.type)})" for f in self._schema.data)
        return (
            "NOT array_contains(m.updates.diff, 0L) AND NOT array_contains(m.updates.time, -1L)"
            " AND array_min(m.updates.time) >= 0"
            f" AND NOT array_contains(m.updates.data, named_struct({nothing}))"
        )

    def _avro(self, names: list[str]) -> DataFrame:
        """The same rows out of Avro files, which Spark by itself does not read."""
        declared = [
            *self._columns,
            f"time {time_type(self._schema.shape)}",
            "diff bigint",
            "other string",
            "marks bigint",
        ]
        register(self._session, AvroFiles)
        stream = json.dumps(message_schema(self._schema))
        reader = self._session.read.format(AvroFiles.name()).schema(", ".join(declared))
        return reader.options(url=self._folder.url, names=json.dumps(names), stream=stream).load()


def _expressions(*texts: str) -> list[Column]:
    from pyspark.sql import functions

    return [functions.expr(text) for text in texts]
