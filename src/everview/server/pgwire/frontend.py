"""What clients send once they are in: one class for each message, and how its body is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from everview.server.errors import ProtocolViolation
from everview.server.pgwire.message_reader import MessageReader

QUERY, PARSE, BIND, DESCRIBE, EXECUTE, CLOSE = (ord(letter) for letter in "QPBDEC")
FLUSH, SYNC, TERMINATE, FUNCTION_CALL, PASSWORD = (ord(letter) for letter in "HSXFp")
COPY_DATA, COPY_DONE, COPY_FAIL = (ord(letter) for letter in "dcf")
COPYING = (COPY_DATA, COPY_DONE, COPY_FAIL)


class Query(NamedTuple):
    """Run all statements of a text."""

    text: str


class Parse(NamedTuple):
    """Prepare one statement; `types` are OIDs, 0 where the client leaves it to us."""

    name: str
    text: str
    types: tuple[int, ...]


class Bind(NamedTuple):
    """Make a portal of a prepared statement and values."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


class Describe(NamedTuple):
    """Say what a statement ("S") or portal ("P") takes and gives."""

    kind: str
    name: str


class Execute(NamedTuple):
    """Run a portal, for so many rows at most; 0 is all."""

    portal: str
    rows_max: int


class Close(NamedTuple):
    """Forget a statement ("S") or portal ("P")."""

    kind: str
    name: str


class Flush(NamedTuple):
    """Send what is ready."""


class Sync(NamedTuple):
    """End the implicit transaction, and say where the session stands."""


class FunctionCall(NamedTuple):
    """The old way to call functions."""


class CopyFail(NamedTuple):
    """The client gives COPY up."""

    message: str


Message: TypeAlias = Query | Parse | Bind | Describe | Execute | Close | Flush | Sync | FunctionCall | CopyFail


def decode(kind: int, body: bytes) -> Message:
    """The message of a kind with a body; ProtocolViolation if the body is not what it should be."""
    reader = MessageReader(body)
    message = _DECODERS[kind](reader)
    reader.end()
    return message


def _parse(reader: MessageReader) -> Parse:
    name, text = reader.string(), reader.string()
    return Parse(name, text, tuple(reader.uint32() for _ in range(reader.count())))


def _bind(reader: MessageReader) -> Bind:
    portal, statement = reader.string(), reader.string()
    formats = tuple(_format(reader) for _ in range(reader.count()))
    values = tuple(reader.value() for _ in range(reader.count()))
    return Bind(portal, statement, formats, values, tuple(_format(reader) for _ in range(reader.count())))


def _format(reader: MessageReader) -> int:
    code = reader.int16()
    if code not in (0, 1):
        raise ProtocolViolation(f"unsupported format code: {code}")
    return code


def _target(reader: MessageReader) -> tuple[str, str]:
    kind = chr(reader.byte())
    if kind not in "SP":
        raise ProtocolViolation(f"invalid message subtype {ord(kind)}", detail="it is S or P")
    return kind, reader.string()


def _function_call(reader: MessageReader) -> FunctionCall:
    reader.rest()
    return FunctionCall()


_DECODERS: dict[int, Callable[[MessageReader], Message]] = {
    QUERY: lambda reader: Query(reader.string()),
    PARSE: _parse,
    BIND: _bind,
    DESCRIBE: lambda reader: Describe(*_target(reader)),
    EXECUTE: lambda reader: Execute(reader.string(), max(reader.int32(), 0)),
    CLOSE: lambda reader: Close(*_target(reader)),
    FLUSH: lambda _: Flush(),
    SYNC: lambda _: Sync(),
    FUNCTION_CALL: _function_call,
    COPY_FAIL: lambda reader: CopyFail(reader.string()),
}
