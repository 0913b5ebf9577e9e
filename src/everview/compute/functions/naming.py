"""How types are spelled in keys, and which types there are to write overloads for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.compute.ir import types as t
from everview.compute.ir.types import UNKNOWN, Kind, SqlType, array_of, element_of, numeric

# An argument declared `unknown` takes a value of any type: no function takes literals of undecided type.
ANY = UNKNOWN
NUMERIC = numeric()
CHAR = SqlType(Kind.CHAR)
VARCHAR = SqlType(Kind.VARCHAR)

# varchar is absent: its values are text's, and it becomes text on the way into any function.
ORDERED = (
    *(t.BOOLEAN, t.INT2, t.INT4, t.INT8, t.FLOAT4, t.FLOAT8, NUMERIC, t.TEXT, CHAR, t.BYTEA),
    *(t.DATE, t.TIME, t.TIMESTAMP, t.TIMESTAMPTZ, t.INTERVAL, t.UUID, t.JSONB, t.MZ_TIMESTAMP),
)
ELEMENTS = tuple(each for each in ORDERED if each not in (CHAR, t.MZ_TIMESTAMP))
ARRAYS = tuple(array_of(each) for each in ELEMENTS)

_SHORT = {
    **{Kind.BOOLEAN: "bool", Kind.INT2: "int2", Kind.INT4: "int4", Kind.INT8: "int8"},
    **{Kind.FLOAT4: "float4", Kind.FLOAT8: "float8", Kind.VARCHAR: "varchar", Kind.CHAR: "bpchar"},
    **{Kind.TIME: "time", Kind.TIMESTAMP: "timestamp", Kind.TIMESTAMPTZ: "timestamptz", Kind.UNKNOWN: "any"},
}


def short_name(sql_type: SqlType) -> str:
    """The name without modifiers, as in `int4` and `numeric[]`."""
    if sql_type.kind is Kind.ARRAY:
        return f"{short_name(element_of(sql_type))}[]"
    return _SHORT.get(sql_type.kind) or str(sql_type.kind.value)


# By the names that keys have for them.
TYPES = {short_name(each): each for each in (*ORDERED, VARCHAR, ANY)}


def named(text: str) -> tuple[SqlType, ...]:
    """The types of these names, as in "int4 text[]"."""
    return tuple(array_of(TYPES[name[:-2]]) if name.endswith("[]") else TYPES[name] for name in text.split())


def display_name(sql_type: SqlType) -> str:
    """The name without modifiers, as PostgreSQL's messages say it."""
    if sql_type.kind is Kind.ARRAY:
        return f"{display_name(element_of(sql_type))}[]"
    return str(sql_type.kind.value)


def base(sql_type: SqlType) -> SqlType:
    """The type without modifiers, of the elements too."""
    if sql_type.kind is Kind.ARRAY:
        return array_of(base(element_of(sql_type)))
    return sql_type.base


def key_of(name: str, args: Sequence[SqlType], *, variadic: bool = False) -> str:
    """The key of an overload, such as `add(int4,int4)`."""
    return f"{name}({','.join(map(short_name, args))}{',...' if variadic else ''})"


def as_numeric(sql_type: SqlType) -> SqlType:
    """The numeric type that holds every value of a number type exactly, as far as there is one."""
    digits = {Kind.INT2: 5, Kind.INT4: 10, Kind.INT8: 19}.get(sql_type.kind)
    if digits:
        return numeric(digits, 0)
    return sql_type if sql_type.kind is Kind.NUMERIC else numeric()


def wider_numeric(types: Sequence[SqlType]) -> SqlType:
    """The numeric type that holds the values of all of these."""
    numerics = [as_numeric(each) for each in types]
    scale = max(each.scale for each in numerics)
    whole = max(each.precision - each.scale for each in numerics)
    first = numerics[0]
    precision = min(38, whole + scale)
    return replace(first, scale=scale, precision=precision, constrained=all(each.constrained for each in numerics))


TEXT_ARRAY = array_of(t.TEXT)


def merged(types: Sequence[SqlType]) -> SqlType:
    """The type that holds all values of types that differ only in modifiers."""
    first = types[0]
    if all(each == first for each in types):
        return first
    if first.kind is Kind.NUMERIC:
        return wider_numeric(types)
    if first.kind is Kind.ARRAY:
        return array_of(merged([element_of(each) for each in types]))
    return base(first)
