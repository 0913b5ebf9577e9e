"""Consensus in one SQLite file, the embedded default: a commit is one transaction and one fsync of the WAL.

Writes share one connection behind a lock; reads have connections of their own, so none waits for a commit's
fsync, and WAL lets each see every commit that has returned. Several processes may open the same file.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from everview.storage import errors
from everview.storage.consensus.contract import Conflict, Entry, ranges_of
from everview.storage.disk import close_to_others, make_folder, write_failure
from everview.storage.faults import failpoint

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL
) WITHOUT ROWID
"""
_PUT = (
    "INSERT INTO entries VALUES (?, ?, ?) "
    "ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value"
)
_DELETE = "DELETE FROM entries WHERE key = ?"
_KEYS_PER_SELECT_MAX = 500  # SQLite limits the parameters of a statement
_READERS_IDLE_MAX = 4
_BUSY_TIMEOUT_S = 5.0

# A WAL of this many pages is copied into the file, then written over from its start. Measured: a larger one
# costs more than it saves, because a file that grows is dearer to sync than one that is overwritten.
_CHECKPOINT_PAGES = 1000
_WAL_BYTES_KEPT = 64 << 20


class SqliteConsensus:
    """The file at `path`, made if missing; with `read_only` only looked at, even where nothing can be written."""

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self._path = Path(os.path.abspath(path))
        self._read_only = read_only
        self._closed = False
        self._writing = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        if read_only:
            if not self._path.is_file():
                raise errors.InvalidUsage(f"no environment at {self._path}", hint="check the path")
            self.get(["any"])  # fail now, not at the first use
        else:
            try:
                make_folder(self._path.parent)
            except OSError as failure:
                raise write_failure(failure, "making the folder for metadata", self._path.parent) from failure
            with self._writing:
                self._writer = self._open_writer()

    def get(self, keys: Sequence[str]) -> dict[str, Entry]:
        return self._read(lambda db: _entries(db, keys))

    def scan(self, *prefixes: str) -> list[tuple[str, Entry]]:
        return self._read(lambda db: _scanned(db, prefixes))

    def commit(self, expected: Mapping[str, int | None], writes: Mapping[str, bytes | None], version: int) -> None:
        with self._writing:
            db = self._open_writer() if self._writer is None else self._writer
            self._writer = db
            committing = False
            try:
                db.execute("BEGIN IMMEDIATE")
                if expected and _versions(db, expected) != {k: v for k, v in expected.items() if v is not None}:
                    raise Conflict(_entries(db, tuple(expected)))
                db.executemany(_PUT, [(key, version, value) for key, value in writes.items() if value is not None])
                for key, value in writes.items():
                    if value is None:
                        db.execute(_DELETE, (key,))
                failpoint("consensus.commit.applied")
                committing = True
                db.execute("COMMIT")
            except sqlite3.Error as failure:
                self._roll_back(db)
                raise self._meaning(failure, writing=True, committing=committing) from failure
            except BaseException:
                self._roll_back(db)
                raise
        failpoint("consensus.commit.done")

    def close(self) -> None:
        self._closed = True
        with self._writing:
            while self._idle:
                self._idle.pop().close()
            if self._writer is not None:
                self._writer.close()  # the last to close, so that it moves the WAL into the file and removes it
                self._writer = None

    def _check_open(self) -> None:
        if self._closed:
            raise errors.InvalidUsage(f"the consensus is closed: {self._path}")

    def _connect(self, options: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self._path.as_uri()}?{options}",
            uri=True,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )

    def _open_writer(self) -> sqlite3.Connection:
        self._check_open()
        if self._read_only:
            raise errors.StorageReadOnly("the environment was opened for reading only", detail=str(self._path))
        try:
            self._keep_private()
            db = self._connect("mode=rwc")
            try:
                _set_up(db)
            except BaseException:
                db.close()
                raise
        except sqlite3.Error as failure:
            raise self._meaning(failure, writing=True) from failure
        return db

    def _keep_private(self) -> None:
        """Create the file for its owner alone, before SQLite does: it gives the files beside it the same rights."""
        with suppress(OSError):  # what is wrong here is wrong for SQLite too, which says it better
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            for path in self._path.parent.glob(f"{self._path.name}*"):
                close_to_others(path)

    def _roll_back(self, db: sqlite3.Connection) -> None:
        try:
            if db.in_transaction:
                db.execute("ROLLBACK")
        except sqlite3.Error:
            self._writer = None  # not usable any more: the next commit opens another
            db.close()

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on a connection that sees one instant."""
        self._check_open()
        at_rest = self._at_rest() if self._read_only else None
        try:
            if at_rest is not None:
                try:
                    with closing(self._connect("immutable=1")) as db:
                        result = work(db)
                except sqlite3.Error:
                    if self._at_rest() == at_rest:
                        raise
                else:
                    if self._at_rest() == at_rest:
                        return result
                # Someone has opened it meanwhile, so what was read may be half of a change.
            with self._reader() as db:
                return work(db)
        except sqlite3.Error as failure:
            raise self._meaning(failure, writing=False) from failure

    def _at_rest(self) -> tuple[int, ...] | None:
        """A fingerprint of the file while nobody has it open; None if a process has it open, or died with it.

        Even a connection that only reads makes a WAL and a file of shared memory where there are none. They would stay
        behind, and belong to whoever looked; and a folder that refuses writes would not let it look at all.
        """
        if os.path.lexists(f"{self._path}-wal"):
            return None
        try:
            file = self._path.stat()
        except OSError:
            return None
        return file.st_ino, file.st_size, file.st_mtime_ns

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """A connection in a read transaction; it is pooled unless something fails."""
        try:
            db = self._idle.pop()
        except IndexError:
            db = self._connect("mode=ro")
        keep = False
        try:
            db.execute("BEGIN")
            yield db
            db.execute("COMMIT")
            keep = len(self._idle) < _READERS_IDLE_MAX and not self._closed
        finally:
            if keep:
                self._idle.append(db)
            else:
                db.close()

    def _meaning(self, failure: sqlite3.Error, *, writing: bool, committing: bool = False) -> errors.StorageError:
        detail = f"{failure} ({getattr(failure, 'sqlite_errorname', 'no code')}, {self._path})"
        match _code(failure):
            case sqlite3.SQLITE_FULL:
                return errors.StorageFull(
                    "no space left for metadata", detail=detail, hint="free space or raise the quota"
                )
            case sqlite3.SQLITE_IOERR if committing:
                # The transaction may be whole in the WAL, though not durable; a restart may find it there.
                hint = "look before trying again, and look at the system's log for the disk"
                return errors.Indeterminate("the disk failed during a commit", detail=detail, hint=hint)
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN if writing:
                hint = "check who owns the folder, its permissions, and whether it is mounted read-only"
                return errors.StorageReadOnly("writing metadata was refused", detail=detail, hint=hint)
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                hint = "restore the file from a copy"
                return errors.Corruption(f"the metadata are damaged: {self._path}", detail=detail, hint=hint)
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                hint = "another process holds the file; try again"
                return errors.Determinate("the metadata are locked", detail=detail, hint=hint)
            case sqlite3.SQLITE_TOOBIG:
                return errors.InvalidUsage("a value is too large for the metadata", detail=detail)
            case _:
                return errors.Determinate("the metadata cannot be used", detail=detail)


def _set_up(db: sqlite3.Connection) -> None:
    deadline_s = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            break
        except sqlite3.OperationalError as failure:
            # SQLite does not wait for another process that is making this same change.
            if _code(failure) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise sqlite3.OperationalError(f"the file system cannot hold a write-ahead log: journal mode is {mode}")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA secure_delete = ON")  # a password that was sealed or dropped is not left in free pages
    db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_KEPT}")
    db.execute(_SCHEMA)


def _code(failure: sqlite3.Error) -> int | None:
    extended = getattr(failure, "sqlite_errorcode", None)  # none for those that Python itself raises
    return None if extended is None else extended & 0xFF


@lru_cache
def _select(columns: str, keys: int) -> str:
    return f"SELECT {columns} FROM entries WHERE key IN ({', '.join('?' * keys)})"


def _versions(db: sqlite3.Connection, keys: Mapping[str, int | None]) -> dict[str, int]:
    if len(keys) <= _KEYS_PER_SELECT_MAX:
        return dict(db.execute(_select("key, version", len(keys)), tuple(keys)).fetchall())
    return {key: entry.version for key, entry in _entries(db, tuple(keys)).items()}


def _scanned(db: sqlite3.Connection, prefixes: tuple[str, ...]) -> list[tuple[str, Entry]]:
    found: list[tuple[str, int, bytes]] = []
    for low, high in ranges_of(prefixes):
        if high is None:
            found += db.execute("SELECT * FROM entries WHERE key >= ? ORDER BY key", (low,))
        else:
            found += db.execute("SELECT * FROM entries WHERE key >= ? AND key < ? ORDER BY key", (low, high))
    return [(key, Entry(version, value)) for key, version, value in found]


def _entries(db: sqlite3.Connection, keys: Sequence[str]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for at in range(0, len(keys), _KEYS_PER_SELECT_MAX):
        some = tuple(keys[at : at + _KEYS_PER_SELECT_MAX])
        for key, version, value in db.execute(_select("key, version, value", len(some)), some):
            found[key] = Entry(version, value)
    return found
