"""SHOW of objects: queries over the system's own relations, written out."""

from __future__ import annotations

from everview.adapter.contract import Result
from everview.adapter.execute.alterations import check_kind
from everview.adapter.execute.context import Context
from everview.adapter.execute.queries import run_query
from everview.adapter.results import RowList, text_columns
from everview.adapter.statement_context import StatementContext
from everview.adapter.statements import nodes
from everview.adapter.statements.words import Path
from everview.adapter.system.definitions import create
from everview.compute.sql import compose
from everview.compute.sql.errors import SqlError
from everview.compute.sql.parse import Tree

SHOWN_CREATE = text_columns("name", "create_sql")
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
_OF_KIND = (
    "SELECT o.name, coalesce(c.comment, '') AS comment FROM mz_catalog.mz_objects AS o"
    " LEFT JOIN mz_internal.mz_comments AS c ON c.id = o.id AND c.object_sub_id IS NULL"
    " WHERE o.type = $1 AND o.schema_id = $2"
)
_OF_ANY_KIND = (
    "SELECT o.name, o.type, coalesce(c.comment, '') AS comment FROM mz_catalog.mz_objects AS o"
    " LEFT JOIN mz_internal.mz_comments AS c ON c.id = o.id AND c.object_sub_id IS NULL"
    " WHERE o.type IN ('table', 'view', 'materialized-view', 'source', 'sink', 'subscription', 'index', 'connection',"
    " 'secret')"
    " AND o.schema_id = $1"
)
_COLUMNS = (
    "SELECT k.name, k.position, k.nullable, k.type, coalesce(c.comment, '') AS comment"
    " FROM mz_catalog.mz_columns AS k LEFT JOIN mz_internal.mz_comments AS c"
    " ON c.id = k.id AND c.object_sub_id = k.position WHERE k.id = $1"
)
_INDEXES = (
    'SELECT i.name, o.name AS "on", i.key FROM mz_catalog.mz_indexes AS i'
    " JOIN mz_catalog.mz_relations AS o ON o.id = i.on_id WHERE $1 IN ('', i.on_id) AND $2 IN ('', o.schema_id)"
)
_SCHEMAS = "SELECT name FROM mz_catalog.mz_schemas WHERE database_id = $1 OR database_id IS NULL"


def show_objects(context: Context, statement: nodes.ShowObjects) -> Result:
    return run_query(context, nodes.Query(objects_query(statement, context.around)))


def objects_query(statement: nodes.ShowObjects, around: StatementContext) -> Tree:
    """The query that a SHOW stands for."""
    rows, values = _rows(statement, around)
    shown = ("name", "nullable", "type", "comment") if statement.what == "columns" else ()
    first = {"columns": "position"}.get(statement.what, "1" if statement.what in _SIMPLE else "name")
    return compose.filtered(rows, values, shown, first, like=statement.like, where=statement.where)


def _rows(statement: nodes.ShowObjects, around: StatementContext) -> tuple[str, list[str]]:
    """The rows before conditions: a query, and the values of its parameters."""
    what = statement.what
    if what == "columns":
        if not statement.place:
            raise SqlError("42601", "SHOW COLUMNS needs the name of a relation", hint="SHOW COLUMNS FROM name")
        return _COLUMNS, [around.relation(statement.place).id]
    if what == "indexes":
        on = around.relation(statement.on).id if statement.on else ""
        return _INDEXES, [on, _schema_id(statement.place, around) if statement.place and not on else ""]
    if what == "schemas":
        database = statement.place[-1] if statement.place else around.database
        return _SCHEMAS, [around.catalog.named_database(database).id]
    if what == "objects":
        return _OF_ANY_KIND, [_schema_id(statement.place, around)]
    if what in _SIMPLE:
        return _SIMPLE[what], []
    return _OF_KIND, [what.removesuffix("s").replace(" ", "-"), _schema_id(statement.place, around)]


def _schema_id(place: Path, around: StatementContext) -> str:
    database = place[0] if len(place) > 1 else around.database
    name = place[-1] if place else next(iter(around.schemas), "public")
    return around.catalog.named_schema(database, name).id


def show_create(context: Context, statement: nodes.ShowCreate) -> Result:
    item = context.around.relation(statement.path)
    check_kind(item, statement.kind)
    catalog = context.around.catalog
    return RowList(SHOWN_CREATE, [(catalog.shown(item), create(catalog, item))])
