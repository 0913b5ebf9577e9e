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
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import Binding, Field, Spec
from everview.flow.drivers.contract import (
    CENSUS_S,
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
from everview.flow.errors import DriverFailed, FencedOff
from everview.flow.fencing import Row, carve
from everview.flow.keyrange import WHOLE, KeyRange
from everview.flow.libraries import library
from everview.flow.protocol import State
from everview.reach.addresses import check_host, resolve

STALL_MS = 300_000
CONNECT_S = 20

# Types that Arrow writes to CSV in a form that PostgreSQL reads.
_PLAIN = {
    Kind.BOOLEAN,
    Kind.INT2,
    Kind.INT4,
    Kind.INT8,
    Kind.FLOAT4,
    Kind.FLOAT8,
    Kind.NUMERIC,
    Kind.TEXT,
    Kind.VARCHAR,
    Kind.CHAR,
    Kind.UUID,
    Kind.JSONB,
    Kind.DATE,
    Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ,
    Kind.MZ_TIMESTAMP,
}


class PostgresDriver(Driver):
    """Tables in a PostgreSQL database."""

    name = "postgres"
    pattern = Pattern.AUTHORITATIVE
    guarantee = Guarantee.EXACTLY_ONCE
    keys = Keys.ENFORCED
    options = (Option("connection", "postgresql://user:password@host/database", required=True, secret=True),)
    resource_options = (Option("table", "the table to keep, or schema.table", required=True),)

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        library("psycopg", "psycopg[binary]", "postgres")

    def validate(self, spec: Spec) -> list[Validated]:
        result = []
        with _connected(self.config["connection"], spec.name) as db:
            for binding in spec.bindings:
                self._check_existing(db, binding)
                if binding.key and not binding.delta_updates:
                    check_empty(str(binding.resource["table"]), filled=self._filled(db, spec, binding))
                constraints = key_types_checked(binding, _can_be_key)
                path = tuple(str(binding.resource["table"]).split("."))
                result.append(Validated(constraints, path, binding.delta_updates))
        return result

    def _filled(self, db: Any, spec: Spec, binding: Binding) -> bool:
        """Whether the table has rows of others: there is no checkpoint of ours."""
        table = table_name(binding.resource["table"])
        there = "SELECT to_regclass(%s) IS NOT NULL"
        if not db.execute(there, [table]).fetchone()[0]:
            return False
        ours = f"SELECT EXISTS (SELECT FROM {CHECKPOINTS} WHERE materialization = %s)"
        if db.execute(there, [CHECKPOINTS]).fetchone()[0] and db.execute(ours, [spec.name]).fetchone()[0]:
            return False
        return bool(db.execute(f"SELECT EXISTS (SELECT FROM {table})").fetchone()[0])

    def _check_existing(self, db: Any, binding: Binding) -> None:
        table = table_name(binding.resource["table"])
        found = db.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [table],
        ).fetchall()
        if found:
            primary = db.execute(
                "SELECT attname FROM pg_index, unnest(indkey) WITH ORDINALITY AS k(at, place), pg_attribute "
                "WHERE indrelid = to_regclass(%s) AND indisprimary AND attrelid = indrelid AND attnum = at "
                "ORDER BY place",
                [table],
            ).fetchall()
            key = [] if binding.delta_updates else list(binding.key)
            wanted = [(each.name, _type(each.type)) for each in binding.fields]
            check_existing(str(binding.resource["table"]), wanted, found, key, [name for (name,) in primary])

    def apply(self, spec: Spec) -> str:
        with _connected(self.config["connection"], spec.name) as db, db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(hashtext('everview'), hashtext(%s))", [CHECKPOINTS])
            db.execute(
                f"CREATE TABLE IF NOT EXISTS {CHECKPOINTS} (materialization text, key_begin bigint, key_end bigint, "
                "fence bigint NOT NULL, checkpoint text NOT NULL, PRIMARY KEY (materialization, key_begin, key_end))"
            )
            for binding in spec.bindings:
                self._check_existing(db, binding)
                columns = [f"{quoted(each.name)} {_type(each.type)}" for each in binding.fields]
                if binding.key and not binding.delta_updates:
                    columns.append(f"PRIMARY KEY ({columns_of(binding.key)})")
                db.execute(f"CREATE TABLE IF NOT EXISTS {table_name(binding.resource['table'])} ({', '.join(columns)})")
        return f"tables {', '.join(str(each.resource['table']) for each in spec.bindings)} are there"

    def open(self, spec: Spec, range: KeyRange, state: State) -> Transactor:
        return PostgresTransactor(self.config["connection"], spec, range)

    def reset(self, spec: Spec) -> None:
        self.apply(spec)
        transactor = PostgresTransactor(self.config["connection"], spec, WHOLE)
        try:
            transactor.clear()
            transactor._commit(Checkpoint.at(WHOLE, START).encode())
        finally:
            transactor.close()

    def census(self, spec: Spec) -> Census | None:
        with _connected(self.config["connection"], spec.name) as db, db.transaction():
            db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            db.execute(f"SET LOCAL statement_timeout = {CENSUS_S * 1000:.0f}")
            ours = f"SELECT checkpoint FROM {CHECKPOINTS} WHERE materialization = %s"
            checkpoints = [Checkpoint.decode(each) for (each,) in db.execute(ours, [spec.name]).fetchall()]
            rows = []
            for binding in spec.bindings:
                table, found = table_name(binding.resource["table"]), None
                if db.execute("SELECT to_regclass(%s) IS NOT NULL", [table]).fetchone()[0]:
                    (found,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
                rows.append(found)
        return Census(Checkpoint.merged(checkpoints), tuple(rows)) if checkpoints else None

    def forget(self, spec: Spec) -> None:
        with _connected(self.config["connection"], spec.name) as db:
            db.execute(f"DELETE FROM {CHECKPOINTS} WHERE materialization = %s", [spec.name])


class PostgresTransactor(Transactor):
    """One range of keys in a PostgreSQL database."""

    def __init__(self, connection: str, spec: Spec, range: KeyRange) -> None:
        super().__init__()
        self._spec = spec
        self._buffer = Buffer()
        self._db = _connection(connection, spec.name)
        try:
            with _failures():
                self._row = self._take_over(range)
        except BaseException:
            self._db.close()
            raise
        self.checkpoint = self._row.checkpoint.encode()

    def _take_over(self, range: KeyRange) -> Row:
        db, name = self._db, self._spec.name
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(hashtext('everview'), hashtext(%s))", [name])
            # A row that is being committed is waited for, so its checkpoint is the one that was committed.
            found = db.execute(
                f"SELECT key_begin, key_end, fence, checkpoint FROM {CHECKPOINTS} "
                "WHERE materialization = %s FOR UPDATE",
                [name],
            )
            carved = carve([fence_row(*each) for each in found.fetchall()], range)
            where = "materialization = %s AND key_begin = %s AND key_end = %s"
            for each in carved.removed:
                db.execute(f"DELETE FROM {CHECKPOINTS} WHERE {where}", [name, each.begin, each.end])
            for row in carved.written:
                values = [name, row.range.begin, row.range.end, row.fence, row.checkpoint.encode()]
                db.execute(f"INSERT INTO {CHECKPOINTS} VALUES (%s, %s, %s, %s, %s)", values)
        return carved.mine

    def find(self, binding: int, keys: pa.Table) -> pa.Table:
        spec = self._spec.bindings[binding]
        given, texts = _given(keys, spec.key_fields)
        columns = ", ".join(f"t.{quoted(name)}::text" for name in spec.names)
        table = table_name(spec.resource["table"])
        query = f"SELECT {columns} FROM {given} JOIN {table} t USING ({columns_of(spec.key)})"
        with _failures():
            rows = self._db.execute(query, texts).fetchall()
        found = list(zip(*rows, strict=True)) or [()] * len(spec.fields)
        arrays = [
            pa.array(from_texts(values, each.type), field.type)
            for values, each, field in zip(found, spec.fields, spec.schema, strict=True)
        ]
        return pa.table(arrays, schema=spec.schema)

    def store(self, binding: int, documents: pa.Table) -> None:
        if self._buffer.add(binding, documents):
            self._write()

    def _write(self) -> None:
        with _failures():
            if self._db.info.transaction_status == 0:
                self._db.execute("BEGIN")
            for at, documents in self._buffer.take():
                self._write_binding(self._spec.bindings[at], documents)

    def _write_binding(self, binding: Binding, documents: pa.Table) -> None:
        inserted, updated, deleted = parted(binding, documents)
        if binding.delta_updates:
            inserted, updated = pa.concat_tables([inserted, updated]), updated.slice(0, 0)
        table = table_name(binding.resource["table"])
        if deleted.num_rows:
            given, texts = _given(deleted, binding.key_fields)
            match = " AND ".join(f"t.{quoted(name)} = k.{quoted(name)}" for name in binding.key)
            done = self._db.execute(f"DELETE FROM {table} t USING {given} WHERE {match}", texts)
            self._check_written(binding, "deleted", deleted.num_rows, done.rowcount)
        if updated.num_rows:
            given, texts = _given(updated, binding.fields)
            names = [each.name for each in binding.value_fields or binding.key_fields]
            changes = ", ".join(f"{quoted(name)} = k.{quoted(name)}" for name in names)
            match = " AND ".join(f"t.{quoted(name)} = k.{quoted(name)}" for name in binding.key)
            done = self._db.execute(f"UPDATE {table} t SET {changes} FROM {given} WHERE {match}", texts)
            self._check_written(binding, "updated", updated.num_rows, done.rowcount)
        if inserted.num_rows:
            self._copy(binding, table, in_key_order(binding, inserted))

    def _check_written(self, binding: Binding, done: str, wanted: int, found: int) -> None:
        if found != wanted:
            self._db.execute("ROLLBACK")
            self._check_fence()  # whoever took over may have removed them: then nobody else is at fault
            check_written(binding, done, wanted, found)

    def _copy(self, binding: Binding, table: str, rows: pa.Table) -> None:
        import psycopg

        statement = f"COPY {table} ({columns_of(binding.names)}) FROM STDIN (FORMAT csv)"
        try:
            with self._db.cursor() as cursor, cursor.copy(statement) as copy:
                for batch in csv_batches(rows, binding.fields):
                    copy.write(batch)
        except psycopg.errors.UniqueViolation as error:
            self._db.execute("ROLLBACK")
            self._check_fence()  # whoever took over may have stored the same documents: then the data are not at fault
            raise duplicate(binding, str(error.diag.message_detail or error)) from None

    def _check_fence(self) -> None:
        mine = self._row
        found = self._db.execute(
            f"SELECT fence FROM {CHECKPOINTS} WHERE materialization = %s AND key_begin = %s AND key_end = %s",
            [self._spec.name, mine.range.begin, mine.range.end],
        ).fetchone()
        if found is None or found[0] != mine.fence:
            raise FencedOff(f"the keys {mine.range} of {self._spec.name} were taken over")

    def clear(self) -> None:
        """Remove all rows, in the transaction that is to be committed."""
        self._write()
        with _failures():
            for binding in self._spec.bindings:
                self._db.execute(f"DELETE FROM {table_name(binding.resource['table'])}")

    def start_commit(self, checkpoint: str) -> Started:
        self._write()
        return Started(commit=lambda: self._commit(checkpoint))

    def _commit(self, checkpoint: str) -> None:
        mine = self._row
        with _failures():
            updated = self._db.execute(
                f"UPDATE {CHECKPOINTS} SET checkpoint = %s "
                "WHERE materialization = %s AND key_begin = %s AND key_end = %s AND fence = %s",
                [checkpoint, self._spec.name, mine.range.begin, mine.range.end, mine.fence],
            )
            if updated.rowcount != 1:
                self._db.execute("ROLLBACK")
                raise FencedOff(f"the keys {mine.range} of {self._spec.name} were taken over")
            self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


def csv_batches(rows: pa.Table, fields: tuple[Field, ...], batch_rows: int = 1 << 14) -> Iterator[pa.Buffer]:
    """Rows as CSV for COPY: strings in quotes, so that an empty one is not taken for NULL."""
    for start in range(0, rows.num_rows, batch_rows):
        piece = rows.slice(start, batch_rows)
        columns = [
            piece.column(each.name)
            if each.type.kind in _PLAIN and not _padded(each.type) and not has_infinities(piece.column(each.name))
            else pa.chunked_array([pa.array(text_values(piece.column(each.name), each.type), pa.string())])
            for each in fields
        ]
        sink = io.BytesIO()
        table = pa.table(columns, names=[each.name for each in fields])
        pc.write_csv(table, sink, pc.WriteOptions(include_header=False, quoting_style="needed"))
        yield sink.getvalue()


def _given(rows: pa.Table, fields: tuple[Field, ...]) -> tuple[str, list[list[str | None]]]:
    """Rows as a relation `k` in a statement, and its parameters: an array of texts for each field."""
    texts = [text_values(rows.column(each.name), each.type) for each in fields]
    casts = ", ".join(f"c{at}::{_type(each.type)} AS {quoted(each.name)}" for at, each in enumerate(fields))
    names = ", ".join(f"c{at}" for at in range(len(fields)))
    arrays = ", ".join("%s::text[]" for _ in fields)
    return f"(SELECT {casts} FROM unnest({arrays}) AS u({names})) AS k", texts


def _padded(sql_type: SqlType) -> bool:
    """Whether Arrow has digits behind the point that the value has not: a numeric shows as many as it needs."""
    return sql_type.kind is Kind.NUMERIC and not sql_type.constrained


def _type(sql_type: SqlType) -> str:
    if sql_type.kind is Kind.MZ_TIMESTAMP:
        return "bigint"
    return "text" if sql_type.kind is Kind.UNKNOWN else str(sql_type)


def _can_be_key(sql_type: SqlType) -> bool:
    return sql_type.kind not in (Kind.FLOAT4, Kind.FLOAT8)


@contextmanager
def _failures() -> Iterator[None]:
    """The database's failures as ours."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        detail = str(error.diag.message_primary or error).strip()
        raise DriverFailed("PostgreSQL failed", detail=f"{detail} ({error.sqlstate or 'connection'})") from None


def _connection(url: str, name: str) -> Any:
    import psycopg

    settings = {
        "TimeZone": "UTC",
        "DateStyle": "ISO",
        "IntervalStyle": "postgres",
        "idle_in_transaction_session_timeout": str(STALL_MS),
    }
    options = " ".join(f"-c {setting}={value}" for setting, value in settings.items())
    try:
        return psycopg.connect(
            _pinned(url),
            autocommit=True,
            connect_timeout=CONNECT_S,
            options=options,
            application_name=f"everview {name}",
        )
    except psycopg.Error as error:
        raise DriverFailed("cannot connect to PostgreSQL", detail=str(error).strip()) from None


def _pinned(url: str) -> str:
    """A connection string with the addresses of its hosts, so that these and no others are connected to."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    said = {name: str(value) for name, value in conninfo_to_dict(url).items() if value}
    hosts, ports = said.get("host", "").split(","), said.get("port", "").split(",")
    for each in said.get("hostaddr", "").split(","):
        check_host(each)
    if "hostaddr" in said or not any(hosts):
        return url
    attempts: list[tuple[str, str, str]] = []
    for index, host in enumerate(hosts):
        port = ports[index] if len(ports) == len(hosts) else ports[0]
        if not host or host.startswith(("/", "@")):  # a Unix socket
            attempts.append((host, "", port))
            continue
        try:
            found = resolve(host)
        except OSError as error:
            if len(hosts) > 1:
                continue
            raise DriverFailed("cannot connect to PostgreSQL", detail=f"{host}: {error}") from None
        attempts += [(host, str(where[0]), port) for _, where in found]
    names, addresses, numbers = (",".join(each) for each in zip(*attempts, strict=True)) if attempts else ("", "", "")
    # Without a port anywhere, the library's own is meant.
    return make_conninfo(url, host=names, hostaddr=addresses, **({"port": numbers} if numbers.strip(",") else {}))


@contextmanager
def _connected(url: str, name: str) -> Iterator[Any]:
    with _failures():
        db = _connection(url, name)
        try:
            yield db
        finally:
            db.close()
