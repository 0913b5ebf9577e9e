"""Whether Spark's executors reach the blob store: they read what this process wrote, and it reads what they write.

A store that executors cannot see is a store in which views silently stay empty, so this is tried once at the start
rather than believed. Reaching an object store is a matter of Spark's own settings; see `store_settings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from everview.compute.engine.contract import EngineError
from everview.compute.engine.spark.bulk import plain_paths, said
from everview.storage.errors import StorageError
from everview.storage.landing import BlobFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = 16  # more than one for each executor of a small cluster; a larger one is tried in part

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


def check_reach(spark: SparkSession, place: BlobFolder) -> None:
    """Raise `Unreachable` unless executors can read and write this folder of the blob store, which is removed then."""
    uri = place.uri  # a store without addresses says so itself
    try:
        _check_reading(spark, place, uri)
        _check_writing(spark, place, uri)
    finally:
        place.discard()


def _check_reading(spark: SparkSession, place: BlobFolder, uri: str) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": pa.array(range(TASKS), pa.int64())}), sink)
    files = [place.put(f"read-{number}.parquet", sink.getvalue()) for number in range(TASKS)]
    try:
        # With the schema given, no one but the executors opens the files.
        rows = spark.read.schema("id bigint").parquet(*plain_paths(files)).toArrow().num_rows
    except Exception as error:  # whatever it is, it kept Spark from reading
        raise _unreachable("read", uri, said(error)) from error
    if rows != TASKS * TASKS:
        raise _unreachable("read", uri, f"{rows} of {TASKS * TASKS} rows were found")


def _check_writing(spark: SparkSession, place: BlobFolder, uri: str) -> None:
    try:
        spark.range(0, TASKS, 1, TASKS).write.parquet(f"{uri}/written")
    except Exception as error:  # whatever it is, it kept Spark from writing
        raise _unreachable("write", uri, said(error)) from error
    found: set[int] = set()
    try:
        for key in place.files():
            if "/written/" in key:
                with place.open(key) as file:
                    found.update(pq.ParquetFile(file).read().column("id").to_pylist())
    except (StorageError, pa.ArrowException, OSError) as error:
        raise _unreachable("write", uri, f"what they wrote cannot be read here: {said(error)}") from error
    if len(found) != TASKS:
        raise _unreachable("write", uri, f"of {TASKS} rows that they wrote, {len(found)} are found here")


def _unreachable(verb: str, uri: str, detail: str) -> Unreachable:
    scheme = uri.partition(":")[0]
    if scheme == "file":
        hint = _SHARED
    elif any(word in detail for word in _NO_CONNECTOR):
        connector = _CONNECTORS.get(scheme, f"a file system for {scheme}")
        hint = f"start Spark with its connector, in spark.jars.packages: {connector}"
    else:
        hint = _CREDENTIALS.get(scheme, "check Spark's settings for it")
    return Unreachable(f"spark's executors cannot {verb} the blob store", detail=f"{uri}: {detail}", hint=hint)
