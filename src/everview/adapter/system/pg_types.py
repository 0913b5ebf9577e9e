"""Types under PostgreSQL's numbers and names, as drivers and tools know them."""

from __future__ import annotations

from typing import NamedTuple

from everview.compute.ir.types import Kind, SqlType


class PgType(NamedTuple):
    """A type as pg_type lists it. `typlen` is -1 where values have no fixed size."""

    oid: int
    name: str
    array_oid: int
    typlen: int
    category: str


_TYPES: dict[Kind, PgType] = {
    Kind.BOOLEAN: PgType(16, "bool", 1000, 1, "B"),
    Kind.BYTEA: PgType(17, "bytea", 1001, -1, "U"),
    Kind.INT8: PgType(20, "int8", 1016, 8, "N"),
    Kind.INT2: PgType(21, "int2", 1005, 2, "N"),
    Kind.INT4: PgType(23, "int4", 1007, 4, "N"),
    Kind.TEXT: PgType(25, "text", 1009, -1, "S"),
    Kind.FLOAT4: PgType(700, "float4", 1021, 4, "N"),
    Kind.FLOAT8: PgType(701, "float8", 1022, 8, "N"),
    Kind.CHAR: PgType(1042, "bpchar", 1014, -1, "S"),
    Kind.VARCHAR: PgType(1043, "varchar", 1015, -1, "S"),
    Kind.DATE: PgType(1082, "date", 1182, 4, "D"),
    Kind.TIME: PgType(1083, "time", 1183, 8, "D"),
    Kind.TIMESTAMP: PgType(1114, "timestamp", 1115, 8, "D"),
    Kind.TIMESTAMPTZ: PgType(1184, "timestamptz", 1185, 8, "D"),
    Kind.INTERVAL: PgType(1186, "interval", 1187, 16, "T"),
    Kind.NUMERIC: PgType(1700, "numeric", 1231, -1, "N"),
    Kind.UUID: PgType(2950, "uuid", 2951, 16, "U"),
    Kind.JSONB: PgType(3802, "jsonb", 3807, -1, "U"),
    Kind.MZ_TIMESTAMP: PgType(16_552, "mz_timestamp", 16_553, 8, "N"),
    Kind.UNKNOWN: PgType(705, "unknown", 0, -2, "X"),
}
# mz_timestamp is a domain over bigint to PostgreSQL's clients: what knows nothing of it reads numbers.
DOMAINS: dict[int, int] = {_TYPES[Kind.MZ_TIMESTAMP].oid: _TYPES[Kind.INT8].oid}
# Types of PostgreSQL's catalogs that have no values of their own here: oid and its like are int8, name and char text.
_ALIASES = (
    PgType(18, "char", 1002, 1, "Z"),
    PgType(19, "name", 1003, 64, "S"),
    PgType(22, "int2vector", 1006, -1, "A"),
    PgType(30, "oidvector", 1013, -1, "A"),
    PgType(26, "oid", 1028, 4, "N"),
    PgType(24, "regproc", 1008, 4, "N"),
    PgType(2205, "regclass", 2210, 4, "N"),
    PgType(2206, "regtype", 2211, 4, "N"),
)
VECTOR_ELEMENTS = {22: 21, 30: 26}
ALL: tuple[PgType, ...] = (*_TYPES.values(), *_ALIASES)
DISPLAY: dict[int, str] = {
    **{each.oid: kind.value for kind, each in _TYPES.items()},
    **{each.oid: f'"{each.name}"' if each.name == "char" else each.name for each in _ALIASES},
}
ARRAY_ELEMENTS: dict[int, int] = {each.array_oid: each.oid for each in ALL if each.array_oid}


_PRECISE = frozenset(_TYPES[kind].oid for kind in (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL))
_ALL_FIELDS = 0x7FFF  # of an interval: years to seconds


def type_oid(sql_type: SqlType) -> int:
    if sql_type.alias is not None:
        return next(each.oid for each in _ALIASES if each.name == sql_type.alias)
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        return _TYPES[sql_type.element.kind].array_oid if sql_type.element.kind is not Kind.ARRAY else 1009
    return _TYPES[sql_type.kind].oid


def type_name(sql_type: SqlType) -> str:
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        return "_" + type_name(sql_type.element)
    return _TYPES[sql_type.kind].name


def type_length(sql_type: SqlType) -> int:
    """The size of its values in bytes, -1 if it varies."""
    return -1 if sql_type.kind is Kind.ARRAY else _TYPES[sql_type.kind].typlen


def type_modifier(sql_type: SqlType) -> int:
    """The modifiers of a type in PostgreSQL's encoding. -1 for a type without modifiers."""
    if sql_type.kind is Kind.ARRAY and sql_type.element is not None:
        return type_modifier(sql_type.element)
    if sql_type.kind is Kind.NUMERIC and sql_type.constrained:
        return ((sql_type.precision << 16) | sql_type.scale) + 4
    if sql_type.length is None:
        return -1
    if sql_type.kind is Kind.INTERVAL:
        return _ALL_FIELDS << 16 | sql_type.length
    return sql_type.length + 4 if sql_type.kind in (Kind.VARCHAR, Kind.CHAR) else sql_type.length


def format_type(oid: int | None, modifier: int | None) -> str | None:
    """The type in SQL: `numeric(10,2)`."""
    if oid is None:
        return None
    if oid in ARRAY_ELEMENTS:
        return f"{format_type(ARRAY_ELEMENTS[oid], modifier)}[]"
    name = DISPLAY.get(oid)
    if name is None:
        return "???" if oid else "-"
    if modifier is not None and modifier >= 0 and oid in _PRECISE:
        first, blank, rest = name.partition(" ")
        return f"{first}({modifier & 0xFFFF}){blank}{rest}"
    if modifier is None or modifier < 4:
        return name
    if oid == 1700:
        return f"numeric({(modifier - 4) >> 16},{(modifier - 4) & 0xFFFF})"
    return f"{name}({modifier - 4})" if oid in (1042, 1043) else name
