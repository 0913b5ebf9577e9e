"""Values of SQL types that share a type of Arrow: a uuid is text, and not every text is a uuid.

A schema says the SQL type of such a column in an attribute, `sql`. Values are checked, and brought to the one form in
which equal values are the same: a uuid in lower case, jsonb without superfluous blanks.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from everview.cdc.rows import Convert
from everview.cdc.schema import SQL
from everview.compute.functions.contract import Failure
from everview.compute.functions.input import from_text, limited
from everview.compute.ir.types import Kind, SqlType

_DAY_MICROS = 86_400_000_000
_KINDS = {
    "uuid": Kind.UUID,
    "jsonb": Kind.JSONB,
    "time": Kind.TIME,
    "mz_timestamp": Kind.MZ_TIMESTAMP,
    "varchar": Kind.VARCHAR,
    "char": Kind.CHAR,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_TYPE = re.compile(r"([a-z_]+)(?:\((\d+)(?:,(\d+))?\))?((?:\[\])?)\Z")
_UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


def sql_attribute(sql_type: SqlType) -> str | None:
    """The attribute that names a type; None if the Arrow type says enough."""
    if sql_type.kind is Kind.ARRAY and sql_type.element is not None:
        element = sql_attribute(sql_type.element)
        return None if element is None else f"{element}[]"
    if sql_type.kind is Kind.NUMERIC and sql_type.constrained:
        return f"numeric({sql_type.precision},{sql_type.scale})"
    name = _NAMES.get(sql_type.kind)
    sized = sql_type.length is not None and sql_type.kind in (Kind.VARCHAR, Kind.CHAR)
    return f"{name}({sql_type.length})" if name is not None and sized else name


def sql_type_of(attribute: str) -> SqlType | None:
    """The type that an attribute names; None for an unknown name."""
    found = _TYPE.match(attribute)
    if found is None:
        return None
    name, first, second, array = found.groups()
    if name == "numeric" and first:
        sql_type = SqlType(Kind.NUMERIC, scale=int(second or 0), precision=int(first))
    elif name in _KINDS:
        sql_type = SqlType(_KINDS[name], length=int(first) if first else None)
    else:
        return None
    return SqlType(Kind.ARRAY, element=sql_type) if array else sql_type


def declared(field: pa.Field) -> SqlType | None:
    """The SQL type that a column says it has."""
    attribute = (field.metadata or {}).get(SQL)
    return None if attribute is None else sql_type_of(attribute.decode())


def with_sql_type(field: pa.Field, sql_type: SqlType) -> pa.Field:
    """The column with its SQL type as an attribute, unless the Arrow type says it."""
    attribute = sql_attribute(sql_type)
    return field if attribute is None else field.with_metadata({SQL: attribute.encode()})


def sql_conversion(field: pa.Field) -> Convert | None:
    """A function that checks a value of a column and normalizes it, or raises ValueError."""
    sql_type = declared(field)
    if sql_type is None:
        return None
    if sql_type.kind is Kind.ARRAY and sql_type.element is not None:
        each = _conversion(sql_type.element)
        return None if each is None else lambda values: tuple(None if v is None else each(v) for v in values)
    return _conversion(sql_type)


def _conversion(sql_type: SqlType) -> Convert | None:
    match sql_type.kind:
        case Kind.UUID | Kind.JSONB:
            return _failing(lambda value: from_text(value, sql_type))
        case Kind.VARCHAR | Kind.CHAR:
            return _failing(lambda value: limited(value, sql_type, explicit=False))
        case Kind.TIME:
            return _between(0, _DAY_MICROS)
        case Kind.MZ_TIMESTAMP:
            return _between(0, 2**63 - 1)
    return None


def _failing(convert: Convert) -> Convert:
    def read(value: object) -> object:
        try:
            return convert(value)
        except Failure as failure:
            raise ValueError(failure.message) from failure

    return read


def _between(low: int, high: int) -> Convert:
    def read(value: int) -> int:
        if not low <= value <= high:
            raise ValueError(f"{value} is out of range")
        return value

    return read


def surely_right(field: pa.Field) -> Callable[[pa.Array], bool] | None:
    """A function that tells whether many values are normal already; None if each must be looked at."""
    sql_type = declared(field)
    if sql_type is None or sql_conversion(field) is None:
        return lambda values: True
    length = sql_type.length
    match sql_type.kind:
        case Kind.UUID:
            return lambda values: _all(pc.match_substring_regex(values, _UUID))
        case Kind.VARCHAR:
            return lambda values: length is None or _all(pc.less_equal(pc.utf8_length(values), length))
        case Kind.TIME:
            inside = pc.and_
            return lambda values: _all(inside(pc.greater_equal(values, 0), pc.less_equal(values, _DAY_MICROS)))
        case Kind.MZ_TIMESTAMP:
            return lambda values: _all(pc.greater_equal(values, 0))
    return None


def _all(tests: pa.Array) -> bool:
    return pc.all(tests).as_py() is not False
