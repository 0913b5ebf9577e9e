"""SQLite: the file is authoritative. Tables and checkpoint change in one transaction, and the fence decides its commit.

SQLite has few types: whatever is neither integer, float, text nor bytes is kept in PostgreSQL's text form, so numerics
are exact and dates sort. Loads join with a temporary table of keys. SQLite has one writer at a time, so documents are
kept back until the commit, or until there are many, and the fence is ours to the end once the transaction has begun.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from everview.compute.ir.types import Kind, SqlType
from everview.flow.contract import Binding, Field, Spec
from everview.flow.drivers.contract import CENSUS_S, CONFINED, Census, Option, Validated
from everview.flow.drivers.sql import (
    Rows,
    SqlDriver,
    SqlTransactor,
    columns_of,
    from_texts,
    quoted,
    table_name,
    table_of,
    text_values,
)
from everview.flow.errors import Drifted, DriverFailed
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import DriverState
from everview.reach.files import check_inside

BUSY_S = 60.0

_INTEGERS, _FLOATS = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP), (Kind.FLOAT4, Kind.FLOAT8)
_TYPES = {**dict.fromkeys((Kind.BOOLEAN, *_INTEGERS), "INTEGER"), **dict.fromkeys(_FLOATS, "REAL"), Kind.BYTEA: "BLOB"}
_PLAIN = {*_INTEGERS, Kind.BYTEA, Kind.TEXT, Kind.VARCHAR, Kind.UUID, Kind.JSONB}


class SqliteDriver(SqlDriver):
    """Tables in an SQLite file."""

    name = "sqlite"
    parameter = "?"
    checkpoint_columns = (
        "(materialization TEXT NOT NULL, key_begin INTEGER NOT NULL, key_end INTEGER NOT NULL, fence INTEGER NOT NULL, "
        "checkpoint TEXT NOT NULL, PRIMARY KEY (materialization, key_begin, key_end)) STRICT"
    )
    no_keys = frozenset((*_FLOATS, Kind.ARRAY, Kind.INTERVAL, Kind.JSONB))
    duplicate_errors = (sqlite3.IntegrityError,)
    options = (Option("path", "the database file", required=True, place=True), CONFINED)
    resource_options = (Option("table", "the table to keep", required=True),)

    def validate(self, spec: Spec) -> list[Validated]:
        if self.config[CONFINED.name]:
            check_inside(self.config["path"])
        return super().validate(spec)

    def exists(self) -> bool:
        return Path(self.config["path"]).exists()

    def connected(self, name: str) -> _Connection:
        return _connection(self.config)

    connect_for_good = connected

    @contextmanager
    def transaction(self, db: Any, lock: str) -> Iterator[None]:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")  # or the connection is closed

    @contextmanager
    def snapshot(self, db: Any) -> Iterator[None]:
        deadline = time.monotonic() + CENSUS_S
        db.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)
        db.execute("BEGIN")
        yield

    def table_columns(self, db: Any, table: str) -> tuple[list[tuple[str, str]], list[str]]:
        found = db.execute("SELECT name, type, pk FROM pragma_table_info(?)", [table.rpartition(".")[2]]).fetchall()
        key = [name for name, _, place in sorted(found, key=lambda each: each[2]) if place]
        return [(name, kind) for name, kind, _ in found], key

    def type_name(self, sql_type: SqlType) -> str:
        return _TYPES.get(sql_type.kind, "TEXT")

    def open(self, spec: Spec, range: KeyRange, state: DriverState) -> SqlTransactor:
        return SqliteTransactor(self, spec, range)

    def census(self, spec: Spec) -> Census | None:
        if not self.exists():
            raise Drifted(f"the SQLite file {self.config['path']} is gone")
        return super().census(spec)


class SqliteTransactor(SqlTransactor):
    """One range of keys in an SQLite file."""

    def begin(self) -> None:
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self.check_fence()
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    def rows_with(self, binding: Binding, keys: pa.Table) -> pa.Table:
        columns = ", ".join(f"t.{quoted(name)}" for name in binding.names)
        join = " AND ".join(f"t.{quoted(name)} = k.{quoted(name)}" for name in binding.key)
        places = ", ".join("?" * len(binding.key))
        self._db.execute(f"CREATE TEMP TABLE wanted ({self._driver.declared(binding.key_fields)})")
        try:
            self._db.executemany(f"INSERT INTO wanted VALUES ({places})", _encoded(keys, binding.key_fields))
            query = f"SELECT {columns} FROM wanted k JOIN {table_name(binding)} t ON {join}"
            return table_of(binding, self._db.execute(query).fetchall(), _decoded)
        finally:
            self._db.execute("DROP TABLE temp.wanted")

    def insert(self, binding: Binding, rows: pa.Table) -> None:
        places = ", ".join("?" * len(binding.fields))
        into = f"INSERT INTO {table_name(binding)} ({columns_of(binding.names)}) VALUES ({places})"
        self._db.executemany(into, _encoded(rows, binding.fields))

    def update(self, binding: Binding, rows: pa.Table) -> int:
        given = binding.value_fields or binding.key_fields
        changes = ", ".join(f"{quoted(each.name)} = ?" for each in given)
        change = f"UPDATE {table_name(binding)} SET {changes} WHERE {_matches(binding)}"
        done: int = self._db.executemany(change, _encoded(rows, (*given, *binding.key_fields))).rowcount
        return done

    def delete(self, binding: Binding, rows: pa.Table) -> int:
        keys = _encoded(rows, binding.key_fields)
        done: int = self._db.executemany(f"DELETE FROM {table_name(binding)} WHERE {_matches(binding)}", keys).rowcount
        return done

    def close(self) -> None:
        if self._db.in_transaction:  # which closing alone would not end while a cursor is still known to somebody
            self._db.execute("ROLLBACK")
        self._db.close()


class _Connection(sqlite3.Connection):
    """A connection that is closed at the end of a `with` block, whatever was under way."""

    def __exit__(self, *raised: Any) -> Any:
        self.close()


def _connection(config: Mapping[str, Any]) -> _Connection:
    confined = config[CONFINED.name]
    if confined:
        check_inside(config["path"])
    try:
        db = sqlite3.connect(
            config["path"], timeout=BUSY_S, isolation_level=None, check_same_thread=False, factory=_Connection
        )
        if confined:  # SQLite says which file it has opened, with links followed
            for _, _, opened in db.execute("PRAGMA database_list").fetchall():
                check_inside(opened)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA temp_store = MEMORY")
        return db
    except sqlite3.Error as error:
        raise DriverFailed(f"cannot open the SQLite file {config['path']}", detail=str(error)) from error


def _matches(binding: Binding) -> str:
    return " AND ".join(f"{quoted(name)} = ?" for name in binding.key)


def _encoded(table: pa.Table, fields: tuple[Field, ...]) -> Rows:
    columns = [_encoded_column(table.column(each.name), each.type) for each in fields]
    return list(zip(*columns, strict=True))


def _encoded_column(column: pa.ChunkedArray, sql_type: SqlType) -> list[Any]:
    if sql_type.kind in _PLAIN:
        return column.to_pylist()  # type: ignore[no-any-return]
    if sql_type.kind is Kind.BOOLEAN:
        return [None if value is None else int(value) for value in column.to_pylist()]
    if sql_type.kind in _FLOATS:  # SQLite would take NaN for NULL
        return ["NaN" if value is not None and math.isnan(value) else value for value in column.to_pylist()]
    return text_values(column, sql_type)


def _decoded(values: Iterable[Any], sql_type: SqlType) -> list[Any]:
    if sql_type.kind in _PLAIN:
        return list(values)
    if sql_type.kind is Kind.BOOLEAN:
        return [None if value is None else bool(value) for value in values]
    if sql_type.kind in _FLOATS:
        return [None if value is None else float(value) for value in values]
    return from_texts(values, sql_type)
