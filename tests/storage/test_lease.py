"""Who may answer reads: the owner of the epoch, as long as its lease lasts; and who takes over waits for that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everview.storage import lease
from everview.storage.blob.memory import MemoryBlob
from everview.storage.codec import EPOCH, FORMAT, SEALED
from everview.storage.consensus.contract import Consensus
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.consensus.sqlite import SqliteConsensus
from everview.storage.environment import Environment
from everview.storage.errors import Determinate, Fenced
from everview.storage.lease import LEASE_MS, Lease, await_former, new_owner
from everview.storage.process_identity import has_ended, is_this_process, this_process


class Looking:
    """An epoch that can be lost, and a clock."""

    def __init__(self) -> None:
        self.looks, self.now_ms = 0, 1_000_000
        self.failure: Determinate | None = None
        self.lease = Lease(self._look, "a token", now_ms=lambda: self.now_ms)

    def _look(self) -> None:
        self.looks += 1
        if self.failure is not None:
            raise self.failure


def test_a_look_is_good_for_a_lease() -> None:
    world = Looking()
    world.lease.confirm()
    world.now_ms += LEASE_MS - 1
    world.lease.confirm()
    assert world.looks == 1
    world.now_ms += 1
    assert not world.lease.valid
    world.lease.confirm()
    assert world.looks == 2


def test_a_commit_counts_from_when_it_began() -> None:
    world = Looking()
    world.lease.extend(world.now_ms)
    world.now_ms += LEASE_MS
    assert not world.lease.valid
    world.lease.extend(world.now_ms - LEASE_MS + 10)
    assert world.lease.valid
    world.now_ms += 10
    assert not world.lease.valid


def test_it_is_renewed_before_it_ends() -> None:
    world = Looking()
    for _ in range(30):
        world.now_ms += LEASE_MS // 3 + 1
        world.lease.renew()
        assert world.lease.valid
    assert world.looks == 30


def test_nothing_is_answered_while_nobody_knows() -> None:
    """Consensus is away: reads fail once the lease is over, and go on when it is back."""
    world = Looking()
    world.lease.confirm()
    world.failure = Determinate("away")
    world.lease.confirm()
    world.now_ms += LEASE_MS
    with pytest.raises(Determinate):
        world.lease.confirm()
    world.failure = None
    world.lease.confirm()


def test_once_fenced_for_ever() -> None:
    world = Looking()
    world.lease.confirm()
    world.lease.end(Fenced("gone"))
    assert not world.lease.valid
    for ask in (world.lease.confirm, world.lease.renew):
        with pytest.raises(Fenced):
            ask()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def consensus(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Consensus]:
    """Opens the same consensus, as another process would."""
    if request.param == "memory":
        only = MemoryConsensus()
        only.close = lambda: None  # type: ignore[method-assign]
        return lambda: only
    if request.param == "sqlite":
        return lambda: SqliteConsensus(tmp_path / "consensus.db")
    from everview.storage.consensus.postgres import PostgresConsensus

    url = request.getfixturevalue("postgres_url")
    return lambda: PostgresConsensus(url, f"lease_{os.getpid()}")


def test_a_process_that_slept_answers_nothing(
    consensus: Callable[[], Consensus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000_000]
    waited: list[float] = []
    monkeypatch.setattr(Lease.__init__, "__defaults__", (LEASE_MS, lambda: now[0]))
    monkeypatch.setattr(lease, "_OPEN", {})  # as if it were another process's
    monkeypatch.setattr(lease, "is_this_process", lambda _: False)
    monkeypatch.setattr("everview.storage.lease.time.sleep", waited.append)
    first = Environment(consensus(), MemoryBlob(), tmp_path / "first", background=False)
    first.confirm()
    assert first.owned
    monkeypatch.setattr(lease, "_OPEN", {})
    second = Environment(consensus(), MemoryBlob(), tmp_path / "second", background=False)
    assert [round(each, 1) for each in waited] == [3.3]  # before that, the first one may still answer
    assert first.owned
    now[0] += LEASE_MS
    assert not first.owned
    with pytest.raises(Fenced, match="another process has opened this environment"):
        first.confirm()
    assert first.fenced is not None
    second.confirm()
    first.close()
    second.confirm()  # who closes what is no longer its own takes nothing away
    second.close()
    third = Environment(consensus(), MemoryBlob(), tmp_path / "third", background=False)
    assert len(waited) == 1  # the second one has let go of it
    third.close()


def test_one_in_the_same_process_need_not_be_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.storage.lease.time.sleep", lambda _: pytest.fail("it waits"))
    first = Environment.open(tmp_path, background=False)
    first.confirm()
    with Environment.open(tmp_path, background=False), pytest.raises(Fenced):
        first.confirm()
    first.close()


def owner_of(process: dict[str, Any]) -> dict[str, Any]:
    return {**new_owner(1), **process}


def test_who_is_waited_for() -> None:
    waited: list[float] = []

    def waits(owner: dict[str, Any] | None) -> bool:
        waited.clear()
        await_former(owner, waited.append)
        return bool(waited)

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
        alive = owner_of({"pid": child.pid, "started": started})
        assert waits(alive)
        assert not waits({**alive, "closed": True})
        child.kill()
        child.wait()
    assert not waits(alive)
    assert waits({**alive, "boot": "another machine's"})
    assert waits({**alive, "namespace": "another container's"})
    assert not waits({**alive, "pid": os.getpid()})  # the number was used again
    assert not waits(None)
    assert not waits({"epoch": 1, "pid": 1, "host": "h"})  # older versions had no lease


def test_a_process_that_nobody_buries_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
        process = {**this_process(), "pid": child.pid, "started": started}
        assert not has_ended(process) and not is_this_process(process)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the list
        assert has_ended(process)
        child.wait()


def test_an_entry_of_an_older_version(tmp_path: Path) -> None:
    Environment.open(tmp_path, background=False).close()
    before = SqliteConsensus(tmp_path / "consensus.db")
    entry = before.get([EPOCH])[EPOCH]
    older = json.dumps({"epoch": 7, "pid": 1, "host": "old"}).encode()
    before.commit({EPOCH: entry.version}, {EPOCH: older, SEALED: None, FORMAT: b"1"}, 7 << 32)
    before.close()
    with Environment.open(tmp_path, background=False) as environment:
        assert environment.epoch == 8
