"""How entries of the catalog are written down: JSON, with a version, so that a newer catalog is known as such."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from everview.adapter.catalog.items import ColumnInfo, Database, Event, Item, Role, Schema, Version
from everview.compute.ir.types import Kind, SqlType
from everview.errors import EverviewError

VERSION = 2
PLACED_VERSION = 3  # of items whose columns have places of their own
SEVERAL_VERSION = 4  # of sinks with several collections, of which an older everview would deliver the first only


def encode(entry: Database | Schema | Role | Item | Event) -> bytes:
    """The entry as bytes."""
    fields = asdict(entry)
    written_as = VERSION
    if isinstance(entry, Item):
        fields["columns"] = _columns_to_json(entry.columns)
        fields["layout"] = [type_to_json(each) for each in entry.layout]
        several = entry.kind == "sink" and "collections" in entry.source
        written_as = SEVERAL_VERSION if several else PLACED_VERSION if entry.layout else VERSION
        for version, written in zip(entry.history, fields["history"], strict=True):
            written["columns"] = _columns_to_json(version.columns)
    return json.dumps([written_as, fields], separators=(",", ":")).encode()


def _fields(data: bytes) -> dict[str, Any]:
    version, fields = json.loads(data)
    if version > SEVERAL_VERSION:
        raise EverviewError(
            "the catalog was written by a newer version of everview", hint="use that version, or a newer one"
        )
    return fields  # type: ignore[no-any-return]


def decode_database(data: bytes) -> Database:
    """A database."""
    return Database(**_fields(data))


def decode_schema(data: bytes) -> Schema:
    """A schema."""
    return Schema(**_fields(data))


def decode_role(data: bytes) -> Role:
    """A role."""
    return Role(**_fields(data))


def decode_event(data: bytes) -> Event:
    """An entry of the audit log."""
    return Event(**_fields(data))


def decode_item(data: bytes) -> Item:
    """An item."""
    fields = _fields(data)
    fields["columns"] = _columns_from_json(fields["columns"])
    fields["keys"], fields["depends"] = tuple(fields["keys"]), tuple(fields["depends"])
    fields["layout"] = tuple(map(type_from_json, fields.get("layout", ())))
    fields["history"] = tuple(map(_decode_version, fields.get("history", ())))
    before = fields.pop("before", None)
    if before is not None:  # as it was written when all versions of a view had the same columns
        version = Version(fields["id"], fields["version"] - 1, fields["columns"], before)
        fields["history"] = (version,)
    if fields.get("ttl") is not None:
        fields["ttl"] = tuple(fields["ttl"])
    return Item(**fields)


def _decode_version(fields: dict[str, Any]) -> Version:
    columns, depends = _columns_from_json(fields["columns"]), tuple(fields["depends"])
    return Version(**{**fields, "columns": columns, "depends": depends})


def _columns_to_json(columns: Iterable[ColumnInfo]) -> list[Any]:
    return [
        [column.name, type_to_json(column.type), column.nullable, column.default]
        + ([] if column.place is None else [column.place, *([list(column.earlier)] if column.earlier else [])])
        for column in columns
    ]


def _columns_from_json(columns: Iterable[Any]) -> tuple[ColumnInfo, ...]:
    return tuple(map(_column_from_json, columns))


def _column_from_json(fields: list[Any]) -> ColumnInfo:
    name, sql_type, nullable, default, *places = fields
    place = places[0] if places else None
    earlier = tuple(places[1]) if len(places) > 1 else ()
    return ColumnInfo(name, type_from_json(sql_type), nullable, default, place, earlier)


def type_to_json(sql_type: SqlType) -> list[Any]:
    """A type as JSON."""
    element = None if sql_type.element is None else type_to_json(sql_type.element)
    return [sql_type.kind.name, sql_type.scale, sql_type.precision, sql_type.length, element, sql_type.constrained]


def type_from_json(value: list[Any]) -> SqlType:
    """A type from JSON."""
    kind, scale, precision, length, element, constrained = value
    inner = None if element is None else type_from_json(element)
    return SqlType(Kind[kind], scale, precision, length, inner, constrained)
