"""Environments that earlier versions made open, and go on: nothing in them is lost, and nothing has to be made anew.

Each archive in `environments` is a data folder as the version of that day left it, with the database that its sink
delivers to beside it. To add one, run statements such as that folder's `mz_audit_events` tell, and archive the folder.
"""

from __future__ import annotations

import sqlite3
import tarfile
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import everview
from everview.api import Database
from tests.waiting import eventually

ARCHIVES = sorted(Path(__file__).with_name("environments").glob("*.tar.gz"))
VIEWS = {
    "spent": "SELECT c.name, sum(o.total), count(*), max(o.placed) FROM shop.customer c"
    " JOIN shop.orders o ON o.customer = c.id GROUP BY c.name",
    "best": "SELECT id, total FROM shop.orders ORDER BY total DESC LIMIT 3",
    "recent": "SELECT o.id, c.name FROM shop.orders o LEFT JOIN shop.customer c ON c.id = o.customer"
    " WHERE mz_now() < o.placed + interval '100 years'",
    "gone": "SELECT o.id FROM shop.orders o JOIN shop.customer c ON c.id = o.customer WHERE o.placed > mz_now()",
    "risky": "SELECT id, 100 / (id - 70) FROM shop.orders",
    "wide": "SELECT name FROM shop.customer",
    "above": "SELECT count(*) FROM shop.customer",
    "staged": "SELECT id, total FROM shop.orders ORDER BY total LIMIT 2",
    "plain": "SELECT id, total FROM shop.orders WHERE total > 60",
}
PLACE = b"/srv/everview/delivered.db"
DELIVERY_S_MAX = 60.0


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.gz"))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    with sqlite3.connect(tmp_path / "data" / "consensus.db") as connection:  # the sink's database has moved along
        found = connection.execute("SELECT key, value FROM entries WHERE instr(value, ?)", (PLACE,)).fetchall()
        moved = [(value.replace(PLACE, str(tmp_path / "delivered.db").encode()), key) for key, value in found]
        connection.executemany("UPDATE entries SET value = ? WHERE key = ?", moved)
    connection.close()
    return tmp_path / "data"


@pytest.fixture
def database(folder: Path) -> Iterator[Database]:
    with everview.open(folder, spark=None) as opened:
        yield opened


def rows(database: Database, query: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in database.sql(query))


def check(database: Database) -> None:
    for view, query in VIEWS.items():
        assert rows(database, f"SELECT * FROM shop.{view}") == rows(database, query), view


def test_there_are_some() -> None:
    assert ARCHIVES


def test_what_was_there_is_there(database: Database) -> None:
    assert rows(database, "SELECT count(*), sum(total) FROM shop.orders") == {(51, Decimal("1600.75")): 1}
    check(database)
    assert rows(database, "SELECT n FROM shop.spent WHERE name = 'Bob'") == {(18,): 1}  # by the index
    assert rows(database, "SELECT count(*) FROM pg_roles WHERE rolname = 'keeper'") == {(1,): 1}


def test_views_and_sinks_go_on(database: Database, tmp_path: Path) -> None:
    database.sql("INSERT INTO shop.customer VALUES (4, 'Dot', '2026-01-01')")
    database.sql("INSERT INTO shop.orders (id, customer, total, placed) VALUES (100, 4, 99, '2026-02-02')")
    database.sql("UPDATE shop.orders SET total = total + 1 WHERE customer = 1")
    database.sql("DELETE FROM shop.orders WHERE id = 50")
    check(database)
    database.sql("INSERT INTO shop.orders (id, total) VALUES (70, 0)")
    with pytest.raises(everview.EverviewError, match="division by zero"):
        database.sql("SELECT * FROM shop.risky")
    database.sql("DELETE FROM shop.orders WHERE id = 70")
    check(database)
    wanted = {(name, n) for name, n in rows(database, "SELECT name, n FROM shop.spent")}
    file = tmp_path / "delivered.db"
    eventually(lambda: _delivered(file) == wanted, DELIVERY_S_MAX, shown=lambda: _delivered(file))


def test_replacements_go_on(database: Database) -> None:
    database.sql("ALTER MATERIALIZED VIEW shop.best APPLY REPLACEMENT shop.staged")
    assert rows(database, "SELECT * FROM shop.best") == rows(database, VIEWS["staged"])
    database.sql("CREATE MATERIALIZED VIEW shop.wide3 REPLACING shop.wide AS SELECT name, since FROM shop.customer")
    database.sql("ALTER MATERIALIZED VIEW shop.wide APPLY REPLACEMENT shop.wide3")
    assert rows(database, "SELECT * FROM shop.wide") == rows(database, "SELECT name, since FROM shop.customer")
    database.sql("ALTER MATERIALIZED VIEW shop.wide ROLLBACK REPLACEMENT TO VERSION 2")
    database.sql("ALTER MATERIALIZED VIEW shop.wide APPLY REPLACEMENT shop.wide_rollback")
    assert rows(database, "SELECT * FROM shop.wide") == rows(database, "SELECT name, id FROM shop.customer")
    assert rows(database, "SELECT * FROM shop.above") == {(3,): 1}


def test_what_was_opened_opens_again(folder: Path) -> None:
    for number in range(2):
        with everview.open(folder, spark=None) as database:
            database.sql(f"INSERT INTO shop.orders (id, customer, total) VALUES ({200 + number}, 3, 1)")
            check(database)


def _delivered(place: Path) -> set[tuple[str, int]]:
    with sqlite3.connect(place) as connection:
        return {(name, int(n)) for name, n in connection.execute("SELECT name, n FROM spent")}
