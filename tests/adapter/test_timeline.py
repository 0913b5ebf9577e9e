"""The timeline: the formalism's rules, whatever the wall clock does, across restarts, and group commit."""

from __future__ import annotations

import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.adapter.coordinator import Coordinator
from everview.adapter.history import HISTORY_LAG_MS
from everview.adapter.timeline import Timeline
from everview.compute.sql.errors import SqlError
from everview.storage.blob.memory import MemoryBlob
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.contract import Create, Follow
from everview.storage.environment import Environment
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.waiting import eventually

STEP = st.one_of(
    st.tuples(st.just("read"), st.just(0)),
    st.tuples(st.just("write"), st.just(0)),
    st.tuples(st.just("advance"), st.integers(-50, 5_000)),
    st.tuples(st.just("jump"), st.integers(-10_000_000, 10_000_000)),
    st.tuples(st.just("restart"), st.just(0)),
)


class World:
    """A timeline over one table, on stores that outlive it."""

    def __init__(self, folder: Path) -> None:
        self._stores = MemoryConsensus(), MemoryBlob()
        self._folder = folder
        self.clock = Clock()
        self.environment = self._open()
        self.timeline = Timeline(self.environment, self.clock)
        at = self.timeline.upper
        ((read, write),) = self.environment.commit(Create("u1", pa.schema([("c0", pa.int64())]), at=at))
        self.environment.commit(Follow(read, "history"), Follow(write, "timeline"))
        self.writer = write.token

    def _open(self) -> Environment:
        return Environment(*self._stores, self._folder, background=False)

    def restart(self) -> None:
        self.environment = self._open()
        self.timeline = Timeline(self.environment, self.clock)

    def write(self, value: int) -> int:
        rows = pa.table({"c0": [value], "_diff": pa.array([1], pa.int64())})
        return self.timeline.write({"u1": rows}, {"u1": self.writer})

    def read(self) -> tuple[int, int]:
        time = max(self.timeline.upper - 1, self.environment.frontiers("u1").since.only)
        self.timeline.advance(time)
        with self.environment.contents("u1", time) as selection:
            return time, sum(selection.contents().column("_diff").to_pylist())


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, max_size=40))
def test_the_rules_hold(steps: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        last, last_read, written = 0, 0, 0
        for action, amount in steps:
            if action == "jump":
                world.clock.now_ms = max(1, world.clock.now_ms + amount)
            elif action == "restart":
                world.restart()
            elif action == "advance":
                world.timeline.advance(max(0, world.timeline.upper + amount))
            elif action == "write":
                time = world.write(written)
                written += 1
                assert time >= last, "timestamps never decrease"
                assert time > last_read, "a write is after every read before it"
                last = time
            else:
                time, count = world.read()
                assert time >= last, "timestamps never decrease"
                assert count == written, "a read sees all writes before it"
                last = last_read = time
            frontiers = world.environment.frontiers("u1")
            assert frontiers.upper.only == world.timeline.upper
            assert frontiers.since.only <= world.timeline.upper


def test_history_follows_at_a_distance_and_stays_behind_holds(tmp_path: Path) -> None:
    world = World(tmp_path)
    start = world.timeline.upper
    world.clock.now_ms += 10_000
    world.write(1)
    assert world.timeline.history == world.timeline.upper - 1 - HISTORY_LAG_MS - 0
    hold = world.timeline.hold(world.timeline.upper - 1)
    world.clock.now_ms += 60_000
    world.write(2)
    assert world.timeline.history <= hold.time
    hold.release()
    hold.release()
    world.clock.now_ms += 60_000
    world.write(3)
    assert world.timeline.history > hold.time > start


def test_concurrent_writes_share_durable_steps(coordinator: Coordinator, sql: SessionClient) -> None:
    sql("CREATE TABLE t (a int)")
    writers, rounds = 8, 10
    before = coordinator.environment.commits
    slow = threading.Event()
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            client = SessionClient(coordinator)
            slow.wait()
            for each in range(rounds):
                assert client(f"INSERT INTO t VALUES ({number * rounds + each})") == ["INSERT 0 1"]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    slow.set()
    for thread in threads:
        thread.join()
    assert not errors
    assert sql("SELECT count(*), count(DISTINCT a) FROM t") == ["count|count", f"{writers * rounds}|{writers * rounds}"]
    assert coordinator.environment.commits - before <= writers * rounds


def test_all_who_wait_share_one_durable_step(tmp_path: Path) -> None:
    world = World(tmp_path)
    one = pa.table({"c0": [1], "_diff": pa.array([1], pa.int64())})
    times: list[int] = []
    threads = [
        threading.Thread(target=lambda: times.append(world.timeline.write({"u1": one}, {"u1": world.writer})))
        for _ in range(12)
    ]
    with world.timeline.exclusive(["u1"]):
        for thread in threads:
            thread.start()
        eventually(lambda: len(world.timeline.turns) == len(threads))
        before = world.environment.commits
    for thread in threads:
        thread.join()
    assert len(times) == len(threads) and len(set(times)) == 1
    assert world.environment.commits == before + 1


@pytest.mark.parametrize("canceled", [0, 1])
def test_who_no_longer_waits_writes_nothing_and_holds_up_nobody(tmp_path: Path, canceled: int) -> None:
    """Whether it would have led the others or not."""
    world = World(tmp_path)
    one = pa.table({"c0": [1], "_diff": pa.array([1], pa.int64())})
    results: dict[int, object] = {}
    late = threading.Event()

    def write(number: int) -> None:
        def interrupt() -> None:
            if number == canceled and late.is_set():
                raise TimeoutError

        try:
            results[number] = world.timeline.write({"u1": one}, {"u1": world.writer}, interrupt)
        except TimeoutError as error:
            results[number] = error

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    with world.timeline.exclusive(["u1"]):
        for number, thread in enumerate(threads):
            thread.start()
            eventually(lambda count=number + 1: len(world.timeline.turns) == count)  # type: ignore[misc]
        late.set()
        eventually(lambda: canceled in results)
    for thread in threads:
        thread.join(60)
    assert isinstance(results.pop(canceled), TimeoutError)
    assert len(results) == 2 and all(isinstance(each, int) for each in results.values())
    assert world.read()[1] == 2
    assert isinstance(world.timeline.write({"u1": one}, {"u1": world.writer}), int)


def test_an_invalid_write_fails_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    wrong = pa.table({"nope": ["x"], "_diff": pa.array([1], pa.int64())})
    results: dict[str, object] = {}

    def write(name: str, rows: pa.Table) -> None:
        try:
            results[name] = world.timeline.write({"u1": rows}, {"u1": world.writer})
        except Exception as error:
            results[name] = error

    right = pa.table({"c0": [1], "_diff": pa.array([1], pa.int64())})
    threads = [threading.Thread(target=write, args=pair) for pair in (("right", right), ("wrong", wrong))]
    with world.timeline.exclusive(["u1"]):  # both wait, and then share a group
        for thread in threads:
            thread.start()
            thread.join(timeout=0.1)
    for thread in threads:
        thread.join()
    assert isinstance(results["right"], int)
    assert isinstance(results["wrong"], Exception)
    assert world.read()[1] == 1


def test_a_thousand_idle_tables_move_with_one_entry(tmp_path: Path, clock: Clock) -> None:
    with Coordinator.open(tmp_path, clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        for number in range(50):
            sql(f"CREATE TABLE t{number} (a int)")
        before = coordinator.environment.commits
        clock.now_ms += 100_000
        coordinator.timeline.advance(clock.now_ms)
        assert coordinator.environment.commits == before + 1
        uppers = {coordinator.environment.frontiers(id).upper.only for id in coordinator.environment.ids()}
        assert uppers == {coordinator.timeline.upper}


def test_read_then_write_statements_do_not_lose_updates(coordinator: Coordinator, sql: SessionClient) -> None:
    sql("CREATE TABLE counters (n int)")
    sql("INSERT INTO counters VALUES (0)")

    def work() -> None:
        client = SessionClient(coordinator)
        for _ in range(15):
            assert client("UPDATE counters SET n = n + 1") == ["UPDATE 1"]

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sql("SELECT n FROM counters") == ["n", "60"]


@pytest.mark.parametrize("jump", [-10_000_000, 10_000_000])
def test_clock_jumps_across_a_restart(tmp_path: Path, clock: Clock, jump: int) -> None:
    with Coordinator.open(tmp_path, clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        sql("CREATE TABLE t (a int)")
        sql("INSERT INTO t VALUES (1)")
        before = coordinator.timeline.upper
    clock.now_ms += jump
    with Coordinator.open(tmp_path, clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        assert sql("SELECT a FROM t") == ["a", "1"]
        sql("INSERT INTO t VALUES (2)")
        assert coordinator.timeline.upper > before
        assert sql("SELECT a FROM t ORDER BY a") == ["a", "1", "2"]
        assert int(sql("SELECT mz_now()")[1]) >= before


def test_an_object_that_is_younger_is_not_told_to_keep_more_of_the_past(sql: SessionClient, clock: Clock) -> None:
    sql("CREATE TABLE older (a int)")
    begun = clock.now_ms
    clock.now_ms += 60_000
    sql("INSERT INTO older VALUES (1)")
    clock.now_ms += 60_000
    sql("INSERT INTO older VALUES (1)")
    sql("CREATE TABLE younger (a int) WITH (RETAIN HISTORY FOR '1h')")

    def failure(query: str) -> SqlError:
        with pytest.raises(SqlError) as failed:
            sql.session.run(sql.session.prepare(query))
        sql.session.fail()
        sql.session.sync()
        return failed.value

    kept = failure(f"SELECT * FROM older AS OF {begun + 5}")
    assert kept.hint is not None and "RETAIN HISTORY" in kept.hint
    for query in (f"SELECT * FROM younger AS OF {begun + 5}", f"SELECT * FROM older, younger AS OF {begun + 5}"):
        young = failure(query)
        assert young.hint is None and young.detail is not None and '"younger" begins at' in young.detail
