"""NUL, which no text of PostgreSQL can hold: it is refused on every way in, and a sink into PostgreSQL goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString
from uuid import uuid4

import psycopg
import pytest

from everview.adapter.coordinator import Coordinator
from everview.server.addresses import Address
from everview.server.metrics import Metrics
from everview.server.run import Options, Running, start
from tests.waiting import eventually

# Each with the SQLSTATE that PostgreSQL has for it.
WAYS_IN: dict[LiteralString, str] = {
    r"INSERT INTO t VALUES (1, E'a\x00b')": "22021",
    r"INSERT INTO t VALUES (1, E'a\u0000b')": "42601",
    r"INSERT INTO t SELECT 1, convert_from('\x610062'::bytea, 'UTF8')": "22021",
    r"INSERT INTO t SELECT 1, chr(0)": "54000",
    r"""INSERT INTO t SELECT 1, '{"a": "a\u0000b"}'::jsonb ->> 'a'""": "22P05",
    r"UPDATE t SET v = v || E'\x00'": "22021",
}
Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with (
        Coordinator.open(tmp_path / "data") as coordinator,
        start(coordinator, Options(pg=Address("127.0.0.1", 0), http=None), Metrics()) as served,
    ):
        yield served


@pytest.fixture
def connection(running: Running) -> Iterator[Connection]:
    address = f"host=127.0.0.1 port={running.pg.port} user=everview dbname=everview"
    with psycopg.connect(address, autocommit=True) as opened:
        yield opened


class Delivered:
    """What a sink has written into a table of PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._url, self.table = url, f"nul_{uuid4().hex}"

    def into(self) -> str:
        return f"INTO POSTGRES (CONNECTION '{self._url}', TABLE '{self.table}') KEY (k)"

    def rows(self) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._url) as there:
            try:
                return there.execute(f"SELECT k, v FROM {self.table} ORDER BY k").fetchall()
            except psycopg.errors.UndefinedTable:
                return []


def test_no_statement_takes_it_and_the_sink_goes_on(connection: Connection, postgres_url: str) -> None:
    there = Delivered(postgres_url)
    connection.execute("CREATE TABLE t (k int, v text)")
    connection.execute("INSERT INTO t VALUES (0, 'before')")
    connection.execute(f"CREATE SINK s FROM t {there.into()}")
    for statement, state in WAYS_IN.items():
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(statement)
        assert refused.value.sqlstate == state, (statement, refused.value)
    for form, line in {"TEXT": b"1\ta\x00b\n", "CSV": b"1,a\x00b\n"}.items():
        with (
            pytest.raises(psycopg.Error) as refused,
            connection.cursor().copy(f"COPY t FROM STDIN (FORMAT {form})") as copy,
        ):
            copy.write(line)
        assert refused.value.sqlstate == "22021", (form, refused.value)
    for binary in (0, 1):  # drivers refuse such a parameter themselves, so it is sent by the library below
        sent = connection.pgconn.exec_params(b"INSERT INTO t SELECT 1, $1", [b"a\x00b"], [25], [1], binary)
        assert sent.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"22021"
    connection.execute("INSERT INTO t VALUES (2, 'after')")
    assert eventually(lambda: there.rows() == [(0, "before"), (2, "after")])


def test_a_change_stream_with_it_is_not_believed(connection: Connection, postgres_url: str, tmp_path: Path) -> None:
    there, stream = Delivered(postgres_url), tmp_path / "stream"
    stream.mkdir()
    texts = ["fine", "a\0b"]
    for time, text in enumerate(texts):
        update = {"data": {"k": time, "v": text}, "time": time, "diff": 1}
        progress = {"lower": [time], "upper": [time + 1], "counts": [{"time": time, "count": 1}]}
        lines = [{"updates": [update]}, {"progress": progress}]
        (stream / f"{time}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    connection.execute(f"CREATE SOURCE c (k int, v text) FROM CDC FILES '{stream}'")
    connection.execute(f"CREATE SINK s FROM c {there.into()}")
    assert eventually(lambda: there.rows() == [(0, "fine")])
    bad = "SELECT piece FROM mz_internal.mz_source_bad_records"
    assert eventually(lambda: connection.execute(bad).fetchall() == [("1.jsonl",)])
