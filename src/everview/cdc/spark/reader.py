"""Reading any pile of files at once: executors decode and deduplicate, the driver finds out which times are closed.

Updates are exchanged by the hash of (data, time) and deduplicated there, once; what results is kept for as long as the
pile is. Counts per time go to the driver, as do progress statements and what cannot be decoded, and a tracker, the same
that the iterator uses, says how far the history is complete. There is no state between piles: files with anything
open in them are read again with the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from everview.cdc.codec.contract import Bad, Partial
from everview.cdc.codec.json import JsonCodec
from everview.cdc.contract import Frontier, Progress
from everview.cdc.errors import InvalidUse
from everview.cdc.files import Folder
from everview.cdc.schema import StreamSchema
from everview.cdc.spark.stream_files import STATEMENT, decoded, marks_of, undecodable
from everview.cdc.spark.types import beyond, spark_failures
from everview.cdc.times import from_wire
from everview.cdc.tracker import Tracker
from everview.quoting import spark_identifier
from everview.timely.lattice import Time

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TIMES_MAX = 5_000_000
PARTITION_BYTES = 32 << 20


class Pile:
    """What a pile of files says; close it when done with its updates."""

    def __init__(
        self, deduplicated: DataFrame, schema: StreamSchema, start: Frontier, holds: Mapping[Time, tuple[str, str]]
    ) -> None:
        self._deduplicated = deduplicated
        self._schema = schema
        self._codec = JsonCodec(schema)
        self.tracker = Tracker(start)  # which knows what keeps times open
        for time, (reason, detail) in holds.items():
            self.tracker.hold(time, reason, detail)
        self.bad: list[Bad | Partial] = []
        self.closed_updates = 0
        self.weight_max = 0  # no row can come or go more often than so many times
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
        return self.tracker.frontier

    def updates(self) -> DataFrame:
        """The updates at closed times: `_time`, `_diff` and the data columns."""
        names = self._schema.data.names
        data = (f"c{place} AS {spark_identifier(name)}" for place, name in enumerate(names))
        closed = self._deduplicated.where(f"other IS NULL AND NOT {beyond('time', self.frontier)}")
        return closed.selectExpr("time AS _time", "low AS _diff", *data)

    def may_be_open(self, names: Sequence[str]) -> list[bool]:
        """For each of the files, whether it may hold anything that is open or cannot be decoded."""
        return [bool(self._open_marks & mark) for mark in marks_of(names)]

    def close(self) -> None:
        self._deduplicated.unpersist()

    def _weigh(self) -> None:
        by_time = self._deduplicated.groupBy("time", "other")
        open_now = by_time.agg(
            *_expressions(
                "count(*) AS updates",
                "count_if(low <> high) AS conflicts",
                "bit_or(marks) AS marks",
                "max(abs(cast(low AS double))) AS largest",
            )
        )
        rows = open_now.toArrow()
        if rows.num_rows > TIMES_MAX:
            raise InvalidUse(f"a pile of files has more than {TIMES_MAX} open times", hint="read fewer files at once")
        columns = [
            rows.column(name).to_pylist() for name in ("time", "other", "updates", "conflicts", "marks", "largest")
        ]
        counts: dict[Time, tuple[int, int]] = {}
        for wire, other, updates, conflicts, marks, largest in zip(*columns, strict=True):
            if other is not None:
                self._other(other, marks)
                continue
            time = from_wire(wire, self._schema.shape)
            counts[time] = (updates, marks)
            self.weight_max += updates * int(largest)
            self.tracker.arrive(time, updates)
            for _ in range(min(conflicts, 1)):
                self.tracker.conflict(time)
        for statement, _ in self._statements:
            self.tracker.hear(statement)
        self.tracker.settle()
        for time, (updates, marks) in counts.items():
            if self.tracker.is_open(time):
                self._open_marks |= marks
            else:
                self.closed_updates += updates
        for statement, marks in self._statements:
            if not statement.upper <= self.frontier:
                self._open_marks |= marks

    def _other(self, text: str, marks: int) -> None:
        if text.startswith(STATEMENT):
            message = self._codec.decode(text[1:].encode())
            assert isinstance(message, Progress)
            self._statements.append((message, marks))
            return
        self.bad.append(undecodable(text))
        self._open_marks |= marks


class SparkReader:
    """Reads piles of files of one stream in a session of Spark."""

    def __init__(
        self, session: SparkSession, schema: StreamSchema, folder: Folder, *, partitions: int | None = None
    ) -> None:
        self._session, self._schema, self._folder = session, schema, folder
        self._partitions = partitions

    def read(self, names: Sequence[str], start: Frontier, holds: Mapping[Time, tuple[str, str]] | None = None) -> Pile:
        """What these files of the folder say about the times from `start` on; the times of `holds` stay open."""
        with spark_failures("reading a stream"):
            if not names:
                raise InvalidUse("no files to read", hint="name files that end in .jsonl or .avro")
            rows = decoded(self._session, self._folder, names, self._schema)
            rows = rows.where(f"other IS NOT NULL OR {beyond('time', start)}")
            keys = [*(f"c{place}" for place in range(len(self._schema.data))), "time", "other"]
            # Exchanged here and not by the aggregation, for Spark does not adapt the number of tasks of what is kept.
            rows = rows.repartition(self._partitions or self._enough(names), *keys)
            aggregates = _expressions("min(diff) AS low", "max(diff) AS high", "bit_or(marks) AS marks")
            return Pile(rows.groupBy(*keys).agg(*aggregates).persist(), self._schema, start, holds or {})

    def _enough(self, names: Sequence[str]) -> int:
        """The number of partitions that gives each a modest share of the files' bytes."""
        wanted = set(names)
        size = sum(info.size_bytes for info in self._folder.files() if info.key in wanted)
        return max(2, -(-size // PARTITION_BYTES))


def _expressions(*texts: str) -> list[Column]:
    from pyspark.sql import functions

    return [functions.expr(text) for text in texts]
