"""Endpoints for the suite: our own drivers with places of their own, and a way to read what arrived there.

Where an endpoint has no reader, it is asked through the protocol itself, by loading every key. What is append-only
cannot be loaded: of a program, a command of the user's reads it, or it is said that it was not compared.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import threading
import uuid
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from everview.flow.check.harness import Endpoint
from everview.flow.check.workload import Document
from everview.flow.connector.description import collection_name
from everview.flow.connector.rows import OPERATION
from everview.flow.connector.schemas import marked
from everview.flow.contract import Binding
from everview.flow.documents import loads
from everview.flow.drivers.command import CommandDriver
from everview.flow.drivers.kafka import KafkaDriver, committed_records
from everview.flow.drivers.parquet import DELETED, TRANSACTION
from everview.flow.drivers.registry import open_driver
from everview.flow.drivers.sql import quoted
from everview.flow.errors import DriverFailed, InvalidMaterialization

NAMES = ("totals", "view", "log")
CLEAN = "clean"  # a command that removes a place of a program, with {name} in it
READ = "read"  # and one that prints its rows, each as a JSON object on a line
Rows = list[tuple[Document, bool]]


def make_endpoint(
    name: str, config: Mapping[str, Any], folder: Path, resource: Mapping[str, Any] | None = None
) -> Endpoint:
    """An endpoint for one run, with places that nothing else uses."""
    maker = _MAKERS.get(name)
    if maker is None:
        raise InvalidMaterialization(f"no driver is called {name}", hint=f"one of {', '.join(_MAKERS)}")
    return maker(dict(config), folder, resource)


def _fresh() -> str:
    return f"everview_check_{uuid.uuid4().hex[:10]}"


def _plain(rows: list[Document]) -> Rows:
    return [(row, False) for row in rows]


def _tables(prefix: str, option: str = "table") -> dict[str, dict[str, str]]:
    return {each: {option: f"{prefix}_{each}"} for each in NAMES}


def _sqlite(config: dict[str, Any], folder: Path, resource: Mapping[str, Any] | None) -> Endpoint:
    driver = open_driver("sqlite", {"path": str(folder / "check.db"), **config})

    def read(name: str, binding: Binding) -> Rows:
        with sqlite3.connect(driver.config["path"]) as db:
            db.row_factory = sqlite3.Row
            rows = db.execute(f"SELECT * FROM {quoted(str(binding.resource['table']))}").fetchall()
        return _plain([dict(row) for row in rows])

    return Endpoint(driver, _tables(_fresh()), read)


def _postgres(config: dict[str, Any], folder: Path, resource: Mapping[str, Any] | None) -> Endpoint:
    import psycopg
    from psycopg.rows import dict_row

    driver = open_driver("postgres", config)
    resources = _tables(_fresh())

    def read(name: str, binding: Binding) -> Rows:
        with psycopg.connect(driver.config["connection"], row_factory=dict_row) as db:
            return _plain(db.execute(f"SELECT * FROM {quoted(str(binding.resource['table']))}").fetchall())

    def clean() -> None:
        with psycopg.connect(driver.config["connection"]) as db:
            for each in resources.values():
                db.execute(f"DROP TABLE IF EXISTS {quoted(each['table'])}")

    return Endpoint(driver, resources, read, clean=clean)


def _delta(config: dict[str, Any], folder: Path, resource: Mapping[str, Any] | None) -> Endpoint:
    from deltalake import DeltaTable

    driver = open_driver("delta", config)

    def read(name: str, binding: Binding) -> Rows:
        return _plain(DeltaTable(str(binding.resource["path"])).to_pyarrow_table().to_pylist())

    base = folder / _fresh()
    return Endpoint(driver, {each: {"path": str(base / each)} for each in NAMES}, read)


def _parquet(config: dict[str, Any], folder: Path, resource: Mapping[str, Any] | None) -> Endpoint:
    driver = open_driver("parquet", {"path": str(folder / _fresh()), **config})

    def read(name: str, binding: Binding) -> Rows:
        files = sorted((Path(driver.config["path"]) / name).glob("*.parquet"))
        rows = [row for file in files for row in pq.read_table(file).to_pylist()]
        rows.sort(key=lambda row: row.get(TRANSACTION, 0))
        return [(row, bool(row.get(DELETED, False))) for row in rows]

    return Endpoint(driver, {each: {"folder": each} for each in NAMES}, read)


def _redis(config: dict[str, Any], folder: Path, resource: Mapping[str, Any] | None) -> Endpoint:
    from redis import Redis

    driver = open_driver("redis", config)
    prefix = f"{_fresh()}:view"

    def read(name: str, binding: Binding) -> Rows:
        with Redis.from_url(driver.config["url"]) as client:
            return _plain([loads(client.get(key)) for key in client.scan_iter(match=f"{prefix}:*", count=1000)])

    def clean() -> None:
        with Redis.from_url(driver.config["url"]) as client:
            for key in client.scan_iter(match=f"{prefix}:*", count=1000):
                client.delete(key)

    return Endpoint(driver, {"view": {"prefix": prefix}}, read, exact=False, clean=clean)


def _webhook(config: dict[str, Any], folder: Path, resource: Mapping[str, Any] | None) -> Endpoint:
    receiver = Receiver()
    driver = open_driver("webhook", {"batch_rows": 3, **config, "url": receiver.url})

    def read(name: str, binding: Binding) -> Rows:
        return receiver.rows(binding)

    # Two bindings of one collection cannot be told apart by what is posted.
    return Endpoint(driver, {"view": {}, "log": {}}, read, exact=False, fenced=False, clean=receiver.close)


def _kafka(config: dict[str, Any], folder: Path, resource: Mapping[str, Any] | None) -> Endpoint:
    driver = KafkaDriver(config)

    def read(name: str, binding: Binding) -> Rows:
        found = list(committed_records(driver.properties, str(binding.resource["topic"])))
        return [(json.loads(value or key or b"{}"), value is None) for key, value in found]

    return Endpoint(driver, _tables(_fresh(), "topic"), read)


def _program(name: str, config: dict[str, Any], resource: Mapping[str, Any] | None) -> Endpoint:
    driver = open_driver(name, {key: value for key, value in config.items() if key not in (CLEAN, READ)})
    assert isinstance(driver, CommandDriver)
    template = json.dumps(dict(resource or _named(driver)))
    places = {each: f"{_fresh()}_{each}" for each in NAMES}
    resources = {each: json.loads(template.replace("{name}", place)) for each, place in places.items()}

    def run(command: str, place: str, what: str) -> str:
        words = [each.replace("{name}", place) for each in shlex.split(command)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise DriverFailed(f"{place} could not be {what}", detail=(done.stderr or done.stdout).strip())
        return done.stdout

    def clean() -> None:
        for place in places.values() if config.get(CLEAN) else ():
            run(config[CLEAN], place, "removed")

    def read(name: str, binding: Binding) -> Rows:
        rows = [json.loads(line) for line in run(config[READ], places[name], "read").splitlines() if line.strip()]
        return [(row, row.get(OPERATION) == "d") for row in rows]  # a program may keep rows that are deleted

    left = () if config.get(CLEAN) else tuple(places.values())
    return Endpoint(driver, resources, read if config.get(READ) else None, clean=clean, left=left)


def _named(driver: CommandDriver) -> dict[str, Any]:
    """A resource with nothing but a name, where the connector's schema has a place for it."""
    (first, *more), *_ = [*marked(driver.about.get("resourceConfigSchema") or {}, "x-collection-name"), ("table",)]
    value: Any = "{name}"
    for part in reversed(more):
        value = {part: value}
    return {first: value}


_MAKERS: dict[str, Callable[[dict[str, Any], Path, Mapping[str, Any] | None], Endpoint]] = {
    "sqlite": _sqlite,
    "postgres": _postgres,
    "delta": _delta,
    "parquet": _parquet,
    "redis": _redis,
    "webhook": _webhook,
    "kafka": _kafka,
    "command": lambda config, folder, resource: _program("command", config, resource),
    "connector": lambda config, folder, resource: _program("connector", config, resource),
}


Answer = Callable[[int], int]


class Receiver:
    """Keeps every post that it answers with 200; `answer` chooses the status of the nth."""

    def __init__(self, answer: Answer = lambda number: 200) -> None:
        self.posts: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.headers: list[Mapping[str, str]] = []  # of every post, whatever its answer
        self.seen = 0
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                with receiver._lock:
                    receiver.seen += 1
                    receiver.headers.append(dict(self.headers))
                    status = answer(receiver.seen)
                    if status == 200:
                        receiver.posts.append(json.loads(body))
                        receiver.keys.append(self.headers.get("Idempotency-Key", ""))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def rows(self, binding: Binding) -> list[tuple[Document, bool]]:
        """What was posted of a collection, in order."""
        found = []
        names = (binding.collection, collection_name(binding))  # a driver that is run as a program knows the second
        for post in self.posts:
            if post["collection"] in names:
                for each in post["documents"]:
                    deleted = bool(each.get("delete", False))
                    found.append((each["key"] if deleted else each["document"], deleted))
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
