"""SUBSCRIBE: snapshots, changes at their times, envelopes, order, progress, resumption and the end of it."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

import pytest

from everview.adapter.contract import CopyOut
from everview.adapter.coordinator import Coordinator
from everview.compute.sql.errors import SqlError
from tests.adapter.scripts import SessionClient


class Subscriber:
    """A subscription that is read a bit at a time."""

    def __init__(self, coordinator: Coordinator, statement: str) -> None:
        self.session = coordinator.connect("everview", "everview", {})
        result: Any = self.session.run(self.session.prepare(statement))
        self.rows: Any = result.rows if isinstance(result, CopyOut) else result
        self.names = [column.name for column in self.rows.columns]
        self._batches = self.rows.batches()

    def take(self) -> list[tuple[Any, ...]]:
        """All rows until there is nothing more to say."""
        found: list[tuple[Any, ...]] = []
        for batch in self._batches:
            if not batch:
                return found
            found += batch
        return found

    def data(self) -> list[tuple[Any, ...]]:
        return [row[1:] for row in self.take()]


@pytest.fixture
def table(sql: SessionClient) -> SessionClient:
    sql("CREATE TABLE t (k int, v text) WITH (RETAIN HISTORY FOR '1h')")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return sql


def test_snapshot_then_changes(coordinator: Coordinator, table: SessionClient) -> None:
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO t")
    assert subscriber.names == ["mz_timestamp", "mz_diff", "k", "v"]
    assert subscriber.data() == [(1, 1, "a"), (1, 2, "b")]
    table("UPDATE t SET v = 'z' WHERE k = 1")
    table("DELETE FROM t WHERE k = 2")
    rows = subscriber.take()
    assert [row[1:] for row in rows] == [(-1, 1, "a"), (1, 1, "z"), (-1, 2, "b")]
    assert rows[0][0] == rows[1][0] < rows[2][0]
    subscriber.rows.close()


def test_tail_is_an_older_name(coordinator: Coordinator, table: SessionClient) -> None:
    assert Subscriber(coordinator, "TAIL t").data() == [(1, 1, "a"), (1, 2, "b")]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k * 2 AS d FROM t WHERE k < 10",  # row by row
        "SELECT DISTINCT k * 2 AS d FROM t WHERE k < 10",  # maintained while it lasts
    ],
)
def test_queries(coordinator: Coordinator, table: SessionClient, query: str) -> None:
    before = set(coordinator.environment.ids())
    subscriber = Subscriber(coordinator, f"SUBSCRIBE ({query})")
    assert subscriber.data() == [(1, 2), (1, 4)]
    table("INSERT INTO t VALUES (3, 'c'), (30, 'x')")
    found: list[tuple[Any, ...]] = []
    while not found:  # the timeline moves on before the view does
        found = subscriber.data()
    assert found == [(1, 6)]
    subscriber.rows.close()
    assert set(coordinator.environment.ids()) == before
    assert coordinator.subscriptions() == []


def test_options(coordinator: Coordinator, table: SessionClient) -> None:
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO t WITH (PROGRESS, SNAPSHOT = false)")
    assert subscriber.names == ["mz_timestamp", "mz_progressed", "mz_diff", "k", "v"]
    first = subscriber.take()
    assert all(row[1:] == (True, None, None, None) for row in first)
    table("INSERT INTO t VALUES (3, 'c')")
    rows = subscriber.take()
    assert [row[1:] for row in rows] == [(False, 1, 3, "c"), (True, None, None, None)]
    assert rows[1][0] > rows[0][0] >= first[-1][0]


def test_as_of_up_to_and_resumption(coordinator: Coordinator, table: SessionClient) -> None:
    first = Subscriber(coordinator, "SUBSCRIBE TO t WITH (PROGRESS)")
    last = first.take()[-1]
    assert last[1] is True
    first.rows.close()
    table("INSERT INTO t VALUES (3, 'c')")
    table("INSERT INTO t VALUES (4, 'd')")
    end = coordinator.timeline.upper
    table("INSERT INTO t VALUES (5, 'e')")
    # Everything before the last progress was delivered: going on just before it misses nothing and repeats nothing.
    start = last[0] - 1
    resumed = Subscriber(coordinator, f"SUBSCRIBE TO t WITH (SNAPSHOT = false) AS OF {start} UP TO {end}")
    assert resumed.data() == [(1, 3, "c"), (1, 4, "d")]
    assert resumed.take() == []
    with pytest.raises(SqlError, match="UP TO must not be before"):
        Subscriber(coordinator, f"SUBSCRIBE TO t AS OF {end} UP TO {start}")


def test_upsert_envelope(coordinator: Coordinator, table: SessionClient) -> None:
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO t ENVELOPE UPSERT (KEY (k))")
    assert subscriber.names == ["mz_timestamp", "mz_state", "k", "v"]
    assert subscriber.data() == [("upsert", 1, "a"), ("upsert", 2, "b")]
    table("UPDATE t SET v = 'z' WHERE k = 1")
    table("DELETE FROM t WHERE k = 2")
    table("INSERT INTO t VALUES (3, 'x'), (3, 'y')")
    assert subscriber.data() == [("upsert", 1, "z"), ("delete", 2, None), ("key_violation", 3, None)]


def test_a_second_row_of_a_key_is_a_violation_whenever_it_comes(coordinator: Coordinator, table: SessionClient) -> None:
    upsert = Subscriber(coordinator, "SUBSCRIBE TO t ENVELOPE UPSERT (KEY (k))")
    debezium = Subscriber(coordinator, "SUBSCRIBE TO t ENVELOPE DEBEZIUM (KEY (k))")
    upsert.take(), debezium.take()
    table("INSERT INTO t VALUES (1, 'second')")
    late = Subscriber(coordinator, "SUBSCRIBE TO t ENVELOPE UPSERT (KEY (k)) WITH (SNAPSHOT = false)")
    table("INSERT INTO t VALUES (1, 'second')")  # the same row once more
    table("DELETE FROM t WHERE v = 'second'")
    table("INSERT INTO t VALUES (2, 'second')")
    table("UPDATE t SET v = v || '!' WHERE k = 2")
    table("DELETE FROM t WHERE k = 2")
    table("INSERT INTO t VALUES (2, 'new')")
    violation = ("key_violation", 1, None)
    later = [("upsert", 1, "a"), *[("key_violation", 2, None)] * 2, ("delete", 2, None), ("upsert", 2, "new")]
    assert upsert.data() == [violation, violation, *later]
    assert late.data() == [violation, *later]
    assert debezium.data() == [
        ("key_violation", 1, None, None),
        ("key_violation", 1, None, None),
        ("upsert", 1, None, "a"),
        ("key_violation", 2, None, None),
        ("key_violation", 2, None, None),
        ("delete", 2, None, None),
        ("insert", 2, None, "new"),
    ]


def test_keys_that_are_remembered_are_bounded(
    coordinator: Coordinator, table: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everview.adapter.envelopes.KEPT_ROWS_MAX", 2)
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO t ENVELOPE UPSERT (KEY (k))")
    assert len(subscriber.data()) == 2
    table("INSERT INTO t VALUES (3, 'c')")
    with pytest.raises(SqlError, match="at most 2 keys"):
        subscriber.take()


@pytest.mark.parametrize("envelope", ["", "ENVELOPE UPSERT (KEY (k))"])
def test_resuming_from_any_progress_misses_nothing_and_repeats_nothing(
    coordinator: Coordinator, table: SessionClient, envelope: str
) -> None:
    start = coordinator.timeline.upper - 1
    times = []
    for number in range(3, 9):  # several writes in a row, each at the very time at which the one before ended
        table(f"INSERT INTO t VALUES ({number}, 'x')")
        times.append(coordinator.timeline.upper)
    end = times[-1]
    whole = Subscriber(coordinator, f"SUBSCRIBE TO t {envelope} AS OF {start} UP TO {end}").take()
    for cut in range(start + 1, end):
        before = Subscriber(coordinator, f"SUBSCRIBE TO t {envelope} WITH (PROGRESS) AS OF {start} UP TO {cut}").take()
        assert before[-1][0] == cut and before[-1][1] is True
        after = Subscriber(coordinator, f"SUBSCRIBE TO t {envelope} RESUME FROM {cut} UP TO {end}").take()
        assert [(row[0], *row[2:]) for row in before if not row[1]] + after == whole
    again = Subscriber(coordinator, f"SUBSCRIBE TO t {envelope} WITH (PROGRESS) RESUME FROM {end}")
    assert next(row[:2] for row in again.take()) == (end, True)


def test_resuming_has_a_start_of_its_own(coordinator: Coordinator, table: SessionClient) -> None:
    for more in ("AS OF 5 RESUME FROM 6", "RESUME FROM 6 AS OF 5", "WITH (SNAPSHOT = false) RESUME FROM 6"):
        with pytest.raises(SqlError) as failed:
            Subscriber(coordinator, f"SUBSCRIBE TO t {more}")
        assert failed.value.sqlstate == "42601"
    with pytest.raises(SqlError, match="could not find a valid timestamp"):
        Subscriber(coordinator, "SUBSCRIBE TO t RESUME FROM 6")


def test_debezium_envelope(coordinator: Coordinator, table: SessionClient) -> None:
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO t ENVELOPE DEBEZIUM (KEY (k))")
    assert subscriber.names == ["mz_timestamp", "mz_state", "k", "before_v", "after_v"]
    assert subscriber.data() == [("insert", 1, None, "a"), ("insert", 2, None, "b")]
    table("UPDATE t SET v = 'z' WHERE k = 1")
    table("DELETE FROM t WHERE k = 2")
    assert subscriber.data() == [("upsert", 1, "a", "z"), ("delete", 2, "b", None)]


def test_order_within_a_timestamp(coordinator: Coordinator, table: SessionClient) -> None:
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO t WITHIN TIMESTAMP ORDER BY k DESC, mz_diff")
    assert subscriber.data() == [(1, 2, "b"), (1, 1, "a")]
    table("INSERT INTO t VALUES (5, 'e'), (7, 'g'), (6, 'f')")
    assert [row[1] for row in subscriber.data()] == [7, 6, 5]


def test_copy(coordinator: Coordinator, table: SessionClient) -> None:
    subscriber = Subscriber(coordinator, "COPY (SUBSCRIBE TO t) TO STDOUT")
    assert subscriber.data() == [(1, 1, "a"), (1, 2, "b")]
    assert subscriber.rows.tag(2) == "COPY 2"


def test_a_dropped_relation_ends_it(coordinator: Coordinator, table: SessionClient) -> None:
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO t")
    subscriber.take()
    assert table("DROP TABLE t") == ["DROP TABLE"]
    with pytest.raises(SqlError) as caught:
        subscriber.take()
    assert caught.value.sqlstate == "42704"
    assert coordinator.subscriptions() == []


def test_cancel_wakes_one_that_waits(coordinator: Coordinator, table: SessionClient) -> None:
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO t")
    subscriber.take()
    threading.Timer(0.1, subscriber.session.cancel).start()
    with pytest.raises(SqlError) as caught:
        subscriber.take()
    assert caught.value.sqlstate == "57014"


def test_times_are_numeric_and_history_is_let_go(coordinator: Coordinator, table: SessionClient) -> None:
    subscriber = Subscriber(coordinator, "SUBSCRIBE TO t")
    row = subscriber.take()[0]
    assert isinstance(row[0], Decimal)
    assert coordinator.timeline.holds._on_clock
    subscriber.rows.close()
    assert not coordinator.timeline.holds._on_clock


@pytest.mark.parametrize(
    "statement",
    [
        "SUBSCRIBE (SELECT 10 / k AS q FROM t)",
        "SUBSCRIBE (SELECT DISTINCT 10 / k AS q FROM t)",
        "SUBSCRIBE TO m",
        "SUBSCRIBE (SELECT sum(q) AS q FROM m GROUP BY q)",
    ],
)
def test_a_failing_view_ends_it_with_its_error(coordinator: Coordinator, table: SessionClient, statement: str) -> None:
    table("CREATE MATERIALIZED VIEW m AS SELECT DISTINCT 10 / k AS q FROM t")
    subscriber = Subscriber(coordinator, statement)
    assert sorted(subscriber.data()) == [(1, 5), (1, 10)]
    table("INSERT INTO t VALUES (0, 'zero')")
    with pytest.raises(SqlError) as caught:
        while subscriber.take() == []:
            pass
    assert caught.value.sqlstate == "22012"


def test_what_is_computed_for_a_subscription_has_an_id_that_nobody_else_gets(
    coordinator: Coordinator, table: SessionClient
) -> None:
    before = set(coordinator.environment.ids())
    Subscriber(coordinator, "SUBSCRIBE TO (SELECT count(*) FROM t)")
    made = {id for id in set(coordinator.environment.ids()) - before if id[1:].isdigit()}
    assert made
    assert all(int(id[1:]) < coordinator.environment.next_id for id in made), "the next process would try them all"
