"""Several replacements in one step: one commit, one time, also where one reads what another replaces."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.storage.faults import Crash, armed
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.adapter.test_replacement_guards import ALTERED, CREATED
from tests.adapter.test_replacement_histories import rows, summed
from tests.adapter.test_replacements import break_down, failure, item_id
from tests.adapter.test_restart import POINTS, abandon, open_at
from tests.adapter.test_subscribe import Subscriber
from tests.waiting import eventually

KEEP = "WITH (RETAIN HISTORY FOR '1h')"


def chain(sql: SessionClient) -> None:
    """A table, b made from it, m made from b, and a made from m; and a view above a."""
    sql(f"CREATE TABLE t (k int, v int) {KEEP}")
    sql("INSERT INTO t VALUES (1, 10), (1, 5), (2, 20)")
    sql(f"CREATE MATERIALIZED VIEW b {KEEP} AS SELECT k, sum(v) AS s FROM t GROUP BY k")
    sql(f"CREATE MATERIALIZED VIEW m {KEEP} AS SELECT k, s + 1 AS s FROM b")
    sql(f"CREATE MATERIALIZED VIEW a {KEEP} AS SELECT sum(s)::bigint AS total FROM m")
    sql(f"CREATE MATERIALIZED VIEW above {KEEP} AS SELECT total * 10 AS ten FROM a")
    sql("SELECT * FROM above")


@pytest.fixture
def pipeline(sql: SessionClient) -> SessionClient:
    chain(sql)
    return sql


def stage(sql: SessionClient) -> None:
    """New definitions of b, and of a, which reads b by m."""
    assert sql("CREATE MATERIALIZED VIEW rb REPLACING b AS SELECT k, sum(v * 100) AS s FROM t GROUP BY k") == CREATED
    assert sql("CREATE MATERIALIZED VIEW ra REPLACING a AS SELECT max(s)::bigint AS total FROM m") == CREATED


def applied_at(coordinator: Coordinator) -> list[int]:
    details = [event.details for event in coordinator.catalog.events()]
    return [int(each["applied_at"]) for each in details if "applied_at" in each]


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER MATERIALIZED VIEW a, b APPLY REPLACEMENT ra, rb WITH (TIMEOUT '20s')",
        "BEGIN; ALTER MATERIALIZED VIEW a APPLY REPLACEMENT ra; ALTER MATERIALIZED VIEW b APPLY REPLACEMENT rb; COMMIT",
    ],
)
def test_a_chain_changes_at_one_time(coordinator: Coordinator, pipeline: SessionClient, statement: str) -> None:
    sql = pipeline
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO a")
    stage(sql)
    sql("INSERT INTO t VALUES (2, 1)")
    sql("SELECT * FROM above")  # the views are beyond that by now, and so is the time of the step
    answers = [line for each in statement.split("; ") for line in sql(each)]
    assert not any(line.startswith("!") for line in answers), answers
    at, same = applied_at(coordinator)
    assert at == same
    for _ in range(2):
        assert rows(sql, "SELECT * FROM b") == rows(sql, "SELECT k, sum(v * 100) FROM t GROUP BY k")
        assert rows(sql, "SELECT * FROM a") == rows(
            sql, "SELECT max(s * 100) + 1 FROM (SELECT sum(v) AS s FROM t GROUP BY k) AS q"
        )
        sql("INSERT INTO t VALUES (1, 7)")
    assert sql(f"SELECT * FROM a AS OF {at - 1}")[1:] == ["38"]  # 15 + 21 + 2: both old
    assert sql(f"SELECT * FROM above AS OF {at - 1}")[1:] == ["380"]
    assert sql(f"SELECT * FROM a AS OF {at}")[1:] == ["2101"]  # both new
    assert sql(f"SELECT * FROM above AS OF {at}")[1:] == ["21010"]
    assert sorted(sql(f"SELECT * FROM m AS OF {at}")[1:]) == ["1|1501", "2|2101"]
    sql("SELECT * FROM above")
    assert summed(subscriber) == rows(sql, "SELECT * FROM a")
    events = [event for event in coordinator.catalog.events() if "applied_at" in event.details]
    assert sorted(event.details["together_with"] for event in events) == ["ra", "rb"]


def test_views_that_change_places(coordinator: Coordinator, sql: SessionClient) -> None:
    """a was made from b, and b is to be made from a: one after the other that is a cycle, together it is none."""
    sql(f"CREATE TABLE t (k int) {KEEP}")
    sql("INSERT INTO t VALUES (1), (2)")
    sql(f"CREATE MATERIALIZED VIEW b {KEEP} AS SELECT k FROM t")
    sql(f"CREATE MATERIALIZED VIEW a {KEEP} AS SELECT k + 10 AS k FROM b")
    refused = sql("CREATE MATERIALIZED VIEW rb REPLACING b AS SELECT k + 100 AS k FROM a")
    assert refused == ['! 42P19 cannot replace "b" with "rb" because it depends on it']
    assert sql("CREATE MATERIALIZED VIEW ra REPLACING a AS SELECT k FROM t") == CREATED
    assert sql("CREATE MATERIALIZED VIEW rb REPLACING b AS SELECT k + 100 AS k FROM a") == CREATED
    assert failure(sql, "ALTER MATERIALIZED VIEW b APPLY REPLACEMENT rb").sqlstate == "42P19"
    before = coordinator.timeline.upper - 1
    sql("BEGIN")
    assert sql("ALTER MATERIALIZED VIEW b APPLY REPLACEMENT rb")[0].startswith("A")
    assert sql("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT ra")[0].startswith("A")
    assert sql("COMMIT") == ["COMMIT"]
    sql("INSERT INTO t VALUES (3)")
    assert rows(sql, "SELECT * FROM a") == ["1", "2", "3"]
    assert rows(sql, "SELECT * FROM b") == ["101", "102", "103"]
    assert rows(sql, f"SELECT * FROM a AS OF {before}") == ["11", "12"]
    assert rows(sql, f"SELECT * FROM b AS OF {before}") == ["1", "2"]


def test_guards_look_at_what_there_will_be(coordinator: Coordinator, pipeline: SessionClient) -> None:
    """Over the old b the new a fails, and over the new one it does not; and the other way round."""
    sql = pipeline
    sql("CREATE MATERIALIZED VIEW rb REPLACING b AS SELECT k, sum(v) - 15 AS s FROM t GROUP BY k")
    sql("CREATE MATERIALIZED VIEW ra REPLACING a AS SELECT sum(100 / (s - 1))::bigint AS total FROM m WHERE k = 1")
    assert sql("SELECT * FROM ra") == ["total", "6"]
    found = failure(sql, "ALTER MATERIALIZED VIEW a, b APPLY REPLACEMENT ra, rb")
    assert found.message == 'replacement "ra" cannot be applied to "a" because it fails: division by zero'
    assert applied_at(coordinator) == []
    assert sql("SELECT * FROM a") == ["total", "37"]
    sql("INSERT INTO t VALUES (1, -15)")
    assert sql("SELECT * FROM ra") == ["! 22012 division by zero"]
    assert sql("ALTER MATERIALIZED VIEW a, b APPLY REPLACEMENT ra, rb WITH (MAX ROWS 4)") == ALTERED
    assert sql("SELECT * FROM a") == ["total", "-6"]
    sql("INSERT INTO t VALUES (1, 15)")
    assert sql("SELECT * FROM above") == ["! 22012 division by zero"]
    sql("DELETE FROM t WHERE v = 15")
    assert sql("SELECT * FROM above") == ["ten", "-60"]


def test_rows_of_each_are_guarded(coordinator: Coordinator, pipeline: SessionClient) -> None:
    sql = pipeline
    stage(sql)
    sql("BEGIN")
    sql("ALTER MATERIALIZED VIEW b APPLY REPLACEMENT rb WITH (MAX ROWS 4)")
    sql("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT ra WITH (MAX ROWS 1)")
    assert sql("COMMIT") == [
        '! 55000 replacement "ra" cannot be applied to "a" because it changes 2 rows, more than MAX ROWS 1'
    ]
    assert applied_at(coordinator) == []
    sql("BEGIN")
    sql("ALTER MATERIALIZED VIEW b APPLY REPLACEMENT rb WITH (MAX ROWS 4)")
    sql("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT ra WITH (MAX ROWS 2)")
    assert not sql("COMMIT")[0].startswith("!")
    assert len(applied_at(coordinator)) == 2


def test_what_is_refused(pipeline: SessionClient) -> None:
    sql = pipeline
    stage(sql)
    for statement, error in (
        ("a, b APPLY REPLACEMENT ra", "42601 2 materialized views and 1 replacements are named"),
        ("a APPLY REPLACEMENT ra, rb", "42601 1 materialized views and 2 replacements are named"),
        ("a, a APPLY REPLACEMENT ra, ra", '42710 replacement "ra" is named more than once'),
        ("b, a APPLY REPLACEMENT ra, rb", '42809 cannot apply replacement "ra" to "b"'),
        ("a, b APPLY REPLACEMENT ra, rb WITH (SOON)", "22023 unknown option SOON"),
    ):
        assert sql(f"ALTER MATERIALIZED VIEW {statement}") == [f"! {error}"]
    sql("BEGIN")
    sql("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT ra")
    assert sql("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT ra") == ['! 42710 replacement "ra" is named more than once']
    sql("ROLLBACK")
    sql("BEGIN")
    sql("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT ra")
    assert sql("CREATE TABLE other (k int)") == ["! 0A000 these definitions cannot be made in one transaction"]
    sql("ROLLBACK")
    assert sql("ALTER MATERIALIZED VIEW a, b APPLY REPLACEMENT ra, rb") == ALTERED


def test_a_timeout_says_what_is_waited_for(coordinator: Coordinator, pipeline: SessionClient) -> None:
    sql = pipeline
    stage(sql)
    sql("SELECT * FROM ra")
    id = item_id(coordinator, "m")
    upper = coordinator.environment.frontiers(id).upper.only
    coordinator.maintenance.limit(id, upper)
    sql("INSERT INTO t VALUES (5, 5)")
    found = failure(sql, "ALTER MATERIALIZED VIEW a, b APPLY REPLACEMENT ra, rb WITH (TIMEOUT '200ms')")
    assert found.message == 'replacements "ra", "rb" could not be applied within 0.2 s'
    assert 'waits for materialized view "m" at' in (found.detail or "")
    coordinator.maintenance.limit(id, None)
    assert sql("ALTER MATERIALIZED VIEW a, b APPLY REPLACEMENT ra, rb") == ALTERED


@pytest.mark.parametrize("kept", ["", KEEP])
@pytest.mark.parametrize("statement", ["a APPLY REPLACEMENT ra", "a, b APPLY REPLACEMENT ra, rb"])
def test_who_stands_still_because_of_another_is_not_waited_for(
    coordinator: Coordinator, pipeline: SessionClient, clock: Clock, kept: str, statement: str
) -> None:
    """A view between fails, so neither the view above it nor its replacement goes on."""
    sql = pipeline
    sql(f"CREATE MATERIALIZED VIEW rb REPLACING b {kept} AS SELECT k, sum(v * 100) AS s FROM t GROUP BY k")
    sql(f"CREATE MATERIALIZED VIEW ra REPLACING a {kept} AS SELECT max(s)::bigint AS total FROM m")
    sql("SELECT * FROM ra")
    break_down(coordinator, clock, sql, "m")
    found = failure(sql, f"ALTER MATERIALIZED VIEW {statement}")
    assert found.sqlstate == "55000"
    assert '"m" goes on no further' in found.message or 'materialized view "m" fails' in (found.detail or "")
    assert (found.detail or "").endswith(": out of order")
    assert rows(sql, "SELECT * FROM b ORDER BY k") == ["1|15", "2|23"], "it goes on"


def seen(coordinator: Coordinator) -> list[str]:
    sql = SessionClient(coordinator)
    found = sorted(sql("SELECT name, create_sql FROM mz_materialized_views"))
    for name in ("t", "b", "m", "a", "above"):
        found += [f"{name}: {line}" for line in sorted(sql(f"SELECT * FROM {name}"))]
    return found


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # threads die as well
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_leaves_all_or_nothing(tmp_path: Path, point: str, long_forms: bool) -> None:
    statement = "ALTER MATERIALIZED VIEW a, b APPLY REPLACEMENT ra, rb"
    states = []
    with open_at(tmp_path / "whole", Clock()) as coordinator:
        sql = SessionClient(coordinator)
        chain(sql)
        stage(sql)
        states.append(seen(coordinator))
        assert sql(statement) == ALTERED
        states.append(seen(coordinator))
    found = []
    for hit in range(1, 12) if long_forms else (1, 3):
        path = tmp_path / str(hit)
        coordinator = open_at(path, Clock())
        sql = SessionClient(coordinator)
        chain(sql)
        stage(sql)
        for name in ("ra", "rb", "above"):
            sql(f"SELECT * FROM {name}")
        with armed(point, hit, for_good=True):
            with suppress(Crash):
                sql(statement)
            abandon(coordinator)
        with open_at(path, Clock(1_700_000_100_000)) as reopened:
            found.append(states.index(seen(reopened)))
            again = SessionClient(reopened)
            again("INSERT INTO t VALUES (2, 5)")
            if found[-1] == 0:
                assert again(statement) == ALTERED
            assert rows(again, "SELECT * FROM a") == ["2501"]
    assert found


def test_under_load(coordinator: Coordinator, pipeline: SessionClient) -> None:
    """Others write meanwhile; the view above never sees one new definition without the other."""
    sql = pipeline
    sql("CREATE MATERIALIZED VIEW both AS SELECT sum(k) AS k FROM b")
    stop, problems = threading.Event(), []

    def write() -> None:
        client = SessionClient(coordinator)
        while not stop.is_set():
            answer = client("INSERT INTO t VALUES (2, 0)")
            if answer != ["INSERT 0 1"]:
                problems.append(str(answer))

    def read() -> None:
        client = SessionClient(coordinator)
        while not stop.is_set():
            client("BEGIN")
            pair = client("SELECT max(s) FROM b")[1:] + client("SELECT total FROM a")[1:]
            client("COMMIT")
            if pair not in (["20", "37"], ["2000", "2001"]):
                problems.append(str(pair))

    threads = [threading.Thread(target=each) for each in (write, read)]
    for thread in threads:
        thread.start()
    try:
        for number in range(3):
            if number % 2 == 0:
                stage(sql)
                names = "ra, rb"
            else:
                for name in ("a", "b"):
                    sql(f"ALTER MATERIALIZED VIEW {name} ROLLBACK REPLACEMENT")
                names = "a_rollback, b_rollback"
            assert sql(f"ALTER MATERIALIZED VIEW a, b APPLY REPLACEMENT {names} WITH (TIMEOUT '60s')") == ALTERED
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not problems, problems[:3]
    eventually(lambda: sql("SELECT * FROM both") == ["k", sql("SELECT sum(k) FROM b")[1]])


def test_several_apply_the_same_at_once(coordinator: Coordinator, pipeline: SessionClient) -> None:
    """Sets that overlap: each replacement is applied once, and who is late is told that it is gone."""
    sql = pipeline
    for _ in range(3):
        stage(sql)
        statements = ("a, b APPLY REPLACEMENT ra, rb", "b, a APPLY REPLACEMENT rb, ra", "a APPLY REPLACEMENT ra")
        clients = [SessionClient(coordinator) for _ in statements]
        with ThreadPoolExecutor() as pool:
            answers = list(
                pool.map(lambda client, each: client(f"ALTER MATERIALIZED VIEW {each}"), clients, statements)
            )
        lost = [answer[0] for answer in answers if answer != ALTERED]
        assert all(each.startswith("! 42704") for each in lost), answers
        if "rb" in {item.name for item in coordinator.catalog.state.items.values()}:
            assert sql("ALTER MATERIALIZED VIEW b APPLY REPLACEMENT rb") == ALTERED
        assert rows(sql, "SELECT * FROM a") == ["2001"]
        for name in ("a", "b"):
            sql(f"ALTER MATERIALIZED VIEW {name} ROLLBACK REPLACEMENT TO VERSION 1")
        assert sql("ALTER MATERIALIZED VIEW a, b APPLY REPLACEMENT a_rollback, b_rollback") == ALTERED
