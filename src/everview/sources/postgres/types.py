"""PostgreSQL's types as ours, and the texts of values as columns: exactly, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from everview.compute.functions.contract import Failure
from everview.compute.functions.input import from_text, limited
from everview.compute.ir.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    NUMERIC_PRECISION,
    NUMERIC_SCALE,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Kind,
    SqlType,
    array_of,
    numeric,
)
from everview.compute.rows.arrow import values_to_arrow
from everview.compute.rows.collection import canonical
from everview.compute.rows.texts import Texts, Values, quick_values
from everview.sources.postgres.errors import TableStopped

_SHOWN_MAX = 100
# By pg_type's names, which are the same on every server.
_PLAIN: Mapping[str, SqlType] = {
    "bool": BOOLEAN,
    "int2": INT2,
    "int4": INT4,
    "int8": INT8,
    "oid": INT8,
    "float4": FLOAT4,
    "float8": FLOAT8,
    "text": TEXT,
    "name": TEXT,
    "char": TEXT,
    "bytea": BYTEA,
    "date": DATE,
    "time": TIME,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ,
    "interval": INTERVAL,
    "uuid": UUID,
    "json": JSONB,
    "jsonb": JSONB,
}


def type_of(name: str, kind: str, modifier: int, element: str | None) -> SqlType | None:
    """Our type for one of PostgreSQL: its name and kind in pg_type, the column's modifier, and what it is an array of.

    None if there is none. Domains and enums are texts.
    """
    if kind in ("e", "d"):
        return TEXT
    if element is not None:
        inner = _scalar(element, modifier)
        return None if inner is None or inner.kind in (Kind.CHAR,) else array_of(inner)
    return _scalar(name, modifier)


def _scalar(name: str, modifier: int) -> SqlType | None:
    if name == "numeric":
        return _numeric(modifier)
    if name in ("varchar", "bpchar"):
        kind = Kind.VARCHAR if name == "varchar" else Kind.CHAR
        if modifier < 4:
            return TEXT if kind is Kind.CHAR else SqlType(kind)
        return SqlType(kind, length=modifier - 4)
    return _PLAIN.get(name)


def _numeric(modifier: int) -> SqlType | None:
    if modifier < 4:
        return numeric()
    precision, scale = ((modifier - 4) >> 16) & 0xFFFF, (modifier - 4) & 0x7FF
    if scale >= 1024:
        scale -= 2048
    if precision > NUMERIC_PRECISION or not 0 <= scale <= precision:
        return None
    return numeric(precision, scale)


def column_of(texts: Texts, to: SqlType, where: str) -> Values:
    """A column of values from one of texts; `where` is what it is called in errors."""
    found = quick_values(texts, to)
    if found is not None:
        return found
    fix = canonical(to)
    values: list[Any] = []
    for text in texts.to_pylist():
        try:
            value = None if text is None else _value(text, to)
            values.append(value if fix is None else fix(value))
        except (Failure, ValueError, ArithmeticError, RecursionError) as error:
            shown = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
            reason = error.message if isinstance(error, Failure) else str(error)
            raise TableStopped(
                f"a value of {where} cannot be kept as {to}",
                detail=f'"{shown}": {reason}',
                hint="change the value upstream and make the source anew, with the column among its TEXT COLUMNS"
                " or EXCLUDE COLUMNS",
            ) from None
    return pa.chunked_array([values_to_arrow(values, to)])


def _value(text: str, to: SqlType) -> Any:
    if to.kind is Kind.NUMERIC:
        return _exact(text, to)
    if to.kind is Kind.ARRAY and to.element is not None and to.element.kind is Kind.NUMERIC:
        _check_elements(text, to.element)
    if to.kind in (Kind.VARCHAR, Kind.CHAR):
        return limited(text, to, explicit=False)
    return from_text(text, to)


def _exact(text: str, to: SqlType) -> Decimal:
    """A number that is kept with all of its digits."""
    try:
        found = Decimal(text)
    except InvalidOperation:
        raise ValueError("it is no number") from None
    if not found.is_finite():
        raise ValueError("a numeric here is finite")
    precision = to.precision if to.constrained else NUMERIC_PRECISION
    scale = to.scale if to.constrained else NUMERIC_SCALE
    sign, digits, exponent = found.as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits)) or "0")
    shift = exponent + scale
    if shift < 0:
        number, rest = divmod(number, 10**-shift)
        if rest:
            raise ValueError(f"it has more than {scale} digits behind the point")
    else:
        number *= 10**shift
    if number >= 10**precision:
        raise ValueError(f"it has more than {precision - scale} digits before the point")
    return Decimal((sign, tuple(map(int, str(number))), -scale)) if number else Decimal((0, (0,), -scale))


def _check_elements(text: str, element: SqlType) -> None:
    for each in text.replace("{", " ").replace("}", " ").replace(",", " ").split():
        if each != "NULL":
            _exact(each, element)


def texts_of(values: Sequence[bytes | None], where: str) -> Texts:
    """Texts as they came, as a column."""
    try:
        return pa.chunked_array([pa.array(values, pa.binary()).cast(pa.string())])
    except pa.ArrowInvalid:
        raise not_text(where) from None


def not_text(where: str) -> TableStopped:
    """Bytes that the server could not make a text of: its database says nothing of their encoding (SQL_ASCII)."""
    hint = "change the value upstream and make the source anew, or leave the column out: EXCLUDE COLUMNS (…)"
    return TableStopped(f"a value of {where} is not a text in UTF-8", hint=hint)
