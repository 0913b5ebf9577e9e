"""The scheduler: views follow their inputs by themselves, views on views too, and one that fails holds up no other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar

import pytest
import structlog

from everview.compute.cancel import cancellation, check_wanted, is_following, is_in_background
from everview.compute.capabilities import errors_reader
from everview.compute.dataflow import Dataflow, maintain_view
from everview.compute.engine.contract import RunFailed
from everview.compute.engine.local import LocalEngine
from everview.compute.optimize.pipeline import optimize
from everview.compute.scheduler import HYDRATIONS_MAX, Scheduler
from everview.compute.sql.query import plan
from everview.storage.contract import Clone, Drop
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.compute.test_errors import Names, Table, rows

WAIT_S = 30


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    with Environment.open(tmp_path, background=False) as opened:
        yield opened


def relation(query: str, names: Names | None = None) -> Any:
    return optimize(plan(query, names or Names()).relation)


def test_views_on_views_follow(environment: Environment) -> None:
    table = Table(environment)
    below, reader = maintain_view(environment, "v", relation("SELECT a, b FROM t"), [table.reader], LocalEngine())
    names = Names(v=("a", "b"))
    above, _ = maintain_view(environment, "w", relation("SELECT sum(a) FROM v", names), [reader], LocalEngine())
    scheduler = Scheduler(environment)
    try:
        scheduler.add(above)
        scheduler.add(below)
        for number in range(1, 6):
            table.change((number, 0, "", 1))
            assert scheduler.wait("w", number, WAIT_S)
        assert rows(environment, above, 4) == [(15,)]
        status = scheduler.status("w")
        assert status is not None and status.ticks >= 1 and status.error is None
    finally:
        scheduler.close()


class Breaking(LocalEngine):
    """Fails for a while."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.failures = failures
        self._error = error or RunFailed("executor lost")

    def run_steps(self, *args: Any, **options: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise self._error
        return super().run_steps(*args, **options)


def test_a_tick_that_fails_is_tried_again_and_holds_up_nobody(environment: Environment) -> None:
    table = Table(environment)
    lasting = Breaking(1_000_000)
    broken, _ = maintain_view(environment, "broken", relation("SELECT a FROM t"), [table.reader], lasting)
    shaky, _ = maintain_view(environment, "shaky", relation("SELECT b FROM t"), [table.reader], Breaking(2))
    sound, _ = maintain_view(environment, "sound", relation("SELECT s FROM t"), [table.reader], LocalEngine())
    scheduler = Scheduler(environment)
    try:
        for each in (broken, shaky, sound):
            scheduler.add(each)
        table.change((1, 2, "x", 1))
        assert scheduler.wait("sound", 1, WAIT_S) and scheduler.wait("shaky", 1, WAIT_S)
        assert rows(environment, shaky, 0) == [(2,)]
        assert not scheduler.wait("broken", 1, 0.5)
        status = scheduler.status("broken")
        assert status is not None and status.failures > 0 and status.error is not None
        assert status.error.message == "executor lost"
        lasting.failures = 0
        assert scheduler.wait("broken", 1, WAIT_S)
        assert rows(environment, broken, 0) == [(1,)]
    finally:
        scheduler.close()


def test_a_log_that_cannot_be_written_stops_no_view(environment: Environment) -> None:
    class Closed:
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None: ...

    table = Table(environment)
    flow, _ = maintain_view(environment, "v", relation("SELECT a FROM t"), [table.reader], Breaking(1, ValueError()))
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(Closed()))  # type: ignore[arg-type]
    scheduler = Scheduler(environment)
    try:
        scheduler.add(flow)
        table.change((1, 0, "", 1))
        assert scheduler.wait("v", 1, WAIT_S)
        assert rows(environment, flow, 0) == [(1,)]
    finally:
        scheduler.close()
        structlog.reset_defaults()


class Noting(LocalEngine):
    """Notes whether its runs are in the background, and whether they follow what is there."""

    seen: ClassVar[list[tuple[bool, bool]]] = []

    def run_steps(self, *args: Any, **options: Any) -> Any:
        self.seen.append((is_in_background(), is_following()))
        return super().run_steps(*args, **options)


class Slow(LocalEngine):
    """Begins, and goes on when it is told to; `deaf` to being asked to end, as Python is within a call."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.inside, self.go_on, self.ended = threading.Event(), threading.Event(), threading.Event()
        self._deaf = deaf

    def run_steps(self, *args: Any, **options: Any) -> Any:
        wish = cancellation()
        assert wish is not None
        with nullcontext() if self._deaf else wish.running(self.go_on.set):
            self.inside.set()
            assert self.go_on.wait(WAIT_S)
        try:
            if not self._deaf:
                check_wanted()
            return super().run_steps(*args, **options)
        finally:
            self.ended.set()


@pytest.fixture
def scheduler(environment: Environment) -> Iterator[Scheduler]:
    opened = Scheduler(environment)
    yield opened
    opened.close()


def test_pausing_waits_for_the_tick_and_ends_waits(environment: Environment, scheduler: Scheduler) -> None:
    table, engine = Table(environment), Slow()
    flow, _ = maintain_view(environment, "v", relation("SELECT a FROM t"), [table.reader], engine)
    scheduler.add(flow)
    table.change((1, 2, "x", 1))
    assert engine.inside.wait(WAIT_S)
    waited: list[bool] = []
    waiter = threading.Thread(target=lambda: waited.append(scheduler.wait("v", 100, WAIT_S)))
    waiter.start()
    pausing = threading.Thread(target=lambda: scheduler.pause("v"))
    pausing.start()
    pausing.join(0.3)
    assert pausing.is_alive(), "the tick still runs"
    engine.go_on.set()
    pausing.join(WAIT_S)
    waiter.join(WAIT_S)
    assert waited == [True] and scheduler.status("v") is None and flow.upper == 1
    flow.drop()
    assert "v.s0" not in environment.ids()


def test_removing_ends_the_tick(environment: Environment, scheduler: Scheduler) -> None:
    table, engine = Table(environment), Slow()
    flow, reader = maintain_view(environment, "v", relation("SELECT a FROM t"), [table.reader], engine)
    scheduler.add(flow)
    table.change((1, 2, "x", 1))
    assert engine.inside.wait(WAIT_S)
    assert scheduler.remove("v") is flow
    assert engine.ended.wait(WAIT_S), "nobody told it to go on but who removed it"
    flow.drop()
    environment.drop(environment.present("v", reader.token))
    assert "v" not in environment.ids()


@pytest.mark.parametrize("query", ["SELECT a FROM t", "SELECT b, count(*), max(a) FROM t GROUP BY b"])
def test_a_dropped_tick_that_finishes_writes_nothing(
    environment: Environment, scheduler: Scheduler, query: str
) -> None:
    """It was asked to end and did not hear of it: its capabilities are gone when it comes to commit."""
    table, engine = Table(environment), Slow(deaf=True)
    flow, reader = maintain_view(environment, "v", relation(query), [table.reader], engine)
    scheduler.add(flow)
    table.change((1, 2, "x", 1))
    assert engine.inside.wait(WAIT_S)
    scheduler.remove("v")
    flow.drop()
    commits = environment.commits
    engine.go_on.set()
    assert engine.ended.wait(WAIT_S)
    scheduler.close()  # after which no tick runs
    assert environment.commits == commits
    assert environment.frontiers("v").upper.empty
    environment.drop(environment.present("v", reader.token))
    assert environment.ids() == ["t"]


def test_dropping_a_dataflow_that_commits_meanwhile(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick moves a capability between the moment at which it is looked up and that at which it is dropped."""
    table = Table(environment)
    query = "SELECT b, count(*) FROM t GROUP BY b"
    flow, reader = maintain_view(environment, "v", relation(query), [table.reader], LocalEngine())
    table.change((1, 2, "x", 1))
    commit = environment.commit
    interfered: list[Any] = []

    def interfere(*commands: Any) -> Any:
        if any(isinstance(each, Drop) for each in commands) and not interfered:
            interfered.append(flow)
            flow.tick()
        return commit(*commands)

    monkeypatch.setattr(environment, "commit", interfere)
    flow.drop()
    assert interfered
    environment.drop(environment.present("v", reader.token))
    assert environment.ids() == ["t"]


def test_a_view_is_made_over_one_that_ticks_meanwhile(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(environment)
    below, reader = maintain_view(environment, "v", relation("SELECT 1 / a AS c FROM t"), [table.reader], LocalEngine())
    for a in (1, 2):
        table.change((a, 2, "x", 1))
    below.tick()
    commit = environment.commit
    interfered: list[Any] = []

    def interfere(*commands: Any) -> Any:
        if any(isinstance(each, Clone) for each in commands) and not interfered:
            interfered.append(below)
            errors = errors_reader(environment, "v")
            assert errors is not None
            environment.downgrade(errors, Antichain(1))
        return commit(*commands)

    monkeypatch.setattr(environment, "commit", interfere)
    names = Names(v=("c",))
    above, _ = maintain_view(environment, "w", relation("SELECT sum(c) FROM v", names), [reader], LocalEngine())
    above.tick()
    assert interfered and rows(environment, above, 1) == [(1,)]


def test_what_is_put_back_goes_on_after_the_tick_that_was_ended(environment: Environment, scheduler: Scheduler) -> None:
    table, engine = Table(environment), Slow(deaf=True)
    flow, _ = maintain_view(environment, "v", relation("SELECT a FROM t"), [table.reader], engine)
    scheduler.add(flow)
    table.change((1, 2, "x", 1))
    assert engine.inside.wait(WAIT_S)
    assert scheduler.remove("v") is flow
    engine.inside.clear()
    scheduler.add(flow)
    assert not engine.inside.wait(0.3), "one tick at a time"
    engine.go_on.set()
    assert scheduler.wait("v", 1, WAIT_S)
    assert rows(environment, flow, 0) == [(1,)]
    status = scheduler.status("v")
    assert status is not None and status.failures == 0


def test_closing_ends_ticks_and_hydrations(environment: Environment) -> None:
    table, engines = Table(environment), [Slow() for _ in range(20)]
    scheduler = Scheduler(environment)
    for place, engine in enumerate(engines):
        scheduler.add(maintain_view(environment, f"v{place}", relation("SELECT a FROM t"), [table.reader], engine)[0])
    table.change((1, 2, "x", 1))
    for engine in engines[:HYDRATIONS_MAX]:
        assert engine.inside.wait(WAIT_S)
    scheduler.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("end-")]
    assert all(environment.frontiers(f"v{place}").upper.only == 0 for place in range(20))


def test_hydrations_hold_up_no_view(environment: Environment) -> None:
    table, engines = Table(environment), [Slow() for _ in range(HYDRATIONS_MAX + 2)]
    live, _ = maintain_view(environment, "live", relation("SELECT a FROM t"), [table.reader], LocalEngine())
    scheduler = Scheduler(environment, held_s=WAIT_S * 100)
    try:
        scheduler.add(live)
        table.change((1, 2, "x", 1))
        assert scheduler.wait("live", 1, WAIT_S)
        for place, engine in enumerate(engines):
            view, _ = maintain_view(environment, f"v{place}", relation("SELECT a FROM t"), [table.reader], engine)
            scheduler.add(view)
        for engine in engines[:HYDRATIONS_MAX]:
            assert engine.inside.wait(WAIT_S)
        table.change((2, 2, "x", 1))
        assert scheduler.wait("live", 2, WAIT_S)
        assert not any(engine.inside.is_set() for engine in engines[HYDRATIONS_MAX:]), "eight begin at once"
        assert scheduler.pause(f"v{HYDRATIONS_MAX}") is not None, "one that waits is taken out at once"
        engines[0].go_on.set()
        assert engines[HYDRATIONS_MAX + 1].inside.wait(WAIT_S), "the next begins in its place"
        assert not engines[HYDRATIONS_MAX].inside.is_set()
    finally:
        scheduler.close()


@pytest.mark.parametrize("large", [False, True])
def test_runaways_hold_up_nobody(environment: Environment, large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not another hydration, nor a large tick or what catches up after a start."""
    table, engines = Table(environment), [Slow() for _ in range(HYDRATIONS_MAX + 2)]
    live, _ = maintain_view(environment, "live", relation("SELECT a FROM t"), [table.reader], Noting())
    table.change((1, 2, "x", 1))
    live.tick()
    table.change((2, 2, "x", 1))  # which it has missed when it is added
    scheduler = Scheduler(environment, held_s=WAIT_S * 100 if large else 0.0)
    try:
        for place, engine in enumerate(engines):
            view, _ = maintain_view(environment, f"v{place}", relation("SELECT a FROM t"), [table.reader], engine)
            scheduler.add(view)
        for engine in engines[:HYDRATIONS_MAX] if large else engines:
            assert engine.inside.wait(WAIT_S)
        scheduler.add(live)
        assert scheduler.wait("live", 2, WAIT_S)
        assert Noting.seen[-1] == (True, True), "what was missed is taken in by a thread of its own, and gives way"
        if large:
            monkeypatch.setattr(Dataflow, "large", property(lambda flow: flow is live))
            table.change((3, 2, "x", 1))
            assert scheduler.wait("live", 3, WAIT_S)
            assert Noting.seen[-1] == (True, True)
        else:
            last, _ = maintain_view(environment, "last", relation("SELECT b FROM t"), [table.reader], Noting())
            scheduler.add(last)
            assert scheduler.wait("last", 2, WAIT_S)
            assert Noting.seen[-1] == (True, False), "a hydration gives way to what follows"
    finally:
        scheduler.close()


def test_many_views_at_once(environment: Environment) -> None:
    table = Table(environment)
    flows = [
        maintain_view(environment, f"v{n}", relation(f"SELECT a + {n} FROM t"), [table.reader], LocalEngine())[0]
        for n in range(30)
    ]
    scheduler = Scheduler(environment, threads=8)
    try:
        for flow in flows:
            scheduler.add(flow)
        for number in range(10):
            table.change((number, 0, "", 1))
        for flow in flows:
            assert scheduler.wait(flow.id, 10, WAIT_S)
        for place, flow in enumerate(flows):
            assert len(rows(environment, flow, 9)) == 10
            assert rows(environment, flow, 0) == [(place,)]
    finally:
        scheduler.close()


def test_what_is_idle_advances_in_one_commit_and_arrangements_stay(environment: Environment) -> None:
    table = Table(environment)
    flows = []
    for number in range(20):
        query = f"SELECT b, max(s), sum(a) + {number} FROM t GROUP BY b"
        flows.append(maintain_view(environment, f"v{number}", relation(query), [table.reader], LocalEngine())[0])
    table.change((1, 2, "x", 1))
    for flow in flows:
        flow.tick()
    uppers = [environment.frontiers(id).upper for id in environment.ids() if ".s" in id]
    assert len(uppers) >= len(flows)
    scheduler = Scheduler(environment)
    try:
        for flow in flows:
            scheduler.add(flow)
        before = environment.commits
        table.change()  # time goes on, and nothing else
        for flow in flows:
            assert scheduler.wait(flow.id, 2, WAIT_S)
        assert environment.commits - before < len(flows)
        assert [environment.frontiers(id).upper for id in environment.ids() if ".s" in id] == uppers
        table.change((3, 2, "y", 1))
        for number, flow in enumerate(flows):
            assert scheduler.wait(flow.id, 3, WAIT_S)
            assert rows(environment, flow, 2) == [(2, "y", 4 + number)]
    finally:
        scheduler.close()


def test_a_commit_of_many_that_fails_ends_nothing(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(environment)
    flow, _ = maintain_view(environment, "v", relation("SELECT a FROM t"), [table.reader], LocalEngine())
    table.change((1, 0, "", 1))
    flow.tick()
    commit = environment.commit
    failures: list[Any] = []

    def fail_once(*commands: Any) -> Any:
        if threading.current_thread().name == "scheduler" and not failures:
            failures.append(commands)
            raise SystemExit
        return commit(*commands)

    monkeypatch.setattr(environment, "commit", fail_once)
    scheduler = Scheduler(environment)
    try:
        scheduler.add(flow)
        table.change()
        assert scheduler.wait("v", 2, WAIT_S) and failures
        table.change()
        assert scheduler.wait("v", 3, WAIT_S)
    finally:
        scheduler.close()
