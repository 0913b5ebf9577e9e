"""COPY data in PostgreSQL's binary format: a header, rows of values as Bind and DataRow carry them, a trailer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence

from everview.adapter.contract import Column, Row
from everview.compute.functions.contract import Failure
from everview.compute.sql.errors import SqlError
from everview.server.pgwire import copy_lines
from everview.server.pgwire.backend import NULL
from everview.server.pgwire.copy_lines import BAD_COPY
from everview.server.pgwire.oids import wire_parameter
from everview.server.pgwire.values import BINARY, decoder, encoder

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
HEADER = SIGNATURE + bytes(8)  # no flags, and an extension of no bytes
TOO_LONG = "54000"
TRAILER = b"\xff\xff"
HEADER_BYTES = len(HEADER)  # without an extension
_COUNT, _SIZE, _FLAGS = struct.Struct("!h"), struct.Struct("!i"), struct.Struct("!Ii")
_CRITICAL = 0xFFFF_0000  # flags that must be understood; the one that there was said that rows have OIDs
_NULL_SIZE = -1

# Called with an error and the number of the column it is about, if it is about one.
Explain = Callable[[SqlError | Failure, int | None], SqlError]


def joiner(columns: Sequence[Column]) -> Callable[[Row], bytes]:
    """What writes a row."""
    encoders = [encoder(column.type, BINARY) for column in columns]
    count = _COUNT.pack(len(encoders))

    def join(row: Row) -> bytes:
        parts = [count]
        for value, encode in zip(row, encoders, strict=True):
            if value is None:
                parts.append(NULL)
            else:
                data = encode(value)
                parts += (_SIZE.pack(len(data)), data)
        return b"".join(parts)

    return join


class BinaryRows:
    """Takes the bytes of COPY data as they come, gives rows; more than a row is never held."""

    def __init__(self, columns: Sequence[Column], explain: Explain) -> None:
        self._decoders = [decoder(wire_parameter(0, column.type), BINARY) for column in columns]
        self._explain = explain
        self._held = bytearray()
        self._at = 0
        self._begun = self.ended = False

    def feed(self, data: bytes) -> Iterator[Row]:
        """The rows that are complete now."""
        del self._held[: self._at]
        self._at = 0
        self._held += data
        while not self.ended:
            found = self._guarded()
            if found is None:
                break
            yield found
        if self.ended and self._at < len(self._held):
            raise self._bad("received copy data after EOF marker")
        if len(self._held) - self._at > copy_lines.LINE_BYTES_MAX:
            raise self._too_long()

    @property
    def begun(self) -> bool:
        """Whether the header was read."""
        return self._begun

    @property
    def between(self) -> bool:
        """Whether the next byte begins a row, so that others may read on from here."""
        return self._begun and not self.ended and self._at == len(self._held)

    def finish(self) -> None:
        """There is nothing more to come."""
        if not self._begun:
            raise self._bad("COPY file signature not recognized")
        if not self.ended and self._at < len(self._held):
            raise self._bad("unexpected EOF in COPY data")

    def _guarded(self) -> Row | None:
        if not self._begun and not self._header():
            return None
        return self._row()

    def _header(self) -> bool:
        """Whether there is all of the header, which is taken."""
        held, length = self._held, len(SIGNATURE)
        if not held.startswith(SIGNATURE[: len(held)]):
            raise self._bad("COPY file signature not recognized")
        if len(held) < length + _FLAGS.size:
            return False
        flags, extension = _FLAGS.unpack_from(held, length)
        if flags & _CRITICAL:
            raise self._bad("unrecognized critical flags in COPY file header")
        if not 0 <= extension <= copy_lines.LINE_BYTES_MAX:
            raise self._bad("invalid COPY file header (missing length)")
        if len(held) < length + _FLAGS.size + extension:
            return False
        self._at = length + _FLAGS.size + extension
        self._begun = True
        return True

    def _row(self) -> Row | None:
        """The next row if all of it is here."""
        held, at = self._held, self._at
        if len(held) < at + _COUNT.size:
            return None
        (count,) = _COUNT.unpack_from(held, at)
        if count == -1:
            self.ended = True
            self._at += _COUNT.size
            return None
        if count != len(self._decoders):
            raise self._bad(f"row field count is {count}, expected {len(self._decoders)}")
        at += _COUNT.size
        spans: list[tuple[int, int]] = []  # of values; nothing is copied before all of the row is here
        for index in range(count):
            if len(held) < at + _SIZE.size:
                return None
            (size,) = _SIZE.unpack_from(held, at)
            if size < _NULL_SIZE:
                raise self._bad("invalid field size", index)
            at += _SIZE.size
            spans.append((at, size))
            at += max(0, size)
            if at - self._at > copy_lines.LINE_BYTES_MAX:
                raise self._too_long()
        if len(held) < at:
            return None
        self._at = at
        return tuple(self._value(index, start, size) for index, (start, size) in enumerate(spans))

    def _value(self, index: int, start: int, size: int) -> object:
        if size == _NULL_SIZE:
            return None
        try:
            return self._decoders[index](bytes(self._held[start : start + size]))
        except (Failure, SqlError) as error:
            raise self._explain(error, index) from None

    def _too_long(self) -> SqlError:
        message = f"a row of COPY data has more than {copy_lines.LINE_BYTES_MAX:,} bytes"
        return self._explain(SqlError(TOO_LONG, message), None)

    def _bad(self, message: str, column: int | None = None) -> SqlError:
        return self._explain(SqlError(BAD_COPY, message), column)
