"""How many digits of a second a type keeps: `timestamp(3)`, `time(0)`, `interval(2)`.

PostgreSQL rounds halves away from zero, and the zero of timestamps is the year 2000.
"""

from __future__ import annotations

from typing import Any

from everview.compute.functions.calendar import DAY, micros_of, timestamp
from everview.compute.functions.spark_sql import carried, interval, let, once, timestamp_of
from everview.compute.functions.spark_sql import micros_of as micros_sql
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import Interval, Kind, SqlType

ZERO_US = 10_957 * DAY  # 2000-01-01
_STAMPS = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
PRECISE = (Kind.TIME, *_STAMPS, Kind.INTERVAL)


def is_rounded(sql_type: SqlType) -> bool:
    """Whether values of the type have fewer digits than there are microseconds."""
    return sql_type.kind in PRECISE and sql_type.length is not None


def rounded(value: Any, to: SqlType) -> Any:
    """A value of a time, timestamp or interval with the digits of its type."""
    if not is_rounded(to) or value is None or isinstance(value, Infinite):
        return value
    if to.kind in _STAMPS:
        return timestamp(_round(micros_of(value) - ZERO_US, to) + ZERO_US, to.kind)
    if to.kind is Kind.INTERVAL:
        return Interval(value.months, value.days, _round(value.micros, to))
    return _round(value, to)


def _round(micros: int, to: SqlType) -> int:
    step = _step(to)
    size = (abs(micros) + step // 2) // step * step
    return size if micros >= 0 else -size


def _step(to: SqlType) -> int:
    assert to.length is not None
    return int(10 ** (6 - to.length))


def rounded_sql(value: str, to: SqlType) -> str:
    if not is_rounded(to):
        return value
    if to.kind in _STAMPS:
        return once(value, lambda name: carried(name, to, to, _round_stamp_sql(name, to)), "k")
    if to.kind is Kind.INTERVAL:
        return let(interval("r.a.months", "r.a.days", _round_sql("r.a.micros", to)), value, name="r")
    return _round_sql(value, to)


def _round_stamp_sql(value: str, to: SqlType) -> str:
    since = f"{micros_sql(value, to)} - {ZERO_US}L"
    return timestamp_of(f"{_round_sql(since, to)} + {ZERO_US}L", to)


def _round_sql(micros: str, to: SqlType) -> str:
    step = _step(to)
    size = f"(abs(s.a) + {step // 2}L) div {step}L * {step}L"
    return let(f"CASE WHEN s.a >= 0 THEN {size} ELSE - ({size}) END", micros, name="s")
