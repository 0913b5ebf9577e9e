"""Whether Spark's executors reach the blob store: they read what this process wrote, and it reads what they write.

A store that executors cannot see is a store in which views silently stay empty, so this is tried once at the start
rather than believed. Reaching an object store is a matter of Spark's own settings; see `store_settings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from everview.compute.engine.contract import EngineError
from everview.compute.engine.spark.bulk import plain_paths, said
from everview.compute.engine.spark.jobs import failed_tasks, is_connect
from everview.storage.errors import StorageError
from everview.storage.landing import BlobFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = 16  # at least; Spark deals them out to its executors one by one, if they are idle
TASKS_MAX = 1_024
SHOWN_MAX = 5
ROUNDS_MAX = 3  # for executors that were busy
# Who runs a task: its machine, and the number of its process there.
_EXECUTOR = "concat_ws(' process ', try_reflect('{}', 'getLocalHost'), try_reflect('{}', 'current'))".format(
    "java.net.InetAddress", "java.lang.ProcessHandle"
)

_SHARED = (
    "keep blobs in a folder that is mounted at the same path, and can be written to, on this machine and on all of "
    "Spark's, or in an object store"
)
_CONNECTORS = {
    "s3a": "org.apache.hadoop:hadoop-aws of the version of Spark's Hadoop",
    "gs": "Google's gcs-connector for Hadoop 3",
    "abfss": "org.apache.hadoop:hadoop-azure of the version of Spark's Hadoop",
}
_CREDENTIALS = {
    "s3a": "set spark.hadoop.fs.s3a.endpoint, .access.key and .secret.key, or let executors find the credentials",
    "gs": "set spark.hadoop.fs.gs.auth.service.account.json.keyfile, or let executors find the credentials",
    "abfss": "set spark.hadoop.fs.azure.account.key.<account>.dfs.core.windows.net, or let executors find them",
}
_NO_CONNECTOR = ("No FileSystem for scheme", "ClassNotFoundException", "UnsupportedFileSystemException")


class Unreachable(EngineError):
    """Spark's executors and this process do not see the same blob store."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The executors that were tried, and how many there are, where Spark tells."""

    executors: frozenset[str]
    running: int | None


def check_reach(spark: SparkSession, place: BlobFolder) -> Reached:
    """Raise `Unreachable` unless executors can read and write this folder of the blob store, which is removed then."""
    uri = place.uri  # a store without addresses says so itself
    seen: set[str] = set()
    try:
        for number in range(ROUNDS_MAX):
            tasks = _tasks(spark)
            seen |= _check_reading(spark, place, f"read-{number}", tasks)
            _check_writing(spark, place, f"{uri}/written-{number}", tasks, seen)
            running = _running(spark)
            if running is None or len(seen) >= running:
                break
    finally:
        place.discard()
    return Reached(frozenset(seen), running)


def _tasks(spark: SparkSession) -> int:
    """As many as run at once, several times over."""
    slots = 0 if is_connect(spark) else spark.sparkContext.defaultParallelism
    return min(TASKS_MAX, max(TASKS, 2 * slots))


def _running(spark: SparkSession) -> int | None:
    """How many executors there are at the moment; an embedded Spark is its own. Spark Connect does not tell."""
    if is_connect(spark):
        return None
    context: Any = spark.sparkContext._jsc
    return max(1, int(context.sc().getExecutorMemoryStatus().size()) - 1)  # without the driver


def _check_reading(spark: SparkSession, place: BlobFolder, name: str, tasks: int) -> set[str]:
    """Let executors read files that this process writes; gives who has read."""
    files = []
    for number in range(tasks):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": pa.array([number], pa.int64())}), sink)
        files.append(place.put(f"{name}-{number}.parquet", sink.getvalue()))
    with failed_tasks(spark) as failed:
        try:
            # With the schema given, no one but the executors opens the files.
            frame = spark.read.schema("id bigint").parquet(*plain_paths(files))
            found = frame.selectExpr("id", f"{_EXECUTOR} AS executor").collect()
        except Exception as error:  # whatever it is, it kept Spark from reading
            raise _unreachable("read", place.uri, said(error), failed()) from error
    if sorted(row.id for row in found) != list(range(tasks)):
        raise _unreachable("read", place.uri, f"{len(found)} of {tasks} rows were found")
    return {row.executor for row in found}


def _check_writing(spark: SparkSession, place: BlobFolder, uri: str, tasks: int, seen: set[str]) -> None:
    """Read here what executors write; `seen` has those that have read, and gets those that have written."""
    with failed_tasks(spark) as failed:
        try:
            spark.range(0, tasks, 1, tasks).selectExpr("id", f"{_EXECUTOR} AS executor").write.parquet(uri)
        except Exception as error:  # whatever it is, it kept Spark from writing
            raise _unreachable("write", place.uri, said(error), failed()) from error
    found: set[int] = set()
    writers: set[str] = set()
    folder = f"/{uri.rpartition('/')[2]}/"
    try:
        for key in place.files():
            if folder in key:
                with place.open(key) as file:
                    table = pq.ParquetFile(file).read()
                found.update(table.column("id").to_pylist())
                writers.update(table.column("executor").to_pylist())
    except (StorageError, pa.ArrowException, OSError) as error:
        raise _unreachable("write", place.uri, f"what they wrote cannot be read here: {said(error)}") from error
    if len(found) != tasks:
        missing = ", ".join(sorted(seen - writers)[:SHOWN_MAX])
        of = f", and none of {missing}" if missing else ""
        raise _unreachable("write", place.uri, f"of {tasks} rows that they wrote, {len(found)} are found here{of}")
    seen |= writers


def _unreachable(verb: str, uri: str, detail: str, failed: Sequence[str] = ()) -> Unreachable:
    scheme = uri.partition(":")[0]
    if scheme == "file":
        hint = _SHARED
    elif any(word in detail for word in _NO_CONNECTOR):
        connector = _CONNECTORS.get(scheme, f"a file system for {scheme}")
        hint = f"start Spark with its connector, in spark.jars.packages: {connector}"
    else:
        hint = _CREDENTIALS.get(scheme, "check Spark's settings for it")
    at = f" (on {'; '.join(failed[:SHOWN_MAX])})" if failed else ""
    return Unreachable(f"spark's executors cannot {verb} the blob store", detail=f"{uri}: {detail}{at}", hint=hint)
