"""Delivering everything anew: after drift, and through failures on the way."""

from __future__ import annotations

import sqlite3
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everview.compute.ir.types import INT8, TEXT
from everview.flow.check.endpoints import Receiver
from everview.flow.check.harness import Endpoint
from everview.flow.drivers import sqlite
from everview.flow.drivers.contract import Driver
from everview.flow.errors import DriverFailed, InvalidMaterialization
from everview.flow.materialization import Materialization, Options, State
from everview.flow.recovery_log import RecoveryLog
from tests.flow.conftest import STRICT
from tests.flow.created import created
from tests.flow.ledger import Ledger
from tests.waiting import eventually

QUICK = Options(backoff_s=0.02, backoff_s_max=0.1, stall_s=20, heartbeat_s=0.05, splits=2)
COLUMNS = (("id", INT8), ("name", TEXT))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path, *COLUMNS)
    yield made
    made.close()


def changes(ledger: Ledger) -> int:
    ledger.write((1, (1, "a")), (1, (2, "b")), (1, (3, "c")))
    return ledger.write((-1, (1, "a")), (1, (1, "A")), (-1, (2, "b")))


NOW = [(1, "A"), (3, "c")]


@pytest.mark.parametrize("name", ["sqlite", "postgres", "delta", "parquet", "redis", "strict"])
def test_what_is_emptied_is_delivered_anew(
    ledger: Ledger, name: str, endpoint: Callable[..., Endpoint], tmp_path: Path
) -> None:
    made = endpoint(name)
    driver, unique = made.driver, f"m-{uuid.uuid4().hex}"  # the server of the tests keeps checkpoints of other sinks
    bound = ledger.binding(["id"], resource=dict(made.resources["view"]), delta_updates=driver.delta_only)
    sink = created(ledger.environment, unique, driver.name, driver.config, [bound], options=QUICK)
    sink.start()
    assert sink.wait(changes(ledger), 30), sink.status()
    before = read(sink, made, tmp_path)
    sink.backfill()
    assert sink.wait(ledger.upper, 30)
    assert sorted(read(sink, made, tmp_path)) == NOW
    assert before == NOW or name == "parquet"  # whose files tell every change
    assert sink.wait(ledger.write((-1, (3, "c")), (1, (4, "d"))), 30)
    sink.split(1)
    assert sink.wait(ledger.write((1, (5, "e"))), 30)
    sink.close()
    again = Materialization.resume(ledger.environment, unique, driver.name, driver.config, [bound], options=QUICK)
    again.start()
    assert again.wait(ledger.write((1, (6, "f"))), 30)
    if name != "parquet":
        assert read(again, made, tmp_path) == [(1, "A"), (4, "d"), (5, "e"), (6, "f")]
    again.close()


def test_kafka_is_told_everything_once_more(ledger: Ledger, endpoint: Callable[..., Endpoint]) -> None:
    made = endpoint("kafka")
    bound = ledger.binding(["id"], resource=dict(made.resources["view"]), delta_updates=True)
    one = Options(backoff_s=0.02, backoff_s_max=0.1, stall_s=20)
    sink = created(ledger.environment, "m", "kafka", made.driver.config, [bound], options=one)
    sink.start()
    assert sink.wait(changes(ledger), 60)
    sink.backfill()
    assert sink.wait(ledger.upper, 60)
    assert made.read is not None
    told = [(row["id"], row["name"]) for row, gone in made.read("view", bound) if not gone]
    assert {**dict(told), 2: None} == {1: "A", 2: None, 3: "c"} and told.count((3, "c")) == 2
    sink.close()


def rows_of(path: Path) -> list[Any]:
    with sqlite3.connect(path) as db:
        return sorted(db.execute("SELECT * FROM sink").fetchall())


def read(sink: Materialization, made: Endpoint, folder: Path) -> list[tuple[Any, ...]]:
    binding = sink._spec.bindings[0]
    if made.driver.name == "redis":
        import json

        from everview.flow.drivers.redis import _client

        with _client(made.driver.config["url"]) as client:
            keys = list(client.scan_iter(match=f"{binding.resource['prefix']}:*"))
            found = [json.loads(client.get(key)) for key in keys]
        return sorted((each["id"], each["name"]) for each in found)
    assert made.read is not None
    return sorted((row["id"], row["name"]) for row, gone in made.read("view", binding) if not gone)


def create(ledger: Ledger, path: Path) -> Materialization:
    bound = ledger.binding(["id"], resource={"table": "sink"})
    config = {"path": str(path / "sink.db")}
    return created(ledger.environment, "m", "sqlite", config, [bound], options=QUICK)


def test_it_is_tried_until_it_is_done_also_after_a_restart(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = create(ledger, tmp_path)
    sink.start()
    assert sink.wait(changes(ledger), 10)
    with sqlite3.connect(tmp_path / "sink.db") as db:
        db.execute("DELETE FROM sink WHERE id = 1")

    def failing(self: Any, spec: Any) -> None:
        raise DriverFailed("not now")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite.SqliteDriver, "reset", failing)
        sink.backfill()
        eventually(lambda: "not now" in (sink.status().error or ""))
        sink.close()
    bound = ledger.binding(["id"], resource={"table": "sink"})
    config = {"path": str(tmp_path / "sink.db")}
    again = Materialization.resume(ledger.environment, "m", "sqlite", config, [bound], options=QUICK)
    again.start()
    assert again.wait(ledger.upper, 10)
    assert rows_of(tmp_path / "sink.db") == NOW
    assert {row.generation for row in RecoveryLog(ledger.environment, "m").rows()} == {1}
    again.close()


def test_a_crash_between_emptying_and_forgetting_does_no_harm(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = create(ledger, tmp_path)
    sink.start()
    assert sink.wait(changes(ledger), 10)
    real = RecoveryLog.anew
    calls: list[None] = []

    def crashing(self: RecoveryLog, state: Any) -> Any:
        calls.append(None)
        if len(calls) == 1:
            raise DriverFailed("died here")
        return real(self, state)

    monkeypatch.setattr(RecoveryLog, "anew", crashing)
    sink.backfill()
    assert sink.wait(ledger.upper, 10)
    assert len(calls) >= 2 and rows_of(tmp_path / "sink.db") == NOW
    sink.close()


def test_drift_is_cured(ledger: Ledger, tmp_path: Path) -> None:
    sink = create(ledger, tmp_path)
    sink.start()
    assert sink.wait(changes(ledger), 10)
    with sqlite3.connect(tmp_path / "sink.db") as db:
        db.execute("DROP TABLE sink")
        db.execute("CREATE TABLE sink (id INTEGER, name TEXT, PRIMARY KEY (id))")
    ledger.write((-1, (3, "c")), (1, (3, "C")))
    eventually(lambda: sink.status().state is State.DRIFTED)
    sink.backfill()
    assert sink.wait(ledger.upper, 10)
    assert rows_of(tmp_path / "sink.db") == [(1, "A"), (3, "C")]
    eventually(lambda: sink.status().state is State.RUNNING)
    sink.close()


def test_a_connector_makes_its_tables_anew(ledger: Ledger, tmp_path: Path) -> None:
    config = {
        "command": f"{sys.executable} -S {STRICT}",
        "config": {"path": str(tmp_path / "s.db"), "hardDelete": True},
    }
    bound = ledger.binding(["id"], title="t")
    sink = created(ledger.environment, "m", "command", config, [bound], options=QUICK)
    sink.start()
    assert sink.wait(changes(ledger), 20)
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute('UPDATE "main__t" SET name = NULL')
        db.execute("""INSERT INTO "main__t" (id, name) VALUES (99, 'foreign')""")
    sink.backfill()
    assert sink.wait(ledger.upper, 20)
    with sqlite3.connect(tmp_path / "s.db") as db:
        assert sorted(db.execute('SELECT id, name FROM "main__t"').fetchall()) == NOW
    assert sink._spec.described is not None and sink._spec.described["bindings"][0]["backfill"] == 1
    sink.drop()


def test_rows_that_an_endpoint_without_checkpoints_refuses_are_freed_by_it(ledger: Ledger) -> None:
    """The transaction is repeated as it was, so later data alone do not heal it: the error says what does."""
    refused = True
    receiver = Receiver(lambda number: 400 if refused else 200)
    config = {"url": receiver.url, "retries": 0}
    bound = ledger.binding(["id"], delta_updates=True)
    sink = created(ledger.environment, "m", "webhook", config, [bound], options=replace(QUICK, splits=1))
    sink.start()
    ledger.write((1, (1, "poison")))
    eventually(lambda: "ALTER SINK … BACKFILL" in (sink.status().error or ""), shown=sink.status)
    ledger.write((-1, (1, "poison")), (1, (1, "cure")))
    sink.backfill()
    refused = False
    assert sink.wait(ledger.upper, 20)
    assert [row["name"] for row, _ in receiver.rows(bound)] == ["cure"]
    sink.close()
    receiver.close()


def test_what_cannot_be_emptied_is_refused(monkeypatch: pytest.MonkeyPatch, ledger: Ledger, tmp_path: Path) -> None:
    sink = create(ledger, tmp_path)
    monkeypatch.setattr(sqlite.SqliteDriver, "reset", Driver.reset)
    with pytest.raises(InvalidMaterialization, match="cannot be emptied"):
        sink.backfill()
    sink.close()
