"""The object that the layers above drive: what it refuses, how it runs, and what it tells."""

from __future__ import annotations

import dataclasses
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everview.compute.ir.types import FLOAT8, INT8, JSONB, TEXT, array_of
from everview.flow import materialization
from everview.flow.channel import Channel
from everview.flow.check.endpoints import Receiver
from everview.flow.drivers.command import CommandDriver
from everview.flow.drivers.contract import Driver
from everview.flow.drivers.sqlite import SqliteDriver
from everview.flow.errors import DriverFailed, DuplicateKey, FlowError, InvalidMaterialization
from everview.flow.keyrange import WHOLE, KeyRange
from everview.flow.materialization import Materialization, Options, State
from everview.flow.protocol import Open
from everview.flow.recovery_log import RecoveryLog
from tests.flow.conftest import STRICT
from tests.flow.created import created
from tests.flow.ledger import Ledger
from tests.waiting import eventually

COLUMNS = (("id", INT8), ("name", TEXT), ("n", INT8))
QUICK = Options(backoff_s=0.02, backoff_s_max=0.1, stall_s=20, heartbeat_s=0.05)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path, *COLUMNS)
    yield made
    made.close()


def create(ledger: Ledger, path: Path, key: list[str], options: Options = QUICK, **more: Any) -> Materialization:
    bound = ledger.binding(key, resource={"table": "sink"}, **more)
    config = {"path": str(path / "sink.db")}
    return created(ledger.environment, "m", "sqlite", config, [bound], options=options)


def rows(path: Path, table: str = "sink") -> list[tuple[Any, ...]]:
    with sqlite3.connect(path / "sink.db") as db:
        return sorted(db.execute(f"SELECT * FROM {table}").fetchall())


def test_follows_the_collection(ledger: Ledger, tmp_path: Path) -> None:
    ledger.write((1, (1, "a", 10)), (1, (2, "b", 20)))
    sink = create(ledger, tmp_path, ["id"])
    assert sink.status().state is State.PAUSED and rows(tmp_path) == []
    sink.start()
    assert sink.wait(ledger.upper, 10)
    assert rows(tmp_path) == [(1, "a", 10), (2, "b", 20)]
    upper = ledger.write((-1, (1, "a", 10)), (1, (1, "A", 11)), (-1, (2, "b", 20)), (1, (3, "c", 30)))
    assert sink.wait(upper, 10)
    assert rows(tmp_path) == [(1, "A", 11), (3, "c", 30)]
    status = sink.status()
    assert status.state is State.RUNNING and status.error is None and status.frontier >= status.upper
    assert status.transactions == 2 and status.frontier >= status.upper == upper
    sink.close()


def test_a_collection_that_cannot_be_read_yet_is_waited_for(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, *COLUMNS, at=1_000_000)
    sink = create(ledger, tmp_path, ["id"], Options(splits=3))
    sink.start()
    time.sleep(0.05)
    assert sink.status().error is None and sink.status().state is State.RUNNING
    ledger.write((1, (1, "a", 10)), (1, (2, "b", 20)), (1, (3, "c", 30)))
    assert sink.wait(ledger.upper, 10)
    assert rows(tmp_path) == [(1, "a", 10), (2, "b", 20), (3, "c", 30)]
    sink.close()
    ledger.close()


def test_a_large_snapshot_goes_in_passes(ledger: Ledger, tmp_path: Path) -> None:
    for number in range(4):
        ledger.write(*((1, (number * 100 + each, f"name {each}", each)) for each in range(100)))
    sink = create(ledger, tmp_path, ["id"])
    sink._source._pass_bytes = 4000
    sink.start()
    assert sink.wait(ledger.upper, 10)
    assert sink.status().transactions == 1 and len(rows(tmp_path)) == 400
    for number in range(4, 30):  # and a long history in several transactions
        ledger.write(*((1, (number * 100 + each, f"name {each}", each)) for each in range(20)))
    assert sink.wait(ledger.upper, 20)
    assert len(rows(tmp_path)) == 400 + 26 * 20
    sink.close()


def test_times_at_which_nothing_changes_cost_no_transaction(ledger: Ledger, tmp_path: Path) -> None:
    ledger.write((1, (1, "a", 10)))
    sink = create(ledger, tmp_path, ["id"], Options(heartbeat_s=3600))
    sink.start()
    assert sink.wait(ledger.upper, 10)
    for _ in range(5):
        ledger.write()
    assert sink.wait(ledger.upper, 10)
    assert sink.status().transactions == 1
    sink.pause()
    assert sink.status().frontier == ledger.upper  # what was reached remains, though no checkpoint says so
    sink.start()
    assert sink.status().frontier == ledger.upper
    sink.close()


def test_the_past_is_given_up_behind_what_is_acknowledged(ledger: Ledger, tmp_path: Path) -> None:
    sink = create(ledger, tmp_path, ["id"], Options(splits=2, heartbeat_s=0.02))
    for token in list(ledger.environment.shard("u1").held):
        if token.startswith("r") and token not in sink._tokens.values():
            ledger.environment.drop(ledger.environment.present("u1", token))
    sink.start()
    for number in range(5):
        ledger.write((1, (number, "a", 1)))
    # What is acknowledged is given up with the next commit, and an idle one comes with the heartbeat.
    eventually(lambda: ledger.write() and ledger.environment.frontiers("u1").since.only >= 4)
    ledger.write((1, (99, "z", 1)))
    assert sink.wait(ledger.upper, 10)
    assert len(rows(tmp_path)) == 6
    sink.close()


def test_goes_on_where_it_was(ledger: Ledger, tmp_path: Path) -> None:
    ledger.write((1, (1, "a", 10)))
    sink = create(ledger, tmp_path, ["name"], reductions={"n": "sum"})
    sink.start()
    assert sink.wait(ledger.upper, 10)
    sink.pause()
    assert sink.status().state is State.PAUSED
    ledger.write((1, (2, "a", 5)))
    time.sleep(0.05)
    assert rows(tmp_path) == [(1, "a", 10)]
    sink.start()
    assert sink.wait(ledger.upper, 10)
    sink.close()
    bound = ledger.binding(["name"], resource={"table": "sink"}, reductions={"n": "sum"})
    config = {"path": str(tmp_path / "sink.db")}
    again = Materialization.resume(ledger.environment, "m", "sqlite", config, [bound], options=QUICK)
    again.start()
    ledger.write((1, (3, "a", 100)), (-1, (1, "a", 10)))
    assert again.wait(ledger.upper, 10)
    assert rows(tmp_path) == [(3, "a", 105)]
    again.close()


def test_splits_and_joins_while_it_runs(ledger: Ledger, tmp_path: Path) -> None:
    sink = create(ledger, tmp_path, ["name"], reductions={"n": "sum"})
    sink.start()
    expected: dict[str, int] = {}
    for number, count in enumerate((1, 3, 2, 4, 1)):
        for each in range(20):
            name = f"n{each % 7}"
            ledger.write((1, (number * 100 + each, name, each)))
            expected[name] = expected.get(name, 0) + each
            if each == 10:
                sink.split(count)
    assert sink.wait(ledger.upper, 20)
    assert {name: n for _, name, n in rows(tmp_path)} == expected
    assert sink.ranges == [WHOLE]
    sink.set_ranges([KeyRange(0, 99), KeyRange(100, WHOLE.end)])
    assert len(sink.status().splits) == 2
    with pytest.raises(InvalidMaterialization):
        sink.set_ranges([KeyRange(0, 99)])
    sink.close()


def test_drop_forgets_all_but_the_data(ledger: Ledger, tmp_path: Path) -> None:
    ledger.write((1, (1, "a", 10)))
    sink = create(ledger, tmp_path, ["id"])
    held = len(ledger.environment.shard("u1").held)
    sink.start()
    assert sink.wait(ledger.upper, 10)
    sink.drop()
    assert len(ledger.environment.shard("u1").held) == held - 1
    assert RecoveryLog(ledger.environment, "m").rows() == []
    assert rows(tmp_path) == [(1, "a", 10)] and rows(tmp_path, "everview_checkpoints") == []
    assert sink.status().state is State.DROPPED
    with pytest.raises(InvalidMaterialization, match="was dropped"):
        sink.start()


def test_a_failure_is_told_and_tried_again(ledger: Ledger, tmp_path: Path) -> None:
    ledger.write((1, (1, "a", 10)))
    sink = create(ledger, tmp_path, ["id"])
    sink.start()
    assert sink.wait(ledger.upper, 10)
    ledger.write((1, (1, "other", 10)))
    eventually(lambda: sink.status().state is State.STALLED)
    error = sink.status().error or ""
    assert "more than one row of collection u1 under one key" in error and "UNIQUE" in error
    status = sink.status()
    assert status.upper - status.frontier == 1
    ledger.write((-1, (1, "a", 10)))  # the key is unique again, and so all is well
    assert sink.wait(ledger.upper, 10)
    eventually(lambda: sink.status().state is State.RUNNING)
    assert rows(tmp_path) == [(1, "other", 10)]
    sink.close()


def test_a_second_owner_fences_the_first_off(ledger: Ledger, tmp_path: Path) -> None:
    ledger.write((1, (1, "a", 10)))
    first = create(ledger, tmp_path, ["id"])
    first.start()
    assert first.wait(ledger.upper, 10)
    bound = ledger.binding(["id"], resource={"table": "sink"})
    config = {"path": str(tmp_path / "sink.db")}
    second = Materialization.resume(ledger.environment, "m", "sqlite", config, [bound], options=QUICK)
    second.start()
    eventually(lambda: second.status().frontier == ledger.upper)
    ledger.write((1, (2, "b", 20)))
    eventually(lambda: first.status().state is State.FENCED)
    assert second.wait(ledger.upper, 10)
    assert rows(tmp_path) == [(1, "a", 10), (2, "b", 20)]
    first.close()
    second.close()


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("needs a KEY", {"key": []}),
    ('column "nope" of the key does not exist', {"key": ["nope"]}),
    ("names a column twice", {"key": ["id", "id"]}),
    ('column "nope" to be reduced does not exist', {"key": ["id"], "reductions": {"nope": "sum"}}),
    ("unknown reduction: product", {"key": ["id"], "reductions": {"n": "product"}}),
    ('"name" of type text cannot be reduced by sum', {"key": ["id"], "reductions": {"name": "sum"}}),
    ('"id" is part of the key and cannot be reduced', {"key": ["id"], "reductions": {"id": "sum"}}),
    ("can be reduced only under a KEY", {"key": [], "delta_updates": True, "reductions": {"n": "sum"}}),
    (
        "not to be reduced without what was there before",
        {"key": ["id"], "delta_updates": True, "reductions": {"n": {"strategy": "sum", "associative": False}}},
    ),
]


@pytest.mark.parametrize(("message", "given"), REFUSED)
def test_what_cannot_be_is_refused(ledger: Ledger, tmp_path: Path, message: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidMaterialization, match=message):
        create(ledger, tmp_path, **given)
    assert not (tmp_path / "sink.db").exists(), "nothing was written"
    assert ledger.environment.get("flow/m/materialization") is None


def test_duplicates_under_the_key_are_found_before_anything_is_written(ledger: Ledger, tmp_path: Path) -> None:
    ledger.write((1, (1, "a", 10)), (1, (2, "a", 20)))
    with pytest.raises(DuplicateKey, match="under one key") as raised:
        create(ledger, tmp_path, ["name"])
    assert "name = 'a'" in (raised.value.detail or "")
    ledger.write((1, (3, None, 30)))
    with pytest.raises(FlowError, match='field "name" of the key is NULL'):
        create(ledger, tmp_path, ["name", "id"])
    assert not (tmp_path / "sink.db").exists()


def test_an_existing_table_must_fit(ledger: Ledger, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "sink.db") as db:
        db.execute("CREATE TABLE sink (id INTEGER, name BLOB, extra TEXT)")
    with pytest.raises(InvalidMaterialization, match="exists and cannot hold the sink") as raised:
        create(ledger, tmp_path, ["id"])
    detail = raised.value.detail or ""
    for part in (
        '"n" is missing',
        '"name" is BLOB, and must be TEXT',
        '"extra" is not in the sink',
        "primary key is none",
    ):
        assert part in detail


def test_fields_that_the_endpoint_cannot_take_are_explained(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, ("x", FLOAT8), ("y", array_of(INT8)), ("j", JSONB))
    with pytest.raises(InvalidMaterialization, match="sqlite cannot take collection u1") as raised:
        create(ledger, tmp_path, ["x"])
    assert '"x": a key cannot be of type double precision' in (raised.value.detail or "")
    with pytest.raises(InvalidMaterialization, match="cannot be part of a key"):
        create(ledger, tmp_path, ["y"])
    ledger.close()


def test_redis_refuses_what_it_would_count_twice(ledger: Ledger, redis_url: str) -> None:
    bound = ledger.binding(["id"], resource={"prefix": "p"}, reductions={"n": "sum"})
    with pytest.raises(InvalidMaterialization) as raised:
        Materialization.validate(ledger.environment, "m", "redis", {"url": redis_url}, [bound])
    assert "at_least_once = true" in (raised.value.detail or "")
    config = {"url": redis_url, "at_least_once": "true"}
    Materialization.validate(ledger.environment, "m", "redis", config, [bound])


def test_secrets_are_never_shown(ledger: Ledger) -> None:
    secret = "hunter2"
    config = {"connection": f"postgresql://someone:{secret}@127.0.0.1:1/{secret}"}
    bound = ledger.binding(["id"], resource={"table": "t"})
    with pytest.raises(DriverFailed, match="cannot connect to PostgreSQL") as raised:
        Materialization.validate(ledger.environment, "m", "postgres", config, [bound])
    assert secret not in str(raised.value) and secret not in repr(raised.value)


def test_options_are_checked(ledger: Ledger, tmp_path: Path) -> None:
    bound = ledger.binding(["id"], resource={"table": "t"})

    def refused(message: str, driver: str, config: dict[str, Any], binding: Any = bound) -> None:
        with pytest.raises(InvalidMaterialization, match=message):
            Materialization.validate(ledger.environment, "m", driver, config, [binding])

    refused("did you mean|no driver is called", "sqlit", {})
    refused("needs the option path", "sqlite", {})
    refused('has no option "nope"', "sqlite", {"path": "x", "nope": 1})
    refused("needs the option table", "sqlite", {"path": "x"}, ledger.binding(["id"]))
    refused("must be int", "webhook", {"url": "http://x", "retries": "many"}, ledger.binding(["id"]))
    refused("must begin with http", "webhook", {"url": "ftp://x"}, ledger.binding(["id"]))


def test_a_null_key_that_is_gone_is_forgotten(ledger: Ledger, tmp_path: Path) -> None:
    ledger.write((1, (None, "x", 1)))
    ledger.write((-1, (None, "x", 1)), (1, (1, "a", 10)))
    sink = create(ledger, tmp_path, ["id"])
    sink.start()
    assert sink.wait(ledger.upper, 10)
    ledger.write((1, (None, "y", 2)))
    eventually(lambda: sink.status().state is State.STALLED)
    assert 'field "id" of the key is NULL' in (sink.status().error or "")
    ledger.write((1, (2, "b", 20)))
    ledger.write((-1, (None, "y", 2)))
    assert sink.wait(ledger.upper, 10)
    assert rows(tmp_path) == [(1, "a", 10), (2, "b", 20)]
    sink.close()


def test_a_null_key_heals_also_where_intervals_are_taken_in_parts(ledger: Ledger, tmp_path: Path) -> None:
    ledger.write((1, (1, "a", 10)))
    sink = create(ledger, tmp_path, ["id"])
    sink._source._pass_bytes = 1  # every interval is halved as long as it can be
    sink.start()
    assert sink.wait(ledger.upper, 10)
    sink.pause()
    ledger.write((1, (None, "y", 2)))
    ledger.write((1, (2, "b", 20)))
    ledger.write((-1, (None, "y", 2)))
    sink.start()
    assert sink.wait(ledger.upper, 10)
    assert rows(tmp_path) == [(1, "a", 10), (2, "b", 20)]
    sink.close()


DRIFTS = {
    "an update": (["DELETE FROM sink WHERE id = 1"], [(-1, (1, "a", 10)), (1, (1, "A", 11))]),
    "a delete": (["DELETE FROM sink"], [(-1, (2, "b", 20))]),
    "an emptied table": (["DELETE FROM sink"], [(-1, (1, "a", 10)), (1, (1, "A", 10))]),
    "a foreign row": (["INSERT INTO sink VALUES (3, 'foreign', 0)"], [(1, (3, "c", 30))]),
}


@pytest.mark.parametrize("name", DRIFTS)
def test_drift_is_seen_and_told(ledger: Ledger, tmp_path: Path, name: str) -> None:
    statements, changes = DRIFTS[name]
    ledger.write((1, (1, "a", 10)), (1, (2, "b", 20)))
    sink = create(ledger, tmp_path, ["id"])
    sink.start()
    assert sink.wait(ledger.upper, 10)
    with sqlite3.connect(tmp_path / "sink.db") as db:
        before = sorted(db.execute("SELECT * FROM sink").fetchall())
        for statement in statements:
            db.execute(statement)
    ledger.write(*changes)
    eventually(lambda: sink.status().state is State.DRIFTED)
    assert "BACKFILL" in (sink.status().error or "")
    eventually(lambda: sink.status().splits[0].retry_ms is not None)
    with sqlite3.connect(tmp_path / "sink.db") as db:  # put back, it goes on by itself
        db.execute("DELETE FROM sink")
        db.executemany("INSERT INTO sink VALUES (?, ?, ?)", before)
    assert sink.wait(ledger.upper, 10)
    assert sink.status().state is State.RUNNING and sink.status().splits[0].retry_ms is None
    sink.close()


@pytest.mark.parametrize("driver", ["sqlite", "command"])
def test_workers_that_are_left_behind_while_they_open_take_nothing_back(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str
) -> None:
    """Splits change while an endpoint is slow to open: those who are to stop never fence those who come after them."""
    began, released = threading.Event(), threading.Event()
    kind: type[Driver] = SqliteDriver if driver == "sqlite" else CommandDriver
    connect, connected = kind.connect, 0

    def slow(self: Any, request: Open) -> Channel:
        nonlocal connected
        connected += 1
        if connected == 2:
            began.set()
            released.wait(30)
        return connect(self, request)

    monkeypatch.setattr(kind, "connect", slow)
    monkeypatch.setattr(materialization, "HALT_S", 0.05)
    config: dict[str, Any] = {"path": str(tmp_path / "sink.db")}
    if driver == "command":
        config = {"command": f"{sys.executable} -S {STRICT}", "config": {**config, "hardDelete": True}}
    bound = ledger.binding(["id"], resource={"table": "sink"})
    options = dataclasses.replace(QUICK, splits=3)
    sink = created(ledger.environment, "m", driver, config, [bound], options=options)
    ledger.write(*((1, (id, "a", 10)) for id in range(50)))
    sink.start()
    assert began.wait(30)
    sink.split(2)
    sink.wait(ledger.upper, 2)  # who comes may wait for who is left behind, or not
    released.set()
    assert sink.wait(ledger.upper, 30)
    upper = ledger.write(*((1, (id, "b", 20)) for id in range(50, 99)))
    assert sink.wait(upper, 30) and sink.status().state is State.RUNNING, sink.status()
    assert len(rows(tmp_path, "sink" if driver == "sqlite" else "main__sink")) == 99
    sink.close()


def test_a_webhook_that_fails_is_not_running(ledger: Ledger) -> None:
    answers, before_ms = [500], int(time.time() * 1000)
    receiver = Receiver(lambda number: answers[0])
    bound = ledger.binding(["id"], delta_updates=True)
    sink = created(ledger.environment, "m", "webhook", {"url": receiver.url}, [bound], options=QUICK)
    ledger.write((1, (1, "a", 10)))
    sink.start()
    eventually(lambda: sink.status().state is State.STALLED)
    status = sink.status()
    assert "is tried again: status 500" in (status.error or "") and (status.splits[0].retry_ms or 0) > before_ms
    answers[0] = 200
    assert sink.wait(ledger.upper, 20)
    status = sink.status()
    assert status.state is State.RUNNING and status.error is None and status.splits[0].retry_ms is None
    sink.close()
    receiver.close()
