"""Holds: what a transaction or a subscription can read stays as it was, and everything else goes on."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.replacement_cutover import Cutover
from everview.storage.contract import ReadCapability
from everview.storage.shard import from_frontier
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.waiting import eventually


class World:
    """A coordinator with two schemas, in which time passes when it is told to."""

    def __init__(self, coordinator: Coordinator, clock: Clock) -> None:
        self.coordinator, self.clock = coordinator, clock
        self.sql = SessionClient(coordinator)
        self._written = 0
        for each in (
            "CREATE SCHEMA quiet",
            "CREATE TABLE quiet.tiny (a int)",
            "CREATE TABLE quiet.other (a int)",
            "CREATE TABLE churn (a int)",
            "CREATE VIEW quiet.above AS SELECT a FROM quiet.tiny",
            "CREATE MATERIALIZED VIEW quiet.total AS SELECT count(*) AS c, max(100 / a) AS m FROM quiet.tiny",
            "INSERT INTO quiet.tiny VALUES (1)",
            "INSERT INTO churn VALUES (1)",
        ):
            assert not self.sql(each)[0].startswith("!"), each

    def id(self, name: str) -> str:
        return next(each.id for each in self.coordinator.catalog.state.items.values() if each.name == name)

    def since(self, name: str) -> int:
        return from_frontier(self.coordinator.environment.frontiers(self.id(name)).since)

    def tokens(self, name: str) -> int:
        held = self.coordinator.environment.shard(self.id(name)).held
        found = (self.coordinator.environment.present(self.id(name), token) for token in held)
        return sum(isinstance(each, ReadCapability) for each in found)

    def pass_time(self, rounds: int = 3) -> None:
        """Writes and ticks for a minute; holds that were there before no longer stop the clock."""
        self.coordinator.timeline.holds.pin(0)
        for _ in range(rounds):
            self.clock.now_ms += 20_000
            self._written += 1
            self.sql(f"INSERT INTO churn VALUES ({self._written})")
            self.sql("DELETE FROM churn WHERE a < 3")
            self.sql("INSERT INTO quiet.tiny VALUES (2)")
            self.sql("INSERT INTO quiet.other VALUES (2)")
            self.sql("SELECT * FROM quiet.total")


@pytest.fixture
def world(coordinator: Coordinator, clock: Clock) -> World:
    return World(coordinator, clock)


def rows(client: SessionClient, query: str) -> list[str]:
    return client(query)[1:]


def fetched(client: SessionClient) -> list[str]:
    """All rows that a subscription has by now."""
    found: list[str] = []
    while batch := rows(client, "FETCH ALL c WITH (timeout = '0s')"):
        found += batch
    return found


@pytest.mark.parametrize("first", ["a FROM quiet.tiny", "a FROM quiet.above", "c FROM quiet.total"])
def test_an_idle_transaction_holds_what_it_can_read(world: World, first: str) -> None:
    idle = SessionClient(world.coordinator)
    idle("BEGIN")
    assert rows(idle, f"SELECT {first}") == ["1"]
    world.pass_time()
    time = int(rows(idle, "SELECT mz_now()")[0])
    assert world.since("churn") > time, "others forget"
    assert world.since("tiny") <= time and world.since("other") <= time and world.since("total") <= time
    assert rows(idle, "SELECT a FROM quiet.tiny") == ["1"]
    assert rows(idle, "SELECT a FROM quiet.other") == []
    assert rows(idle, "SELECT c, m FROM quiet.total") == ["1|100"]
    idle("SAVEPOINT s")
    assert idle("SELECT a FROM churn") == ['! 25000 "churn" cannot be read at the time of the transaction']
    idle("ROLLBACK TO s")
    world.pass_time()
    assert rows(idle, "SELECT a FROM quiet.tiny") == ["1"]
    idle("COMMIT")
    world.pass_time()
    assert min(world.since(name) for name in ("tiny", "other", "total")) > time
    assert world.tokens("tiny") == 2, "the table's own, and the view's"


def test_what_is_read_later_is_held_too(world: World) -> None:
    idle = SessionClient(world.coordinator)
    idle("BEGIN")
    rows(idle, "SELECT a FROM quiet.tiny")
    before = rows(idle, "SELECT a FROM churn")
    world.pass_time()
    assert rows(idle, "SELECT a FROM churn") == before
    idle("ROLLBACK")
    world.pass_time()
    assert world.tokens("churn") == 1


@pytest.mark.parametrize("first", ["SELECT mz_now()", "INSERT INTO stamped (a) VALUES (1)"])
def test_what_begins_without_reading_holds_what_it_can_name(world: World, first: str) -> None:
    world.sql("CREATE TABLE stamped (a int, at bigint DEFAULT mz_now())")
    idle = SessionClient(world.coordinator)
    idle("BEGIN")
    assert not idle(first)[0].startswith("!")
    world.pass_time()
    assert rows(idle, "SELECT a FROM churn") == ["1"]
    assert idle("SELECT a FROM quiet.tiny") == ['! 25000 "tiny" cannot be read at the time of the transaction']
    idle("ROLLBACK")


def test_many_holds_share_a_capability(world: World) -> None:
    idle = [SessionClient(world.coordinator) for _ in range(5)]
    seen = []
    for client in idle:
        client("BEGIN")
        seen.append(rows(client, "SELECT a FROM quiet.tiny"))
        world.pass_time(1)
    assert world.tokens("tiny") == 3
    for place in (0, 3, 1, 4, 2):  # let go in some order: the rest still reads what it did
        idle[place]("ROLLBACK")
        world.pass_time(1)
        for other, client in enumerate(idle):
            if client.session.status == "T":
                assert rows(client, "SELECT a FROM quiet.tiny") == seen[other]
        left = [other for other, client in enumerate(idle) if client.session.status == "T"]
        assert (world.tokens("tiny") == 3) == bool(left)


def test_a_transaction_that_wrote_finds_out_what_has_changed(world: World) -> None:
    for changed in (False, True):
        idle = SessionClient(world.coordinator)
        idle("BEGIN")
        rows(idle, "SELECT c FROM quiet.total" if changed else "SELECT a FROM quiet.other WHERE a = 77")
        idle("INSERT INTO quiet.other VALUES (5)")
        world.coordinator.timeline.holds.pin(0)
        for _ in range(3):
            world.clock.now_ms += 20_000
            world.sql("INSERT INTO churn VALUES (1)")
            if changed:
                world.sql("INSERT INTO quiet.tiny VALUES (7)")
        answer = idle("COMMIT")
        assert answer[0].startswith("! 40001") if changed else answer == ["COMMIT"]


def test_a_subscription_holds_its_own_collection(world: World) -> None:
    reader = SessionClient(world.coordinator)
    reader("BEGIN")
    reader("DECLARE c CURSOR FOR SUBSCRIBE quiet.tiny")
    start = world.coordinator.timeline.upper - 1
    world.pass_time()
    assert world.since("tiny") <= start
    assert world.since("other") > start and world.since("churn") > start
    found = fetched(reader)
    assert len(found) == 4 and len({line.split("|")[0] for line in found}) == 4, "each change at its time"
    world.pass_time()
    assert start < world.since("tiny"), "it has had what was before"
    assert len(fetched(reader)) == 3
    reader("COMMIT")
    assert world.tokens("tiny") == 2


def test_a_subscription_to_a_query_holds_no_table(world: World) -> None:
    reader = SessionClient(world.coordinator)
    reader("BEGIN")
    reader("DECLARE c CURSOR FOR SUBSCRIBE (SELECT a, count(*) FROM churn GROUP BY a)")
    world.pass_time()
    found = fetched(reader)
    assert len(found) > 2
    reader("COMMIT")


def test_what_is_dropped_meanwhile(world: World) -> None:
    idle = SessionClient(world.coordinator)
    idle("BEGIN")
    rows(idle, "SELECT a FROM quiet.tiny")
    world.pass_time()
    assert world.sql("DROP TABLE quiet.tiny CASCADE") == ["DROP TABLE"]
    assert idle("SELECT a FROM quiet.tiny")[0].startswith("! 42P01")
    assert idle("ROLLBACK") == ["ROLLBACK"]
    world.coordinator.timeline.holds.pin(0)


def test_a_crash_leaves_nothing(tmp_path: Path, clock: Clock) -> None:
    with Coordinator.open(tmp_path, clock=clock, ticking=False) as coordinator:
        world = World(coordinator, clock)
        idle = SessionClient(coordinator)
        idle("BEGIN")
        rows(idle, "SELECT a FROM quiet.tiny")
        world.pass_time()
        time = int(rows(idle, "SELECT mz_now()")[0])
        assert world.tokens("tiny") == 3
        coordinator.timeline.holds.release = lambda hold: None  # type: ignore[method-assign]
    with Coordinator.open(tmp_path, clock=clock, ticking=False) as coordinator:
        world.coordinator, world.sql = coordinator, SessionClient(coordinator)
        assert world.tokens("tiny") == 2
        world.pass_time()
        assert world.since("tiny") > time


@pytest.mark.parametrize("seed", range(4))
def test_whoever_holds_reads_what_it_did(world: World, seed: int) -> None:
    """Transactions come and go, are pinned or not, and all read the same again."""
    rng = random.Random(seed)
    names = ("quiet.tiny", "quiet.other", "churn")
    idle: dict[SessionClient, dict[str, list[str]]] = {}
    for _ in range(60):
        action = rng.random()
        if action < 0.2 or not idle:
            client = SessionClient(world.coordinator)
            client("BEGIN")
            idle[client] = {}
            _read(client, rng.choice(names), idle)
        elif action < 0.3:
            client = rng.choice(list(idle))
            client("ROLLBACK")
            del idle[client]
        elif action < 0.6:
            _read(rng.choice(list(idle)), rng.choice(names), idle)
        elif action < 0.75:
            world.coordinator.timeline.holds.pin(0)
        else:
            world.clock.now_ms += rng.choice([1, 500, 3_000, 60_000])
            world.sql(f"INSERT INTO {rng.choice(names)} VALUES ({rng.randint(1, 5)})")
            world.sql(f"DELETE FROM {rng.choice(names)} WHERE a = {rng.randint(1, 5)}")
    for client in idle:
        client("ROLLBACK")
    world.pass_time()
    assert [world.tokens(name) for name in ("tiny", "other", "churn")] == [2, 1, 1]


def _read(client: SessionClient, name: str, idle: dict[SessionClient, dict[str, list[str]]]) -> None:
    client("SAVEPOINT s")
    found = client(f"SELECT a FROM {name} ORDER BY a")
    if found[0].startswith("! 25000"):
        assert name not in idle[client] and idle[client], "what was read can be read again"
        client("ROLLBACK TO s")
        return
    assert idle[client].setdefault(name, found) == found


def test_applying_a_replacement_holds_what_it_compares(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it has to wait for its moment."""
    world.sql(
        "CREATE REPLACEMENT MATERIALIZED VIEW new FOR quiet.total"
        " AS SELECT count(*) + 1 AS c, max(a) AS m FROM quiet.tiny"
    )
    waiting, go = threading.Event(), threading.Event()
    hold_up = Cutover._hold_up

    def wait(applying: Cutover) -> int:
        waiting.set()
        assert go.wait(120)
        return hold_up(applying)

    monkeypatch.setattr(Cutover, "_hold_up", wait)
    found: list[list[str]] = []
    applier = SessionClient(world.coordinator)
    statement = "ALTER MATERIALIZED VIEW quiet.total APPLY REPLACEMENT new"
    thread = threading.Thread(target=lambda: found.append(applier(statement)))
    thread.start()
    eventually(waiting.is_set)
    before = world.since("total")
    world.pass_time()
    assert world.since("total") == before
    assert world.since("churn") > before + 30_000, "what it has nothing to do with is forgotten as ever"
    go.set()
    thread.join(120)
    assert found == [["ALTER MATERIALIZED VIEW"]]
    assert rows(world.sql, "SELECT c FROM quiet.total") == ["5"]
    world.pass_time()
    assert world.since("total") > before + 30_000
