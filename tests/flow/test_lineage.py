"""Two copies of an environment and one destination: what one has delivered is not taken by the other for its own."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from everview.compute.ir.types import INT8, TEXT
from everview.flow.check.harness import Endpoint
from everview.flow.checkpoint import Checkpoint
from everview.flow.errors import TakenOver
from everview.flow.keyrange import WHOLE
from everview.flow.materialization import Materialization, Options, State, make_binding
from everview.flow.recovery_log import RecoveryLog
from everview.storage.contract import Put
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.flow.created import created
from tests.waiting import eventually

QUICK = Options(backoff_s=0.02, backoff_s_max=0.1, stall_s=20, heartbeat_s=0.05, interval_ms=0)
SCHEMA = pa.schema([("c0", pa.int64()), ("c1", pa.string())])


OURS = ["sqlite", "postgres", "delta", "parquet", "redis"]
KAFKA = "kafka"  # its broker stands in for one, and fences no producer off
PROGRAM = "command"
Make = Callable[[str], Endpoint]


class Copy:
    """An environment in a folder with one collection and one sink, which another folder may be a copy of."""

    def __init__(self, folder: Path, endpoint: Endpoint, name: str, *, new: bool = False) -> None:
        self.environment = Environment.open(folder, background=False)
        if new:
            self.environment.create("u1", SCHEMA)
        driver = endpoint.driver
        columns = [("id", INT8), ("name", TEXT)]
        resource = endpoint.resources["view"]
        self.binding = make_binding(
            self.environment, "u1", columns, ["id"], resource=resource, delta_updates=driver.delta_only
        )
        make = created if new else Materialization.resume
        self.sink = make(self.environment, name, driver.name, driver.config, [self.binding], options=QUICK)

    def has_begun(self) -> bool:
        return self.sink.status().frontier > 0

    def is_fenced(self) -> bool:
        return self.sink.status().state is State.FENCED

    def is_refused(self) -> bool:
        return self.is_fenced() and "another copy of the environment" in (self.sink.status().error or "")

    def write(self, *rows: tuple[Any, ...]) -> int:
        now = self.environment.frontiers("u1").upper.only
        token = next(each for each in self.environment.shard("u1").held if each.startswith("w"))
        columns: dict[str, Any] = {
            "_time": pa.array([now] * len(rows), pa.int64()),
            "_diff": pa.array([1] * len(rows), pa.int64()),
            "c0": pa.array([row[0] for row in rows], pa.int64()),
            "c1": pa.array([row[1] for row in rows], pa.string()),
        }
        writer = self.environment.present("u1", token)
        self.environment.append(writer, pa.table(columns), Antichain(now + 1))  # type: ignore[arg-type]
        return now + 1

    def close(self) -> None:
        self.sink.close()
        self.environment.close()


@dataclass
class Place:
    """Where both copies deliver."""

    folder: Path
    endpoint: Endpoint

    @property
    def sink_name(self) -> str:
        return self.folder.name  # tests share servers

    def open(self, name: str, **more: Any) -> Copy:
        return Copy(self.folder / name, self.endpoint, self.sink_name, **more)

    def copy(self) -> None:
        shutil.copytree(self.folder / "one", self.folder / "two")

    def rows(self, copy: Copy) -> list[Any]:
        if self.endpoint.read is None:  # a program that writes to a database of this folder
            with sqlite3.connect(self.folder / "program.db") as db:
                return sorted(db.execute(f"SELECT id, name FROM {copy.binding.resource['table']}").fetchall())
        return sorted((row["id"], row["name"]) for row, gone in self.endpoint.read("view", copy.binding) if not gone)


def deliver_first(make: Make, folder: Path, name: str) -> Place:
    """A destination with one row, and an environment `one` that has delivered it."""
    place = Place(folder, make(name))
    first = place.open("one", new=True)
    first.write((1, "a"))
    first.sink.start()
    assert first.sink.wait(1, 20)
    first.close()
    return place


@pytest.fixture
def copied(request: pytest.FixtureRequest, endpoint: Make, tmp_path: Path) -> Place:
    """A destination with one row, and two folders that are copies: `one` and `two`."""
    place = deliver_first(endpoint, tmp_path, request.param)
    place.copy()
    return place


@pytest.fixture
def in_sqlite(endpoint: Make, tmp_path: Path) -> Place:
    return deliver_first(endpoint, tmp_path, "sqlite")


@pytest.mark.parametrize("copied", [*OURS, PROGRAM], indirect=True)
def test_the_loser_of_a_fence_does_not_take_the_winners_checkpoint(copied: Place) -> None:
    one = copied.open("one")
    one.sink.start()
    eventually(one.has_begun)
    two = copied.open("two")
    two.sink.start()
    eventually(two.has_begun)
    assert two.sink.wait(two.write((3, "of two")), 20)
    one.write((2, "of one"))
    eventually(one.is_fenced)
    one.sink.pause()
    one.sink.start()
    eventually(one.is_refused)
    assert copied.rows(one) == [(1, "a"), (3, "of two")]
    one.close()
    two.close()


@pytest.mark.parametrize("copied", [*OURS, KAFKA, PROGRAM], indirect=True)
def test_a_copy_that_begins_later_does_not_take_what_the_first_has_delivered_since(copied: Place) -> None:
    one = copied.open("one")
    one.sink.start()
    assert one.sink.wait(one.write((2, "of one")), 20)
    two = copied.open("two")
    two.write((3, "of two"))
    two.sink.start()
    eventually(two.is_refused)
    assert copied.rows(one) == [(1, "a"), (2, "of one")]
    one.close()
    two.close()


@pytest.mark.parametrize("copied", [*OURS, KAFKA], indirect=True)
def test_a_copy_of_a_running_environment_is_refused_once_that_has_gone_on(copied: Place) -> None:
    one = copied.open("one")
    one.sink.start()
    assert one.sink.wait(one.write((2, "of one")), 20)
    shutil.rmtree(copied.folder / "two")
    copied.copy()  # the log knows the very process that goes on
    assert one.sink.wait(one.write((4, "of one")), 20)
    two = copied.open("two")
    two.write((3, "of two"))
    two.sink.start()
    eventually(two.is_refused)
    assert copied.rows(one) == [(1, "a"), (2, "of one"), (4, "of one")]
    one.close()
    two.close()


@pytest.mark.parametrize("copied", [*OURS, KAFKA, PROGRAM], indirect=True)
def test_the_refused_copy_delivers_anew(copied: Place) -> None:
    one = copied.open("one")
    one.sink.start()
    assert one.sink.wait(one.write((2, "of one")), 20)
    two = copied.open("two")
    written = two.write((3, "of two"))
    two.sink.start()
    eventually(two.is_refused)
    two.sink.backfill()
    assert two.sink.wait(written, 20)
    if not two.sink._driver.delta_only or two.sink._driver.name == "parquet":  # these are emptied
        assert copied.rows(two) == [(1, "a"), (3, "of two")]
    one.write((4, "of one"))
    one.sink.pause()
    one.sink.start()
    eventually(one.is_refused)
    assert (4, "of one") not in copied.rows(two)
    one.close()
    two.close()


@pytest.mark.parametrize("copied", [*OURS, PROGRAM], indirect=True)
def test_dropping_the_refused_sink_leaves_the_others_checkpoints(copied: Place) -> None:
    one = copied.open("one")
    one.sink.start()
    assert one.sink.wait(one.write((2, "of one")), 20)
    two = copied.open("two")
    two.sink.start()
    eventually(two.is_refused)
    with pytest.raises(TakenOver, match="another copy"):
        two.sink.drop()
    two.close()
    one.close()
    again = copied.open("one")
    again.sink.start()
    assert again.sink.wait(again.write((4, "of one")), 20), again.sink.status()
    assert copied.rows(again) == [(1, "a"), (2, "of one"), (4, "of one")]
    again.sink.drop()
    again.environment.close()


@pytest.mark.parametrize("copied", [*OURS, PROGRAM], indirect=True)
def test_restarts_are_no_strangers(copied: Place) -> None:
    for number in range(4):
        again = copied.open("one")
        if number == 2:
            again.sink.split(2)
        again.sink.start()
        if number != 1:  # also one that commits nothing
            assert again.sink.wait(again.write((10 + number, "x")), 20)
        else:
            eventually(again.has_begun)
        again.close()
    assert copied.rows(again) == [(1, "a"), (10, "x"), (12, "x"), (13, "x")]


def test_logs_and_checkpoints_of_before_are_read(in_sqlite: Place) -> None:
    """Rows of the log had five fields, and checkpoints no lineage."""
    path = in_sqlite.endpoint.driver.config["path"]
    with sqlite3.connect(path) as db:
        db.execute("UPDATE everview_checkpoints SET checkpoint = ?", [json.dumps([[str(WHOLE), 1]])])
    db.close()
    environment = Environment.open(in_sqlite.folder / "one", background=False)
    (key,) = environment.scan(f"flow/{in_sqlite.sink_name}/split/")
    value = json.loads(environment.get(key) or b"")[:5]
    value[2] = json.dumps([[str(WHOLE), 1]])
    environment.commit(Put(key, json.dumps(value).encode()))
    (row,) = RecoveryLog(environment, in_sqlite.sink_name).rows()
    assert (row.checkpoint, row.acknowledged, row.settled, row.lineages) == (Checkpoint.at(WHOLE, 1), None, False, ())
    environment.close()
    again = in_sqlite.open("one")
    again.sink.start()
    assert again.sink.wait(again.write((2, "b")), 10)
    assert in_sqlite.rows(again) == [(1, "a"), (2, "b")]
    again.close()


def test_what_is_wrong_is_said(in_sqlite: Place) -> None:
    one = in_sqlite.open("one")
    log = RecoveryLog(one.environment, in_sqlite.sink_name)
    row = log.open(WHOLE)
    log.check_lineage(row, Checkpoint.at(WHOLE, 1), ["u1"])
    log.check_lineage(row, Checkpoint.at(WHOLE, 100).by(log.lineage), ["u1"])
    with pytest.raises(TakenOver, match="another copy") as raised:
        log.check_lineage(row, Checkpoint.at(WHOLE, 1).by("stranger"), ["u1"])
    assert "stranger" in (raised.value.detail or "") and "BACKFILL" in (raised.value.hint or "")
    with pytest.raises(TakenOver):
        log.check_lineage(row, Checkpoint.at(WHOLE, 100), ["u1"])
    one.close()
