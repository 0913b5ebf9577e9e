"""Consensus in one table of a PostgreSQL database, for environments that several hosts share.

Why READ COMMITTED suffices: before a commit reads anything it locks every key it names, present or absent, by
advisory locks that it holds until it ends: shared for a key it only compares, exclusive for one it writes.
That is strict two-phase locking, hence serial; all take their locks in ascending order, hence no deadlock; and
a statement after the locks has a snapshot that shows whatever those who held them before have committed.
"""

from __future__ import annotations

import queue
import random
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from everview.storage import errors
from everview.storage.consensus.contract import Conflict, Entry, ranges_of
from everview.storage.faults import failpoint
from everview.storage.urls import ESCAPE_HINT

try:
    import psycopg
    import psycopg.conninfo
    from psycopg import sql
except ImportError as missing:
    raise errors.InvalidUsage(
        "metadata in PostgreSQL need the psycopg library", hint="install it: pip install 'everview[postgres]'"
    ) from missing

T = TypeVar("T")
Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

_CONNECTIONS_MAX = 4
_LOCK_SLOTS = 1024  # keys share locks, for a server has room for some thousands only
_TRIES_MAX = 5
_WAIT_FOR_CONNECTION_S = 30.0
_CONNECT: dict[str, Any] = {"connect_timeout": 5, "keepalives_idle": 10, "tcp_user_timeout": 30_000}
# A server or a role may have weaker defaults than the contract's. Limits keep a stuck peer from blocking all.
_SESSION = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
SET default_transaction_isolation = 'read committed';
SET lock_timeout = '10s';
SET statement_timeout = '60s';
SET idle_in_transaction_session_timeout = '60s'
"""
_STATEMENTS = {
    "get": "SELECT key, version, value FROM {table} WHERE key = ANY(%s)",
    "lock": "SELECT CASE WHEN written THEN pg_advisory_xact_lock(hashtext({name}), slot) "
    "ELSE pg_advisory_xact_lock_shared(hashtext({name}), slot) END "
    "FROM unnest(%s::int[], %s::bool[]) AS given (slot, written)",
    "versions": "SELECT key, version FROM {table} WHERE key = ANY(%s)",
    "put": "INSERT INTO {table} SELECT k, %s, v FROM unnest(%s::text[], %s::bytea[]) AS given (k, v) "
    "ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value",
    "delete": "DELETE FROM {table} WHERE key = ANY(%s)",
    "scan": "SELECT key, version, value FROM {table} WHERE ",
}
# Serialised by a lock, because even CREATE ... IF NOT EXISTS fails when two run at once.
_SET_UP = """
BEGIN;
SELECT pg_advisory_xact_lock(hashtext({name}));
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {table} (
    key text COLLATE "C" PRIMARY KEY, version bigint NOT NULL, value bytea NOT NULL
);
COMMIT
"""


class PostgresConsensus:
    """Table `entries` of `schema`, made if missing; at most `connections_max` connections, opened when needed."""

    def __init__(
        self, dsn: str, schema: str = "everview", read_only: bool = False, connections_max: int = _CONNECTIONS_MAX
    ) -> None:
        self._dsn = _checked(dsn)
        self._schema = schema
        self._read_only = read_only
        self._closed = False
        names = {"schema": sql.Identifier(schema), "table": sql.Identifier(schema, "entries"), "name": schema}
        self._sql = {name: sql.SQL(text).format(**names).as_bytes(None) for name, text in _STATEMENTS.items()}
        # A pool of permits: each is a connection that is idle, or none yet.
        self._pool: queue.LifoQueue[Connection | None] = queue.LifoQueue()
        for _ in range(connections_max):
            self._pool.put(None)
        set_up = sql.SQL(_SET_UP).format(**names)
        self._run(lambda db: self._prepare(db, None if read_only else set_up))

    def get(self, keys: Sequence[str]) -> dict[str, Entry]:
        return self._run(lambda db: self._entries(db, list(keys)))

    def scan(self, *prefixes: str) -> list[tuple[str, Entry]]:
        ranges = ranges_of(prefixes)
        if not ranges:
            return []
        tests = ["(key >= %s)" if high is None else "(key >= %s AND key < %s)" for _, high in ranges]
        bounds = [bound for low_high in ranges for bound in low_high if bound is not None]
        # One statement, so one instant.
        statement = self._sql["scan"] + f"{' OR '.join(tests)} ORDER BY key".encode()
        rows = self._run(lambda db: db.execute(statement, bounds, binary=True).fetchall())
        return [(key, Entry(version, value)) for key, version, value in rows]

    def commit(self, expected: Mapping[str, int | None], writes: Mapping[str, bytes | None], version: int) -> None:
        if self._read_only:
            raise errors.StorageReadOnly("the environment was opened for reading only", detail=f"schema {self._schema}")
        self._run(lambda db: self._transact(db, expected, writes, version))
        failpoint("consensus.commit.done")

    def close(self) -> None:
        self._closed = True
        while True:  # those in use are closed when they are given back
            try:
                db = self._pool.get_nowait()
            except queue.Empty:
                return
            if db is not None:
                db.close()

    def _prepare(self, db: Connection, set_up: sql.Composed | None) -> None:
        encoding = db.execute("SHOW server_encoding").fetchone()
        if encoding != ("UTF8",):
            raise errors.InvalidUsage(f"the database's encoding is {encoding}", hint="make one with ENCODING 'UTF8'")
        if set_up is not None:
            db.execute(set_up)
        elif db.execute("SELECT to_regclass(%s)", [f'"{self._schema}".entries']).fetchone() == (None,):
            raise errors.NoEnvironment(
                f"no environment in schema {self._schema}", hint="check the database and the schema"
            )

    def _entries(self, db: Connection, keys: list[str]) -> dict[str, Entry]:
        rows = db.execute(self._sql["get"], [keys], binary=True).fetchall()
        return {key: Entry(version, value) for key, version, value in rows}

    def _transact(
        self, db: Connection, expected: Mapping[str, int | None], writes: Mapping[str, bytes | None], version: int
    ) -> None:
        slots: dict[int, bool] = {}
        for key in {**expected, **writes}:
            slot = zlib.crc32(key.encode()) % _LOCK_SLOTS
            slots[slot] = slots.get(slot, False) or key in writes
        locks = sorted(slots.items())
        db.execute("BEGIN")
        db.execute(self._sql["lock"], [[slot for slot, _ in locks], [written for _, written in locks]])
        if expected:
            current: dict[str, int] = dict(db.execute(self._sql["versions"], [list(expected)]).fetchall())
            if current != {key: wanted for key, wanted in expected.items() if wanted is not None}:
                raise Conflict(self._entries(db, list(expected)))
        puts = {key: value for key, value in writes.items() if value is not None}
        if puts:
            db.execute(self._sql["put"], [version, list(puts), list(puts.values())])
        if len(puts) < len(writes):
            db.execute(self._sql["delete"], [[key for key in writes if key not in puts]])
        failpoint("consensus.commit.applied")
        self._finish(db)

    def _finish(self, db: Connection) -> None:
        try:
            done = db.execute("COMMIT").statusmessage
        except psycopg.Error as failure:
            # An error that the server reports on a connection that goes on is a rollback; silence may be either.
            if db.broken or db.closed or failure.sqlstate is None or failure.sqlstate[:2] in {"08", "57"}:
                hint = "look before trying again"
                raise errors.Indeterminate(
                    "the database was lost during a commit", detail=str(failure), hint=hint
                ) from failure
            raise
        if done != "COMMIT":
            raise errors.Determinate("the database rolled a commit back", detail=f"it answered {done}")

    def _run(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on a pooled connection; try again a few times if it had no effect and may yet succeed."""
        tries = 0
        while True:
            tries += 1
            try:
                return self._run_once(work)
            except psycopg.Error as failure:
                meaning, passing = _meaning(failure)
                if not passing or tries == _TRIES_MAX:
                    raise meaning from failure
            time.sleep(random.uniform(0.5, 1.0) * 0.01 * 4 ** (tries - 1))

    def _run_once(self, work: Callable[[Connection], T]) -> T:
        if self._closed:
            raise errors.InvalidUsage("the consensus is closed")
        try:
            db = self._pool.get(timeout=_WAIT_FOR_CONNECTION_S)
        except queue.Empty:
            raise errors.Determinate("all connections to the database are in use", hint="try again") from None
        try:
            if db is None:
                db = self._connect()
            return work(db)
        finally:
            self._give_back(db)

    def _connect(self) -> Connection:
        db = psycopg.connect(self._dsn, autocommit=True, application_name="everview", **_CONNECT)
        db.execute(_SESSION)
        if self._read_only:
            db.execute("SET default_transaction_read_only = on")
        return db

    def _give_back(self, db: Connection | None) -> None:
        if db is not None:
            try:
                if not db.closed and db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    db.execute("ROLLBACK")
            except psycopg.Error:
                db.close()
            if db.closed or self._closed:
                db.close()
                db = None
        self._pool.put(db)


def _checked(dsn: str) -> str:
    """The address, if libpq understands it as it was meant. The error tells nothing of it that may be a password."""
    try:
        found = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error as failure:
        reason = str(failure).strip().partition('"')[0].rstrip(": ")  # libpq then cites what it stumbled over
        raise errors.InvalidUsage(
            "the address of the database cannot be read", detail=reason, hint=ESCAPE_HINT
        ) from None
    ports = [port for port in str(found.get("port") or "").split(",") if port]
    if not all(map(str.isdecimal, ports)) or "@" in f"{found.get('host') or ''}{found.get('dbname') or ''}":
        raise errors.InvalidUsage("the address of the database cannot be read", hint=ESCAPE_HINT)
    return dsn


def _meaning(failure: psycopg.Error) -> tuple[errors.StorageError, bool]:
    """Translate an error that certainly had no effect; and say whether it may pass by itself."""
    detail = str(failure).strip()
    match failure.sqlstate or "":
        case "53100":
            return errors.StorageFull(
                "no space left for metadata", detail=detail, hint="free space on the database"
            ), False
        case "25006" | "42501":
            hint = "check the role's privileges, and that the server is not a standby"
            return errors.StorageReadOnly("the database refused to write metadata", detail=detail, hint=hint), False
        case "XX001" | "XX002":
            return errors.Corruption("the metadata in the database are damaged", detail=detail), False
        case "40001" | "40P01" | "55P03":
            return errors.Determinate("the metadata are locked", detail=detail, hint="try again"), True
        case state if isinstance(failure, psycopg.OperationalError | psycopg.InterfaceError):
            passing = state == "" or state[:2] in {"08", "53", "57"}
            hint = "check that the server runs and can be reached"
            return errors.Determinate("the database cannot be used", detail=detail, hint=hint), passing
        case state if state.startswith("22") or isinstance(failure, psycopg.DataError):
            return errors.InvalidUsage("the database cannot hold this", detail=detail), False
        case _:
            return errors.Determinate("the database refused", detail=detail), False
