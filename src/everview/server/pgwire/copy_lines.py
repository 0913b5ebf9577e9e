"""Cuts the data of COPY … FROM STDIN into lines, as they come.

The first end of a line decides how lines end: a newline, a carriage return, or both. An end of line is data where the
format says so: after a backslash in text, inside of quotes in csv. What says so is a scanner, which looks at each
piece of a line once and tells whether the line goes on after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator

from everview.adapter.contract import CopyFormat
from everview.compute.sql.errors import SqlError

BAD_COPY = "22P04"
LINE_BYTES_MAX = 64 * 1024 * 1024

# Given a piece of a line and whether it starts inside of something open: whether it ends so.
Scanner = Callable[[bytes, bool], bool]

_END = re.compile(rb"[\r\n]")


def scanner(form: CopyFormat) -> Scanner:
    """The scanner of a format."""
    if form.kind == "text":
        return lambda piece, _: piece.endswith(b"\\") and (len(piece) - len(piece.rstrip(b"\\"))) % 2 == 1
    quote, escape = form.quote.encode(), form.escape.encode()
    if escape == quote:
        return lambda piece, inside: inside != (piece.count(quote) % 2 == 1)
    token = re.compile(re.escape(escape) + rb"?" + re.escape(quote) + rb"|" + re.escape(escape) * 2)

    def scan(piece: bytes, inside: bool) -> bool:
        for match in token.finditer(piece):
            # An escape counts only inside; outside, the quote after it opens.
            if match[0] == quote or (match[0] == escape + quote and not inside):
                inside = not inside
        return inside

    return scan


class Lines:
    """Takes bytes, gives lines without their ends. Every byte is looked at once, however long lines are."""

    def __init__(self, form: CopyFormat) -> None:
        self._scan = scanner(form)
        self._csv = form.kind == "csv"
        self.end: bytes | None = None  # of lines; others that read some of them say how these ended
        self._rest: list[bytes] = []  # since the last end of line
        self._pieces: list[bytes] = []  # of a line that an end of line is part of
        self._open = False
        self._held_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that are complete now."""
        self._rest.append(data)
        self._held_bytes += len(data)
        # The byte after a carriage return tells what that one was.
        if _END.search(data) or (len(self._rest) > 1 and self._rest[-2].endswith(b"\r")):
            buffer = b"".join(self._rest)
            if self.end is None:
                buffer = yield from self._first_line(buffer, final=False)
            if self.end is not None:
                buffer = yield from self._further_lines(buffer, self.end)
            self._rest = [buffer]
            self._held_bytes = len(buffer) + sum(map(len, self._pieces))
        if self._held_bytes > LINE_BYTES_MAX:
            raise SqlError("54000", f"a line of COPY data is longer than {LINE_BYTES_MAX} bytes")

    @property
    def between(self) -> bool:
        """Whether all that came was whole lines, of which the last byte is a newline."""
        return not self._held_bytes and not self._pieces and self.end != b"\r"

    def finish(self) -> Iterator[bytes]:
        """The rest, once nothing more comes; it may lack its end of line."""
        buffer = b"".join(self._rest)
        if self.end is None:
            buffer = yield from self._first_line(buffer, final=True)
            if self.end is not None:
                buffer = yield from self._further_lines(buffer, self.end)
        if buffer or self._pieces:
            yield self._checked(b"".join((*self._pieces, buffer)))

    def _first_line(self, buffer: bytes, *, final: bool) -> Generator[bytes, None, bytes]:
        """The first line, by which the end of lines becomes known; returns what follows."""
        while match := _END.search(buffer):
            at = match.start()
            if match[0] == b"\r" and at + 1 == len(buffer) and not final:
                break
            line = self._join(buffer[:at], match[0])
            if line is None:
                buffer = buffer[at + 1 :]
                continue
            self.end = b"\r\n" if buffer[at : at + 2] == b"\r\n" else match[0]
            buffer = buffer[at + len(self.end) :]
            yield self._checked(line)
            break
        return buffer

    def _further_lines(self, buffer: bytes, end: bytes) -> Generator[bytes, None, bytes]:
        *pieces, rest = buffer.split(end)
        for piece in pieces:
            line = self._join(piece, end)
            if line is not None:
                yield self._checked(line)
        return rest

    def _join(self, piece: bytes, end: bytes) -> bytes | None:
        """Give the line that ends with this piece. None if the end of line is part of the line's data."""
        self._open = self._scan(piece, self._open)
        if self._open:
            self._pieces += (piece, end)
            if not self._csv:
                self._open = False  # the backslash was for this end of line alone
            return None
        if not self._pieces:
            return piece
        line = b"".join((*self._pieces, piece))
        self._pieces.clear()
        return line

    def _checked(self, line: bytes) -> bytes:
        escaped = not self._csv and line.endswith(b"\r") and self._scan(line[:-1], False)
        if self.end == b"\n" and line.endswith(b"\r") and not escaped:
            raise SqlError(
                BAD_COPY,
                "unquoted carriage return found in data" if self._csv else "literal carriage return found in data",
                hint="lines end in one way, that of the first",
            )
        return line
