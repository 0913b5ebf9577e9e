"""Who stands by takes over when the owner is gone, never twice, and never because a store was away."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from everview.storage import lease, standby
from everview.storage.blob.local import LocalBlob
from everview.storage.blob.memory import MemoryBlob
from everview.storage.codec import BLOB_ID, EPOCH
from everview.storage.consensus.contract import Entry
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.environment import Environment
from everview.storage.errors import Determinate, Fenced, InUse, InvalidUsage, Overtaken
from everview.storage.opening import BLOB_MARK, match_blob, take_epoch
from everview.storage.sealed import SealedConsensus
from everview.storage.standby import TAKE_OVER_AFTER_MS, Standby, promote, wait_for_turn, wait_until_free


class SharedConsensus(MemoryConsensus):
    """Several processes use it, so none of them closes it; it can be away."""

    away = False

    def close(self) -> None:
        pass

    def get(self, keys: Sequence[str]) -> dict[str, Entry]:
        if self.away:
            raise Determinate("away")
        return super().get(keys)


class World:
    """A consensus, the environment's owner, one that stands by, and a clock."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(standby, "has_ended", lambda _: False)  # as of a process on another machine
        monkeypatch.setattr("everview.storage.lease.time.sleep", lambda _: None)
        monkeypatch.setattr(lease, "_OPEN", {})
        self.consensus, self.blob, self.folder, self.now_ms = SharedConsensus(), MemoryBlob(), folder, 5_000
        self.all_opened: list[Environment] = []
        self.blob.close = lambda: None  # type: ignore[method-assign]
        self.owner = self.opened()
        self.standby = self.stands_by()

    def stands_by(self) -> Standby:
        return Standby(self.consensus, now_ms=lambda: self.now_ms)

    def opened(self, taken_from: int | None = None) -> Environment:
        environment = Environment(
            self.consensus, self.blob, self.folder, background=False, shared=True, taken_from=taken_from
        )
        self.all_opened.append(environment)
        return environment

    def beat(self) -> None:
        self.owner._beat()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr("everview.storage.environment.BEAT_S", 3_600.0)  # the test beats
    made = World(tmp_path, monkeypatch)
    yield made
    for each in made.all_opened:
        each.close()


def test_nobody_takes_over_from_an_owner_that_beats(world: World) -> None:
    for _ in range(5):
        assert world.standby.look() is None
        world.now_ms += TAKE_OVER_AFTER_MS - 1
        world.beat()


def test_who_does_not_stand_by_leaves_an_owner_that_beats_alone(world: World) -> None:
    def beats(seconds: float) -> None:
        world.now_ms += int(seconds * 1000)
        world.beat()

    with pytest.raises(InUse, match=r"process \d+ on .* has the environment open") as caught:
        wait_until_free(world.stands_by(), sleep=beats)
    assert "--take-over" in str(caught.value.hint)
    world.beat()  # nobody took the epoch


def test_who_does_not_stand_by_opens_what_a_silent_owner_left(world: World) -> None:
    waited: list[float] = []

    def passes(seconds: float) -> None:
        waited.append(seconds)
        world.now_ms += int(seconds * 1000)

    version = wait_until_free(world.stands_by(), sleep=passes)
    assert sum(waited) * 1000 == TAKE_OVER_AFTER_MS
    with world.opened(version), pytest.raises(Fenced):
        world.beat()


def test_who_does_not_stand_by_opens_at_once_what_was_closed_or_never_there(world: World) -> None:
    def never(seconds: float) -> None:
        raise AssertionError("it waited")

    world.owner.close()
    entry = world.consensus.get([EPOCH])[EPOCH]
    assert wait_until_free(world.stands_by(), sleep=never) == entry.version
    assert wait_until_free(Standby(MemoryConsensus()), sleep=never) == 0


@pytest.mark.parametrize("here", [True, False])
def test_an_owner_that_shows_no_signs_of_life(world: World, monkeypatch: pytest.MonkeyPatch, here: bool) -> None:
    """One of a store that only this machine has: the system tells whether the process runs."""
    monkeypatch.setattr(standby, "is_running", lambda _: here)
    taken = take_epoch(SealedConsensus(world.consensus), beats=False)
    if here:
        with pytest.raises(InUse):
            wait_until_free(world.stands_by())
    else:
        assert wait_until_free(world.stands_by()) == taken.version


def test_a_store_too_slow_to_tell(world: World) -> None:
    """Each look takes so long that the owner's signs of life may be as late; this ends at some time."""
    now = iter(range(0, 10**9, TAKE_OVER_AFTER_MS))
    seconds = iter(range(10**6))
    slow = Standby(world.consensus, now_ms=lambda: next(now))
    with pytest.raises(Determinate, match="was not found out"):
        wait_until_free(slow, sleep=lambda _: world.beat(), now_s=lambda: next(seconds))


def test_a_silent_owner_is_taken_over_from(world: World) -> None:
    assert world.standby.look() is None
    world.now_ms += TAKE_OVER_AFTER_MS - 1
    assert world.standby.look() is None
    world.now_ms += 1
    turn = world.standby.look()
    assert turn is not None and "has shown no sign of life for 6.0 s" in turn.reason
    with world.opened(turn.taken_from) as second, pytest.raises(Fenced):
        world.beat()
        second.confirm()
    with pytest.raises(Fenced):
        world.owner.confirm()


def test_of_two_that_stand_by_one_succeeds(world: World) -> None:
    others = [world.standby, world.stands_by()]
    for each in others:
        assert each.look() is None
    world.now_ms += TAKE_OVER_AFTER_MS
    turns = [each.look() for each in others]
    assert turns[0] is not None and turns[1] is not None
    first = world.opened(turns[0].taken_from)
    with pytest.raises(Overtaken):
        world.opened(turns[1].taken_from)
    first.confirm()
    assert others[1].look() is None  # it goes on standing by, for the first one


def test_a_store_that_is_away_is_no_silence(world: World) -> None:
    told: list[str] = []
    stop = threading.Event()

    def hear(line: str) -> None:
        told.append(line)
        if len(told) == 1:
            world.consensus.away = True
        elif len(told) == 2:
            world.now_ms += 10 * TAKE_OVER_AFTER_MS
            world.consensus.away = False
        else:
            stop.set()

    assert wait_for_turn(world.standby, stop, hear, poll_s=0.001) is None
    assert [line.split(":")[0].rpartition(" for ")[0] or line.split(":")[0] for line in told] == [
        "standing by",
        "cannot look after the owner",
        "standing by",
    ]


def test_a_look_that_takes_long_is_no_silence(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert world.standby.look() is None
    slow = world.consensus.get

    def get(keys: Sequence[str]) -> dict[str, Entry]:
        world.now_ms += TAKE_OVER_AFTER_MS
        return slow(keys)

    monkeypatch.setattr(world.consensus, "get", get)
    for _ in range(3):
        assert world.standby.look() is None


def test_an_owner_that_closes_is_not_waited_for(world: World) -> None:
    world.owner.close()
    turn = world.standby.look()
    assert turn is not None and "has closed" in turn.reason


def test_an_owner_that_ended_on_this_machine_is_not_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "has_ended", lambda _: True)
    turn = world.standby.look()
    assert turn is not None and "has ended" in turn.reason


def test_an_owner_that_never_beats_is_left_alone(tmp_path: Path, world: World) -> None:
    """One of an earlier version, or one that shares nothing."""
    alone = SharedConsensus()
    with Environment(alone, MemoryBlob(), tmp_path / "alone", background=False):
        waiting = Standby(alone, now_ms=lambda: world.now_ms)
        for _ in range(5):
            assert waiting.look() is None
            world.now_ms += TAKE_OVER_AFTER_MS


def test_an_environment_that_nobody_has_opened() -> None:
    turn = Standby(SharedConsensus(), now_ms=lambda: 0).look()
    assert turn is not None and turn.taken_from == 0


def test_promote(world: World) -> None:
    assert world.standby.look() is None
    taken: list[Environment] = []

    def sleep(_: float) -> None:
        turn = world.standby.look()
        assert turn is not None and turn.reason == "it was asked to"
        taken.append(world.opened(turn.taken_from))

    assert promote(world.consensus, sleep=sleep).startswith("process ")
    taken[0].confirm()
    assert world.stands_by().look() is None  # the request is over


def test_promote_where_nobody_stands_by(world: World) -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    with pytest.raises(Determinate, match="no process has taken over within 7 s"):
        promote(world.consensus, wait_s=7, sleep=sleep, now_s=lambda: now[0])
    with pytest.raises(InvalidUsage, match="there is no environment here"):
        promote(SharedConsensus())
    world.beat()  # the owner goes on


def test_another_store_of_data_is_refused(world: World, tmp_path: Path) -> None:
    with pytest.raises(InvalidUsage, match="not the one that belongs") as refusal:
        Environment(world.consensus, MemoryBlob(), tmp_path / "second", background=False, shared=True)
    assert refusal.value.detail == "its mark is missing"
    theirs = MemoryBlob()
    theirs.put(BLOB_MARK, b"another")
    with pytest.raises(InvalidUsage, match="not the one that belongs") as refusal:
        Environment(world.consensus, theirs, tmp_path / "second", background=False, shared=True)
    assert refusal.value.detail == "it has the mark of another environment"
    world.opened().close()


def test_a_store_of_data_of_another_environment_is_not_adopted(tmp_path: Path) -> None:
    used = LocalBlob(tmp_path / "blob")
    used.put(BLOB_MARK, b"another")
    with pytest.raises(InvalidUsage, match="not the one that belongs"):
        Environment(SharedConsensus(), used, tmp_path / "new", background=False, shared=True)


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_crash_while_the_store_of_data_is_marked(written: int) -> None:
    """Between its three writes: the note that it begins, the mark, the note that it is done."""

    class Crash(Exception):
        pass

    consensus, blob = SharedConsensus(), MemoryBlob()
    left = [written]

    def count() -> None:
        if not left[0]:
            raise Crash
        left[0] -= 1

    taken = take_epoch(consensus)
    commit, put = consensus.commit, blob.put

    def counted_commit(*given: Any) -> None:
        count()
        commit(*given)

    def counted_put(*given: Any) -> None:
        count()
        put(*given)

    consensus.commit, blob.put = counted_commit, counted_put  # type: ignore[method-assign, assignment]
    with pytest.raises(Crash):
        match_blob(consensus, blob, taken)
    consensus.commit, blob.put = commit, put  # type: ignore[method-assign]
    for _ in range(2):
        match_blob(consensus, blob, take_epoch(consensus))
    note = json.loads(consensus.get([BLOB_ID])[BLOB_ID].value)
    with blob.open(BLOB_MARK) as file:
        assert (file.read().decode(), note["marked"]) == (note["id"], True)
    assert EPOCH in consensus.get([EPOCH])
