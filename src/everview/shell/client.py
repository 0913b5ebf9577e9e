"""A client of the wire protocol, on libpq: it sends a statement and yields the results as they come.

It waits with `select` and never in libpq, which would block the whole process. So Ctrl-C works at once, and the server
may be a thread of this process. Ctrl-C asks the server to cancel the statement; results until then are still yielded.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from everview.errors import EverviewError

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

CHUNK_ROWS = 1_000
COPY_BYTES = 1 << 16
PATIENCE_S = 1.0
Row: TypeAlias = tuple[str | None, ...]


class CannotConnect(EverviewError):
    """There is no server, or it refuses the connection."""

    def __init__(self, message: str, *, needs_password: bool = False, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.needs_password = needs_password


@dataclass(frozen=True, slots=True)
class Problem:
    """What the server says about a statement: an error, or a notice."""

    severity: str
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """The columns of rows that follow: names, and the numbers of their types."""

    names: tuple[str, ...]
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class CopyData:
    """A piece of the output of COPY … TO STDOUT."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Complete:
    tag: str


Event: TypeAlias = Header | Chunk | CopyData | Complete | Problem


class Patience(Protocol):
    """Called again and again while nothing comes (`still`), and when something comes (`over`)."""

    def still(self) -> None: ...

    def over(self) -> None: ...


class _WithSocket(Protocol):
    @property
    def socket(self) -> int: ...


class Client:
    """One connection. `notice` gets the notices as they come; without it, Ctrl-C does not cancel statements."""

    def __init__(self, options: dict[str, str], notice: Callable[[Problem], None] | None = None) -> None:
        from psycopg import pq
        from psycopg.conninfo import make_conninfo
        from psycopg.pq import ConnStatus

        self.options = dict(options)
        self._conn: PGconn = pq.PGconn.connect_start(make_conninfo("", **options).encode())
        if self._conn.status != ConnStatus.BAD:
            _poll(self._conn, self._conn.connect_poll)
        if self._conn.status != ConnStatus.OK:
            message = self._conn.get_error_message().strip()
            needs = self._conn.needs_password
            self._conn.finish()
            raise CannotConnect(
                message.splitlines()[0] if message else "cannot connect",
                needs_password=needs,
                hint="start a server with: everview serve" if "refused" in message else None,
            )
        self.patience: Patience | None = None
        self._conn.nonblocking = 1
        self._heeded = notice is not None
        if notice is not None:
            self._conn.notice_handler = lambda result: notice(_problem(result))

    @property
    def status(self) -> str:
        """The state of the session: I is idle, T in a transaction block, E in a failed block."""
        from psycopg.pq import TransactionStatus

        return {TransactionStatus.INTRANS: "T", TransactionStatus.INERROR: "E"}.get(
            TransactionStatus(self._conn.transaction_status), "I"
        )

    @property
    def lost(self) -> bool:
        from psycopg.pq import ConnStatus

        return self._conn.status != ConnStatus.OK

    def run(self, statement: str, copy_lines: Iterable[str] = (), *, streaming: bool = False) -> Iterator[Event]:
        """Run a statement; `copy_lines` are the data for COPY … FROM STDIN. Ctrl-C cancels it, which gives an error."""
        conn = self._conn
        try:
            conn.send_query(statement.encode())
            self._flush()
        except Exception as error:
            yield Problem("FATAL", "08006", str(error).strip() or "the connection is lost")
            return
        if streaming:
            conn.set_single_row_mode()
        else:
            conn.set_chunked_rows_mode(CHUNK_ROWS)
        asked = False
        header: Header | None = None
        while True:
            try:
                result = self._next_result(None if streaming else self.patience)
            except KeyboardInterrupt:
                if asked or not self._heeded:
                    raise
                asked = True
                self._cancel()
                continue
            if result is None:
                return
            header, events = self._events(result, header, copy_lines)
            yield from events

    def values(self, statement: str) -> list[Row]:
        """The rows of a statement; none if it fails."""
        return [row for event in self.run(statement) if isinstance(event, Chunk) for row in event.rows]

    def close(self) -> None:
        self._conn.finish()

    def _next_result(self, patience: Patience | None) -> PGresult | None:
        conn = self._conn
        try:
            while True:
                if not conn.is_busy():
                    return conn.get_result()
                found, _, _ = select.select([conn.socket], [], [], None if patience is None else PATIENCE_S)
                if found:
                    conn.consume_input()
                elif patience is not None:
                    patience.still()
        finally:
            if patience is not None:
                patience.over()

    def _events(
        self, result: PGresult, header: Header | None, copy_lines: Iterable[str]
    ) -> tuple[Header | None, Iterator[Event]]:
        from psycopg.pq import ExecStatus as Status

        match result.status:
            case Status.SINGLE_TUPLE | Status.TUPLES_CHUNK | Status.TUPLES_OK:
                columns = range(result.nfields)
                names = tuple((result.fname(number) or b"").decode() for number in columns)
                found = Header(names, tuple(result.ftype(number) for number in columns))
                return found, self._rows(result, None if header == found else found)
            case Status.COMMAND_OK:
                return None, iter([Complete((result.command_status or b"").decode())])
            case Status.COPY_OUT:
                return None, self._copy_out()
            case Status.COPY_IN:
                return None, self._copy_in(copy_lines)
            case Status.EMPTY_QUERY:
                return None, iter(())
            case _:
                return None, iter([_problem(result)])

    @staticmethod
    def _rows(result: PGresult, header: Header | None) -> Iterator[Event]:
        from psycopg.pq import ExecStatus as Status

        if header is not None:
            yield header
        columns = range(result.nfields)
        if result.ntuples:
            yield Chunk([tuple(_text(result.get_value(row, n)) for n in columns) for row in range(result.ntuples)])
        if result.status == Status.TUPLES_OK:
            yield Complete((result.command_status or b"").decode())

    def _copy_out(self) -> Iterator[Event]:
        while True:
            size, data = self._conn.get_copy_data(1)
            if size > 0:
                yield CopyData(bytes(data))
            elif size < 0:
                return
            else:
                try:
                    select.select([self._conn.socket], [], [])
                except KeyboardInterrupt:
                    self._cancel()
                self._conn.consume_input()

    def _copy_in(self, lines: Iterable[str]) -> Iterator[Event]:
        waiting: list[bytes] = []
        size = 0
        try:
            for line in lines:
                waiting.append(line.encode() + b"\n")
                size += len(waiting[-1])
                if size > COPY_BYTES:
                    self._put(b"".join(waiting))
                    waiting, size = [], 0
            self._put(b"".join(waiting))
        except KeyboardInterrupt:
            self._end_copy(b"canceled by the user")
        else:
            self._end_copy(None)
        yield from ()

    def _put(self, data: bytes) -> None:
        while data and not self._conn.put_copy_data(data):
            self._flush()
        self._flush()

    def _end_copy(self, error: bytes | None) -> None:
        while not self._conn.put_copy_end(error):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        """Send everything; read meanwhile, for the server may wait until its output is read."""
        conn = self._conn
        while conn.flush():
            readable, _, _ = select.select([conn.socket], [conn.socket], [])
            if readable:
                conn.consume_input()

    def _cancel(self) -> None:
        """Ask the server to cancel the statement."""
        request = self._conn.cancel_conn()
        try:
            request.start()
            _poll(request, request.poll)
        finally:
            request.finish()


def _poll(who: _WithSocket, poll: Callable[[], int]) -> None:
    """Drive a connection until it is established or has failed."""
    from psycopg.pq import PollingStatus

    while (status := poll()) in (PollingStatus.READING, PollingStatus.WRITING):
        place = [who.socket]
        reading = status == PollingStatus.READING
        select.select(place if reading else [], [] if reading else place, [])


def _text(value: bytes | None) -> str | None:
    return None if value is None else bytes(value).decode(errors="replace")


def _problem(result: PGresult) -> Problem:
    from psycopg.pq import DiagnosticField as Field

    def field(which: Field) -> str | None:
        return _text(result.error_field(which))

    position = field(Field.STATEMENT_POSITION)
    message = field(Field.MESSAGE_PRIMARY) or result.error_message.decode(errors="replace").strip()
    return Problem(
        field(Field.SEVERITY_NONLOCALIZED) or "FATAL",
        field(Field.SQLSTATE) or "08006",
        message or "the connection is lost",
        field(Field.MESSAGE_DETAIL),
        field(Field.MESSAGE_HINT),
        int(position) if position else None,
    )
