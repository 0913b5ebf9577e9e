"""Functions of moments that need a time zone or two ends: make_timestamptz, date_trunc in a zone, OVERLAPS.

On Spark these are called in Python, where a zone's clock that goes back is read as PostgreSQL reads it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from everview.compute.functions.civil import micros_of, timestamp
from everview.compute.functions.contract import Failure
from everview.compute.functions.dates import at_zone, make_timestamp, zone
from everview.compute.functions.family import Family
from everview.compute.functions.fields import truncated, unit_of
from everview.compute.functions.spark_sql import not_on_spark
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import (
    BOOLEAN,
    FLOAT8,
    INT4,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
)

FUNCTIONS = Family()
_add = FUNCTIONS.add
_BELOW_DAYS = ("microseconds", "milliseconds", "second", "minute", "hour")


def _make_timestamptz(*args: Any) -> Any:
    local: Any = make_timestamp(*args[:6])
    return local.replace(tzinfo=UTC) if len(args) == 6 else at_zone(args[6], local)


def _truncated_in_zone(field: str, value: datetime | Infinite, name: str) -> Any:
    """By the zone's calendar. Parts of an hour keep its offset, for they may be in an hour that comes twice."""
    if isinstance(value, Infinite):
        zone(name)
        return truncated(TIMESTAMPTZ)(field, value)
    local: Any = at_zone(name, value)
    found: Any = truncated(TIMESTAMP)(field, local)
    if unit_of(field) in _BELOW_DAYS:
        return timestamp(micros_of(value) - (micros_of(local) - micros_of(found)), Kind.TIMESTAMPTZ)
    try:
        return found.replace(tzinfo=zone(name)).astimezone(UTC)
    except OverflowError:
        raise Failure("22008", "timestamp out of range") from None


def _overlaps(start: Any, end: Any, other_start: Any, other_end: Any) -> bool | None:
    """Whether two periods have a moment in common, without their ends; a NULL is an end that is not known."""
    one, other = _ordered(start, end), _ordered(other_start, other_end)
    if one is None or other is None:
        return None
    if one[0] > other[0]:
        one, other = other, one
    if one[0] == other[0]:
        return None if one[1] is None or other[1] is None else True
    if one[1] is None:
        return None
    return True if other[0] < one[1] else None if other[1] is None else False


def _ordered(start: Any, end: Any) -> tuple[Any, Any] | None:
    """The earlier end first, the one that is known before one that is not; None where neither is."""
    if start is None or end is None:
        known = end if start is None else start
        return None if known is None else (known, None)
    return (start, end) if start <= end else (end, start)


for _of in (TIME, TIMESTAMP, TIMESTAMPTZ):
    _add("overlaps", (_of,) * 4, BOOLEAN, _overlaps, not_on_spark("overlaps"), strict=False)
_CLOCK = (INT4, INT4, INT4, INT4, INT4, FLOAT8)
for _args in (_CLOCK, (*_CLOCK, TEXT)):
    _add("make_timestamptz", _args, TIMESTAMPTZ, _make_timestamptz, not_on_spark("make_timestamptz"), fails=True)
_add("date_trunc", (TEXT, TIMESTAMPTZ, TEXT), TIMESTAMPTZ, _truncated_in_zone, not_on_spark("date_trunc"), fails=True)
