"""What everything is for: views equal to their queries at every time, and histories that could have been sequential."""

from __future__ import annotations

import random
import threading

import pytest

from everview.adapter.coordinator import Coordinator
from tests.adapter.scripts import SessionClient

VIEWS = {
    "totals": "SELECT account, sum(amount) AS total, count(*) AS n FROM entries GROUP BY account",
    "rich": "SELECT account, total FROM totals WHERE total > 10",
    "pairs": "SELECT a.account, b.account AS other FROM entries a JOIN entries b ON a.amount = b.amount"
    " AND a.account < b.account",
    "best": "SELECT account, amount FROM entries ORDER BY amount DESC, account LIMIT 3",
    "missing": "SELECT DISTINCT account FROM entries EXCEPT SELECT account FROM totals WHERE n > 2",
}


def test_views_are_what_their_queries_say(sql: SessionClient, rng: random.Random) -> None:
    """In one transaction, at one time: the maintained rows, and the rows computed from scratch."""
    sql("CREATE TABLE entries (account int, amount int) WITH (RETAIN HISTORY FOR '1h')")
    for name, query in VIEWS.items():
        assert sql(f"CREATE MATERIALIZED VIEW {name} AS {query}") == ["CREATE MATERIALIZED VIEW"]
    for _ in range(25):
        action = rng.random()
        account, amount = rng.randrange(5), rng.randrange(12)
        if action < 0.6:
            sql(f"INSERT INTO entries VALUES ({account}, {amount}), ({rng.randrange(5)}, {amount})")
        elif action < 0.8:
            sql(f"UPDATE entries SET amount = amount + 1 WHERE account = {account}")
        else:
            sql(f"DELETE FROM entries WHERE amount = {amount}")
        sql("BEGIN")
        for name, query in VIEWS.items():
            assert sorted(sql(f"SELECT * FROM {name}")) == sorted(sql(query)), name
        sql("COMMIT")


def test_transfers_never_lose_money(coordinator: Coordinator, sql: SessionClient) -> None:
    """Concurrent blocks that move money: every reader sees the same sum, in tables and in a view of them."""
    sql("CREATE TABLE a (v int)")
    sql("CREATE TABLE b (v int)")
    sql("INSERT INTO a VALUES (100)")
    sql("INSERT INTO b VALUES (0)")
    sql("CREATE MATERIALIZED VIEW both_sides AS SELECT v FROM a UNION ALL SELECT v FROM b")
    stop, problems = threading.Event(), []

    def move(number: int) -> None:
        client, rng = SessionClient(coordinator), random.Random(number)
        while not stop.is_set():
            amount = rng.randint(-3, 3)
            steps = (
                "BEGIN",
                f"UPDATE a SET v = v - {amount}",
                f"UPDATE b SET v = v + {amount}",
                "COMMIT",
            )
            answers = [client(step) for step in steps]
            if any(answer[0].startswith("!") and "40001" not in answer[0] for answer in answers):
                client("ROLLBACK")
                if not any("25P02" in answer[0] or "40001" in answer[0] for answer in answers):
                    problems.append(str(answers))

    def watch() -> None:
        client = SessionClient(coordinator)
        for _ in range(25):
            for query in (
                "SELECT (SELECT sum(v) FROM a) + (SELECT sum(v) FROM b) AS s",
                "SELECT sum(v) AS s FROM both_sides",
            ):
                answer = client(query)
                if answer != ["s", "100"]:
                    problems.append(str(answer))

    movers = [threading.Thread(target=move, args=(number,)) for number in range(3)]
    watchers = [threading.Thread(target=watch) for _ in range(2)]
    for thread in (*movers, *watchers):
        thread.start()
    for thread in watchers:
        thread.join()
    stop.set()
    for thread in movers:
        thread.join()
    assert not problems, problems[:3]


@pytest.mark.parametrize("isolation", ["strict serializable", "serializable"])
def test_reads_never_go_back(coordinator: Coordinator, sql: SessionClient, isolation: str) -> None:
    """Strictly serializable: once a write is acknowledged, every read that begins later sees it, views included."""
    sql("CREATE TABLE t (n int)")
    sql("CREATE MATERIALIZED VIEW m AS SELECT max(n) AS n, count(*) AS c FROM t")
    sql("INSERT INTO t VALUES (0)")
    acknowledged, problems, stop = [0], [], threading.Event()

    def write() -> None:
        client = SessionClient(coordinator)
        for number in range(1, 60):
            client(f"INSERT INTO t VALUES ({number})")
            acknowledged[0] = number
        stop.set()

    def read() -> None:
        client = SessionClient(coordinator)
        client(f"SET transaction_isolation = '{isolation}'")
        last = -1
        while not stop.is_set():
            known = acknowledged[0]
            value = client("SELECT n FROM m")[1]
            seen = -1 if value == "NULL" else int(value)
            if isolation.startswith("strict") and seen < known:
                problems.append(f"saw {seen} after {known} was acknowledged")
            if isolation.startswith("strict") and seen < last:
                problems.append(f"saw {seen} after {last}")
            last = max(last, seen)

    threads = [threading.Thread(target=write), *(threading.Thread(target=read) for _ in range(3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[:3]


def test_a_bad_row_does_not_kill_a_view(sql: SessionClient) -> None:
    sql("CREATE TABLE t (a int, b int)")
    sql("INSERT INTO t VALUES (10, 2)")
    sql("CREATE MATERIALIZED VIEW q AS SELECT a / b AS q FROM t")
    assert sql("SELECT * FROM q") == ["q", "5"]
    sql("INSERT INTO t VALUES (1, 0)")
    assert sql("SELECT * FROM q") == ["! 22012 division by zero"]
    sql("DELETE FROM t WHERE b = 0")
    sql("INSERT INTO t VALUES (9, 3)")
    assert sorted(sql("SELECT * FROM q")) == ["3", "5", "q"]


def test_as_of_reads_history(coordinator: Coordinator, sql: SessionClient) -> None:
    sql("CREATE TABLE t (a int) WITH (RETAIN HISTORY FOR '1h')")
    sql("CREATE MATERIALIZED VIEW m WITH (RETAIN HISTORY FOR '1h') AS SELECT count(*) AS n FROM t")
    times = []
    for number in range(5):
        sql(f"INSERT INTO t VALUES ({number})")
        times.append(coordinator.timeline.upper - 1)
    assert sql("SELECT n FROM m") == ["n", "5"]
    for number, time in enumerate(times):
        assert sql(f"SELECT count(*) FROM t AS OF {time}") == ["count", str(number + 1)]
        assert sql(f"SELECT n FROM m AS OF {time}") == ["n", str(number + 1)]
    assert sql(f"SELECT n FROM m AS OF AT LEAST {times[0]}") == ["n", "5"]
    explained = sql(f"EXPLAIN TIMESTAMP FOR SELECT * FROM t AS OF {times[2]}")
    assert f"query timestamp: {times[2]}" in explained[1]
    assert sql("ALTER TABLE t SET (RETAIN HISTORY FOR '1s')") == ["ALTER TABLE"]
