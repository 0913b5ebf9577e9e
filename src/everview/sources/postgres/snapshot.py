"""The contents of tables at the moment at which a slot begins: read by COPY, in pieces, as columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from everview.compute.rows.texts import NULL_MARK, text_fields
from everview.sources.postgres.connecting import UNKNOWN_ENCODING, failures, value
from everview.sources.postgres.errors import UpstreamFailed
from everview.sources.postgres.tables import UpstreamTable
from everview.sources.postgres.types import column_of, not_text
from everview.timely.consolidate import DIFF, TIME

if TYPE_CHECKING:
    import psycopg

BLOCK_BYTES = 8 << 20
PIECE_BYTES = 64 << 20
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def begin(db: psycopg.Connection[Any], snapshot: str) -> None:
    """Let a connection see what was there when the snapshot was taken, until it ends its transaction."""
    with failures("the snapshot cannot be read"):
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        db.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")


def estimated_rows(db: psycopg.Connection[Any], oids: list[int]) -> int:
    """How many rows the server believes that there are."""
    with failures("PostgreSQL failed"):
        found = value(db, "SELECT sum(greatest(reltuples, 0))::int8 FROM pg_class WHERE oid = ANY(%s)", oids)
    return int(found or 0)


def check_files(db: psycopg.Connection[Any], tables: Sequence[UpstreamTable]) -> None:
    """Raise if a table was truncated or written anew between the snapshot and its COPY, which then saw no rows."""
    query = """
        SELECT c.oid::regclass::text FROM pg_class AS c
        WHERE c.oid = ANY(%s) AND c.relfilenode IS DISTINCT FROM pg_relation_filenode(c.oid) LIMIT 1
    """
    with failures("PostgreSQL failed"):
        name = value(db, query, [each.oid for each in tables])
    if name is not None:
        raise UpstreamFailed("a table was written anew while the snapshot was taken", detail=f"it is {name}")


def copied(
    db: psycopg.Connection[Any], table: UpstreamTable, time: int, seen: Callable[[int, int], None]
) -> Iterator[pa.Table]:
    """The rows of a table as updates at a time, in pieces; `seen` hears of rows and bytes, and may raise."""
    pending: list[pa.Table] = []
    for block in _blocks(db, table):
        rows = _rows(block, table)
        seen(rows.num_rows, len(block))
        for name, number in ((TIME, time), (DIFF, 1)):
            rows = rows.append_column(name, pa.array(np.full(rows.num_rows, number, dtype=np.int64)))
        pending.append(rows)
        if sum(each.nbytes for each in pending) >= PIECE_BYTES:
            yield pa.concat_tables(pending)
            pending = []
    if pending:
        yield pa.concat_tables(pending)


def _blocks(db: psycopg.Connection[Any], table: UpstreamTable) -> Iterator[bytes]:
    """Whole lines, as many as make a block."""
    from psycopg import sql

    # Bytes of which the server does not know what they mean come as they are, and are checked here.
    raw = db.info.parameter_status("server_encoding") == UNKNOWN_ENCODING
    query = sql.SQL("COPY (SELECT {} FROM ONLY {}{}) TO STDOUT{}").format(
        sql.SQL(", ").join(sql.Identifier(each.name) for each in table.columns),
        sql.Identifier(table.schema, table.name),
        sql.SQL("" if table.where is None else f" WHERE {table.where}"),
        sql.SQL(f" (ENCODING '{UNKNOWN_ENCODING}')" if raw else ""),
    )
    lines: list[bytes] = []
    size = 0
    with failures(f"table {table.shown} cannot be read"), db.cursor() as cursor, cursor.copy(query) as copy:
        while data := copy.read():
            lines.append(bytes(data))
            size += len(data)
            if size >= BLOCK_BYTES:
                yield b"".join(lines)
                lines, size = [], 0
    if lines:
        yield b"".join(lines)


def _rows(block: bytes, table: UpstreamTable) -> pa.Table:
    width = len(table.columns)
    texts = text_fields(block, width)
    if texts is None:
        try:
            lines = block.decode().removesuffix("\n").split("\n")
        except UnicodeDecodeError:
            raise not_text(table.shown) from None
        rows = [_fields(line) for line in lines]
        texts = pa.table({f"c{place}": pa.array([row[place] for row in rows], pa.string()) for place in range(width)})
    columns = {
        f"c{place}": column_of(texts.column(place), each.type, f"{table.shown}.{each.name}")
        for place, each in enumerate(table.columns)
    }
    return pa.table(columns)


def _fields(line: str) -> list[str | None]:
    """The values of a line in PostgreSQL's text format, as the server writes it."""
    return [
        None if field == NULL_MARK else _ESCAPED.sub(_meant, field) if "\\" in field else field
        for field in line.split("\t")
    ]


def _meant(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[1], found[1])
