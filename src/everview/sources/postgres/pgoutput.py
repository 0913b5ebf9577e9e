"""The messages of logical replication, decoded: those of the stream, and those of the plugin pgoutput within it.

Nothing here does I/O. A value is the bytes of its text, None for NULL, or `UNCHANGED` where the server left out a long
value that an update did not touch. What is not understood is an error: nothing is passed over.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from everview.sources.postgres.errors import SourceLost

PG_EPOCH_US = 946_684_800_000_000  # 2000-01-01 in microseconds since 1970


class Unchanged(Enum):
    """What stands for a value that was not sent."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Value: TypeAlias = bytes | Unchanged | None
Tuple: TypeAlias = list[Value]

_XLOG = struct.Struct("!QQq")
_KEEPALIVE = struct.Struct("!QqB")
_STATUS = struct.Struct("!cQQQqB")
_BEGIN = struct.Struct("!QqI")
_COMMIT = struct.Struct("!BQQq")
_OID, _SHORT = struct.Struct("!I"), struct.Struct("!H")
_COLUMN = struct.Struct("!Ii")


@dataclass(frozen=True, slots=True)
class Keepalive:
    """The server's position, and whether it wants an answer."""

    end: int
    answer: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """A message of the plugin, and how far the server's log went when it was sent."""

    end: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins: the position of its commit, and when that was, in microseconds since 1970."""

    final: int
    at_us: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction ends: where it was committed, and where the log goes on behind it."""

    at: int
    end: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a table as the stream knows it."""

    name: str
    type_oid: int
    modifier: int
    key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, told before its first change and whenever it is another; `identity` is d, n, f or i."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(slots=True)
class Insert:
    """A new row."""

    oid: int
    new: Tuple


@dataclass(slots=True)
class Update:
    """Another row in the place of one: by its `old` key, if that changed, or the whole old row (`whole`)."""

    oid: int
    old: Tuple | None
    new: Tuple
    whole: bool


@dataclass(slots=True)
class Delete:
    """A row that is gone: its key, or the whole of it."""

    oid: int
    old: Tuple
    whole: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    """All rows of some tables are gone."""

    oids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Passed:
    """What says nothing about rows: origins, types, logical messages."""


Message: TypeAlias = Begin | Commit | Relation | Insert | Update | Delete | Truncate | Passed
_PASSED = Passed()


def framed(data: bytes) -> Keepalive | Piece:
    """A message of the replication stream."""
    try:
        if data[:1] == b"w":
            _, end, _ = _XLOG.unpack_from(data, 1)
            return Piece(end, data[25:])
        if data[:1] == b"k":
            end, _, answer = _KEEPALIVE.unpack_from(data, 1)
            return Keepalive(end, bool(answer))
    except struct.error:
        pass
    raise _unknown("the stream", data)


def status(position: int, now_us: int, *, answer: bool = False) -> bytes:
    """Tell the server that everything before a position is durable here."""
    return _STATUS.pack(b"r", position, position, position, now_us - PG_EPOCH_US, answer)


def decoded(data: bytes) -> Message:
    """A message of the plugin, of version 1 of its protocol."""
    try:
        return _decoded(data)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError):
        raise _unknown("pgoutput", data) from None


def _decoded(data: bytes) -> Message:
    kind = data[:1]
    if kind == b"I":
        new, at = _tuple(data, 6)
        found: Message = Insert(_expected(data, 5, b"N"), new)
    elif kind == b"U":
        oid, old, at = _oid(data), None, 5
        mark = data[at : at + 1]
        if mark in (b"K", b"O"):
            old, at = _tuple(data, at + 1)
        _expected(data, at, b"N")
        new, at = _tuple(data, at + 1)
        found = Update(oid, old, new, mark == b"O")
    elif kind == b"D":
        mark = data[5:6]
        if mark not in (b"K", b"O"):
            raise ValueError(mark)
        gone, at = _tuple(data, 6)
        found = Delete(_oid(data), gone, mark == b"O")
    elif kind == b"B":
        final, moment, _ = _BEGIN.unpack_from(data, 1)
        return Begin(final, moment + PG_EPOCH_US)
    elif kind == b"C":
        _, at, end, _ = _COMMIT.unpack_from(data, 1)
        return Commit(at, end)
    elif kind == b"R":
        return _relation(data)
    elif kind == b"T":
        (count,) = _OID.unpack_from(data, 1)
        return Truncate(struct.unpack_from(f"!{count}I", data, 6))  # behind the options, which say CASCADE
    elif kind in (b"O", b"Y", b"M"):
        return _PASSED
    else:
        raise ValueError(kind)
    if at != len(data):
        raise ValueError(at)
    return found


def _oid(data: bytes) -> int:
    found: int = _OID.unpack_from(data, 1)[0]
    return found


def _expected(data: bytes, at: int, mark: bytes) -> int:
    """The table of a message that has this mark there."""
    if data[at : at + 1] != mark:
        raise ValueError(mark)
    return _oid(data)


def _tuple(data: bytes, at: int) -> tuple[Tuple, int]:
    """The values of a row, and where they end."""
    (count,) = _SHORT.unpack_from(data, at)
    at += 2
    values: Tuple = []
    take, length_at = values.append, _OID.unpack_from
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == 116:  # t
            (length,) = length_at(data, at)
            at += 4
            end = at + length
            if end > len(data):
                raise ValueError(length)
            take(data[at:end])
            at = end
        elif kind == 110:  # n
            take(None)
        elif kind == 117:  # u
            take(UNCHANGED)
        else:
            raise ValueError(kind)
    return values, at


def _relation(data: bytes) -> Relation:
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _SHORT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        key = bool(data[at] & 1)
        column, at = _text(data, at + 1)
        type_oid, modifier = _COLUMN.unpack_from(data, at)
        at += 8
        columns.append(RelationColumn(column, type_oid, modifier, key))
    if at != len(data):
        raise ValueError(at)
    return Relation(_oid(data), schema or "pg_catalog", name, identity, tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


def _unknown(where: str, data: bytes) -> SourceLost:
    shown = data[:40].hex(" ")
    return SourceLost(f"a message of {where} is not understood", detail=f"it begins with {shown}")


def lsn_of(text: str) -> int:
    """A position in the server's log from its text."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def shown_lsn(position: int) -> str:
    """A position as PostgreSQL writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
