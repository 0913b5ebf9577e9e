"""pg_catalog: what psql, drivers and tools ask PostgreSQL about its relations, types and roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from everview.adapter.catalog.items import NO_RELATIONS, Index, Item, MaterializedView, Source, Table, oid_of
from everview.adapter.catalog.items import View as ViewItem
from everview.adapter.catalog.state import SYSTEM_SCHEMA_IDS
from everview.adapter.settings import SETTINGS
from everview.adapter.statement_context import timestamp_of
from everview.adapter.system.definitions import definition
from everview.adapter.system.functions import SYSTEM_ROLE as _OWNER
from everview.adapter.system.functions import schema_oid, system_oid
from everview.adapter.system.pg_empty import EMPTY
from everview.adapter.system.pg_types import ALL, DOMAINS, VECTOR_ELEMENTS, PgType, type_length, type_modifier, type_oid
from everview.adapter.system.relation import Row, SystemRelation, View, relations_of
from everview.compute.ir.types import Kind, SqlType


class _RelationKind(NamedTuple):
    """What pg_class says of a kind of relation: its letter, its access method, and how rows are told apart."""

    relkind: str
    access_method: int
    replica_identity: str


_TABLE, _VIEW = _RelationKind("r", 2, "d"), _RelationKind("v", 0, "n")
_KINDS: Mapping[type[Item], _RelationKind] = {  # others are tables
    ViewItem: _VIEW,
    MaterializedView: _RelationKind("m", 2, "d"),
    Index: _RelationKind("i", 403, "n"),
}
_CLASS, _TYPE, _NAMESPACE, _RELATION_DATABASE = 1259, 1247, 2615, 1262


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of a relation, as pg_attribute lists it."""

    relation: int
    name: str
    number: int
    type: SqlType
    nullable: bool = True
    default: str | None = None


def visible_items(view: View) -> Iterator[Item]:
    """The items of the database that the session is in."""
    catalog = view.around.catalog
    database = catalog.database(view.around.database)
    for item in catalog.items.values():
        # PostgreSQL has no word for what is delivered elsewhere.
        hidden = isinstance(item, NO_RELATIONS)
        if not hidden and database is not None and catalog.schemas[item.schema].database == database.id:
            yield item


def attributes(view: View) -> Iterator[Attribute]:
    """All columns of all relations, the system's among them."""
    from everview.adapter.system.registry import RELATIONS

    for (schema, name), relation in RELATIONS.items():
        oid = system_oid(schema, name)
        for number, (column, each) in enumerate(relation.columns):
            yield Attribute(oid, column, number + 1, each)
    for item in visible_items(view):
        if isinstance(item, Index):
            yield from _index_attributes(
                item, view.around.catalog.items[item.on], view.coordinator.indexes.key_types(item.id)
            )
        for number, info in enumerate(item.columns):
            yield Attribute(oid_of(item.id), info.name, number + 1, info.type, info.nullable, info.default)


def _index_attributes(item: Index, on: Item, types: tuple[SqlType, ...]) -> Iterator[Attribute]:
    expressions = 0
    for number, (key, each) in enumerate(zip(item.keys, types, strict=False)):  # no types: it is being dropped
        name = key.strip('"')
        if name not in on.names:
            name = f"expr{expressions or ''}"
            expressions += 1
        yield Attribute(oid_of(item.id), name, number + 1, each)


def _owner(view: View, name: str) -> int:
    role = view.around.catalog.role(name)
    return _OWNER if role is None else oid_of(role.id)


def _classes(view: View) -> Iterable[Row]:
    from everview.adapter.system.registry import RELATIONS

    catalog = view.around.catalog
    for (schema, name), relation in RELATIONS.items():
        schema_id = SYSTEM_SCHEMA_IDS[schema]
        oid, width = system_oid(schema, name), len(relation.columns)
        yield _class(oid, name, schema_oid(schema_id), owner=_OWNER, kind=_VIEW, width=width, indexed=False)
    for item in visible_items(view):
        indexed = bool(catalog.indexes_on(item.id))
        width = len(item.keys) if isinstance(item, Index) else len(item.columns)
        owner, kind = _owner(view, item.owner), _KINDS.get(type(item), _TABLE)
        oid, schema_number = oid_of(item.id), oid_of(item.schema)
        yield _class(oid, item.name, schema_number, owner=owner, kind=kind, width=width, indexed=indexed)


def _class(oid: int, name: str, schema: int, *, owner: int, kind: _RelationKind, width: int, indexed: bool) -> Row:
    flags = (False, False, False, False, False, False, True)
    return (
        *(oid, name, schema, 0, 0, owner, kind.access_method, oid, 0, 0, -1.0, 0, 0),
        *(indexed, False, "p", kind.relkind, width, 0, *flags, kind.replica_identity, False, 0, 0, 0, None, None, None),
    )


def _attribute_rows(view: View) -> Iterable[Row]:
    for each in attributes(view):
        length = type_length(each.type)
        storage = "m" if each.type.kind is Kind.NUMERIC else "p" if length > 0 else "x"
        yield (
            *(each.relation, each.name, type_oid(each.type), -1, length, each.number, 0, -1),
            *(type_modifier(each.type), length in (1, 2, 4, 8), storage, "i", not each.nullable),
            *(each.default is not None, False, "", "", False, True, 0, 0, "", None, None, None, None),
        )


def _defaults(view: View) -> Iterable[Row]:
    for each in attributes(view):
        if each.default is not None:
            yield (each.relation * 2_000 + each.number, each.relation, each.number, each.default)


def _namespaces(view: View) -> Iterable[Row]:
    for name, id in SYSTEM_SCHEMA_IDS.items():
        yield (schema_oid(id), name, _OWNER, None)
    for schema in view.around.catalog.schemas_of(view.around.database):
        yield (oid_of(schema.id), schema.name, _owner(view, schema.owner), None)


def _types(view: View) -> Iterable[Row]:
    for each in ALL:
        yield _type(each, VECTOR_ELEMENTS.get(each.oid, 0))
        if each.array_oid:
            yield _type(PgType(each.array_oid, f"_{each.name}", 0, -1, "A"), each.oid)


def _type(pg_type: PgType, element: int) -> Row:
    oid, name, array, length, category = pg_type
    by_value, below = length in (1, 2, 4, 8), DOMAINS.get(oid, 0)
    kind = "d" if below else "b"
    collation = 100 if category == "S" else 0
    return (
        *(oid, name, 11, _OWNER, length, by_value, kind, category, False, True, ",", 0, element, array),
        *(f"{name}in", f"{name}out", f"{name}recv", f"{name}send", "-", "-", "-", "i", "x" if length < 0 else "p"),
        *(False, below, -1, 0, collation, None, None, None, "array_subscript_handler" if element else "-"),
    )


def _indexes(view: View) -> Iterable[Row]:
    catalog = view.around.catalog
    for item in visible_items(view):
        if not isinstance(item, Index):
            continue
        on = catalog.items[item.on]
        names = [key.strip('"') for key in item.keys]
        keys = [on.names.index(name) + 1 if name in on.names else 0 for name in names]
        expressions = ", ".join(key for key, place in zip(item.keys, keys, strict=True) if not place) or None
        width = len(keys)
        yield (
            *(oid_of(item.id), oid_of(item.on), width, width, False, False, False, False, True, False, True, False),
            *(True, True, False, keys, [0] * width, [0] * width, [0] * width, expressions, None),
        )


def _databases(view: View) -> Iterable[Row]:
    for each in view.around.catalog.databases.values():
        owner = _owner(view, each.owner)
        yield (oid_of(each.id), each.name, owner, 6, "c", False, True, -1, 0, 0, 1663, "C", "C", None, None, None, None)


def _roles(view: View) -> Iterable[Row]:
    for each in view.around.catalog.roles.values():
        power = each.superuser
        yield (
            *(oid_of(each.id), each.name, power, True, power, power, each.login, False, -1),
            *("********", None, power, None),
        )


def _users(view: View) -> Iterable[Row]:
    for each in view.around.catalog.roles.values():
        yield (each.name, oid_of(each.id), each.superuser, each.superuser, False, False, "********", None, None)


def _descriptions(view: View) -> Iterable[Row]:
    catalog = view.around.catalog
    for (id, column), text in catalog.comments.items():
        kind = _CLASS if id in catalog.items else _NAMESPACE if id in catalog.schemas else 0
        if kind:
            yield (oid_of(id), kind, column, text)


def _shared_descriptions(view: View) -> Iterable[Row]:
    catalog = view.around.catalog
    for (id, _), text in catalog.comments.items():
        if id in catalog.databases:
            yield (oid_of(id), _RELATION_DATABASE, text)


def _depends(view: View) -> Iterable[Row]:
    for item in visible_items(view):
        for each in item.depends:
            yield (_CLASS, oid_of(item.id), 0, _CLASS, oid_of(each), 0, "n")


def _tables(view: View) -> Iterable[Row]:
    catalog = view.around.catalog
    for item in visible_items(view):
        if isinstance(item, Table | Source):
            _, schema, name = catalog.full_name(item)
            yield (schema, name, item.owner, None, bool(catalog.indexes_on(item.id)), False, False, False)


def _views(view: View) -> Iterable[Row]:
    for item in visible_items(view):
        if isinstance(item, ViewItem):
            _, schema, name = view.around.catalog.full_name(item)
            yield (schema, name, item.owner, definition(view.around.catalog, item))


def _matviews(view: View) -> Iterable[Row]:
    catalog = view.around.catalog
    for item in visible_items(view):
        if isinstance(item, MaterializedView):
            _, schema, name = catalog.full_name(item)
            yield (schema, name, item.owner, None, bool(catalog.indexes_on(item.id)), True, definition(catalog, item))


def _index_list(view: View) -> Iterable[Row]:
    from everview.adapter.system.definitions import index_definition

    catalog = view.around.catalog
    for item in visible_items(view):
        if isinstance(item, Index):
            _, schema, on = catalog.full_name(catalog.items[item.on])
            yield (schema, on, item.name, None, index_definition(catalog, item))


def _settings(view: View) -> Iterable[Row]:
    for name, each in sorted(SETTINGS.items()):
        value = view.around.settings.get(name, each.default)
        yield (each.name, value, None, "everview", each.description, "user", "string", "session", each.default, value)


def _activity(view: View) -> Iterable[Row]:
    catalog = view.around.catalog
    for each in view.coordinator.sessions():
        database = catalog.database(each.database)
        state = "active" if each.running else "idle"
        yield (
            *(oid_of(database.id) if database else 0, each.database, each.number, _owner(view, each.user), each.user),
            *(each.application, None, timestamp_of(each.connected_at_ms), state, each.running or "", "client backend"),
        )


_relation = relations_of("pg_catalog")
_ROLES = (
    "oid oid, rolname text, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication bool,"
    " rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool, rolconfig text[]"
)


RELATIONS: tuple[SystemRelation, ...] = (
    _relation(
        "pg_class",
        "oid oid, relname text, relnamespace, reltype, reloftype, relowner, relam, relfilenode, reltablespace"
        " oid, relpages int4, reltuples float4, relallvisible int4, reltoastrelid oid, relhasindex,"
        " relisshared bool, relpersistence, relkind char, relnatts, relchecks int2, relhasrules,"
        " relhastriggers, relhassubclass, relrowsecurity, relforcerowsecurity, relhasoids, relispopulated"
        " bool, relreplident char, relispartition bool, relrewrite, relfrozenxid, relminmxid oid, relacl,"
        " reloptions text[], relpartbound text",
        _classes,
    ),
    _relation(
        "pg_attribute",
        "attrelid oid, attname text, atttypid oid, attstattarget int4, attlen, attnum int2, attndims,"
        " attcacheoff, atttypmod int4, attbyval bool, attstorage, attalign char, attnotnull, atthasdef,"
        " atthasmissing bool, attidentity, attgenerated char, attisdropped, attislocal bool, attinhcount int4,"
        " attcollation oid, attcompression char, attacl, attoptions, attfdwoptions text[], attmissingval text",
        _attribute_rows,
    ),
    _relation("pg_attrdef", "oid, adrelid oid, adnum int2, adbin text", _defaults),
    _relation("pg_namespace", "oid oid, nspname text, nspowner oid, nspacl text[]", _namespaces),
    _relation(
        "pg_type",
        "oid oid, typname text, typnamespace, typowner oid, typlen int2, typbyval bool, typtype, typcategory"
        " char, typispreferred, typisdefined bool, typdelim char, typrelid, typelem, typarray oid, typinput,"
        " typoutput, typreceive, typsend, typmodin, typmodout, typanalyze text, typalign, typstorage char,"
        " typnotnull bool, typbasetype oid, typtypmod, typndims int4, typcollation oid, typdefaultbin,"
        " typdefault text, typacl text[], typsubscript text",
        _types,
    ),
    _relation(
        "pg_index",
        "indexrelid, indrelid oid, indnatts, indnkeyatts int2, indisunique, indnullsnotdistinct,"
        " indisprimary, indisexclusion, indimmediate, indisclustered, indisvalid, indcheckxmin, indisready,"
        " indislive, indisreplident bool, indkey int2vector, indcollation, indclass oidvector, indoption int2vector,"
        " indexprs, indpred text",
        _indexes,
    ),
    _relation(
        "pg_database",
        "oid oid, datname text, datdba oid, encoding int4, datlocprovider char, datistemplate, datallowconn"
        " bool, datconnlimit int4, datfrozenxid, datminmxid, dattablespace oid, datcollate, datctype,"
        " daticulocale, daticurules, datcollversion text, datacl text[]",
        _databases,
    ),
    _relation("pg_roles", _ROLES, _roles),
    _relation("pg_authid", _ROLES, _roles),
    _relation(
        "pg_user",
        "usename text, usesysid oid, usecreatedb, usesuper, userepl, usebypassrls bool, passwd text, valuntil"
        " timestamptz, useconfig text[]",
        _users,
    ),
    _relation("pg_description", "objoid, classoid oid, objsubid int4, description text", _descriptions),
    _relation("pg_shdescription", "objoid, classoid oid, description text", _shared_descriptions),
    _relation(
        "pg_depend",
        "classid, objid oid, objsubid int4, refclassid, refobjid oid, refobjsubid int4, deptype char",
        _depends,
    ),
    _relation(
        "pg_am",
        "oid oid, amname, amhandler text, amtype char",
        lambda _: [(2, "heap", "", "t"), (403, "btree", "", "i")],
    ),
    _relation(
        "pg_collation",
        "oid oid, collname text, collnamespace, collowner oid, collprovider char, collisdeterministic bool,"
        " collencoding int4, collcollate, collctype, colliculocale, collicurules, collversion text",
        lambda _: [(100, "default", 11, _OWNER, "d", True, -1, "C", "C", None, None, None)],
    ),
    _relation(
        "pg_tablespace",
        "oid oid, spcname text, spcowner oid, spcacl, spcoptions text[]",
        lambda _: [(1663, "pg_default", _OWNER, None, None)],
    ),
    _relation(
        "pg_tables",
        "schemaname, tablename, tableowner, tablespace text, hasindexes, hasrules, hastriggers, rowsecurity bool",
        _tables,
    ),
    _relation("pg_views", "schemaname, viewname, viewowner, definition text", _views),
    _relation(
        "pg_matviews",
        "schemaname, matviewname, matviewowner, tablespace text, hasindexes, ispopulated bool, definition text",
        _matviews,
    ),
    _relation("pg_indexes", "schemaname, tablename, indexname, tablespace, indexdef text", _index_list),
    _relation(
        "pg_settings",
        "name, setting, unit, category, short_desc, context, vartype, source, boot_val, reset_val text",
        _settings,
    ),
    _relation(
        "pg_stat_activity",
        "datid oid, datname text, pid int4, usesysid oid, usename, application_name, client_addr text,"
        " backend_start timestamptz, state, query, backend_type text",
        _activity,
    ),
    *(_relation(name, text) for name, text in EMPTY.items()),
)
