"""Spark with executors in processes of their own: they read and write parts, and a view is maintained on them.

A process has one Spark, and this one has another, so each test is a child process. `local-cluster` starts a master and
two workers as a cluster has them, from the wheel alone; the other way in is a Spark Connect server.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview
from everview.compute.engine.spark.session import CONNECT_MODULES

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

ROOT = Path(everview.__file__).parent.parent
CLUSTER = "local-cluster[2,1,512]"

HEAD = """
    import sys
    from pathlib import Path

    import pyarrow as pa

    from everview.compute.engine.spark.session import start
    from everview.storage.environment import Environment
    from everview.timely.antichain import Antichain

    folder, address = Path(sys.argv[1]), sys.argv[2]
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "4",
    }
    spark = start(address, scratch=folder / "spark", options={} if address.startswith("sc:") else options)
    environment = Environment.open(folder / "data", background=False)
"""

BULK = """
    from everview.compute.engine.spark.bulk import read_contents, read_updates, write_updates
    from everview.compute.engine.spark.reach import check_reach

    reached = check_reach(spark.bulk, environment.blob_folder())
    assert reached.executors and reached.running in (None, len(reached.executors)), reached
    schema = pa.schema([("c0", pa.int64()), ("c1", pa.string())])
    _, first = environment.create("u1", schema, key=["c0"])
    _, second = environment.create("u2", schema, key=["c1"])
    query = "SELECT id % 3 AS _time, id AS c0, concat('w', id % 5) AS c1, 1L AS _diff FROM range(0, 100000, 1, 4)"
    staged = write_updates(spark.bulk, query, environment.landing("u1"))
    first = environment.append(first, staged, Antichain(3))
    more = pa.table({"_time": [3], "_diff": [-1], "c0": [7], "c1": ["w2"]})
    environment.append(first, more, Antichain(4))
    with environment.changes("u1", 0, 4) as selection:
        assert selection.parts and selection.inline
        read_updates(spark.bulk, selection).createOrReplaceTempView("changes")
        query = "SELECT * FROM changes WHERE c0 < 50000"
        staged = write_updates(spark.bulk, query, environment.landing("u2"))
    environment.append(second, staged, Antichain(4))
    with environment.contents("u2", 3) as selection:
        here = selection.contents()
        assert here.num_rows == 49999 and set(here.column("_diff").to_pylist()) == {1}
        assert read_contents(spark.bulk, selection).selectExpr("sum(_diff)").toArrow().to_pydict() == {
            "sum(_diff)": [49999]
        }
"""

VIEW = """
    from collections import Counter

    from everview.compute.dataflow import maintain_view
    from everview.compute.engine.spark.engine import SparkEngine
    from everview.compute.optimize.pipeline import optimize
    from everview.compute.sql.query import plan
    from tests.compute.sql.tables import TABLES, Tables

    from everview.compute.ir.types import arrow_type

    types = list(TABLES["t"].values())
    names = list(TABLES["t"])
    schema = pa.schema([(f"c{at}", arrow_type(each)) for at, each in enumerate(types)])
    reader, writer = environment.create("t", schema)
    view = optimize(plan("SELECT k, count(*) FROM t GROUP BY k", Tables()).relation)
    dataflow, _ = maintain_view(environment, "v", view, [reader], SparkEngine(spark.small))

    def rows(time, diff, keys):
        columns = {f"c{at}": pa.nulls(len(keys), arrow_type(each)) for at, each in enumerate(types)}
        place = names.index("k")
        columns[f"c{place}"] = pa.array(keys, arrow_type(types[place]))
        return pa.table({"_time": [time] * len(keys), "_diff": [diff] * len(keys), **columns})

    def counts(time):
        with environment.contents("v", time) as selection:
            return Counter({row["c0"]: row["c1"] for row in selection.contents().to_pylist()})

    writer = environment.append(writer, rows(0, 1, [1, 1, 2]), Antichain(1))
    while dataflow.tick():
        pass
    assert counts(0) == {1: 2, 2: 1}
    writer = environment.append(writer, rows(1, -1, [1, 2]), Antichain(2))
    while dataflow.tick():
        pass
    assert counts(1) == {1: 1} and counts(0) == {1: 2, 2: 1}
"""


GIVEN = """
    from pyspark.sql import SparkSession
    from typer.testing import CliRunner

    import everview
    from everview.cli import app

    session = SparkSession.builder.remote(address).create()
    with everview.open(folder / "given", spark=session) as db:
        db.sql("CREATE TABLE t (a int)")
        db.sql("INSERT INTO t SELECT n FROM generate_series(1, 30000) AS n")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT a % 10 AS k, count(*) AS n FROM t GROUP BY 1")
        assert [tuple(row) for row in db.sql("SELECT count(*), sum(n) FROM v")] == [(10, 30000)]
        assert db.frame("v").selectExpr("sum(n)").collect()[0][0] == 30000
        assert db.ready and db.spark is not session
    assert session.sql("SELECT 1 AS one").collect()[0].one == 1  # it goes on
    session.stop()
    told = CliRunner().invoke(app, ["doctor", "--data", str(folder / "given"), "--spark", address])
    assert told.exit_code == 0, told.output
    assert f"at {address}, first job after" in told.output
    assert "its executors can read and write the data" in told.output
"""


def run(folder: Path, address: str, *code: str) -> None:
    """Run the pieces of code in a process of their own."""
    whole = "\n".join(textwrap.dedent(piece) for piece in (HEAD, *code, "spark.stop()\nprint('done')"))
    child = subprocess.run(
        [sys.executable, "-c", whole, str(folder), address],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT.parent), *sys.path]),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        cwd=ROOT.parent,
        capture_output=True,
        text=True,
        timeout=350,
        check=False,
    )
    assert child.returncode == 0 and child.stdout.endswith("done\n"), child.stderr[-4000:]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[str]:
    """The address of a Spark Connect server, which the wheel can start; its client has requirements of its own."""
    if not all(map(importlib.util.find_spec, CONNECT_MODULES)):
        pytest.skip("the client of Spark Connect is not installed: see the extra `connect`")
    import pyspark

    from everview.compute.engine.java import java_home

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }
    home = Path(pyspark.__file__).parent
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    main = "org.apache.spark.sql.connect.service.SparkConnectServer"
    server = subprocess.Popen(
        [home / "bin" / "spark-submit", "--master", "local[2]", *options, "--class", main, "spark-internal"],
        env={**os.environ, "SPARK_HOME": str(home), "JAVA_HOME": str(java_home(tmp_path))},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=(tmp_path / "server.log").open("wb"),
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 120
        while not _listens(port):
            assert server.poll() is None and time.monotonic() < deadline, (tmp_path / "server.log").read_text()[-4000:]
            time.sleep(0.5)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)  # the shell that started Java and Java are one group
        server.wait(30)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_executors_in_other_processes_read_and_write_parts(tmp_path: Path) -> None:
    run(tmp_path, CLUSTER, BULK)


def test_a_view_is_maintained_on_a_cluster(tmp_path: Path) -> None:
    run(tmp_path, CLUSTER, VIEW)


def test_parts_and_a_view_through_spark_connect(tmp_path: Path, connect: str) -> None:
    run(tmp_path, connect, BULK, VIEW)


@pytest.mark.long  # its process sometimes does not end for minutes after all is done
def test_a_session_of_spark_connect_is_given(tmp_path: Path, connect: str) -> None:
    run(tmp_path, connect, GIVEN)
