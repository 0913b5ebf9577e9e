"""A wall clock that is wrong: in both directions, while the environment is open and while it is closed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.wall_clock import (
    BELIEVED_AFTER_MS,
    BELIEVED_AFTER_REBOOT_MS,
    JUMP_MAX_MS,
    NOTE,
    TimeSource,
    shown_ms,
)
from everview.storage.contract import Put
from everview.storage.environment import Environment
from tests.adapter.scripts import SessionClient
from tests.adapter.test_subscribe import Subscriber

HOUR, DAY = 3_600_000, 86_400_000
Open = Callable[[], Coordinator]


class Machine:
    """A machine with a wall clock that can be set and an uptime that only passes."""

    def __init__(self) -> None:
        self.wall_ms, self.uptime_ms, self.boot = 1_700_000_000_000, 5_000_000, "first"

    def pass_ms(self, milliseconds: int) -> None:
        """Let time pass."""
        self.wall_ms += milliseconds
        self.uptime_ms += milliseconds

    def reboot(self) -> None:
        self.uptime_ms, self.boot = 10_000, self.boot + "+"

    @property
    def source(self) -> TimeSource:
        return TimeSource(self._wall, lambda: self.uptime_ms, self.boot)

    def _wall(self) -> int:
        self.wall_ms += 1
        return self.wall_ms


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def opened(tmp_path: Path, machine: Machine) -> Iterator[Open]:
    """Opens the environment anew, closing whoever had it open."""
    last: list[Coordinator] = []

    def open_() -> Coordinator:
        for each in last:
            each.close()
        last[:] = [Coordinator.open(tmp_path / "data", clock=machine.source, ticking=False)]
        return last[0]

    yield open_
    for each in last:
        each.close()


def tables(sql: SessionClient) -> None:
    """Everything that time takes away: a TTL, a temporal filter, and history."""
    sql("CREATE TABLE t (k int, at timestamptz) WITH (TTL '1 hour' ON at, RETAIN HISTORY FOR '1 hour')")
    sql("CREATE TABLE u (k int, at timestamptz)")
    query = "SELECT k FROM u WHERE mz_now() <= at + interval '1 hour'"
    sql(f"CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY FOR '1 hour') AS {query}")
    sql("INSERT INTO t VALUES (1, now())")
    sql("INSERT INTO u VALUES (1, now())")


def there(sql: SessionClient, *keys: int) -> bool:
    expected = ["k", *map(str, keys)]
    return sql("SELECT k FROM t ORDER BY k") == expected and sql("SELECT k FROM v ORDER BY k") == expected


@pytest.mark.parametrize("jump", [DAY, -DAY, 40 * 365 * DAY])
def test_a_jump_of_seconds_changes_nothing(opened: Open, machine: Machine, jump: int) -> None:
    coordinator = opened()
    sql = SessionClient(coordinator)
    tables(sql)
    begun = coordinator.timeline.upper
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO v WITH (PROGRESS)")
    machine.pass_ms(5_000)
    machine.wall_ms += jump
    for _ in range(5):
        before = coordinator.timeline.upper
        machine.pass_ms(1_000)
        sql("INSERT INTO t VALUES (2, now())")
        assert before < coordinator.timeline.upper <= begun + 15_000  # and what was acknowledged comes later
        assert sql("DELETE FROM t WHERE k = 2") == ["DELETE 1"]
        coordinator._each_second()
        assert there(sql, 1)
        assert begun <= int(sql("SELECT mz_now()")[1]) <= begun + 15_000
    assert [row for row in subscriber.data() if row[1] is not None] == [(False, 1, 1)]
    assert coordinator.clock_status.jumps == 1
    assert coordinator.warnings()
    machine.wall_ms -= jump
    assert there(sql, 1)
    assert coordinator.warnings() == []
    assert sql(f"SELECT k FROM t AS OF {begun}") == ["k", "1"]  # history is still there
    machine.pass_ms(HOUR - 20_000)
    assert there(sql, 1)
    machine.pass_ms(30_000)
    assert there(sql)  # at its time
    subscriber.rows.close()


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_jump_while_it_was_closed(opened: Open, machine: Machine, jump: int) -> None:
    """The machine has not been rebooted, so it is known how much time has passed."""
    tables(SessionClient(opened()))
    begun = opened().timeline.upper
    machine.pass_ms(60_000)
    machine.wall_ms += jump
    coordinator = opened()
    sql = SessionClient(coordinator)
    assert there(sql, 1)
    assert begun + 59_900 <= coordinator.timeline.upper <= begun + 70_000
    assert sql(f"SELECT k FROM t AS OF {begun}") == ["k", "1"]
    assert coordinator.warnings()
    machine.wall_ms -= jump
    assert there(sql, 1)
    assert coordinator.warnings() == []


def test_a_weekend_is_no_jump(opened: Open, machine: Machine) -> None:
    tables(SessionClient(opened()))
    opened().close()
    machine.pass_ms(2 * DAY)
    coordinator = opened()
    assert coordinator.warnings() == []
    assert there(SessionClient(coordinator))
    assert abs(coordinator.timeline.upper - machine.wall_ms) < 1_000


def test_a_weekend_with_a_reboot_is_believed_after_a_while(opened: Open, machine: Machine) -> None:
    tables(SessionClient(opened()))
    opened().close()
    machine.pass_ms(2 * DAY)
    machine.reboot()
    coordinator = opened()
    sql = SessionClient(coordinator)
    assert there(sql, 1)  # for if the clock is wrong, these rows are not due yet
    assert coordinator.warnings()
    machine.pass_ms(BELIEVED_AFTER_REBOOT_MS + 1)
    assert there(sql)
    assert coordinator.warnings() == []
    assert abs(coordinator.timeline.upper - machine.wall_ms) < 1_000


def test_a_clock_that_is_wrong_until_a_time_server_answers(opened: Open, machine: Machine) -> None:
    tables(SessionClient(opened()))
    opened().close()
    machine.pass_ms(120_000)
    machine.reboot()
    machine.wall_ms += 30 * DAY
    coordinator = opened()
    sql = SessionClient(coordinator)
    assert there(sql, 1)
    machine.pass_ms(BELIEVED_AFTER_REBOOT_MS // 2)
    machine.wall_ms -= 30 * DAY
    assert there(sql, 1)
    machine.pass_ms(BELIEVED_AFTER_REBOOT_MS + 1)
    coordinator._each_second()
    assert coordinator.warnings() == []
    assert opened().warnings() == []
    assert there(SessionClient(opened()), 1)
    assert abs(opened().timeline.upper - machine.wall_ms) < 1_000


@pytest.mark.parametrize("reset", [False, True])
def test_a_clock_that_starts_at_the_beginning_of_time(opened: Open, machine: Machine, reset: bool) -> None:
    """A machine without a battery: the wall clock is set once a time server answers."""
    coordinator = opened()
    tables(SessionClient(coordinator))
    upper = coordinator.timeline.upper
    coordinator.close()
    machine.reboot()
    right, machine.wall_ms = machine.wall_ms, 1_000
    coordinator = opened()
    sql = SessionClient(coordinator)
    assert there(sql, 1)
    assert sql("INSERT INTO t VALUES (2, now())") == ["INSERT 0 1"]
    assert sql("INSERT INTO u VALUES (2, now())") == ["INSERT 0 1"]
    assert there(sql, 1, 2)
    assert upper < coordinator.timeline.upper < upper + 100  # at a slow pace
    assert "ahead of the wall clock" in coordinator.warnings()[0]
    if reset:
        coordinator.close()
        coordinator = opened()
        sql = SessionClient(coordinator)
    machine.wall_ms = right + 20_000
    assert there(sql, 1, 2)
    assert coordinator.warnings() == []
    sql("INSERT INTO t VALUES (3, now())")
    assert coordinator.timeline.upper >= right + 20_000


def test_an_environment_that_is_far_ahead(tmp_path: Path, opened: Open, machine: Machine) -> None:
    """It was left there by a clock that nobody guarded: it goes on slowly, and nothing written now is lost."""
    with Coordinator.open(tmp_path / "data", clock=lambda: machine.wall_ms + DAY, ticking=False) as unguarded:
        tables(SessionClient(unguarded))
    coordinator = opened()
    sql = SessionClient(coordinator)
    upper = coordinator.timeline.upper
    assert upper > machine.wall_ms + DAY - 60_000
    assert DAY - 60_000 < coordinator.clock_status.ahead_ms <= DAY
    for key in (2, 3):
        machine.pass_ms(10_000)
        sql(f"INSERT INTO t VALUES ({key}, now())")
        sql(f"INSERT INTO u VALUES ({key}, now())")
    assert there(sql, 1, 2, 3)
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO t WITH (PROGRESS, SNAPSHOT = false)")
    before = subscriber.take()[-1][0]
    coordinator._each_second()
    assert subscriber.take()[-1][0] > before  # those who watch see that time goes on
    assert coordinator.timeline.upper < upper + 100
    subscriber.rows.close()
    machine.pass_ms(DAY)
    assert there(sql, 1, 2, 3)
    assert coordinator.warnings() == []
    machine.pass_ms(HOUR)
    assert there(sql)


def test_sources_go_on_in_an_environment_that_is_ahead(tmp_path: Path, opened: Open, machine: Machine) -> None:
    with Coordinator.open(tmp_path / "data", clock=lambda: machine.wall_ms + DAY, ticking=False) as unguarded:
        sql = SessionClient(unguarded)
        sql("CREATE TABLE t (a int)")
        sql("CREATE SOURCE c FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1h')")
    sql = SessionClient(opened())
    assert sql("INSERT INTO t VALUES (1)") == ["INSERT 0 1"]
    assert len(sql("SELECT count(*) FROM t, c")) == 2  # it does not wait for a day


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_clock_that_keeps_its_new_time_is_believed(opened: Open, machine: Machine, jump: int) -> None:
    coordinator = opened()
    sql = SessionClient(coordinator)
    sql("CREATE TABLE t (a int)")
    machine.wall_ms += jump
    upper = coordinator.timeline.upper
    while coordinator.clock_status.jump_ms:
        machine.pass_ms(BELIEVED_AFTER_MS // 8)
        sql("INSERT INTO t VALUES (1)")
        assert coordinator.timeline.upper > upper
        assert coordinator.timeline.upper <= max(upper + BELIEVED_AFTER_MS * 2, machine.wall_ms + 1_000)
    sql("INSERT INTO t VALUES (1)")
    if jump > 0:
        assert abs(coordinator.timeline.upper - machine.wall_ms) < 1_000
        assert coordinator.warnings() == []
    else:
        assert coordinator.clock_status.ahead_ms > DAY // 2
    coordinator.close()
    machine.pass_ms(1_000)
    assert opened().clock_status.jump_ms == 0  # and that is known from now on


def test_steps_that_are_small_do_not_add_up(opened: Open, machine: Machine) -> None:
    coordinator = opened()
    begun = coordinator.now_ms
    for _ in range(100):
        machine.pass_ms(1_000)
        machine.wall_ms += JUMP_MAX_MS // 10
        assert coordinator.now_ms - begun < 100_000 + 2 * JUMP_MAX_MS
    assert coordinator.warnings()


def test_what_clocks_do_all_the_time_is_followed(opened: Open, machine: Machine) -> None:
    coordinator = opened()
    for step in (JUMP_MAX_MS // 2, -JUMP_MAX_MS // 2, 500, -500) * 3:
        machine.pass_ms(10_000)
        machine.wall_ms += step
        assert abs(coordinator.now_ms - machine.wall_ms) <= 1
    machine.pass_ms(30 * DAY)
    assert abs(coordinator.now_ms - machine.wall_ms) <= 1
    assert coordinator.clock_status.jumps == 0


def test_sessions_are_told_once(opened: Open, machine: Machine) -> None:
    coordinator = opened()
    session = coordinator.connect("everview", "everview", {})

    def told() -> list[str]:
        session.run(session.prepare("SELECT 1"))
        session.sync()
        return [notice.message for notice in session.notices() if notice.severity == "WARNING"]

    assert told() == []
    machine.wall_ms += DAY
    coordinator.timeline.advance(coordinator.now_ms)
    (message,) = told()
    assert "1 d 0 h ahead of" in message
    assert told() == []
    machine.wall_ms -= DAY
    assert told() == []
    machine.wall_ms -= DAY
    coordinator.timeline.advance(coordinator.now_ms)
    assert len(told()) == 1
    session.close()


@pytest.mark.parametrize("note", [b"", b"{", b"null", b"[]", b'{"boot": "first"}', b'{"boot":"first","uptime_ms":"x"}'])
def test_a_note_that_says_nothing(tmp_path: Path, opened: Open, note: bytes) -> None:
    opened().close()
    with Environment.open(tmp_path / "data") as environment:
        environment.commit(Put(NOTE, note))
    assert opened().warnings() == []
    with Environment.open(tmp_path / "data") as environment:
        assert json.loads(environment.get(NOTE) or b"")["boot"] == "first"


def test_durations_are_shown() -> None:
    assert [shown_ms(each) for each in (1, 61_000, HOUR + 60_000, 2 * DAY + HOUR)] == [
        "0.001 s",
        "1 min 1 s",
        "1 h 1 min",
        "2 d 1 h",
    ]
