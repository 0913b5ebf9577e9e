"""A client that says exactly what it is told to, on a socket or in memory: for what no driver would do."""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from everview.server.addresses import Address
from everview.server.pgwire.framing import Frame


class Message(NamedTuple):
    """What the server said."""

    kind: str
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        """Of an error or notice, its fields by letter."""
        parts = self.body.rstrip(b"\0").split(b"\0")
        return {part[:1].decode(): part[1:].decode() for part in parts}


def message(kind: str, body: bytes = b"") -> bytes:
    return kind.encode() + struct.pack("!i", len(body) + 4) + body


def string(text: str) -> bytes:
    return text.encode() + b"\0"


def startup(minor: int = 0, major: int = 3, /, **settings: str) -> bytes:
    body = struct.pack("!i", major << 16 | minor)
    for name, value in ({"user": "everview"} | settings).items():
        body += string(name) + string(value)
    return packet(body + b"\0")


def packet(body: bytes) -> bytes:
    return struct.pack("!i", len(body) + 4) + body


def query(text: str) -> bytes:
    return message("Q", string(text))


def parse(text: str, name: str = "", types: Iterable[int] = ()) -> bytes:
    oids = list(types)
    return message("P", string(name) + string(text) + struct.pack(f"!h{len(oids)}I", len(oids), *oids))


def bind(
    *values: bytes | None,
    portal: str = "",
    statement: str = "",
    formats: Iterable[int] = (),
    results: Iterable[int] = (),
) -> bytes:
    codes, wanted = list(formats), list(results)
    body = string(portal) + string(statement) + struct.pack(f"!h{len(codes)}h", len(codes), *codes)
    body += struct.pack("!h", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return message("B", body + struct.pack(f"!h{len(wanted)}h", len(wanted), *wanted))


def describe(kind: str, name: str = "") -> bytes:
    return message("D", kind.encode() + string(name))


def execute(rows_max: int = 0, portal: str = "") -> bytes:
    return message("E", string(portal) + struct.pack("!i", rows_max))


def close(kind: str, name: str = "") -> bytes:
    return message("C", kind.encode() + string(name))


SYNC, FLUSH, TERMINATE, COPY_DONE = message("S"), message("H"), message("X"), message("c")
SSL_REQUEST = packet(struct.pack("!i", 80877103))
GSS_REQUEST = packet(struct.pack("!i", 80877104))


def cancel_request(process: int, secret: bytes) -> bytes:
    return packet(struct.pack("!ii", 80877102, process) + secret)


def copy_data(data: bytes) -> bytes:
    return message("d", data)


def frames(data: bytes) -> list[Frame]:
    """The messages of a client's bytes."""
    found = []
    while data:
        (length,) = struct.unpack_from("!i", data, 1)
        found.append(Frame(data[0], data[5 : length + 1]))
        data = data[length + 1 :]
    return found


def messages(data: bytes) -> list[Message]:
    """The messages of the server's bytes."""
    return [Message(chr(kind), body) for kind, body in frames(data)]


class RawClient:
    """A socket, and what has come on it."""

    def __init__(self, address: Address, timeout_s: float = 20.0) -> None:
        self.socket = socket.create_connection((address.host, address.port), timeout=timeout_s)
        self._buffer = b""

    def send(self, *data: bytes) -> None:
        self.socket.sendall(b"".join(data))

    def read(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self._buffer += data
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data

    def receive(self) -> Message:
        kind, length = struct.unpack("!ci", self.read(5))
        return Message(kind.decode(), self.read(length - 4))

    def until(self, kind: str) -> list[Message]:
        """All messages up to the next of a kind."""
        found = [self.receive()]
        while found[-1].kind != kind:
            found.append(self.receive())
        return found

    def rest(self) -> list[Message]:
        """All messages until the server closes the connection, which closes it here as well."""
        found = []
        try:
            while True:
                found.append(self.receive())
        except (EOFError, ConnectionResetError):
            self.close()
            return found

    def enter(self, **settings: str) -> list[Message]:
        self.send(startup(**settings))
        return self.until("Z")

    def ask(self, *data: bytes) -> list[Message]:
        self.send(*data)
        return self.until("Z")

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def kinds(found: Iterable[Message]) -> str:
    """The kinds of messages, one letter each."""
    return "".join(each.kind for each in found)


class ListWire:
    """A wire for conversations without a socket: messages to come, and what was sent."""

    def __init__(self, coming: Iterable[Frame] = ()) -> None:
        self.coming = deque(coming)
        self.sent = b""
        self.flushed = 0

    def send(self, data: bytes) -> None:
        self.sent += data

    def flush(self) -> None:
        self.flushed = len(self.sent)

    def end_cycle(self) -> None:
        self.flush()

    def receive(self) -> Frame:
        return self.coming.popleft()

    def next_kind(self, passing: Sequence[int] = ()) -> int | None:
        return None

    def check(self) -> None:
        pass


class NeverCanceled:
    """Nothing is ever canceled."""

    def begin(self) -> None:
        pass

    def finish(self) -> str | None:
        return None
