"""What a source from PostgreSQL is defined by, and how the catalog keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from everview.compute.ir.types import Kind, SqlType
from everview.sources.contract import OwnTimeline, Spec
from everview.sources.postgres.tables import UpstreamColumn, UpstreamTable
from everview.storage.contract import GlobalId


@dataclass(frozen=True, slots=True)
class PostgresSource(Spec):
    """Tables of a publication, by their names here, read by a connection through a slot of the source's own."""

    connection: GlobalId
    publication: str
    slot: str
    tables: Mapping[str, UpstreamTable]
    progress: str  # what the relation with the position is called
    text_columns: tuple[tuple[str, ...], ...] = ()
    excluded: tuple[tuple[str, ...], ...] = ()


def to_json(spec: PostgresSource) -> dict[str, str]:
    """The spec as texts by name."""
    tables = {name: _table_to_json(table) for name, table in spec.tables.items()}
    return {
        "connection": spec.connection,
        "publication": spec.publication,
        "slot": spec.slot,
        "progress": spec.progress,
        "tables": json.dumps(tables),
        "columns": json.dumps([spec.text_columns, spec.excluded]),
    }


def from_json(kind: str, said: Mapping[str, str], timeline: OwnTimeline | None) -> PostgresSource:
    """The spec from texts by name."""
    tables = {name: _table_from_json(found) for name, found in json.loads(said["tables"]).items()}
    text, excluded = (tuple(map(tuple, each)) for each in json.loads(said["columns"]))
    own = said["connection"], said["publication"], said["slot"], tables, said["progress"], text, excluded
    return PostgresSource(kind, *own, timeline=timeline)


def _table_to_json(table: UpstreamTable) -> dict[str, Any]:
    columns = [
        [each.name, each.number, each.type_oid, each.modifier, _type_to_json(each.type)] for each in table.columns
    ]
    return {**asdict(table), "columns": columns}


def _table_from_json(found: Mapping[str, Any]) -> UpstreamTable:
    columns = tuple(
        UpstreamColumn(name, number, oid, modifier, _type_from_json(sql_type))
        for name, number, oid, modifier, sql_type in found["columns"]
    )
    return UpstreamTable(found["oid"], found["schema"], found["name"], columns, tuple(found["key"]), found["where"])


def _type_to_json(sql_type: SqlType) -> list[Any]:
    element = None if sql_type.element is None else _type_to_json(sql_type.element)
    return [sql_type.kind.name, sql_type.scale, sql_type.precision, sql_type.length, element, sql_type.constrained]


def _type_from_json(value: list[Any]) -> SqlType:
    kind, scale, precision, length, element, constrained = value
    inner = None if element is None else _type_from_json(element)
    return SqlType(Kind[kind], scale, precision, length, inner, constrained)
