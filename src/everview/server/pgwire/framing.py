"""Cuts the stream of a client's bytes into messages, as they come, and refuses messages that are too long to wait for.

After a wrong length or type nobody knows where the next message starts, so such an error ends the connection.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from everview.adapter.errors import PROTOCOL_VIOLATION
from everview.server.errors import ConnectionEnd
from everview.server.pgwire import frontend

_HEADER = struct.Struct("!Bi")

HEADER_BYTES = _HEADER.size

# Messages that hold a few names or nothing at all.
SMALL_BYTES_MAX = 10_000
AUTH_BYTES_MAX = 16_384
MESSAGE_BYTES_MAX = 64 * 1024 * 1024


class Frame(NamedTuple):
    """A message as it came."""

    kind: int
    body: bytes


def session_limits(message_bytes_max: int) -> dict[int, int]:
    """The messages of a session, and how long each may be."""
    large = dict.fromkeys(
        (frontend.QUERY, frontend.PARSE, frontend.BIND, frontend.COPY_DATA, frontend.FUNCTION_CALL), message_bytes_max
    )
    small = dict.fromkeys(
        (
            *(frontend.DESCRIBE, frontend.EXECUTE, frontend.CLOSE, frontend.FLUSH, frontend.SYNC),
            *(frontend.TERMINATE, frontend.COPY_DONE, frontend.COPY_FAIL),
        ),
        min(SMALL_BYTES_MAX, message_bytes_max),
    )
    return large | small


AUTH_LIMITS = {frontend.PASSWORD: AUTH_BYTES_MAX, frontend.TERMINATE: SMALL_BYTES_MAX}


class Buffered:
    """Takes bytes as they come."""

    def __init__(self, data: bytes = b"") -> None:
        self._buffer = bytearray(data)

    def feed(self, data: bytes) -> None:
        self._buffer += data

    @property
    def rest(self) -> bytes:
        """The bytes that were not taken out yet."""
        return bytes(self._buffer)

    @property
    def held(self) -> int:
        """How many these are."""
        return len(self._buffer)


class Framer(Buffered):
    """Takes bytes, gives messages. It never holds more than one message that is not complete yet."""

    def __init__(self, limits: Mapping[int, int], data: bytes = b"") -> None:
        super().__init__(data)
        self._limits = limits

    def next(self) -> Frame | None:
        """The next complete message; ConnectionEnd if what comes cannot be one."""
        if len(self._buffer) < _HEADER.size:
            if self._buffer:
                self._limit(self._buffer[0])
            return None
        kind, length = _HEADER.unpack_from(self._buffer)
        limit = self._limit(kind)
        if length < 4 or length - 4 > limit:
            raise ConnectionEnd(
                PROTOCOL_VIOLATION,
                f"invalid message length {length}",
                detail=f"a message of type {chr(kind)!r} has 4 to {limit + 4} bytes",
            )
        end = length + 1
        if len(self._buffer) < end:
            return None
        body = bytes(memoryview(self._buffer)[_HEADER.size : end])
        del self._buffer[:end]
        return Frame(kind, body)

    def _limit(self, kind: int) -> int:
        limit = self._limits.get(kind)
        if limit is None:
            raise ConnectionEnd(PROTOCOL_VIOLATION, f"invalid frontend message type {kind}")
        return limit
