"""Keys and documents on the wire, column by column: each value is encoded once, as JSON and as a packed tuple.

`Layout` says which fields of a binding go into the key, the values and the document. Rows come as tuples of texts and
bytes, which a codec frames. Packed are FoundationDB's tuples: bytes in the order of the values, which some connectors
read instead of JSON.

A connector whose destination takes no long values has them cut: texts after so many bytes, at the end of a character,
arrays and objects inside of a column after so many items and members. Keys are never cut: two could become one. The
field `_meta/flow_truncated` says whether something of a row was cut, where the connector takes it.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from json import dumps
from json.encoder import encode_basestring as quoted
from typing import Any

import pyarrow as pa

from everview.compute.functions.json_value import dump
from everview.compute.functions.output import to_text
from everview.compute.ir.infinite import to_python
from everview.compute.ir.types import Interval, Kind, SqlType
from everview.flow.contract import DELETE, EXISTS, Binding
from everview.flow.documents import json_texts, loads, string_form

META, OPERATION, ORDINAL, TRUNCATED = "_meta", "_meta/op", "_meta/id", "_meta/flow_truncated"
_INTEGERS = {Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP}
_TEXTS = {Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.UUID, Kind.UNKNOWN}
_NULL = b"\x00"

Column = tuple[list[str], list[bytes]]


@dataclass(frozen=True)
class Layout:
    """Where the fields of a binding go."""

    binding: Binding
    keys: tuple[str, ...]
    values: tuple[str, ...]
    document: bool
    operation: bool
    truncation: Truncation | None = None

    @classmethod
    def of(cls, binding: Binding, described: Mapping[str, Any]) -> Layout:
        """The layout that the connector was told of."""
        selection = described["fieldSelection"]
        keys, values = tuple(selection.get("keys") or ()), tuple(selection.get("values") or ())
        document = bool(selection.get("document"))
        # Documents tell the operation wherever they are sent as a whole, and where it was chosen.
        truncation = Truncation.of(described.get("serPolicy"))
        return cls(binding, keys, values, document, document or OPERATION in values, truncation)

    def loads(self, keys: pa.Table) -> Iterator[tuple[str, bytes]]:
        """Keys to load: JSON and packed."""
        columns = [encoded(keys.column(each.name), each.type) for each in self.binding.key_fields]
        return zip(_arrays([each for each, _ in columns], keys.num_rows), _joined(columns, keys.num_rows), strict=True)

    def stores(self, rows: pa.Table, transaction: str, first: int) -> Iterator[tuple[Any, ...]]:
        """Documents to store, as (key, key packed, values, values packed, document or None, exists, delete)."""
        size = rows.num_rows
        columns = {each.name: encoded(rows.column(each.name), each.type) for each in self.binding.fields}
        exists, delete = rows.column(EXISTS).to_pylist(), rows.column(DELETE).to_pylist()
        cut = [False] * size
        if self.truncation is not None:
            for each in self.binding.value_fields:
                columns[each.name] = self.truncation.column(each.type.kind, *columns[each.name], cut)
        if TRUNCATED in self.values:
            columns[TRUNCATED] = _each(cut, _boolean)
        if ORDINAL in self.keys:
            names = [f"{transaction}-{number:x}" for number in range(first, first + size)]
            columns[ORDINAL] = [f'"{each}"' for each in names], [b"\x02" + each.encode() + b"\x00" for each in names]
        if self.operation:
            operations = ["d" if gone else "u" if known else "c" for known, gone in zip(exists, delete, strict=True)]
            texts = [f'"{each}"' for each in operations]
            columns[OPERATION] = texts, [b"\x02" + each.encode() + b"\x00" for each in operations]
        keys, values = [columns[each] for each in self.keys], [columns[each] for each in self.values]
        documents: Any = self._documents(columns, size) if self.document else repeat(None, size)
        return zip(
            _arrays([each for each, _ in keys], size),
            _joined(keys, size),
            _arrays([each for each, _ in values], size),
            _joined(values, size),
            documents,
            exists,
            delete,
            strict=True,
        )

    def _documents(self, columns: Mapping[str, Column], size: int) -> Iterator[str]:
        names = self.binding.names
        parts = [dumps(name).replace("%", "%%") + ":%s" for name in names]
        meta = [name for name in (ORDINAL, OPERATION) if name in columns]
        parts.append(f'"{META}":{{' + ",".join(f'"{name.removeprefix(f"{META}/")}":%s' for name in meta) + "}")
        form = "{" + ",".join(parts) + "}"
        texts = [columns[name][0] for name in (*names, *meta)]
        return (form % row for row in zip(*texts, strict=True))


def encoded(column: pa.ChunkedArray, sql_type: SqlType) -> Column:
    """Each value as JSON and packed."""
    kind, values = sql_type.kind, to_python(column)
    if kind in _INTEGERS:
        if column.null_count:
            return ["null" if v is None else str(v) for v in values], [
                _NULL if v is None else pack_integer(v) for v in values
            ]
        return list(map(str, values)), list(map(pack_integer, values))
    if kind in (Kind.FLOAT4, Kind.FLOAT8):
        return _each(values, lambda value: _float(value, sql_type))
    if kind is Kind.BOOLEAN:
        return _each(values, _boolean)
    if kind in (Kind.JSONB, Kind.ARRAY):  # not scalars: as the bytes of their JSON
        texts = json_texts(column, sql_type)
        return texts, [
            _NULL if value is None else pack_bytes(text.encode()) for value, text in zip(values, texts, strict=True)
        ]
    raw = values if kind in _TEXTS else _strings(values, sql_type)
    if column.null_count:
        return ["null" if v is None else quoted(v) for v in raw], [_NULL if v is None else pack_text(v) for v in raw]
    return list(map(quoted, raw)), list(map(pack_text, raw))


def _boolean(value: bool) -> tuple[str, bytes]:
    return ("true", b"\x27") if value else ("false", b"\x26")


def _each(values: Sequence[Any], encode: Callable[[Any], tuple[str, bytes]]) -> Column:
    pairs = [("null", _NULL) if value is None else encode(value) for value in values]
    return [text for text, _ in pairs], [packed for _, packed in pairs]


def _float(value: float, sql_type: SqlType) -> tuple[str, bytes]:
    if not math.isfinite(value):
        text = to_text(value, sql_type)
        return f'"{text}"', pack_text(text)
    text = repr(value) if sql_type.kind is Kind.FLOAT8 else to_text(value, sql_type)
    return text, pack_float(float(text))


def _strings(values: Sequence[Any], sql_type: SqlType) -> list[Any]:
    """Values of types that JSON has strings for."""
    encode = string_form(sql_type)
    if sql_type.kind is Kind.INTERVAL:
        encode = lambda value: duration(Interval(value["months"], value["days"], value["micros"]))  # noqa: E731
    return [None if value is None else encode(value) for value in values]


def duration(value: Interval) -> str:
    """An interval in the form of ISO 8601, each part with a sign of its own."""
    whole, part = divmod(abs(value.micros), 1_000_000)
    sign = "-" if value.micros < 0 else ""
    seconds = f"{sign}{whole}" + (f".{part:06d}".rstrip("0") if part else "")
    return f"P{value.months}M{value.days}DT{seconds}S"


def _arrays(columns: Sequence[list[str]], size: int) -> Iterator[str]:
    if not columns:
        return repeat("[]", size)
    if len(columns) == 1:
        return ("[" + text + "]" for text in columns[0])
    return ("[" + ",".join(row) + "]" for row in zip(*columns, strict=True))


def _joined(columns: Sequence[Column], size: int) -> Iterator[bytes]:
    if not columns:
        return repeat(b"", size)
    if len(columns) == 1:
        return iter(columns[0][1])
    return map(b"".join, zip(*(each for _, each in columns), strict=True))


_CUT_TEXTS = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.UNKNOWN)
_NESTED = (Kind.JSONB, Kind.ARRAY)
_CHARACTER_BYTES_MAX = 4
_BASE64_LETTERS = 4  # that stand for bytes together


@dataclass(frozen=True)
class Truncation:
    """The limits of a connector. None means no limit."""

    text_bytes: int | None
    items: int | None
    members: int | None

    @classmethod
    def of(cls, policy: Mapping[str, Any] | None) -> Truncation | None:
        """The validated policy of a binding; None if it has no limits."""
        names = ("strTruncateAfter", "arrayTruncateAfter", "nestedObjTruncateAfter")
        limits = [int((policy or {}).get(name) or 0) or None for name in names]
        return cls(*limits) if any(limits) else None

    def column(
        self, kind: Kind, texts: list[str], packed: list[bytes], cut: list[bool]
    ) -> tuple[list[str], list[bytes]]:
        """A column, as JSON and packed, with long values cut. `cut` notes the rows."""
        if kind in _CUT_TEXTS or kind is Kind.BYTEA:
            least = self.text_bytes
        else:
            limits = [each for each in (self.text_bytes, self.items, self.members) if each is not None]
            least = min(limits) if kind in _NESTED else None
        if least is None or not any(len(text) * _CHARACTER_BYTES_MAX > least for text in texts):
            return texts, packed
        texts, packed = list(texts), list(packed)
        for at, text in enumerate(texts):
            if text == "null" or len(text) * _CHARACTER_BYTES_MAX <= least:
                continue
            whole = loads(text) if kind in _NESTED else json.loads(text)
            short = self._text(whole, whole_groups=True) if kind is Kind.BYTEA else self._shortened(whole)
            if short != whole:
                cut[at] = True
                texts[at] = dump(short) if kind in _NESTED else quoted(short)
                packed[at] = pack_bytes(texts[at].encode()) if kind in _NESTED else pack_text(short)
        return texts, packed

    def _shortened(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._shortened(each) for each in value[: self.items]]
        if isinstance(value, dict):
            return {name: self._shortened(value[name]) for name in list(value)[: self.members]}
        return value

    def _text(self, text: str, *, whole_groups: bool = False) -> str:
        """The first bytes of a text. Base64 is cut where a group of letters ends."""
        limit = self.text_bytes
        if limit is None or len(text) * _CHARACTER_BYTES_MAX <= limit:
            return text
        content = text.encode()
        if len(content) <= limit:
            return text
        limit -= limit % _BASE64_LETTERS if whole_groups else 0
        return content[:limit].decode(errors="ignore")


def pack_bytes(value: bytes) -> bytes:
    return b"\x01" + value.replace(b"\x00", b"\x00\xff") + b"\x00"


def pack_text(value: str) -> bytes:
    return b"\x02" + value.encode().replace(b"\x00", b"\x00\xff") + b"\x00"


def pack_integer(value: int) -> bytes:
    """Pack an integer of at most 64 bits."""
    size = (abs(value).bit_length() + 7) // 8
    if size > 8:
        raise OverflowError(f"does not fit 64 bits: {value}")
    if value >= 0:
        return bytes([0x14 + size]) + value.to_bytes(size, "big")
    # Negative numbers as the complement of their size, so that they too are in order.
    return bytes([0x14 - size]) + (value + (1 << 8 * size) - 1).to_bytes(size, "big")


def pack_float(value: float) -> bytes:
    """Pack a float: its bits, turned so that they are in order."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", value))
    flipped = bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63)
    return b"\x21" + struct.pack(">Q", flipped)
