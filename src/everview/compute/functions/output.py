"""PostgreSQL's text form of values: what `psql` shows, what a cast to text gives, what goes over the wire."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from everview.compute.functions.numbers import float4_text
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import NUMERIC_SCALE, Interval, Kind, SqlType, element_of, numeric


def to_text(value: Any, sql_type: SqlType) -> str:
    """The text of a value that is not NULL."""
    if sql_type.kind is Kind.ARRAY:
        element = element_of(sql_type)
        return "{" + ",".join("NULL" if each is None else _element(each, element) for each in value) + "}"
    if sql_type.kind is Kind.NUMERIC:
        return numeric_text(value, constrained=sql_type.constrained)
    if sql_type.kind is Kind.CHAR:
        return str(value).ljust(sql_type.length or 0)
    return _TEXT[sql_type.kind](value)


def _element(value: Any, sql_type: SqlType) -> str:
    text = to_text(value, sql_type)
    if sql_type.kind is Kind.ARRAY or (text and text.upper() != "NULL" and not re.search(r'[{}",\\\s]', text)):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def untyped_text(value: Any, base_type: SqlType) -> str:
    """The text where the type's modifiers are not known: a decimal of the default scale counts as unconstrained."""
    if base_type.kind is Kind.ARRAY:
        scales = {each.as_tuple().exponent for each in value if isinstance(each, Decimal)}
        element = _assumed(scales, element_of(base_type))
        return to_text(value, SqlType(Kind.ARRAY, element=element))
    scales = {value.as_tuple().exponent} if isinstance(value, Decimal) else set()
    return to_text(value, _assumed(scales, base_type))


def cast_text(value: Any, sql_type: SqlType) -> str:
    """The result of a cast to text, which writes truth values out."""
    return ("true" if value else "false") if sql_type.kind is Kind.BOOLEAN else untyped_text(value, sql_type)


def _assumed(exponents: set[Any], base_type: SqlType) -> SqlType:
    if base_type.kind is not Kind.NUMERIC or exponents == {-NUMERIC_SCALE}:
        return base_type
    return numeric(38, 0)


def numeric_text(value: Decimal, *, constrained: bool) -> str:
    """All digits of a declared scale, else no trailing zeros."""
    text = f"{value:f}"
    return text if constrained or "." not in text else text.rstrip("0").rstrip(".")


def float_text(value: float, digits: int) -> str:
    """The shortest text that reads back as this float; with an exponent outside 1e-5 .. 10^`digits`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    shortest = Decimal(float4_text(value) if digits == 6 else repr(value))
    sign, numbers, exponent = shortest.as_tuple()
    assert isinstance(exponent, int)
    mantissa = "".join(map(str, numbers)).rstrip("0") or "0"
    point = len(numbers) + exponent - 1  # the exponent with one digit in front of the point
    minus = "-" if sign else ""
    if mantissa == "0":
        return minus + "0"
    if -4 <= point < digits:
        plain = Decimal((0, tuple(map(int, mantissa)), point - len(mantissa) + 1))
        return f"{minus}{plain:f}"
    fraction = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
    return f"{minus}{mantissa[0]}{fraction}e{'-' if point < 0 else '+'}{abs(point):02d}"


def time_text(micros: int) -> str:
    """HH:MM:SS with the fraction that there is."""
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + (f".{fraction:06d}".rstrip("0") if fraction else "")


def _date_text(value: date | Infinite) -> str:
    if isinstance(value, Infinite):
        return value.value
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"


def _timestamp_text(value: datetime | Infinite, zone: str = "") -> str:
    if isinstance(value, Infinite):
        return value.value
    micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return f"{_date_text(value)} {time_text(micros)}{zone}"


def interval_text(value: Interval) -> str:
    """As in `1 year 2 mons -3 days +04:05:06.7`."""
    years, months = divmod(abs(value.months), 12)
    sign = -1 if value.months < 0 else 1
    parts: list[str] = []
    negative_before = False
    for amount, unit in ((sign * years, "year"), (sign * months, "mon"), (value.days, "day")):
        if amount:
            plus = "+" if negative_before and amount > 0 else ""
            parts.append(f"{plus}{amount} {unit}{'' if amount == 1 else 's'}")
            negative_before = amount < 0
    if value.micros or not parts:
        mark = "-" if value.micros < 0 else "+" if negative_before else ""
        parts.append(mark + time_text(abs(value.micros)))
    return " ".join(parts)


_TEXT: dict[Kind, Callable[[Any], str]] = {
    **dict.fromkeys((Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP), str),
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.UNKNOWN, Kind.UUID, Kind.JSONB), str),
    Kind.BOOLEAN: lambda value: "t" if value else "f",
    Kind.FLOAT4: lambda value: float_text(value, 6),
    Kind.FLOAT8: lambda value: float_text(value, 15),
    Kind.BYTEA: lambda value: "\\x" + value.hex(),
    Kind.TIMESTAMPTZ: lambda value: _timestamp_text(value, "+00"),
    **{Kind.DATE: _date_text, Kind.TIME: time_text, Kind.TIMESTAMP: _timestamp_text, Kind.INTERVAL: interval_text},
}
