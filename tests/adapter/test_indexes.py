"""Indexes: rows by key at any time they know, equal to what the relation says, without a scan."""

from __future__ import annotations

import random

import pytest

from everview.adapter.coordinator import Coordinator
from tests.adapter.scripts import SessionClient


def test_point_lookups(coordinator: Coordinator, sql: SessionClient, lookups: list[int]) -> None:
    sql("CREATE TABLE t (a int, b text)")
    sql("INSERT INTO t SELECT g, 'row ' || g FROM generate_series(1, 100) AS g")
    sql("CREATE INDEX ON t (a)")
    assert sql("SELECT b FROM t WHERE a = 7") == ["b", "row 7"]
    assert len(lookups) == 1
    sql("UPDATE t SET b = 'other' WHERE a = 7")
    sql("INSERT INTO t VALUES (7, 'more')")
    assert sorted(sql("SELECT b FROM t WHERE a = 7")[1:]) == ["more", "other"]
    assert sql("SELECT b FROM t WHERE a IN (1, 2) ORDER BY a") == ["b", "row 1", "row 2"]
    assert sql("SELECT b FROM t WHERE a = 7::bigint AND b = 'more'") == ["b", "more"]
    assert sql("SELECT b FROM t WHERE a = NULL") == ["b"]
    count = len(lookups)
    assert sql("SELECT count(*) FROM t WHERE a > 7") == ["count", "93"]
    assert len(lookups) == count


def test_an_index_on_a_view_maintains_it(coordinator: Coordinator, sql: SessionClient, lookups: list[int]) -> None:
    sql("CREATE TABLE t (a int, b text)")
    sql("CREATE VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
    sql("CREATE INDEX v_b ON v (b)")
    sql("INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'y')")
    assert sql("SELECT n FROM v WHERE b = 'x'") == ["n", "2"]
    assert lookups
    assert "v_b" in sql("EXPLAIN SELECT * FROM v")[-1]
    assert sql("DROP INDEX v_b") == ["DROP INDEX"]
    assert sql("SELECT n FROM v WHERE b = 'x'") == ["n", "2"]
    assert [id for id in coordinator.environment.ids() if "." in id] == []


def test_an_index_agrees_with_its_relation(coordinator: Coordinator, sql: SessionClient, rng: random.Random) -> None:
    sql("CREATE TABLE t (a int, b int)")
    sql("CREATE INDEX ON t (a % 5)")
    history = {}
    for _ in range(60):
        action = rng.choice(["insert", "insert", "delete", "update"])
        a, b = rng.randrange(8), rng.randrange(3)
        if action == "insert":
            sql(f"INSERT INTO t VALUES ({a}, {b})")
        elif action == "delete":
            sql(f"DELETE FROM t WHERE a = {a}")
        else:
            sql(f"UPDATE t SET a = a + 1 WHERE b = {b}")
        coordinator.indexes.refresh(lambda _: coordinator.timeline.history)
        key = rng.randrange(5)
        found = sql(f"SELECT * FROM t WHERE a % 5 = {key} ORDER BY a, b")
        scanned = sql(f"SELECT * FROM t WHERE (a % 5) + 0 = {key} ORDER BY a, b")
        assert found == scanned
        history[coordinator.timeline.upper - 1] = key, found
    for time, (key, found) in list(history.items())[-5:]:
        again = sql(f"SELECT * FROM t WHERE a % 5 = {key} ORDER BY a, b AS OF {time}")
        assert again == found or "could not find" in again[0]


def test_names_and_errors(sql: SessionClient) -> None:
    sql("CREATE TABLE t (a int, b text)")
    assert sql("CREATE INDEX ON t (a)") == ["CREATE INDEX"]
    assert sql("CREATE INDEX ON t (a)") == ["CREATE INDEX"]
    assert sql("CREATE DEFAULT INDEX ON t") == ["CREATE INDEX"]
    assert sorted(sql("SHOW INDEXES")[1:]) == ["t_a_idx1|t|{a}", "t_a_idx|t|{a}", "t_primary_idx|t|{a,b}"]
    assert sql("SHOW INDEXES FROM public WHERE name = 't_a_idx'") == ["name|on|key", "t_a_idx|t|{a}"]
    sql("CREATE SCHEMA s")
    assert sql("SHOW INDEXES FROM s") == ["name|on|key"]
    assert sql("CREATE INDEX t_a_idx ON t (b)")[0].startswith("! 42P07")
    assert sql("CREATE INDEX ON t (nope)")[0].startswith("! 42703")
    assert sql("CREATE UNIQUE INDEX ON t (a)")[0].startswith("! 0A000")
    assert sql("SELECT * FROM t_a_idx")[0].startswith("! 42809")
    assert sql("DROP TABLE t") == ["DROP TABLE"]
    assert sql("SHOW INDEXES") == ["name|on|key"]


@pytest.mark.parametrize("kind", ["MATERIALIZED VIEW", "VIEW"])
def test_a_view_that_fails_cannot_be_read_by_its_index_either(sql: SessionClient, kind: str) -> None:
    sql("CREATE TABLE t (a int, b int)")
    sql(f"CREATE {kind} q AS SELECT a, a / b AS q FROM t")
    sql("CREATE INDEX i ON q (a)")
    sql("INSERT INTO t VALUES (10, 2)")
    assert sql("SELECT q FROM q WHERE a = 10") == ["q", "5"]
    sql("INSERT INTO t VALUES (1, 0)")
    assert sql("SELECT q FROM q WHERE a = 10") == ["! 22012 division by zero"]
    sql("DELETE FROM t WHERE b = 0")
    assert sql("SELECT q FROM q WHERE a = 10") == ["q", "5"]
