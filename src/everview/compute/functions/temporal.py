"""Times of the timeline, in milliseconds: `mz_now()`, and arithmetic with them.

`mz_now()` has no value of its own. Whoever runs a plan at a time puts that time in its place; in a maintained view it
bounds the times at which a row is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from everview.compute.functions.calendar import add_interval, micros_of, timestamp
from everview.compute.functions.cast_spark import cast_sql
from everview.compute.functions.contract import fail
from everview.compute.functions.intervals import justify_hours, justify_hours_sql
from everview.compute.functions.naming import key_of
from everview.compute.functions.numbers import whole
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import MICROS_MAX, MICROS_MIN, carried, infinity, interval, let
from everview.compute.functions.spark_sql import micros_of as micros_sql
from everview.compute.ir.infinite import INFINITY, MINUS_INFINITY, OF_MICROS, Infinite
from everview.compute.ir.scalar import Call
from everview.compute.ir.types import MZ_TIMESTAMP, TIMESTAMPTZ, Interval, Kind, SqlType

FUNCTIONS = Family()
define = FUNCTIONS.define

MZ_NOW = key_of("mz_now", ())
TIME_MIN, TIME_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Now(Call):
    """A call of `mz_now()` that remembers where in the statement it is written, for errors about it."""

    position: int | None = field(default=None, compare=False)


def now(position: int | None) -> Now:
    """The call that is written there; None if that is in no statement of the reader's."""
    return Now(MZ_NOW, (), MZ_TIMESTAMP, position)


def _moved(sign: int) -> Any:
    """A time moved by an interval, as a timestamp; what leaves the calendar is infinite."""

    def evaluate(time: int, span: Interval) -> Any:
        if time in OF_MICROS:  # the last of all times is infinity
            return OF_MICROS[time]
        micros = add_interval(micros_of(timestamp(time * 1000, Kind.TIMESTAMPTZ)), span, sign)
        if MICROS_MIN <= micros <= MICROS_MAX:
            return timestamp(micros, Kind.TIMESTAMPTZ)
        return INFINITY if micros > 0 else MINUS_INFINITY

    return evaluate


def _moved_sql(sign: int) -> Any:
    minus, operator = ("-", "-") if sign < 0 else ("", "+")
    moved = f"unix_micros(timestampadd(MONTH, {minus} i.b.months, i.a))"
    total = f"{moved} {operator} (i.b.days * 86400000000L + i.b.micros)"
    # Beyond these no sum is in range. A day more or less is nothing there, and a month is as long as most are.
    length = (
        f"{minus} (cast(i.b.months as decimal(38,0)) * 2629746000000"
        " + cast(i.b.days as decimal(38,0)) * 86400000000 + i.b.micros)"
    )
    bounded = "abs(i.b.months) < 240000 AND abs(i.b.days) < 8000000 AND abs(i.b.micros) < 700000000000000000L"
    micros = f"CASE WHEN {bounded} THEN cast({total} as decimal(38,0)) ELSE {length} END"
    ends = (
        f"WHEN w.a > {MICROS_MAX}L THEN {infinity(TIMESTAMPTZ)}"
        f" WHEN w.a < {MICROS_MIN}L THEN {infinity(TIMESTAMPTZ, MINUS_INFINITY)}"
    )
    saturated = let(f"CASE {ends} ELSE timestamp_micros(cast(w.a as bigint)) END", micros, name="w")
    body = carried("i.a", TIMESTAMPTZ, TIMESTAMPTZ, saturated, ["i.b"])
    return lambda a, t, r: let(body, cast_sql(a[0], MZ_TIMESTAMP, TIMESTAMPTZ), a[1], name="i")


# As long as an interval can be, which stands for one without end: what an infinite timestamp is away from a time.
LONGEST = {INFINITY: Interval(2**31 - 1, 2**31 - 1, 2**63 - 1), MINUS_INFINITY: Interval(-(2**31), -(2**31), -(2**63))}


def _between(one: Any, other: Any) -> Interval:
    if isinstance(one, Infinite):
        return LONGEST[one]
    if isinstance(other, Infinite):
        return LONGEST[MINUS_INFINITY if other is INFINITY else INFINITY]
    micros = [each * 1000 if isinstance(each, int) else micros_of(each) for each in (one, other)]
    return justify_hours(Interval(0, 0, whole(micros[0] - micros[1], Kind.INT8)))


def _between_sql(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
    names = ("t.a", "t.b")
    of_time = types[0].kind is Kind.MZ_TIMESTAMP
    one, other = (
        f"try_multiply({arg}, 1000L)" if each.kind is Kind.MZ_TIMESTAMP else micros_sql(arg, each)
        for arg, each in zip(names, types, strict=True)
    )
    finite = justify_hours_sql(interval("0", "0", f"try_subtract({one}, {other})"))
    stamp, time = reversed(names) if of_time else names
    cases = []
    for which, other_way in ((INFINITY, MINUS_INFINITY), (MINUS_INFINITY, INFINITY)):
        span = LONGEST[other_way if of_time else which]
        rendered = interval(str(span.months), str(span.days), f"cast('{span.micros}' as bigint)")
        cases.append(f"WHEN {stamp} = {infinity(TIMESTAMPTZ, which)} AND {time} IS NOT NULL THEN {rendered}")
    return let(f"CASE {' '.join(cases)} ELSE {finite} END", *args, name="t")


_unknown = lambda: fail("55000", "mz_now() has a value only where a statement has a time")
_OUT_OF_RANGE = "mz_timestamp out of range"
_time: Callable[[int], int] = lambda at: at if TIME_MIN <= at <= TIME_MAX else fail("22003", _OUT_OF_RANGE)
define("mz_now() -> mz_timestamp", _unknown, volatile=True)
define("+ add(mz_timestamp, int8) -> mz_timestamp", lambda a, b: _time(a + b), "try_add({0}, {1})", fails=True)
define("+ add(int8, mz_timestamp) -> mz_timestamp", lambda a, b: _time(a + b), "try_add({0}, {1})", fails=True)
define("- sub(mz_timestamp, int8) -> mz_timestamp", lambda a, b: _time(a - b), "try_subtract({0}, {1})", fails=True)
define("+ add(mz_timestamp, interval) -> timestamptz", _moved(1), _moved_sql(1), fails=True)
define("- sub(mz_timestamp, interval) -> timestamptz", _moved(-1), _moved_sql(-1), fails=True)
# The time between two moments, and between two numbers of milliseconds.
define("- sub(int8, mz_timestamp) -> int8", lambda a, b: whole(a - b, Kind.INT8), "try_subtract({0}, {1})", fails=True)
define("- sub(mz_timestamp, timestamptz) -> interval", _between, _between_sql, fails=True)
define("- sub(timestamptz, mz_timestamp) -> interval", _between, _between_sql, fails=True)
