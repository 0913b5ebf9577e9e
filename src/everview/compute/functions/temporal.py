"""Times of the timeline, in milliseconds: `mz_now()`, and arithmetic with them.

`mz_now()` has no value of its own. Whoever runs a plan at a time puts that time in its place; in a maintained view it
bounds the times at which a row is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from everview.compute.functions.civil import add_interval, timestamp
from everview.compute.functions.contract import Failure
from everview.compute.functions.dates import add_interval_sql
from everview.compute.functions.family import Family
from everview.compute.functions.naming import key_of
from everview.compute.functions.spark_sql import not_on_spark, timestamp_of
from everview.compute.ir.scalar import Call
from everview.compute.ir.types import INT8, INTERVAL, MZ_TIMESTAMP, TIMESTAMPTZ, Interval, Kind

FUNCTIONS = Family()

MZ_NOW = key_of("mz_now", ())
TIME_MIN, TIME_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Now(Call):
    """A call of `mz_now()` that remembers where in the statement it is written, for errors about it."""

    position: int | None = field(default=None, compare=False)


def now(position: int | None) -> Now:
    """The call that is written there; None if that is in no statement of the reader's."""
    return Now(MZ_NOW, (), MZ_TIMESTAMP, position)


def _unknown() -> Any:
    raise Failure("55000", "mz_now() has a value only where a statement has a time")


def _time(value: int) -> int:
    if not TIME_MIN <= value <= TIME_MAX:
        raise Failure("22003", "mz_timestamp out of range")
    return value


def _moved(sign: int) -> Any:
    return lambda time, span: timestamp(add_interval(time * 1000, span, sign), Kind.TIMESTAMPTZ)


def _moved_sql(sign: int) -> Any:
    return lambda a, t, r: add_interval_sql(
        timestamp_of(f"try_multiply({a[0]}, 1000L)", TIMESTAMPTZ), a[1], TIMESTAMPTZ, sign
    )


FUNCTIONS.add("mz_now", (), MZ_TIMESTAMP, _unknown, not_on_spark("mz_now()"), volatile=True)
FUNCTIONS.add(
    "+", (MZ_TIMESTAMP, INT8), MZ_TIMESTAMP, lambda a, b: _time(a + b), "try_add({0}, {1})", word="add", fails=True
)
FUNCTIONS.add(
    "+", (INT8, MZ_TIMESTAMP), MZ_TIMESTAMP, lambda a, b: _time(a + b), "try_add({0}, {1})", word="add", fails=True
)
FUNCTIONS.add(
    "-", (MZ_TIMESTAMP, INT8), MZ_TIMESTAMP, lambda a, b: _time(a - b), "try_subtract({0}, {1})", word="sub", fails=True
)
FUNCTIONS.add("+", (MZ_TIMESTAMP, INTERVAL), TIMESTAMPTZ, _moved(1), _moved_sql(1), word="add", fails=True)
FUNCTIONS.add("-", (MZ_TIMESTAMP, INTERVAL), TIMESTAMPTZ, _moved(-1), _moved_sql(-1), word="sub", fails=True)


def without_months(interval: Interval) -> bool:
    """Whether moving by the interval can be undone by moving back: months differ in length."""
    return interval.months == 0
