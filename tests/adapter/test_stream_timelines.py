"""Sources that keep the times of their streams, and what is made from them: timelines of their own."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.stream_locations import schema_to_read
from everview.cdc.compaction import forget
from everview.cdc.files import Folder
from everview.cdc.inspect import Stream, examine
from tests.adapter.conftest import Clock
from tests.adapter.delivery import WAIT_S, id_of, in_sqlite, ok, rows, until_state
from tests.adapter.scripts import SessionClient
from tests.adapter.test_cdc_sources import feeder
from tests.adapter.test_restart import abandon, open_at
from tests.waiting import eventually

Update = tuple[tuple[int, int], int, int]  # row, time, diff


class Written:
    """A stream of rows (k, v), written by hand, step by step."""

    def __init__(self, path: Path) -> None:
        self.path, self.frontier, self._files = path, 0, 0
        path.mkdir()

    def step(self, updates: Iterable[Update], upper: int | None) -> None:
        """More updates, and all times before `upper` are closed by that; None ends the stream."""
        updates = list(updates)
        times = sorted({at for _, at, _ in updates})
        counts = [{"time": at, "count": sum(each == at for _, each, _ in updates)} for at in times]
        data = [{"data": {"k": k, "v": v}, "time": at, "diff": diff} for (k, v), at, diff in updates]
        progress = {"lower": [self.frontier], "upper": [] if upper is None else [upper], "counts": counts}
        lines = [json.dumps({"progress": progress}), *([json.dumps({"updates": data})] if data else [])]
        self._files += 1
        (self.path / f"{self._files:06}.jsonl").write_text("\n".join(lines) + "\n")
        self.frontier = upper if upper is not None else self.frontier


def source(name: str, stream: Written, timeline: str | None = "x", more: str = "") -> str:
    kept = f", TIMELINE '{timeline}'" if timeline is not None else ""
    return f"CREATE SOURCE {name} (k int, v int) FROM CDC FILES '{stream.path}' WITH (POLL_MS 60000{kept}{more})"


def poll(coordinator: Coordinator, *names: str) -> None:
    for name in names:
        while feeder(coordinator, name).step():
            pass
        assert feeder(coordinator, name).status().error is None


@pytest.fixture
def one(tmp_path: Path) -> Written:
    return Written(tmp_path / "one")


@pytest.fixture
def two(tmp_path: Path) -> Written:
    return Written(tmp_path / "two")


def test_a_view_has_the_times_of_the_stream(sql: SessionClient, coordinator: Coordinator, one: Written) -> None:
    one.step([((1, 10), 3, 1), ((2, 20), 5, 1)], 8)
    ok(sql, source("s", one), "CREATE MATERIALIZED VIEW v AS SELECT sum(v) AS total, count(*) AS n FROM s")
    poll(coordinator, "s")
    assert rows(ok(sql, "SELECT *, mz_now() FROM v")) == ["30|2|7"]
    assert rows(ok(sql, "SELECT k, mz_now() FROM s")) == ["1|7", "2|7"]
    for at, expected in ((2, "NULL|0"), (3, "10|1"), (4, "10|1"), (5, "30|2")):
        assert rows(ok(sql, f"SELECT * FROM v AS OF {at}")) == [expected]
    one.step([((1, 10), 9, -1)], 12)
    poll(coordinator, "s")
    assert rows(ok(sql, "SELECT * FROM v")) == ["20|1"]
    frontiers = "SELECT write_frontier FROM mz_internal.mz_frontiers f JOIN mz_objects o ON o.id = f.object_id"
    assert rows(ok(sql, f"{frontiers} WHERE name IN ('s', 'v')")) == ["12", "12"]
    told = rows(ok(sql, "EXPLAIN TIMESTAMP FOR SELECT * FROM v"))[0]
    assert "timeline: x" in told and "timeline frontier: [12]" in told and "query timestamp: 11" in told
    timelines = "SELECT name, timeline FROM mz_internal.mz_object_timelines t JOIN mz_objects o ON o.id = t.object_id"
    assert rows(ok(sql, f"{timelines} WHERE name IN ('s', 'v')")) == ["s|x", "v|x"]
    assert "TIMELINE 'x'" in rows(ok(sql, "SHOW CREATE SOURCE s"))[0]


def test_sources_of_one_timeline_are_joined_at_each_of_its_times(
    sql: SessionClient, coordinator: Coordinator, one: Written, two: Written
) -> None:
    ok(sql, source("a", one), source("b", two))
    ok(sql, "CREATE VIEW j AS SELECT a.k, a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k")
    ok(sql, "CREATE MATERIALIZED VIEW m AS SELECT * FROM j", "CREATE INDEX i ON j (k)")
    one.step([((1, 1), 2, 1), ((1, 1), 6, -1), ((1, 2), 6, 1)], 10)
    two.step([((1, 7), 4, 1)], 5)
    poll(coordinator, "a", "b")
    for relation in ("m", "j"):
        assert rows(ok(sql, f"SELECT *, mz_now() FROM {relation}")) == ["1|1|7|4"]
        assert rows(ok(sql, f"SELECT * FROM {relation} AS OF 3")) == []
    # What is complete is what all sources of the timeline are; who wants more at once says so.
    assert rows(ok(sql, "SELECT v, mz_now() FROM a")) == ["1|4"]
    ok(sql, "SET transaction_isolation = 'serializable'")
    assert rows(ok(sql, "SELECT v, mz_now() FROM a")) == ["2|9"]
    ok(sql, "SET transaction_isolation = 'strict serializable'")
    two.step([], 20)
    poll(coordinator, "b")
    for relation in ("m", "j"):
        assert rows(ok(sql, f"SELECT *, mz_now() FROM {relation} WHERE k = 1")) == ["1|2|7|9"]


MIXED = [
    "SELECT * FROM s, t",
    "SELECT * FROM s, other",
    "SELECT * FROM v WHERE k IN (SELECT k FROM tv)",
    "CREATE VIEW n AS SELECT * FROM s UNION ALL SELECT * FROM t",
    "CREATE MATERIALIZED VIEW n AS SELECT * FROM v JOIN tv USING (k)",
    "SUBSCRIBE (SELECT s.k FROM s, t)",
    "SELECT * FROM s WHERE k IN (SELECT k FROM t) AS OF 3",
    "INSERT INTO t SELECT * FROM s",
    "UPDATE t SET v = (SELECT max(v) FROM s)",
    "DELETE FROM t USING v WHERE t.k = v.k",
    "COPY (SELECT * FROM s, t) TO STDOUT",
    "EXPLAIN TIMESTAMP FOR SELECT * FROM s, t",
    "SELECT * FROM s, constant",
    "CREATE SINK d FROM v (TABLE 'v') KEY (k), t (TABLE 't') KEY (k) INTO SQLITE (PATH '/nowhere/x.db')",
    "CREATE MATERIALIZED VIEW w REPLACING v AS SELECT * FROM t",
    "CREATE MATERIALIZED VIEW w REPLACING v AS SELECT * FROM other",
]


@pytest.mark.parametrize("statement", MIXED)
def test_what_is_on_two_timelines_is_refused(
    sql: SessionClient, coordinator: Coordinator, one: Written, two: Written, statement: str
) -> None:
    one.step([((1, 1), 2, 1)], 5)
    ok(
        sql,
        source("s", one),
        source("other", two, "y"),
        "CREATE TABLE t (k int, v int)",
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM s",
        "CREATE VIEW tv AS SELECT * FROM t",
        "CREATE MATERIALIZED VIEW constant AS SELECT 1 AS k",
    )
    (answer,) = sql(statement)
    assert answer.startswith("! 0A000") and "timeline" in answer and " cannot be " in answer, answer
    assert 'timeline "x"' in answer and ("of the environment" in answer or 'timeline "y"' in answer)


def test_a_block_is_on_one_timeline(sql: SessionClient, coordinator: Coordinator, one: Written) -> None:
    one.step([((1, 1), 2, 1)], 5)
    ok(sql, source("s", one), "CREATE TABLE t (k int)", "INSERT INTO t VALUES (1)")
    poll(coordinator, "s")
    ok(sql, "BEGIN")
    assert rows(ok(sql, "SELECT k, mz_now() FROM s")) == ["1|4"]
    one.step([((2, 2), 7, 1)], 9)
    poll(coordinator, "s")
    assert rows(ok(sql, "SELECT k, mz_now() FROM s")) == ["1|4"]
    assert sql("SELECT * FROM t")[0].startswith('! 25000 "t", on the timeline of the environment, cannot be read')
    ok(sql, "ROLLBACK", "BEGIN", "SELECT * FROM t")
    assert sql("SELECT * FROM s")[0].startswith('! 25000 "s", on timeline "x", cannot be read in this transaction')
    ok(sql, "ROLLBACK", "BEGIN", "SELECT * FROM s")
    assert sql("INSERT INTO t VALUES (2)")[0].startswith('! 25000 "t", on the timeline of the environment, cannot')
    ok(sql, "ROLLBACK", "BEGIN", "INSERT INTO t VALUES (2)")
    assert sql("SELECT * FROM s")[0].startswith('! 25000 "s", on timeline "x", cannot be read in this transaction')
    ok(sql, "ROLLBACK")
    assert rows(ok(sql, "SELECT k FROM t")) == ["1"] and rows(ok(sql, "SELECT k FROM s")) == ["1", "2"]


def test_constants_are_on_every_timeline(sql: SessionClient, coordinator: Coordinator, one: Written) -> None:
    one.step([((1, 1), 2, 1)], 5)
    ok(sql, "CREATE VIEW c AS SELECT * FROM (VALUES (1, 'one'), (2, 'two')) AS c (k, name)", "CREATE INDEX i ON c (k)")
    ok(sql, source("s", one), "CREATE MATERIALIZED VIEW m AS SELECT name FROM s JOIN c USING (k)")
    poll(coordinator, "s")
    assert rows(ok(sql, "SELECT name FROM s JOIN c USING (k)")) == rows(ok(sql, "SELECT * FROM m")) == ["one"]
    assert rows(ok(sql, "SELECT name FROM c WHERE k = 2")) == ["two"]
    assert rows(ok(sql, "SELECT count(*) FROM s, mz_databases")) == ["1"]


def test_temporal_filters_are_about_the_time_of_the_stream(
    sql: SessionClient, coordinator: Coordinator, one: Written, clock: Clock
) -> None:
    """`v` is until when a row is there."""
    one.step([((1, 12), 2, 1), ((2, 30), 3, 1)], 5)
    ok(sql, source("s", one), "CREATE MATERIALIZED VIEW m AS SELECT k FROM s WHERE mz_now() < v")
    plain = "SELECT k FROM s WHERE mz_now() < v"
    for upper, expected in ((5, ["1", "2"]), (12, ["1", "2"]), (13, ["2"]), (40, [])):
        if upper > 5:
            one.step([], upper)
        clock.now_ms += 100_000
        poll(coordinator, "s")
        assert rows(ok(sql, "SELECT k FROM m")) == rows(ok(sql, plain)) == expected
    coordinator.pacemaker._beat()  # the wall clock has no part in it
    assert rows(ok(sql, "SELECT k FROM m AS OF 11")) == ["1", "2"] and rows(ok(sql, "SELECT k FROM m AS OF 12")) == [
        "2"
    ]


@pytest.mark.parametrize("query", ["SELECT k, v FROM s", "SELECT k, sum(v) AS v FROM s GROUP BY k"])
def test_a_subscription_follows_the_stream(
    sql: SessionClient, coordinator: Coordinator, one: Written, query: str
) -> None:
    one.step([((1, 10), 3, 1)], 5)
    ok(sql, source("s", one))
    poll(coordinator, "s")
    ok(sql, "BEGIN", f"DECLARE c CURSOR FOR SUBSCRIBE ({query}) AS OF 3 WITH (PROGRESS)")
    one.step([((1, 10), 6, -1), ((2, 20), 7, 1)], 9)
    poll(coordinator, "s")
    found: list[str] = []
    deadline = time.monotonic() + WAIT_S
    while "9|t|NULL|NULL|NULL" not in found:
        assert time.monotonic() < deadline, found
        found += ok(sql, "FETCH ALL c WITH (timeout = '1s')")[1:]
    changes = [each for each in found if "|f|" in each]
    assert changes == ["3|f|1|1|10", "6|f|-1|1|10", "7|f|1|2|20"]
    ok(sql, "COMMIT")
    assert ok(sql, f"SUBSCRIBE ({query}) AS OF 3 UP TO 8")[1:] == ["3|1|1|10", "6|-1|1|10", "7|1|2|20"]


def test_a_durable_subscription_holds_the_times_of_the_stream(tmp_path: Path, clock: Clock, one: Written) -> None:
    one.step([((1, 10), 3, 1)], 5)
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        ok(sql, source("s", one))
        poll(coordinator, "s")
        ok(sql, "CREATE SUBSCRIPTION mine FOR s WITH (HOLD FOR '1 hour')")
        for number in range(1, 6):
            one.step([((number, 0), number * 1_000, 1)], number * 1_000 + 1)
            poll(coordinator, "s")
            coordinator._each_second()
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        expected = ["4|1|1|10", *(f"{number * 1_000}|1|{number}|0" for number in range(1, 6))]
        assert ok(sql, "SUBSCRIBE TO mine UP TO 5001")[1:] == expected
        ok(sql, "ALTER SUBSCRIPTION mine ACKNOWLEDGE BEFORE 3000")
        assert ok(sql, "SUBSCRIBE TO mine UP TO 5001")[1:] == expected[3:]


def test_a_time_that_is_not_complete_is_waited_for(
    sql: SessionClient, coordinator: Coordinator, one: Written, two: Written
) -> None:
    ok(sql, source("s", one), "CREATE MATERIALIZED VIEW v AS SELECT count(*) FROM s")
    answers: dict[str, list[str]] = {}

    def ask(statement: str) -> threading.Thread:
        def run() -> None:
            answers[statement] = SessionClient(coordinator)(statement)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    waiting = [ask("SELECT count, mz_now() FROM v"), ask("SELECT * FROM v AS OF 6")]
    assert sql("EXPLAIN TIMESTAMP FOR SELECT * FROM v")[0] == "Timestamp"  # of that nobody waits
    one.step([((1, 1), 2, 1)], 5)
    poll(coordinator, "s")
    waiting[0].join(WAIT_S)
    assert rows(answers["SELECT count, mz_now() FROM v"]) == ["1|4"]  # not at an earlier time than is complete first
    assert "SELECT * FROM v AS OF 6" not in answers
    one.step([((1, 1), 6, 1)], 9)
    poll(coordinator, "s")
    waiting[1].join(WAIT_S)
    assert rows(answers["SELECT * FROM v AS OF 6"]) == ["2"]
    ok(sql, source("never", two))
    waiting = [ask("SELECT * FROM never"), ask("SELECT * FROM never AS OF 3")]
    ok(sql, "DROP SOURCE never")
    for each in waiting:
        each.join(WAIT_S)
    for answer in (answers["SELECT * FROM never"], answers["SELECT * FROM never AS OF 3"]):
        assert answer[0].startswith("! 42"), answer  # it is gone, or was before it was looked for


def test_a_stream_that_ends(sql: SessionClient, coordinator: Coordinator, one: Written, two: Written) -> None:
    one.step([((1, 1), 2, 1)], 5)
    ok(sql, source("s", one), "CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k")
    poll(coordinator, "s")
    one.step([((1, 1), 8, 1)], None)
    poll(coordinator, "s")
    assert rows(ok(sql, "SELECT *, mz_now() FROM v")) == ["1|2|8"]
    assert rows(ok(sql, "SELECT k, n FROM v AS OF 7")) == ["1|1"]
    upper = "SELECT write_frontier FROM mz_internal.mz_frontiers f JOIN mz_objects o ON o.id = f.object_id"
    eventually(lambda: rows(ok(sql, f"{upper} WHERE name = 'v'")) == ["NULL"], WAIT_S)  # the view has ended, too
    assert ok(sql, "SUBSCRIBE v AS OF 2")[1:] == ["2|1|1|1", "8|-1|1|1", "8|1|1|2"]
    ok(sql, f"CREATE SINK out FROM v INTO CDC FILES '{one.path}-out' WITH (INTERVAL_MS 0)")
    until_state(coordinator, "out", "ended")
    assert examine(Stream(f"{one.path}-out"), thoroughly=True).frontier.empty
    ok(sql, "CREATE MATERIALIZED VIEW after AS SELECT sum(n) AS n FROM v")
    assert rows(ok(sql, "SELECT n, mz_now() FROM after")) == ["2|8"]
    assert sql("CREATE MATERIALIZED VIEW w REPLACING v AS SELECT k, count(v) AS n FROM s GROUP BY k")[0].startswith(
        "! 55000"
    )
    two.step([((1, 5), 11, 1)], 20)
    ok(sql, source("b", two))
    poll(coordinator, "b")
    assert rows(ok(sql, "SELECT s.k, b.v, mz_now() FROM s JOIN b USING (k)")) == ["1|5|19", "1|5|19"]


def test_time_never_goes_back(tmp_path: Path, clock: Clock, one: Written, two: Written) -> None:
    """Not when a source comes to be that has read nothing, nor after a restart."""
    one.step([((1, 1), 2, 1)], 100)
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        ok(sql, source("a", one))
        poll(coordinator, "a")
        assert rows(ok(sql, "SELECT mz_now() FROM a")) == ["99"]
        ok(sql, source("b", two))
        assert rows(ok(sql, "SELECT mz_now() FROM a")) == ["99"]
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        assert rows(ok(sql, "SELECT mz_now() FROM a")) == ["99"]
        two.step([((1, 1), 60, 1)], 300)
        poll(coordinator, "b")
        assert rows(ok(sql, "SELECT b.k, mz_now() FROM a, b")) == ["1|99"]
        one.step([], 200)
        poll(coordinator, "a")
        assert rows(ok(sql, "SELECT b.k, mz_now() FROM a, b")) == ["1|199"]
        ok(sql, "DROP SOURCE a", "DROP SOURCE b", source("a", one))
        poll(coordinator, "a")
        assert rows(ok(sql, "SELECT k FROM a AS OF 2")) == ["1"]  # another timeline, which has forgotten nothing


def test_history_is_kept_as_long_as_asked(sql: SessionClient, coordinator: Coordinator, one: Written) -> None:
    ok(sql, source("s", one), "CREATE MATERIALIZED VIEW short AS SELECT sum(v) AS v FROM s")
    ok(sql, "CREATE MATERIALIZED VIEW long WITH (RETAIN HISTORY FOR '20s') AS SELECT sum(v) AS v FROM s")
    ok(sql, "CREATE DEFAULT INDEX ON long")
    for number in range(1, 31):
        one.step([((1, 1), number * 1_000, 1)], number * 1_000 + 1)
        poll(coordinator, "s")
        coordinator._each_second()
        assert rows(ok(sql, "SELECT v FROM long")) == rows(ok(sql, "SELECT v FROM short")) == [str(number)]
    assert sql("SELECT * FROM short AS OF 20000")[0].startswith("! 55000")
    assert sql("SELECT * FROM long AS OF 5000")[0].startswith("! 55000")
    assert rows(ok(sql, "SELECT * FROM long AS OF 15000")) == ["15"]
    ok(sql, "ALTER MATERIALIZED VIEW long RESET (RETAIN HISTORY)")
    for number in range(31, 34):
        one.step([((1, 1), number * 1_000, 1)], number * 1_000 + 1)
        poll(coordinator, "s")
        coordinator._each_second()
    assert sql("SELECT * FROM long AS OF 25000")[0].startswith("! 55000")


def test_a_view_is_replaced_at_a_time_of_the_stream(sql: SessionClient, coordinator: Coordinator, one: Written) -> None:
    one.step([((1, 10), 3, 1)], 5)
    ok(sql, source("s", one), "CREATE MATERIALIZED VIEW v AS SELECT sum(v) AS x FROM s")
    ok(sql, "CREATE MATERIALIZED VIEW w AS SELECT x + 1 AS y FROM v")
    poll(coordinator, "s")
    assert rows(ok(sql, "SELECT * FROM w")) == ["11"]
    ok(sql, "CREATE MATERIALIZED VIEW r REPLACING v AS SELECT sum(v) * 2 AS x FROM s")
    done: list[list[str]] = []
    applying = threading.Thread(
        target=lambda: done.append(SessionClient(coordinator)("ALTER MATERIALIZED VIEW v APPLY REPLACEMENT r"))
    )
    applying.start()
    deadline = time.monotonic() + WAIT_S
    upper = 6
    while applying.is_alive():  # the new definition holds from a time on that the stream closes
        assert time.monotonic() < deadline
        one.step([], upper)
        upper += 1
        poll(coordinator, "s")
        applying.join(0.05)
    assert done == [["ALTER MATERIALIZED VIEW"]]
    one.step([((1, 5), upper, 1)], upper + 2)
    poll(coordinator, "s")
    assert rows(ok(sql, "SELECT * FROM v")) == ["30"] and rows(ok(sql, "SELECT * FROM w")) == ["31"]
    assert rows(ok(sql, "SELECT * FROM w AS OF 4")) == ["11"]


def test_sinks_carry_the_times_of_the_stream(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path, one: Written
) -> None:
    one.step([((1, 10), 3, 1), ((1, 5), 6, 1)], 8)
    ok(sql, source("s", one), "CREATE MATERIALIZED VIEW v AS SELECT k, sum(v) AS total FROM s GROUP BY k")
    poll(coordinator, "s")
    ok(
        sql,
        f"CREATE SINK out FROM v INTO CDC FILES '{tmp_path}/out' WITH (INTERVAL_MS 0)",
        f"CREATE SINK lite FROM v INTO SQLITE (PATH '{tmp_path}/x.db', TABLE 'v') KEY (k)",
    )
    one.step([((2, 1), 9, 1)], 12)
    poll(coordinator, "s")
    ids = [id_of(coordinator, each) for each in ("out", "lite")]
    eventually(lambda: all((coordinator.sinks.status(id).frontier or 0) >= 12 for id in ids), WAIT_S)  # type: ignore[union-attr]
    stats = examine(Stream(str(tmp_path / "out")), thoroughly=True)
    assert stats.sound
    text = "".join(path.read_text() for path in (tmp_path / "out").glob("*.jsonl"))
    times = {update["time"] for line in text.splitlines() for update in json.loads(line).get("updates", ())}
    assert times == {3, 6, 9}
    assert in_sqlite(tmp_path / "x.db", "v") == (12, ["1|15", "2|1"])


def test_a_source_of_a_stream_that_has_forgotten(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path, one: Written
) -> None:
    """It begins where the stream begins; one that has read less than was forgotten stops, and says so."""
    one.step([((1, 10), 3, 1)], 5)
    ok(sql, source("early", one))
    poll(coordinator, "early")
    one.step([((1, 10), 7, -1), ((2, 20), 9, 1)], 20)
    folder = Folder(str(one.path))
    item: Any = coordinator.catalog.state.items[id_of(coordinator, "early")]
    forget(folder, schema_to_read(item.columns), 15)
    feeder(coordinator, "early").step()
    assert "has forgotten what happened before" in (feeder(coordinator, "early").status().error or "")
    ok(sql, source("late", one, "z"))
    poll(coordinator, "late")
    assert rows(ok(sql, "SELECT k FROM late")) == ["2"]
    assert sql("SELECT k FROM late AS OF 3")[0].startswith("! 55000")


REFUSED = [
    ("TIMELINE ''", '! 22023 invalid value for TIMELINE: ""'),
    ("TIMELINE 'x', TIMELINE 'y'", "! 42601 option TIMELINE specified more than once"),
    ("TIMELINES 'x'", "! 22023 unknown option TIMELINES"),
]


@pytest.mark.parametrize(("options", "answer"), REFUSED)
def test_timelines_that_cannot_be(sql: SessionClient, one: Written, options: str, answer: str) -> None:
    assert sql(f"CREATE SOURCE s (k int, v int) FROM CDC FILES '{one.path}' WITH ({options})") == [answer]


def test_what_a_source_on_a_timeline_cannot(sql: SessionClient, one: Written) -> None:
    ok(sql, source("s", one))
    assert sql("ALTER SOURCE s RESET") == ['! 42809 source "s" cannot be reset']
    assert sql("CREATE SOURCE g FROM LOAD GENERATOR COUNTER WITH (TIMELINE 'x')")[0].startswith("! 22023")
    assert sql("CREATE TABLE t (id int) WITH (TIMELINE 'x')")[0].startswith("! 22023")


def test_views_are_the_same_wherever_the_stream_is_read(
    tmp_path: Path, clock: Clock, one: Written, two: Written, rng: random.Random
) -> None:
    """Two environments read two streams, when and as often as they like, with restarts: equal at every time."""
    clocks = {"left": clock, "right": Clock(1_900_000_000_000)}
    view = (
        "SELECT a.k, count(*) AS n, max(b.v) AS most, sum(a.v) AS total FROM a JOIN b ON a.k = b.k"
        " WHERE mz_now() < a.v + 40 GROUP BY a.k"
    )
    sides: dict[str, Coordinator] = {}
    for side, each in clocks.items():
        sides[side] = open_at(tmp_path / side, each)
        sql = SessionClient(sides[side])
        ok(sql, source("a", one), source("b", two), f"CREATE MATERIALIZED VIEW v AS {view}")
    present: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}
    for _ in range(30):
        for name, stream in (("a", one), ("b", two)):
            lower, upper = stream.frontier, stream.frontier + rng.randrange(1, 6)
            updates: dict[tuple[tuple[int, int], int], int] = {}
            for at in range(lower, upper):
                if present[name] and rng.random() < 0.3:
                    row, diff = present[name].pop(rng.randrange(len(present[name]))), -1
                else:
                    row, diff = (rng.randrange(4), rng.randrange(60)), 1
                    present[name].append(row)
                updates[row, at] = diff
            stream.step([(row, at, diff) for (row, at), diff in updates.items()], upper)
        for side in ("left", "right"):
            if rng.random() < 0.5:
                poll(sides[side], *rng.sample(["a", "b"], rng.randrange(1, 3)))
            if rng.random() < 0.2:
                abandon(sides[side]) if rng.random() < 0.5 else sides[side].close()
                clocks[side].now_ms += rng.randrange(-5_000, 100_000)
                sides[side] = open_at(tmp_path / side, clocks[side])
    for coordinator in sides.values():
        poll(coordinator, "a", "b")
    latest = min(one.frontier, two.frontier)
    for at in range(latest):
        found = [rows(ok(SessionClient(each), f"SELECT * FROM v AS OF {at}")) for each in sides.values()]
        again = [rows(ok(SessionClient(each), f"{view} AS OF {at}")) for each in sides.values()]
        assert found[0] == found[1] == again[0] == again[1], at
    for coordinator in sides.values():
        coordinator.close()
