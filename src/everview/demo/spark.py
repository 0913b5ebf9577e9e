"""Spark over a collection as it is stored: Parquet parts read by its executors, inline updates handed to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from everview.compute.engine.java import use_java
from everview.errors import EverviewError
from everview.storage.reading import Selection
from everview.timely.consolidate import DIFF, TIME

LOG_LINES_SHOWN = 5

# What makes the first answer quick: there will not be many.
_QUICK: dict[str, Any] = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}


class SparkUnavailable(EverviewError):
    """Spark did not start."""


@contextmanager
def spark_session(scratch: Path) -> Iterator[Any]:
    """An embedded Spark; what it has to say goes to a file in `scratch`."""
    use_java(scratch)
    from pyspark.sql import SparkSession

    log = scratch / "spark.log"
    try:
        with _stderr_to(log):
            builder = SparkSession.builder.master("local[*]").appName("everview demo")
            spark = builder.config(map=_QUICK | {"spark.sql.warehouse.dir": str(scratch / "warehouse")}).getOrCreate()
    except Exception as error:
        last = log.read_text(errors="replace").strip().splitlines()[-LOG_LINES_SHOWN:]
        raise SparkUnavailable("Spark did not start", detail="; ".join([str(error), *last])) from error
    try:
        yield spark
    finally:
        spark.stop()


def bids_per_auction(spark: Any, bids: Selection) -> dict[int, tuple[int, int]]:
    """For each auction with bids at the end of the selected times, how many and the highest."""
    names = [TIME, DIFF, *bids.spec.schema.names]
    updates = spark.createDataFrame(bids.inline_updates().select(names))
    if bids.parts:
        updates = updates.unionByName(spark.read.parquet(*bids.uris).select(*names))
    updates.createOrReplaceTempView("updates")
    answer: pa.Table = spark.sql(
        f"""
        WITH bids AS (
            SELECT auction, bidder, cents, sum({DIFF}) AS copies FROM updates
            WHERE {TIME} < {bids.time_range[1]}
            GROUP BY auction, bidder, cents HAVING sum({DIFF}) <> 0
        )
        SELECT auction, sum(copies) AS bids, max(cents) AS highest FROM bids GROUP BY auction
        """
    ).toArrow()
    return {row["auction"]: (row["bids"], row["highest"]) for row in answer.to_pylist()}


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Let this process and those that it starts write their errors to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
