"""Updates written by Spark's tasks in our own format: sorted runs, made of Arrow batches in Python.

Spark's writer goes through every value of every row, and to sort and consolidate rows in SQL takes as long again. A
task that hands its rows over as Arrow columns has them hashed, sorted, consolidated and written by the same vectorised
code that writes parts here, in less than half the time. Each file is one run. A few runs that cover all hashes are
searched as quickly as files that divide the hashes among them, so only what is large is divided by ranges of the hash.

It takes a folder that executors write to directly, and Everview in their Python; else `bulk.write_updates` does it.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import structlog

from everview.storage.batch import Part, as_declared
from everview.storage.disk import make_folder
from everview.storage.landing import Landing
from everview.storage.parts import write_run
from everview.storage.staging import Staged
from everview.timely.consolidate import HASH, consolidate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUN_ROWS, RUN_BYTES = 1 << 20, 128 << 20  # of what a task holds in memory before it writes
_FOLDER = "file://"
_REMOVALS_MAX = 100
_MAP_ARROW_BATCHES = 207  # Spark's number for functions from batches to batches
_WRITTEN = (
    "name string, rows bigint, size_bytes bigint, checksum string, hash_min bigint, hash_max bigint,"
    " time_min bigint, time_max bigint, retractions bigint, added bigint, removed bigint"
)
_log = structlog.get_logger()
_able: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


def can_write_runs(session: SparkSession, landing: Landing) -> bool:
    """Whether tasks can write to the landing by themselves."""
    if not hasattr(session, "_jsparkSession") or not landing.uri.startswith(_FOLDER):
        return False
    if session not in _able:
        _able[session] = is_embedded(session) or _executors_have_everview(session)
    return _able[session]


def is_embedded(session: SparkSession) -> bool:
    """Whether its tasks run in this machine, with what this process has."""
    return hasattr(session, "_jsparkSession") and str(session.sparkContext.master).startswith("local[")


def warm_up_workers(session: SparkSession) -> None:
    """Have a Python process with Everview in it for each core of this machine."""
    cores = session.sparkContext.defaultParallelism
    _through(session.range(cores, numPartitions=cores), _nothing, "name string").collect()


def write_runs(divided: DataFrame, landing: Landing) -> Staged:
    """Write the updates, which have the types of the landing's collection, a run or more for each partition.

    A task that goes on although its job has ended, as one does for a moment, finds no folder to write to any more.
    """
    spec, folder = landing.spec, Path(landing.uri.removeprefix(_FOLDER))
    make_folder(folder, 0o700)
    write = RunWriter(folder, spec.at_rest, tuple(spec.key))
    try:
        rows = _through(divided.select(*spec.at_rest.names), write, _WRITTEN).collect()
    except BaseException:
        _close(folder)
        raise
    if not rows:
        _close(folder)
    return landing.written([Part(*row) for row in rows])


def _close(folder: Path) -> None:
    """Remove a folder for good, though tasks may still be putting files there."""
    for _ in range(_REMOVALS_MAX):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


@dataclass(frozen=True)
class RunWriter:
    """What a task does with its rows."""

    folder: Path
    schema: pa.Schema
    key: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the batches, and say of each run what it is."""
        pending: list[pa.RecordBatch] = []
        rows = size_bytes = 0
        for batch in batches:
            pending.append(batch)
            rows, size_bytes = rows + batch.num_rows, size_bytes + batch.nbytes
            if rows >= RUN_ROWS or size_bytes >= RUN_BYTES:
                yield from self._written(pending)
                pending, rows, size_bytes = [], 0, 0
        if rows:
            yield from self._written(pending)

    def _written(self, pending: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        updates = as_declared(pa.Table.from_batches(pending), self.schema).combine_chunks()
        updates = consolidate(updates, self.key)
        if not updates.num_rows:
            return
        name = f"run-{uuid.uuid4().hex}.parquet"
        draft = self.folder / f"_{name}"  # which is no blob until it is whole
        run = replace(write_run(updates.select([HASH, *self.schema.names]), draft), key=name)
        os.replace(draft, self.folder / name)
        yield pa.RecordBatch.from_pylist(
            [
                {
                    "name": run.key,
                    "rows": run.rows,
                    "size_bytes": run.size_bytes,
                    "checksum": run.checksum,
                    "hash_min": run.hash_min,
                    "hash_max": run.hash_max,
                    "time_min": run.time_min,
                    "time_max": run.time_max,
                    "retractions": run.retractions,
                    "added": run.added,
                    "removed": run.removed,
                }
            ]
        )


def _nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Where it is called, this module has been imported."""
    yield from (pa.RecordBatch.from_pylist([], pa.schema([("name", pa.string())])) for _ in batches)


def _executors_have_everview(session: SparkSession) -> bool:
    from pyspark.errors import PySparkException

    try:
        warm_up_workers(session)
    except PySparkException as error:
        said = str(error).strip().splitlines()
        _log.warning("executors cannot run everview, so spark writes state itself, slower", detail=said[-1:])
        return False
    return True


def _through(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """`DataFrame.mapInArrow`, which would ask for pandas without using it."""
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from pyspark.sql.udf import UserDefinedFunction

    def called(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return function(batches)

    declared: Any = StructType.fromDDL(schema)
    over_columns: Any = UserDefinedFunction(called, returnType=declared, evalType=_MAP_ARROW_BATCHES)
    source: Any = frame
    mapped = source._jdf.mapInArrow(over_columns(*(frame[name] for name in frame.columns))._jc, False, None)
    return DataFrame(mapped, frame.sparkSession)
