"""Statements over the wire, to Everview or to PostgreSQL, and their answers as records write them."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg.postgres import types as known_types

from tests.sqltext.records import shown

_COPY_IN = re.compile(r"COPY\b.*\bFROM\s+STDIN", re.IGNORECASE)
_COPY_OUT = re.compile(r"COPY\b.*\bTO\s+STDOUT", re.IGNORECASE | re.DOTALL)


class WireClient:
    """A connection of psycopg's that sends statements as psql does, and takes answers as text."""

    def __init__(self, url: str, **settings: str) -> None:
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self.connection: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True, options=options)

    def __call__(self, statement: str) -> list[str]:
        cursor = psycopg.ClientCursor(self.connection)
        first, _, data = statement.partition("\n")
        try:
            if _COPY_IN.match(first):
                with cursor.copy(first.encode()) as copy:
                    copy.write(data + "\n" if data else "")
                return [cursor.statusmessage or ""]
            if _COPY_OUT.match(statement):
                with cursor.copy(statement.encode()) as copy:
                    text = b"".join(bytes(piece) for piece in copy).decode()
                return [shown(line) for line in text.splitlines()] or ["COPY 0"]
            cursor.execute(statement.encode())
        except psycopg.Error as error:
            return [f"! {error.sqlstate} {shown(error.diag.message_primary or str(error))}"]
        while cursor.nextset():
            pass  # the answer is that of the last statement
        return _answer(cursor)

    @property
    def idle(self) -> bool:
        """Whether no transaction block is open."""
        return self.connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE

    def close(self) -> None:
        """End the connection."""
        self.connection.close()

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _answer(cursor: psycopg.Cursor[Any]) -> list[str]:
    result = cursor.pgresult
    assert result is not None
    if cursor.description is None:
        return [cursor.statusmessage] if cursor.statusmessage else []
    lines = ["|".join(f"{column.name}:{_type_name(column.type_code)}" for column in cursor.description)]
    for row in range(result.ntuples):
        values = [result.get_value(row, column) for column in range(result.nfields)]
        lines.append("|".join(shown(None if value is None else value.decode()) for value in values))
    return lines


def _type_name(oid: int) -> str:
    info = known_types.get(oid)
    if info is None:
        return str(oid)
    return f"{info.name}[]" if info.array_oid == oid and info.oid != oid else info.name
