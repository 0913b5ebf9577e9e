"""Writes: `mz_now()` in them, alone and in blocks, whose turn it is, and what holds up whom. The clock moves."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.turns import Entry, Turns
from everview.storage.shard import from_frontier
from tests.adapter.scripts import SessionClient
from tests.waiting import eventually

KEPT = "WITH (RETAIN HISTORY FOR '10 days')"


class RestlessClock:
    """A wall clock that moves whenever it is looked at, sometimes far, and sometimes back."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        self.now_ms += self._random.choice([0, 1, 1, 1, 2, 5, 40, 1_000, -3])
        return self.now_ms


@pytest.fixture(params=range(3))
def restless(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Coordinator]:
    with Coordinator.open(tmp_path / "data", clock=RestlessClock(request.param), ticking=False) as opened:
        yield opened


def rows(client: SessionClient, query: str) -> list[str]:
    return client(query)[1:]


def changes_of(coordinator: Coordinator, name: str) -> list[tuple[Any, ...]]:
    """All changes of a table: its columns, the time and the multiplicity."""
    item = next(each for each in coordinator.catalog.state.items.values() if each.name == name)
    frontiers = coordinator.environment.frontiers(item.id)
    lower, upper = from_frontier(frontiers.since) + 1, from_frontier(frontiers.upper)
    with coordinator.environment.changes(item.id, lower, upper) as selection:
        found = selection.changes()
    names = [f"c{place}" for place in range(len(item.columns))]
    return [tuple(row[name] for name in (*names, "_time", "_diff")) for row in found.to_pylist()]


# mz_now() in statements that stand alone


def test_what_reads_and_writes_may_speak_of_its_time(restless: Coordinator) -> None:
    sql = SessionClient(restless)
    sql(f"CREATE TABLE cache (key text, expires bigint DEFAULT mz_now() + 60000) {KEPT}")
    assert sql("INSERT INTO cache VALUES ('old', 5), ('new', 9000000000000)") == ["INSERT 0 2"]
    assert sql("DELETE FROM cache WHERE expires <= mz_now()") == ["DELETE 1"]
    assert rows(sql, "SELECT key FROM cache") == ["new"]
    assert sql("UPDATE cache SET expires = mz_now()") == ["UPDATE 1"]
    assert sql("INSERT INTO cache SELECT key || '2', mz_now() FROM cache") == ["INSERT 0 1"]
    added = [change for change in changes_of(restless, "cache") if change[-1] > 0 and 5 < change[1] < 9000000000000]
    assert sorted(change[0] for change in added) == ["new", "new2"]
    assert all(expires == time_ for _, expires, time_, _ in added), "the time of the write, and no other"


def test_many_writes_that_speak_of_their_time(restless: Coordinator) -> None:
    """While others move the timeline all the while."""
    sql = SessionClient(restless)
    sql(f"CREATE TABLE t (k int, at bigint) {KEPT}")
    sql("CREATE TABLE other (a int)")
    sql("INSERT INTO t VALUES (0, 0)")
    over = threading.Event()

    def disturb() -> None:
        client = SessionClient(restless)
        while not over.is_set():
            assert client("INSERT INTO other VALUES (1)") == ["INSERT 0 1"]

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for number in range(1, 30):
            assert sql(f"UPDATE t SET k = {number}, at = mz_now() WHERE at < mz_now()") == ["UPDATE 1"]
    finally:
        over.set()
        thread.join()
    added = [change for change in changes_of(restless, "t") if change[-1] > 0 and change[0] > 0]
    assert len(added) == 29 and all(at == time_ for _, at, time_, _ in added)


def test_returning_says_the_time_of_the_write(restless: Coordinator) -> None:
    sql = SessionClient(restless)
    sql(f"CREATE TABLE t (k int, at bigint DEFAULT mz_now()) {KEPT}")
    inserted = rows(sql, "INSERT INTO t (k) VALUES (1) RETURNING at, mz_now()")[0].split("|")
    updated = rows(sql, "UPDATE t SET k = 2 RETURNING mz_now()")
    found = {change[0]: change[2] for change in changes_of(restless, "t") if change[-1] > 0}
    assert inserted == [str(found[1])] * 2
    assert updated == [str(found[2])]


def test_copy_fills_in_the_time_of_the_write(restless: Coordinator) -> None:
    sql = SessionClient(restless)
    sql(f"CREATE TABLE d (k text, at bigint DEFAULT mz_now(), n int NOT NULL DEFAULT 7) {KEPT}")
    target: Any = sql.session.run(sql.session.prepare("COPY d (k) FROM STDIN"))
    assert target.finish(iter([("a",), ("b",), ("b",)])) == "COPY 3"
    sql.session.sync()
    changes = changes_of(restless, "d")
    assert sorted((key, n, diff) for key, _, n, _, diff in changes) == [("a", 7, 1), ("b", 7, 2)]
    assert all(at == time_ for _, at, _, time_, _ in changes)


# mz_now() in blocks


def test_a_block_has_one_time(restless: Coordinator) -> None:
    sql, other = SessionClient(restless), SessionClient(restless)
    sql("CREATE TABLE t (k int, at bigint DEFAULT mz_now())")
    sql("CREATE TABLE u (k int)")
    sql("INSERT INTO t VALUES (0, 0), (9, 9000000000000)")
    sql("BEGIN")
    assert sql("DELETE FROM t WHERE at < mz_now()") == ["DELETE 1"]
    now = rows(sql, "SELECT mz_now()")
    other("INSERT INTO u VALUES (1)")
    assert sql("INSERT INTO t (k) VALUES (1)") == ["INSERT 0 1"]
    assert rows(sql, "INSERT INTO t VALUES (2, mz_now()) RETURNING at, mz_now()") == [f"{now[0]}|{now[0]}"]
    target: Any = sql.session.run(sql.session.prepare("COPY t (k) FROM STDIN"))
    target.finish(iter([(3,)]))
    sql.session.sync()
    assert sql("COMMIT") == ["COMMIT"]
    assert rows(sql, "SELECT DISTINCT at FROM t WHERE k < 9") == now
    assert rows(sql, "SELECT count(*) FROM t") == ["4"]


def test_statements_sent_together_have_one_time(restless: Coordinator) -> None:
    sql = SessionClient(restless)
    sql("CREATE TABLE t (k int, at bigint DEFAULT mz_now())")
    assert sql("INSERT INTO t (k) VALUES (1); INSERT INTO t (k) VALUES (2); SELECT 1")[:2] == ["INSERT 0 1"] * 2
    assert rows(sql, "SELECT count(*), count(DISTINCT at), min(at) > 1000000 FROM t") == ["2|1|t"]
    insert = sql.session.prepare("INSERT INTO t (k) VALUES ($1)")
    for number in range(5):  # as a pipeline
        sql.session.run(insert, [number + 10])
    sql.session.sync()
    assert rows(sql, "SELECT count(*) FROM t WHERE k >= 10") == ["5"]


def test_a_block_does_not_begin_long_ago(coordinator: Coordinator, clock: Any) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE t (k int, at bigint)")
    clock.now_ms += 10_000_000  # nobody moves the timeline meanwhile
    sql("BEGIN")
    rows(sql, "SELECT k FROM t")
    assert abs(int(rows(sql, "SELECT mz_now()")[0]) - clock.now_ms) < 5_000
    sql("ROLLBACK")


# Tags


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE x (a int)",
        "CREATE VIEW x AS SELECT a FROM t",
        "CREATE MATERIALIZED VIEW x AS SELECT a FROM t",
        "CREATE OR REPLACE VIEW v AS SELECT a FROM t",
        "CREATE INDEX x ON t (a)",
        "CREATE DEFAULT INDEX ON v",
        "CREATE SCHEMA x",
        "CREATE ROLE x",
        "CREATE DATABASE x",
        "ALTER ROLE r WITH PASSWORD 'x'",
        "CREATE REPLACEMENT MATERIALIZED VIEW x FOR m AS SELECT a + 1 AS a FROM t",
        "ALTER MATERIALIZED VIEW m2 APPLY REPLACEMENT r2",
        "ALTER MATERIALIZED VIEW m3 ROLLBACK REPLACEMENT",
        "ALTER MATERIALIZED VIEW m RENAME TO x",
        "ALTER TABLE t RENAME TO x",
        "ALTER TABLE t OWNER TO r",
        "ALTER MATERIALIZED VIEW m SET (RETAIN HISTORY FOR '1 day')",
        "ALTER TABLE timed SET (TTL '1 day' ON at)",
        "ALTER TABLE timed RESET (TTL)",
        "COMMENT ON TABLE t IS 'x'",
        "DROP VIEW v",
        "DROP TABLE w",
        "DROP MATERIALIZED VIEW m",
        "DROP ROLE r",
        "CREATE SOURCE x FROM LOAD GENERATOR COUNTER",
        "TRUNCATE w",
        "DELETE FROM w",
        "INSERT INTO w VALUES (1)",
        "UPDATE w SET a = 1",
        "SET search_path = public",
    ],
)
def test_tags_are_the_same_in_blocks(coordinator: Coordinator, sql: SessionClient, statement: str) -> None:
    for each in (
        "CREATE TABLE t (a int)",
        "CREATE TABLE w (a int)",
        "CREATE TABLE timed (at timestamptz) WITH (TTL '2 days' ON at)",
        "CREATE VIEW v AS SELECT a FROM t",
        "CREATE ROLE r",
        "CREATE MATERIALIZED VIEW m AS SELECT a FROM t",
        "CREATE MATERIALIZED VIEW m2 AS SELECT a FROM t",
        "CREATE REPLACEMENT MATERIALIZED VIEW r2 FOR m2 AS SELECT a + 1 AS a FROM t",
        "CREATE MATERIALIZED VIEW m3 AS SELECT a FROM t",
        "CREATE REPLACEMENT MATERIALIZED VIEW r3 FOR m3 AS SELECT a + 1 AS a FROM t",
        "ALTER MATERIALIZED VIEW m3 APPLY REPLACEMENT r3",
    ):
        assert not sql(each)[0].startswith("!"), each
    sql("BEGIN")
    inside = sql(statement)
    sql("ROLLBACK")
    outside = sql(statement)
    assert inside == outside
    assert not inside[0].startswith("!"), inside


# Turns


def test_claims_meet_where_one_writes_what_the_other_uses() -> None:
    turns = Turns()
    order: list[str] = []

    def claim(name: str, writes: str, reads: str, inside: Callable[[], object] = lambda: None) -> threading.Thread:
        def work() -> None:
            with turns.claimed(writes.split(), reads.split()):
                order.append(name)
                inside()

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    go = threading.Event()
    first = claim("first", "a", "b", lambda: go.wait(60))
    eventually(lambda: order == ["first"])
    apart = claim("apart", "c", "b")  # they only read the same
    apart.join(60)
    writes_read = claim("writes what is read", "b", "")
    eventually(lambda: len(turns) == 1)
    behind = claim("behind", "d", "b")  # it could be now, and then the one before might wait for ever
    eventually(lambda: len(turns) == 2)
    elsewhere = claim("elsewhere", "e", "")
    elsewhere.join(60)
    assert order == ["first", "apart", "elsewhere"]
    go.set()
    for thread in (first, writes_read, behind):
        thread.join(60)
    assert order == ["first", "apart", "elsewhere", "writes what is read", "behind"]


def test_a_write_does_not_lead_while_its_table_is_claimed() -> None:
    turns = Turns()
    with turns.claimed(["a"]):
        blocked, free = Entry(writes=frozenset("a")), Entry(writes=frozenset("b"))
        turns.enter(blocked)
        turns.enter(free)
        assert not blocked.leads and free.leads
        with turns.group(100) as group:
            assert group == [free]
            free.done = True
        turns.leave(free)
        assert not blocked.leads
    assert blocked.leads
    with turns.group(100) as group:
        assert group == [blocked]
        blocked.done = True
    turns.leave(blocked)
    assert len(turns) == 0


def test_who_waits_for_a_view_holds_up_nobody_else(
    coordinator: Coordinator, sql: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even those who write to the table below the view, nor definitions."""
    for each in ("CREATE TABLE t (a int)", "CREATE TABLE u (a int)", "CREATE TABLE w (a int)"):
        sql(each)
    sql("INSERT INTO t VALUES (1)")
    sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    assert rows(sql, "SELECT a FROM v") == ["1"]
    lagging = threading.Event()
    id = next(each.id for each in coordinator.catalog.state.items.values() if each.name == "v")
    timestamps = coordinator.timestamps
    complete = timestamps._complete
    monkeypatch.setattr(
        timestamps, "_complete", lambda each, at: (each != id or lagging.is_set()) and complete(each, at)
    )
    found: list[list[str]] = []
    slow = SessionClient(coordinator)
    thread = threading.Thread(target=lambda: found.append(slow("INSERT INTO w SELECT a FROM v")))
    thread.start()
    eventually(lambda: slow.session.info.running is not None)
    for statement in ("INSERT INTO u VALUES (1)", "UPDATE u SET a = 2", "INSERT INTO t VALUES (2)"):
        assert not sql(statement)[0].startswith("!")
    assert sql("CREATE TABLE another (a int)") == ["CREATE TABLE"]
    assert thread.is_alive() and not found
    lagging.set()
    coordinator.environment.wake()
    thread.join(60)
    assert found == [["INSERT 0 2"]]
    assert rows(sql, "SELECT a FROM w ORDER BY a") == ["1", "2"]


@pytest.mark.parametrize("shown", ["a", "CASE WHEN mz_now() > 0 THEN a END"])
def test_a_view_that_was_waited_for_is_not_waited_for_again(
    coordinator: Coordinator, sql: SessionClient, monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    """Once the turn has come, others wait for it: the view is read at the time at which it is complete."""
    for each in ("CREATE TABLE t (a int)", "CREATE TABLE u (a int)", "CREATE TABLE w (a bigint)"):
        sql(each)
    sql("INSERT INTO t VALUES (1)")
    sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    assert rows(sql, "SELECT a FROM v") == ["1"]
    id = next(each.id for each in coordinator.catalog.state.items.values() if each.name == "v")
    asked: list[int] = []
    reached = 0
    complete = coordinator.timestamps._complete

    def lagging(each: str, at: int) -> bool:
        if each == id:
            asked.append(at)
        return (each != id or at <= reached) and complete(each, at)

    monkeypatch.setattr(coordinator.timestamps, "_complete", lagging)
    found: list[list[str]] = []
    slow = SessionClient(coordinator)
    thread = threading.Thread(target=lambda: found.append(slow(f"INSERT INTO w SELECT {shown} FROM v")))
    thread.start()
    eventually(lambda: asked)
    first = asked[0]
    assert sql("INSERT INTO u VALUES (1)") == ["INSERT 0 1"]  # the clock goes on
    reached = first  # and the view no further
    coordinator.environment.wake()
    thread.join(60)
    assert found == [["INSERT 0 1"]]
    assert rows(sql, "SELECT a FROM w") == ["1"]


class Disturbed:
    """Another session writes to another table whenever a statement is evaluated, and has to get through."""

    def __init__(self, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        other, collection = SessionClient(coordinator), coordinator.peeks.collection
        other("CREATE TABLE other (a int)")
        inside = False

        def evaluate(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if not inside:
                inside = True
                thread = threading.Thread(target=other, args=("INSERT INTO other VALUES (1)",))
                thread.start()
                thread.join(20)
                inside = False
                assert not thread.is_alive(), "a writer to another table waits"
                self.times += 1
            return collection(*args, **kwargs)

        monkeypatch.setattr(coordinator.peeks, "collection", evaluate)


def test_who_speaks_of_its_time_holds_up_nobody_else(restless: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = SessionClient(restless)
    sql(f"CREATE TABLE t (k int, at bigint) {KEPT}")
    sql("INSERT INTO t VALUES (0, 0)")
    disturbed = Disturbed(restless, monkeypatch)
    assert sql("UPDATE t SET k = 1, at = mz_now() WHERE at < mz_now()") == ["UPDATE 1"]
    assert disturbed.times > 1
    added = [change for change in changes_of(restless, "t") if change[-1] > 0 and change[0] == 1]
    assert [at == time_ for _, at, time_, _ in added] == [True]


def test_rows_that_leave_before_the_time_of_a_write_are_not_written(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = SessionClient(coordinator)
    sql("CREATE TABLE t (k int, at mz_timestamp) WITH (TTL '1 second' ON at, RETAIN HISTORY FOR '10 days')")
    now = coordinator.timeline.now_ms
    sql("INSERT INTO t VALUES " + ", ".join(f"({n}, {now + n - 1000 + 40})" for n in range(2_000)))
    eventually(lambda: coordinator.timeline.now_ms > now + 80)  # so some rows have left before the statement
    disturbed = Disturbed(coordinator, monkeypatch)
    (tag,) = sql("UPDATE t SET k = k + 1000000")
    assert disturbed.times > 1
    changes = sorted(changes_of(coordinator, "t"), key=lambda change: change[2])
    written = max(time_ for k, _, time_, diff in changes if k >= 1_000_000 and diff > 0)
    contents: dict[tuple[int, int], int] = {}
    for k, at, time_, diff in changes:
        contents[k, at] = contents.get((k, at), 0) + diff
        assert contents[k, at] in (0, 1)
        assert diff < 0 or time_ < at + 1000, "a row that is due was written"
    left = [change for change in changes if change[0] < 1_000_000 and change[2] < written and change[3] < 0]
    assert tag == f"UPDATE {2_000 - len(left)}"
    assert len(left) > 0


def test_waiting_for_a_turn_ends_in_time_or_when_canceled(coordinator: Coordinator, sql: SessionClient) -> None:
    sql("CREATE TABLE t (a int)")
    sql("CREATE TABLE u (a int)")
    id = next(each.id for each in coordinator.catalog.state.items.values() if each.name == "t")
    with coordinator.timeline.exclusive([id]):
        for statement in ("INSERT INTO t VALUES (1)", "UPDATE t SET a = 2", "INSERT INTO u SELECT a FROM t"):
            sql("SET lock_timeout = '20ms'")
            assert sql(statement) == ["! 55P03 canceling statement due to lock timeout"]
            sql("SET lock_timeout = 0")
            sql("SET statement_timeout = '20ms'")
            assert sql(statement) == ["! 57014 canceling statement due to statement timeout"]
            sql("SET statement_timeout = 0")
        assert sql("INSERT INTO u VALUES (1)") == ["INSERT 0 1"]
    assert sql("INSERT INTO t VALUES (1)") == ["INSERT 0 1"]
    assert rows(sql, "SELECT a FROM t") == ["1"]


def test_counters_that_refer_to_each_other_lose_nothing(restless: Coordinator) -> None:
    """Each reads the other's table and writes to its own; sums are as if one had gone after the other."""
    sql = SessionClient(restless)
    for name in ("a", "b"):
        sql(f"CREATE TABLE {name} (n int)")
        sql(f"INSERT INTO {name} VALUES (0)")
    sql("CREATE TABLE log (n int)")

    def work(mine: str, theirs: str) -> None:
        client = SessionClient(restless)
        for _ in range(10):
            assert client(f"UPDATE {mine} SET n = {mine}.n + 1 FROM {theirs} WHERE {theirs}.n >= 0") == ["UPDATE 1"]
            assert client(f"INSERT INTO log SELECT {mine}.n + {theirs}.n FROM {mine}, {theirs}") == ["INSERT 0 1"]

    threads = [threading.Thread(target=work, args=pair) for pair in (("a", "b"), ("b", "a"), ("a", "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(sql, "SELECT a.n, b.n FROM a, b") == ["20|10"]
    assert rows(sql, "SELECT count(*), max(n) FROM log") == ["30|30"]


def test_blocks_and_statements_at_once_keep_the_sum(restless: Coordinator) -> None:
    """Who moves amounts between tables, in blocks and not, canceled or not: nobody ever sees another sum."""
    sql = SessionClient(restless)
    for number in range(3):
        sql(f"CREATE TABLE t{number} (k int, n int, at bigint DEFAULT 0)")
        sql(f"INSERT INTO t{number} SELECT g, 100 FROM generate_series(1, 4) g")
    sql("CREATE INDEX ON t0 (k)")
    sql("CREATE VIEW everything AS SELECT n FROM t0 UNION ALL SELECT n FROM t1 UNION ALL SELECT n FROM t2")
    sql("CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS s FROM everything")
    wrong: list[list[str]] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        client = SessionClient(restless)
        for _ in range(12):
            one, two = rng.sample(range(3), 2)
            kind = rng.choice(["block", "block", "alone", "view", "canceled"])
            if kind == "block":
                client("BEGIN")
                client(f"UPDATE t{one} SET n = n - 7, at = mz_now() WHERE k = {rng.randint(1, 4)}")
                if rng.random() < 0.3:
                    client("SAVEPOINT s")
                    client(f"DELETE FROM t{two}")
                    client("ROLLBACK TO s")
                client(f"UPDATE t{two} SET n = n + 7 WHERE k = {rng.randint(1, 4)}")
                found = client("SELECT sum(n) FROM everything")
                client(rng.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
            elif kind == "canceled":
                timer = threading.Timer(rng.random() / 100, client.session.cancel)
                timer.start()
                client(f"UPDATE t{one} SET n = n + 1 - 1, at = mz_now()")
                timer.join()  # else it might come late, and end a block
                found = client("SELECT sum(n) FROM everything")
            else:
                client(f"UPDATE t{one} SET at = mz_now() WHERE at < mz_now()")
                found = client("SELECT s FROM total" if kind == "view" else "SELECT sum(n) FROM everything")
            if found[-1] != "1200" and not found[0].startswith("! 57014"):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert rows(sql, "SELECT count(*), sum(n) FROM everything") == ["12|1200"]
    assert len(restless.timeline.turns) == 0
