"""Sends the results of statements: rows, and COPY in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import pyarrow as pa

from everview.adapter.contract import Column, CopyIn, CopyOut, Done, Prepared, Row, Rows, Session, Value
from everview.adapter.errors import QUERY_CANCELED
from everview.adapter.results import Batch, batches_of, part_of, size_of
from everview.compute.rows.tables import rows_of_table
from everview.compute.sql.errors import SqlError
from everview.server.errors import ClientGone, ProtocolViolation
from everview.server.pgwire import backend, copy, frontend
from everview.server.pgwire.columns.messages import Forms, data_rows, pieces
from everview.server.pgwire.values import row_encoder
from everview.server.pgwire.wire import Wire

TABLE_ROWS_MIN = 50  # fewer are written quicker as rows


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of sending rows: how many went out, and whether those were all."""

    rows: int
    ended: bool


class RowStream:
    """A result on its way out. It remembers where a limit stopped it, and goes on from there.

    Rows come in batches: sequences of rows, or tables, of which many rows are written at once.
    """

    def __init__(self, rows: Rows, forms: Forms, wire: Wire, tell: Callable[[], None]) -> None:
        self.rows = rows
        self._forms = forms
        self._wire = wire
        self._tell = tell
        self._batches: Iterator[Batch] = iter(batches_of(rows))
        self._batch: Batch = ()
        self._at = 0
        self._ended = False

    def send(self, rows_max: int = 0, check: Callable[[], None] = lambda: None) -> Outcome:
        """Send up to so many rows, or all of them if it is 0. `check` raises between batches if it is to end."""
        sent = 0
        while not (rows_max and sent == rows_max):
            if self._at == size_of(self._batch) and not self._fetch(check):
                return Outcome(sent, ended=True)
            left = size_of(self._batch) - self._at
            part = part_of(self._batch, self._at, min(left, rows_max - sent) if rows_max else left)
            if isinstance(part, pa.Table):
                self._send_table(part, check)
            else:
                send, encode = self._wire.send, self._forms.row
                for row in part:
                    send(encode(row))
            sent += size_of(part)
            self._at += size_of(part)
        return Outcome(sent, ended=False)

    def _send_table(self, table: pa.Table, check: Callable[[], None]) -> None:
        encode = self._forms.table
        if encode is None or table.num_rows < TABLE_ROWS_MIN:
            for row in rows_of_table(table, [column.type for column in self.columns]):
                self._wire.send(self._forms.row(row))
            return
        for piece in pieces(table):
            self._wire.check()
            check()
            self._wire.send(encode(piece))

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the rows have."""
        return self.rows.columns

    def take(self, rows_max: int) -> list[Row]:
        """The next rows, which are not sent: FETCH and MOVE speak of a portal as of a cursor."""
        found: list[Row] = []
        while len(found) < rows_max and (self._at < size_of(self._batch) or self._fetch()):
            part = part_of(self._batch, self._at, rows_max - len(found))
            self._at += size_of(part)
            types = [column.type for column in self.columns]
            found += rows_of_table(part, types) if isinstance(part, pa.Table) else part
        return found

    def _fetch(self, check: Callable[[], None] = lambda: None) -> bool:
        """Get the next batch. False at the end of the rows."""
        if self._ended:
            return False
        self._wire.check()
        check()
        batch = next(self._batches, None)
        if batch is None:
            self._ended = True
            self.rows.close()
            return False
        if not size_of(batch):
            self._tell()
            self._wire.flush()
        self._batch, self._at = batch, 0
        return True

    def close(self) -> None:
        """Take no more."""
        self._ended = True
        self._batch, self._at = (), 0
        self._batches = iter(())
        self.rows.close()


def run(
    session: Session, prepared: Prepared, values: Sequence[Value], wire: Wire, tell: Callable[[], None]
) -> Rows | Done:
    """Run a statement, with the data of a COPY FROM. Only rows are left to be sent."""
    result = session.run(prepared, values)
    if isinstance(result, Done):
        return result
    if isinstance(result, CopyOut):
        with session.sending() as check:
            return Done(copy_out(result, wire, tell, check))
    # CopyIn and Rows are protocols, told apart by what they can do.
    if hasattr(result, "finish"):
        return Done(copy_in(cast(CopyIn, result), wire))
    return result


def result_stream(rows: Rows, formats: Sequence[int], wire: Wire, tell: Callable[[], None]) -> RowStream:
    """A result as DataRows."""
    return RowStream(rows, Forms(row_encoder(rows.columns, formats), data_rows(rows.columns, formats)), wire, tell)


def copy_out(result: CopyOut, wire: Wire, tell: Callable[[], None], check: Callable[[], None]) -> str:
    """Send all of COPY … TO STDOUT; gives the tag."""
    columns: tuple[Column, ...] = result.rows.columns
    stream = RowStream(result.rows, copy.forms(columns, result.format), wire, tell)
    try:
        wire.send(backend.copy_out_response(len(columns), binary=result.format.kind == "binary"))
        header = copy.header(columns, result.format)
        if header:
            wire.send(header)
        outcome = stream.send(check=check)
        trailer = copy.trailer(result.format, outcome.rows)
        if trailer:
            wire.send(trailer)
        wire.send(backend.COPY_DONE)
        return f"COPY {outcome.rows}"
    finally:
        stream.close()


def copy_in(result: CopyIn, wire: Wire) -> str:
    """Take the data of COPY … FROM STDIN and store them; gives the tag."""
    wire.send(backend.copy_in_response(len(result.columns), binary=result.format.kind == "binary"))
    wire.flush()
    source = _CopySource(wire)
    tag = result.finish(copy.read_rows(source.chunks(), result.columns, result.format))
    source.drain()
    return tag


@dataclass(slots=True)
class _CopySource:
    """The data that a client sends, until it says that these were all."""

    wire: Wire
    done: bool = field(default=False)

    def chunks(self) -> Iterator[bytes]:
        while not self.done:
            kind, body = self.wire.receive()
            if kind == frontend.COPY_DATA:
                yield body
            elif kind == frontend.COPY_DONE:
                self.done = True
            elif kind == frontend.COPY_FAIL:
                self.done = True
                message = frontend.decode(kind, body)
                assert isinstance(message, frontend.CopyFail)
                raise SqlError(QUERY_CANCELED, f"COPY from stdin failed: {message.message}")
            elif kind == frontend.TERMINATE:
                raise ClientGone
            elif kind not in (
                frontend.FLUSH,
                frontend.SYNC,
            ):  # clients that do not know yet that it is a COPY send these
                raise ProtocolViolation(f"unexpected message type 0x{kind:02X} during COPY from stdin")

    def drain(self) -> None:
        """What comes behind the data's own end mark does not count."""
        for _ in self.chunks():
            pass
