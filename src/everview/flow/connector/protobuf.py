"""The protocol's messages as protocol buffers, by a table of fields instead of generated code.

A message is the dictionary that it is in JSON: names in camel case, documents as values, 64-bit integers as strings,
bytes as base64. `encode` and `decode` translate such a dictionary to the wire format and back. Fields that the table
does not know are left out, in either direction.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Literal

from everview.flow.documents import loads
from everview.flow.errors import DriverFailed

ValueKind = Literal[
    "string", "bytes", "json", "bool", "int", "int64", "fixed32", "double", "duration", "enum", "message"
]
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NUMBERS = ("bool", "int", "int64", "fixed32", "double", "enum")  # kinds that are not of some length in bytes


@dataclass(frozen=True)
class WireField:
    """One field: its number, what it holds, and whether there are many, in order or by a key."""

    number: int
    kind: ValueKind
    of: str = ""  # the name of the message or enumeration
    many: Literal["", "list", "map"] = ""


# Each message with its fields: name, number, whether there are many, and the kind of value: that of another message or
# enumeration begins with a capital letter, and an enumeration says so.
_TABLE = """
Request: spec 1 AskSpec; validate 2 Validate; apply 3 Apply; open 4 Open; load 5 Load; flush 6 WithPatches;
    store 7 Store; startCommit 8 StartCommit; acknowledge 9 WithPatches
Response: spec 1 Spec; validated 2 Validated; applied 3 Applied; opened 4 Opened; loaded 5 Loaded;
    flushed 6 WithState; startedCommit 7 WithState; acknowledged 8 WithState
WithPatches: statePatches 1 json
WithState: state 1 State
State: updated 1 json; mergePatch 2 bool
AskSpec: connectorType 1 enum ConnectorType; config 2 json
Validate: name 1 string; connectorType 2 enum ConnectorType; config 3 json; bindings 4 list Proposed;
    lastMaterialization 5 Materialization; lastVersion 6 string
Proposed: resourceConfig 1 json; collection 2 Collection; fieldConfig 3 map json; backfill 4 int;
    groupBy 5 list string
Apply: materialization 1 Materialization; version 2 string; lastMaterialization 4 Materialization;
    lastVersion 5 string; state 6 json
Open: materialization 1 Materialization; version 2 string; range 3 Range; state 4 json
Range: keyBegin 2 fixed32; keyEnd 3 fixed32; rClockBegin 4 fixed32; rClockEnd 5 fixed32
Load: binding 1 int; key 2 json; keyPacked 3 bytes
Store: binding 1 int; key 2 json; keyPacked 3 bytes; values 4 json; valuesPacked 5 bytes; doc 6 json; exists 7 bool;
    delete 8 bool
StartCommit: runtimeCheckpoint 1 Checkpoint; statePatches 2 json
Checkpoint: sources 1 map Source
Source: readThrough 1 int64
Spec: protocol 1 int; configSchema 2 json; resourceConfigSchema 3 json; documentationUrl 4 string
Validated: bindings 1 list Answer
Answer: constraints 1 map Constraint; resourcePath 2 list string; deltaUpdates 3 bool; serPolicy 4 SerPolicy;
    caseInsensitiveFields 5 bool; projectionConstraints 6 list ProjectionConstraint
ProjectionConstraint: field 1 string; constraint 2 Constraint
Constraint: type 2 enum Constraint; reason 3 string; foldedField 4 string
SerPolicy: strTruncateAfter 1 int; nestedObjTruncateAfter 2 int; arrayTruncateAfter 3 int
Applied: actionDescription 1 string; state 2 State
Opened: runtimeCheckpoint 1 Checkpoint; disableLoadOptimization 2 bool
Loaded: binding 1 int; doc 2 json
Materialization: name 1 string; connectorType 2 enum ConnectorType; config 3 json; bindings 4 list Binding;
    shardTemplate 5 Shard; recoveryLogTemplate 6 Journal
Binding: resourceConfig 1 json; resourcePath 2 list string; collection 3 Collection; fieldSelection 4 FieldSelection;
    deltaUpdates 5 bool; partitionSelector 7 LabelSelector; journalReadSuffix 8 string; priority 9 int;
    backfill 12 int; stateKey 13 string; serPolicy 14 SerPolicy
FieldSelection: keys 1 list string; values 2 list string; document 3 string; fieldConfig 4 map json
Collection: name 1 string; key 3 list string; uuidPtr 4 string; partitionFields 5 list string;
    projections 6 list Projection; ackTemplate 7 json; writeSchema 8 json; partitionTemplate 9 Journal;
    readSchema 11 json
Projection: ptr 1 string; field 2 string; explicit 3 bool; isPartitionKey 4 bool; isPrimaryKey 5 bool;
    inference 6 Inference
Inference: types 1 list string; string 3 String; title 4 string; description 5 string; default 6 json; secret 7 bool;
    exists 8 enum Exists
String: contentType 3 string; format 4 string; maxLength 6 int; contentEncoding 7 string
LabelSelector: include 1 LabelSet; exclude 2 LabelSet
LabelSet: labels 1 list Label
Label: name 1 string; value 2 string
Shard: id 1 string; recoveryLogPrefix 3 string; hintPrefix 4 string; hintBackups 5 int; maxTxnDuration 6 duration;
    minTxnDuration 7 duration; disable 8 bool; hotStandbys 9 int; labels 10 LabelSet; disableWaitForAck 11 bool
Journal: name 1 string; replication 2 int; labels 4 LabelSet; fragment 5 Fragment; flags 6 int; maxAppendRate 7 int64
Fragment: length 1 int64; compressionCodec 2 enum CompressionCodec; stores 3 list string; refreshInterval 4 duration;
    retention 5 duration; flushInterval 6 duration; pathPostfixTemplate 7 string
Duration: seconds 1 int64; nanos 2 int
"""


def _field(text: str) -> tuple[str, WireField]:
    """Read `binding 3 json`, `bindings 4 list Binding` or `type 2 enum Constraint`."""
    name, number, *words = text.split()
    many = words.pop(0) if words[0] in ("list", "map") else ""
    kind, of = ("message", words[0]) if words[0][0].isupper() else (words[0], "".join(words[1:]))
    return name, WireField(int(number), kind, of, many)  # type: ignore[arg-type]


def _messages(table: str) -> Iterator[tuple[str, dict[str, WireField]]]:
    for line in re.sub(r"\n +", " ", table.strip()).splitlines():
        name, _, fields = line.partition(": ")
        yield name, dict(map(_field, fields.split("; ")))


MESSAGES = dict(_messages(_TABLE))

ENUMS: dict[str, dict[str, int]] = {
    "ConnectorType": {"INVALID": 0, "IMAGE": 8, "LOCAL": 9, "DEKAF": 10},
    "Exists": {"INVALID": 0, "MUST": 1, "MAY": 2, "IMPLICIT": 3, "CANNOT": 4},
    "CompressionCodec": {"INVALID": 0, "NONE": 1, "GZIP": 2, "ZSTANDARD": 3, "SNAPPY": 4},
    "Constraint": {
        "INVALID": 0,
        "FIELD_REQUIRED": 1,
        "LOCATION_REQUIRED": 2,
        "LOCATION_RECOMMENDED": 3,
        "FIELD_OPTIONAL": 4,
        "FIELD_FORBIDDEN": 5,
        "INCOMPATIBLE": 6,
        "UNSATISFIABLE": 7,
    },
}


# Encoding


def encode(message: str, value: Mapping[str, Any]) -> bytes:
    """A message in the wire format. Default values are left out, except for messages."""
    fields = MESSAGES[message]
    return b"".join(_entry(fields[name], given) for name, given in value.items() if name in fields)


def _entry(field: WireField, value: Any) -> bytes:
    if field.many == "map":
        inner = WireField(2, field.kind, field.of)
        entries = ((_one(WireField(1, "string"), name), _one(inner, each)) for name, each in value.items())
        return b"".join(delimited(field.number, key + each) for key, each in entries)
    if field.many == "list":
        return b"".join(_one(field, each) for each in value)
    if field.kind not in ("message", "json", "duration") and not value:
        return b""
    return _one(field, value)


def _one(field: WireField, value: Any) -> bytes:
    kind, number = field.kind, field.number
    if kind == "string":
        return delimited(number, str(value).encode())
    if kind == "bytes":
        return delimited(number, base64.b64decode(value))
    if kind == "json":
        return delimited(number, json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_plain).encode())
    if kind == "message":
        return delimited(number, encode(field.of, value))
    if kind == "duration":
        return delimited(number, encode("Duration", {"seconds": int(float(str(value).removesuffix("s")))}))
    if kind == "fixed32":
        return varint(number << 3 | _FIXED32) + struct.pack("<I", int(value))
    if kind == "double":
        return varint(number << 3 | _FIXED64) + struct.pack("<d", value)
    whole = ENUMS[field.of].get(value, 0) if kind == "enum" else int(value)
    return varint(number << 3 | _VARINT) + varint(whole & 0xFFFFFFFFFFFFFFFF)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else dict(value)


def delimited(number: int, content: bytes) -> bytes:
    """A field of bytes of any length."""
    return varint(number << 3 | _BYTES) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """An unsigned integer, seven bits a byte, the lowest first."""
    return VARINTS[value] if value < len(VARINTS) else _varint(value)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


VARINTS = [_varint(value) for value in range(1 << 14)]  # those that are wanted all the time


# Decoding


@cache
def _by_number(message: str) -> dict[int, tuple[str, WireField]]:
    return {field.number: (name, field) for name, field in MESSAGES[message].items()}


def decode(message: str, content: bytes, *, without: Container[str] = ()) -> dict[str, Any]:
    """The dictionary of a message in the wire format, without the fields of these names."""
    by_number = _by_number(message)
    result: dict[str, Any] = {}
    for number, value in _parts(content):
        if number not in by_number:
            continue
        name, field = by_number[number]
        if name in without:
            continue
        if isinstance(value, int) != (field.kind in _NUMBERS):
            continue  # a field of another protocol's version, under the same number
        if field.many == "map":
            entry = dict(_parts(value))
            inner = WireField(2, field.kind, field.of)
            empty: Any = b"" if field.kind in ("message", "json", "string", "bytes") else 0
            result.setdefault(name, {})[entry.get(1, b"").decode()] = _value(inner, entry.get(2, empty), without)
        elif field.many == "list":
            result.setdefault(name, []).append(_value(field, value, without))
        else:
            result[name] = _value(field, value, without)
    return result


# Of loads and stores: the fields that are texts of JSON, by their heads, and those that are flags.
_TEXTS = {0x12: "key", 0x22: "values", 0x32: "doc"}
_FLAGS = {0x08: "binding", 0x38: "exists", 0x40: "delete"}


def store_or_load(content: bytes) -> dict[str, Any]:
    """What a request to load or store says, with texts of JSON as they are, and without what is packed.

    The same as `decode`, for messages that come in great numbers.
    """
    size, at = _read_varint(content, 1)
    if at + size != len(content):
        raise DriverFailed("the program sent what is not one message", detail=repr(content[:200]))
    result: dict[str, Any] = {}
    while at < len(content):
        head = content[at]
        at += 1
        value = content[at] if at < len(content) else 0x80
        if value < 0x80:
            at += 1
        else:
            value, at = _read_varint(content, at)
        if head in _FLAGS:
            result[_FLAGS[head]] = value
        elif head & 7 == _BYTES and head < 0x80:
            if head in _TEXTS:
                result[_TEXTS[head]] = content[at : at + value]
            at += value
        elif head & 7 != _VARINT or head >= 0x80:
            raise DriverFailed("the program sent a message that cannot be read", detail=f"a field of head {head:#x}")
    if at != len(content):
        raise DriverFailed("the program sent a message that is cut off")
    return result


def _value(field: WireField, value: Any, without: Container[str] = ()) -> Any:
    kind = field.kind
    try:
        if kind == "string":
            return value.decode()
        if kind == "bytes":
            return base64.b64encode(value).decode()
        if kind == "json":
            return loads(value) if value else None
        if kind == "message":
            return decode(field.of, value, without=without)
        if kind == "duration":
            return f"{decode('Duration', value).get('seconds', 0)}s"
    except (ValueError, AttributeError) as error:
        raise DriverFailed("the program sent a message that cannot be read", detail=str(error)) from error
    if kind == "bool":
        return bool(value)
    if kind == "enum":
        names = {number: name for name, number in ENUMS[field.of].items()}
        return names.get(value, "INVALID")
    if kind == "int64":
        return str(value - (1 << 64) if value >> 63 else value)
    return value


def _parts(content: bytes) -> Iterator[tuple[int, Any]]:
    """The numbers and raw values of a message's fields."""
    at, size = 0, len(content)
    while at < size:
        head, at = _read_varint(content, at)
        number, shape = head >> 3, head & 7
        value: Any
        if shape == _VARINT:
            value, at = _read_varint(content, at)
        elif shape == _BYTES:
            length, at = _read_varint(content, at)
            value, at = content[at : at + length], at + length
        elif shape == _FIXED32:
            value, at = int.from_bytes(content[at : at + 4], "little"), at + 4
        elif shape == _FIXED64:
            value, at = int.from_bytes(content[at : at + 8], "little"), at + 8
        else:
            raise DriverFailed("the program sent a message that cannot be read", detail=f"wire type {shape}")
        if at > size:
            raise DriverFailed("the program sent a message that is cut off")
        yield number, value


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(content) or shift > 63:
            raise DriverFailed("the program sent a message that is cut off")
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
