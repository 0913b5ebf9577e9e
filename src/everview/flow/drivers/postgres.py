"""PostgreSQL: the database is authoritative. Tables and checkpoint change in one transaction, and the fence decides.

New documents are copied straight into the table, whose primary key refuses duplicates. Updates, deletes and loads are
one statement each for a whole batch, over arrays of texts that the server casts: any type goes through its text form.
Documents are kept back until the commit, or until there are many, so that a stalled transaction holds no locks; a
large one that stalls is ended by the server.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from everview.compute.ir.infinite import has_infinities
from everview.compute.ir.types import Kind, SqlType
from everview.flow.contract import Binding, Field, Spec
from everview.flow.drivers.contract import CENSUS_S, Option, library
from everview.flow.drivers.sql import (
    SqlDriver,
    SqlTransactor,
    columns_of,
    from_texts,
    quoted,
    table_name,
    table_of,
    text_values,
)
from everview.flow.errors import DriverFailed
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import DriverState
from everview.reach.conninfo import pinned

STALL_MS = 300_000
CONNECT_S = 20

# Types that Arrow writes to CSV in a form that PostgreSQL reads.
_PLAIN = set(Kind) - {Kind.TIME, Kind.INTERVAL, Kind.BYTEA, Kind.ARRAY, Kind.UNKNOWN}


class PostgresDriver(SqlDriver):
    """Tables in a PostgreSQL database."""

    name = "postgres"
    parameter = "%s"
    checkpoint_columns = (
        "(materialization text, key_begin bigint, key_end bigint, fence bigint NOT NULL, checkpoint text NOT NULL, "
        "PRIMARY KEY (materialization, key_begin, key_end))"
    )
    locking = " FOR UPDATE"
    no_keys = frozenset((Kind.FLOAT4, Kind.FLOAT8))
    options = (Option("connection", "postgresql://user:password@host/database", required=True, secret=True),)
    resource_options = (Option("table", "the table to keep, or schema.table", required=True),)

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.duplicate_errors = (library("psycopg", "psycopg[binary]", "postgres").errors.UniqueViolation,)

    @contextmanager
    def connected(self, name: str) -> Iterator[Any]:
        with self.failures():
            db = self.connect_for_good(name)
            try:
                yield db
            finally:
                db.close()

    def connect_for_good(self, name: str) -> Any:
        import psycopg

        settings = {
            "TimeZone": "UTC",
            "DateStyle": "ISO",
            "IntervalStyle": "postgres",
            "idle_in_transaction_session_timeout": str(STALL_MS),
        }
        try:
            where = pinned(self.config["connection"])
        except OSError as error:
            raise DriverFailed("cannot connect to PostgreSQL", detail=str(error)) from None
        try:
            return psycopg.connect(
                where,
                autocommit=True,
                connect_timeout=CONNECT_S,
                options=" ".join(f"-c {setting}={value}" for setting, value in settings.items()),
                application_name=f"everview {name}",
            )
        except psycopg.Error as error:
            raise DriverFailed("cannot connect to PostgreSQL", detail=str(error).strip()) from None

    @contextmanager
    def transaction(self, db: Any, lock: str) -> Iterator[None]:
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(hashtext('everview'), hashtext(%s))", [lock])
            yield

    @contextmanager
    def snapshot(self, db: Any) -> Iterator[None]:
        with db.transaction():
            db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            db.execute(f"SET LOCAL statement_timeout = {CENSUS_S * 1000:.0f}")
            yield

    def table_columns(self, db: Any, table: str) -> tuple[list[tuple[str, str]], list[str]]:
        name = ".".join(map(quoted, table.split(".")))
        columns = db.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [name],
        ).fetchall()
        primary = db.execute(
            "SELECT attname FROM pg_index, unnest(indkey) WITH ORDINALITY AS k(at, place), pg_attribute "
            "WHERE indrelid = to_regclass(%s) AND indisprimary AND attrelid = indrelid AND attnum = at ORDER BY place",
            [name],
        ).fetchall()
        return columns, [name for (name,) in primary]

    def type_name(self, sql_type: SqlType) -> str:
        if sql_type.kind is Kind.MZ_TIMESTAMP:
            return "bigint"
        return "text" if sql_type.kind is Kind.UNKNOWN else str(sql_type)

    @contextmanager
    def failures(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            detail = str(error.diag.message_primary or error).strip()
            raise DriverFailed("PostgreSQL failed", detail=f"{detail} ({error.sqlstate or 'connection'})") from None

    def duplicate_detail(self, error: Any) -> str:
        return str(error.diag.message_detail or error)

    def open(self, spec: Spec, range: KeyRange, state: DriverState) -> SqlTransactor:
        return PostgresTransactor(self, spec, range)


class PostgresTransactor(SqlTransactor):
    """One range of keys in a PostgreSQL database."""

    def begin(self) -> None:
        if self._db.info.transaction_status == 0:
            self._db.execute("BEGIN")

    def rows_with(self, binding: Binding, keys: pa.Table) -> pa.Table:
        columns = ", ".join(f"t.{quoted(name)}::text" for name in binding.names)
        join = f"JOIN {table_name(binding)} t USING ({columns_of(binding.key)})"
        found = self._run(f"SELECT {columns} FROM", keys, binding.key_fields, join)
        return table_of(binding, found.fetchall(), from_texts)

    def insert(self, binding: Binding, rows: pa.Table) -> None:
        statement = f"COPY {table_name(binding)} ({columns_of(binding.names)}) FROM STDIN (FORMAT csv)"
        with self._db.cursor() as cursor, cursor.copy(statement) as copy:
            for batch in csv_batches(rows, binding.fields):
                copy.write(batch)

    def update(self, binding: Binding, rows: pa.Table) -> int:
        names = [each.name for each in binding.value_fields or binding.key_fields]
        changes = ", ".join(f"{quoted(name)} = k.{quoted(name)}" for name in names)
        change = f"UPDATE {table_name(binding)} t SET {changes} FROM"
        done: int = self._run(change, rows, binding.fields, f"WHERE {_matches(binding)}").rowcount
        return done

    def delete(self, binding: Binding, rows: pa.Table) -> int:
        change = f"DELETE FROM {table_name(binding)} t USING"
        done: int = self._run(change, rows, binding.key_fields, f"WHERE {_matches(binding)}").rowcount
        return done

    def _run(self, before: str, rows: pa.Table, fields: tuple[Field, ...], after: str) -> Any:
        """Run a statement with rows as a relation `k` in it. They are given as an array of texts for each field."""
        type_name = self._driver.type_name
        casts = ", ".join(f"c{at}::{type_name(each.type)} AS {quoted(each.name)}" for at, each in enumerate(fields))
        names, arrays = (", ".join(each) for each in zip(*[(f"c{at}", "\0") for at in range(len(fields))], strict=True))
        given = f"(SELECT {casts} FROM unnest({arrays}) AS u({names})) AS k"
        # Names may hold what stands for a parameter.
        statement = f"{before} {given} {after}".replace("%", "%%").replace("\0", "%s::text[]")
        return self._db.execute(statement, [text_values(rows.column(each.name), each.type) for each in fields])


def _matches(binding: Binding) -> str:
    return " AND ".join(f"t.{quoted(name)} = k.{quoted(name)}" for name in binding.key)


def csv_batches(rows: pa.Table, fields: tuple[Field, ...], batch_rows: int = 1 << 14) -> Iterator[pa.Buffer]:
    """Rows as CSV for COPY: strings in quotes, so that an empty one is not taken for NULL."""
    for start in range(0, rows.num_rows, batch_rows):
        piece = rows.slice(start, batch_rows)
        columns = [
            piece.column(each.name)
            if _is_plain(each.type) and not has_infinities(piece.column(each.name))
            else pa.chunked_array([pa.array(text_values(piece.column(each.name), each.type), pa.string())])
            for each in fields
        ]
        sink = io.BytesIO()
        table = pa.table(columns, names=[each.name for each in fields])
        pc.write_csv(table, sink, pc.WriteOptions(include_header=False, quoting_style="needed"))
        yield sink.getvalue()


def _is_plain(sql_type: SqlType) -> bool:
    """Whether Arrow writes values as PostgreSQL shows them: of a plain numeric, only the digits that it needs."""
    return sql_type.kind in _PLAIN and (sql_type.kind is not Kind.NUMERIC or sql_type.constrained)
