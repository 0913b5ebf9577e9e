"""Views that are still being computed for the first time: dropping one ends that, and nobody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everview.adapter.coordinator import Coordinator
from everview.compute.cancel import cancellation, check_wanted
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.progress import Hydration, Progress, progress
from everview.compute.sql.errors import SqlError
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.waiting import eventually

WAIT_S = 30


class Endless(LocalEngine):
    """While `endless`, whatever is run goes on until it is asked to end, or for ever if it is `deaf`."""

    def __init__(self) -> None:
        self.endless = self.deaf = False
        self.read: int | None = None  # of a thousand rows
        self.begun, self.ended, self.released = threading.Semaphore(0), threading.Semaphore(0), threading.Event()

    def run_steps(self, *args: Any, **options: Any) -> Any:
        wish = cancellation()
        if self.endless and wish is not None:
            self.begun.release()
            over, report = self.released if self.deaf else threading.Event(), progress() or Progress()
            report.expect({"all": 1_000})
            with wish.running(over.set), report.piece("all", lambda: self.read):
                assert over.wait(WAIT_S)
            self.ended.release()
            check_wanted()
        return super().run_steps(*args, **options)


@pytest.fixture
def engine() -> Iterator[Endless]:
    made = Endless()
    yield made
    made.released.set()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def coordinator(path: Path, clock: Clock, engine: Endless) -> Iterator[Coordinator]:
    with Coordinator.open(path, clock=clock, ticking=False, engine=engine) as opened:
        yield opened


@pytest.fixture
def sql(coordinator: Coordinator, engine: Endless) -> SessionClient:
    """A table, a view of it that is there, and from now on no view that ever will be."""
    client = SessionClient(coordinator)
    client("CREATE TABLE t (k int, v int)")
    client("INSERT INTO t VALUES (1, 10), (2, 20)")
    client("CREATE MATERIALIZED VIEW live AS SELECT k, sum(v) AS s FROM t GROUP BY k")
    assert client("SELECT count(*) AS n FROM live") == ["n", "2"]
    engine.endless = True
    return client


def run(coordinator: Coordinator, statement: str, settings: str = "") -> tuple[threading.Thread, list[list[str]], Any]:
    """A statement in a session and a thread of its own."""
    client = SessionClient(coordinator)
    if settings:
        client(settings)
    answers: list[list[str]] = []
    thread = threading.Thread(target=lambda: answers.append(client(statement)), daemon=True)
    thread.start()
    return thread, answers, client


def collections(coordinator: Coordinator) -> set[str]:
    """The items that there are collections of."""
    return {id.partition(".")[0] for id in coordinator.environment.ids() if id.startswith("u")}


def check_nothing_is_left(coordinator: Coordinator) -> None:
    """Of what was dropped there is no collection, no capability on others and no note."""
    items = coordinator.catalog.state.items
    assert collections(coordinator) <= set(items)
    assert {key.partition("/")[2] for key in coordinator.environment.scan("dataflow/")} <= set(items)
    known = coordinator.maintenance.tokens()
    known |= {token for item in items.values() for token in (item.reader, getattr(item, "writer", None)) if token}
    for id in coordinator.environment.ids():
        assert set(coordinator.environment.shard(id).held) <= known, id


DROPS = [
    "DROP MATERIALIZED VIEW slow",
    "DROP MATERIALIZED VIEW slow CASCADE",
    "DROP SCHEMA s CASCADE",
    "DROP TABLE t CASCADE",
    "BEGIN; DROP MATERIALIZED VIEW slow; COMMIT",
]


@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.parametrize("drop", DROPS)
def test_a_hydrating_view_can_be_dropped(
    coordinator: Coordinator, engine: Endless, sql: SessionClient, drop: str, deaf: bool
) -> None:
    engine.deaf = deaf
    schema = "s." if "SCHEMA" in drop else ""
    sql("CREATE SCHEMA s")
    assert sql(f"CREATE MATERIALIZED VIEW {schema}slow AS SELECT v, count(*) AS n FROM t GROUP BY v") == [
        "CREATE MATERIALIZED VIEW"
    ]
    assert engine.begun.acquire(timeout=WAIT_S)
    answer = sql(drop)
    assert answer[-1].startswith(("DROP", "COMMIT")), answer
    if not deaf:
        assert engine.ended.acquire(timeout=WAIT_S)
    check_nothing_is_left(coordinator)
    if deaf:
        engine.endless = False
        engine.released.set()
        assert engine.ended.acquire(timeout=WAIT_S)
        check_nothing_is_left(coordinator)
    engine.endless = False
    assert sql(f"CREATE MATERIALIZED VIEW {schema}slow AS SELECT 1 AS one") == (
        ["CREATE MATERIALIZED VIEW"] if not schema else ['! 3F000 schema "s" does not exist']
    )


def test_the_definitions_of_others_do_not_wait(coordinator: Coordinator, engine: Endless, sql: SessionClient) -> None:
    engine.deaf = True
    sql("CREATE MATERIALIZED VIEW slow AS SELECT v FROM t")
    assert engine.begun.acquire(timeout=WAIT_S)
    assert sql("DROP MATERIALIZED VIEW slow") == ["DROP MATERIALIZED VIEW"]
    for statement in ("CREATE TABLE other (a int)", "CREATE VIEW w AS SELECT a FROM other", "DROP VIEW w"):
        thread, answers, _ = run(coordinator, statement)
        thread.join(WAIT_S)
        assert answers and not answers[0][0].startswith("!"), answers


def test_a_replacement_that_hydrates_can_be_dropped_also_while_it_is_applied(
    coordinator: Coordinator, engine: Endless, sql: SessionClient
) -> None:
    sql("CREATE MATERIALIZED VIEW r REPLACING live AS SELECT k, sum(v + 1) AS s FROM t GROUP BY k")
    assert engine.begun.acquire(timeout=WAIT_S)
    thread, answers, client = run(coordinator, "ALTER MATERIALIZED VIEW live APPLY REPLACEMENT r")
    eventually(lambda: client.session.interrupts._running)
    assert sql("DROP MATERIALIZED VIEW r") == ["DROP MATERIALIZED VIEW"]
    thread.join(WAIT_S)
    assert answers and answers[0][0].startswith("! 42704"), answers
    engine.endless = False
    sql("INSERT INTO t VALUES (1, 1)")
    assert sql("SELECT k, s FROM live ORDER BY k") == ["k|s", "1|11", "2|20"]
    check_nothing_is_left(coordinator)


def test_reading_what_hydrates_ends_when_it_is_dropped(
    coordinator: Coordinator, engine: Endless, sql: SessionClient
) -> None:
    sql("CREATE MATERIALIZED VIEW slow AS SELECT v FROM t")
    assert engine.begun.acquire(timeout=WAIT_S)
    thread, answers, client = run(coordinator, "SELECT * FROM slow")
    eventually(lambda: client.session.interrupts._running)
    sql("DROP MATERIALIZED VIEW slow")
    thread.join(WAIT_S)
    assert answers and answers[0][0].startswith("!"), answers


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_a_subscription_that_is_canceled_before_it_begins_leaves_nothing(
    coordinator: Coordinator, engine: Endless, sql: SessionClient, how: str
) -> None:
    timeout = "SET statement_timeout = '200ms'" if how == "timeout" else ""
    thread, answers, client = run(coordinator, "SUBSCRIBE (SELECT v, count(*) FROM t GROUP BY v)", timeout)
    assert engine.begun.acquire(timeout=WAIT_S)
    if how == "cancel":
        client.session.cancel()
    thread.join(WAIT_S)
    assert answers and answers[0][0].startswith("! 57014"), answers
    assert engine.ended.acquire(timeout=WAIT_S)
    check_nothing_is_left(coordinator)
    assert not coordinator.subscriptions()


def test_closing_ends_what_hydrates(coordinator: Coordinator, engine: Endless, sql: SessionClient) -> None:
    sql("CREATE MATERIALIZED VIEW slow AS SELECT v FROM t")
    assert engine.begun.acquire(timeout=WAIT_S)
    coordinator.close()
    assert engine.ended.acquire(timeout=WAIT_S)


def test_a_view_that_hydrates_again_after_a_restart_can_be_dropped(
    coordinator: Coordinator, path: Path, clock: Clock, engine: Endless, sql: SessionClient
) -> None:
    sql("CREATE MATERIALIZED VIEW slow AS SELECT v FROM t")
    assert engine.begun.acquire(timeout=WAIT_S)
    coordinator.close()
    again = Endless()
    again.endless = True
    with Coordinator.open(path, clock=clock, ticking=False, engine=again) as opened:
        client = SessionClient(opened)
        assert again.begun.acquire(timeout=WAIT_S)
        assert client("DROP MATERIALIZED VIEW slow") == ["DROP MATERIALIZED VIEW"]
        assert again.ended.acquire(timeout=WAIT_S)
        check_nothing_is_left(opened)
        again.endless = False
        assert client("SELECT count(*) AS n FROM live") == ["n", "2"]


def test_a_drop_that_fails_lets_the_view_go_on(
    coordinator: Coordinator, engine: Endless, sql: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql("CREATE MATERIALIZED VIEW slow AS SELECT v, count(*) AS n FROM t GROUP BY v")
    assert engine.begun.acquire(timeout=WAIT_S)
    commit = coordinator.catalog.commit

    def fail(*_: Any) -> None:
        raise SqlError("58030", "no space is left")

    monkeypatch.setattr(coordinator.catalog, "commit", fail)
    assert sql("DROP MATERIALIZED VIEW slow") == ["! 58030 no space is left"]
    monkeypatch.setattr(coordinator.catalog, "commit", commit)
    assert engine.ended.acquire(timeout=WAIT_S)
    engine.endless = False
    # The tick that began again meanwhile may be endless too.
    coordinator.maintenance.abandon(next(i.id for i in coordinator.catalog.state.items.values() if i.name == "slow"))
    coordinator.maintenance.restore(next(i.id for i in coordinator.catalog.state.items.values() if i.name == "slow"))
    assert sql("SELECT v, n FROM slow ORDER BY v") == ["v|n", "10|1", "20|1"]


def test_a_view_over_constants_is_computed_without_anybody_waiting(
    coordinator: Coordinator, engine: Endless, sql: SessionClient
) -> None:
    large = "CREATE MATERIALIZED VIEW big AS SELECT count(*) AS n FROM generate_series(1, 9000000) AS g(x)"
    assert sql(large) == ["CREATE MATERIALIZED VIEW"]
    assert sql("CREATE TABLE other (a int)") == ["CREATE TABLE"]
    assert sql("SET statement_timeout = '100ms'") == ["SET"]
    assert sql("SELECT * FROM big")[0].startswith("! 57014")
    assert sql("DROP MATERIALIZED VIEW big") == ["DROP MATERIALIZED VIEW"]
    check_nothing_is_left(coordinator)
    assert sql("CREATE MATERIALIZED VIEW small AS VALUES (1), (2)") == ["CREATE MATERIALIZED VIEW"]
    assert sql("SET statement_timeout = 0") == ["SET"]
    assert sql("SELECT count(*) AS n FROM small") == ["n", "2"]


def test_progress_is_told_as_far_as_it_is_known(coordinator: Coordinator, engine: Endless, sql: SessionClient) -> None:
    sql("CREATE MATERIALIZED VIEW r REPLACING live AS SELECT k, sum(v) AS s FROM t GROUP BY k")
    assert engine.begun.acquire(timeout=WAIT_S)
    columns = "rows_read, rows_total, running_for IS NOT NULL AS runs, time_left > '0' AS left"
    statuses = f"SELECT {columns} FROM mz_internal.mz_hydration_statuses WHERE NOT hydrated"
    staged = f"SELECT {columns} FROM mz_internal.mz_replacements"
    known = {None: "NULL|1000|t|NULL", 0: "0|1000|t|NULL", 250: "250|1000|t|t", 2_000: "1000|1000|t|NULL"}
    for read, shown in known.items():
        engine.read = read
        assert sql(statuses)[1:] == sql(staged)[1:] == [shown]
    engine.read = 250
    lines = sql("EXPLAIN MATERIALIZED VIEW r")
    assert any("250 of 1,000 rows read (25%)" in line and "left" in line for line in lines), lines
    hydrated = "SELECT rows_read, rows_total, running_for, time_left FROM mz_internal.mz_hydration_statuses"
    assert sql(f"{hydrated} WHERE hydrated")[1:] == ["NULL|NULL|NULL|NULL"]
    sql("DROP MATERIALIZED VIEW r")
    assert sql(statuses)[1:] == []


def test_what_is_left_is_told_only_where_it_can_be() -> None:
    assert Hydration(None, None, 5.0).left_s is None
    assert Hydration(None, 100, 5.0).left_s is None
    assert Hydration(1, 100, 5.0).left_s is None, "too little to tell by"
    assert Hydration(25, 100, 5.0).left_s == 15.0
    assert Hydration(100, 100, 5.0).left_s is None, "what comes after reading is not known"
    assert str(Hydration(25, 100, 5.0)) == "25 of 100 rows read (25%), for 5 s, about 15 s left"
    assert str(Hydration(None, 100, 5.0)) == "for 5 s"


def test_pieces_add_up_and_a_new_run_begins_anew() -> None:
    report = Progress()
    assert report.rows() == (None, None)
    report.expect({"a": 10, "b": 30})
    assert report.rows() == (0, 40)
    with report.piece("a", lambda: 50):
        assert report.rows() == (10, 40)
    with report.piece("b", lambda: 3):
        assert report.rows() == (13, 40)
    assert report.rows() == (40, 40)
    report.expect({"a": 10})
    assert report.rows() == (0, 10)
