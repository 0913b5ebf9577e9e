"""Type names in SQL text."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.compute.functions.naming import short_name
from everview.compute.functions.numbers import integer_of
from everview.compute.functions.precision import PRECISE
from everview.compute.ir import types as t
from everview.compute.ir.types import Kind, SqlType
from everview.compute.sql.clauses import changes_nothing
from everview.compute.sql.errors import INVALID_PARAMETER, SYNTAX_ERROR, UNDEFINED_OBJECT, SqlError, did_you_mean
from everview.compute.sql.parse import Tree, check_all_read, parse_type

_D = exp.DataType.Type
_DIGITS_MAX = 6  # of a second
_LENGTH_MAX = 10_485_760  # of a varchar or char, in characters
_BITS_FLOAT4, _BITS_MAX = 24, 53
_SIMPLE = {
    _D.BOOLEAN: t.BOOLEAN,
    _D.SMALLINT: t.INT2,
    _D.INT: t.INT4,
    _D.BIGINT: t.INT8,
    _D.FLOAT: t.FLOAT4,
    _D.DOUBLE: t.FLOAT8,
    _D.TEXT: t.TEXT,
    _D.VARBINARY: t.BYTEA,
    _D.DATE: t.DATE,
    _D.TIME: t.TIME,
    _D.TIMESTAMP: t.TIMESTAMP,
    _D.TIMESTAMPNTZ: t.TIMESTAMP,
    _D.TIMESTAMPTZ: t.TIMESTAMPTZ,
    _D.TIMESTAMPLTZ: t.TIMESTAMPTZ,
    _D.INTERVAL: t.INTERVAL,
    _D.UUID: t.UUID,
    _D.JSONB: t.JSONB,
    _D.JSON: t.JSONB,
    _D.NAME: t.TEXT,
}
_NAMED = {
    "mz_timestamp": t.MZ_TIMESTAMP,
    "bytea": t.BYTEA,
    "float4": t.FLOAT4,
    "float8": t.FLOAT8,
    "int2": t.INT2,
    "int4": t.INT4,
    "int8": t.INT8,
    "bool": t.BOOLEAN,
    "name": t.TEXT,
    "text": t.TEXT,
    "varchar": SqlType(Kind.VARCHAR),
    "bpchar": SqlType(Kind.CHAR),
    "numeric": t.numeric(),
    "timestamptz": t.TIMESTAMPTZ,
    "timestamp": t.TIMESTAMP,
    "date": t.DATE,
    '"char"': t.PG_CHAR,
    "oid": t.PG_OID,
    "regclass": t.INT8,
    "regtype": t.INT8,
    "regnamespace": t.INT8,
    "regrole": t.INT8,
    "regproc": t.TEXT,
}


_KNOWN = ("integer", "bigint", "smallint", "boolean", "real", "jsonb", "uuid", "interval", "time", *_NAMED)


def bind_type(tree: Tree) -> SqlType:
    """The type that the syntax tree of a type name means."""
    if isinstance(tree, exp.Interval):
        return t.INTERVAL
    kind = tree.this
    if kind == _D.ARRAY:
        changes_nothing(tree, "nested")
        return t.array_of(bind_type(tree.expressions[0]))
    parameters = [integer_of(each.name) for each in tree.expressions]
    if kind == _D.DOUBLE and parameters:
        return _float(parameters[0])
    if kind in _SIMPLE:
        return _precise(_SIMPLE[kind], parameters)
    if kind == _D.DECIMAL:
        return _numeric(parameters)
    if kind == _D.VARCHAR:
        return SqlType(Kind.VARCHAR, length=_length(parameters[0], "varchar") if parameters else None)
    if kind in (_D.CHAR, _D.NCHAR):
        return SqlType(Kind.CHAR, length=_length(parameters[0], "char") if parameters else 1)
    name = type_name(tree)
    if name in _NAMED:
        return _NAMED[name]
    raise SqlError(UNDEFINED_OBJECT, f'type "{name}" does not exist', hint=did_you_mean(name, _KNOWN))


def _length(characters: int, name: str) -> int:
    if characters > _LENGTH_MAX:
        raise SqlError(INVALID_PARAMETER, f"length for type {name} cannot exceed {_LENGTH_MAX}")
    return characters


def type_name(tree: exp.DataType) -> str:
    """The name of a type that the parser does not know, without the schema of the system; `char` is that in quotes."""
    kind = tree.args.get("kind")
    if kind is None:  # one that the parser knows
        return str(tree.this.value if isinstance(tree.this, _D) else tree.sql("postgres")).lower()
    changes_nothing(tree, "this")
    if isinstance(kind, exp.Dot) and kind.this.name.lower() == "pg_catalog":
        kind = kind.expression
    if not isinstance(kind, exp.Identifier):
        return str(kind).lower()
    name = kind.name if kind.quoted else kind.name.lower()
    return f'"{name}"' if name == "char" else name


def with_digits(sql_type: SqlType, digits: int) -> SqlType:
    """The type with so many digits of a second; six are all there are, as without a number."""
    return replace(sql_type, length=digits) if digits < _DIGITS_MAX else sql_type


def _precise(sql_type: SqlType, parameters: list[int]) -> SqlType:
    """The type with its modifier, as in `timestamp(3)`."""
    if not parameters:
        return sql_type
    if sql_type.kind not in PRECISE or len(parameters) > 1:
        raise SqlError(SYNTAX_ERROR, f'type modifier is not allowed for type "{short_name(sql_type)}"')
    return with_digits(sql_type, parameters[0])


def _float(bits: int) -> SqlType:
    """`float(n)`: the smallest of the two types that has so many bits."""
    if not 1 <= bits <= _BITS_MAX:
        bound = "at least 1 bit" if bits < 1 else f"less than {_BITS_MAX + 1} bits"
        raise SqlError(INVALID_PARAMETER, f"precision for type float must be {bound}")
    return t.FLOAT4 if bits <= _BITS_FLOAT4 else t.FLOAT8


def _numeric(parameters: list[int]) -> SqlType:
    if not parameters:
        return t.numeric()
    precision, scale = parameters[0], parameters[1] if len(parameters) > 1 else 0
    if not 1 <= precision <= t.NUMERIC_PRECISION:
        message = f"NUMERIC precision {precision} must be between 1 and {t.NUMERIC_PRECISION}"
        raise SqlError(INVALID_PARAMETER, message)
    if not 0 <= scale <= precision:
        raise SqlError(INVALID_PARAMETER, f"NUMERIC scale {scale} must be between 0 and precision {precision}")
    return t.numeric(precision, scale)


def named_type(text: str, position: int | None = None) -> SqlType:
    """The type that a type name in text means."""
    try:
        tree = parse_type(text)
        found = bind_type(tree)
        check_all_read(tree)
        return found
    except SqlError as error:
        if error.sqlstate != SYNTAX_ERROR:
            error.position = position
            raise
        raise SqlError(UNDEFINED_OBJECT, f'type "{text}" does not exist', position=position) from error
