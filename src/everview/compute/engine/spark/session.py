"""Spark, started once in this process, and its two sessions: `small` for ticks of few rows, `bulk` for the rest.

Starting takes seconds and so does the first job, so both happen in the background: whoever needs a session first waits
for it. The settings of `small` keep a statement over few rows to one task without code generation; `bulk` leaves
Spark its own ways.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everview.compute.engine.contract import EngineError
from everview.compute.engine.java import use_java
from everview.compute.engine.spark.jobs import fair_scheduling, is_connect
from everview.compute.engine.spark.runs import is_embedded, warm_up_workers
from everview.compute.engine.spark.scratch import temporary_folder_of_java
from everview.compute.engine.spark.store_settings import SECRETS, is_secret
from everview.compute.functions.spark_sql import SETTINGS
from everview.recursion import STACK_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL, CONNECT = "local[*]", "sc://"
CONNECT_MODULES = ("grpc", "grpc_status", "pandas", "zstandard")
CONNECT_TRIES_MAX = 5  # of a request, over some seconds: whoever asks tries again by itself
_EXCLUDED = "spark.sql.optimizer.excludedRules"

SMALL: Mapping[str, str] = {
    **SETTINGS,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # What Spark guesses of the size of a join would make it divide what is known to be small.
    "spark.sql.maxSinglePartitionBytes": str(2**62),
}
COMPILED: Mapping[str, str] = {
    name: value for name, value in SMALL.items() if not name.startswith("spark.sql.codegen.")
}
BULK: Mapping[str, str] = {
    **SETTINGS,
    "spark.sql.adaptive.enabled": "true",
    # Tasks as large as advised rather than as many as there are cores: each task writes a file.
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
}

_QUIET = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
# Java keeps what its heap once took, unless it is told otherwise; most of the time an embedded Spark has little to do.
GIVES_MEMORY_BACK = (
    "-XX:+UseG1GC",
    "-XX:G1PeriodicGCInterval=15000",  # ms without a collection
    "-XX:MinHeapFreeRatio=10",
    "-XX:MaxHeapFreeRatio=30",
)
HEAP_MIB_MIN, HEAP_MIB_MAX = 1024, 4096


@dataclass(frozen=True, slots=True)
class Spark:
    """One Spark, by its two sessions."""

    small: SparkSession
    bulk: SparkSession

    def warm_up(self) -> None:
        """Run what makes the first job of a JVM slow."""
        for session in (self.small, self.bulk):
            session.sql("SELECT id % 2 AS c0, sum(id) AS c1 FROM range(10) GROUP BY 1").toArrow()
        if is_embedded(self.bulk):
            warm_up_workers(self.bulk)

    def release(self) -> None:
        """Let go of what `profiles` made on a Spark that someone else has."""
        for session in (self.small, self.bulk):
            if is_connect(session):  # else a session is only memory
                session.client.release_session()

    def stop(self) -> None:
        """End the sessions, and a Spark that was started here."""
        self.small.stop()
        self.bulk.stop()


def profile(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """The session with these settings; rules that are excluded already stay excluded."""
    for name, value in settings.items():
        given = session.conf.get(name, "") if name == _EXCLUDED else ""
        session.conf.set(name, ",".join(dict.fromkeys([*filter(None, (given or "").split(",")), value])))
    return session


def profiles(session: SparkSession) -> Spark:
    """Two sessions with settings and temporary views of their own, on the Spark of this one."""
    if is_connect(session):  # there is no `newSession`, and nobody tells how many cores there are
        copied: Any = session
        _ = session.version  # the server knows a session, and can copy it, since its first request
        return Spark(profile(copied.cloneSession(), SMALL), profile(copied.cloneSession(), BULK))
    # Of two hundred partitions, which is what Spark takes, most would be a task for nothing.
    partitions = max(8, 4 * session.sparkContext.defaultParallelism)
    bulk = {**BULK, "spark.sql.shuffle.partitions": str(partitions)}
    return Spark(profile(session.newSession(), SMALL), profile(session.newSession(), bulk))


def start(address: str = LOCAL, *, scratch: Path | None = None, options: Mapping[str, str] | None = None) -> Spark:
    """Start Spark, or reach the one at the address: `local[*]`, `spark://...`, `sc://...`, or any other master.

    Under `scratch` goes what Spark writes down in this machine; without it, a new temporary folder is made.
    """
    from pyspark.sql import SparkSession

    if address.startswith(CONNECT):
        with _connect_mode():
            return Spark(profile(_connected(address), SMALL), profile(_connected(address), BULK))
    folder = scratch or Path(tempfile.mkdtemp(prefix="everview-spark-"))
    # Data sources in Python are looked up by workers that know of no setting.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    use_java(folder)
    settings = {
        **_QUIET,
        **fair_scheduling(folder),
        "spark.master": address,
        "spark.app.name": "everview",
        "spark.redaction.regex": SECRETS,
        "spark.pyspark.python": sys.executable,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    if address.startswith("local"):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        settings["spark.driver.memory"] = f"{_driver_memory_mib()}m"
        settings["spark.executor.heartbeatInterval"] = "2s"  # so often tasks tell how many rows they have read
        settings["spark.python.daemon.module"] = "everview.compute.engine.spark.daemon"
        if not address.startswith("local-cluster"):
            # Its ports are open to every account of this machine: who has not the secret that it makes is not heard.
            settings["spark.authenticate"] = "true"
        # Spark's parser and analyzer recurse into deep expressions as much as the planner here does.
        options_of_java = [
            f"-Djava.io.tmpdir={temporary_folder_of_java()}",
            f"-Xss{STACK_BYTES >> 20}m",
            *GIVES_MEMORY_BACK,
        ]
        settings["spark.driver.extraJavaOptions"] = " ".join(options_of_java)
    settings |= options or {}
    _launch(settings)
    return profiles(SparkSession.builder.config(map=dict(settings)).getOrCreate())


@contextmanager
def _connect_mode() -> Iterator[None]:
    """If the block fails, leave the mode of Spark Connect, in which PySpark would keep this process."""
    name = "SPARK_CONNECT_MODE_ENABLED"
    before = os.environ.get(name)
    try:
        yield
    except BaseException:
        if before is None:
            os.environ.pop(name, None)
        raise


def _connected(address: str) -> SparkSession:
    """A session of a Spark Connect server. It gives up on a silent one after seconds; PySpark takes ten minutes."""
    missing = [name for name in CONNECT_MODULES if find_spec(name) is None]
    if missing:
        raise EngineError(
            "the client of spark connect needs packages that are not installed",
            detail=f"missing: {', '.join(missing)}",
            hint="install them: pip install 'everview[connect]'",
        )
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session = SparkSession.builder.remote(address).create()
    session.client.set_retry_policies([DefaultPolicy(max_retries=CONNECT_TRIES_MAX - 1)])
    return session


def _launch(settings: Mapping[str, str]) -> None:
    """Start Java, unless this process has it, with the settings that are no secrets.

    PySpark puts them on the command line of Java, which every account of this machine can read. The SparkContext is
    made with all of them, which it gets over PySpark's connection to Java.
    """
    from pyspark import SparkConf, SparkContext

    if SparkContext._gateway is None:
        shown = [(name, value) for name, value in settings.items() if not is_secret(name)]
        SparkContext._ensure_initialized(conf=SparkConf().setAll(shown))


def _driver_memory_mib() -> int:
    """Of an embedded Spark, which is driver and executor at once: a quarter of the machine's memory, within reason."""
    total_mib = (os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) >> 20
    return max(HEAP_MIB_MIN, min(total_mib // 4, HEAP_MIB_MAX))
