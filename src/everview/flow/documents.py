"""Documents as JSON: how rows look to endpoints that take JSON, and how they are read back.

Integers and booleans are JSON's, floats too unless they are NaN or infinite. Numerics are strings, for JSON's numbers
lose digits in most readers' hands. Bytes are base64, dates and times are as in RFC 3339, or "infinity" and "-infinity",
jsonb is embedded as it is.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from everview.compute.functions.input import from_text
from everview.compute.functions.json_value import dump
from everview.compute.functions.output import to_text
from everview.compute.ir.infinite import Infinite, as_numbers, infinite_of, to_python
from everview.compute.ir.types import Interval, Kind, SqlType
from everview.flow.contract import Binding, Field
from everview.flow.errors import DriverFailed

_AS_IS = {Kind.BOOLEAN, Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP}
_STRINGS = {Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.UUID, Kind.UNKNOWN}
# Kinds whose values are in JSON what they are in Python.
_PLAIN: dict[Kind, type] = dict.fromkeys(_AS_IS, int) | {Kind.BOOLEAN: bool} | dict.fromkeys(_STRINGS, str)


def json_texts(column: pa.ChunkedArray, sql_type: SqlType) -> list[str]:
    encode = _encoder(sql_type)
    return ["null" if value is None else encode(value) for value in to_python(column)]


def objects(table: pa.Table, fields: Sequence[Field]) -> list[str]:
    """Each row as the text of a JSON object of these fields."""
    columns = [json_texts(table.column(each.name), each.type) for each in fields]
    names = [json.dumps(each.name) for each in fields]
    form = "{" + ",".join(name.replace("%", "%%") + ":%s" for name in names) + "}"
    return [form % row for row in zip(*columns, strict=True)] if columns else ["{}"] * table.num_rows


def arrays(table: pa.Table, fields: Sequence[Field]) -> list[str]:
    """Each row as the text of a JSON array of these fields."""
    columns = [json_texts(table.column(each.name), each.type) for each in fields]
    if not columns:
        return ["[]"] * table.num_rows
    return ["[" + ",".join(row) + "]" for row in zip(*columns, strict=True)]


def from_objects(documents: Iterable[Any], binding: Binding) -> pa.Table:
    """Documents, parsed with numbers as Decimals, as rows of the binding; a field that is not there is NULL."""
    documents = list(documents)
    for document in documents:
        if not isinstance(document, dict):
            raise DriverFailed("the driver loaded a document that is not an object", detail=repr(document)[:200])
    columns = []
    for each, field in zip(binding.fields, binding.schema, strict=True):
        columns.append(column_from_json([document.get(each.name) for document in documents], each, field.type))
    return pa.table(columns, schema=binding.schema)


_DECODER = json.JSONDecoder(parse_float=Decimal)  # to make one takes as long as to read a small document


def loads(text: str | bytes) -> Any:
    """Parse JSON with numbers that have a fraction as Decimals."""
    return _DECODER.decode(text if isinstance(text, str) else text.decode())


def column_from_json(values: Sequence[Any], field: Field, type_: pa.DataType) -> pa.Array:
    plain = _PLAIN.get(field.type.kind)
    if plain is not None and set(map(type, values)) <= {plain, type(None)}:
        return pa.array(values, type_)
    return pa.array(as_numbers([_from_json(value, field) for value in values], type_), type_)


def _from_json(value: Any, field: Field) -> Any:
    if value is None:
        return None
    try:
        return _decoded(value, field.type)
    except Exception as error:
        raise DriverFailed(
            f'the driver loaded a value of field "{field.name}" that is no {field.type}', detail=repr(value)[:200]
        ) from error


def _encoder(sql_type: SqlType) -> Callable[[Any], str]:
    kind = sql_type.kind
    if kind is Kind.BOOLEAN:
        return lambda value: "true" if value else "false"
    if kind in _AS_IS:
        return str
    if kind in _STRINGS:
        return lambda value: json.dumps(value, ensure_ascii=False)
    if kind in (Kind.FLOAT4, Kind.FLOAT8):
        return lambda value: (
            (repr(value) if kind is Kind.FLOAT8 else to_text(value, sql_type))
            if math.isfinite(value)
            else f'"{to_text(value, sql_type)}"'
        )
    if kind is Kind.JSONB:
        return str
    if kind is Kind.ARRAY:
        assert sql_type.element is not None
        inner = _encoder(sql_type.element)
        return lambda value: "[" + ",".join("null" if each is None else inner(each) for each in value) + "]"
    text = string_form(sql_type)
    return lambda value: f'"{text(value)}"'


def string_form(sql_type: SqlType) -> Callable[[Any], str]:
    """How JSON has a value of a type that it has strings for."""
    kind = sql_type.kind
    if kind is Kind.BYTEA:
        return lambda value: base64.b64encode(value).decode()
    if kind is Kind.DATE:
        return lambda value: str(value) if isinstance(value, Infinite) else value.isoformat()
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        zone = "Z" if kind is Kind.TIMESTAMPTZ else ""
        return lambda value: str(value) if isinstance(value, Infinite) else f"{_local(value)}{zone}"
    if kind is Kind.INTERVAL:
        return lambda value: to_text(Interval(value["months"], value["days"], value["micros"]), sql_type)
    return lambda value: to_text(value, sql_type)


def _local(value: datetime) -> str:
    return value.replace(tzinfo=None).isoformat()


def _decoded(value: Any, sql_type: SqlType) -> Any:
    kind = sql_type.kind
    if kind is Kind.JSONB:
        return dump(_exact(value))
    if kind is Kind.BOOLEAN:
        if not isinstance(value, bool):
            raise ValueError("not a boolean")
        return value
    if kind in _AS_IS:
        return int(value)
    if kind in (Kind.FLOAT4, Kind.FLOAT8):
        return float(value)
    if kind in _STRINGS:
        if not isinstance(value, str):
            raise ValueError("not a string")
        return value
    if kind is Kind.BYTEA:
        return base64.b64decode(value, validate=True)
    if kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ) and (infinite := infinite_of(str(value))) is not None:
        return infinite
    if kind is Kind.DATE:
        return date.fromisoformat(value)
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if kind is Kind.TIMESTAMPTZ else moment.replace(tzinfo=None)
    if kind is Kind.ARRAY:
        assert sql_type.element is not None
        return [None if each is None else _decoded(each, sql_type.element) for each in value]
    read = from_text(str(value), sql_type)
    return read._asdict() if kind is Kind.INTERVAL else read


def _exact(value: Any) -> Any:
    """A parsed JSON value as `dump` takes it: all that is not an integer is a Decimal."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, list):
        return [_exact(each) for each in value]
    return {name: _exact(each) for name, each in value.items()} if isinstance(value, dict) else value


def chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """The items in pieces of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
