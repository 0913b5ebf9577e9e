"""Ranges of a connector that share one state: the first applies what all have staged, exactly once."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everview.compute.ir import types as t
from everview.flow.connector import protobuf
from everview.flow.contract import Binding
from everview.flow.fencing import Row
from everview.flow.keyrange import WHOLE
from everview.flow.materialization import Materialization, Options
from everview.flow.protocol import StateUpdate
from everview.flow.recovery_log import RecoveryLog
from everview.storage.contract import Put
from tests.flow.ledger import Ledger

STAGED = Path(__file__).parent / "staged.py"
QUICK = Options(backoff_s=0.02, backoff_s_max=0.1, stall_s=30, heartbeat_s=0.05)
WAIT_S = 120.0


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path, ("id", t.INT8), ("k", t.INT8), ("n", t.INT8))
    yield made
    made.close()


def bindings(ledger: Ledger) -> list[Binding]:
    rows = ledger.binding(["id"], resource={"table": "rows"}, title="rows")
    sums = ledger.binding(["k"], resource={"table": "sums"}, title="sums", reductions={"n": "sum"})
    return [rows, sums]


def settings(path: Path, codec: str) -> dict[str, Any]:
    program = path / "staged"
    program.write_text(f"#!/bin/sh\necho $$ >> {path}/pids\nexec {sys.executable} -S {STAGED}\n")
    program.chmod(0o755)
    return {"command": str(program), "codec": codec, "config": {"path": str(path / "out.db"), "hardDelete": True}}


def found(path: Path) -> tuple[list[Any], dict[int, int]]:
    db = sqlite3.connect(path / "out.db")
    rows = db.execute("SELECT id, k, n FROM main__rows ORDER BY id").fetchall()
    sums = dict(db.execute("SELECT k, n FROM main__sums").fetchall())
    db.close()
    return rows, {k: n for k, n in sums.items() if n}


def changes(rng: random.Random, rows: dict[int, tuple[int, int, int]]) -> list[tuple[int, tuple[int, int, int]]]:
    """Some rows come, some change and some go."""
    made: list[tuple[int, tuple[int, int, int]]] = []
    for id in rng.sample(range(60), 12):
        before = rows.pop(id, None)
        if before is not None:
            made.append((-1, before))
        if before is None or rng.random() < 0.7:
            rows[id] = (id, rng.randrange(8), rng.randrange(100))
            made.append((1, rows[id]))
    return made


def expected(rows: dict[int, tuple[int, int, int]]) -> tuple[list[Any], dict[int, int]]:
    sums: Counter[int] = Counter()
    for _, k, n in rows.values():
        sums[k] += n
    return sorted(rows.values()), {k: n for k, n in sums.items() if n}


def kill_one(path: Path, rng: random.Random) -> None:
    """End one of the programs that run, as the system might."""
    pids = list(map(int, (path / "pids").read_text().split()))[-8:]
    with contextlib.suppress(ProcessLookupError):
        os.kill(rng.choice(pids), signal.SIGKILL)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("codec", ["json", "proto"])
def test_what_all_ranges_staged_is_applied_by_the_first(
    ledger: Ledger, tmp_path: Path, codec: str, rng: random.Random, long_forms: bool
) -> None:
    """With splits that change at random, and programs that are killed."""
    config = settings(tmp_path, codec)
    sink = Materialization.create(ledger.environment, "m", "command", config, bindings(ledger), options=QUICK)
    sink.start()
    rows: dict[int, tuple[int, int, int]] = {}
    for round in range(60 if long_forms else 8):
        upper = ledger.write(*changes(rng, rows))
        match rng.randrange(4):
            case 0:
                sink.split(rng.randrange(1, 5))
            case 1:
                kill_one(tmp_path, rng)
            case 2:
                sink.pause()
                sink.start()
        if round % 3 == 2:
            assert sink.wait(upper, WAIT_S), sink.status()
            assert found(tmp_path) == expected(rows), f"round {round}"
    sink.split(3)
    assert sink.wait(ledger.write(*changes(rng, rows)), WAIT_S), sink.status()
    assert found(tmp_path) == expected(rows)
    status = sink.status()
    assert len(status.splits) == 3 and status.error is None
    state = RecoveryLog(ledger.environment, "m", shared=True).state()
    assert state["applied"], "what apply said is still there"
    sink.drop()
    assert not ledger.environment.scan("flow/")


def test_the_state_is_one_for_all_ranges(ledger: Ledger) -> None:
    log = RecoveryLog(ledger.environment, "m", shared=True)
    ledger.environment.commit(*log.beginning({"applied": 1}))
    left, right = WHOLE.split(2)
    one, two = log.open(left), log.open(right)
    assert one.state == two.state == {"applied": 1}
    log.commit(one, one.checkpoint, StateUpdate({"ranges": {"a": {"x": True}}}))
    log.commit(two, two.checkpoint, StateUpdate({"ranges": {"b": {"y": True}}}))
    one = log.save(log.open(left), [StateUpdate({"ranges": {"b": {"y": None}}})])
    assert one.state == {"applied": 1, "ranges": {"a": {"x": True}, "b": {}}}
    assert log.open(WHOLE).state == one.state
    log.commit(log.open(WHOLE), one.checkpoint, StateUpdate({"new": 1}, merge_patch=False))
    assert log.state() == {"new": 1}


def test_states_of_former_ranges_become_one(ledger: Ledger) -> None:
    """As logs were written when each range had a state of its own."""
    former = RecoveryLog(ledger.environment, "m")
    left, right = WHOLE.split(2)
    for range, state in ((left, {"a": 1}), (right, {"b": 2})):
        row = former.open(range)
        former.commit(row, row.checkpoint, StateUpdate(state))
    log = RecoveryLog(ledger.environment, "m", shared=True)
    assert log.open(left).state == {"a": 1, "b": 2}
    assert log.open(right).state == {"a": 1, "b": 2}
    rows: list[Row] = log.rows()
    assert [row.state for row in rows] == [{}, {}]
    ledger.environment.commit(*log.forgetting(), Put("other", b"x"))
    assert not ledger.environment.scan("flow/")


def test_patches_and_constraints_on_the_wire() -> None:
    """Field by field as the public protocol numbers them."""
    patches = json.dumps([{"a": 1}], separators=(",", ":")).encode()
    flush = protobuf.encode("Request", {"flush": {"statePatches": [{"a": 1}]}})
    assert flush == bytes([0x32, len(patches) + 2, 0x0A, len(patches)]) + patches
    commit = protobuf.encode("Request", {"startCommit": {"statePatches": [{"a": 1}]}})
    assert commit == bytes([0x42, len(patches) + 2, 0x12, len(patches)]) + patches
    acknowledge = protobuf.encode("Request", {"acknowledge": {"statePatches": [{"a": 1}]}})
    assert acknowledge == bytes([0x4A, len(patches) + 2, 0x0A, len(patches)]) + patches
    listed = [{"field": "id", "constraint": {"type": "FIELD_REQUIRED", "reason": "a key"}}]
    answer = {"validated": {"bindings": [{"projectionConstraints": listed, "resourcePath": ["t"]}]}}
    assert protobuf.decode("Response", protobuf.encode("Response", answer)) == answer
    # A number where a message is expected is a field of some other version: it is passed over.
    assert protobuf.decode("Answer", bytes([0x30, 1, 0x12, 1, ord("t")])) == {"resourcePath": ["t"]}
