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
from everview.compute.functions.contract import Failure
from everview.compute.functions.datetime_input import read_date, read_interval, read_time, read_timestamp
from everview.compute.functions.json_value import canonical
from everview.compute.functions.naming import display_name
from everview.compute.functions.numbers import RANGES, constrain, integer_of, real
from everview.compute.functions.precision import rounded
from everview.compute.functions.slices import SLICE, runs, slices
from everview.compute.functions.trimming import trimmed
from everview.compute.ir.types import Kind, SqlType, element_of

SPACE = " \t\n\r\v\f"
_INTEGER = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TIME = re.compile(r"-?[0-9]+")
_HEX = re.compile(r"[0-9A-Fa-f]*")
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
    stripped = _stripped(text)
    if not _INTEGER.fullmatch(stripped):
        raise invalid(text, sql_type)
    value = integer_of(stripped)
    low, high, name = RANGES[sql_type.kind]
    if not low <= value <= high:
        raise Failure("22003", f'value "{text}" is out of range for type {name}')
    return value


def _numeric(text: str, sql_type: SqlType) -> Decimal:
    stripped = _stripped(text)
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
    stripped = _stripped(text)
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
    word = _stripped(text).lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise invalid(text, sql_type)


def _bytea(text: str, sql_type: SqlType) -> bytes:
    if text.startswith("\\x"):
        parts = list(slices(text[2:]))
        if not all(map(_HEX.fullmatch, parts)):
            raise Failure("22023", "invalid hexadecimal digit")
        if len(text) % 2:
            raise Failure("22023", "invalid hexadecimal data: odd number of digits")
        return b"".join(map(bytes.fromhex, parts))
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
    stripped = _stripped(text)
    if not _TIME.fullmatch(stripped):
        raise invalid(text, sql_type)
    value = integer_of(stripped)
    if not -(2**63) <= value < 2**63:  # a date before 1970 has a time below zero, and its text is one
        raise Failure("22003", f'value "{text}" is out of range for type mz_timestamp')
    return value


# Parts of an element, in quotes and without, and blanks: each bounded, see `runs`.
_QUOTED = re.compile(r'(?:[^"\\]{1,4096}+|\\.){1,256}+', re.DOTALL)
_BARE = re.compile(r'(?:[^{},"\\]{1,4096}+|\\.){1,256}+', re.DOTALL)
_BLANKS = re.compile(f"[{SPACE}]{{1,{SLICE}}}+")
_ESCAPED = re.compile(r"(?:[^\\]{1,4096}+|\\.){1,256}+", re.DOTALL)


def _array(text: str, sql_type: SqlType) -> list[Any]:
    stripped, element = _stripped(text), element_of(sql_type)
    if len(stripped) < 2 or stripped[0] != "{" or stripped[-1] != "}":
        raise _malformed(text)
    inner = stripped[1:-1]
    values: list[Any] = []
    position = _behind_blanks(inner, 0)
    if position == len(inner):
        return values
    while True:
        if len(values) % _CHECK_EVERY == 0:
            check_wanted()
            take(_CHECK_EVERY * ROW_BYTES)
        quoted = inner.startswith('"', position)
        written = "".join(runs(_QUOTED if quoted else _BARE, inner, position + quoted))
        position += len(written) + quoted
        if quoted:
            if not inner.startswith('"', position):
                raise _malformed(text)
            values.append(from_text(_unescaped(written), element))
            position = _behind_blanks(inner, position + 1)
        elif not written:
            raise _malformed(text)
        else:
            bare = _bare(written)
            is_null = len(bare) == 4 and bare.upper() == "NULL"
            values.append(None if is_null else from_text(_unescaped(bare), element))
        if position == len(inner):
            return values
        if inner[position] != ",":
            raise _malformed(text)
        position = _behind_blanks(inner, position + 1)


def _malformed(text: str) -> Failure:
    return Failure("22P02", f'malformed array literal: "{text}"')


def _bare(written: str) -> str:
    """An element without quotes, without the blanks behind it; the last one counts if it is escaped."""
    kept = _stripped(written)
    escaped = (len(kept) - len(kept.rstrip("\\"))) % 2
    return written[: len(kept) + escaped]


def _unescaped(written: str) -> str:
    if "\\" not in written:
        return written
    parts = (part.split("\\\\") for part in runs(_ESCAPED, written))
    return "".join("\\".join(each.replace("\\", "") for each in part) for part in parts)


def _behind_blanks(text: str, position: int) -> int:
    return position + sum(map(len, runs(_BLANKS, text, position)))


def _stripped(text: str) -> str:
    """The text without blanks at its ends."""
    return text.strip(SPACE) if len(text) < SLICE else trimmed(text, SPACE, front=True, back=True)


def _short(text: str) -> str:
    """The text, or if it is long the text without blanks at its ends."""
    return text if len(text) < SLICE else _stripped(text)


_READERS: dict[Kind, Callable[[str, SqlType], Any]] = {
    **{Kind.BOOLEAN: _boolean, Kind.FLOAT4: _float, Kind.FLOAT8: _float, Kind.BYTEA: _bytea, Kind.UUID: _uuid},
    **{Kind.VARCHAR: limited, Kind.CHAR: limited, Kind.MZ_TIMESTAMP: _mz_timestamp},
    **dict.fromkeys((Kind.TEXT, Kind.UNKNOWN), lambda text, _: text),
    **dict.fromkeys((Kind.TIMESTAMP, Kind.TIMESTAMPTZ), lambda text, to: read_timestamp(_short(text), to.kind)),
    Kind.DATE: lambda text, _: read_date(_short(text)),
    Kind.TIME: lambda text, _: read_time(_short(text)),
    Kind.INTERVAL: lambda text, _: read_interval(_short(text)),
    Kind.JSONB: lambda text, _: canonical(text),
}
