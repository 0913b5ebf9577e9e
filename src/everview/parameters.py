"""Python values as parameters of SQL statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from everview.compute.functions.input import from_text
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import Interval, Kind, SqlType
from everview.compute.sql.errors import SqlError
from everview.compute.sql.strings import utf8


def parameter(value: Any, sql_type: SqlType) -> Any:
    """The value as statements take it. It goes through its text, so it means what the text means in SQL."""
    if value is None or (isinstance(value, bytes) and sql_type.kind is Kind.BYTEA):
        return value
    if sql_type.kind is Kind.ARRAY and sql_type.element is not None and _is_list(value):
        element = sql_type.element
        return [parameter(each, element) for each in value]
    if isinstance(value, Interval) and sql_type.kind is Kind.INTERVAL:
        return value
    if sql_type.kind is Kind.JSONB and not isinstance(value, str):
        return from_text(json.dumps(value), sql_type)
    return from_text(_text(value, sql_type), sql_type)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _text(value: Any, sql_type: SqlType) -> str:
    match value:
        case str():
            return utf8(value.encode(errors="surrogatepass"))
        case bool():
            return "true" if value else "false"
        case int() | Decimal() | UUID() | Infinite():
            return str(value)
        case float():
            return repr(value)
        case datetime() if value.tzinfo is None and sql_type.kind is Kind.TIMESTAMPTZ:
            raise SqlError("22007", f"{value!r} has no time zone", hint="for example datetime.now(UTC)")
        case datetime():
            return value.isoformat(sep=" ")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"
        case Mapping() | Sequence():
            raise SqlError("22P02", f"a {type(value).__name__} is not a value of type {sql_type}")
        case _:
            raise SqlError("22P02", f"cannot use a {type(value).__name__} as a value of type {sql_type}")
