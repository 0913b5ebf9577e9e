"""Durable subscriptions: what is not acknowledged comes again, what is acknowledged stays so, and no gap is silent."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.adapter.catalog.items import Subscription
from everview.adapter.coordinator import Coordinator
from everview.adapter.durable import GRACE_MS
from everview.compute.sql.errors import SqlError
from everview.serve.stream_metrics import add_stream_metrics
from everview.server.metrics import Metrics
from everview.storage.faults import Crash, armed
from tests.adapter.conftest import Clock
from tests.adapter.history.consumer import Consumer
from tests.adapter.scripts import SessionClient
from tests.adapter.test_restart import POINTS, abandon, open_at
from tests.adapter.test_subscribe import Subscriber

HOUR_MS = 3_600_000


@pytest.fixture
def table(sql: SessionClient) -> SessionClient:
    sql("CREATE TABLE t (k int, v text)")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    assert sql("CREATE SUBSCRIPTION s FOR t") == ["CREATE SUBSCRIPTION"]
    return sql


def fetched(sql: SessionClient, count: str = "ALL") -> list[str]:
    """What a FETCH gives, which waits for something, without times."""
    return [line.partition("|")[2] for line in sql(f"FETCH {count} c")[1:]]


def nothing(sql: SessionClient) -> bool:
    """Whether a FETCH that does not wait gives no rows."""
    return len(sql("FETCH ALL c WITH (timeout = '0s')")) == 1


def declare(sql: SessionClient, statement: str = "SUBSCRIBE TO s") -> None:
    sql("BEGIN")
    assert sql(f"DECLARE c CURSOR FOR {statement}") == ["DECLARE CURSOR"]


def status(sql: SessionClient, columns: str = "status") -> str:
    return sql(f"SELECT {columns} FROM mz_internal.mz_subscription_statuses")[1]


def failure(sql: SessionClient, statement: str) -> SqlError:
    try:
        sql.session.run(sql.session.prepare(statement))
    except SqlError as error:
        return error
    raise AssertionError(f"{statement} did not fail")


def test_what_is_not_acknowledged_comes_again(coordinator: Coordinator, table: SessionClient) -> None:
    first = Subscriber(coordinator, "SUBSCRIBE TO s").take()
    assert [row[1:] for row in first] == [(1, 1, "a"), (1, 2, "b")]
    table("INSERT INTO t VALUES (3, 'c')")
    again = Subscriber(coordinator, "SUBSCRIBE TO t RESUME s").take()
    assert again[:2] == first, "the same rows at the same times"
    assert [row[1:] for row in again[2:]] == [(1, 3, "c")]


def test_a_fetch_acknowledges_the_fetches_before(coordinator: Coordinator, table: SessionClient) -> None:
    declare(table)
    assert fetched(table) == ["1|1|a", "1|2|b"]
    table("ROLLBACK")
    declare(table)
    assert fetched(table) == ["1|1|a", "1|2|b"], "nothing was acknowledged"
    other = SessionClient(coordinator)
    other("INSERT INTO t VALUES (3, 'c')")
    assert fetched(table) == ["1|3|c"]
    table("ROLLBACK")
    declare(table)
    assert fetched(table) == ["1|3|c"], "the second FETCH acknowledged the first"
    table("COMMIT")
    declare(table)
    assert nothing(table), "COMMIT acknowledged what was fetched"


def test_whole_times_are_acknowledged(table: SessionClient) -> None:
    declare(table)
    assert fetched(table, "1") == ["1|1|a"]
    table("COMMIT")
    declare(table)
    assert fetched(table, "2") == ["1|1|a", "1|2|b"], "a part of a time comes again"
    table("COMMIT")
    table("INSERT INTO t VALUES (3, 'c')")
    table("INSERT INTO t VALUES (4, 'd')")
    declare(table)
    assert fetched(table, "1") == ["1|3|c"]
    table("COMMIT")
    declare(table)
    assert fetched(table, "1") == ["1|4|d"], "one row of a time is the whole time"
    table("COMMIT")


@pytest.mark.parametrize(("by", "left"), [("commit", ["1|3|c"]), ("none", ["1|1|a", "1|2|b", "1|3|c"])])
def test_who_acknowledges_can_be_chosen(table: SessionClient, by: str, left: list[str]) -> None:
    declare(table, f"SUBSCRIBE TO s WITH (ACKNOWLEDGE = {by})")
    assert fetched(table) == ["1|1|a", "1|2|b"]
    assert nothing(table)
    table("ROLLBACK")
    declare(table, f"SUBSCRIBE TO s WITH (ACKNOWLEDGE = {by})")
    assert fetched(table) == ["1|1|a", "1|2|b"], "fetching acknowledges nothing"
    table("COMMIT")
    table("INSERT INTO t VALUES (3, 'c')")
    declare(table)
    assert fetched(table) == left
    table("ROLLBACK")


def test_by_statement(coordinator: Coordinator, table: SessionClient, clock: Clock) -> None:
    (first, *_) = Subscriber(coordinator, "SUBSCRIBE TO s").take()
    table(f"ALTER SUBSCRIPTION s ACKNOWLEDGE {first[0]}")
    assert len(Subscriber(coordinator, "SUBSCRIBE TO s").take()) == 2, "everything before the time, and nothing is"
    assert table(f"ALTER SUBSCRIPTION s ACKNOWLEDGE THROUGH {first[0]}") == ["ALTER SUBSCRIPTION"]
    table("INSERT INTO t VALUES (3, 'c')")
    rows = Subscriber(coordinator, "SUBSCRIBE TO s WITH (PROGRESS)").take()
    assert [row[2:] for row in rows if not row[1]] == [(1, 3, "c")]
    progress = rows[-1][0]
    table(f"ALTER SUBSCRIPTION s ACKNOWLEDGE BEFORE {progress}")
    assert Subscriber(coordinator, "SUBSCRIBE TO s").take() == []
    table(f"ALTER SUBSCRIPTION s ACKNOWLEDGE {first[0]}")
    assert [each.message for each in table.session.notices()][-1:] == [
        'subscription "s" was acknowledged so far before'
    ]
    found = failure(table, f"ALTER SUBSCRIPTION s ACKNOWLEDGE {clock.now_ms + HOUR_MS}")
    assert found.sqlstate == "22023"
    assert "ends before" in (found.detail or "")


def test_an_acknowledgement_outlives_a_restart(tmp_path: Path, clock: Clock) -> None:
    with open_at(tmp_path, clock) as coordinator:
        sql = SessionClient(coordinator)
        sql("CREATE TABLE t (k int)")
        sql("INSERT INTO t VALUES (1)")
        sql("CREATE SUBSCRIPTION s FOR t")
        (row,) = Subscriber(coordinator, "SUBSCRIBE TO s").take()
        sql(f"ALTER SUBSCRIPTION s ACKNOWLEDGE THROUGH {row[0]}")
        sql("INSERT INTO t VALUES (2)")
        sql("DELETE FROM t WHERE k = 1")
    clock.now_ms += HOUR_MS
    with open_at(tmp_path, clock) as coordinator:
        sql = SessionClient(coordinator)
        for number in range(5):  # time passes, and what nobody else holds is forgotten
            clock.now_ms += 2_000
            sql(f"INSERT INTO t VALUES ({10 + number})")
        rows = Subscriber(coordinator, "SUBSCRIBE TO s").data()
        assert rows == [(1, 2), (-1, 1), *((1, 10 + number) for number in range(5))]


def test_history_is_held_and_let_go(coordinator: Coordinator, table: SessionClient, clock: Clock) -> None:
    id = next(item.id for item in coordinator.catalog.state.items.values() if item.name == "t")

    def since() -> int:
        return coordinator.environment.frontiers(id).since.only

    begun = since()
    for number in range(5):
        clock.now_ms += 5_000
        table(f"INSERT INTO t VALUES ({number}, 'x')")
    assert since() <= begun + 10, "the subscription holds it"
    time = Subscriber(coordinator, "SUBSCRIBE TO s").take()[-1][0]
    table(f"ALTER SUBSCRIPTION s ACKNOWLEDGE THROUGH {time}")
    assert status(table, "acknowledged_before") == str(time + 1)
    table("DROP SUBSCRIPTION s")
    clock.now_ms += 5_000
    table("INSERT INTO t VALUES (9, 'x')")
    assert since() > time - 2_000
    assert len(coordinator.environment.shard(id).held) == 2, "the table's own"


def test_past_its_limit_it_lapses(coordinator: Coordinator, table: SessionClient, clock: Clock) -> None:
    table("ALTER SUBSCRIPTION s SET (HOLD FOR '1 hour')")
    reading = Subscriber(coordinator, "SUBSCRIBE TO s")
    assert len(reading.take()) == 2

    def pass_ms(milliseconds: int) -> None:
        clock.now_ms += milliseconds
        table("INSERT INTO t VALUES (3, 'c')")
        coordinator.durable.lapse(coordinator.catalog.state.of(Subscription))

    pass_ms(HOUR_MS - 60_000)
    assert status(table) == "active"
    assert len(reading.take()) == 1
    pass_ms(120_000)
    assert status(table, "status, held_ms, lapsed_at IS NOT NULL") == "lapsed|0|t"
    for statement in ("SUBSCRIBE TO s", "ALTER SUBSCRIPTION s ACKNOWLEDGE 5"):
        found = failure(table, statement)
        assert (found.sqlstate, found.message) == ("55000", 'subscription "s" has lapsed')
        assert "nothing was acknowledged" in (found.detail or "")
        assert "RESTART" in (found.hint or "")
    with pytest.raises(SqlError, match="has lapsed"):
        reading.take()
    assert table("ALTER SUBSCRIPTION s RESTART") == ["ALTER SUBSCRIPTION"]
    assert Subscriber(coordinator, "SUBSCRIBE TO s").data() == [(1, 1, "a"), (1, 2, "b"), (2, 3, "c")]


def test_after_a_start_clients_have_time_to_come_back(tmp_path: Path, clock: Clock) -> None:
    with open_at(tmp_path, clock) as coordinator:
        sql = SessionClient(coordinator)
        sql("CREATE TABLE t (k int)")
        sql("CREATE SUBSCRIPTION s FOR t WITH (HOLD FOR '1 hour')")
    clock.now_ms += 24 * HOUR_MS
    with open_at(tmp_path, clock) as coordinator:
        sql = SessionClient(coordinator)

        def pass_ms(milliseconds: int) -> str:
            clock.now_ms += milliseconds
            sql("INSERT INTO t VALUES (1)")
            coordinator.durable.lapse(coordinator.catalog.state.of(Subscription))
            return status(sql)

        assert pass_ms(1_000) == "idle"
        assert pass_ms(GRACE_MS) == "lapsed"
    with open_at(tmp_path, clock) as coordinator:
        assert failure(SessionClient(coordinator), "SUBSCRIBE TO s").sqlstate == "55000"


def test_for_ever(coordinator: Coordinator, table: SessionClient, clock: Clock) -> None:
    table("ALTER SUBSCRIPTION s SET (HOLD FOR 'infinity')")
    clock.now_ms += 10_000 * HOUR_MS
    table("INSERT INTO t VALUES (3, 'c')")
    coordinator.durable.lapse(coordinator.catalog.state.of(Subscription))
    assert status(table, "status, held_ms_max") == "idle|NULL"
    assert len(Subscriber(coordinator, "SUBSCRIBE TO s").take()) == 3


def test_the_next_reader_takes_over(coordinator: Coordinator, table: SessionClient) -> None:
    first = Subscriber(coordinator, "SUBSCRIBE TO s")
    assert len(first.take()) == 2
    declare(table)
    second = SessionClient(coordinator)
    declare(second)
    assert len(fetched(second)) == 2
    with pytest.raises(SqlError, match="was taken over") as found:
        first.take()
    assert found.value.sqlstate == "55006"
    assert table("FETCH ALL c WITH (timeout = '0s')")[0].startswith("! 55006")
    second("COMMIT")
    assert status(second) == "idle"


def test_without_a_snapshot(coordinator: Coordinator, table: SessionClient) -> None:
    table("CREATE SUBSCRIPTION later FOR t WITH (SNAPSHOT = false)")
    table("UPDATE t SET v = 'z' WHERE k = 1")
    assert Subscriber(coordinator, "SUBSCRIBE TO later").data() == [(-1, 1, "a"), (1, 1, "z")]


def test_envelopes_go_on(coordinator: Coordinator, table: SessionClient) -> None:
    declare(table, "SUBSCRIBE TO s ENVELOPE DEBEZIUM (KEY (k))")
    assert fetched(table) == ["insert|1|NULL|a", "insert|2|NULL|b"]
    table("COMMIT")
    table("UPDATE t SET v = 'z' WHERE k = 1")
    table("DELETE FROM t WHERE k = 2")
    declare(table, "SUBSCRIBE TO s ENVELOPE DEBEZIUM (KEY (k))")
    assert fetched(table) == ["upsert|1|a|z", "delete|2|b|NULL"]
    table("ROLLBACK")
    found = Subscriber(coordinator, "SUBSCRIBE TO s WITHIN TIMESTAMP ORDER BY v DESC").data()
    assert found == [(1, 1, "z"), (-1, 1, "a"), (-1, 2, "b")]


def test_queries_of_its_rows(coordinator: Coordinator, table: SessionClient) -> None:
    query = "SELECT v FROM t WHERE k > 1"
    assert Subscriber(coordinator, f"SUBSCRIBE ({query}) RESUME s").data() == [(1, "b")]
    table("CREATE TABLE other (k int)")
    for text in ("SELECT count(*) FROM t", "SELECT * FROM other", "SELECT t.k FROM t, other"):
        found = failure(table, f"SUBSCRIBE ({text}) RESUME s")
        assert found.sqlstate == "0A000"
        assert found.detail == 'it holds the history of "t"'


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("SUBSCRIBE TO s AS OF 5", "42601"),
        ("SUBSCRIBE TO t AS OF 5 RESUME s", "42601"),
        ("SUBSCRIBE TO s WITH (SNAPSHOT = false)", "42601"),
        ("SUBSCRIBE TO s RESUME FROM 5", "42601"),
        ("SUBSCRIBE TO t RESUME s RESUME s", "42601"),
        ("SUBSCRIBE TO t RESUME t", "42809"),
        ("SUBSCRIBE TO t RESUME nothing", "42704"),
        ("SUBSCRIBE TO t WITH (ACKNOWLEDGE = fetch)", "22023"),
        ("SUBSCRIBE TO s WITH (ACKNOWLEDGE = sometimes)", "22023"),
        ("SELECT * FROM s", "42809"),
        ("CREATE INDEX i ON s (k)", "42809"),
        ("CREATE SUBSCRIPTION s FOR t", "42P07"),
        ("CREATE SUBSCRIPTION r FOR t WITH (KEEP = 3)", "22023"),
        ("CREATE SUBSCRIPTION r FOR t WITH (HOLD FOR 'soon')", "22023"),
        ("CREATE SUBSCRIPTION r FOR v", "42809"),
        ("CREATE SUBSCRIPTION r FOR s", "42809"),
        ("CREATE SUBSCRIPTION r FOR nothing", "42P01"),
        ("ALTER SUBSCRIPTION s ACKNOWLEDGE", "42601"),
        ("ALTER SUBSCRIPTION s SET (SNAPSHOT = false)", "22023"),
        ("ALTER SUBSCRIPTION t RESTART", "42809"),
        ("DROP TABLE s", "42809"),
        ("DROP TABLE t", "2BP01"),
        ("DROP SUBSCRIPTION nothing", "42704"),
    ],
)
def test_refused(table: SessionClient, statement: str, state: str) -> None:
    table("CREATE VIEW v AS SELECT k FROM t")
    assert failure(table, statement).sqlstate == state


def test_an_object_like_others(coordinator: Coordinator, table: SessionClient) -> None:
    assert table("SHOW CREATE SUBSCRIPTION s")[1] == (
        "everview.public.s|CREATE SUBSCRIPTION everview.public.s FOR everview.public.t WITH (HOLD FOR '86400000 ms')"
    )
    assert table("SHOW SUBSCRIPTIONS")[1].startswith("s|t|idle|NULL|")
    table("COMMENT ON SUBSCRIPTION s IS 'of ours'")
    table("ALTER SUBSCRIPTION s RENAME TO r")
    assert table("SHOW OBJECTS LIKE 'r'")[1:] == ["r|subscription|of ours"]
    assert len(Subscriber(coordinator, "SUBSCRIBE TO r").take()) == 2
    assert table("CREATE SUBSCRIPTION IF NOT EXISTS r FOR t") == ["CREATE SUBSCRIPTION"]
    table("DROP TABLE t CASCADE")
    assert table("SHOW SUBSCRIPTIONS")[1:] == []
    assert table("DROP SUBSCRIPTION IF EXISTS r") == ["DROP SUBSCRIPTION"]
    assert coordinator.environment.scan("subscription/") == {}


def test_explained_as_its_collection(table: SessionClient) -> None:
    assert table("EXPLAIN SUBSCRIBE TO s") == table("EXPLAIN SUBSCRIBE TO t")


def test_only_its_owner_reads_it(coordinator: Coordinator, table: SessionClient) -> None:
    table("CREATE ROLE guest")
    guest = SessionClient(coordinator, user="guest")
    for statement in ("SUBSCRIBE TO s", "ALTER SUBSCRIPTION s ACKNOWLEDGE 5", "DROP SUBSCRIPTION s"):
        assert failure(guest, statement).sqlstate == "42501"
    table("ALTER SUBSCRIPTION s OWNER TO guest")
    declare(guest)
    assert len(fetched(guest)) == 2


def test_dropped_while_it_is_read(coordinator: Coordinator, table: SessionClient) -> None:
    reading = Subscriber(coordinator, "SUBSCRIBE TO s")
    assert len(reading.take()) == 2
    table("DROP SUBSCRIPTION s")
    with pytest.raises(SqlError):
        reading.take()


def test_the_view_below_is_replaced(coordinator: Coordinator, table: SessionClient) -> None:
    table("CREATE MATERIALIZED VIEW mv AS SELECT k, v FROM t")
    table("CREATE SUBSCRIPTION m FOR mv")
    declare(table, "SUBSCRIBE TO m")
    assert fetched(table) == ["1|1|a", "1|2|b"]
    table("COMMIT")
    table("CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT k, upper(v) AS v, k * 2 AS twice FROM t")
    answer = table("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
    assert answer == ["ALTER MATERIALIZED VIEW"]
    assert table("SELECT * FROM mv ORDER BY k")[1:] == ["1|A|2", "2|B|4"]
    rows = Subscriber(coordinator, "SUBSCRIBE TO m")
    assert rows.names == ["mz_timestamp", "mz_diff", "k", "v"], "the columns that it was made with"
    assert Counter(rows.data()) == Counter([(-1, 1, "a"), (-1, 2, "b"), (1, 1, "A"), (1, 2, "B")])
    found = failure(table, "CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT k::bigint AS k, v, k * 2 AS twice FROM t")
    assert 'subscription everview.public.m uses column "k"' in (found.detail or "")


def test_figures(coordinator: Coordinator, table: SessionClient, clock: Clock) -> None:
    metrics = Metrics()
    add_stream_metrics(metrics, coordinator)
    clock.now_ms += 60_000
    table("INSERT INTO t VALUES (3, 'c')")
    shown = metrics.render().decode()
    assert 'everview_subscription_held_seconds{subscription="public.s"} 60.' in shown
    assert 'everview_subscription_lapsed{subscription="public.s"} 0.0' in shown
    assert 'everview_subscription_read{subscription="public.s"} 0.0' in shown


# Crashes


def converse(consumer: Consumer, coordinator: Coordinator, rng: random.Random) -> None:
    """Take some rows, and perhaps acknowledge them."""
    sql = SessionClient(coordinator)
    sql("BEGIN")
    sql("DECLARE c CURSOR FOR SUBSCRIBE TO s WITH (PROGRESS, ACKNOWLEDGE = none)")
    lines = sql(f"FETCH {rng.choice(['ALL', '3', '10'])} c")[1:]
    sql("ROLLBACK")
    cells = (line.split("|") for line in lines)
    progress = consumer.hear([time, progressed == "t", *rest] for time, progressed, *rest in cells)
    assert not consumer.anomalies
    if rng.random() < 0.5 and progress > consumer.acknowledged:
        consumer.acknowledging(progress)
        if sql(f"ALTER SUBSCRIPTION s ACKNOWLEDGE {progress}") == ["ALTER SUBSCRIPTION"]:
            consumer.answered()


def crashes(path: Path, clock: Clock, rng: random.Random, count: int) -> Iterator[Coordinator]:
    """One environment, opened again and again; each time it dies at some commit of a statement."""
    for _ in range(count):
        coordinator = open_at(path, clock)
        try:
            with armed(rng.choice(POINTS), rng.randrange(1, 12), thread=threading.main_thread()):
                yield coordinator
        finally:
            abandon(coordinator)
        clock.now_ms += rng.randrange(5_000)


def test_crashes_of_server_and_client(tmp_path: Path, clock: Clock, rng: random.Random, long_forms: bool) -> None:
    """The sum of what a client was told is the table, whatever died, and every time was told the same each time."""
    consumer = Consumer()
    with open_at(tmp_path, clock) as coordinator:
        sql = SessionClient(coordinator)
        for statement in (
            "CREATE TABLE t (k int, v int)",
            "INSERT INTO t VALUES (0, 0)",
            "CREATE SUBSCRIPTION s FOR t",
        ):
            sql(statement)
    for coordinator in crashes(tmp_path, clock, rng, 200 if long_forms else 12):
        sql = SessionClient(coordinator)
        try:
            for _ in range(rng.randrange(1, 12)):
                key = rng.randrange(5)
                sql(
                    rng.choice(
                        (
                            f"INSERT INTO t VALUES ({key}, {rng.randrange(9)}), ({rng.randrange(9)}, 7)",
                            f"UPDATE t SET v = v + 1 WHERE k = {key}",
                            f"DELETE FROM t WHERE k = {key}",
                        )
                    )
                )
                clock.now_ms += rng.randrange(1_000)
                if rng.random() < 0.6:
                    converse(consumer, coordinator, rng)
        except Crash:
            pass
    with open_at(tmp_path, clock) as coordinator:
        rows = Subscriber(coordinator, "SUBSCRIBE TO s WITH (PROGRESS)").take()
        consumer.hear([*row[:3], *map(str, row[3:])] for row in rows)
        assert not consumer.anomalies
        table = [tuple(line.split("|")) for line in SessionClient(coordinator)("SELECT * FROM t")[1:]]
        assert consumer.contents() == Counter(table)
