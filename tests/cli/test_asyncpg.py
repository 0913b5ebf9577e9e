"""asyncpg against a real environment: it looks types up in the catalog, and speaks binary wherever it can."""

from __future__ import annotations

import asyncio
import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from everview.server.run import Running

TABLE = "CREATE TABLE t (a int, b text, c timestamptz, d numeric(8,2), e int[], f jsonb, g uuid, h interval)"
ROWS: list[tuple[Any, ...]] = [
    (1, "ä'\\", datetime(2024, 2, 29, 12, tzinfo=UTC), Decimal("1.25"), [1, None], '{"k": [1]}', UUID(int=7), None),
    (2, None, None, None, [], None, None, timedelta(days=1, hours=2)),
]


def test_asyncpg(served: Running) -> None:
    asyncio.run(_session(served))


async def _session(served: Running) -> None:
    connection = await asyncpg.connect(f"postgresql://everview@{served.pg}/everview")
    try:
        await connection.execute(TABLE)
        await connection.executemany("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", ROWS)
        assert [tuple(row) for row in await connection.fetch("SELECT * FROM t ORDER BY a")] == ROWS
        await _types(connection)
        await _prepared(connection)
        await _transactions(connection)
        await _copies(connection)
        await connection.reset()
    finally:
        await connection.close()


async def _types(connection: asyncpg.Connection[Any]) -> None:
    """Arrays and domains, which asyncpg finds by a recursive query over pg_type; codecs of one's own."""
    assert await connection.fetchval("SELECT $1::timestamptz[]", [ROWS[0][2], None]) == [ROWS[0][2], None]
    assert await connection.fetchval("SELECT '{5}'::int8[]") == [5]
    described = await connection.prepare("SELECT mz_now() AS now, relkind, oid FROM pg_class LIMIT 1")
    assert [each.type.name for each in described.get_attributes()] == ["int8", "char", "oid"]
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads, format="text")
    assert await connection.fetchval("SELECT f FROM t WHERE f = $1", {"k": [1]}) == {"k": [1]}
    with pytest.raises(asyncpg.UnsupportedClientFeatureError, match="domain"):
        await connection.set_type_codec("mz_timestamp", schema="pg_catalog", encoder=str, decoder=int)


async def _prepared(connection: asyncpg.Connection[Any]) -> None:
    statement = await connection.prepare("SELECT a, d FROM t WHERE a = $1")
    assert [each.type.name for each in statement.get_attributes()] == ["int4", "numeric"]
    assert [each.name for each in statement.get_parameters()] == ["int4"]
    assert [tuple(row) for row in await statement.fetch(1)] == [(1, Decimal("1.25"))]
    assert await statement.fetchrow(99) is None
    with pytest.raises(asyncpg.DivisionByZeroError):
        await connection.fetchval("SELECT 1 / $1::int", 0)


async def _transactions(connection: asyncpg.Connection[Any]) -> None:
    async with connection.transaction():
        await connection.execute("INSERT INTO t (a) VALUES ($1)", 3)
    with pytest.raises(ZeroDivisionError):
        async with connection.transaction():
            await connection.execute("INSERT INTO t (a) VALUES ($1)", 4)
            raise ZeroDivisionError
    async with connection.transaction(isolation="serializable", readonly=True):
        found = [row["a"] async for row in connection.cursor("SELECT a FROM t ORDER BY a", prefetch=2)]
        assert found == [1, 2, 3]
        cursor = await connection.cursor("SELECT a FROM t ORDER BY a")
        assert [row["a"] for row in await cursor.fetch(2)] == [1, 2]
        assert [row["a"] for row in await cursor.fetch(2)] == [3]
        cursor = await connection.cursor("SELECT a FROM t ORDER BY a")
        assert await cursor.forward(1) == 1  # MOVE, which speaks of a portal that was never run
        assert [row["a"] for row in await cursor.fetch(1)] == [2]
        assert await cursor.forward(5) == 1
        assert await cursor.fetch(1) == []


async def _copies(connection: asyncpg.Connection[Any]) -> None:
    given = io.BytesIO(b'10,"x,y"\n11,\n')
    assert await connection.copy_to_table("t", source=given, columns=["a", "b"], format="csv") == "COPY 2"
    records = [
        (20, "ö", ROWS[0][2], Decimal("7.25"), [3], '{"k": 1}', UUID(int=9), timedelta(days=3)),
        (21, *[None] * 7),
    ]
    await connection.reset_type_codec("jsonb", schema="pg_catalog")
    assert await connection.copy_records_to_table("t", records=records) == "COPY 2"
    assert [tuple(row) for row in await connection.fetch("SELECT * FROM t WHERE a >= 20 ORDER BY a")] == records
    everything = io.BytesIO()
    await connection.copy_from_query("SELECT * FROM t WHERE a >= 20", output=everything, format="binary")
    assert everything.getvalue().startswith(b"PGCOPY\n") and "ö".encode() in everything.getvalue()
    with pytest.raises(asyncpg.NumericValueOutOfRangeError):
        await connection.copy_records_to_table("t", records=[(30, Decimal("1e9"))], columns=["a", "d"])
    taken = io.BytesIO()
    await connection.execute("DELETE FROM t WHERE a >= 20")
    await connection.copy_from_query("SELECT a, b FROM t WHERE a >= $1", 10, output=taken, format="csv")
    assert sorted(taken.getvalue().splitlines()) == [b'10,"x,y"', b"11,"]
