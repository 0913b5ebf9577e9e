"""Reads the fields of one message's body, in order; a body that is too short or too long is a protocol violation."""

from __future__ import annotations

import struct

from everview.compute.sql.strings import utf8
from everview.server.errors import ProtocolViolation

_INT16 = struct.Struct("!h")
_INT32 = struct.Struct("!i")


class MessageReader:
    """A body and the place up to which it was read."""

    __slots__ = ("_at", "_body")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def int16(self) -> int:
        return int(_INT16.unpack(self.take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self.take(4))[0])

    def uint32(self) -> int:
        """As OIDs are."""
        return self.int32() & 0xFFFFFFFF

    def byte(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> bytes:
        end = self._at + count
        if count < 0 or end > len(self._body):
            raise ProtocolViolation("insufficient data left in message")
        data = self._body[self._at : end]
        self._at = end
        return data

    def string(self) -> str:
        """A string, which a zero byte ends."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation("invalid string in message")
        data = self._body[self._at : end]
        self._at = end + 1
        return utf8(data)

    def value(self) -> bytes | None:
        """A length and so many bytes; the length -1 is NULL."""
        length = self.int32()
        return None if length == -1 else self.take(length)

    def count(self) -> int:
        """How many of something follow: up to 65,535, as PostgreSQL has it."""
        return self.int16() & 0xFFFF

    def rest(self) -> bytes:
        return self.take(len(self._body) - self._at)

    @property
    def left(self) -> int:
        return len(self._body) - self._at

    def end(self) -> None:
        """Nothing may be left."""
        if self._at != len(self._body):
            raise ProtocolViolation("invalid message format", detail=f"{self.left} bytes are left at its end")
