"""Which of PostgreSQL's types stands for each of ours on the wire: OID, size and modifier, and the way back."""

from __future__ import annotations

from dataclasses import dataclass

from everview.adapter.system.pg_types import type_modifier
from everview.compute.ir import types as t
from everview.compute.ir.types import Kind, SqlType
from everview.compute.sql.errors import SqlError

JSON, NAME, OID, CHAR_BYTE = 114, 19, 26, 18

# OID, OID of its array, and size in bytes, -1 if it varies.
_WIRE: dict[Kind, tuple[int, int, int]] = {
    Kind.BOOLEAN: (16, 1000, 1),
    Kind.INT2: (21, 1005, 2),
    Kind.INT4: (23, 1007, 4),
    Kind.INT8: (20, 1016, 8),
    Kind.FLOAT4: (700, 1021, 4),
    Kind.FLOAT8: (701, 1022, 8),
    Kind.NUMERIC: (1700, 1231, -1),
    Kind.TEXT: (25, 1009, -1),
    Kind.VARCHAR: (1043, 1015, -1),
    Kind.CHAR: (1042, 1014, -1),
    Kind.BYTEA: (17, 1001, -1),
    Kind.DATE: (1082, 1182, 4),
    Kind.TIME: (1083, 1183, 8),
    Kind.TIMESTAMP: (1114, 1115, 8),
    Kind.TIMESTAMPTZ: (1184, 1185, 8),
    Kind.INTERVAL: (1186, 1187, 16),
    Kind.UUID: (2950, 2951, 16),
    Kind.JSONB: (3802, 3807, -1),
    # A domain over bigint in pg_type: on the wire PostgreSQL, too, gives a domain's values as the type below it.
    Kind.MZ_TIMESTAMP: (20, 1016, 8),
    # A literal that nothing gave a type is text to clients.
    Kind.UNKNOWN: (25, 1009, -1),
}

_WIRE_ALIASES: dict[str, tuple[int, int, int]] = {
    "char": (CHAR_BYTE, 1002, 1),
    "oid": (OID, 1028, 4),
    "int2vector": (22, 1006, -1),
    "oidvector": (30, 1013, -1),
}

# PostgreSQL's types that clients name for parameters, and that we read as another type.
_ALIASES: dict[int, SqlType] = {
    JSON: t.JSONB,
    NAME: t.TEXT,
    OID: t.INT8,
    CHAR_BYTE: t.TEXT,
    199: t.array_of(t.JSONB),
    1003: t.array_of(t.TEXT),
    1028: t.array_of(t.INT8),
}
_UNDECIDED = (0, 705)


def _types_by_oid() -> dict[int, SqlType]:
    found = dict(_ALIASES)
    for kind, (oid, array_oid, _) in _WIRE.items():
        if kind not in (Kind.MZ_TIMESTAMP, Kind.UNKNOWN):
            sql_type = t.numeric() if kind is Kind.NUMERIC else SqlType(kind)
            found[oid] = sql_type
            found[array_oid] = t.array_of(sql_type)
    return found


_TYPES = _types_by_oid()


@dataclass(frozen=True, slots=True)
class WireParameter:
    """A parameter: the OID that its values come in, which the client may have chosen, and the type they get."""

    oid: int
    type: SqlType


def innermost(sql_type: SqlType) -> SqlType:
    """What an array of any number of dimensions holds; other types themselves."""
    while sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        sql_type = sql_type.element
    return sql_type


def oid_of(sql_type: SqlType) -> int:
    """The OID of a type; arrays of any dimension share one, as in PostgreSQL."""
    if sql_type.kind is Kind.ARRAY and sql_type.alias is None:
        return _wire(innermost(sql_type))[1]
    return _wire(sql_type)[0]


def _wire(sql_type: SqlType) -> tuple[int, int, int]:
    return _WIRE_ALIASES[sql_type.alias] if sql_type.alias is not None else _WIRE[sql_type.kind]


def size_of(sql_type: SqlType) -> int:
    """The bytes of a value, -1 if that varies."""
    return -1 if sql_type.kind is Kind.ARRAY else _wire(sql_type)[2]


def typmod_of(sql_type: SqlType) -> int:
    """Encode a type's modifier as PostgreSQL does. -1 if the type has no modifier."""
    return type_modifier(innermost(sql_type))


def type_of(oid: int) -> SqlType | None:
    """The type that a client's OID means. None if the client leaves the choice to us."""
    if oid in _UNDECIDED:
        return None
    if oid not in _TYPES:
        raise SqlError("42704", f"type with OID {oid} does not exist")
    return _TYPES[oid]


def wire_parameter(declared: int, sql_type: SqlType) -> WireParameter:
    """How the values of a parameter come: as the client declared it, if that is the type it has got."""
    if _ALIASES.get(declared) == sql_type:
        return WireParameter(declared, sql_type)
    return WireParameter(oid_of(sql_type), sql_type)
