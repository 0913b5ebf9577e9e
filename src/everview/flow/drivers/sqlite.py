"""SQLite: the file is authoritative. Tables and checkpoint change in one transaction, and the fence decides its commit.

SQLite has few types: whatever is neither integer, float, text nor bytes is kept in PostgreSQL's text form, so numerics
are exact and dates sort. Loads join with a temporary table of keys. Documents are kept back until the commit, or until
there are many: SQLite has one writer at a time, and a stalled one should not keep the others out.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from everview.compute.ir.types import Kind, SqlType
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import Binding, Field, Spec
from everview.flow.drivers.contract import (
    CENSUS_S,
    CONFINED,
    Census,
    Driver,
    Guarantee,
    Keys,
    Option,
    Pattern,
    Started,
    Transactor,
    Validated,
)
from everview.flow.drivers.sql import (
    CHECKPOINTS,
    Buffer,
    Rows,
    check_empty,
    check_existing,
    check_written,
    columns_of,
    duplicate,
    fence_row,
    from_texts,
    in_key_order,
    key_types_checked,
    parted,
    quoted,
    table_name,
    text_values,
)
from everview.flow.errors import Drifted, DriverFailed, FencedOff
from everview.flow.fencing import Row, carve
from everview.flow.keyrange import WHOLE, KeyRange
from everview.flow.protocol import State
from everview.quoting import literal
from everview.reach.files import check_inside

BUSY_S = 60.0

_TYPES = {
    Kind.BOOLEAN: "INTEGER",
    Kind.INT2: "INTEGER",
    Kind.INT4: "INTEGER",
    Kind.INT8: "INTEGER",
    Kind.MZ_TIMESTAMP: "INTEGER",
    Kind.FLOAT4: "REAL",
    Kind.FLOAT8: "REAL",
    Kind.BYTEA: "BLOB",
}
_PLAIN = {*_TYPES, Kind.TEXT, Kind.VARCHAR, Kind.UUID, Kind.JSONB} - {Kind.BOOLEAN, Kind.FLOAT4, Kind.FLOAT8}


class SqliteDriver(Driver):
    """Tables in an SQLite file."""

    name = "sqlite"
    pattern = Pattern.AUTHORITATIVE
    guarantee = Guarantee.EXACTLY_ONCE
    keys = Keys.ENFORCED
    options = (Option("path", "the database file", required=True, place=True), CONFINED)
    resource_options = (Option("table", "the table to keep", required=True),)

    def validate(self, spec: Spec) -> list[Validated]:
        result = []
        for binding in spec.bindings:
            constraints = key_types_checked(binding, _can_be_key)
            result.append(Validated(constraints, (str(binding.resource["table"]),), binding.delta_updates))
        if self.config[CONFINED.name]:
            check_inside(self.config["path"])
        if Path(self.config["path"]).exists():
            with _connected(self.config) as db:
                for binding in spec.bindings:
                    self._check_existing(db, binding)
                    if binding.key and not binding.delta_updates:
                        check_empty(str(binding.resource["table"]), filled=self._filled(db, spec, binding))
        return result

    def _filled(self, db: sqlite3.Connection, spec: Spec, binding: Binding) -> bool:
        """Whether the table has rows of others: there is no checkpoint of ours."""
        count = "SELECT count(*) FROM sqlite_master WHERE name = ?"
        if not db.execute(count, [str(binding.resource["table"])]).fetchone()[0]:
            return False
        ours = f"SELECT count(*) FROM {CHECKPOINTS} WHERE materialization = ?"
        if db.execute(count, [CHECKPOINTS]).fetchone()[0] and db.execute(ours, [spec.name]).fetchone()[0]:
            return False
        return db.execute(f"SELECT 1 FROM {table_name(binding.resource['table'])} LIMIT 1").fetchone() is not None

    def _check_existing(self, db: sqlite3.Connection, binding: Binding) -> None:
        table = str(binding.resource["table"])
        found = db.execute(f"SELECT name, type, pk FROM pragma_table_info({literal(table)})").fetchall()
        if found:
            key = [] if binding.delta_updates else list(binding.key)
            found_key = [name for name, _, place in sorted(found, key=lambda each: each[2]) if place]
            wanted = [(each.name, _type(each.type)) for each in binding.fields]
            check_existing(table, wanted, [(name, kind) for name, kind, _ in found], key, found_key)

    def apply(self, spec: Spec) -> str:
        with _connected(self.config) as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute(
                f"CREATE TABLE IF NOT EXISTS {CHECKPOINTS} (materialization TEXT NOT NULL, key_begin INTEGER NOT NULL, "
                "key_end INTEGER NOT NULL, fence INTEGER NOT NULL, checkpoint TEXT NOT NULL, "
                "PRIMARY KEY (materialization, key_begin, key_end)) STRICT"
            )
            for binding in spec.bindings:
                self._check_existing(db, binding)
                columns = [f"{quoted(each.name)} {_type(each.type)}" for each in binding.fields]
                if binding.key and not binding.delta_updates:
                    columns.append(f"PRIMARY KEY ({columns_of(binding.key)})")
                db.execute(f"CREATE TABLE IF NOT EXISTS {table_name(binding.resource['table'])} ({', '.join(columns)})")
            db.execute("COMMIT")
        return f"tables {', '.join(str(each.resource['table']) for each in spec.bindings)} are there"

    def open(self, spec: Spec, range: KeyRange, state: State) -> Transactor:
        return SqliteTransactor(self.config, spec, range)

    def reset(self, spec: Spec) -> None:
        self.apply(spec)
        transactor = SqliteTransactor(self.config, spec, WHOLE)
        try:
            transactor.clear()
            transactor.start_commit(Checkpoint.at(WHOLE, START).encode())
            transactor._commit(Checkpoint.at(WHOLE, START).encode())
        finally:
            transactor.close()

    def census(self, spec: Spec) -> Census | None:
        if not Path(self.config["path"]).exists():
            raise Drifted(f"the SQLite file {self.config['path']} is gone")
        with _connected(self.config) as db:
            deadline = time.monotonic() + CENSUS_S
            db.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)
            db.execute("BEGIN")
            ours = f"SELECT checkpoint FROM {CHECKPOINTS} WHERE materialization = ?"
            checkpoints = [Checkpoint.decode(each) for (each,) in db.execute(ours, [spec.name])]
            there = {name for (name,) in db.execute("SELECT lower(name) FROM sqlite_master WHERE type = 'table'")}
            rows = []
            for binding in spec.bindings:
                table, found = str(binding.resource["table"]), None
                if table.lower() in there:
                    (found,) = db.execute(f"SELECT count(*) FROM {table_name(table)}").fetchone()
                rows.append(found)
        return Census(Checkpoint.merged(checkpoints), tuple(rows)) if checkpoints else None

    def forget(self, spec: Spec) -> None:
        with _connected(self.config) as db:
            db.execute(f"DELETE FROM {CHECKPOINTS} WHERE materialization = ?", [spec.name])


class SqliteTransactor(Transactor):
    """One range of keys in an SQLite file."""

    def __init__(self, config: Mapping[str, Any], spec: Spec, range: KeyRange) -> None:
        super().__init__()
        self._spec = spec
        self._db = _connected(config)
        self._buffer = Buffer()
        try:
            self._row = self._take_over(range)
        except BaseException:
            self._db.close()
            raise
        self.checkpoint = self._row.checkpoint.encode()

    def _take_over(self, range: KeyRange) -> Row:
        db, name = self._db, self._spec.name
        db.execute("BEGIN IMMEDIATE")
        found = db.execute(
            f"SELECT key_begin, key_end, fence, checkpoint FROM {CHECKPOINTS} WHERE materialization = ?", [name]
        )
        carved = carve([fence_row(*each) for each in found.fetchall()], range)
        where = "materialization = ? AND key_begin = ? AND key_end = ?"
        gone = [(name, each.begin, each.end) for each in carved.removed]
        db.executemany(f"DELETE FROM {CHECKPOINTS} WHERE {where}", gone)
        rows = [(name, r.range.begin, r.range.end, r.fence, r.checkpoint.encode()) for r in carved.written]
        db.executemany(f"INSERT INTO {CHECKPOINTS} VALUES (?, ?, ?, ?, ?)", rows)
        db.execute("COMMIT")
        return carved.mine

    def find(self, binding: int, keys: pa.Table) -> pa.Table:
        spec = self._spec.bindings[binding]
        places = ", ".join("?" * len(spec.key))
        join = " AND ".join(f"t.{quoted(name)} = k.{quoted(name)}" for name in spec.key)
        columns = ", ".join(f"t.{quoted(name)}" for name in spec.names)
        types = ", ".join(f"{quoted(each.name)} {_type(each.type)}" for each in spec.key_fields)
        self._db.execute(f"CREATE TEMP TABLE keys_{binding} ({types})")
        try:
            self._db.executemany(f"INSERT INTO keys_{binding} VALUES ({places})", _encoded(keys, spec.key_fields))
            table = table_name(spec.resource["table"])
            found = self._db.execute(f"SELECT {columns} FROM keys_{binding} k JOIN {table} t ON {join}").fetchall()
        finally:
            self._db.execute(f"DROP TABLE keys_{binding}")
        return _decoded(found, spec)

    def store(self, binding: int, documents: pa.Table) -> None:
        if self._buffer.add(binding, documents):
            self._write()

    def _write(self) -> None:
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
            self._check_fence()
        for at, documents in self._buffer.take():
            self._write_binding(self._spec.bindings[at], documents)

    def _write_binding(self, binding: Binding, documents: pa.Table) -> None:
        inserted, updated, deleted = parted(binding, documents)
        table = table_name(binding.resource["table"])
        if deleted.num_rows:
            where = " AND ".join(f"{quoted(name)} = ?" for name in binding.key)
            keys = _encoded(deleted.select(list(binding.key)), binding.key_fields)
            done = self._db.executemany(f"DELETE FROM {table} WHERE {where}", keys)
            check_written(binding, "deleted", deleted.num_rows, done.rowcount)
        places = ", ".join("?" * len(binding.fields))
        insert = f"INSERT INTO {table} ({columns_of(binding.names)}) VALUES ({places})"
        if updated.num_rows and binding.delta_updates:
            self._db.executemany(insert, _encoded(updated, binding.fields))
        elif updated.num_rows:
            given = binding.value_fields or binding.key_fields
            changes = ", ".join(f"{quoted(each.name)} = ?" for each in given)
            where = " AND ".join(f"{quoted(name)} = ?" for name in binding.key)
            values = _encoded(updated, (*given, *binding.key_fields))
            done = self._db.executemany(f"UPDATE {table} SET {changes} WHERE {where}", values)
            check_written(binding, "updated", updated.num_rows, done.rowcount)
        if inserted.num_rows:
            try:
                self._db.executemany(insert, _encoded(in_key_order(binding, inserted), binding.fields))
            except sqlite3.IntegrityError as error:
                raise duplicate(binding, str(error)) from None

    def clear(self) -> None:
        """Remove all rows, in the transaction that is to be committed."""
        self._write()
        for binding in self._spec.bindings:
            self._db.execute(f"DELETE FROM {table_name(binding.resource['table'])}")

    def start_commit(self, checkpoint: str) -> Started:
        self._write()
        return Started(commit=lambda: self._commit(checkpoint))

    def _commit(self, checkpoint: str) -> None:
        self._check_fence(checkpoint)
        self._db.execute("COMMIT")

    def _check_fence(self, checkpoint: str | None = None) -> None:
        """Set the checkpoint, if the fence is still ours. SQLite has one writer, so it then stays ours to the end."""
        mine = self._row
        updated = self._db.execute(
            f"UPDATE {CHECKPOINTS} SET checkpoint = coalesce(?, checkpoint) "
            "WHERE materialization = ? AND key_begin = ? AND key_end = ? AND fence = ?",
            [checkpoint, self._spec.name, mine.range.begin, mine.range.end, mine.fence],
        )
        if updated.rowcount != 1:
            self._db.execute("ROLLBACK")
            raise FencedOff(f"the keys {mine.range} of {self._spec.name} were taken over")

    def close(self) -> None:
        if self._db.in_transaction:  # which closing alone would not end while a cursor is still known to somebody
            self._db.execute("ROLLBACK")
        self._db.close()


class _Connection(sqlite3.Connection):
    """A connection that is closed at the end of a `with` block, whatever was under way."""

    def __exit__(self, *raised: Any) -> Any:
        self.close()


def _connected(config: Mapping[str, Any]) -> sqlite3.Connection:
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


def _type(sql_type: SqlType) -> str:
    return _TYPES.get(sql_type.kind, "TEXT")


def _can_be_key(sql_type: SqlType) -> bool:
    return sql_type.kind not in (Kind.FLOAT4, Kind.FLOAT8, Kind.ARRAY, Kind.INTERVAL, Kind.JSONB)


def _encoded(table: pa.Table, fields: tuple[Field, ...]) -> Rows:
    columns = [_encoded_column(table.column(each.name), each.type) for each in fields]
    return list(zip(*columns, strict=True))


def _encoded_column(column: pa.ChunkedArray, sql_type: SqlType) -> list[Any]:
    if sql_type.kind in _PLAIN:
        return column.to_pylist()  # type: ignore[no-any-return]
    if sql_type.kind is Kind.BOOLEAN:
        return [None if value is None else int(value) for value in column.to_pylist()]
    if sql_type.kind in (Kind.FLOAT4, Kind.FLOAT8):  # SQLite would take NaN for NULL
        return ["NaN" if value is not None and math.isnan(value) else value for value in column.to_pylist()]
    return text_values(column, sql_type)


def _decoded(rows: Rows, binding: Binding) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(binding.fields)
    arrays = [
        pa.array(_decoded_column(values, each.type), field.type)
        for values, each, field in zip(columns, binding.fields, binding.schema, strict=True)
    ]
    return pa.table(arrays, schema=binding.schema)


def _decoded_column(values: tuple[Any, ...], sql_type: SqlType) -> list[Any]:
    if sql_type.kind in _PLAIN:
        return list(values)
    if sql_type.kind is Kind.BOOLEAN:
        return [None if value is None else bool(value) for value in values]
    if sql_type.kind in (Kind.FLOAT4, Kind.FLOAT8):
        return [None if value is None else float(value) for value in values]
    return from_texts(values, sql_type)
