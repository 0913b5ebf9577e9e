"""Times of the timeline, in milliseconds: `mz_now()`, and arithmetic with them.

`mz_now()` has no value of its own. Whoever runs a plan at a time puts that time in its place; in a maintained view it
bounds the times at which a row is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from everview.compute.functions.cast_spark import cast_sql
from everview.compute.functions.civil import add_interval, micros_of, timestamp
from everview.compute.functions.contract import Failure
from everview.compute.functions.dates import add_interval_sql
from everview.compute.functions.family import Family
from everview.compute.functions.intervals import justify_hours, justify_hours_sql
from everview.compute.functions.naming import key_of
from everview.compute.functions.numbers import whole
from everview.compute.functions.spark_sql import interval, not_on_spark
from everview.compute.functions.spark_sql import micros_of as micros_sql
from everview.compute.ir.infinite import OF_MICROS, Infinite
from everview.compute.ir.scalar import Call
from everview.compute.ir.types import INT8, INTERVAL, MZ_TIMESTAMP, TIMESTAMPTZ, Interval, Kind, SqlType

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
    def evaluate(time: int, span: Interval) -> Any:
        if time in OF_MICROS:  # the last of all times is infinity
            return OF_MICROS[time]
        return timestamp(add_interval(time * 1000, span, sign), Kind.TIMESTAMPTZ)

    return evaluate


def _moved_sql(sign: int) -> Any:
    return lambda a, t, r: add_interval_sql(cast_sql(a[0], MZ_TIMESTAMP, TIMESTAMPTZ), a[1], TIMESTAMPTZ, sign)


def _micros(value: Any) -> int:
    if isinstance(value, Infinite):  # there are no infinite intervals
        raise Failure("22008", "cannot subtract infinite timestamps")
    return value * 1000 if isinstance(value, int) else micros_of(value)


def _between(one: int, other: int) -> Interval:
    return justify_hours(Interval(0, 0, whole(one - other, Kind.INT8)))


def _between_sql(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
    one, other = (
        f"try_multiply({arg}, 1000L)" if each.kind is Kind.MZ_TIMESTAMP else micros_sql(arg, each)
        for arg, each in zip(args, types, strict=True)
    )
    return justify_hours_sql(interval("0", "0", f"try_subtract({one}, {other})"))


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
# The time between two moments, and between two numbers of milliseconds.
FUNCTIONS.add(
    "-",
    (INT8, MZ_TIMESTAMP),
    INT8,
    lambda a, b: whole(a - b, Kind.INT8),
    "try_subtract({0}, {1})",
    word="sub",
    fails=True,
)
for _args in ((MZ_TIMESTAMP, TIMESTAMPTZ), (TIMESTAMPTZ, MZ_TIMESTAMP)):
    FUNCTIONS.add(
        "-", _args, INTERVAL, lambda a, b: _between(_micros(a), _micros(b)), _between_sql, word="sub", fails=True
    )
