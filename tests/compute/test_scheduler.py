"""The scheduler: views follow their inputs by themselves, views on views too, and one that fails holds up no other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from everview.compute.dataflow import maintain_view
from everview.compute.engine.contract import RunFailed
from everview.compute.engine.local.engine import LocalEngine
from everview.compute.optimize.pipeline import optimize
from everview.compute.scheduler import Scheduler
from everview.compute.sql.query import plan
from everview.storage.environment import Environment
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


def test_removing_waits_for_the_tick_and_ends_waits(environment: Environment) -> None:
    table = Table(environment)
    inside, go_on = threading.Event(), threading.Event()

    class Slow(LocalEngine):
        def run_steps(self, *args: Any, **options: Any) -> Any:
            inside.set()
            assert go_on.wait(WAIT_S)
            return super().run_steps(*args, **options)

    flow, _ = maintain_view(environment, "v", relation("SELECT a FROM t"), [table.reader], Slow())
    scheduler = Scheduler(environment)
    try:
        scheduler.add(flow)
        table.change((1, 2, "x", 1))
        assert inside.wait(WAIT_S)
        waited: list[bool] = []
        waiter = threading.Thread(target=lambda: waited.append(scheduler.wait("v", 100, WAIT_S)))
        waiter.start()
        remover = threading.Thread(target=lambda: scheduler.remove("v"))
        remover.start()
        remover.join(0.3)
        assert remover.is_alive(), "the tick still runs"
        go_on.set()
        remover.join(WAIT_S)
        waiter.join(WAIT_S)
        assert waited == [True] and scheduler.status("v") is None
        flow.drop()
        assert "v.s0" not in environment.ids()
    finally:
        go_on.set()
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
    commit, failures = environment.commit, []

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
