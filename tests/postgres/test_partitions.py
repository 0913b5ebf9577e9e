"""Partitions are tables here: which are taken is said by name, and that others came is said too."""

from __future__ import annotations

import pytest

from tests.adapter.scripts import SessionClient
from tests.postgres.conftest import Database, caught_up, connection, ok, refusal, rows, status
from tests.waiting import eventually

SOURCE = "CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION 'pub') "


@pytest.fixture
def parted(database: Database, sql: SessionClient) -> Database:
    """A database with a partitioned table, of three levels."""
    database(
        "CREATE TABLE m (a int, b int, PRIMARY KEY (a, b)) PARTITION BY RANGE (a);"
        "CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE deep PARTITION OF m FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (b);"
        "CREATE TABLE m2 PARTITION OF deep FOR VALUES FROM (0) TO (10);"
        "INSERT INTO m VALUES (1, 1), (11, 1); CREATE TABLE t (a int PRIMARY KEY);"
        "CREATE PUBLICATION pub FOR ALL TABLES"
    )
    ok(sql, connection(database))
    return database


def test_rows_are_in_the_tables_of_their_partitions(parted: Database, sql: SessionClient) -> None:
    ok(sql, f"{SOURCE} FOR ALL TABLES")
    with parted.db.transaction():
        parted("INSERT INTO m VALUES (2, 2); UPDATE m SET a = 12 WHERE a = 1; DELETE FROM m WHERE a = 11")
    caught_up(parted, sql)
    assert rows(ok(sql, "SELECT * FROM m1")) == ["2|2"] and rows(ok(sql, "SELECT * FROM m2")) == ["12|1"]
    parted("TRUNCATE m")
    caught_up(parted, sql)
    assert rows(ok(sql, "SELECT * FROM m1")) == rows(ok(sql, "SELECT * FROM m2")) == []


def test_the_whole_is_refused_with_the_names_of_its_partitions(parted: Database, sql: SessionClient) -> None:
    for name in ("m", "public.m"):
        said = refusal(sql, f"{SOURCE} FOR TABLES ({name})")
        assert f'"{name}" is a partitioned table' in said and "FOR TABLES (public.m1, public.m2)" in said
    parted("ALTER PUBLICATION pub SET (publish_via_partition_root = true)")
    assert "tells of partitioned tables as wholes" in refusal(sql, f"{SOURCE} FOR ALL TABLES")


def test_new_partitions_are_said(parted: Database, sql: SessionClient) -> None:
    ok(sql, f"{SOURCE} FOR TABLES (m1)")
    caught_up(parted, sql)
    assert status(sql, "p") == ["running", "NULL"]
    parted(
        "CREATE TABLE other (a int PRIMARY KEY) PARTITION BY RANGE (a); CREATE TABLE other1 PARTITION OF other DEFAULT"
    )
    parted("CREATE TABLE m3 PARTITION OF deep FOR VALUES FROM (10) TO (20); INSERT INTO m VALUES (3, 3), (13, 13)")
    caught_up(parted, sql)
    eventually(lambda: "partition public.m3 came upstream" in status(sql, "p")[1], shown=lambda: status(sql, "p"))
    assert status(sql, "p")[0] == "running" and "m2" not in status(sql, "p")[1]
    assert rows(ok(sql, "SELECT * FROM m1")) == ["1|1", "3|3"]
    ok(sql, "DROP SOURCE p", f"{SOURCE} FOR ALL TABLES")
    assert rows(ok(sql, "SELECT * FROM m3")) == ["13|13"]
    assert status(sql, "p") == ["running", "NULL"]
    parted("ALTER TABLE deep DETACH PARTITION m3; INSERT INTO m3 VALUES (14, 14)")
    caught_up(parted, sql)
    assert rows(ok(sql, "SELECT * FROM m3")) == ["13|13", "14|14"]
