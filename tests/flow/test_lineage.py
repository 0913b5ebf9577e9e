"""Two copies of an environment and one destination: what one has delivered is not taken by the other for its own."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from everview.compute.ir.types import INT8, TEXT
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

QUICK = Options(backoff_s=0.02, backoff_s_max=0.1, stall_s=20, heartbeat_s=0.05)
SCHEMA = pa.schema([("c0", pa.int64()), ("c1", pa.string())])


class Copy:
    """An environment in a folder with one collection and one sink, which another folder may be a copy of."""

    def __init__(self, folder: Path, path: Path, *, new: bool = False) -> None:
        self.environment = Environment.open(folder, background=False)
        if new:
            self.environment.create("u1", SCHEMA)
        self.binding = make_binding(
            self.environment, "u1", [("id", INT8), ("name", TEXT)], ["id"], resource={"table": "sink"}
        )
        make = created if new else Materialization.resume
        self.sink = make(self.environment, "m", "sqlite", {"path": str(path)}, [self.binding], options=QUICK)

    def has_begun(self) -> bool:
        return self.sink.status().frontier > 0

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


def rows(path: Path) -> list[Any]:
    with sqlite3.connect(path) as db:
        return sorted(db.execute("SELECT * FROM sink").fetchall())


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A destination with one row, and two folders that are copies: `one` and `two`."""
    path = tmp_path / "sink.db"
    first = Copy(tmp_path / "one", path, new=True)
    first.write((1, "a"))
    first.sink.start()
    assert first.sink.wait(1, 10)
    first.close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    return tmp_path


def test_the_loser_of_a_fence_does_not_take_the_winners_checkpoint(copied: Path) -> None:
    path = copied / "sink.db"
    one = Copy(copied / "one", path)
    one.sink.start()
    eventually(lambda: one.sink.status().frontier == 1)
    two = Copy(copied / "two", path)
    two.sink.start()
    eventually(lambda: two.sink.status().frontier == 1)
    assert two.sink.wait(two.write((3, "of two")), 10)
    one.write((2, "of one"))
    eventually(lambda: one.sink.status().state is State.FENCED)
    one.sink.pause()
    one.sink.start()
    eventually(lambda: one.sink.status().state is State.FENCED)
    assert "another copy of the environment" in (one.sink.status().error or "")
    assert rows(path) == [(1, "a"), (3, "of two")]
    one.close()
    two.close()


def test_a_copy_that_begins_later_does_not_take_what_the_first_has_delivered_since(copied: Path) -> None:
    path = copied / "sink.db"
    one = Copy(copied / "one", path)
    one.sink.start()
    assert one.sink.wait(one.write((2, "of one")), 10)
    two = Copy(copied / "two", path)
    two.write((3, "of two"))
    two.sink.start()
    eventually(lambda: two.sink.status().state is State.FENCED)
    assert "another copy of the environment" in (two.sink.status().error or "")
    assert rows(path) == [(1, "a"), (2, "of one")]
    one.close()
    two.close()


def test_restarts_are_no_strangers(copied: Path) -> None:
    path = copied / "sink.db"
    for number in range(3):
        again = Copy(copied / "one", path)
        again.sink.start()
        if number != 1:  # also one that commits nothing
            assert again.sink.wait(again.write((10 + number, "x")), 10)
        else:
            eventually(again.has_begun)
        again.close()
    assert rows(path) == [(1, "a"), (10, "x"), (12, "x")]


def test_logs_and_checkpoints_of_before_are_read(copied: Path) -> None:
    """Rows of the log had five fields, and checkpoints no lineage."""
    path = copied / "sink.db"
    with sqlite3.connect(path) as db:
        db.execute("UPDATE everview_checkpoints SET checkpoint = ?", [json.dumps([[str(WHOLE), 1]])])
    db.close()
    environment = Environment.open(copied / "one", background=False)
    (key,) = environment.scan("flow/m/split/")
    value = json.loads(environment.get(key) or b"")[:5]
    value[2] = json.dumps([[str(WHOLE), 1]])
    environment.commit(Put(key, json.dumps(value).encode()))
    (row,) = RecoveryLog(environment, "m").rows()
    assert (row.checkpoint, row.acknowledged, row.settled, row.lineages) == (Checkpoint.at(WHOLE, 1), None, False, ())
    environment.close()
    again = Copy(copied / "one", path)
    again.sink.start()
    assert again.sink.wait(again.write((2, "b")), 10)
    assert rows(path) == [(1, "a"), (2, "b")]
    again.close()


def test_what_is_wrong_is_said(copied: Path) -> None:
    one = Copy(copied / "one", copied / "sink.db")
    log = RecoveryLog(one.environment, "m")
    row = log.open(WHOLE)
    log.check_lineage(row, Checkpoint.at(WHOLE, 1), ["u1"])
    log.check_lineage(row, Checkpoint.at(WHOLE, 100).by(log.lineage), ["u1"])
    with pytest.raises(TakenOver, match="another copy") as raised:
        log.check_lineage(row, Checkpoint.at(WHOLE, 1).by("stranger"), ["u1"])
    assert "stranger" in (raised.value.detail or "") and "BACKFILL" in (raised.value.hint or "")
    with pytest.raises(TakenOver):
        log.check_lineage(row, Checkpoint.at(WHOLE, 100), ["u1"])
    one.close()
