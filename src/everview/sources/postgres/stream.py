"""A replication connection: the slot that keeps a source's place upstream, and the transactions that come through it.

Transactions come whole, in the order of their commits, when they are committed. They are taken in until nothing more is
there, or much has come, so one commit here may hold several.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from everview.quoting import identifier, literal
from everview.sources.postgres.changes import TableChanges
from everview.sources.postgres.connecting import connect_replication, failed
from everview.sources.postgres.errors import SourceLost, TableStopped, UpstreamUnfit
from everview.sources.postgres.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    Keepalive,
    Relation,
    Truncate,
    Update,
    decoded,
    framed,
    lsn_of,
    status,
)
from everview.sources.postgres.tables import UpstreamTable
from everview.storage.errors import Canceled

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn

BATCH_BYTES = 16 << 20
LINGER_S = 0.25  # transactions that come one after the other are gathered for so long at most
TRANSACTION_BYTES_MAX = 1 << 30
SILENCE_S_MAX = 120.0  # the server speaks at least every `wal_sender_timeout` / 2


class Stream:
    """What comes through a slot, gathered until it is taken."""

    def __init__(self, where: str, name: str, tables: Mapping[str, UpstreamTable]) -> None:
        from psycopg import pq

        self._pq = pq
        self._connection: PGconn = connect_replication(where, name)
        self._tables = {table.oid: (local, table) for local, table in tables.items()}
        self._relations: dict[int, tuple[str, list[int] | None] | None] = {}
        self._wake, self._waker = socket.socketpair()
        self._wake.setblocking(False)
        self._waker.setblocking(False)
        self._poll = select.poll()
        self._poll.register(self._connection.socket, select.POLLIN)
        self._poll.register(self._wake, select.POLLIN)
        self.closing = False
        self._in_transaction, self._told = False, 0
        self._begun_us: int | None = None
        self._heard = time.monotonic()
        self.changes: dict[str, TableChanges] = {}
        self.stopped: dict[str, TableStopped] = {}
        self.end = 0  # all transactions committed before it have come
        self.server_end = 0
        self.committed_us: int | None = None  # when the last transaction was committed upstream
        self.bytes = self.rows = 0

    # Commands, before the stream begins

    def system(self) -> tuple[str, int, int]:
        """The system identifier, the timeline and the present position of the server."""
        row = self._row("IDENTIFY_SYSTEM")
        return row[0], int(row[1]), lsn_of(row[2])

    def create_slot(self, slot: str) -> tuple[int, str]:
        """Make the slot; gives where it begins, and the name of a snapshot of that moment."""
        row = self._row(f"CREATE_REPLICATION_SLOT {identifier(slot)} LOGICAL pgoutput (SNAPSHOT 'export')")
        return lsn_of(row[1]), row[2]

    def _row(self, command: str) -> list[str]:
        found = self._connection.exec_(command.encode())
        if found.status != self._pq.ExecStatus.TUPLES_OK:
            raise self._error(f"{command.partition(' ')[0]} failed")
        return [(found.get_value(0, column) or b"").decode() for column in range(found.nfields)]

    def start(self, slot: str, position: int, publication: str) -> None:
        """Let everything behind a position come."""
        high, low = position >> 32, position & 0xFFFFFFFF
        found = self._connection.exec_(
            f"START_REPLICATION SLOT {identifier(slot)} LOGICAL {high:X}/{low:X}"
            f" (proto_version '1', publication_names {literal(identifier(publication))})".encode()
        )
        if found.status != self._pq.ExecStatus.COPY_BOTH:
            raise self._error("replication does not start")
        self._connection.nonblocking = 1
        self.end, self._heard = position, time.monotonic()

    # The stream

    def gather(self, seconds: float, wanted: int = 0) -> None:
        """Take in transactions that are there; waits so long at most for the first, and for the end of one.

        What comes up to the position `wanted` is not kept waiting for more.
        """
        deadline, begun = time.monotonic() + seconds, self.end
        while True:
            if begun < wanted <= self.end and not self._in_transaction:
                return
            count, data = self._connection.get_copy_data(1)
            if count > 0:
                self._heard = time.monotonic()
                self._take(bytes(data))
                if self._in_transaction:
                    continue
                if not self.changes:  # only tables that are not taken have changed
                    if self._heard >= deadline:
                        return
                    continue
                deadline = min(deadline, self._heard + LINGER_S) if self.bytes < BATCH_BYTES else self._heard
                if self._heard >= deadline:
                    return
            elif count == 0:
                # What has arrived meanwhile goes into the same commit: each has a price of its own.
                if not self._wait(0.0 if self.changes else deadline - time.monotonic()):
                    return
            else:
                self._ended()

    def _wait(self, seconds: float) -> bool:
        """Wait for data; gives False if there is none in time, or someone wakes the stream."""
        if time.monotonic() - self._heard > SILENCE_S_MAX:
            raise failed("PostgreSQL failed", f"the server has said nothing for {SILENCE_S_MAX:.0f} s")
        left_s = 1.0 if self._in_transaction else max(0.0, seconds)
        ready = {number for number, _ in self._poll.poll(left_s * 1000)}
        if self.closing:
            raise Canceled("the source is being closed")
        if self._wake.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                self._wake.recv(1024)
        if self._connection.socket in ready:
            self._read()
            return True
        return self._in_transaction

    def _read(self) -> None:
        import psycopg

        try:
            self._connection.consume_input()
        except psycopg.Error as error:
            raise failed("the replication connection broke off", str(error)) from None

    def _take(self, data: bytes) -> None:
        message = framed(data)
        self.server_end = max(self.server_end, message.end)
        if isinstance(message, Keepalive):
            if not self._in_transaction:
                self.end = max(self.end, message.end)
            if message.answer:
                self.tell(self._told)
            return
        match found := decoded(message.data):
            case Insert() | Update() | Delete():
                self._change(found, len(message.data))
                if self.bytes > TRANSACTION_BYTES_MAX:
                    raise UpstreamUnfit(
                        "a transaction upstream is too large",
                        detail=f"its changes have more than {TRANSACTION_BYTES_MAX} bytes",
                        hint="drop the source and create it again: it then begins behind that transaction",
                    )
            case Relation():
                self._relate(found)
            case Truncate(oids=oids):
                for oid in oids:
                    known = self._relations.get(oid)
                    if known is not None and known[0] not in self.stopped:
                        self._of(known[0], oid).truncate()
            case Begin(at_us=moment):
                self._in_transaction, self._begun_us = True, moment
            case Commit(end=end):
                self._in_transaction, self.end = False, max(self.end, end)
                self.committed_us = self._begun_us

    def _change(self, found: Insert | Update | Delete, size: int) -> None:
        if found.oid not in self._relations:
            raise SourceLost("a change came for a table that was not told")
        known = self._relations[found.oid]
        if known is None or known[0] in self.stopped:
            return
        self.rows += 1
        self.bytes += size  # of what is kept alone: other tables of the publication may change as they like
        local, places = known
        try:
            changes = self._of(local, found.oid)
            match found:
                case Insert():
                    changes.insert(found, places)
                case Update():
                    changes.update(found, places)
                case Delete():
                    changes.delete(found, places)
        except TableStopped as error:
            self._stop(local, error)

    def _of(self, local: str, oid: int) -> TableChanges:
        if local not in self.changes:
            self.changes[local] = TableChanges(self._tables[oid][1])
        return self.changes[local]

    def _stop(self, local: str, error: TableStopped) -> None:
        self.stopped[local] = error
        self.changes.pop(local, None)

    def _relate(self, told: Relation) -> None:
        """A table as the stream has it from here on: the columns that are taken have to be what they were."""
        if told.oid not in self._tables:
            self._relations[told.oid] = None
            return
        local, table = self._tables[told.oid]
        at = {each.name: place for place, each in enumerate(told.columns)}
        for each in table.columns:
            found = None if each.name not in at else told.columns[at[each.name]]
            if found is None or (found.type_oid, found.modifier) != (each.type_oid, each.modifier):
                what = "was dropped, renamed or left out" if found is None else "has another type"
                message = f'column "{each.name}" of {table.shown} {what} upstream'
                self._stop(local, TableStopped(message, hint="drop the source and create it again"))
        keys = {each.name for each in told.columns if each.key}
        if local not in self.stopped and table.key and keys != {table.columns[place].name for place in table.key}:
            message = f"rows of {table.shown} are identified in another way upstream"
            self._stop(local, TableStopped(message, hint="drop the source and create it again"))
        if local in self.stopped:
            self._relations[told.oid] = None
            return
        places = [at[each.name] for each in table.columns]
        self._relations[told.oid] = (local, None if places == list(range(len(told.columns))) else places)

    def taken(self) -> dict[str, TableChanges]:
        """What has come, which is whole transactions; it is gone from here."""
        assert not self._in_transaction
        found, self.changes = self.changes, {}
        self.bytes = 0
        return found

    def tell(self, position: int) -> None:
        """Tell the server that everything before a position is durable here."""
        import psycopg

        self._told = max(position, self._told)
        try:
            self._connection.put_copy_data(status(self._told, int(time.time() * 1_000_000)))
            self._connection.flush()
        except psycopg.Error as error:
            raise failed("the replication connection broke off", str(error)) from None

    def wake(self) -> None:
        """Let `gather` wait no longer."""
        with contextlib.suppress(OSError):
            self._waker.send(b"!")

    def close(self) -> None:
        """Let go of the connection."""
        with contextlib.suppress(Exception):
            self._connection.finish()
        self._wake.close()
        self._waker.close()

    def _ended(self) -> None:
        while (result := self._connection.get_result()) is not None:
            if result.status == self._pq.ExecStatus.FATAL_ERROR:
                text = result.error_message.decode(errors="replace")
                raise failed("replication ended", text, _sqlstate(self._pq, result))
        raise self._error("replication ended")

    def _error(self, message: str) -> Exception:
        return failed(message, self._connection.error_message.decode(errors="replace"))


def _sqlstate(pq: Any, result: Any) -> str | None:
    found = result.error_field(pq.DiagnosticField.SQLSTATE)
    return None if found is None else found.decode()
