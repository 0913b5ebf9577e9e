"""The clients that people use, driven for real: psql, pgbench, psycopg, asyncpg and pg8000."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import pg8000.native
import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Json, Jsonb

from everview.server.run import Running
from tests.server.fake import FakeAdapter

VALUES: dict[str, Any] = {
    "bool": True,
    "int2": -5,
    "int4": 2**31 - 1,
    "int8": -(2**63),
    "float4": 0.5,
    "float8": -1.25e300,
    "numeric(12,3)": Decimal("-12345.678"),
    "text": "ä\t'x'\\",
    "varchar(9)": "varchar",
    "char(3)": "abc",
    "bytea": bytes(range(256)),
    "date": date(2024, 2, 29),
    "time": time(23, 59, 59, 999999),
    "timestamp": datetime(1999, 12, 31, 23, 59, 59, 123456),
    "timestamptz": datetime(2024, 7, 1, 12, tzinfo=UTC),
    "interval": timedelta(days=3, hours=-5, microseconds=7),
    "uuid": uuid.UUID("12345678-1234-5678-1234-567812345678"),
    "int4[]": [1, None, 3],
    "text[]": ['a,"b"', "", None, "NULL"],
    "numeric(5,1)[]": [Decimal("1.5")],
    "timestamptz[]": [datetime(2024, 7, 1, tzinfo=UTC)],
}


@pytest.fixture
def psql(server: Running, programs: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str, stdin: str = "", program: str = "psql") -> subprocess.CompletedProcess[str]:
        connection = ["-h", server.pg.host, "-p", str(server.pg.port), "-U", "everview"]
        environment = {"PATH": os.environ["PATH"], "PGDATABASE": "everview", "PGCLIENTENCODING": "UTF8"}
        return subprocess.run(
            [programs / program, *connection, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
            check=False,
        )

    return run


def test_psql(psql: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    script = """
create table t (a int4, b text);
begin;
insert into t values (1, 'one');
commit;
copy t from stdin with (format csv, header);
a,b
2,"tw""o"
3,
\\.
copy t to stdout;
select * from t;
fail notice;
select 1/0;
\\echo after :SQLSTATE
select * from nothing;
\\set FETCH_COUNT 2
set application_name = 'me';
show application_name;
"""
    result = psql("-XqAt", stdin=script)
    assert result.stdout.splitlines() == [
        *("1\tone", '2\ttw"o', "3\t\\N"),
        *("1|one", '2|tw"o', "3|"),
        *("after 22012", "me"),
    ]
    assert "NOTICE:  take note\nDETAIL:  of this\nHINT:  or not\n" in result.stderr
    assert "ERROR:  division by zero" in result.stderr
    assert 'ERROR:  relation "nothing" does not exist' in result.stderr


def test_psql_shows_where_an_error_is(psql: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    result = psql("-Xc", "select 1, ?")
    assert result.returncode == 1
    assert "LINE 1: select 1, ?\n                  ^" in result.stderr


def test_psql_copies_files(psql: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("".join(f"{n}\tname {n}\n" for n in range(5_000)))
    script = f"create table t (a int4, b text);\n\\copy t from {file}\n\\copy t to {tmp_path / 'out'}\n"
    result = psql("-Xq", stdin=script)
    assert result.stderr == ""
    assert (tmp_path / "out").read_text() == file.read_text()


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench(psql: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, mode: str) -> None:
    psql("-Xc", "create table t (a int4, b text)")
    script = tmp_path / "script.sql"
    script.write_text("\\set n random(1, 100)\nselect :n;\ninsert into t values (:n, 'x');\n")
    result = psql("-n", "-f", str(script), "-M", mode, "-c", "4", "-j", "2", "-t", "50", program="pgbench")
    assert result.returncode == 0, result.stderr
    assert "number of transactions actually processed: 200/200" in result.stdout
    assert "number of failed transactions: 0" in result.stdout


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("kind", VALUES)
def test_psycopg_values(url: str, kind: str, binary: bool) -> None:
    with psycopg.connect(url) as connection:
        mark = "%b" if binary else "%t"
        cursor = connection.cursor(binary=binary)
        value = VALUES[kind]
        result = cursor.execute(f"select {mark}::{kind}, null::{kind}".encode(), [value]).fetchone()
        assert result == (value, None)
        assert cursor.description is not None and cursor.description[0].name == "?column?"


def test_psycopg_json(url: str) -> None:
    with psycopg.connect(url) as connection:
        for wrapper in (Json, Jsonb):
            for binary in (False, True):
                mark = "%b" if binary else "%t"
                row = (
                    connection.cursor(binary=binary)
                    .execute(f"select {mark}".encode(), [wrapper({"a": [1]})])
                    .fetchone()
                )
                assert row == ({"a": [1]},)


def test_psycopg_transactions_and_errors(url: str, adapter: FakeAdapter) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create table t (a int4, b text)")
        connection.execute("insert into t values (1, 'x')")
        connection.commit()
        connection.execute("insert into t values (2, 'y')")
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("select 1/0")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("select 1")
        connection.rollback()
        assert connection.execute("select * from t").fetchall() == [(1, "x")]
        with pytest.raises(psycopg.errors.InvalidParameterValue) as caught:
            connection.execute("fail explain")
        diagnostic = caught.value.diag
        assert (diagnostic.message_detail, diagnostic.message_hint, diagnostic.statement_position) == (
            "this",
            "that",
            "7",
        )
    assert adapter.tables["t"].rows == [(1, "x")]


def test_psycopg_prepared_statements_pipelines_and_many(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for n in range(10):
            assert connection.execute("select %s::int4", [n], prepare=True).fetchone() == (n,)
        connection.execute("create table t (a int4, b text)")
        with connection.cursor() as cursor:
            cursor.executemany("insert into t values (%s, %s)", [(n, str(n)) for n in range(100)])
        assert len(connection.execute("select * from t").fetchall()) == 100
        with connection.pipeline():
            cursors = [connection.execute("select %s::int4", [n]) for n in range(20)]
            assert [cursor.fetchone() for cursor in cursors] == [(n,) for n in range(20)]


def test_psycopg_streams(url: str) -> None:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        numbers = [row[0] for row in cursor.stream("select * from generate_series(1, 3000)")]
        assert numbers == list(range(1, 3001))


def test_psycopg_copies(url: str) -> None:
    rows = [(n, None if n % 3 == 0 else f"tab\t{n}\n") for n in range(2_000)]
    with psycopg.connect(url) as connection:
        connection.execute("create table t (a int4, b text)")
        with connection.cursor() as cursor, cursor.copy("copy t from stdin") as to:
            for row in rows:
                to.write_row(row)
        assert connection.execute("select * from t").fetchall() == rows
        with connection.cursor() as cursor, cursor.copy("copy t to stdout") as source:
            source.set_types(["int4", "text"])
            assert list(source.rows()) == rows
        with pytest.raises(ValueError), connection.cursor() as cursor, cursor.copy("copy t from stdin") as to:
            to.write("1\ta\n")
            raise ValueError("the client gives up")
        assert connection.info.transaction_status.name == "INERROR"
        connection.rollback()


def test_psycopg_notices_and_parameters(url: str) -> None:
    with psycopg.connect(url) as connection:
        heard: list[str | None] = []
        connection.add_notice_handler(lambda notice: heard.append(notice.message_primary))
        connection.execute("fail notice")
        assert heard == ["take note"]
        connection.execute("set application_name = 'changed'")
        assert connection.info.parameter_status("application_name") == "changed"
        assert connection.info.parameter_status("server_version") == "18.0"
        assert connection.info.encoding == "utf-8"


def test_psycopg_refusals(url: str) -> None:
    for change, text in (
        (("everview@", "nobody@"), 'role "nobody" does not exist'),
        (("/everview", "/nowhere"), 'database "nowhere" does not exist'),
    ):
        with pytest.raises(psycopg.OperationalError, match=text):
            psycopg.connect(url.replace(*change))
    with pytest.raises(psycopg.OperationalError, match="replication connections are not supported"):
        psycopg.connect(url, replication="database")


def run(work: Callable[[asyncpg.Connection], Any], server: Running) -> Any:
    async def main() -> Any:
        connection = await asyncpg.connect(
            host=server.pg.host, port=server.pg.port, user="everview", database="everview"
        )
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(main())


def test_asyncpg_values(server: Running) -> None:
    async def work(connection: asyncpg.Connection) -> None:
        for kind, value in VALUES.items():
            if kind.endswith("[]"):
                continue  # asyncpg asks the catalog about arrays first, and the fake adapter has none
            row = await connection.fetchrow(f"select $1::{kind}, null::{kind}", value)
            assert tuple(row) == (value, None), kind
        assert json.loads(await connection.fetchval("select $1::jsonb", '{"a": 1}')) == {"a": 1}

    run(work, server)


def test_asyncpg_transactions_cursors_and_errors(server: Running) -> None:
    async def work(connection: asyncpg.Connection) -> None:
        await connection.execute("create table t (a int4, b text)")
        async with connection.transaction():
            await connection.executemany("insert into t values ($1, $2)", [(n, str(n)) for n in range(50)])
            numbers = [
                row["g"] async for row in connection.cursor("select * from generate_series(1, 500)", prefetch=70)
            ]
            assert numbers == list(range(1, 501))
        assert len(await connection.fetch("select * from t")) == 50
        with pytest.raises(asyncpg.DivisionByZeroError):
            await connection.fetch("select 1/0")
        with pytest.raises(asyncpg.InvalidParameterValueError) as caught:
            await connection.fetch("fail explain")
        assert (caught.value.detail, caught.value.hint, caught.value.position) == ("this", "that", "7")
        with pytest.raises(asyncio.TimeoutError):
            await connection.fetch("select pg_sleep(30)", timeout=0.2)  # asyncpg cancels what it gives up on
        assert await connection.fetchval("select 1") == 1

    run(work, server)


def test_asyncpg_copies(server: Running, tmp_path: Path) -> None:
    async def work(connection: asyncpg.Connection) -> None:
        await connection.execute("create table t (a int4, b text)")
        source, target = tmp_path / "in", tmp_path / "out"
        source.write_text("".join(f"{n},x{n}\n" for n in range(3_000)))
        with pytest.raises(asyncpg.PostgresSyntaxError):  # it quotes names, which the fake adapter does not know
            await connection.copy_to_table("t", source=source, format="csv")
        await connection.copy_from_query("select * from generate_series(1, 3)", output=target)
        assert target.read_text() == "1\n2\n3\n"

    run(work, server)


def test_pg8000(server: Running) -> None:
    connection = pg8000.native.Connection("everview", host=server.pg.host, port=server.pg.port, database="everview")
    try:
        assert connection.run("select 1, 'x' as b") == [[1, "x"]]
        for kind in (
            "bool",
            "int4",
            "int8",
            "float8",
            "numeric(12,3)",
            "text",
            "bytea",
            "date",
            "timestamp",
            "uuid",
            "int4[]",
        ):
            assert connection.run(f"select :value::{kind}", value=VALUES[kind]) == [[VALUES[kind]]], kind
        connection.run("create table t (a int4, b text)")
        connection.run("begin")
        connection.run("insert into t values (:a, :b)", a=1, b="one")
        connection.run("commit")
        connection.run("copy t from stdin", stream=io.BytesIO(b"2\ttwo\n"))
        out = io.BytesIO()
        connection.run("copy t to stdout", stream=out)
        assert out.getvalue() == b"1\tone\n2\ttwo\n"
        with pytest.raises(pg8000.native.DatabaseError) as caught:
            connection.run("select 1/0")
        assert caught.value.args[0]["C"] == "22012"
        assert connection.run("select 1") == [[1]]
    finally:
        connection.close()


def test_identifiers_are_composed_by_the_driver(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create table t (a int4)")
        statement = sql.SQL("insert into t values ({})").format(sql.Literal(5))
        connection.execute(statement)
        assert connection.execute("select * from t").fetchall() == [(5,)]
