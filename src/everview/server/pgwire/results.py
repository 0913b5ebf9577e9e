"""Sends the results of statements: rows, and COPY in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from everview.adapter.contract import Column, CopyIn, CopyOut, Done, Prepared, Row, Rows, Session, Value
from everview.adapter.errors import QUERY_CANCELED
from everview.compute.sql.errors import SqlError
from everview.server.errors import ClientGone, ProtocolViolation
from everview.server.pgwire import backend, copy, frontend
from everview.server.pgwire.values import row_encoder
from everview.server.pgwire.wire import Wire


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of sending rows: how many went out, and whether those were all."""

    rows: int
    ended: bool


class RowStream:
    """A result on its way out. It remembers where a limit stopped it, and goes on from there."""

    def __init__(self, rows: Rows, encode: Callable[[Row], bytes], wire: Wire, tell: Callable[[], None]) -> None:
        self.rows = rows
        self._encode = encode
        self._wire = wire
        self._tell = tell
        self._batches: Iterator[Sequence[Row]] = iter(rows.batches())
        self._batch: Sequence[Row] = ()
        self._at = 0
        self._ended = False

    def send(self, rows_max: int = 0) -> Outcome:
        """Send up to so many rows, or all of them if it is 0."""
        sent = 0
        while not (rows_max and sent == rows_max):
            if self._at == len(self._batch) and not self._fetch():
                return Outcome(sent, ended=True)
            end = min(len(self._batch), self._at + rows_max - sent) if rows_max else len(self._batch)
            send, encode = self._wire.send, self._encode
            for row in self._batch[self._at : end] if (self._at, end) != (0, len(self._batch)) else self._batch:
                send(encode(row))
            sent += end - self._at
            self._at = end
        return Outcome(sent, ended=False)

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the rows have."""
        return self.rows.columns

    def take(self, rows_max: int) -> list[Row]:
        """The next rows, which are not sent: FETCH and MOVE speak of a portal as of a cursor."""
        found: list[Row] = []
        while len(found) < rows_max and (self._at < len(self._batch) or self._fetch()):
            end = min(len(self._batch), self._at + rows_max - len(found))
            found += self._batch[self._at : end]
            self._at = end
        return found

    def _fetch(self) -> bool:
        """Get the next batch. False at the end of the rows."""
        if self._ended:
            return False
        self._wire.check()
        batch = next(self._batches, None)
        if batch is None:
            self._ended = True
            self.rows.close()
            return False
        if not batch:
            self._tell()
            self._wire.flush()
        self._batch, self._at = batch, 0
        return True

    def close(self) -> None:
        """Take no more."""
        self._ended = True
        self._batch, self._at = (), 0
        self.rows.close()


def run(
    session: Session, prepared: Prepared, values: Sequence[Value], wire: Wire, tell: Callable[[], None]
) -> Rows | Done:
    """Run a statement, with the data of a COPY FROM. Only rows are left to be sent."""
    result = session.run(prepared, values)
    if isinstance(result, Done):
        return result
    if isinstance(result, CopyOut):
        return Done(copy_out(result, wire, tell))
    # CopyIn and Rows are protocols, told apart by what they can do.
    if hasattr(result, "finish"):
        return Done(copy_in(cast(CopyIn, result), wire))
    return result


def result_stream(rows: Rows, formats: Sequence[int], wire: Wire, tell: Callable[[], None]) -> RowStream:
    """A result as DataRows."""
    return RowStream(rows, row_encoder(rows.columns, formats), wire, tell)


def copy_out(result: CopyOut, wire: Wire, tell: Callable[[], None]) -> str:
    """Send all of COPY … TO STDOUT; gives the tag."""
    columns: tuple[Column, ...] = result.rows.columns
    stream = RowStream(result.rows, copy.row_encoder(columns, result.format), wire, tell)
    try:
        wire.send(backend.copy_out_response(len(columns), binary=result.format.kind == "binary"))
        header = copy.header(columns, result.format)
        if header:
            wire.send(header)
        outcome = stream.send()
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
