"""Keys and documents on the wire, column by column: each value is encoded once, as JSON and as a packed tuple.

`Layout` says which fields of a binding go into the key, the values and the document. Rows come as tuples of texts and
bytes, which a codec frames.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import repeat
from json import dumps
from json.encoder import encode_basestring as quoted
from typing import Any

import pyarrow as pa

from everview.compute.functions.output import to_text
from everview.compute.ir.infinite import Infinite, to_python
from everview.compute.ir.types import Interval, Kind, SqlType
from everview.flow.connector.described import META, OPERATION, ORDINAL, TRUNCATED
from everview.flow.connector.truncation import Truncation
from everview.flow.contract import DELETE, EXISTS, Binding
from everview.flow.documents import json_texts
from everview.flow.tuples import pack_bytes, pack_float, pack_integer, pack_text

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
        """As the materialization was described to the connector."""
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
    kind = sql_type.kind
    encode: Callable[[Any], str]
    if kind is Kind.BYTEA:
        encode = lambda value: base64.b64encode(value).decode()  # noqa: E731
    elif kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        zone = "Z" if kind is Kind.TIMESTAMPTZ else ""
        encode = lambda value: str(value) if isinstance(value, Infinite) else _moment(value) + zone  # noqa: E731
    elif kind is Kind.DATE:
        encode = lambda value: str(value) if isinstance(value, Infinite) else value.isoformat()  # noqa: E731
    elif kind is Kind.INTERVAL:
        encode = lambda value: duration(Interval(value["months"], value["days"], value["micros"]))  # noqa: E731
    else:
        encode = lambda value: to_text(value, sql_type)  # noqa: E731
    return [None if value is None else encode(value) for value in values]


def _moment(value: datetime) -> str:
    return value.replace(tzinfo=None).isoformat()


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
