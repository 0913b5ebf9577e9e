"""Ranges of a connector that share one state: the first applies what all have staged, exactly once."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from everview.compute.ir import types as t
from everview.flow.channel import Channel
from everview.flow.check.harness import Shim
from everview.flow.connector import protobuf
from everview.flow.contract import Binding, Spec
from everview.flow.drivers.contract import Driver, Guarantee, Keys, Pattern, Started, Transactor, Validated
from everview.flow.fencing import OwnedRange
from everview.flow.joint_worker import JointWorker
from everview.flow.keyrange import WHOLE, KeyRange
from everview.flow.materialization import Options
from everview.flow.protocol import DriverState, Load, Open, Request, StateUpdate
from everview.flow.recovery_log import RecoveryLog
from everview.flow.runtime import Delivery, Limits
from everview.flow.source import Collections
from everview.storage.contract import Put
from tests.flow.conftest import STRICT
from tests.flow.created import created
from tests.flow.ledger import Ledger, commit_one
from tests.waiting import eventually

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


def settings(path: Path, codec: str, connector: Path) -> dict[str, Any]:
    program = path / "connector"
    program.write_text(f"#!/bin/sh\necho $$ >> {path}/pids\nexec {sys.executable} -S {connector}\n")
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
@pytest.mark.parametrize("connector", [STAGED, STRICT], ids=lambda path: path.stem)
@pytest.mark.parametrize("codec", ["json", "proto"])
def test_splits_that_change_and_programs_that_are_killed(
    ledger: Ledger, tmp_path: Path, codec: str, connector: Path, *, rng: random.Random, long_forms: bool
) -> None:
    """Of one connector the first range applies what all have staged; the other keeps checkpoints in its database."""
    config = settings(tmp_path, codec, connector)
    sink = created(ledger.environment, "m", "command", config, bindings(ledger), options=QUICK)
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
    commit_one(log, one, one.checkpoint, StateUpdate({"ranges": {"a": {"x": True}}}))
    commit_one(log, two, two.checkpoint, StateUpdate({"ranges": {"b": {"y": True}}}))
    one = log.save(log.open(left), [StateUpdate({"ranges": {"b": {"y": None}}})])
    assert one.state == {"applied": 1, "ranges": {"a": {"x": True}, "b": {}}}
    assert log.open(WHOLE).state == one.state
    commit_one(log, log.open(WHOLE), one.checkpoint, StateUpdate({"new": 1}, merge_patch=False))
    assert log.state() == {"new": 1}


def test_states_of_former_ranges_become_one(ledger: Ledger) -> None:
    """As logs were written when each range had a state of its own."""
    former = RecoveryLog(ledger.environment, "m")
    left, right = WHOLE.split(2)
    for range, state in ((left, {"a": 1}), (right, {"b": 2})):
        row = former.open(range)
        commit_one(former, row, row.checkpoint, StateUpdate(state))
    log = RecoveryLog(ledger.environment, "m", shared=True)
    assert log.open(left).state == {"a": 1, "b": 2}
    assert log.open(right).state == {"a": 1, "b": 2}
    rows: list[OwnedRange] = log.rows()
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


class Held(Transactor):
    """Keeps documents in memory. Once `waiting` is set, it commits nothing until a load comes behind the commit."""

    def __init__(self, driver: MemoryDriver) -> None:
        super().__init__()
        self._driver, self._taken = driver, dict[int, dict[str, Any]]()

    def find(self, binding: int, keys: pa.Table) -> pa.Table:
        rows = [self._driver.rows[id] for id in keys.column("id").to_pylist() if id in self._driver.rows]
        return pa.Table.from_pylist(rows, schema=self._driver.schema)

    def store(self, binding: int, documents: pa.Table) -> None:
        self._taken |= {each["id"]: each for each in documents.to_pylist()}

    def start_commit(self, checkpoint: str) -> Started:
        taken, self._taken = self._taken, {}

        def commit() -> None:
            if self._driver.waiting.is_set() and taken:
                self._driver.committing.set()
                assert self._driver.loading.wait(20), "no load was sent while this was being committed"
            self._driver.rows |= {id: {"id": id, "k": row["k"], "n": row["n"]} for id, row in taken.items()}

        return Started(commit=commit)

    def close(self) -> None:
        return None


class MemoryDriver(Driver):
    """Documents in memory, with ranges that go together as those of a program."""

    name, foreign = "memory", True
    pattern, guarantee, keys = Pattern.NON_TRANSACTIONAL, Guarantee.EXACTLY_ONCE, Keys.LOADED

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__({})
        self.schema, self.rows = schema, dict[int, dict[str, Any]]()
        self.waiting, self.committing, self.loading = (threading.Event() for _ in range(3))

    def validate(self, spec: Spec) -> list[Validated]:
        raise NotImplementedError

    def apply(self, spec: Spec) -> str:
        raise NotImplementedError

    def open(self, spec: Spec, range: KeyRange, state: DriverState) -> Transactor:
        return Held(self)

    def connect(self, request: Open) -> Channel:
        driver = self

        class Watched(Shim):
            """Notes a load that comes while something is being committed."""

            def send(self, request: Request, timeout_s: float) -> None:
                if isinstance(request, Load) and driver.committing.is_set():
                    driver.loading.set()
                super().send(request, timeout_s)

        return Watched(super().connect(request), [])


def test_the_next_loads_are_sent_while_the_last_transactions_are_committed(ledger: Ledger) -> None:
    bound = ledger.binding(["id"])
    driver = MemoryDriver(bound.schema)
    source, log = Collections(ledger.environment, [bound]), RecoveryLog(ledger.environment, "m", shared=True)
    delivery = Delivery.by(driver, source, log, limits=Limits(stall_s=60, heartbeat_s=3600))
    worker = JointWorker(driver, Spec("m", "memory", (bound,)), WHOLE.split(2), delivery, backoff_s=(0.02, 0.1))
    worker.loop.start()
    rows = [(id, id, id) for id in range(20)]
    upper = ledger.write(*((1, row) for row in rows))
    eventually(lambda: min(each.frontier for each in worker.statuses()) >= upper)
    driver.waiting.set()
    ledger.write(*((-1, row) for row in rows), *((1, (id, k, n + 1)) for id, k, n in rows))
    assert driver.committing.wait(60)
    upper = ledger.write(*((-1, (id, k, n + 1)) for id, k, n in rows), *((1, (id, k, n + 2)) for id, k, n in rows))
    assert driver.loading.wait(60)
    driver.waiting.clear()
    eventually(lambda: min(each.frontier for each in worker.statuses()) >= upper)
    assert [each.failures for each in worker.statuses()] == [0, 0]
    assert sorted((each["id"], each["k"], each["n"]) for each in driver.rows.values()) == [
        (id, k, n + 2) for id, k, n in rows
    ]
    worker.loop.stop()
