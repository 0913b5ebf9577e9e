"""Replacements of materialized views: staging, looking, applying, discarding, and what is refused."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.statements.parse import parse
from everview.compute.handover import MASKED
from everview.compute.sql.errors import SqlError
from everview.errors import EverviewError
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.adapter.test_subscribe import Subscriber
from tests.waiting import eventually

NEW = "SELECT k, sum(v * 2) AS s FROM t WHERE k > 1 GROUP BY k"


@pytest.fixture
def view(sql: SessionClient) -> SessionClient:
    """A table and a view of it: (1, 10), (2, 20), (3, 30)."""
    sql("CREATE TABLE t (k int, v int) WITH (RETAIN HISTORY FOR '1h')")
    sql("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
    sql("CREATE MATERIALIZED VIEW mv WITH (RETAIN HISTORY FOR '1h') AS SELECT k, sum(v) AS s FROM t GROUP BY k")
    return sql


def item_id(coordinator: Coordinator, name: str) -> str:
    return next(item.id for item in coordinator.catalog.state.items.values() if item.name == name)


def failure(client: SessionClient, statement: str) -> SqlError:
    """The error of a statement, with its detail."""
    try:
        client.session.run(client.session.prepare(statement))
    except SqlError as error:
        client.session.fail()
        client.session.sync()
        return error
    raise AssertionError(f"it did not fail: {statement}")


@pytest.mark.parametrize(
    "create",
    [f"CREATE MATERIALIZED VIEW r REPLACING mv AS {NEW}", f"CREATE REPLACEMENT MATERIALIZED VIEW r FOR mv AS {NEW}"],
)
def test_stage_look_and_apply(coordinator: Coordinator, view: SessionClient, create: str) -> None:
    view("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n, sum(s) AS total FROM mv")
    view("CREATE INDEX i ON mv (k)")
    assert view(create) == ["CREATE MATERIALIZED VIEW"]
    assert sorted(view("SELECT * FROM mv")) == ["1|10", "2|20", "3|30", "k|s"]
    assert sorted(view("SELECT * FROM r")) == ["2|40", "3|60", "k|s"]
    assert view("SHOW REPLACEMENT DIFF r") == ["mz_diff|k|s", "-1|1|10", "-1|2|20", "1|2|40", "-1|3|30", "1|3|60"]
    assert view("SHOW REPLACEMENT DIFF r LIMIT 1") == ["mz_diff|k|s", "-1|1|10"]
    ids = item_id(coordinator, "r"), item_id(coordinator, "mv")
    shown = view("SELECT id, target_id, hydrated, rows_added, rows_removed, bytes > 0 FROM mz_internal.mz_replacements")
    assert shown[1:] == [f"{ids[0]}|{ids[1]}|t|2|3|t"]
    assert view("SELECT replacement_for FROM mz_materialized_views WHERE name = 'r'") == ["replacement_for", ids[1]]
    (created,) = view("SHOW CREATE MATERIALIZED VIEW r")[1:]
    assert "everview.public.r (k, s) REPLACING everview.public.mv AS SELECT k, sum(v * 2)" in created
    assert "Get everview.public.t" in view("EXPLAIN MATERIALIZED VIEW r")[1]
    assert "Get everview.public.r" in view("EXPLAIN SELECT * FROM r")[1]

    assert view("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r") == ["ALTER MATERIALIZED VIEW"]
    assert sorted(view("SELECT * FROM mv")) == ["2|40", "3|60", "k|s"]
    assert view("SELECT * FROM mv WHERE k = 2") == ["k|s", "2|40"]
    assert view("SELECT * FROM above") == ["n|total", "2|100"]
    view("INSERT INTO t VALUES (2, 1), (7, 1)")
    assert sorted(view("SELECT * FROM mv")) == ["2|42", "3|60", "7|2", "k|s"]
    assert view("SELECT * FROM above") == ["n|total", "3|104"]
    assert view("SELECT * FROM r") == ['! 42P01 relation "r" does not exist']
    assert view("SELECT * FROM mz_internal.mz_replacements")[1:] == []
    assert item_id(coordinator, "mv") == ids[1]
    assert "sum(v * 2)" in view("SHOW CREATE MATERIALIZED VIEW mv")[1]
    events = [(event.kind, event.details["name"]) for event in coordinator.catalog.events()][-2:]
    assert events == [("drop", "everview.public.r"), ("alter", "everview.public.mv")]
    assert coordinator.catalog.events()[-1].details["version"] == "2"
    owners = {id.partition(".")[0] for id in coordinator.environment.ids() if "." not in id}
    assert ids[0] not in owners  # nothing is left of the staging collection


def test_discarding_leaves_the_target_alone(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "data"
    with Coordinator.open(path, clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        sql("CREATE TABLE t (k int, v int)")
        sql("INSERT INTO t VALUES (1, 10)")
        sql("CREATE MATERIALIZED VIEW mv AS SELECT k, sum(v) AS s FROM t GROUP BY k")
        before = set(coordinator.environment.ids())
        sql(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {NEW}")
        assert sql("DROP MATERIALIZED VIEW r") == ["DROP MATERIALIZED VIEW"]
        assert set(coordinator.environment.ids()) == before
        sql(f"CREATE MATERIALIZED VIEW again REPLACING mv AS {NEW}")
    for _ in range(2):  # a pending one neither seals nor removes anything, however often the process starts
        with Coordinator.open(path, clock=clock, ticking=False) as coordinator:
            sql = SessionClient(coordinator)
            sql("INSERT INTO t VALUES (2, 5)")
            assert "1|10" in sql("SELECT * FROM mv")
    with Coordinator.open(path, clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        assert sql("DROP MATERIALIZED VIEW again") == ["DROP MATERIALIZED VIEW"]
    with Coordinator.open(path, clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        sql("INSERT INTO t VALUES (1, 1)")
        assert sorted(sql("SELECT * FROM mv")) == ["1|11", "2|10", "k|s"]


def test_restarts_after_applying(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "data"
    with Coordinator.open(path, clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        sql("CREATE TABLE t (k int, v int)")
        sql("INSERT INTO t VALUES (1, 10), (2, 20)")
        sql("CREATE MATERIALIZED VIEW mv AS SELECT k, sum(v) AS s FROM t GROUP BY k")
        sql("CREATE MATERIALIZED VIEW above AS SELECT sum(s) AS total FROM mv")
        sql(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {NEW}")
        sql("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
    for number in range(3):
        with Coordinator.open(path, clock=clock, ticking=False) as coordinator:
            sql = SessionClient(coordinator)
            sql("INSERT INTO t VALUES (2, 1)")
            assert sql("SELECT * FROM mv") == ["k|s", f"2|{42 + 2 * number}"]
            assert sql("SELECT * FROM above") == ["total", str(42 + 2 * number)]
    with Coordinator.open(path, clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        assert sql("ALTER MATERIALIZED VIEW mv ROLLBACK REPLACEMENT") == ["ALTER MATERIALIZED VIEW"]
        assert sql("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT mv_rollback") == ["ALTER MATERIALIZED VIEW"]
        assert sorted(sql("SELECT * FROM mv")) == ["1|10", "2|23", "k|s"]
        assert sql("SELECT * FROM above") == ["total", "33"]
        sql("DROP MATERIALIZED VIEW mv CASCADE")
        assert coordinator.environment.ids() == [item_id(coordinator, "t")]


def test_subscriptions_see_ordinary_changes(coordinator: Coordinator, view: SessionClient) -> None:
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO mv")
    assert sorted(subscriber.data()) == [(1, 1, 10), (1, 2, 20), (1, 3, 30)]
    view(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {NEW}")
    staged = Subscriber(coordinator, "SUBSCRIBE TO r")
    assert sorted(staged.data()) == [(1, 2, 40), (1, 3, 60)]
    view("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
    rows = subscriber.take()
    assert sorted(row[1:] for row in rows) == [(-1, 1, 10), (-1, 2, 20), (-1, 3, 30), (1, 2, 40), (1, 3, 60)]
    assert len({row[0] for row in rows}) == 1
    with pytest.raises(SqlError, match="dropped"):
        while staged.take() is not None:
            pass


def test_errors_of_the_new_definition_reach_all_above(coordinator: Coordinator, view: SessionClient) -> None:
    """The old definition cannot fail, the new one can: whoever reads the view, directly or not, is told."""
    for name, below in (("a", "mv"), ("b", "a")):
        view(f"CREATE MATERIALIZED VIEW {name} WITH (RETAIN HISTORY FOR '1h') AS SELECT max(k) AS k FROM {below}")
    assert view("SELECT * FROM b") == ["k", "3"]
    view("INSERT INTO t VALUES (4, 0)")
    view("CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT k, (60 / v)::bigint AS s FROM t")
    view("CREATE MATERIALIZED VIEW later AS SELECT count(*) AS n FROM mv")
    before = coordinator.timeline.upper - 1
    view("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r WITH (ALLOW ERRORS)")
    for name in ("mv", "a", "b", "later"):
        assert view(f"SELECT * FROM {name}") == ["! 22012 division by zero"], name
    assert view(f"SELECT * FROM b AS OF {before}") == ["k", "4"]
    view("DELETE FROM t WHERE v = 0")
    assert view("SELECT * FROM b") == ["k", "3"]
    assert view("SELECT * FROM later") == ["n", "3"]
    view("INSERT INTO t VALUES (9, 0)")
    assert view("SELECT * FROM b") == ["! 22012 division by zero"]
    view("ALTER MATERIALIZED VIEW mv ROLLBACK REPLACEMENT")
    view("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT mv_rollback")
    assert view("SELECT * FROM b") == ["k", "9"]
    assert view("SELECT * FROM later") == ["n", "4"]


def test_apply_when_hydrated(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "data"
    with Coordinator.open(path, clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        sql("CREATE TABLE t (k int, v int)")
        sql("INSERT INTO t VALUES (1, 10), (2, 20)")
        sql("CREATE MATERIALIZED VIEW mv AS SELECT k, sum(v) AS s FROM t GROUP BY k")
        sql(f"CREATE MATERIALIZED VIEW r REPLACING mv WITH (APPLY WHEN HYDRATED) AS {NEW}")
        eventually(lambda: sql("SELECT * FROM mv") == ["k|s", "2|40"])
        assert "r" not in {item.name for item in coordinator.catalog.state.items.values()}


def test_apply_when_hydrated_outlives_the_process(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "data"
    with Coordinator.open(path, clock=clock, ticking=False) as coordinator:
        coordinator.replacements.apply_when_hydrated = lambda item: None  # type: ignore[method-assign]
        sql = SessionClient(coordinator)
        sql("CREATE TABLE t (k int, v int)")
        sql("INSERT INTO t VALUES (1, 10), (2, 20)")
        sql("CREATE MATERIALIZED VIEW mv AS SELECT k, sum(v) AS s FROM t GROUP BY k")
        sql(f"CREATE MATERIALIZED VIEW r REPLACING mv WITH (APPLY WHEN HYDRATED) AS {NEW}")
        (created,) = sql("SHOW CREATE MATERIALIZED VIEW r")[1:]
        assert parse(created.partition("|")[2]), "what is shown can be run"
        assert "REPLACING everview.public.mv WITH (APPLY WHEN HYDRATED) AS" in created
    with Coordinator.open(path, clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        eventually(lambda: sql("SELECT * FROM mv") == ["k|s", "2|40"])


# What is refused


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        (f"CREATE MATERIALIZED VIEW x REPLACING t AS {NEW}", '42809 cannot replace table "t" with "x"'),
        (f"CREATE MATERIALIZED VIEW x REPLACING p AS {NEW}", '42809 cannot replace view "p" with "x"'),
        (f"CREATE MATERIALIZED VIEW x REPLACING nobody AS {NEW}", '42P01 relation "nobody" does not exist'),
        (
            f"CREATE MATERIALIZED VIEW x REPLACING mz_tables AS {NEW}",
            '42501 cannot replace system relation "mz_tables" with "x"',
        ),
        (
            f"CREATE MATERIALIZED VIEW x REPLACING mv AS {NEW}",
            '42710 cannot replace "mv" with "x" because "r" is staged to replace it',
        ),
        (
            f"CREATE MATERIALIZED VIEW x REPLACING r AS {NEW}",
            '42809 cannot replace "r" with "x" because it is a replacement itself',
        ),
        (
            f"CREATE MATERIALIZED VIEW x REPLACING sealed AS {NEW}",
            '55000 cannot replace "sealed" with "x" because it is complete for ever',
        ),
        (
            "CREATE MATERIALIZED VIEW x REPLACING other AS SELECT k, s FROM above",
            '42P19 cannot replace "other" with "x" because it depends on it',
        ),
        (
            "CREATE MATERIALIZED VIEW x REPLACING other AS SELECT k, s FROM other",
            '42P19 cannot replace "other" with "x" because it depends on it',
        ),
        (
            "CREATE MATERIALIZED VIEW x REPLACING other AS SELECT 1 AS k, 2::bigint AS s",
            '0A000 cannot replace "other" with "x", which reads no table or source',
        ),
        (
            "CREATE MATERIALIZED VIEW x REPLACING other WITH (FORWARD TIME) AS SELECT k, s FROM mv",
            "22023 FORWARD TIME is no option of a replacement",
        ),
        ("CREATE MATERIALIZED VIEW x REPLACING other WITH (SOON) AS SELECT k, s FROM mv", "22023 unknown option SOON"),
        ("ALTER MATERIALIZED VIEW other APPLY REPLACEMENT r", '42809 cannot apply replacement "r" to "other"'),
        (
            "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT other",
            '42809 cannot apply materialized view "other" to "mv": it is not a replacement',
        ),
        ("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT nobody", '42P01 relation "nobody" does not exist'),
        (
            "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r WITH (TIMEOUT 'soon')",
            '22023 invalid TIMEOUT: "soon"',
        ),
        (
            "ALTER MATERIALIZED VIEW other ROLLBACK REPLACEMENT",
            '55000 materialized view "other" has had no definition before this one',
        ),
        ("SHOW REPLACEMENT DIFF mv", '42809 materialized view "mv" is not a replacement'),
        ("CREATE VIEW x AS SELECT * FROM r", '55000 "x" cannot depend on "r", which is staged to replace "mv"'),
        ("CREATE INDEX x ON r (k)", '55000 "x" cannot depend on "r", which is staged to replace "mv"'),
        ("DROP MATERIALIZED VIEW mv", '2BP01 cannot drop materialized view "mv" because other objects depend on it'),
    ],
)
def test_refused(view: SessionClient, statement: str, error: str) -> None:
    view("CREATE VIEW p AS SELECT k FROM t")
    view("CREATE MATERIALIZED VIEW sealed AS SELECT 1 AS k, 2::bigint AS s")
    view("CREATE MATERIALIZED VIEW other AS SELECT k, s FROM mv")
    view("CREATE MATERIALIZED VIEW above AS SELECT k, s FROM other")
    view(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {NEW}")
    assert view(statement) == [f"! {error}"]


def test_differences_of_schema_are_told_one_by_one(view: SessionClient) -> None:
    found = failure(view, "CREATE MATERIALIZED VIEW x REPLACING mv AS SELECT k::text AS k, v AS w, 1 AS extra FROM t")
    assert found.sqlstate == "42P16"
    assert found.message == 'schema of replacement "x" differs from that of "mv"'
    assert found.detail is not None
    assert found.detail.splitlines() == [
        'column "k" is integer in "mv" and text in "x"',
        'column 2 is "s" in "mv" and "w" in "x"',
    ]
    found = failure(view, "CREATE MATERIALIZED VIEW x REPLACING mv AS SELECT k FROM t")
    assert found.detail == 'column "s" is missing in "x"'


def test_only_owners_replace(coordinator: Coordinator, view: SessionClient) -> None:
    view("CREATE ROLE someone")
    other = SessionClient(coordinator)
    other.session = coordinator.connect("someone", "everview", {})
    denied = '! 42501 must be owner of materialized view "mv"'
    assert other(f"CREATE MATERIALIZED VIEW x REPLACING mv AS {NEW}") == [denied]
    view(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {NEW}")
    assert other("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r") == [denied]
    view("ALTER MATERIALIZED VIEW mv OWNER TO someone")
    assert other("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r") == [denied.replace("mv", "r")]
    assert view("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r") == ["ALTER MATERIALIZED VIEW"]
    assert other("ALTER MATERIALIZED VIEW mv ROLLBACK REPLACEMENT") == ["ALTER MATERIALIZED VIEW"]
    assert other("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT mv_rollback") == ["ALTER MATERIALIZED VIEW"]


# Waiting


@pytest.fixture
def stuck(coordinator: Coordinator, view: SessionClient) -> SessionClient:
    """A replacement that goes no further."""
    view(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {NEW}")
    view("SELECT * FROM r")
    id = item_id(coordinator, "r")
    coordinator.maintenance.limit(id, coordinator.environment.frontiers(id).upper.only)
    return view


def applying(coordinator: Coordinator) -> tuple[SessionClient, list[list[str]], threading.Thread]:
    client, answers = SessionClient(coordinator), []
    statement = "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r"
    thread = threading.Thread(target=lambda: answers.append(client(statement)))
    thread.start()
    time.sleep(0.2)
    assert thread.is_alive()
    return client, answers, thread


def test_a_timeout(coordinator: Coordinator, stuck: SessionClient) -> None:
    found = failure(stuck, "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r WITH (TIMEOUT '100ms')")
    assert found.sqlstate == "55000"
    assert found.message == 'replacement "r" could not be applied to "mv" within 0.1 s'
    stuck("INSERT INTO t VALUES (9, 9)")
    assert "9|9" in stuck("SELECT * FROM mv")  # the view is not held up any longer
    coordinator.maintenance.limit(item_id(coordinator, "r"), None)
    assert stuck("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r WITH (TIMEOUT = '10s')") == ["ALTER MATERIALIZED VIEW"]
    assert "9|18" in stuck("SELECT * FROM mv")


def test_canceled(coordinator: Coordinator, stuck: SessionClient) -> None:
    client, answers, thread = applying(coordinator)
    client.session.cancel()
    thread.join(10)
    assert answers == [["! 57014 canceling statement due to user request"]]
    stuck("INSERT INTO t VALUES (9, 9)")
    assert "9|9" in stuck("SELECT * FROM mv")


@pytest.mark.parametrize("drop", ["DROP MATERIALIZED VIEW r", "DROP MATERIALIZED VIEW mv CASCADE"])
def test_dropped_while_someone_waits(coordinator: Coordinator, stuck: SessionClient, drop: str) -> None:
    _, answers, thread = applying(coordinator)
    assert stuck(drop) == ["DROP MATERIALIZED VIEW"]
    thread.join(10)
    assert answers == [['! 42704 replacement "r" cannot be applied to "mv" any more']]


def test_two_apply_at_once(coordinator: Coordinator, stuck: SessionClient) -> None:
    waiting = [applying(coordinator) for _ in range(3)]
    coordinator.maintenance.limit(item_id(coordinator, "r"), None)
    for _, _, thread in waiting:
        thread.join(10)
    answers = sorted(answer[0] for _, found, _ in waiting for answer in found)
    lost = '! 42704 replacement "r" cannot be applied to "mv" any more'
    assert answers == [lost, lost, "ALTER MATERIALIZED VIEW"]
    assert sorted(stuck("SELECT * FROM mv")) == ["2|40", "3|60", "k|s"]


# A view that has stopped


def break_down(coordinator: Coordinator, clock: Clock, sql: SessionClient, name: str = "mv") -> int:
    """Let every tick of a view fail from now on, and time go on; gives how far the view is complete."""
    id = item_id(coordinator, name)
    flow = next(each for each in coordinator.maintenance._scheduler.dataflows() if each.id == id)  # type: ignore[attr-defined]

    def tick(until: int | None = None) -> None:
        raise EverviewError("out of order")

    flow.tick = tick
    upper = coordinator.environment.frontiers(id).upper.only
    for _ in range(3):
        clock.now_ms += 10_000
        sql("INSERT INTO t VALUES (2, 1)")
    eventually(lambda: coordinator.maintenance.error(id) is not None)
    assert coordinator.environment.frontiers(id).upper.only == upper
    return upper


def test_a_view_that_has_stopped_goes_on(coordinator: Coordinator, sql: SessionClient, clock: Clock) -> None:
    """Nobody can read what it was when it stopped any more, so nobody notices the gap."""
    sql("CREATE TABLE t (k int, v int)")
    sql("INSERT INTO t VALUES (1, 10), (2, 20)")
    sql("CREATE MATERIALIZED VIEW mv AS SELECT k, sum(v) AS s FROM t GROUP BY k")
    sql("SELECT * FROM mv")
    break_down(coordinator, clock, sql)
    assert sql("SELECT * FROM mv") == ["! XX000 out of order"]
    sql(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {NEW}")
    assert sql("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r") == ["ALTER MATERIALIZED VIEW"]
    assert sql("SELECT * FROM mv") == ["k|s", "2|46"]
    sql("INSERT INTO t VALUES (3, 1)")
    assert sorted(sql("SELECT * FROM mv")) == ["2|46", "3|2", "k|s"]


def test_time_may_jump_forward(coordinator: Coordinator, view: SessionClient, clock: Clock) -> None:
    """The history before can be read, and the replacement begins later: the times between read as an error."""
    view("CREATE MATERIALIZED VIEW above WITH (RETAIN HISTORY FOR '1h') AS SELECT count(*) AS n FROM mv")
    view("SELECT * FROM above")
    stopped = break_down(coordinator, clock, view)
    view(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {NEW}")
    view("SELECT * FROM r")
    id = item_id(coordinator, "r")
    clock.now_ms += 10_000
    view("INSERT INTO t VALUES (2, 1)")
    eventually(lambda: coordinator.environment.frontiers(id).since.only > stopped)
    found = failure(view, "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
    assert found.sqlstate == "55000"
    assert found.message == 'replacement "r" begins after the time at which "mv" has stopped'
    statement = "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r WITH (FORWARD TIME)"
    assert view(statement) == ["ALTER MATERIALIZED VIEW"]
    at = int(coordinator.catalog.events()[-1].details["applied_at"])
    assert at > stopped
    assert sorted(view("SELECT * FROM mv")) == ["2|48", "3|60", "k|s"]
    assert view("SELECT * FROM above") == ["n", "2"]
    for name, before, after in (("mv", ["1|10", "2|20", "3|30"], ["2|46", "3|60"]), ("above", ["3"], ["2"])):
        assert sorted(view(f"SELECT * FROM {name} AS OF {stopped - 1}")[1:]) == before
        for moment in (stopped, (stopped + at) // 2, at - 1):
            assert view(f"SELECT * FROM {name} AS OF {moment}") == [f"! {MASKED[0]} {MASKED[1]}"]
        assert sorted(view(f"SELECT * FROM {name} AS OF {at}")[1:]) == after
