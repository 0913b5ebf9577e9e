"""Read values from text: PostgreSQL's input syntax of each type, and its errors."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from everview.compute.allowance import ROW_BYTES, take
from everview.compute.cancel import check_wanted
from everview.compute.functions import datetime_input
from everview.compute.functions.contract import Failure
from everview.compute.functions.json_value import canonical
from everview.compute.functions.naming import display_name
from everview.compute.functions.numbers import RANGES, constrain, integer_of, real
from everview.compute.functions.precision import rounded
from everview.compute.ir.types import Kind, SqlType, element_of

SPACE = " \t\n\r\v\f"
_INTEGER = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TIME = re.compile(r"-?[0-9]+")
_INFINITE = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
_UUID = re.compile(r"\{?[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}\}?")
TRUE = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
FALSE = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")
_EXPONENT_MAX = 2000
_CHECK_EVERY = 1_024  # elements of an array


def from_text(text: str, sql_type: SqlType) -> Any:
    """Read a value; fails with 22P02 if the text is not one."""
    if sql_type.kind is Kind.ARRAY:
        return _array(text, sql_type)
    if sql_type.kind is Kind.NUMERIC:
        return _numeric(text, sql_type)
    if sql_type.kind in RANGES:
        return _integer(text, sql_type)
    return rounded(_READERS[sql_type.kind](text, sql_type), sql_type)


def invalid(text: str, sql_type: SqlType) -> Failure:
    """PostgreSQL's error about text that is no value of the type."""
    return Failure("22P02", f'invalid input syntax for type {display_name(sql_type)}: "{text}"')


def _integer(text: str, sql_type: SqlType) -> int:
    stripped = text.strip(SPACE)
    if not _INTEGER.fullmatch(stripped):
        raise invalid(text, sql_type)
    value = integer_of(stripped)
    low, high, name = RANGES[sql_type.kind]
    if not low <= value <= high:
        raise Failure("22003", f'value "{text}" is out of range for type {name}')
    return value


def _numeric(text: str, sql_type: SqlType) -> Decimal:
    stripped = text.strip(SPACE)
    if _INFINITE.fullmatch(stripped) or stripped.lower() == "nan":
        raise Failure("22003", "numeric field overflow")  # there are no such decimals
    if not _NUMBER.fullmatch(stripped):
        raise invalid(text, sql_type)
    exponent = re.search(r"[eE]([+-]?[0-9]+)$", stripped)
    if exponent and (len(exponent[1]) > 9 or abs(int(exponent[1])) > _EXPONENT_MAX):
        raise Failure("22003", "value overflows numeric format")
    value = Decimal(stripped)
    if value and value.adjusted() > 40:
        raise Failure("22003", "value overflows numeric format")
    return constrain(value, sql_type)


def _float(text: str, sql_type: SqlType) -> float:
    stripped = text.strip(SPACE)
    special = _INFINITE.fullmatch(stripped)
    if special:
        return -math.inf if special[1] == "-" else math.inf
    if stripped.lower() == "nan":
        return math.nan
    if not _NUMBER.fullmatch(stripped):
        raise invalid(text, sql_type)
    mantissa = re.split("[eE]", stripped)[0]
    try:
        return real(float(stripped), sql_type.kind, nonzero=bool(mantissa.strip("+-0.")))
    except Failure:
        raise Failure("22003", f'"{stripped}" is out of range for type {display_name(sql_type)}') from None


def _boolean(text: str, sql_type: SqlType) -> bool:
    word = text.strip(SPACE).lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise invalid(text, sql_type)


def _bytea(text: str, sql_type: SqlType) -> bytes:
    if text.startswith("\\x"):
        digits = text[2:]
        if not re.fullmatch(r"[0-9A-Fa-f]*", digits):
            raise Failure("22023", "invalid hexadecimal digit")
        if len(digits) % 2:
            raise Failure("22023", "invalid hexadecimal data: odd number of digits")
        return bytes.fromhex(digits)
    if "\\" in text:
        raise invalid(text, sql_type)
    return text.encode()


def _uuid(text: str, sql_type: SqlType) -> str:
    lower = text.lower()
    if not _UUID.fullmatch(lower) or lower.startswith("{") != lower.endswith("}"):
        raise invalid(text, sql_type)
    return str(uuid.UUID(re.sub("[{}-]", "", lower)))


def limited(text: str, sql_type: SqlType, *, explicit: bool = True) -> str:
    """Cut text to its varchar(n) or char(n). An assignment fails instead, unless only spaces are lost."""
    if sql_type.length is not None and len(text) > sql_type.length:
        if not explicit and text[sql_type.length :].strip(" "):
            raise Failure("22001", f"value too long for type {sql_type}")
        text = text[: sql_type.length]
    # The spaces at the end of a char(n) do not count, so its values are kept without them.
    return text.rstrip(" ") if sql_type.kind is Kind.CHAR else text


def _mz_timestamp(text: str, sql_type: SqlType) -> int:
    stripped = text.strip(SPACE)
    if not _TIME.fullmatch(stripped):
        raise invalid(text, sql_type)
    value = integer_of(stripped)
    if not -(2**63) <= value < 2**63:  # a date before 1970 has a time below zero, and its text is one
        raise Failure("22003", f'value "{text}" is out of range for type mz_timestamp')
    return value


_ELEMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^{},"\\]|\\.)+))\s*', re.DOTALL)


def _array(text: str, sql_type: SqlType) -> list[Any]:
    stripped, element = text.strip(SPACE), element_of(sql_type)
    malformed = Failure("22P02", f'malformed array literal: "{text}"')
    if len(stripped) < 2 or stripped[0] != "{" or stripped[-1] != "}":
        raise malformed
    inner = stripped[1:-1]
    values: list[Any] = []
    position = 0
    if not inner.strip(SPACE):
        return values
    while True:
        match = _ELEMENT.match(inner, position)
        if not match or not match[0].strip(SPACE):
            raise malformed
        position = match.end()
        if len(values) % _CHECK_EVERY == 0:
            check_wanted()
            take(_CHECK_EVERY * ROW_BYTES)
        bare = match[2].strip(SPACE) if match[1] is None else None
        if bare is not None and bare.upper() == "NULL":
            values.append(None)
        else:
            values.append(from_text(re.sub(r"\\(.)", r"\1", match[1] if bare is None else bare), element))
        if position == len(inner):
            return values
        if inner[position] != ",":
            raise malformed
        position += 1


_READERS: dict[Kind, Callable[[str, SqlType], Any]] = {
    **{Kind.BOOLEAN: _boolean, Kind.FLOAT4: _float, Kind.FLOAT8: _float, Kind.BYTEA: _bytea, Kind.UUID: _uuid},
    **{Kind.VARCHAR: limited, Kind.CHAR: limited, Kind.MZ_TIMESTAMP: _mz_timestamp},
    **dict.fromkeys((Kind.TEXT, Kind.UNKNOWN), lambda text, _: text),
    **dict.fromkeys((Kind.TIMESTAMP, Kind.TIMESTAMPTZ), lambda text, to: datetime_input.read_timestamp(text, to.kind)),
    Kind.DATE: lambda text, _: datetime_input.read_date(text),
    Kind.TIME: lambda text, _: datetime_input.read_time(text),
    Kind.INTERVAL: lambda text, _: datetime_input.read_interval(text),
    Kind.JSONB: lambda text, _: canonical(text),
}
