"""Conversations as real drivers have them, written down: what psycopg says to a server, message by message."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from tests.torture.sentinel import connect

Conversation = list[bytes]  # the packet that begins it, and the messages after that
Talk = Callable[[psycopg.Connection[tuple[Any, ...]]], None]


class Recorder:
    """Stands between a driver and a server, and keeps what the driver says."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.said: list[bytearray] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        try:
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                said = bytearray()
                self.said.append(said)
                threading.Thread(target=_pass_on, args=(client, server, said), daemon=True).start()
                threading.Thread(target=_pass_on, args=(server, client, None), daemon=True).start()
        except OSError:
            return


def _pass_on(source: socket.socket, target: socket.socket, said: bytearray | None) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            if said is not None:
                said += data
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def messages_of(said: bytes) -> Conversation:
    """The packet at the beginning, and each message."""
    found: Conversation = []
    while said:
        start = 0 if not found else 1
        (length,) = struct.unpack_from("!i", said, start)
        found.append(bytes(said[: start + length]))
        said = said[start + length :]
    return found


def _simple(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    for text in (
        "SELECT 1",
        "SELECT 'a' || 'b', 1.5::numeric, now(), ARRAY[1, 2], NULL",
        "SELECT k, count(*) FROM fuzz GROUP BY k ORDER BY k LIMIT 5",
        "SELECT * FROM fuzz a JOIN fuzz b USING (k) WHERE a.v LIKE 'x%'",
        "SHOW ALL",
        "EXPLAIN SELECT k FROM fuzz",
        "SELECT relname FROM pg_catalog.pg_class WHERE relkind IN ('r', 'v') AND relname ~ '^(f.*)$'",
    ):
        connection.execute(text)
    for text in ("SELECT nothing FROM nowhere", "SELEC", "SELECT 1/0"):
        try:
            connection.execute(text)
        except psycopg.Error:
            continue


def _parameters(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    for _ in range(3):
        connection.execute("SELECT %s::int, %s::text, %s::date", (5, "text", None), prepare=True)
        connection.execute("INSERT INTO fuzz VALUES (%s, %s)", (1, "one"))
    with connection.cursor(binary=True) as cursor:
        cursor.execute("SELECT %b::bigint, %b::float8", (7, 1.5))
    with connection.pipeline():
        for number in range(5):
            connection.execute("SELECT k FROM fuzz WHERE k = %s", (number,))


def _blocks(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    with connection.transaction():
        connection.execute("INSERT INTO fuzz VALUES (2, 'two')")
        connection.execute("SAVEPOINT s")
        connection.execute("UPDATE fuzz SET v = 'x' WHERE k = 2")
        connection.execute("ROLLBACK TO SAVEPOINT s")
        connection.execute("DECLARE c CURSOR FOR SELECT * FROM fuzz")
        connection.execute("FETCH 2 c")
    with connection.transaction():
        connection.execute("DECLARE d CURSOR FOR SUBSCRIBE TO fuzz_s WITH (PROGRESS)")
        connection.execute("FETCH ALL d WITH (timeout = '1ms')")
    connection.execute("DELETE FROM fuzz WHERE k = 2")


def _copies(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    cursor = connection.cursor()
    with cursor.copy("COPY fuzz FROM STDIN") as copy:
        for number in range(20):
            copy.write_row((number, f"row {number}"))
    with cursor.copy("COPY fuzz FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int4", "text"])
        for number in range(5):
            copy.write_row((number, f"row {number}"))
    with cursor.copy("COPY (SELECT * FROM fuzz LIMIT 50) TO STDOUT") as copy:
        for _ in copy:
            pass
    connection.execute("TRUNCATE fuzz")


def _definitions(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS made (a int, b text DEFAULT 'x')")
    connection.execute("CREATE VIEW seen AS SELECT a FROM made WHERE b IS NOT NULL")
    connection.execute("COMMENT ON TABLE made IS 'by a driver'")
    connection.execute("DROP VIEW seen")
    connection.execute("DROP TABLE made")
    connection.execute("SET application_name = 'fuzz'")
    connection.execute("RESET application_name")


TALKS: tuple[Talk, ...] = (_simple, _parameters, _blocks, _copies, _definitions)


@contextmanager
def _recorded(port: int) -> Iterator[Recorder]:
    recorder = Recorder(port)
    try:
        yield recorder
    finally:
        recorder.close()


def record(port: int) -> list[Conversation]:
    """What a driver says to the server at this port, in conversations of all kinds."""
    with connect(port) as connection:
        connection.execute("CREATE TABLE fuzz (k int, v text)")
        connection.execute("CREATE SUBSCRIPTION fuzz_s FOR fuzz")
    with _recorded(port) as recorder:
        for talk in TALKS:
            with connect(recorder.port, sslmode="disable", gssencmode="disable") as connection:
                talk(connection)
    return [messages_of(bytes(said)) for said in recorder.said]
