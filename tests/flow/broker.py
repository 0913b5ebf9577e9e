"""A real Kafka broker for tests, from Maven Central: the one that librdkafka carries does not honour aborts.

Its jars are fetched once, by the Ivy that Spark brings along, and kept in pytest's cache.
"""

from __future__ import annotations

import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from everview.compute.engine.java import find_java

VERSION = "4.1.0"
FETCH_S, START_S = 900.0, 180.0


def jars(cache: Path) -> Path:
    """The folder with the broker's jars; skips the test where they cannot be had."""
    folder, complete = cache / "jars", cache / "complete"
    if complete.exists():
        return folder
    ivy = next(Path(_spark_home(), "jars").glob("ivy-*.jar"))
    command: list[str | Path] = [
        *(_java(), "-jar", ivy, "-cache", cache / "ivy", "-confs", "default", "-types", "jar", "bundle"),
        *("-dependency", "org.apache.kafka", "kafka_2.13", VERSION),
        *("-retrieve", f"{folder}/[artifact]-[revision].[ext]"),
    ]
    try:
        subprocess.run(command, capture_output=True, timeout=FETCH_S, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        last = (error.stdout or b"").decode(errors="replace").strip().splitlines()[-1:]
        pytest.skip(f"Maven Central cannot be reached, so there is no real Kafka broker to abort at: {' '.join(last)}")
    complete.touch()
    return folder


@contextmanager
def running(lib: Path, folder: Path) -> Iterator[str]:
    """A broker that keeps its data in a folder; gives its address."""
    port, controller = _free_ports(2)
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "logs"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
    }
    config = folder / "server.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    java = [_java(), "-Xmx512m", "-cp", f"{lib}/*"]
    # Not one that begins with a dash: the tool would take it for an option.
    cluster = "A" + urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
    formatting = [*java, "kafka.tools.StorageTool", "format", "--cluster-id", cluster, "--config", str(config)]
    subprocess.run(formatting, check=True, capture_output=True, timeout=START_S)
    with (folder / "broker.log").open("w") as log:
        broker = subprocess.Popen([*java, "kafka.Kafka", str(config)], stdout=log, stderr=log)
    try:
        _wait(broker, port, folder / "broker.log")
        yield f"127.0.0.1:{port}"
    finally:
        broker.terminate()
        try:
            broker.wait(30)
        except subprocess.TimeoutExpired:
            broker.kill()
            broker.wait()


def _wait(broker: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        assert broker.poll() is None, f"the broker ended: {log.read_text()[-2000:]}"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"the broker does not listen: {log.read_text()[-2000:]}"
            time.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _java() -> str:
    return str(find_java().home / "bin" / "java")


def _spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent
