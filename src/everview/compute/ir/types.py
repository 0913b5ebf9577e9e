"""SQL types: what the binder reasons with, and how values of each are represented.

A value has one representation everywhere: a Python value in the local engine and in literals, an Arrow type at rest
and on the way to and from Spark. Equal values have equal representations: hashing and consolidating work on any type.

| SQL type            | Python value                            | Arrow                          |
|---------------------|-----------------------------------------|--------------------------------|
| boolean             | bool                                    | bool                           |
| int2, int4, int8    | int                                     | int16, int32, int64            |
| float4, float8      | float                                   | float, double                  |
| numeric             | Decimal, exponent = -scale              | decimal128(18 or 38, scale)    |
| text, varchar, char | str                                     | string                         |
| bytea               | bytes                                   | binary                         |
| date                | datetime.date, or an `Infinite`         | date32                         |
| time                | int, microseconds of the day            | int64                          |
| timestamp           | datetime without zone, or an `Infinite` | timestamp[us]                  |
| timestamptz         | datetime in UTC, or an `Infinite`       | timestamp[us, UTC]             |
| interval            | Interval(months, days, micros)          | struct<months, days, micros>   |
| uuid                | str, lower case with dashes             | string                         |
| jsonb               | str, canonical JSON text                | string                         |
| mz_timestamp        | int, milliseconds since the epoch       | int64                          |
| T[]                 | list                                    | list<T>                        |

A numeric of which no more than 18 digits are declared fits a word, and is kept with 18 digits; any other with 38. So
two numerics of one scale may differ in representation: what is to meet in a key or in a union is cast to one type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import pyarrow as pa

NUMERIC_PRECISION = 38
WORD_PRECISION = 18  # whatever has no more digits fits 64 bits
# The scale of a numeric that declares none: as many digits behind the point as in front of it, give or take.
NUMERIC_SCALE = 18


class Kind(Enum):
    """The type without its modifiers."""

    UNKNOWN = "unknown"  # a NULL or a quoted literal whose type nothing has decided yet
    BOOLEAN = "boolean"
    INT2 = "smallint"
    INT4 = "integer"
    INT8 = "bigint"
    FLOAT4 = "real"
    FLOAT8 = "double precision"
    NUMERIC = "numeric"
    TEXT = "text"
    VARCHAR = "character varying"
    CHAR = "character"
    BYTEA = "bytea"
    DATE = "date"
    TIME = "time without time zone"
    TIMESTAMP = "timestamp without time zone"
    TIMESTAMPTZ = "timestamp with time zone"
    INTERVAL = "interval"
    UUID = "uuid"
    JSONB = "jsonb"
    MZ_TIMESTAMP = "mz_timestamp"
    ARRAY = "array"


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type with its modifiers: `scale` of a numeric, `length` of a varchar or char, `element` of an array.

    The `length` of a time, a timestamp or an interval is how many digits of its seconds it keeps; None is all six.
    A numeric whose declaration has no scale is `constrained=False`: it is kept at the default scale, and shown without
    trailing zeros.
    """

    kind: Kind
    scale: int = 0
    precision: int = NUMERIC_PRECISION
    length: int | None = None
    element: SqlType | None = None
    constrained: bool = True
    alias: str | None = field(default=None, compare=False, repr=False)  # PostgreSQL's name for it, where clients care

    def __str__(self) -> str:
        if self.kind is Kind.ARRAY:
            return f"{self.element}[]"
        if self.kind is Kind.NUMERIC and self.constrained:
            return f"numeric({self.precision},{self.scale})"
        if self.length is not None:
            first, blank, rest = self.kind.value.partition(" ")
            if self.kind in (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
                return f"{first}({self.length}){blank}{rest}"
            return f"{self.kind.value}({self.length})"
        return str(self.kind.value)

    @property
    def base(self) -> SqlType:
        """The type without modifiers, as function resolution sees it."""
        if self.kind is Kind.ARRAY:
            return self
        return numeric() if self.kind is Kind.NUMERIC else SqlType(self.kind, alias=self.alias)


UNKNOWN = SqlType(Kind.UNKNOWN)
BOOLEAN = SqlType(Kind.BOOLEAN)
INT2, INT4, INT8 = SqlType(Kind.INT2), SqlType(Kind.INT4), SqlType(Kind.INT8)
FLOAT4, FLOAT8 = SqlType(Kind.FLOAT4), SqlType(Kind.FLOAT8)
TEXT, BYTEA, UUID, JSONB = SqlType(Kind.TEXT), SqlType(Kind.BYTEA), SqlType(Kind.UUID), SqlType(Kind.JSONB)
DATE, TIME, INTERVAL = SqlType(Kind.DATE), SqlType(Kind.TIME), SqlType(Kind.INTERVAL)
TIMESTAMP, TIMESTAMPTZ = SqlType(Kind.TIMESTAMP), SqlType(Kind.TIMESTAMPTZ)
MZ_TIMESTAMP = SqlType(Kind.MZ_TIMESTAMP)
# Of PostgreSQL's catalogs, and text and numbers like any other but for drivers, which look for these very types.
PG_CHAR, PG_OID = SqlType(Kind.TEXT, alias="char"), SqlType(Kind.INT8, alias="oid")


def numeric(precision: int | None = None, scale: int | None = None) -> SqlType:
    """`numeric`, `numeric(p)` or `numeric(p, s)`."""
    if precision is None:
        return SqlType(Kind.NUMERIC, scale=NUMERIC_SCALE, constrained=False)
    return SqlType(Kind.NUMERIC, scale=scale or 0, precision=precision)


def array_of(element: SqlType) -> SqlType:
    return SqlType(Kind.ARRAY, element=element)


def element_of(array: SqlType) -> SqlType:
    assert array.element is not None
    return array.element


# In PostgreSQL's catalogs these are types of their own, whose text is the numbers with blanks between.
INT2_VECTOR = SqlType(Kind.ARRAY, element=INT2, alias="int2vector")
OID_VECTOR = SqlType(Kind.ARRAY, element=INT8, alias="oidvector")
VECTORS = (INT2_VECTOR.alias, OID_VECTOR.alias)


class Interval(NamedTuple):
    """An interval in PostgreSQL's three parts, which do not convert into one another."""

    months: int
    days: int
    micros: int


_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT2: pa.int16(),
    Kind.INT4: pa.int32(),
    Kind.INT8: pa.int64(),
    Kind.FLOAT4: pa.float32(),
    Kind.FLOAT8: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.CHAR: pa.string(),
    Kind.BYTEA: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.int64(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    Kind.INTERVAL: pa.struct([("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())]),
    Kind.UUID: pa.string(),
    Kind.JSONB: pa.string(),
    Kind.MZ_TIMESTAMP: pa.int64(),
    Kind.UNKNOWN: pa.string(),
}


def stored_precision(numeric_type: SqlType) -> int:
    """The digits with which a numeric is kept: as many as fit a word if no more are declared, else all."""
    declared = numeric_type.constrained and max(numeric_type.precision, numeric_type.scale) <= WORD_PRECISION
    return WORD_PRECISION if declared else NUMERIC_PRECISION


def arrow_type(sql_type: SqlType) -> pa.DataType:
    """How values of this type are stored."""
    if sql_type.kind is Kind.NUMERIC:
        return pa.decimal128(stored_precision(sql_type), sql_type.scale)
    if sql_type.kind is Kind.ARRAY:
        return pa.list_(arrow_type(element_of(sql_type)))
    return _ARROW[sql_type.kind]


def outside_type(sql_type: SqlType) -> pa.DataType:
    """How values are told to others, in files and streams: as they are stored, but that every numeric has all digits.

    What is declared of an endpoint or a stream stays the same that way, however values are kept here.
    """
    if sql_type.kind is Kind.NUMERIC:
        return pa.decimal128(NUMERIC_PRECISION, sql_type.scale)
    if sql_type.kind is Kind.ARRAY:
        return pa.list_(outside_type(element_of(sql_type)))
    return arrow_type(sql_type)


def declared_type(sql_type: SqlType) -> pa.DataType:
    """The Arrow type of values that others give: a numeric has no more digits than are declared."""
    if sql_type.kind is Kind.NUMERIC:
        return pa.decimal128(sql_type.precision if sql_type.constrained else NUMERIC_PRECISION, sql_type.scale)
    if sql_type.kind is Kind.ARRAY:
        return pa.list_(declared_type(element_of(sql_type)))
    return arrow_type(sql_type)
