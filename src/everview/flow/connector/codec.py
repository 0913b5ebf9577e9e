"""How messages are framed on a program's standard streams: lines of JSON, or protocol buffers with their lengths.

Either way a message is a name and the dictionary that it is in JSON. Loads and stores, of which there are many, are
framed from their parts instead, a whole batch at a time.
"""

from __future__ import annotations

import json
import struct
from abc import ABC, abstractmethod
from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Literal

from everview.flow.connector import protobuf
from everview.flow.connector.protobuf import delimited, varint
from everview.flow.documents import loads
from everview.flow.errors import DriverFailed, InvalidMaterialization
from everview.flow.wire import parse_line

MESSAGE_BYTES_MAX = 256 << 20
Side = Literal["Request", "Response"]
_PACKED = ("keyPacked", "valuesPacked")  # our own drivers read the same values as JSON


class Codec(ABC):
    """One way to frame messages."""

    name: str

    @abstractmethod
    def frame(self, side: Side, name: str, content: Mapping[str, Any]) -> bytes:
        """One message."""

    @abstractmethod
    def loads(self, binding: int, keys: Iterable[tuple[str, bytes]]) -> bytes:
        """Many loads of one binding."""

    @abstractmethod
    def stores(self, binding: int, rows: Iterable[tuple[Any, ...]]) -> bytes:
        """Many stores of one binding."""

    @abstractmethod
    def loadeds(self, binding: int, documents: Iterable[str]) -> bytes:
        """Many documents that were loaded."""

    @abstractmethod
    def read(self, side: Side, stream: IO[bytes]) -> tuple[str, dict[str, Any]] | None:
        """The next message; None at the end."""

    def requests(self, stream: IO[bytes], most: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Requests to the end: consecutive loads and consecutive stores together, at most so many, others alone.

        What comes in great numbers is parsed together: to parse is quick, and to begin to parse is not.
        """
        held: list[bytes] = []
        kind = ""
        while raw := self.raw(stream):
            found = self.many(raw)
            if held and (found != kind or len(held) >= most):
                yield kind, self.parsed(kind, held)
                held = []
            if found:
                kind = found
                held.append(raw)
            else:
                name, said = self.message("Request", raw)
                yield name, [said]
        if held:
            yield kind, self.parsed(kind, held)

    @abstractmethod
    def raw(self, stream: IO[bytes]) -> bytes:
        """The next message as it is framed; empty at the end."""

    @abstractmethod
    def many(self, raw: bytes) -> str:
        """ "load" or "store" for messages that come in great numbers, else nothing."""

    @abstractmethod
    def message(self, side: Side, raw: bytes) -> tuple[str, dict[str, Any]]:
        """A message."""

    @abstractmethod
    def parsed(self, kind: str, raws: Sequence[bytes]) -> list[dict[str, Any]]:
        """Many messages of one kind."""


class JsonCodec(Codec):
    """A line of JSON for each message."""

    name = "json"

    def frame(self, side: Side, name: str, content: Mapping[str, Any]) -> bytes:
        return json.dumps({name: content}, separators=(",", ":"), default=protobuf._plain).encode() + b"\n"

    def loads(self, binding: int, keys: Iterable[tuple[str, bytes]]) -> bytes:
        head = '{"load":{' + (f'"binding":{binding},' if binding else "")
        return "".join(f'{head}"key":{key},"keyPacked":"{_base64(packed)}"}}}}\n' for key, packed in keys).encode()

    def stores(self, binding: int, rows: Iterable[tuple[Any, ...]]) -> bytes:
        head = '{"store":{' + (f'"binding":{binding},' if binding else "")
        lines = []
        for key, key_packed, values, values_packed, document, exists, delete in rows:
            more = f',"doc":{document}' if document is not None else ""
            if exists:
                more += ',"exists":true'
            if delete:
                more += ',"delete":true'
            lines.append(
                f'{head}"key":{key},"keyPacked":"{_base64(key_packed)}","values":{values},'
                f'"valuesPacked":"{_base64(values_packed)}"{more}}}}}\n'
            )
        return "".join(lines).encode()

    def loadeds(self, binding: int, documents: Iterable[str]) -> bytes:
        head = '{"loaded":{' + (f'"binding":{binding},' if binding else "")
        return "".join(f'{head}"doc":{document}}}}}\n' for document in documents).encode()

    def read(self, side: Side, stream: IO[bytes]) -> tuple[str, dict[str, Any]] | None:
        line = self.raw(stream)
        return parse_line(line) if line else None

    def raw(self, stream: IO[bytes]) -> bytes:
        line = stream.readline(MESSAGE_BYTES_MAX)
        while line and line.isspace():
            line = stream.readline(MESSAGE_BYTES_MAX)
        return line

    def many(self, raw: bytes) -> str:
        return "store" if raw.startswith(b'{"store":') else "load" if raw.startswith(b'{"load":') else ""

    def message(self, side: Side, raw: bytes) -> tuple[str, dict[str, Any]]:
        return parse_line(raw)

    def parsed(self, kind: str, raws: Sequence[bytes]) -> list[dict[str, Any]]:
        try:
            found = loads(b"[" + b",".join(raws) + b"]")
        except ValueError:
            found = []
        if len(found) != len(raws) or not all(isinstance(each, dict) and len(each) == 1 for each in found):
            found = [{kind: parse_line(raw)[1]} for raw in raws]  # tells which of them it is
        return [each[kind] or {} for each in found]


class ProtoCodec(Codec):
    """Protocol buffers, each behind its length in four bytes, the lowest first."""

    name = "proto"

    def frame(self, side: Side, name: str, content: Mapping[str, Any]) -> bytes:
        return _framed(protobuf.encode(side, {name: content}))

    def loads(self, binding: int, keys: Iterable[tuple[str, bytes]]) -> bytes:
        head = _number(1, binding)
        return b"".join(
            _framed(delimited(5, head + delimited(2, key.encode()) + delimited(3, packed))) for key, packed in keys
        )

    def stores(self, binding: int, rows: Iterable[tuple[Any, ...]]) -> bytes:
        head = _number(1, binding)
        frames: list[bytes] = []
        size, join, pack = varint, b"".join, struct.Struct("<I").pack
        for key_text, key_packed, values_text, values_packed, document, exists, delete in rows:
            key, values = key_text.encode(), values_text.encode()
            # The heads of fields of bytes: their numbers and how they are read, in one byte each.
            content = join(
                (
                    *(head, b"\x12", size(len(key)), key, b"\x1a", size(len(key_packed)), key_packed),
                    *(b"\x22", size(len(values)), values, b"\x2a", size(len(values_packed)), values_packed),
                )
            )
            if document is not None:
                content += delimited(6, document.encode())
            if exists:
                content += b"\x38\x01"
            if delete:
                content += b"\x40\x01"
            length = size(len(content))
            frames += (pack(len(content) + len(length) + 1), b"\x3a", length, content)
        return join(frames)

    def loadeds(self, binding: int, documents: Iterable[str]) -> bytes:
        head = _number(1, binding)
        return b"".join(_framed(delimited(5, head + delimited(2, each.encode()))) for each in documents)

    def read(self, side: Side, stream: IO[bytes]) -> tuple[str, dict[str, Any]] | None:
        raw = self.raw(stream)
        return self.message(side, raw) if raw else None

    def raw(self, stream: IO[bytes]) -> bytes:
        head = stream.read(4)
        if not head:
            return b""
        (size,) = struct.unpack("<I", head) if len(head) == 4 else (0,)
        if size > MESSAGE_BYTES_MAX:
            raise DriverFailed(
                f"the program sent a message of {size} bytes",
                detail="it may speak JSON, or write something else to its standard output",
            )
        content = stream.read(size)
        if len(head) < 4 or len(content) < size:
            raise DriverFailed("the program sent a message that is cut off")
        if not content:
            raise DriverFailed("the program sent what is not one message", detail="it is empty")
        return content

    def many(self, raw: bytes) -> str:
        return {0x3A: "store", 0x2A: "load"}.get(raw[0], "")  # fields 7 and 5, of bytes

    def parsed(self, kind: str, raws: Sequence[bytes]) -> list[dict[str, Any]]:
        found = [protobuf.store_or_load(raw) for raw in raws]
        for name in ("key", "values"):
            texts = [each[name] for each in found if name in each]
            values = iter(_together(texts))
            for each in found:
                if name in each:
                    each[name] = next(values)
        for each in found:
            if "doc" in each:
                each["doc"] = loads(each["doc"]) if "values" not in each else None  # it says the same
        return found

    def message(self, side: Side, raw: bytes) -> tuple[str, dict[str, Any]]:
        content = raw
        found = protobuf.decode(side, content, without=_PACKED)
        if len(found) != 1:
            raise DriverFailed("the program sent what is not one message", detail=repr(content[:200]))
        ((name, said),) = found.items()
        return name, said


CODECS: dict[str, Codec] = {each.name: each for each in (JsonCodec(), ProtoCodec())}


def codec_of(name: str) -> Codec:
    if name not in CODECS:
        raise InvalidMaterialization(f'there is no codec "{name}"', hint=f"one of {', '.join(CODECS)}")
    return CODECS[name]


def _together(texts: Sequence[bytes]) -> list[Any]:
    """Parse many JSON texts in one go."""
    try:
        found = loads(b"[" + b",".join(texts) + b"]")
    except ValueError as error:
        raise DriverFailed("the program sent a message that cannot be read", detail=str(error)) from error
    if len(found) != len(texts):
        raise DriverFailed("the program sent a message that cannot be read", detail="a text is not one JSON value")
    return found  # type: ignore[no-any-return]


def _base64(content: bytes) -> str:
    return b2a_base64(content, newline=False).decode()


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value) if value else b""


def _framed(content: bytes) -> bytes:
    return struct.pack("<I", len(content)) + content
