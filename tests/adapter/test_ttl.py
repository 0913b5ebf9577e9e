"""TTL of tables: rows leave at their millisecond, as a temporal filter over a table without one would have it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from everview.adapter import expiry
from everview.adapter.catalog.items import Table
from everview.adapter.coordinator import Coordinator
from everview.adapter.expiry import due_times
from everview.storage.shard import FOREVER
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.adapter.test_subscribe import Subscriber

ROOT = Path(__file__).parents[2]
TYPES = {
    "bigint": ("mz_now()::bigint + {}", "ts + {ttl}"),
    "numeric": ("mz_now()::numeric + {}", "ts + {ttl}"),
    "numeric(20,1)": ("mz_now()::numeric + {} - 0.5", "ceil(ts) + {ttl}"),
    "date": ("mz_now()::date + {} / 40", "ts + interval '{ttl} ms'"),
    "mz_timestamp": ("mz_now() + {}", "ts + {ttl}"),
    "timestamptz": ("mz_now()::timestamptz + interval '{} ms'", "ts + interval '{ttl} ms'"),
    "timestamptz(6)": (
        "mz_now()::timestamptz + interval '{} ms' + interval '1 microsecond'",
        "ts + interval '{ttl} ms'",
    ),
    "timestamp": ("mz_now()::timestamptz::timestamp + interval '{} ms'", "ts + interval '{ttl} ms'"),
}


@pytest.mark.parametrize("kind", TYPES)
def test_it_is_what_a_temporal_filter_says(
    coordinator: Coordinator, sql: SessionClient, clock: Clock, kind: str, rng: random.Random
) -> None:
    """The oracle: a table without a TTL to which the same is written, and the filter asked at each time."""
    ttl, (value, bound) = 40, TYPES[kind]
    sql(f"CREATE TABLE t (k int, ts {kind}) WITH (TTL '{ttl} ms' ON ts, RETAIN HISTORY FOR '1h')")
    sql(f"CREATE TABLE plain (k int, ts {kind}) WITH (RETAIN HISTORY FOR '1h')")
    sql("CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY FOR '1h') AS SELECT k, count(*) AS n FROM t GROUP BY k")
    start = coordinator.timeline.upper
    for number in range(40):
        clock.now_ms += rng.choice([0, 0, 1, 3, 17, 90])
        times = [value.format(rng.randrange(-60, 120)) if rng.random() < 0.9 else "NULL" for _ in range(3)]
        rows = ", ".join(f"({number % 7}, {time})" for time in times)
        action = rng.randrange(3)
        while True:
            sql("BEGIN")  # both at one time
            for table in ("t", "plain"):
                done = sql(
                    f"INSERT INTO {table} VALUES {rows}" if action else f"DELETE FROM {table} WHERE k = {number % 7}"
                )
                assert not done[0].startswith("!")
            ended = sql("COMMIT")
            if ended == ["COMMIT"]:
                break
            assert ended[0].startswith("! 40001") and not action  # a row that it read has left meanwhile
        if rng.random() < 0.3:
            sql("SELECT count(*) FROM v")
    clock.now_ms += 20
    sql("SELECT mz_now()")
    end = coordinator.timeline.upper - 1
    for time in sorted(rng.sample(range(start, end), min(30, end - start - 1))):
        there = f"mz_now() < {bound.format(ttl=ttl)} OR ts IS NULL"
        wanted = sql(f"SELECT k, ts FROM plain WHERE {there} AS OF {time}")
        assert sorted(sql(f"SELECT k, ts FROM t AS OF {time}")) == sorted(wanted), time
    left = sorted(sql(f"SELECT k, count(*) FROM t GROUP BY k AS OF {end}")[1:])
    assert sorted(sql(f"SELECT k, n FROM v AS OF {end}")[1:]) == left


def test_a_watcher_is_told_each_millisecond(coordinator: Coordinator, sql: SessionClient, clock: Clock) -> None:
    sql("CREATE TABLE t (k int, ts bigint) WITH (TTL '1s' ON ts)")
    watcher = Subscriber(coordinator, "SUBSCRIBE TO t")
    base = clock.now_ms + 500
    sql(f"INSERT INTO t VALUES (1, {base}), (2, {base + 1}), (2, {base + 1}), (3, {base + 7}), (4, NULL)")
    assert len(watcher.take()) == 4
    clock.now_ms += 3_600_000  # one jump over all of it
    assert sql("SELECT k FROM t") == ["k", "4"]
    assert [(int(row[0]), *row[1:3]) for row in watcher.take()] == [
        (base + 1000, -1, 1),
        (base + 1001, -2, 2),
        (base + 1007, -1, 3),
    ]


def test_storage_forgets(coordinator: Coordinator, sql: SessionClient, clock: Clock) -> None:
    sql("CREATE TABLE t (k int, ts bigint) WITH (TTL '1s' ON ts)")
    (item,) = (each for each in coordinator.catalog.state.items.values() if each.name == "t")
    for _ in range(5):
        sql("INSERT INTO t SELECT g, mz_now() FROM generate_series(1, 1000) g")
        clock.now_ms += 5_000
    clock.now_ms += 60_000
    assert sql("SELECT count(*) FROM t") == ["count", "0"]
    clock.now_ms += 60_000
    sql("INSERT INTO t VALUES (1, NULL)")
    coordinator.environment.maintenance.run()
    with coordinator.environment.contents(item.id, coordinator.timeline.upper - 1) as selection:
        assert selection.rows_max <= 1


def test_writes_see_what_is_there_at_their_time(coordinator: Coordinator, sql: SessionClient, clock: Clock) -> None:
    sql("CREATE TABLE t (k int, ts bigint) WITH (TTL '1s' ON ts)")
    sql("INSERT INTO t VALUES (1, mz_now()), (2, mz_now() + 5000)")
    clock.now_ms += 2_000
    assert sql("UPDATE t SET ts = mz_now() + 60000") == ["UPDATE 1"]  # the other has left
    assert sql("DELETE FROM t WHERE k = 1") == ["DELETE 0"]
    assert sql("INSERT INTO t SELECT k + 10, ts FROM t") == ["INSERT 0 1"]
    clock.now_ms += 6_000
    assert sorted(sql("SELECT k FROM t")) == ["12", "2", "k"]
    sql("INSERT INTO t VALUES (3, mz_now())")
    assert sql("BEGIN") == ["BEGIN"]
    assert sorted(sql("SELECT k FROM t")) == ["12", "2", "3", "k"]
    clock.now_ms += 2_000
    sql("INSERT INTO t VALUES (4, NULL)")
    assert sql("COMMIT")[0].startswith("! 40001")  # what it read is no longer so


def test_definitions(coordinator: Coordinator, sql: SessionClient, clock: Clock) -> None:
    assert sql("CREATE TABLE t (k int, ts text) WITH (TTL '1s' ON ts)")[0].startswith("! 42804")
    assert sql("CREATE TABLE t (k int, ts date) WITH (TTL '1s' ON tz)")[0].startswith("! 42703")
    assert sql("CREATE TABLE t (k int, ts date) WITH (TTL '1 month' ON ts)") == ['! 22023 invalid TTL: "1 month"']
    assert sql("CREATE TABLE t (k int, ts date) WITH (TTL '-1 day' ON ts)") == ['! 22023 invalid TTL: "-1 day"']
    assert sql("CREATE TABLE t (k int, ts date) WITH (TTL '40 days' ON ts)") == ["CREATE TABLE"]
    assert "TTL '3456000000 ms' ON ts" in sql("SHOW CREATE TABLE t")[1]
    assert sql("SELECT ttl_column, ttl_ms FROM mz_tables") == ["ttl_column|ttl_ms", "ts|3456000000"]
    sql("INSERT INTO t VALUES (1, '-infinity'), (2, 'infinity'), (3, NULL), (4, '1999-01-01'), (5, '2023-11-01')")
    assert sorted(sql("SELECT k FROM t")) == ["2", "3", "5", "k"]
    assert sql("ALTER TABLE t RENAME COLUMN ts TO at") == ["ALTER TABLE"]
    assert "ON at" in sql("SHOW CREATE TABLE t")[1]
    assert sql("ALTER TABLE t RESET (TTL)") == ["ALTER TABLE"]
    sql("INSERT INTO t VALUES (6, '1999-01-01')")
    clock.now_ms += 50 * 86_400_000
    assert sorted(sql("SELECT k FROM t")) == ["2", "3", "5", "6", "k"]
    assert sql("ALTER TABLE t SET (TTL '1 day' ON at)") == ["ALTER TABLE"]
    assert sorted(sql("SELECT k FROM t")) == ["2", "3", "k"]
    assert sql("ALTER TABLE t SET (TTL '1 day' ON k)")[0].startswith("! 42804")
    for statement in ("BEGIN", "CREATE TABLE u (k int, ts date) WITH (TTL '1 day' ON ts)"):
        sql(statement)
    sql("INSERT INTO u VALUES (1, '2000-01-01'), (2, '2100-01-01')")
    assert sql("COMMIT") == ["COMMIT"]
    assert sql("SELECT k FROM u") == ["k", "2"]
    assert sql("DROP TABLE u") == ["DROP TABLE"]
    clock.now_ms += 86_400_000
    assert sql("INSERT INTO t VALUES (7, NULL)") == ["INSERT 0 1"]


def test_more_rows_than_are_kept(
    coordinator: Coordinator, sql: SessionClient, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "KEPT_ROWS_MAX", 10)
    sql("CREATE TABLE t (k int, ts bigint) WITH (TTL '1s' ON ts, RETAIN HISTORY FOR '1h')")
    sql("CREATE TABLE plain (k int, ts bigint) WITH (RETAIN HISTORY FOR '1h')")
    base = clock.now_ms + 100
    for first in range(0, 300, 50):
        for table in ("t", "plain"):
            rows = f"SELECT g, {base} + (g * 37 % 100) * 10 FROM generate_series({first}, {first + 49}) g"
            sql(f"INSERT INTO {table} {rows}")
    sql(f"INSERT INTO t SELECT -g, {base + 333} FROM generate_series(1, 200) g")  # all in one millisecond
    sql("DELETE FROM t WHERE k % 5 = 0 AND k > 0")
    clock.now_ms = base + 1_600
    sql("INSERT INTO t VALUES (1000, NULL)")
    for time in range(base + 1_000, base + 1_600, 7):
        wanted = f"SELECT count(*) FROM plain WHERE ts + 1000 > {time} AND (k % 5 <> 0 OR k = 0)"
        assert sql(f"SELECT count(*) FROM t WHERE k >= 0 AS OF {time}") == sql(wanted), time
        left = "200" if time < base + 1_333 else "0"
        assert sql(f"SELECT count(*) FROM t WHERE k < 0 AS OF {time}") == ["count", left]
    clock.now_ms += 3_600_000
    assert sql("SELECT k FROM t") == ["k", "1000"]


def test_it_goes_on_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as first:
        sql = SessionClient(first)
        sql("CREATE TABLE t (k int, ts bigint) WITH (TTL '1s' ON ts, RETAIN HISTORY FOR '1h')")
        base = clock.now_ms + 500
        sql(f"INSERT INTO t VALUES (1, {base}), (2, {base + 60_000}), (3, NULL)")
    clock.now_ms += 30_000
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as second:
        sql = SessionClient(second)
        assert sorted(sql("SELECT k FROM t")) == ["2", "3", "k"]
        assert sorted(sql(f"SELECT k FROM t AS OF {base + 999}")) == ["1", "2", "3", "k"]
        assert sorted(sql(f"SELECT k FROM t AS OF {base + 1000}")) == ["2", "3", "k"]
        clock.now_ms += 60_000
        assert sql("SELECT k FROM t") == ["k", "3"]


def test_nobody_has_to_ask(tmp_path: Path) -> None:
    """The pacemaker moves the clock when rows are due, by the wall clock."""
    with Coordinator.open(tmp_path / "data") as coordinator:
        sql = SessionClient(coordinator)
        sql("CREATE TABLE t (k int, ts timestamptz) WITH (TTL '300 ms' ON ts)")
        watcher = Subscriber(coordinator, "SUBSCRIBE TO t")
        sql("INSERT INTO t VALUES (1, now())")
        _, due = sql("SELECT (extract(epoch FROM ts) * 1000)::bigint + 300 FROM t")
        rows: list[tuple[object, ...]] = []
        while len(rows) < 2:
            watcher.session.interrupts.wait(lambda: False, 0.01)
            rows += watcher.take()
        assert [row[1:3] for row in rows] == [(1, 1), (-1, 1)]
        assert abs(int(rows[1][0]) - int(due)) <= 1  # type: ignore[call-overload]


CHILD = """
    import sys
    from everview.adapter.coordinator import Coordinator
    from tests.adapter.conftest import Clock
    from tests.adapter.scripts import SessionClient

    clock = Clock(int(sys.argv[2]))
    with Coordinator.open(sys.argv[1], clock=clock, ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        for number in range(1000):
            clock.now_ms += 150
            sql("BEGIN")
            for table in ("t", "plain"):
                sql(f"INSERT INTO {table} SELECT g, mz_now() + g * 30 FROM generate_series(1, 20) g")
            sql("COMMIT")
            sql("SELECT count(*) FROM t")
"""


@pytest.mark.parametrize("place", ["commit.before", "commit.after"])
def test_a_crash_at_any_point_retracts_nothing_twice(tmp_path: Path, place: str, rng: random.Random) -> None:
    now = 1_700_000_000_000
    with Coordinator.open(tmp_path / "data", clock=Clock(now), ticking=False) as coordinator:
        sql = SessionClient(coordinator)
        sql("CREATE TABLE t (k int, ts bigint) WITH (TTL '1s' ON ts, RETAIN HISTORY FOR '1h')")
        sql("CREATE TABLE plain (k int, ts bigint) WITH (RETAIN HISTORY FOR '1h')")
    for _ in range(2):
        arguments = ["-c", textwrap.dedent(CHILD), str(tmp_path / "data"), str(now)]
        environment = {**os.environ, "EVERVIEW_FAILPOINT": f"{place}:{rng.randrange(10, 60)}"}
        done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, check=False)
        assert done.returncode == -9
        now += 100_000
        with Coordinator.open(tmp_path / "data", clock=Clock(now), ticking=False) as coordinator:
            sql = SessionClient(coordinator)
            assert sql("SELECT k FROM t") == ["k"]
            upper = coordinator.timeline.upper
            low, high = sql("SELECT min(ts), max(ts) FROM plain")[1].split("|")
            for time in rng.sample(range(int(low) - 500, min(int(high) + 1100, upper)), 10):
                wanted = sql(f"SELECT k, ts FROM plain WHERE mz_now() < ts + 1000 AS OF {time}")
                assert sorted(sql(f"SELECT k, ts FROM t AS OF {time}")) == sorted(wanted)


def test_due_times() -> None:
    micros = pa.chunked_array([pa.array([0, 1, 999, 1000, 1001, -1, None, 2**63 - 1], pa.int64())])
    stamps = micros.cast(pa.timestamp("us"))
    assert due_times(stamps, 5).tolist() == [5, 6, 6, 6, 7, 5, FOREVER, FOREVER]
    days = pa.chunked_array([pa.array([0, 1, -1, None, 2**31 - 1], pa.int32()).cast(pa.date32())])
    assert due_times(days, 5).tolist() == [5, 86_400_005, -86_399_995, FOREVER, FOREVER]
    numbers = pa.chunked_array([pa.array([0, -(2**63), 2**63 - 1, 2**63 - 3, None], pa.int64())])
    assert due_times(numbers, 5).tolist() == [5, -(2**63) + 5, FOREVER, FOREVER, FOREVER]
    assert due_times(numbers, 2**63 - 2).dtype == np.int64


def test_what_is_due_after_a_start_leaves_without_being_asked_for(tmp_path: Path) -> None:
    with Coordinator.open(tmp_path / "data", ticking=False) as first:
        sql = SessionClient(first)
        sql("CREATE TABLE t (k int, ts timestamptz) WITH (TTL '200 ms' ON ts)")
        sql("INSERT INTO t VALUES (1, now()), (2, NULL)")
        (item,) = (each for each in first.catalog.state.items.values() if each.name == "t")
    with Coordinator.open(tmp_path / "data") as second:
        while True:
            time = second.timeline.upper - 1
            with second.environment.contents(item.id, time) as selection:
                if selection.contents().num_rows == 1:
                    break
            second.environment.wait(lambda seen=time: second.timeline.upper - 1 > seen, 5)  # type: ignore[misc]


def test_in_a_block_and_beside_a_drop(coordinator: Coordinator, sql: SessionClient, clock: Clock) -> None:
    sql("CREATE TABLE t (k int, ts bigint)")
    sql("INSERT INTO t VALUES (1, 5), (2, NULL)")
    for statement in ("BEGIN", "ALTER TABLE t SET (TTL '1s' ON ts)", "ROLLBACK"):
        sql(statement)
    assert sorted(sql("SELECT k FROM t")) == ["1", "2", "k"]
    for statement in ("BEGIN", "ALTER TABLE t SET (TTL '1s' ON ts)", "COMMIT"):
        assert not sql(statement)[0].startswith("!")
    assert sql("SELECT k FROM t") == ["k", "2"]
    sql("CREATE TABLE u (k int, ts bigint) WITH (TTL '1s' ON ts)")
    sql("INSERT INTO u VALUES (1, mz_now())")
    (item,) = (each for each in coordinator.catalog.state.of(Table) if each.name == "u")
    sql("DROP TABLE u")
    coordinator.timeline.expiring.add(item)  # as if the drop had not been told yet
    clock.now_ms += 5_000
    assert sql("INSERT INTO t VALUES (3, NULL)") == ["INSERT 0 1"]
    assert coordinator.timeline.expiring.dues() == []
