"""Temporal filters in SQL: views, indexes and subscriptions whose rows come and go at their own milliseconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from everview.adapter.catalog.items import MaterializedView
from everview.adapter.coordinator import Coordinator
from everview.compute.sql.errors import SqlError
from everview.compute.view import View
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.adapter.test_subscribe import Subscriber
from tests.waiting import eventually

START = 1_700_000_000_000
VALID = "SELECT k, until FROM e WHERE mz_now() >= since AND mz_now() < until"


class Still(Clock):
    """A clock that stands until it is moved."""

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Still:
    return Still(START)


@pytest.fixture
def events(sql: SessionClient) -> SessionClient:
    sql("CREATE TABLE e (k int, since bigint, until bigint) WITH (RETAIN HISTORY FOR '1h')")
    return sql


def to(coordinator: Coordinator, clock: Still, ms: int) -> None:
    """It is so many milliseconds after the start."""
    clock.now_ms = START + ms
    coordinator.timeline.advance(clock.now_ms)


def insert(sql: SessionClient, *rows: tuple[int, int, int]) -> None:
    """Rows with bounds that count from the start."""
    values = ", ".join(f"({k}, {START + since}, {START + until})" for k, since, until in rows)
    assert sql(f"INSERT INTO e VALUES {values}") == [f"INSERT 0 {len(rows)}"]


def collected(subscriber: Subscriber, count: int) -> list[tuple[Any, ...]]:
    """So many rows, with times that count from the start; the view may be a moment behind the timeline."""
    found: list[tuple[Any, ...]] = []
    while len(found) < count:
        found += [(int(row[0]) - START, *row[1:]) for row in subscriber.take()]
    return found


@pytest.mark.parametrize("over", ["view", "query", "plain view", "index"])
def test_changes_are_at_their_milliseconds(
    coordinator: Coordinator, events: SessionClient, clock: Still, over: str
) -> None:
    made = {
        "view": ["CREATE MATERIALIZED VIEW v AS " + VALID],
        "plain view": ["CREATE VIEW v AS " + VALID],
        "index": ["CREATE VIEW v AS " + VALID, "CREATE DEFAULT INDEX ON v"],
        "query": [],
    }[over]
    for statement in made:
        assert events(statement)[0].startswith("CREATE")
    subscriber = Subscriber(coordinator, f"SUBSCRIBE ({VALID})" if over == "query" else "SUBSCRIBE TO v")
    assert subscriber.take() == []
    clock.now_ms += 10
    insert(events, (1, 0, 500), (2, 300, 700), (3, 900, 900), (4, 0, 5))
    assert collected(subscriber, 1) == [(10, 1, 1, START + 500)]
    to(coordinator, clock, 299)
    assert events("SELECT k FROM v" if made else VALID.replace("k, until", "k")) == ["k", "1"]
    to(coordinator, clock, 2000)
    assert collected(subscriber, 3) == [
        (300, 1, 2, START + 700),
        (500, -1, 1, START + 500),
        (700, -1, 2, START + 700),
    ]
    subscriber.rows.close()


def test_as_of_and_up_to(coordinator: Coordinator, events: SessionClient, clock: Still) -> None:
    events(f"CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY FOR '1h') AS {VALID}")
    insert(events, (1, 100, 500), (2, 300, 700))
    to(coordinator, clock, 1000)
    for what in ("TO v", f"({VALID})"):
        subscriber = Subscriber(coordinator, f"SUBSCRIBE {what} AS OF {START + 300} UP TO {START + 700}")
        assert collected(subscriber, 3) == [
            (300, 1, 1, START + 500),
            (300, 1, 2, START + 700),
            (500, -1, 1, START + 500),
        ]
        assert subscriber.take() == []
    assert events(f"SELECT k FROM v AS OF {START + 499}") == ["k", "1", "2"]
    assert events(f"SELECT k FROM v AS OF {START + 500}") == ["k", "2"]


def test_a_read_is_never_behind_what_was_due(coordinator: Coordinator, events: SessionClient, clock: Still) -> None:
    events(f"CREATE MATERIALIZED VIEW v AS {VALID}")
    events("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM v")
    insert(events, (1, 0, 500), (2, 0, 600))
    assert events("SELECT n FROM above") == ["n", "2"]
    stands = coordinator.timeline.upper
    clock.now_ms += 400
    views = [item.id for item in coordinator.catalog.state.of(MaterializedView)]
    # The last tick is committed, and about to end.
    eventually(lambda: all(coordinator.maintenance.settled(id, clock.now_ms) for id in views))
    assert events("SELECT n FROM above") == ["n", "2"]
    assert coordinator.timeline.upper == stands, "nothing came or went, so there was no need to move"
    clock.now_ms += 150
    assert events("SELECT n FROM above") == ["n", "1"]
    clock.now_ms += 150
    assert events("SELECT k FROM v") == ["k"]
    assert events("SELECT n FROM above") == ["n", "0"]


def test_the_write_s_time_is_stored_in_any_column(events: SessionClient, clock: Still) -> None:
    events("CREATE TABLE w (n numeric, i bigint, t timestamp, z timestamptz, s text, d bigint DEFAULT mz_now() + 1)")
    row = "mz_now() + 5000, mz_now(), mz_now(), mz_logical_timestamp(), mz_now()"
    assert events(f"INSERT INTO w (n, i, t, z, s) VALUES ({row})") == ["INSERT 0 1"]
    (line,) = events("SELECT * FROM w")[1:]
    number, whole, stamp, zoned, text, default = line.split("|")
    at = int(whole)
    assert (int(number), int(text), int(default)) == (at + 5000, at, at + 1)
    assert stamp == zoned.removesuffix("+00") and stamp.startswith("2023-11-14 22:13:20")
    assert events("UPDATE w SET n = mz_now()") == ["UPDATE 1"]
    assert int(events("SELECT n FROM w")[1]) > at
    assert events("INSERT INTO w (i) VALUES (mz_now() - interval '1 day')")[0].startswith("! 42804")


@pytest.mark.parametrize("statement", ["CREATE MATERIALIZED VIEW v AS ", "SUBSCRIBE ", "EXPLAIN MAINTAINED PLAN FOR "])
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT k, mz_now() FROM e", "mz_now() can stand only in comparisons that restrict a maintained query"),
        (
            "SELECT k FROM e WHERE mz_now()::text <> 'x'",
            "mz_now() is inside an expression that cannot be turned around",
        ),
        ("SELECT k FROM e WHERE k = 1 OR mz_logical_timestamp() > until + mz_now()", "mz_now() is compared with"),
        (
            "SELECT k FROM e WHERE mz_now()::bigint / k < since",
            "mz_now() can be multiplied or divided only by a constant other than zero",
        ),
        (
            "SELECT k FROM e WHERE mz_now()::bigint % 2 = since",
            "mz_now() is inside an expression that cannot be turned around",
        ),
        ("SELECT k FROM e GROUP BY k HAVING max(mz_now()) > 3", "mz_now() can stand only in comparisons that restrict"),
    ],
)
def test_what_cannot_be_maintained_is_refused_where_it_stands(
    coordinator: Coordinator, events: SessionClient, statement: str, query: str, message: str
) -> None:
    before = set(coordinator.environment.ids())
    text = statement + (f"({query})" if statement == "SUBSCRIBE " else query)
    with pytest.raises(SqlError) as caught:
        events.session.run(events.session.prepare(text))
    events.session.fail()
    events.session.sync()
    assert caught.value.sqlstate == "0A000" and caught.value.message.startswith(message)
    assert caught.value.hint is not None
    place = text.find("mz_")
    assert caught.value.position == place + 1
    assert set(coordinator.environment.ids()) == before and not coordinator.subscriptions()
    assert not events(query)[0].startswith("!"), "a query that is run once may say anything of its time"


def test_a_plain_view_may_say_anything_until_it_is_indexed(events: SessionClient) -> None:
    assert events("CREATE VIEW p AS SELECT k, mz_now() AS now FROM e WHERE mz_now() < since OR k = 1") == [
        "CREATE VIEW"
    ]
    events("INSERT INTO e VALUES (1, 0, 0)")
    ((_, now),) = [line.split("|") for line in events("SELECT * FROM p")[1:]]
    assert int(now) >= START
    with pytest.raises(SqlError) as caught:
        events.session.run(events.session.prepare("CREATE INDEX ON p (k)"))
    events.session.fail()
    events.session.sync()
    assert caught.value.sqlstate == "0A000"
    assert caught.value.position is None, "it is the text of the view, not of this statement"


def test_an_index_serves_look_ups(coordinator: Coordinator, events: SessionClient, clock: Still) -> None:
    events(f"CREATE VIEW p AS {VALID}")
    events("CREATE INDEX by_k ON p (k)")
    insert(events, (1, 0, 500), (2, 0, 600))
    assert events("SELECT k FROM p WHERE k = 1") == ["k", "1"]
    clock.now_ms += 500
    assert events("SELECT k FROM p WHERE k = 1") == ["k"]
    assert events("SELECT k FROM p WHERE k = 2") == ["k", "2"]


def test_constants_come_and_go_as_well(coordinator: Coordinator, sql: SessionClient, clock: Still) -> None:
    rows = f"(VALUES (1, {START + 100}), (2, {START + 200})) AS x (k, until)"
    assert sql(f"CREATE MATERIALIZED VIEW c AS SELECT k FROM {rows} WHERE mz_now() < until")[0].startswith("CREATE")
    assert sql("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM c") == ["CREATE MATERIALIZED VIEW"]
    assert sql("SELECT n FROM above") == ["n", "2"]
    clock.now_ms = START + 100
    assert sql("SELECT k, mz_now() FROM c") == ["k|mz_now", f"2|{clock.now_ms}"]
    clock.now_ms = START + 200
    assert sql("SELECT n, mz_now() >= 0 AS later FROM above") == ["n|later", "0|t"]


def test_errors_of_bounds_are_errors_of_the_view(events: SessionClient) -> None:
    events("CREATE MATERIALIZED VIEW v AS SELECT k FROM e WHERE mz_now() < 1000 / k")
    events("INSERT INTO e VALUES (0, 0, 0)")
    assert events("SELECT * FROM v") == ["! 22012 division by zero"]
    events("DELETE FROM e")
    assert events("SELECT * FROM v") == ["k"]
    events("CREATE TABLE f (at numeric)")
    events("CREATE MATERIALIZED VIEW w AS SELECT at FROM f WHERE mz_now() >= at")
    events("INSERT INTO f VALUES (1.5)")
    assert events("SELECT * FROM w") == ["! 22003 mz_timestamp out of range"]


def test_what_waits_outlives_the_process(tmp_path: Path, clock: Still) -> None:
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as first:
        sql = SessionClient(first)
        sql("CREATE TABLE e (k int, since bigint, until bigint)")
        sql(f"CREATE MATERIALIZED VIEW v AS {VALID}")
        insert(sql, (1, 0, 5_000), (2, 4_000, 9_000))
        assert sql("SELECT k FROM v") == ["k", "1"]
    clock.now_ms += 4_999
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as second:
        sql = SessionClient(second)
        assert sql("SELECT k FROM v") == ["k", "1", "2"]
        clock.now_ms += 1
        assert sql("SELECT k FROM v") == ["k", "2"]


@pytest.fixture
def ticking(tmp_path: Path, clock: Still) -> Iterator[Coordinator]:
    with Coordinator.open(tmp_path / "data", clock=clock) as opened:
        yield opened


def test_the_timeline_moves_when_something_is_due(ticking: Coordinator, clock: Still) -> None:
    sql = SessionClient(ticking)
    sql("CREATE TABLE e (k int, since bigint, until bigint)")
    sql(f"CREATE MATERIALIZED VIEW v AS {VALID}")
    subscriber = Subscriber(ticking, "SUBSCRIBE TO v")
    insert(sql, (1, 0, 60_000), (2, 30_000, 60_000))
    assert collected(subscriber, 1)[0][1:] == (1, 1, START + 60_000)
    for ms, row in ((30_000, (30_000, 1, 2)), (60_000, (60_000, -1, 1))):
        clock.now_ms = START + ms
        ticking.pacemaker.look()
        assert collected(subscriber, 1)[0][:3] == row
    subscriber.rows.close()


def test_a_change_is_there_at_its_time_not_a_second_later(tmp_path: Path) -> None:
    with Coordinator.open(tmp_path / "data") as opened:
        sql = SessionClient(opened)
        sql("CREATE TABLE e (k int, until bigint)")
        sql("CREATE MATERIALIZED VIEW v AS SELECT k, until FROM e WHERE mz_now() < until")
        subscriber = Subscriber(opened, "SUBSCRIBE TO v")
        late = []
        for number in range(5):
            sql(f"INSERT INTO e VALUES ({number}, mz_now() + 130)")
            found: list[tuple[Any, ...]] = []
            while not any(row[1] < 0 for row in found):
                found += subscriber.take()
            gone = found[-1]
            assert gone[0] == gone[3], "at exactly its time"
            late.append(time.time() * 1000 - int(gone[0]))
        assert min(late) < 500, f"without waiting for a second to be full: {late}"


def test_explain_binds_as_a_view_is_made(events: SessionClient) -> None:
    text = events("EXPLAIN MAINTAINED PLAN FOR SELECT k FROM e WHERE mz_now() < until OR k = 7")[1]
    assert "Temporal" in text and "updates to come" in text and "1700000000" not in text
    events("CREATE TABLE names (k int, name text)")
    joined = "SELECT name FROM names JOIN e ON e.k = names.k WHERE mz_now() < until + 5"
    kept = events(f"EXPLAIN MAINTAINED PLAN FOR {joined}")[1].partition("Kept\n")[2].partition("\n\n")[0]
    assert "until e.until + 5" in kept and "for ever" in kept and "until their time" in kept
    events(f"CREATE MATERIALIZED VIEW v AS {joined}")
    assert "until e.until + 5 (" in events("EXPLAIN MATERIALIZED VIEW v")[1]
    for query, code in (("SELECT now()", "0A000"), ("SELECT * FROM mz_tables", "0A000"), ("SELECT 1 AS OF 5", "0A000")):
        assert events(f"EXPLAIN MAINTAINED PLAN FOR {query}")[0].startswith(f"! {code}"), query


def test_a_date_that_means_never(events: SessionClient) -> None:
    events("CREATE TABLE s (tz timestamptz)")
    events("CREATE MATERIALIZED VIEW v AS SELECT tz FROM s WHERE mz_now() - interval '1 day' < tz")
    events("INSERT INTO s VALUES ('9999-12-31'), ('2000-01-01')")
    expected = ["tz", "9999-12-31 00:00:00+00"]
    assert events("SELECT tz FROM s WHERE mz_now() - interval '1 day' < tz") == expected
    assert events("SELECT * FROM v") == expected


@pytest.mark.parametrize(
    "condition",
    [
        "mz_now()::timestamp - s < ts",
        "mz_now()::timestamp + -s < ts",
        "(mz_now()::timestamptz - s / 2) - s / 2 < ts::timestamptz",
        "NOT (mz_now()::timestamp - s >= ts)",
        "mz_now()::date - s < ts OR k = 0",
        "mz_now()::timestamp + s >= ts",
        "mz_now()::date - extract(day FROM s)::int < ts::date",
    ],
)
def test_what_leaves_the_calendar_fails_in_views_as_in_queries(events: SessionClient, condition: str) -> None:
    query = f"SELECT k FROM spans WHERE {condition}"
    events("CREATE TABLE spans (k int, s interval, ts timestamp)")
    events(f"CREATE MATERIALIZED VIEW v AS {query}")
    events(
        "INSERT INTO spans VALUES (1, '10 days', '9000-01-01'), (2, NULL, '9000-01-01'), (3, '10 days', '1990-01-01')"
    )
    assert events("SELECT * FROM v ORDER BY k") == events(f"{query} ORDER BY k")
    assert not events(query)[0].startswith("!")
    for span in ("'4500000 days'", "'400000000 days'"):
        events(f"INSERT INTO spans VALUES (4, {span}, '2000-01-01')")
        assert events("SELECT * FROM v") == events(query), span
        events("DELETE FROM spans WHERE k = 4")
        assert events("SELECT * FROM v ORDER BY k") == events(f"{query} ORDER BY k")
    assert events("INSERT INTO spans VALUES (4, '2000000000 days', '2000-01-01')") == ["INSERT 0 1"]
    assert events("SELECT * FROM v")[0].startswith("! 22008") and events(query)[0].startswith("! 22008")


def test_constants_that_leave_the_calendar_fail_in_views_as_in_queries(events: SessionClient) -> None:
    events("CREATE TABLE s (ts timestamp)")
    moved = ("timestamp - interval '9000 years'", "timestamptz + interval '300000 years'", "date - 5000000")
    for number, moment in enumerate(moved):
        query = f"SELECT ts FROM s WHERE mz_now()::{moment} < ts"
        assert events(f"CREATE MATERIALIZED VIEW v{number} AS {query}") == ["CREATE MATERIALIZED VIEW"]
        assert events(f"SELECT * FROM v{number}") == events(query) == ["ts"]
        events("INSERT INTO s VALUES ('2000-01-01')")
        assert events(f"SELECT * FROM v{number}") == events(query)
        assert events(query)[0].startswith("! 22008")
        events("DELETE FROM s")
    assert events("CREATE MATERIALIZED VIEW far AS SELECT ts FROM s WHERE mz_now() - interval '9000 years' < ts") == [
        "CREATE MATERIALIZED VIEW"
    ]
    events("INSERT INTO s VALUES ('2000-01-01')")
    assert events("SELECT * FROM far") == ["ts", "2000-01-01 00:00:00"], "a time becomes infinite instead"


def test_several_intervals_at_their_milliseconds(coordinator: Coordinator, events: SessionClient, clock: Still) -> None:
    query = "SELECT k FROM e WHERE NOT (mz_now() >= since AND mz_now() < until) OR mz_now() IN (since + 1, 3)"
    events(f"CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY FOR '1h') AS {query}")
    clock.now_ms += 10
    insert(events, (1, 100, 200), (2, 300, 250))
    to(coordinator, clock, 1000)
    for ms in (99, 100, 101, 102, 199, 200, 250, 299, 300, 301):
        asked = events(f"{query} AS OF {START + ms}")
        assert sorted(events(f"SELECT k FROM v AS OF {START + ms}")) == sorted(asked), ms
    assert events(f"SELECT k FROM v AS OF {START + 100}") == ["k", "2"]
    assert sorted(events(f"SELECT k FROM v AS OF {START + 101}")) == ["1", "2", "k"]


@contextmanager
def in_form(form: int, folder: Path, clock: Still, monkeypatch: pytest.MonkeyPatch) -> Iterator[SessionClient]:
    """An environment of a server that keeps views in an earlier form."""
    with monkeypatch.context() as before:
        before.setattr("everview.compute.dataflow.FORM", form)
        before.setattr("everview.compute.view.View.of", partial(View.of, form=form))
        with Coordinator.open(folder, clock=clock, ticking=False) as first:
            yield SessionClient(first)


def test_a_view_goes_on_in_the_form_in_which_it_was_made(
    tmp_path: Path, clock: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was made before filters went below joins keeps its state so, and is exact."""
    joined = "SELECT e.k FROM e JOIN o ON e.k = o.k WHERE mz_now() < until"
    with in_form(1, tmp_path / "data", clock, monkeypatch) as sql:
        sql("CREATE TABLE e (k int, since bigint, until bigint)")
        sql("CREATE TABLE o (k int)")
        sql(f"CREATE MATERIALIZED VIEW v AS {joined}")
        sql("INSERT INTO o VALUES (1), (2)")
        insert(sql, (1, 0, 5_000), (2, 0, 9_000))
        assert sql("SELECT k FROM v") == ["k", "1", "2"]
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as second:
        sql = SessionClient(second)
        assert "Temporal" in sql("EXPLAIN MATERIALIZED VIEW v")[1].partition("Join")[0]
        sql(f"CREATE MATERIALIZED VIEW w AS {joined}")
        assert "Temporal" not in sql("EXPLAIN MATERIALIZED VIEW w")[1].partition("Join")[0]
        sql("DELETE FROM o WHERE k = 2")
        for ms in (0, 4_999, 5_000, 9_000):
            clock.now_ms = START + ms
            assert sql("SELECT k FROM v") == sql("SELECT k FROM w") == ["k", *(["1"] if ms < 5_000 else [])]


def test_a_view_keeps_what_a_condition_that_is_never_true_does_not_bound_if_it_was_made_so(
    tmp_path: Path, clock: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = "SELECT e.k FROM e JOIN o ON e.k = o.k WHERE mz_now() < e.until AND NULL AND mz_now() < o.until"
    with in_form(3, tmp_path / "data", clock, monkeypatch) as sql:
        sql("CREATE TABLE e (k int, since bigint, until bigint)")
        sql("CREATE TABLE o (k int, until bigint)")
        sql(f"CREATE MATERIALIZED VIEW v AS {joined}")
        sql(f"INSERT INTO o VALUES (1, {START + 5_000})")
        insert(sql, (1, 0, 5_000))
        assert sql("SELECT k FROM v") == ["k"]
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as second:
        sql = SessionClient(second)
        assert "for ever" in "\n".join(sql("EXPLAIN MATERIALIZED VIEW v"))
        sql(f"CREATE MATERIALIZED VIEW w AS {joined}")
        assert "for ever" not in "\n".join(sql("EXPLAIN MATERIALIZED VIEW w"))
        for ms in (0, 4_999, 5_000, 9_000):
            clock.now_ms = START + ms
            sql(f"INSERT INTO o VALUES (1, {START + ms})")
            assert sql("SELECT k FROM v") == sql("SELECT k FROM w") == ["k"]


def stays(view: str, sql: SessionClient) -> list[bool]:
    """Of each arrangement of a view, whether it keeps its rows for ever."""
    kept = "\n".join(sql(f"EXPLAIN MATERIALIZED VIEW {view}")).partition("Kept\n")[2].partition("\n\n")[0]
    return ["for ever" in each for each in kept.splitlines()]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT e.k, g AS n FROM e, generate_series(1, e.k) AS g WHERE mz_now() < e.until",
        "SELECT e.k, g AS n FROM e, generate_series(e.since, e.until, 4000) AS g WHERE mz_now() < g + 1000",
        "SELECT e.k, x.n FROM e, LATERAL (SELECT o.n FROM o WHERE o.k = e.k ORDER BY o.n LIMIT 1) AS x"
        " WHERE mz_now() < e.until",
        "SELECT e.k, o.n FROM e FULL JOIN o ON e.k = o.k WHERE mz_now() < e.until AND mz_now() < o.until",
        "SELECT e.k, o.n FROM e JOIN o ON e.k = o.k WHERE mz_now() < LEAST(e.until, o.until)",
    ],
)
def test_a_view_goes_on_as_it_was_made_before_laterals_were_bounded(
    query: str, tmp_path: Path, clock: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_form(4, tmp_path / "data", clock, monkeypatch) as sql:
        sql("CREATE TABLE e (k int, since bigint, until bigint)")
        sql("CREATE TABLE o (k int, n bigint, until bigint)")
        sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        sql(f"INSERT INTO o VALUES (1, 7, {START + 5_000}), (3, 7, {START + 7_000})")
        insert(sql, (1, 0, 5_000), (2, 0, 9_000), (3, 0, 9_000))
        before = stays("v", sql)
    assert any(before)
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as second:
        sql = SessionClient(second)
        assert stays("v", sql) == before
        sql(f"CREATE MATERIALIZED VIEW w AS {query}")
        assert sum(stays("w", sql)) == ("LIMIT" in query), "of o, of which nothing says until when"
        for ms in (0, 4_999, 5_000, 8_000, 9_000):
            clock.now_ms = START + ms
            if ms == 5_000:
                sql(f"DELETE FROM o WHERE k = 3; INSERT INTO o VALUES (2, {ms}, {START + 8_500})")
                insert(sql, (3, ms, 8_500))
            found = sorted(sql("SELECT * FROM v"))
            assert found == sorted(sql("SELECT * FROM w")) == sorted(sql(query)), ms
            assert ms > 0 or len(found) > 1
