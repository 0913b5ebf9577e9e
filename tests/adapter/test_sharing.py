"""Views over the same tables share what they look up: made once, told of, and gone with the last view that reads it."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.storage.faults import Crash, armed
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient

SHARED = "SELECT id, on_id, key, columns FROM mz_introspection.mz_shared_arrangements ORDER BY 2, 3, 4"
USERS = (
    "SELECT o.name, count(*) AS n FROM mz_introspection.mz_shared_arrangement_users u"
    " JOIN mz_objects o ON o.id = u.object_id GROUP BY 1 ORDER BY 1"
)
QUERIES = {
    "joined": "SELECT o.id, c.region FROM orders o JOIN customers c ON o.customer = c.id",
    "most": "SELECT o.id, c.region FROM orders o JOIN customers c ON o.customer = c.id WHERE o.quantity <> 3",
    "summed": "SELECT c.region, sum(o.quantity) AS q FROM orders o JOIN customers c ON o.customer = c.id GROUP BY 1",
    "few": "SELECT o.id, c.region FROM orders o JOIN customers c ON o.customer = c.id WHERE o.quantity = 3",
    "named": "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id",
    "failing": "SELECT o.id, 10 / c.region AS x FROM orders o JOIN customers c ON o.customer = c.id WHERE region <> 4",
    "greatest": "SELECT customer, max(quantity) AS q FROM orders GROUP BY customer",
}


def open_at(folder: Path) -> Coordinator:
    return Coordinator.open(folder, clock=Clock(), ticking=False)


def fill(sql: SessionClient) -> None:
    sql("CREATE TABLE customers (id int, region int, name text)")
    sql("CREATE TABLE orders (id int, customer int, quantity int)")
    sql("INSERT INTO customers SELECT n, n % 5, 'c' || n FROM generate_series(1, 60) n")
    sql("INSERT INTO orders SELECT n, n % 70, n % 10 FROM generate_series(1, 200) n")


def make(sql: SessionClient, *names: str) -> None:
    for name in names:
        assert sql(f"CREATE MATERIALIZED VIEW {name} AS {QUERIES[name]}") == ["CREATE MATERIALIZED VIEW"]


def check(sql: SessionClient, *names: str) -> None:
    for name in names:
        assert sorted(sql(f"SELECT * FROM {name}")) == sorted(sql(QUERIES[name])), name


def change(sql: SessionClient, number: int) -> None:
    sql(f"INSERT INTO orders VALUES ({1000 + number}, {number}, 3), ({2000 + number}, {number + 1}, 4)")
    sql(f"UPDATE customers SET region = region + 1 WHERE id % 20 = {number} AND region <> 4")
    sql(f"DELETE FROM orders WHERE id % 50 = {number}")


def test_views_share_and_the_last_one_leaves_nothing(tmp_path: Path) -> None:
    names = [name for name in QUERIES if name != "failing"]
    with open_at(tmp_path) as coordinator:
        sql = SessionClient(coordinator)
        fill(sql)
        tables = coordinator.environment.ids()
        make(sql, *names)
        check(sql, *names)
        # A filter that most rows pass is left to the reader; another column makes another arrangement, with all.
        customers, orders = (line for line in sql("SELECT id FROM mz_tables ORDER BY name")[1:])
        assert [line.split("|", 1)[1] for line in sql(SHARED)[1:]] == [
            f"{customers}|{{id}}|{{id,region}}",
            f"{customers}|{{id}}|{{id,region,name}}",
            f"{orders}|{{customer}}|{{id,customer}}",
            f"{orders}|{{customer}}|{{id,customer,quantity}}",
        ]
        assert sql(USERS)[1:] == ["few|1", "greatest|1", "joined|2", "most|2", "named|2", "summed|2"]
        for number in range(3):
            change(sql, number)
            check(sql, *names)
        explained = sql("EXPLAIN MATERIALIZED VIEW most")[1]
        assert "; read from a" in explained and "everview.public.joined" in explained
    with open_at(tmp_path) as coordinator:
        sql = SessionClient(coordinator)
        assert sql(USERS)[1:] == ["few|1", "greatest|1", "joined|2", "most|2", "named|2", "summed|2"]
        for number in range(3, 6):
            change(sql, number)
            check(sql, *names)
        for name in names:
            assert sql(f"DROP MATERIALIZED VIEW {name}") == ["DROP MATERIALIZED VIEW"]
            names = names[1:]
            change(sql, 7)
            check(sql, *names)
        assert sql(SHARED)[1:] == []
        assert coordinator.environment.ids() == tables
        assert not coordinator.environment.keys("arrangement/") and not coordinator.environment.keys("dataflow/")


def test_rows_that_fail_are_errors_of_one_view(tmp_path: Path) -> None:
    with open_at(tmp_path) as coordinator:
        sql = SessionClient(coordinator)
        fill(sql)
        sql("DELETE FROM customers WHERE region = 0")
        make(sql, "joined", "failing")
        check(sql, "joined", "failing")
        sql("INSERT INTO customers VALUES (65, 0, 'zero')")
        check(sql, "joined")
        assert sql("SELECT * FROM failing")[0].startswith("! 22012")
        sql("UPDATE customers SET region = 2 WHERE id = 65")
        check(sql, "joined", "failing")


def test_a_replacement_shares_with_its_target(tmp_path: Path) -> None:
    with open_at(tmp_path) as coordinator:
        sql = SessionClient(coordinator)
        fill(sql)
        make(sql, "joined", "named")
        before = sql(SHARED)
        sql(f"CREATE REPLACEMENT MATERIALIZED VIEW next FOR joined AS {QUERIES['most']}")
        assert {line.partition("|")[0] for line in before[1:]} < {line.partition("|")[0] for line in sql(SHARED)[1:]}
        change(sql, 1)
        sql("SELECT * FROM next")
        applied = sql("ALTER MATERIALIZED VIEW joined APPLY REPLACEMENT next")
        assert not applied[0].startswith("!"), applied
        for number in range(2, 5):
            change(sql, number)
            assert sorted(sql("SELECT * FROM joined")) == sorted(sql(QUERIES["most"]))
            check(sql, "named")
        assert sql(USERS)[1:] == ["joined|2", "named|2"]
    with open_at(tmp_path) as coordinator:
        sql = SessionClient(coordinator)
        change(sql, 5)
        assert sorted(sql("SELECT * FROM joined")) == sorted(sql(QUERIES["most"]))
        sql("DROP MATERIALIZED VIEW joined, named")
        assert sql(SHARED)[1:] == []


@pytest.mark.parametrize("point", ["commit.before", "commit.after"])
@pytest.mark.parametrize("hit", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("making", [True, False])
def test_counts_are_right_after_a_crash(tmp_path: Path, point: str, hit: int, making: bool) -> None:
    with open_at(tmp_path) as coordinator:
        sql = SessionClient(coordinator)
        fill(sql)
        make(sql, "joined", *([] if making else ["named"]))
        statement = (
            f"CREATE MATERIALIZED VIEW named AS {QUERIES['named']}" if making else "DROP MATERIALIZED VIEW named"
        )
        with armed(point, hit=hit, for_good=True), suppress(Crash):
            sql(statement)
    with open_at(tmp_path) as coordinator:
        sql = SessionClient(coordinator)
        there = sql("SELECT name FROM mz_materialized_views ORDER BY 1")[1:]
        assert sql(USERS)[1:] == [f"{name}|2" for name in there]
        noted = {key.partition("/")[2] for key in coordinator.environment.keys("arrangement/")}
        assert noted == {id for id in coordinator.environment.ids() if id.startswith("a")}
        assert len(noted) == (3 if "named" in there else 2)
        change(sql, 1)
        check(sql, *there)


def test_a_damaged_arrangement_damages_the_views_that_read_it(tmp_path: Path) -> None:
    with open_at(tmp_path) as coordinator:
        sql = SessionClient(coordinator)
        fill(sql)
        make(sql, "joined", "named", "greatest")
        (id,) = (line.partition("|")[0] for line in sql(SHARED)[1:] if "name" in line)
    with closing(sqlite3.connect(tmp_path / "consensus.db")) as db, db:
        db.execute("UPDATE entries SET value = substr(value, 1, 9) WHERE key = ?", [f"state/{id}/"])
    with open_at(tmp_path) as coordinator:
        sql = SessionClient(coordinator)
        assert sql("SELECT * FROM named")[0].startswith("! XX001")
        change(sql, 1)
        check(sql, "joined", "greatest")
        sql("DROP MATERIALIZED VIEW named")
        make(sql, "named")
        check(sql, "joined", "greatest", "named")
    with open_at(tmp_path) as coordinator:
        sql = SessionClient(coordinator)
        change(sql, 2)
        check(sql, "joined", "greatest", "named")
        assert id not in coordinator.environment.ids()
