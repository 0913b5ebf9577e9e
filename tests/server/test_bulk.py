"""Many rows over the wire of a real environment: drivers and psql read them in all formats, fast or slowly."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psycopg
import pyarrow as pa
import pytest

from everview.adapter.contract import Column
from everview.adapter.coordinator import Coordinator
from everview.adapter.results import TableRows
from everview.adapter.tabular import Tables
from everview.compute.ir import types as t
from everview.compute.sql.errors import SqlError
from everview.server.pgwire import results
from everview.server.run import start
from tests.server.conftest import LOCAL

ROWS = 6_000
COLUMNS = "id int NOT NULL, price numeric(12,2), bought timestamptz, big bigint, note text, tags int[], doc jsonb"
Url = str


def line(number: int) -> str:
    """A row as COPY writes it: prices below zero, a NULL now and then, and text that has to be escaped."""
    price = "\\N" if number % 7 == 0 else f"{'-' if number % 3 else ''}{number % 991}.{number % 100:02d}"
    bought = "infinity" if number % 101 == 0 else f"1969-12-31 23:{number % 60:02d}:0{number % 10}.5+00"
    note = "\\N" if number % 5 == 0 else f"n\u00f6te\\t{number}" + "x" * 500 * (number % 2)
    return f'{number}\t{price}\t{bought}\t{number * 10**12}\t{note}\t{{{number},NULL}}\t{{"a": {number}}}'


LINES = [line(number) for number in range(1, ROWS + 1)]


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinator]:
    with Coordinator.open(tmp_path_factory.mktemp("bulk") / "data") as opened:
        yield opened


@pytest.fixture(scope="module")
def url(coordinator: Coordinator) -> Iterator[Url]:
    with start(coordinator, LOCAL) as running:
        url = f"postgresql://everview@{running.pg.host}:{running.pg.port}/everview"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLE lines ({COLUMNS})")
            with connection.cursor().copy("COPY lines FROM STDIN") as copy:
                for start_at in range(0, ROWS, 1_000):
                    copy.write("".join(each + "\n" for each in LINES[start_at : start_at + 1_000]))
        yield url


def psql(programs: Path, url: Url, command: str) -> str:
    done = subprocess.run([programs / "psql", url, "-qXAtc", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_copy_out_can_be_copied_in_again(url: Url, programs: Path, form: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE again_{form} ({COLUMNS})")
        with connection.cursor().copy(f"COPY lines TO STDOUT (FORMAT {form})") as copy:
            data = b"".join(map(bytes, copy))
        with connection.cursor().copy(f"COPY again_{form} FROM STDIN (FORMAT {form})") as copy:
            copy.write(data)
    assert psql(programs, url, f"COPY (SELECT * FROM again_{form} ORDER BY id) TO STDOUT").splitlines() == LINES


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_reads_what_psql_reads(url: Url, programs: Path, binary: bool) -> None:
    query = "SELECT id, price, big, note, tags, doc FROM lines ORDER BY price DESC NULLS LAST, id"
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.cursor(binary=binary).execute(query).fetchall()
    assert len(rows) == ROWS
    shown = psql(programs, url, f"COPY ({query}) TO STDOUT").splitlines()
    assert [str(row[0]) for row in rows] == [each.split("\t")[0] for each in shown]
    for row in rows[:100]:
        assert row[2] == row[0] * 10**12 and row[4] == [row[0], None] and row[5] == {"a": row[0]}


def test_asyncpg_reads_rows_and_portals_with_limits(url: Url) -> None:
    async def read() -> None:
        connection = await asyncpg.connect(url)
        rows = await connection.fetch("SELECT id, big FROM lines ORDER BY id")
        assert [tuple(row) for row in rows] == [(n, n * 10**12) for n in range(1, ROWS + 1)]
        async with connection.transaction():
            found = [row["id"] async for row in connection.cursor("SELECT id FROM lines ORDER BY id", prefetch=700)]
            assert found == list(range(1, ROWS + 1))
            cursor = await connection.cursor("SELECT id FROM lines ORDER BY id DESC")
            assert [row["id"] for row in await cursor.fetch(3)] == [ROWS, ROWS - 1, ROWS - 2]
            assert [row["id"] for row in await cursor.fetch(1)] == [ROWS - 3]
        await connection.close()

    asyncio.run(read())


def test_a_slow_reader_reads_what_was_there(url: Url) -> None:
    with psycopg.connect(url, autocommit=True) as connection, psycopg.connect(url, autocommit=True) as other:
        other.execute(f"CREATE TABLE leaving ({COLUMNS})")
        other.execute("INSERT INTO leaving SELECT * FROM lines")
        with connection.cursor().copy("COPY leaving TO STDOUT") as copy:
            first = next(iter(copy))
            other.execute("DELETE FROM leaving")
            assert other.execute("SELECT count(*) FROM leaving").fetchall() == [(0,)]
            found = [bytes(first), *map(bytes, copy)]
        assert sorted(b"".join(found).decode().splitlines()) == sorted(LINES)
        other.execute("DROP TABLE leaving")


def test_a_cancel_in_the_midst_of_a_result(url: Url) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE plenty (note text)")
        with connection.cursor().copy("COPY plenty FROM STDIN") as copy:  # more than what sockets hold
            for number in range(3_000):
                copy.write(f"{number} {'x' * 10_000}\n")
        with pytest.raises(psycopg.errors.QueryCanceled), connection.cursor().copy("COPY plenty TO STDOUT") as copy:
            next(iter(copy))
            connection.cancel_safe()
            for _ in copy:
                pass
        assert connection.execute("SELECT count(*) FROM lines").fetchall() == [(ROWS,)]
        connection.execute("DROP TABLE plenty")


class Sent:
    """A wire that counts."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def send(self, data: bytes) -> None:
        self.messages.append(data)

    def flush(self) -> None: ...

    def check(self) -> None: ...


def test_a_time_limit_ends_a_result_between_pieces() -> None:
    columns = (Column("a", t.INT4),)
    pieces = [pa.table({"c0": pa.array(range(100), pa.int32())}) for _ in range(5)]
    wire, asked = Sent(), []

    def check() -> None:
        asked.append(len(wire.messages))
        if wire.messages:
            raise SqlError("57014", "canceling statement due to statement timeout")

    stream = results.result_stream(TableRows(columns, Tables(iter(pieces))), [0], wire, lambda: None)  # type: ignore[arg-type]
    with pytest.raises(SqlError, match="statement timeout"):
        stream.send(check=check)
    assert len(wire.messages) == 1
