"""Ticks of a round: one commit for all, and each succeeds, fails and ends alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from everview.compute.commit_rounds import CommitRound, commit_together, leave_round
from everview.storage.contract import Command, Create, Downgrade, Drop, WriteCapability
from everview.storage.environment import Environment
from everview.storage.errors import CapabilityInvalid, Indeterminate
from everview.timely.antichain import Antichain
from tests.storage.rows import SCHEMA
from tests.waiting import eventually

LONG_S = 60.0


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    with Environment.open(tmp_path, background=False) as opened:
        yield opened


@pytest.fixture
def writers(environment: Environment) -> list[WriteCapability]:
    return [write for _, write in environment.commit(*(Create(f"u{n}", SCHEMA) for n in range(1, 4)))]


class Tick(threading.Thread):
    """A tick that commits in a round."""

    def __init__(self, round: CommitRound, commands: Sequence[Command]) -> None:
        super().__init__(daemon=True)
        self._round, self._commands = round, commands
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._round.commit(self._commands, LONG_S)
        except BaseException as error:
            self.error = error


def uppers(environment: Environment) -> list[int]:
    return [environment.frontiers(f"u{n}").upper.only for n in range(1, 4)]


def test_ticks_of_a_round_are_one_commit(environment: Environment, writers: list[WriteCapability]) -> None:
    commits = environment.commits
    together = CommitRound(environment, 3)
    ticks = [Tick(together, [Downgrade(each, Antichain(5))]) for each in writers]
    for each in ticks:
        each.join(LONG_S)
    assert uppers(environment) == [5, 5, 5] and environment.commits == commits + 1


def test_one_that_fails_fails_alone(environment: Environment, writers: list[WriteCapability]) -> None:
    environment.commit(Drop(writers[1]))
    together = CommitRound(environment, 3)
    ticks = [Tick(together, [Downgrade(each, Antichain(5))]) for each in writers]
    for each in ticks:
        each.join(LONG_S)
    assert [type(each.error) for each in ticks] == [type(None), CapabilityInvalid, type(None)]
    assert [environment.frontiers(f"u{n}").upper.only for n in (1, 3)] == [5, 5]


def test_what_may_be_committed_is_not_tried_again(
    environment: Environment, writers: list[WriteCapability], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def commit(*commands: Command) -> None:
        tries.append(commands)
        raise Indeterminate("it may be there")

    monkeypatch.setattr(environment, "commit", commit)
    together = CommitRound(environment, 2)
    ticks = [Tick(together, [Downgrade(each, Antichain(5))]) for each in writers[:2]]
    for each in ticks:
        each.join(LONG_S)
    assert [type(each.error) for each in ticks] == [Indeterminate, Indeterminate] and len(tries) == 1


def test_nobody_waits_for_one_that_left_or_is_slow(environment: Environment, writers: list[WriteCapability]) -> None:
    together = CommitRound(environment, 3)
    tick = Tick(together, [Downgrade(writers[0], Antichain(5))])
    together.leave()
    assert tick.is_alive()
    together.leave()
    tick.join(LONG_S)
    assert uppers(environment) == [5, 0, 0]
    slow = CommitRound(environment, 2)
    slow.commit([Downgrade(writers[1], Antichain(6))], 0.0)
    assert uppers(environment) == [5, 6, 0]
    slow.commit([Downgrade(writers[2], Antichain(7))], LONG_S)
    assert uppers(environment) == [5, 6, 7]


def test_a_tick_leaves_its_round_once(environment: Environment, writers: list[WriteCapability]) -> None:
    together = CommitRound(environment, 2)
    tick = Tick(together, [Downgrade(writers[0], Antichain(5))])
    with together.joined():
        leave_round()
        commit_together(environment, [Downgrade(writers[1], Antichain(5))])
    tick.join(LONG_S)
    commit_together(environment, [Downgrade(writers[2], Antichain(5))])
    eventually(lambda: uppers(environment) == [5, 5, 5])
