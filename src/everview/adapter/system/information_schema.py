"""information_schema: the standard's own account of relations and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from everview.adapter.catalog.items import ColumnInfo, Item, MaterializedView, Source, Table
from everview.adapter.catalog.items import View as ViewItem
from everview.adapter.catalog.state import SYSTEM_SCHEMAS
from everview.adapter.system.definitions import definition
from everview.adapter.system.pg_catalog import visible_items
from everview.adapter.system.pg_types import type_name
from everview.adapter.system.relation import Row, SystemRelation, View, relations_of
from everview.compute.ir.types import Kind, SqlType

_BASE, _VIEW = ("BASE TABLE", "YES"), ("VIEW", "NO")  # table_type and is_insertable_into
_TABLE_TYPES: Mapping[type[Item], tuple[str, str]] = {
    Table: _BASE,
    Source: _BASE,
    ViewItem: _VIEW,
    MaterializedView: ("MATERIALIZED VIEW", "NO"),
}
_PRECISION = {Kind.INT2: 16, Kind.INT4: 32, Kind.INT8: 64, Kind.FLOAT4: 24, Kind.FLOAT8: 53}
_DATETIME = (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)


def _relations(view: View) -> Iterable[tuple[str, str, str, tuple[str, str], tuple[ColumnInfo, ...]]]:
    """Database, schema, name, type and columns of all relations."""
    from everview.adapter.system.registry import RELATIONS

    for item in visible_items(view):
        if type(item) in _TABLE_TYPES:
            yield (*view.around.catalog.full_name(item), _TABLE_TYPES[type(item)], item.columns)
    for (schema, name), relation in RELATIONS.items():
        infos = tuple(ColumnInfo(column, each) for column, each in relation.columns)
        yield (view.around.database, schema, name, _VIEW, infos)


def _tables(view: View) -> Iterable[Row]:
    for database, schema, name, (kind, insertable), _ in _relations(view):
        yield (database, schema, name, kind, None, None, None, None, None, insertable, "NO", None)


def _columns(view: View) -> Iterable[Row]:
    for database, schema, name, _, infos in _relations(view):
        for number, info in enumerate(infos):
            yield _column(database, schema, name, number + 1, info)


def _column(database: str, schema: str, name: str, number: int, info: ColumnInfo) -> Row:
    each = info.type
    numeric = each.kind is Kind.NUMERIC
    precision = (each.precision if each.constrained else None) if numeric else _PRECISION.get(each.kind)
    scale = (each.scale if each.constrained else None) if numeric else 0 if each.kind in _PRECISION else None
    radix = 10 if numeric else 2 if each.kind in _PRECISION else None
    return (
        *(database, schema, name, info.name, number, info.default, "YES" if info.nullable else "NO", _type(each)),
        *(None if each.kind in _DATETIME else each.length, None, precision, radix, scale, _digits(each)),
        *(database, "pg_catalog", type_name(each), str(number), "NO", "NO", None, "NEVER", None, "YES"),
    )


def _digits(sql_type: SqlType) -> int | None:
    """Of the seconds of a time, a timestamp or an interval."""
    if sql_type.kind not in _DATETIME:
        return None
    if sql_type.kind is Kind.DATE:
        return 0
    return 6 if sql_type.length is None else sql_type.length


def _type(sql_type: SqlType) -> str:
    return "ARRAY" if sql_type.kind is Kind.ARRAY else str(sql_type.kind.value)


def _views(view: View) -> Iterable[Row]:
    for item in visible_items(view):
        if isinstance(item, ViewItem):
            catalog = view.around.catalog
            yield (*catalog.full_name(item), definition(catalog, item), "NONE", "NO", "NO", "NO", "NO", "NO")


def _schemata(view: View) -> Iterable[Row]:
    database = view.around.database
    for name in SYSTEM_SCHEMAS:
        yield (database, name, "everview", None, None, None, None)
    for schema in view.around.catalog.schemas_of(database):
        yield (database, schema.name, schema.owner, None, None, None, None)


def _roles(view: View) -> Iterable[Row]:
    return [(role.name,) for role in view.around.catalog.roles.values()]


_relation = relations_of("information_schema")


RELATIONS: tuple[SystemRelation, ...] = (
    _relation(
        "tables",
        "table_catalog, table_schema, table_name, table_type, self_referencing_column_name, reference_generation,"
        " user_defined_type_catalog, user_defined_type_schema, user_defined_type_name, is_insertable_into, is_typed,"
        " commit_action text",
        _tables,
    ),
    _relation(
        "columns",
        "table_catalog, table_schema, table_name, column_name text, ordinal_position int4, column_default, is_nullable,"
        " data_type text, character_maximum_length, character_octet_length, numeric_precision, numeric_precision_radix,"
        " numeric_scale, datetime_precision int4, udt_catalog, udt_schema, udt_name, dtd_identifier,"
        " is_self_referencing, is_identity, identity_generation, is_generated, generation_expression,"
        " is_updatable text",
        _columns,
    ),
    _relation(
        "views",
        "table_catalog, table_schema, table_name, view_definition, check_option, is_updatable, is_insertable_into,"
        " is_trigger_updatable, is_trigger_deletable, is_trigger_insertable_into text",
        _views,
    ),
    _relation(
        "schemata",
        "catalog_name, schema_name, schema_owner, default_character_set_catalog, default_character_set_schema,"
        " default_character_set_name, sql_path text",
        _schemata,
    ),
    _relation("applicable_roles", "grantee, role_name, is_grantable text"),
    _relation("enabled_roles", "role_name text", _roles),
    _relation("information_schema_catalog_name", "catalog_name text", lambda view: [(view.around.database,)]),
    _relation(
        "key_column_usage",
        "constraint_catalog, constraint_schema, constraint_name, table_catalog, table_schema, table_name,"
        " column_name text, ordinal_position, position_in_unique_constraint int4",
    ),
    _relation(
        "table_constraints",
        "constraint_catalog, constraint_schema, constraint_name, table_catalog, table_schema, table_name,"
        " constraint_type, is_deferrable, initially_deferred, enforced, nulls_distinct text",
    ),
    _relation(
        "constraint_column_usage",
        "table_catalog, table_schema, table_name, column_name, constraint_catalog, constraint_schema,"
        " constraint_name text",
    ),
    _relation(
        "referential_constraints",
        "constraint_catalog, constraint_schema, constraint_name, unique_constraint_catalog, unique_constraint_schema,"
        " unique_constraint_name, match_option, update_rule, delete_rule text",
    ),
    _relation("check_constraints", "constraint_catalog, constraint_schema, constraint_name, check_clause text"),
    _relation("routines", "specific_catalog, specific_schema, specific_name, routine_catalog, routine_schema,"
              " routine_name, routine_type, data_type text"),
    _relation("triggers", "trigger_catalog, trigger_schema, trigger_name, event_manipulation, event_object_catalog,"
              " event_object_schema, event_object_table text"),
    _relation("sequences", "sequence_catalog, sequence_schema, sequence_name, data_type text"),
    _relation("table_privileges", "grantor, grantee, table_catalog, table_schema, table_name, privilege_type,"
              " is_grantable text"),
    _relation("role_table_grants", "grantor, grantee, table_catalog, table_schema, table_name, privilege_type,"
              " is_grantable text"),
    _relation("character_sets", "character_set_catalog, character_set_schema, character_set_name text"),
)  # fmt: skip
