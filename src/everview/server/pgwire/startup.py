"""The packets before a session: they have no type byte, and say what the connection is for.

Protocol 3.0 and 3.2 are spoken; 3.2 differs in the length of cancel keys. A client that asks for a later 3.x, or for
protocol options, is told what it gets instead.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TypeAlias

from everview.adapter.errors import INVALID_AUTHORIZATION, PROTOCOL_VIOLATION
from everview.compute.sql.errors import FEATURE_NOT_SUPPORTED, SqlError
from everview.server.errors import ConnectionEnd
from everview.server.pgwire.framing import Buffered
from everview.server.pgwire.message_reader import MessageReader

PACKET_BYTES_MAX = 10_000
LATEST_MINOR = 2
LONG_KEYS_MINOR = 2
DEFAULT_DATABASE = "everview"

_CANCEL, _SSL, _GSS = (1234 << 16 | low for low in (5678, 5679, 5680))
_KEY_BYTES_MAX = 256
_UTF8 = ("utf8", "utf-8", "unicode")


@dataclass(frozen=True, slots=True)
class SslRequest:
    """May we speak TLS?"""


@dataclass(frozen=True, slots=True)
class GssRequest:
    """May we speak GSSAPI encryption? Never."""


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """End what runs in another connection."""

    process: int
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Startup:
    """A session is wanted. `minor` is the protocol's, as negotiated; `asked` as asked for."""

    user: str
    database: str
    settings: dict[str, str]
    minor: int
    asked: int
    unknown_options: tuple[str, ...]

    @property
    def negotiated(self) -> bool:
        """Whether the client must be told that it does not get all that it asked for."""
        return self.asked != self.minor or bool(self.unknown_options)


Packet: TypeAlias = SslRequest | GssRequest | CancelRequest | Startup


class PacketReader(Buffered):
    """Takes bytes, gives packets."""

    def next(self) -> Packet | None:
        """The next packet; ConnectionEnd if what comes cannot be one."""
        if len(self._buffer) < 4:
            return None
        (length,) = struct.unpack_from("!i", self._buffer)
        if not 8 <= length <= PACKET_BYTES_MAX:
            raise ConnectionEnd(PROTOCOL_VIOLATION, "invalid length of startup packet")
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[4:length])
        del self._buffer[:length]
        try:
            return _packet(body)
        except ConnectionEnd:
            raise
        except SqlError as error:
            raise ConnectionEnd(error.sqlstate, "invalid startup packet layout", detail=error.message) from None


def _packet(body: bytes) -> Packet:
    reader = MessageReader(body)
    code = reader.uint32()
    if code == _SSL:
        reader.end()
        return SslRequest()
    if code == _GSS:
        reader.end()
        return GssRequest()
    if code == _CANCEL:
        process = reader.int32()
        if not 4 <= reader.left <= _KEY_BYTES_MAX:
            raise ConnectionEnd(PROTOCOL_VIOLATION, "invalid length of cancel key")
        return CancelRequest(process, reader.rest())
    major, minor = divmod(code, 1 << 16)
    if major != 3:
        raise ConnectionEnd(
            FEATURE_NOT_SUPPORTED,
            f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{LATEST_MINOR}",
        )
    return _startup(reader, minor)


def _startup(reader: MessageReader, asked: int) -> Startup:
    settings: dict[str, str] = {}
    unknown = []
    while name := reader.string():
        value = reader.string()
        if name.startswith("_pq_."):
            unknown.append(name)
        else:
            settings[name] = value
    reader.end()
    user = settings.pop("user", "")
    if not user:
        raise ConnectionEnd(INVALID_AUTHORIZATION, "no user name specified in startup packet")
    database = settings.pop("database", "") or DEFAULT_DATABASE
    if settings.pop("replication", "false").lower() not in ("false", "off", "no", "0", ""):
        raise ConnectionEnd(
            FEATURE_NOT_SUPPORTED,
            "replication connections are not supported",
            hint="SUBSCRIBE streams the changes of any query",
        )
    settings = parse_options(settings.pop("options", "")) | settings
    encoding = settings.pop("client_encoding", "UTF8").strip("'\" ")
    if encoding.lower() not in _UTF8:
        raise ConnectionEnd("22023", f'client encoding "{encoding}" is not supported', hint="use UTF8")
    return Startup(user, database, settings, min(asked, LATEST_MINOR), asked, tuple(unknown))


def parse_options(text: str) -> dict[str, str]:
    """The settings in `-c name=value --name=value`; a backslash keeps the character after it."""
    words: list[str] = []
    word: str | None = None
    characters = iter(text)
    for character in characters:
        if character.isspace():
            if word is not None:
                words.append(word)
            word = None
        else:
            word = (word or "") + (next(characters, "") if character == "\\" else character)
    if word is not None:
        words.append(word)
    settings = {}
    remaining = iter(words)
    for option in remaining:
        if option == "-c":
            assignment = next(remaining, "")
        elif option.startswith("--") or option.startswith("-c"):
            assignment = option[2:]
        else:
            assignment = ""
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise ConnectionEnd("42601", f"invalid command-line argument for server process: {option}")
        settings[name.replace("-", "_")] = value
    return settings
