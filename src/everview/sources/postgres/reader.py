"""Reads a PostgreSQL server for a source: a snapshot of its tables, then their changes, transaction by transaction.

The place upstream is a replication slot of the source's own. A position here says how far its stream is in the
collections; the server is told only what is committed here, so it keeps all that may be asked for again. What cannot
go on exactly stops: a table whose definition has changed, or all of the source if its slot, its publication or the
server is not what it was. Then collections stay at the last time at which they were exact, and who reads is told why.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from everview.errors import EverviewError
from everview.sources.contract import Feeding, Progress
from everview.sources.feeder import IDLE_S, News
from everview.sources.postgres import connecting, snapshot
from everview.sources.postgres.changes import TableChanges
from everview.sources.postgres.errors import SourceLost, TableStopped, UpstreamFailed
from everview.sources.postgres.heads import Heads
from everview.sources.postgres.pgoutput import lsn_of, shown_lsn
from everview.sources.postgres.rights import NAMED_MAX
from everview.sources.postgres.spec import PostgresSource
from everview.sources.postgres.stream import Stream
from everview.sources.postgres.watch import Watch
from everview.storage.errors import Canceled
from everview.storage.staging import Staged
from everview.timely.consolidate import DIFF, TIME

if TYPE_CHECKING:
    import psycopg

AGAIN = "drop the source and create it again"
_SLOT = """
    SELECT confirmed_flush_lsn::text, active_pid, wal_status, {invalid}, plugin, database = current_database()
    FROM pg_replication_slots WHERE slot_name = %s
"""
_CONFLICTING = "CASE WHEN conflicting AND wal_status <> 'lost' THEN 'rows_removed' END"
# By the reasons that the server gives: what has happened, and what lets it happen.
_INVALID: Mapping[str, tuple[str, str | None]] = {
    "wal_removed": (
        "the log that it needs was removed",
        "it was further behind than the server allows (max_slot_wal_keep_size)",
    ),
    "rows_removed": (
        "the server removed rows of its catalog that are needed to read on",
        "it is a read replica, and its hot_standby_feedback was off or not heard",
    ),
    "wal_level_insufficient": ("wal_level of the primary is not logical any more", None),
    "idle_timeout": ("it was unused for too long", "the server's idle_replication_slot_timeout says how long"),
}


class PostgresArrival:
    """Whether all is in that was upstream when a question was put."""

    def __init__(self, reader: PostgresReader, question: int) -> None:
        self._reader, self._question = reader, question
        self._head: int | None = None

    def time(self) -> int | None:
        reader = self._reader
        if self._head is None and (head := reader.head(self._question)) is not None:
            self._head = head
            reader.want(head)
        reader.check()
        position = reader.position
        return None if self._head is None or position is None or position < self._head else reader.latest

    def missing(self) -> str:
        position = self._reader.position
        come = "its snapshot is not in" if position is None else f"it has come to {shown_lsn(position)}"
        if self._head is None:
            return f"{come}, and its server has not said how far its log goes"
        return f"{come}, and {shown_lsn(self._head)} was committed upstream"


class PostgresReader:
    """A `Follower` of one PostgreSQL database."""

    def __init__(self, feeding: Feeding[PostgresSource]) -> None:
        self._environment, self._outputs, self._spec = feeding.environment, feeding.outputs, feeding.spec
        self._way, self._name = feeding.way, f"everview {feeding.name}"[:63]
        self._where: str | None = None
        self._db: psycopg.Connection[Any] | None = None
        self._stream: Stream | None = None
        self._watch = Watch(self._spec.publication, self._spec.tables)
        self._stopped: dict[str, EverviewError] = {}
        self._lost: SourceLost | None = None
        self._new_partitions: list[str] = []
        self._begun = False  # whether the snapshot is in
        self._closing = threading.Event()
        self._position: int | None = None
        self._wanted = 0  # how far whoever waits wants it to be
        self._heads = Heads(self._way, f"{self._name} asks"[:63], self._environment.wake)
        self._rows = self._bytes = self._snapshot_rows = self._snapshot_total = 0
        self._reading_snapshot = False

    # What the feeder asks for

    def gather(self, position: Any) -> None:
        """Take in transactions that have come since a position."""
        if position is None:
            return
        if not self._begun:
            self._remember(position)
        with self._failing():
            if self._stream is None:
                self._connect(position)
            assert self._stream is not None
            self._stream.gather(IDLE_S, self._wanted)

    def news(self, position: Any, lower: int, end: int) -> News:
        """What was gathered, as changes at the last time before `end`; without a position, the snapshot."""
        with self._failing():
            return self._snapshot(lower, end) if position is None else self._changes(position, end)

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """What fails inside ends the connections; if it is for good, nothing goes on until it is well again."""
        try:
            yield
        except BaseException as error:
            self._disconnect()
            if isinstance(error, SourceLost):
                self._lost = error
            raise

    def committed(self, position: Any) -> None:
        """Tell the server what is durable here."""
        if not self._begun:
            self._remember(position)
        self._position, self._lost = position["lsn"], None
        try:
            if self._stream is not None:
                self._stream.tell(position["lsn"])
        except UpstreamFailed:  # it is durable here, and the next connection goes on from there
            self._disconnect()

    def wake(self) -> None:
        stream = self._stream
        if stream is not None:
            stream.wake()

    def stop(self) -> None:
        self._closing.set()
        if (stream := self._stream) is not None:
            stream.closing = True
            stream.wake()

    def arrival(self) -> PostgresArrival:
        return PostgresArrival(self, self._heads.ask())

    def head(self, number: int) -> int | None:
        """The answer to a question of how far upstream goes; None if there is none yet."""
        return self._heads.answer(number)

    def check(self) -> None:
        """Raise if the source goes on no further."""
        if self._lost is not None:
            raise self._lost
        if self._closing.is_set():
            raise UpstreamFailed("the source was closed while its server was asked")

    def want(self, position: int) -> None:
        """Somebody waits for this position."""
        self._wanted = max(self._wanted, position)
        self.wake()

    @property
    def position(self) -> int | None:
        """What is in: everything that was committed upstream before it."""
        return self._position

    @property
    def latest(self) -> int:
        """The latest time at which tables are complete."""
        return max(self._environment.frontiers(each.id).upper.only for each in self._outputs.values()) - 1

    @property
    def passing(self) -> bool:
        return self._begun and self._lost is None

    def stopped(self) -> Mapping[str, EverviewError]:
        if self._lost is not None:
            return dict.fromkeys(self._outputs, self._lost)
        return dict(self._stopped)

    def warning(self) -> str | None:
        if not (names := self._new_partitions):
            return None
        plural, more = ("s", "are") if len(names) > 1 else ("", "is")
        listed = ", ".join(names[:NAMED_MAX]) + (f" and {len(names) - NAMED_MAX} others" if names[NAMED_MAX:] else "")
        return f"partition{plural} {listed} came upstream and {more} not in this source; {AGAIN} to have them"

    def progress(self) -> Progress:
        stream, position = self._stream, self._position
        shown = None if position is None else shown_lsn(position)
        behind = None if stream is None or position is None else max(0, stream.server_end - position)
        lag_ms = None
        if stream is not None and stream.committed_us is not None:
            lag_ms = 0 if not behind else max(0, int(time.time() * 1000) - stream.committed_us // 1000)
        taken, total = (self._snapshot_rows, self._snapshot_total) if self._reading_snapshot else (None, None)
        return Progress(self._rows, self._bytes, shown, taken, total, behind, lag_ms)

    def close(self) -> None:
        self._closing.set()
        self._heads.close()
        if (stream := self._stream) is not None:
            stream.closing = True
        with contextlib.suppress(Exception):
            self._where = self._way()  # the connection may be gone when the source is
        self._disconnect()

    def part(self) -> str | None:
        """Drop the slot upstream: the server would keep its log for it."""
        slot = self._spec.slot
        try:
            with connecting.connect(self._where or self._way(), self._name) as db:
                self._drop_slot(db)
        except Exception as error:
            reason = error.detail or error.message if isinstance(error, EverviewError) else str(error)
            return (
                f'replication slot "{slot}", which keeps the log of its server from being removed ({reason});'
                f" run there: SELECT pg_drop_replication_slot('{slot}')"
            )
        return None

    # Connections

    def _connect(self, position: Mapping[str, Any]) -> None:
        """Go on at a position, if the server is what it was."""
        self._where = self._way()
        try:
            stream = Stream(self._where, self._name, self._followed())
            self._stream, self._db = stream, connecting.connect(self._where, self._name)
            self._check_system(stream, position)
            self._check_slot(self._db, position)
            self._look(self._db)  # some versions break the stream off where the publication is gone
            stream.start(self._spec.slot, position["lsn"], self._spec.publication)
        except BaseException:
            self._disconnect()
            raise

    def _followed(self) -> dict[str, Any]:
        return {name: table for name, table in self._spec.tables.items() if name not in self._stopped}

    def _disconnect(self) -> None:
        stream, self._stream = self._stream, None
        db, self._db = self._db, None
        if stream is not None:
            stream.close()
        if db is not None:
            with contextlib.suppress(Exception):
                db.close()

    def _check_system(self, stream: Stream, position: Mapping[str, Any]) -> None:
        system, timeline, at = stream.system()
        if system != position["system"]:
            detail = f"its system identifier is {system}, and was {position['system']}"
            raise SourceLost("the connection leads to another PostgreSQL server", detail=detail, hint=AGAIN)
        if timeline != position["timeline"]:
            raise SourceLost(
                "the server is on another timeline: a standby was promoted, or it was restored",
                detail=f"timeline {timeline}, and was {position['timeline']}; its log may differ from what was read",
                hint=AGAIN,
            )
        if at < position["lsn"]:
            raise SourceLost(
                "the server was restored to an earlier state",
                detail=f"its log ends at {shown_lsn(at)}, and {shown_lsn(position['lsn'])} was read",
                hint=AGAIN,
            )

    def _check_slot(self, db: psycopg.Connection[Any], position: Mapping[str, Any]) -> None:
        version = db.info.server_version
        invalid = "invalidation_reason" if version >= 170_000 else _CONFLICTING if version >= 160_000 else "NULL"
        with connecting.failures("PostgreSQL failed"):
            row = db.execute(_SLOT.format(invalid=invalid), [self._spec.slot]).fetchone()
        name = f'replication slot "{self._spec.slot}"'
        if row is None:
            raise SourceLost(f"{name} is gone", detail="changes since are not kept upstream", hint=AGAIN)
        flushed, pid, wal_status, reason, plugin, here = row
        if plugin != "pgoutput" or not here:
            raise SourceLost(f"{name} is another one", detail=f"its plugin is {plugin}", hint=AGAIN)
        if wal_status == "lost" or reason is not None:
            what, why = _INVALID.get(reason or "wal_removed", (f"the server says {reason}", None))
            raise SourceLost(f"{name} is invalid: {what}", detail=why, hint=AGAIN)
        if flushed is not None and lsn_of(flushed) > position["lsn"]:
            raise SourceLost(
                f"{name} was moved on by someone else",
                detail=f"it stands at {flushed}, and {shown_lsn(position['lsn'])} is here: what is between is lost",
                hint=AGAIN,
            )
        if pid is not None:  # an earlier connection of ours, which the server does not know to be gone
            with contextlib.suppress(Exception):
                db.execute("SELECT pg_terminate_backend(%s)", [pid])
            raise UpstreamFailed(
                f"{name} is in use still", detail=f"by process {pid} of the server, which is ended now"
            )

    def _drop_slot(self, db: psycopg.Connection[Any]) -> None:
        slot, pid = self._spec.slot, None
        with connecting.failures("the replication slot cannot be dropped"):
            for attempt in range(50):
                row = db.execute("SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s", [slot]).fetchone()
                if row is None:
                    return
                if (pid := row[0]) is None:
                    db.execute("SELECT pg_drop_replication_slot(%s)", [slot])
                    return
                if attempt % 10 == 0:  # an earlier connection of ours
                    db.execute("SELECT pg_terminate_backend(%s)", [pid])
                time.sleep(0.1)
        raise UpstreamFailed("the replication slot is in use", detail=f"by process {pid} of the server")

    # The snapshot

    def _snapshot(self, lower: int, end: int) -> News:
        """All rows of all tables at the moment at which the slot begins, in one commit.

        They are there from the first time on at which the tables can be read: at no time are they empty.
        """
        self._where = self._way()
        self._snapshot_rows, self._reading_snapshot = 0, True
        staged: dict[str, Staged] = {}
        try:
            with connecting.connect(self._where, self._name) as db:
                self._drop_slot(db)  # of an earlier attempt
                for lack in connecting.readiness(db):
                    raise lack
                self._stream = Stream(self._where, self._name, self._spec.tables)
                system, timeline, _ = self._stream.system()
                lsn, exported = self._stream.create_slot(self._spec.slot)
                snapshot.begin(db, exported)
                self._snapshot_total = snapshot.estimated_rows(db, [each.oid for each in self._spec.tables.values()])
                self._watch = Watch(self._spec.publication, self._spec.tables)
                for name, reason in self._watch.look(db).items():
                    self._stop(name, reason)
                for name, table in self._spec.tables.items():
                    if name in self._stopped:
                        continue
                    try:
                        pieces = snapshot.copied(db, table, lower, self._seen)
                        staged[name] = self._environment.stage_pieces(self._outputs[name].id, pieces)
                    except TableStopped as error:
                        self._stopped[name] = error
                snapshot.check_files(db, list(self._spec.tables.values()))
            position = {
                "slot": self._spec.slot,
                "system": system,
                "timeline": timeline,
                "lsn": lsn,
                "seen": dict(self._watch.seen),
                "since": self._watch.since,
                "left_out": self._watch.left_out,
                "stopped": self._told_stops(),
            }
            self._stream.start(self._spec.slot, lsn, self._spec.publication)
            self._db = connecting.connect(self._where, self._name)
        except BaseException:
            for each in staged.values():
                self._environment.unstage(each)
            raise
        finally:
            self._reading_snapshot = False
        changes = {**staged, self._spec.progress: self._progress(None, lsn, lower)}
        return News(changes, end, position, more=True, held=set(self._stopped))

    def _seen(self, rows: int, size: int) -> None:
        self._snapshot_rows += rows
        self._rows += rows
        self._bytes += size
        if self._closing.is_set():
            raise Canceled("the source is being closed")

    # Changes

    def _changes(self, position: Mapping[str, Any], end: int) -> News:
        stream, db = self._stream, self._db
        assert stream is not None and db is not None
        self._bytes += stream.bytes
        taken, lsn = stream.taken(), stream.end
        self._rows, stream.rows = self._rows + stream.rows, 0
        for name, error in stream.stopped.items():
            self._stopped.setdefault(name, error)
        # Behind all that has come: if definitions are the same now, they were so for all of it.
        self._look(db)
        changes: dict[str, pa.Table | Staged] = {}
        try:
            for name, each in taken.items():
                if name not in self._stopped:
                    self._apply(name, each, end - 1, changes)
        except BaseException:
            self._unstage(changes)
            raise
        if lsn != position["lsn"]:
            changes[self._spec.progress] = self._progress(position["lsn"], lsn, end - 1)
        told = self._told_stops()
        now = {"lsn": lsn, "stopped": told, "seen": dict(self._watch.seen)}
        unchanged = all(position[name] == found for name, found in now.items())
        after = position if unchanged else {**position, **now, "since": self._watch.since}
        return News(changes, end, after, more=True, held=set(self._stopped))

    def _look(self, db: psycopg.Connection[Any]) -> None:
        """Stop the tables that are not what they were."""
        for name, reason in self._watch.look(db, self._stopped).items():
            self._stop(name, reason)
        self._new_partitions = self._watch.new_partitions(db)

    def _apply(self, name: str, each: TableChanges, time: int, changes: dict[str, pa.Table | Staged]) -> None:
        id = self._outputs[name].id
        try:
            changes[name] = self._environment.stage_pieces(id, each.applied(self._environment, id, time))
        except TableStopped as error:
            self._stopped[name] = error

    def _unstage(self, changes: Mapping[str, pa.Table | Staged]) -> None:
        for each in changes.values():
            if isinstance(each, Staged):
                self._environment.unstage(each)

    def _stop(self, name: str, reason: str) -> None:
        shown = self._spec.tables[name].shown
        hint = "the other tables go on; drop the source and create it again to have this one too"
        self._stopped[name] = TableStopped(f"table {shown} cannot be followed any longer: {reason}", hint=hint)

    def _told_stops(self) -> dict[str, list[str | None]]:
        return {name: [each.message, each.detail, each.hint] for name, each in self._stopped.items()}

    def _remember(self, position: Mapping[str, Any]) -> None:
        """What an earlier process knew."""
        self._begun, self._position = True, position["lsn"]
        self._watch.begin(position["seen"], position.get("since", 0), position.get("left_out", ()))
        for name, (message, detail, hint) in position["stopped"].items():
            self._stopped.setdefault(name, TableStopped(message, detail=detail, hint=hint))

    def _progress(self, before: int | None, after: int, time: int) -> pa.Table:
        """How the relation that tells the position changes."""
        rows = [(each, diff) for each, diff in ((before, -1), (after, 1)) if each is not None]
        return pa.table(
            {
                "c0": pa.array([shown_lsn(each) for each, _ in rows], pa.string()),
                "c1": pa.array([each for each, _ in rows], pa.int64()),
                TIME: pa.array(np.full(len(rows), time, dtype=np.int64)),
                DIFF: pa.array([diff for _, diff in rows], pa.int64()),
            }
        )
