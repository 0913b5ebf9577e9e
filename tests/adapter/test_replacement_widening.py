"""Replacements whose columns have wider types: the same values, before and after, for all who may read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.adapter.versions import is_wider
from everview.compute.ir.types import (
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
    array_of,
    numeric,
)
from everview.compute.sql.errors import SqlError
from tests.adapter.delivery import delivered, in_sqlite
from tests.adapter.test_replacements import failure
from tests.adapter.test_subscribe import Subscriber
from tests.adapter.test_view_versions import World

NARROW = "SELECT k, v AS n, name FROM t"
WIDE = "SELECT k, v::bigint * 10000000000 AS n, name::text || '!' AS name FROM t"


def varchar(length: int | None) -> SqlType:
    return SqlType(Kind.VARCHAR, length=length)


def precise(kind: Kind, digits: int) -> SqlType:
    return SqlType(kind, length=digits)


@pytest.mark.parametrize(
    ("narrow", "wide", "expected"),
    [
        (INT2, INT4, True),
        (INT2, INT8, True),
        (INT4, INT8, True),
        (INT8, INT4, False),
        (INT4, INT4, False),
        (INT4, numeric(10, 0), True),
        (INT4, numeric(9, 0), False),
        (INT8, numeric(38, 0), True),
        (INT8, numeric(), True),
        (INT4, numeric(20, 2), False),  # it would be shown otherwise
        (INT4, FLOAT8, False),
        (FLOAT4, FLOAT8, False),  # 0.1 would be 0.10000000149
        (varchar(5), varchar(6), True),
        (varchar(5), varchar(None), True),
        (varchar(5), TEXT, True),
        (varchar(6), varchar(5), False),
        (TEXT, varchar(5), False),
        (numeric(5, 2), numeric(7, 2), True),
        (numeric(5, 2), numeric(30, 2), True),
        (numeric(5, 2), numeric(7, 3), False),
        (numeric(7, 2), numeric(5, 2), False),
        (precise(Kind.TIMESTAMP, 0), TIMESTAMP, True),
        (precise(Kind.TIMESTAMPTZ, 3), precise(Kind.TIMESTAMPTZ, 4), True),
        (precise(Kind.INTERVAL, 2), INTERVAL, True),
        (precise(Kind.TIME, 2), precise(Kind.TIME, 1), False),
        (TIMESTAMP, precise(Kind.TIMESTAMP, 6), False),
        (precise(Kind.TIMESTAMP, 0), TIMESTAMPTZ, False),  # it would be shown with a zone
        (array_of(INT4), array_of(INT8), True),
        (array_of(varchar(5)), array_of(TEXT), True),
        (array_of(precise(Kind.TIMESTAMP, 0)), array_of(TIMESTAMP), True),
        (array_of(INT8), array_of(INT4), False),
        (array_of(INT4), INT8, False),
        (INT4, array_of(INT8), False),
    ],
)
def test_what_is_wider(narrow: SqlType, wide: SqlType, expected: bool) -> None:
    assert is_wider(narrow, wide) is expected


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "data")
    made.ok("CREATE TABLE t (k int, v int, name varchar(5)) WITH (RETAIN HISTORY FOR '1h')")
    made.ok("INSERT INTO t VALUES (1, 10, 'one'), (2, NULL, NULL), (3, 30, 'three')")
    made.ok(f"CREATE MATERIALIZED VIEW mv WITH (RETAIN HISTORY FOR '1h') AS {NARROW}", "SELECT * FROM mv")
    yield made
    made.coordinator.close()


def test_arrays_and_digits_of_a_second_have_their_past(world: World) -> None:
    narrow = "SELECT k, ARRAY[k, v] AS a, ('2024-01-01 00:00:0' || k)::timestamp(0) AS at FROM t"
    wide = (
        "SELECT k, ARRAY[k, v::bigint * 10000000000] AS a, ('2024-01-01 00:00:0' || k || '.5')::timestamp AS at FROM t"
    )
    world.ok(f"CREATE MATERIALIZED VIEW w WITH (RETAIN HISTORY FOR '1h') AS {narrow}", "SELECT * FROM w")
    before = world.coordinator.timeline.upper - 1
    world.ok(f"CREATE MATERIALIZED VIEW r REPLACING w AS {wide}", "ALTER MATERIALIZED VIEW w APPLY REPLACEMENT r")
    old = ["1|{1,10}|2024-01-01 00:00:01", "2|{2,NULL}|2024-01-01 00:00:02", "3|{3,30}|2024-01-01 00:00:03"]
    new = [
        "1|{1,100000000000}|2024-01-01 00:00:01.5",
        "2|{2,NULL}|2024-01-01 00:00:02.5",
        "3|{3,300000000000}|2024-01-01 00:00:03.5",
    ]
    for _ in range(2):
        assert world.rows("SELECT * FROM w") == new
        assert world.rows(f"SELECT * FROM w AS OF {before}") == old
        world.restart()


def test_wider_columns_have_their_past(world: World) -> None:
    world.ok("CREATE MATERIALIZED VIEW other AS SELECT k FROM mv", "CREATE INDEX i ON mv (k)", "SELECT * FROM other")
    before = world.coordinator.timeline.upper - 1
    world.ok(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {WIDE}")
    assert world.ok("SHOW REPLACEMENT DIFF r LIMIT 2")[1:] == ["-1|1|10|one", "1|1|100000000000|one!"]
    world.ok("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
    old = ["1|10|one", "2|NULL|NULL", "3|30|three"]
    new = ["1|100000000000|one!", "2|NULL|NULL", "3|300000000000|three!"]
    for _ in range(2):
        assert world.rows("SELECT * FROM mv") == new
        assert world.rows(f"SELECT * FROM mv AS OF {before}") == old
        assert world.rows("SELECT n FROM mv WHERE k = 3") == ["300000000000"]
        assert world.rows("SELECT k FROM mv WHERE n = 300000000000") == ["3"]
        assert world.rows(f"SELECT n FROM mv WHERE k = 3 AS OF {before}") == ["30"]
        assert world.rows(f"SELECT pg_typeof(n), sum(n) FROM mv GROUP BY 1 AS OF {before}") == ["bigint|40"]
        assert world.rows("SELECT * FROM other") == ["1", "2", "3"]
        types = world.ok("SHOW COLUMNS FROM mv")[1:]
        assert types == ["k|t|integer|", "n|t|bigint|", "name|t|text|"]
        world.restart()
    world.ok("INSERT INTO t VALUES (4, 40, 'four')")
    assert world.rows("SELECT * FROM mv WHERE k = 4") == ["4|400000000000|four!"]
    world.ok("CREATE MATERIALIZED VIEW above AS SELECT sum(n) AS n FROM mv")
    assert world.rows("SELECT * FROM above") == ["800000000000"]
    found = failure(world.sql, f"CREATE MATERIALIZED VIEW r REPLACING mv AS {NARROW}")
    assert found.detail == 'materialized view everview.public.above uses column "n"'
    world.ok("DROP MATERIALIZED VIEW above")
    between = world.coordinator.timeline.upper - 1
    world.ok(
        "ALTER MATERIALIZED VIEW mv ROLLBACK REPLACEMENT", "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT mv_rollback"
    )
    for _ in range(2):
        assert world.rows("SELECT * FROM mv") == [*old, "4|40|four"]
        assert world.rows(f"SELECT * FROM mv AS OF {before}") == old
        assert world.rows(f"SELECT k, n FROM mv WHERE k < 3 AS OF {between}") == ["1|NULL", "2|NULL"]
        world.restart()
    world.become(WIDE)  # once more: both pasts are there again
    assert world.rows(f"SELECT * FROM mv AS OF {before}") == old
    assert world.rows(f"SELECT * FROM mv WHERE k < 4 AS OF {between}") == new


def test_wider_twice(world: World) -> None:
    world.become("SELECT k, v::bigint AS n, name FROM t")
    world.ok("SELECT * FROM mv")
    middle = world.coordinator.timeline.upper - 1
    world.become("SELECT k, v::numeric(30,0) AS n, name FROM t")
    for _ in range(2):
        for when in ("", f" AS OF {middle}", f" AS OF {middle - 1}"):
            assert world.rows(f"SELECT k, n FROM mv WHERE k <> 2{when}") == ["1|10", "3|30"], when
        world.restart()


def test_who_uses_the_column_is_in_the_way(world: World, tmp_path: Path) -> None:
    world.ok(
        "CREATE VIEW plain AS SELECT n FROM mv",
        "CREATE MATERIALIZED VIEW above AS SELECT sum(n) AS s FROM mv",
        "CREATE INDEX by_n ON mv (n)",
        f"CREATE SINK out FROM mv INTO SQLITE (PATH '{tmp_path / 'out.db'}', TABLE 'o') KEY (k)",
    )
    found = failure(world.sql, "CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT k, v::bigint AS n, name FROM t")
    assert found.sqlstate == "2BP01"
    assert sorted((found.detail or "").splitlines()) == [
        'index everview.public.by_n uses column "n"',
        'materialized view everview.public.above uses column "n"',
        'sink everview.public.out uses column "n"',
        'view everview.public.plain uses column "n"',
    ]
    found = failure(world.sql, "CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT k, v::float8 AS n, name FROM t")
    assert found.detail == 'column "n" is integer in "mv" and double precision in "r"'


def test_subscriptions_end(world: World) -> None:
    whole = Subscriber(world.coordinator, "SUBSCRIBE (SELECT k, n FROM mv)")
    part = Subscriber(world.coordinator, "SUBSCRIBE (SELECT k FROM mv)")
    assert len(whole.data()) == len(part.data()) == 3
    world.become("SELECT k, v::bigint AS n, name FROM t")
    world.ok("INSERT INTO t VALUES (4, 4, '4')", "SELECT * FROM mv")
    assert part.data() == [(1, 4)]
    with pytest.raises(SqlError, match='column "n" of "mv" is bigint by now'):
        while whole.take() is not None:
            pass
    again = Subscriber(world.coordinator, "SUBSCRIBE (SELECT k, n FROM mv)")
    assert (1, 4, 4) in again.data()


def test_sinks_made_later(world: World, tmp_path: Path) -> None:
    world.become("SELECT k, v::bigint AS n, name FROM t")
    file = tmp_path / "out.db"
    world.ok(f"CREATE SINK one FROM mv INTO SQLITE (PATH '{file}', TABLE 'one') KEY (k)")
    world.ok("INSERT INTO t VALUES (5, 50, 'five')")
    delivered(world.coordinator, "one")
    assert in_sqlite(file, "one")[1] == world.rows("SELECT * FROM mv")
    found = failure(world.sql, f"CREATE SINK two FROM mv INTO CDC FILES '{tmp_path / 'stream'}'")
    assert found.sqlstate == "0A000"
