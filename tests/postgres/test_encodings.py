"""Texts of databases in other encodings: as they are there, or their table is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.adapter.scripts import SessionClient
from tests.postgres.conftest import Database, caught_up, connection, ok, rows, status
from tests.postgres.server import Upstream
from tests.waiting import eventually

SOURCE = "CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION 'pub') FOR ALL TABLES"


@contextmanager
def encoded(upstream: Upstream, encoding: str) -> Iterator[Database]:
    """A database with this encoding."""
    with upstream.connect() as db:
        db.execute(f"CREATE DATABASE encoded ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    found = Database(upstream, "encoded")
    found("SET client_encoding = UTF8")
    try:
        yield found
    finally:
        found.drop()


@pytest.fixture
def latin(upstream: Upstream) -> Iterator[Database]:
    with encoded(upstream, "LATIN1") as found:
        yield found


@pytest.fixture
def bare(upstream: Upstream) -> Iterator[Database]:
    with encoded(upstream, "SQL_ASCII") as found:
        yield found


def test_texts_of_a_database_in_another_encoding(latin: Database, sql: SessionClient) -> None:
    latin("CREATE TABLE t (a int PRIMARY KEY, m text); INSERT INTO t VALUES (1, 'é'), (2, 'Ã©'), (3, E'ü\\t')")
    latin("CREATE PUBLICATION pub FOR ALL TABLES")
    ok(sql, connection(latin), SOURCE)
    latin("INSERT INTO t VALUES (4, 'é'), (5, 'Ã©')")
    caught_up(latin, sql)
    assert rows(ok(sql, "SELECT a, replace(m, chr(9), '>') FROM t")) == ["1|é", "2|Ã©", "3|ü>", "4|é", "5|Ã©"]


@pytest.mark.parametrize("when", ["snapshot", "stream"])
def test_bytes_that_are_no_text_stop_their_table(bare: Database, sql: SessionClient, when: str) -> None:
    bare("CREATE TABLE t (a int PRIMARY KEY, m text); CREATE TABLE u (a int PRIMARY KEY)")
    bare("CREATE PUBLICATION pub FOR ALL TABLES; SET client_encoding = SQL_ASCII")
    odd = r"INSERT INTO t VALUES (1, E'\xe9'); INSERT INTO u VALUES (1)"
    if when == "snapshot":
        bare(odd)
    ok(sql, connection(bare), SOURCE)
    if when == "stream":
        assert rows(ok(sql, "SELECT * FROM t")) == []
        bare(odd)
    eventually(lambda: status(sql, "t")[0] == "stopped", shown=lambda: status(sql, "p"))
    assert "is not a text in UTF-8" in status(sql, "t")[1]
    caught_up(bare, sql)
    assert rows(ok(sql, "SELECT * FROM u")) == ["1"]
    ok(sql, "DROP SOURCE p")
