"""Functions that look into the catalog: pg_get_viewdef, format_type, pg_table_is_visible and their like.

Plans refer to functions by key, and engines look keys up in the registry, so these functions are registered there.
Their names are not, because only a session can call them. They read the catalog of the running statement, which
`looking_into` sets. They cannot be part of a maintained view, and do not run on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

from everview.adapter.catalog.items import Index, Item, MaterializedView, View, oid_of
from everview.adapter.catalog.state import SYSTEM_SCHEMA_IDS, Catalog
from everview.adapter.statement_context import StatementContext
from everview.adapter.statements.words import Words
from everview.adapter.system import definitions
from everview.adapter.system.pg_types import ALL, DISPLAY, format_type
from everview.compute.functions.contract import Failure, Function
from everview.compute.functions.naming import key_of
from everview.compute.functions.registry import register
from everview.compute.functions.resolve import choose
from everview.compute.functions.spark_sql import not_on_spark
from everview.compute.ir.scalar import Call
from everview.compute.ir.types import BOOLEAN, FLOAT8, INT4, INT8, TEXT, SqlType
from everview.compute.sql.coerce import coerce, resolving
from everview.compute.sql.errors import SqlError
from everview.storage.contract import GlobalId

SYSTEM_ROLE = 10  # the owner of system objects
_UTF8 = 6  # PostgreSQL's number of the encoding
SYSTEM_OID_FIRST = 10_000  # of system relations, which have no id
# Numbers that clients know by heart.
_KNOWN_OIDS = {
    **{"pg_type": 1247, "pg_attribute": 1249, "pg_proc": 1255, "pg_class": 1259, "pg_authid": 1260},
    **{"pg_database": 1262, "pg_constraint": 2606, "pg_index": 2610, "pg_namespace": 2615, "pg_trigger": 2620},
}
_around: ContextVar[StatementContext | None] = ContextVar("everview_catalog", default=None)
_by_name: dict[str, list[Function]] = {}


@contextmanager
def looking_into(around: StatementContext) -> Iterator[None]:
    """While inside, these functions answer from this catalog."""
    token = _around.set(around)
    try:
        yield
    finally:
        _around.reset(token)


def call(name: str, args: Sequence[Any], position: int | None) -> Call | None:
    """Resolve a call of one of these functions. None if no function has this name."""
    overloads = _by_name.get(name)
    if overloads is None:
        return None
    with resolving(position):
        function, wanted = choose(name, [arg.type for arg in args], overloads)
    coerced = tuple(coerce(arg, to, "implicit", position) for arg, to in zip(args, wanted, strict=True))
    assert isinstance(function.result, SqlType)
    return Call(function.key, coerced, function.result)


def _here() -> StatementContext:
    found = _around.get()
    if found is None:
        raise Failure("55000", "the catalog can be looked into only by a statement of a session")
    return found


def _add(
    name: str, args: tuple[SqlType, ...], result: SqlType, evaluate: Callable[..., Any], *, strict: bool = True
) -> str:
    key = key_of(name, args)
    function = Function(key, name, args, result, evaluate, not_on_spark(name), strict=strict, volatile=True)
    register(function)
    _by_name.setdefault(name, []).append(function)
    return function.key


# Objects by number and by name


def _item(oid: int) -> tuple[Catalog, Item] | None:
    catalog = _here().catalog
    number = oid - 20_000
    item = catalog.items.get(f"u{number}")
    return None if item is None else (catalog, item)


def _relation_oid(around: StatementContext, text: str) -> int | None:
    path = Words(text).path()
    found = around.find_any(path)
    if found is not None:
        return oid_of(found.id)
    places = [path[-2]] if len(path) > 1 else around.all_schemas
    return next((oid for place in places if (oid := _system_oids().get((place, path[-1])))), None)


def _type_oid(around: StatementContext, text: str) -> int | None:
    return next((each.oid for each in ALL if text in (each.name, DISPLAY.get(each.oid))), None)


def _schema_oid(around: StatementContext, text: str) -> int | None:
    schema = around.catalog.schema(around.database, Words(text).path()[-1])
    return None if schema is None else schema_oid(schema.id)


def _role_oid(around: StatementContext, text: str) -> int | None:
    role = around.catalog.role(Words(text).path()[-1])
    return None if role is None else oid_of(role.id)


@dataclass(frozen=True, slots=True)
class Named:
    """Objects that a cast of a text to `oid`, or to one of its aliases, finds by their names."""

    noun: str
    find: Callable[[StatementContext, str], int | None] = lambda around, text: None
    missing: str = "42704"  # the SQLSTATE for a name that nothing has
    known: Callable[[StatementContext], Iterable[str]] = lambda around: ()  # the names to suggest
    is_number: bool = False  # a text is the number itself


NAMED: Mapping[str, Named] = {
    "regclass": Named("relation", _relation_oid, "42P01", StatementContext.names),
    "regtype": Named("type", _type_oid),
    "regnamespace": Named("schema", _schema_oid, "3F000"),
    "regrole": Named("role", _role_oid),
    **{name: Named(name) for name in ("regprocedure", "regoper", "regoperator")},
    "oid": Named("oid", is_number=True),
}


def schema_oid(id: str) -> int:
    return {"x1": 11, "x2": 13_000}.get(id) or (16_600 + int(id[1:]) if id.startswith("x") else oid_of(id))


def _system_oids() -> dict[tuple[str, str], int]:
    from everview.adapter.system.registry import RELATIONS

    return _numbered(tuple(RELATIONS))


@cache
def _numbered(paths: tuple[tuple[str, str], ...]) -> dict[tuple[str, str], int]:
    numbered = {path: SYSTEM_OID_FIRST + number for number, path in enumerate(paths)}
    return {**numbered, **{("pg_catalog", name): oid for name, oid in _KNOWN_OIDS.items()}}


def system_oid(schema: str, name: str) -> int:
    return _system_oids()[schema, name]


def _class_name(oid: int) -> str:
    found = _item(oid)
    if found is not None:
        return found[1].name if _visible(oid) else ".".join(found[0].full_name(found[1])[1:])
    return next((path[1] for path, number in _system_oids().items() if number == oid), str(oid))


def _visible(oid: int) -> bool:
    found = _item(oid)
    around = _here()
    if found is None:
        schema = next((path[0] for path, number in _system_oids().items() if number == oid), None)
        return schema == "pg_catalog"  # tools leave this schema out of their lists, and know no other system schema
    return around.find_any([found[1].name]) == found[1]


def _to_class(text: str) -> int | None:
    return _relation_oid(_here(), text)


# What the functions compute


def _view_definition(oid: int, *_: Any) -> str | None:
    found = _item(oid)
    if found is None or not isinstance(found[1], View | MaterializedView):
        return None
    return f" {definitions.definition(found[0], found[1])};"


def _index_definition(oid: int, column: int = 0, *_: Any) -> str | None:
    found = _item(oid)
    if found is None or not isinstance(found[1], Index):
        return None
    if column:
        keys = found[1].keys
        return keys[column - 1] if 1 <= column <= len(keys) else ""
    return definitions.index_definition(found[0], found[1])


def _role_name(oid: int) -> str:
    if oid == SYSTEM_ROLE:
        return "system"
    roles = _here().catalog.roles.values()
    return next((role.name for role in roles if oid_of(role.id) == oid), f"unknown (OID={oid})")


def _schema_name(oid: int) -> str:
    catalog = _here().catalog
    for schema in catalog.schemas.values():
        if oid_of(schema.id) == oid:
            return schema.name
    return next((name for name, id in SYSTEM_SCHEMA_IDS.items() if schema_oid(id) == oid), str(oid))


def _comment(oid: int, column: int = 0) -> str | None:
    found = _item(oid)
    if found is not None:
        return found[0].comments.get((found[1].id, column))
    catalog = _here().catalog
    return next((text for (id, place), text in catalog.comments.items() if place == 0 and oid_of(id) == oid), None)


def _configured(name: str, value: str, local: bool) -> str:
    configure = _here().configure
    if configure is None:
        raise Failure("55000", "settings can be changed only by a statement of a session")
    try:
        return configure(name, value, local)
    except SqlError as error:
        raise Failure(error.sqlstate, error.message) from error


def _paused(seconds: float) -> str:
    pause = _here().pause
    if pause is None:
        raise Failure("55000", "only a statement of a session can sleep")
    pause(seconds)
    return ""


def _no_text(*_: Any) -> None:
    return None


def _setting(name: str, missing_ok: bool = False) -> str | None:
    settings = _here().settings
    value = settings.get(name.lower())
    if value is None and not missing_ok:
        raise Failure("42704", f'unrecognized configuration parameter "{name}"')
    return value


# Sizes: of everything that is stored, including the past that is kept


def _bytes(id: GlobalId) -> int:
    size_of = _here().size_of
    return 0 if size_of is None else size_of(id)


def _relation_size(oid: int, _fork: str = "main") -> int:
    found = _item(oid)
    return 0 if found is None else _bytes(found[1].id)


def _indexes_size(oid: int) -> int:
    found = _item(oid)
    return 0 if found is None else sum(_bytes(each.id) for each in found[0].indexes_on(found[1].id))


def _database_size(which: int | str) -> int:
    catalog = _here().catalog
    found = [each for each in catalog.databases.values() if which in (each.name, oid_of(each.id))]
    if not found:
        raise Failure("3D000", f'database "{which}" does not exist')
    schemas = {each.id for each in catalog.schemas.values() if each.database == found[0].id}
    return sum(_bytes(item.id) for item in catalog.items.values() if item.schema in schemas)


def _pretty(size: int) -> str:
    """A number of bytes in the unit that leaves at most five digits, as PostgreSQL shows it."""
    value, unit = abs(size), "bytes"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if value < 10 * 1024:
            break
        value, unit = (value + 512) // 1024, larger
    return f"{'-' if size < 0 else ''}{value} {unit}"


_add("format_type", (INT8, INT4), TEXT, format_type, strict=False)
for _more in ((), (BOOLEAN,)):
    _add("pg_get_viewdef", (INT8, *_more), TEXT, _view_definition)
    _add("pg_get_viewdef", (TEXT, *_more), TEXT, lambda text, *_: _view_definition(_to_class(text) or 0))
    _add("pg_get_expr", (TEXT, INT8, *_more), TEXT, lambda text, *_: text)
    _add("pg_get_constraintdef", (INT8, *_more), TEXT, _no_text)
_add("pg_get_indexdef", (INT8,), TEXT, _index_definition)
_add("pg_get_indexdef", (INT8, INT4, BOOLEAN), TEXT, _index_definition)
_add("pg_get_userbyid", (INT8,), TEXT, _role_name)
_add("obj_description", (INT8,), TEXT, _comment)
_add("obj_description", (INT8, TEXT), TEXT, lambda oid, _: _comment(oid))
_add("shobj_description", (INT8, TEXT), TEXT, lambda oid, _: _comment(oid))
_add("col_description", (INT8, INT4), TEXT, _comment)
_add("pg_table_is_visible", (INT8,), BOOLEAN, _visible)
for _name in (
    *("type", "function", "operator", "opclass", "opfamily", "collation", "conversion", "statistics_obj"),
    *("ts_config", "ts_dict", "ts_parser", "ts_template"),
):
    _add(f"pg_{_name}_is_visible", (INT8,), BOOLEAN, lambda _: True)
_add("pg_sleep", (FLOAT8,), TEXT, _paused)
_add("pg_advisory_unlock_all", (), TEXT, lambda: "")  # nobody can hold any
_add("set_config", (TEXT, TEXT, BOOLEAN), TEXT, _configured)
_add("pg_encoding_to_char", (INT4,), TEXT, lambda number: "UTF8" if number == _UTF8 else "")
_add("pg_char_to_encoding", (TEXT,), INT4, lambda name: _UTF8 if name.upper() in ("UTF8", "UNICODE") else -1)
_add("getdatabaseencoding", (), TEXT, lambda: "UTF8")
_add("current_setting", (TEXT,), TEXT, _setting)
_add("current_setting", (TEXT, BOOLEAN), TEXT, _setting)
_add("to_regclass", (TEXT,), INT8, _to_class)
_add("to_regtype", (TEXT,), INT8, lambda text: _type_oid(_here(), text))
_add("regclass_name", (INT8,), TEXT, _class_name)
_add("regtype_name", (INT8,), TEXT, lambda oid: format_type(oid, None))
_add("regnamespace_name", (INT8,), TEXT, _schema_name)
_add("regrole_name", (INT8,), TEXT, _role_name)
for _name in ("regproc", "regprocedure", "regoper", "regoperator"):
    _add(f"{_name}_name", (INT8,), TEXT, str)
_add("regproc_name", (TEXT,), TEXT, str)
_add("to_regproc", (TEXT,), TEXT, str)
_add("pg_relation_size", (INT8,), INT8, _relation_size)
_add("pg_relation_size", (INT8, TEXT), INT8, _relation_size)
_add("pg_table_size", (INT8,), INT8, _relation_size)
_add("pg_indexes_size", (INT8,), INT8, _indexes_size)
_add("pg_total_relation_size", (INT8,), INT8, lambda oid: _relation_size(oid) + _indexes_size(oid))
for _given in (INT8, TEXT):
    _add("pg_database_size", (_given,), INT8, _database_size)
    _add("pg_tablespace_size", (_given,), INT8, lambda _: sum(_bytes(id) for id in _here().catalog.items))
_add("pg_relation_is_publishable", (INT8,), BOOLEAN, lambda _: False)
for _name in (
    *("partkeydef", "partition_constraintdef", "ruledef", "triggerdef", "statisticsobjdef_columns", "function_result"),
    *("function_arguments", "function_identity_arguments", "function_sqlbody", "functiondef", "statisticsobjdef"),
):
    _add(f"pg_get_{_name}", (INT8,), TEXT, _no_text)
_add("pg_get_triggerdef", (INT8, BOOLEAN), TEXT, _no_text)
_add("pg_get_serial_sequence", (TEXT, TEXT), TEXT, _no_text)
_add("pg_size_pretty", (INT8,), TEXT, _pretty)
_add("pg_tablespace_location", (INT8,), TEXT, lambda _: "")
for _of in ("table", "schema", "database", "column", "any_column", "function", "sequence"):
    for _who in ((), (TEXT,)):
        for _what in (INT8, TEXT):
            _add(f"has_{_of}_privilege", (*_who, _what, TEXT), BOOLEAN, lambda *_: True)
