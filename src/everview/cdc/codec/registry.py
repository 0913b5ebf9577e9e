"""Messages of topics as a schema registry frames them: a zero, the number of the writer's schema, and an Avro datum.

The number stands for the schema in the registry, which every message of a topic may have another of: columns in
another order are read by their names, and other columns make a message undecodable.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import Request

import pyarrow as pa

from everview.cdc.codec.avro import AvroCodec
from everview.cdc.codec.contract import Item
from everview.cdc.contract import Message
from everview.cdc.errors import SchemaDiffers, TransportFailed, Undecodable
from everview.cdc.rows import Row
from everview.cdc.schema import StreamSchema, message_schema, stream_schema
from everview.reach.http import open_url

TIMEOUT_S = 10.0
_FRAME = struct.Struct(">bI")
_TYPE = "application/vnd.schemaregistry.v1+json"


class Registry:
    """A schema registry, by its address; a name and a password may stand before the host."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")
        self._headers = {"Accept": _TYPE, "Content-Type": _TYPE}
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"

    def schema(self, number: int) -> StreamSchema:
        return stream_schema(json.loads(self._ask(f"/schemas/ids/{number}")["schema"]))

    def latest(self, topic: str) -> StreamSchema | None:
        """The schema that messages of a topic had last; None if none is known."""
        found = self._ask(f"/subjects/{quote(topic, safe='')}-value/versions/latest", missing={})
        return stream_schema(json.loads(found["schema"])) if found else None

    def register(self, topic: str, schema: StreamSchema) -> int:
        """The number of a schema for messages of a topic, which it gets now unless it has one."""
        said = {"schema": json.dumps(message_schema(schema))}
        return int(self._ask(f"/subjects/{quote(topic, safe='')}-value/versions", said)["id"])

    def _ask(self, path: str, said: Any = None, *, missing: Any = None) -> Any:
        body = None if said is None else json.dumps(said).encode()
        try:
            with open_url(Request(self._url + path, body, self._headers), TIMEOUT_S) as answer:
                return json.load(answer)
        except HTTPError as error:
            if error.code == 404 and missing is not None:
                return missing
            detail = error.read(500).decode(errors="replace") or str(error)
            raise TransportFailed("the schema registry refused", detail=detail) from error
        except (URLError, OSError, ValueError) as error:
            raise TransportFailed("the schema registry does not answer", detail=str(error)) from error


class RegistryCodec:
    """Framed Avro for a topic whose data have one schema."""

    suffix = ".avro"

    def __init__(self, registry: Registry, topic: str, schema: StreamSchema) -> None:
        self.schema = schema
        self._registry, self._topic, self._plain = registry, topic, AvroCodec(schema)
        self._number: int | None = None
        self._readers: dict[int, Callable[[bytes], Message[Row]]] = {}

    def encode(self, message: Message[Row]) -> bytes:
        if self._number is None:
            self._number = self._registry.register(self._topic, self.schema)
        return _FRAME.pack(0, self._number) + self._plain.encode(message)

    def decode(self, data: bytes) -> Message[Row]:
        if len(data) < _FRAME.size or data[0] != 0:
            raise Undecodable("not a message of this stream", detail="it is not framed by a schema registry")
        _, number = _FRAME.unpack_from(data)
        if number not in self._readers:
            try:
                theirs = self._registry.schema(number)
                self.schema.check(theirs, f"schema {number}")
            except SchemaDiffers as error:
                raise Undecodable("not a message of this stream", detail=str(error).replace("\n", "; ")) from error
            self._readers[number] = self._plain.decoding(theirs)
        return self._readers[number](data[_FRAME.size :])

    def encode_file(self, messages: Iterable[Message[Row]]) -> bytes:
        return self._plain.encode_file(messages)

    def decode_file(self, file: pa.NativeFile, where: str) -> Iterator[Item]:
        return self._plain.decode_file(file, where)
