"""SHOW of objects: queries over the system's own relations, written out."""

from __future__ import annotations

from everview.adapter.catalog.items import KINDS
from everview.adapter.contract import Result
from everview.adapter.execute.alterations import check_kind
from everview.adapter.execute.context import Context
from everview.adapter.execute.queries import run_query
from everview.adapter.results import RowList, text_columns
from everview.adapter.statements import nodes
from everview.adapter.statements.words import Path
from everview.adapter.surroundings import Surroundings
from everview.adapter.system.definitions import create
from everview.compute.sql.errors import SqlError
from everview.quoting import literal

SHOWN_CREATE = text_columns("name", "create_sql")
_KINDS = {
    "tables": ("table",),
    "views": ("view",),
    "materialized views": ("materialized-view",),
    "sources": ("source",),
    "sinks": ("sink",),
    "objects": ("table", "view", "materialized-view", "source", "sink", "subscription", "index"),
}
_SIMPLE = {
    "databases": "SELECT name FROM mz_catalog.mz_databases",
    "roles": "SELECT name FROM mz_catalog.mz_roles",
    "clusters": "SELECT name FROM mz_catalog.mz_clusters",
    "subscriptions": (
        'SELECT s.name, o.name AS "for", s.status, s.acknowledged_before, s.held, s.session_id'
        " FROM mz_internal.mz_subscription_statuses AS s JOIN mz_catalog.mz_objects AS o ON o.id = s.on_id"
    ),
    "sessions": "SELECT id, role_id, connected_at FROM mz_internal.mz_sessions",
}


def show_objects(context: Context, statement: nodes.ShowObjects) -> Result:
    """SHOW TABLES and its like."""
    return run_query(context, nodes.Query(objects_query(statement, context.around)))


def objects_query(statement: nodes.ShowObjects, around: Surroundings) -> str:
    """The query that a SHOW stands for."""
    if statement.what == "columns":
        inner, first = _columns(statement, around), "position"
    elif statement.what == "indexes":
        inner, first = _indexes(statement, around), "name"
    elif statement.what == "schemas":
        inner, first = _schemas(statement, around), "name"
    elif statement.what in _SIMPLE:
        inner, first = _SIMPLE[statement.what], "1"
    else:
        inner, first = _objects(statement, around), "name"
    shown = "name, nullable, type, comment" if statement.what == "columns" else "*"
    conditions = []
    if statement.like is not None:
        conditions.append(f"name LIKE {literal(statement.like)}")
    if statement.where is not None:
        conditions.append(f"({statement.where.strip()})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {shown} FROM ({inner}) AS objects{where} ORDER BY {first}"


def _objects(statement: nodes.ShowObjects, around: Surroundings) -> str:
    kinds = ", ".join(map(literal, _KINDS[statement.what]))
    kind = ", o.type" if statement.what == "objects" else ""
    return (
        f"SELECT o.name{kind}, coalesce(c.comment, '') AS comment FROM mz_catalog.mz_objects AS o"
        " LEFT JOIN mz_internal.mz_comments AS c ON c.id = o.id AND c.object_sub_id IS NULL"
        f" WHERE o.type IN ({kinds}) AND o.schema_id = {literal(_schema_id(statement.place, around))}"
    )


def _columns(statement: nodes.ShowObjects, around: Surroundings) -> str:
    if not statement.place:
        raise SqlError("42601", "SHOW COLUMNS needs the name of a relation", hint="SHOW COLUMNS FROM name")
    item = around.find(statement.place)
    if item is None:
        raise around.missing(statement.place)
    return (
        "SELECT k.name, k.position, k.nullable, k.type, coalesce(c.comment, '') AS comment"
        " FROM mz_catalog.mz_columns AS k LEFT JOIN mz_internal.mz_comments AS c"
        f" ON c.id = k.id AND c.object_sub_id = k.position WHERE k.id = {literal(item.id)}"
    )


def _indexes(statement: nodes.ShowObjects, around: Surroundings) -> str:
    where = ""
    if statement.on:
        where = f" WHERE i.on_id = {literal(around.relation(statement.on).id)}"
    elif statement.place:
        where = f" WHERE o.schema_id = {literal(_schema_id(statement.place, around))}"
    return (
        'SELECT i.name, o.name AS "on", i.key FROM mz_catalog.mz_indexes AS i'
        f" JOIN mz_catalog.mz_relations AS o ON o.id = i.on_id{where}"
    )


def _schemas(statement: nodes.ShowObjects, around: Surroundings) -> str:
    database = statement.place[-1] if statement.place else around.database
    found = around.catalog.database(database)
    if found is None:
        known = [each.name for each in around.catalog.databases.values()]
        raise around.catalog.missing("database", [database], known)
    return f"SELECT name FROM mz_catalog.mz_schemas WHERE database_id = {literal(found.id)} OR database_id IS NULL"


def _schema_id(place: Path, around: Surroundings) -> str:
    database = place[0] if len(place) > 1 else around.database
    name = place[-1] if place else next(iter(around.schemas), "public")
    schema = around.catalog.schema(database, name)
    if schema is None:
        known = [each.name for each in around.catalog.schemas_of(database)]
        raise around.catalog.missing("schema", [name], known)
    return schema.id


def show_create(context: Context, statement: nodes.ShowCreate) -> Result:
    """SHOW CREATE."""
    item = context.around.relation(statement.path)
    check_kind(item, KINDS[statement.kind])
    catalog = context.around.catalog
    return RowList(SHOWN_CREATE, [(catalog.shown(item), create(catalog, item))])
