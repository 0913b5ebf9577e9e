"""Functions of the bounds of temporal filters, for which SQL has no names: see `delta.thresholds`.

Few of them fail, and as the operators of SQL do. Times are milliseconds; moments are microseconds, wherever a bound
passes through a timestamp; spans are microseconds too. What lies beyond all times is as good as the last of them, at
which nothing happens any more, and a moment that is there already stays there, however it is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from everview.compute.functions.calendar import DAY, micros_of
from everview.compute.functions.contract import Failure
from everview.compute.functions.naming import NUMERIC, key_of
from everview.compute.functions.numbers import EXACT
from everview.compute.functions.order import interval_micros, spark_interval_micros
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import Renderer, carried, let, once
from everview.compute.functions.spark_sql import micros_of as micros_sql
from everview.compute.functions.temporal import TIME_MAX, TIME_MIN
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.scalar import Call, Scalar
from everview.compute.ir.types import INT8, MZ_TIMESTAMP, SqlType

FUNCTIONS = Family()
define = FUNCTIONS.define

_MAX_SQL, _MIN_SQL = "9223372036854775807L", "(-9223372036854775807L - 1L)"
_MOVED_ON = (
    f"coalesce(try_add({{0}}, {{1}}), CASE WHEN {{0}} > 0 AND {{1}} > 0 THEN {_MAX_SQL}"
    f" WHEN {{0}} < 0 AND {{1}} < 0 THEN {_MIN_SQL} END)"
)
_MOVED_BACK = (
    f"coalesce(try_subtract({{0}}, {{1}}), CASE WHEN {{0}} >= 0 AND {{1}} < 0 THEN {_MAX_SQL}"
    f" WHEN {{0}} < 0 AND {{1}} > 0 THEN {_MIN_SQL} END)"
)
_LIMITED = f"CASE WHEN w.a >= {_MAX_SQL} THEN {_MAX_SQL} WHEN w.a <= {_MIN_SQL} THEN {_MIN_SQL}"
_FLOOR = "{0} div 1000L - CASE WHEN {0} % 1000L < 0 THEN 1L ELSE 0L END"


def limited(value: int) -> int:
    """A time that is not beyond all times."""
    return min(max(value, TIME_MIN), TIME_MAX)


def _add_moment(name: str, evaluate: Callable[..., int], spark: str) -> None:
    """A function of a moment, which stays where it is if that is beyond all times; some take microseconds too."""
    moved = "{1}" in spark
    FUNCTIONS.define(
        f"{name}(int8{', int8' * moved}) -> int8",
        lambda value, *by: value if value in (TIME_MIN, TIME_MAX) else limited(evaluate(value, *by)),
        f"CASE WHEN {{0}} IN ({_MAX_SQL}, {_MIN_SQL}){' AND {1} IS NOT NULL' * moved} THEN {{0}} ELSE {spark} END",
    )


def _rounded_sql(more: str) -> str:
    return f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN coalesce(try_add({{0}}, {more}), {_MAX_SQL}) END"


_ROUNDED_UP = _rounded_sql("pmod(-{0}, nullif({1}, 0L))")
_NEXT_ROUNDED = _rounded_sql("try_subtract({1}, pmod({0}, nullif({1}, 0L)))")
_CEILING = "{0} div 1000L + CASE WHEN {0} % 1000L > 0 THEN 1L ELSE 0L END"
_add_moment("the moment moved on", lambda value, by: value + by, _MOVED_ON)
_add_moment("the moment moved back", lambda value, by: value - by, _MOVED_BACK)
_add_moment("the moment rounded up", lambda value, unit: -(-value // unit) * unit, _ROUNDED_UP)
_add_moment("the next moment rounded", lambda value, unit: value // unit * unit + unit, _NEXT_ROUNDED)
_add_moment("the time from", lambda value: -(-value // 1000), _CEILING)
_add_moment("the time past", lambda value: value // 1000 + 1, _FLOOR.format("{0}") + " + 1L")


def _in_times(rule: Callable[[int], int]) -> Callable[[Any], int]:
    """The rule for a date or timestamp; infinity is the last of all times."""
    return lambda value: value.micros if isinstance(value, Infinite) else rule(micros_of(value))


def _in_times_sql(rule: str) -> Renderer:
    def rendered(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
        def body(value: str) -> str:
            finite = let(rule.format("w.a"), micros_sql(value, types[0]), name="w")
            return carried(value, types[0], MZ_TIMESTAMP, finite)

        return once(args[0], body, "k")

    return rendered


def _known(failure: str) -> Callable[[Any], int]:
    """The microseconds of a date or timestamp of the calendar; an infinity fails, as in the operator of SQL."""

    def evaluate(value: Any) -> int:
        if isinstance(value, Infinite):
            raise Failure("22008", failure)
        return micros_of(value)

    return evaluate


_MICROS: Renderer = lambda args, types, result: micros_sql(args[0], types[0])
_micros, _micros_sql = _in_times(lambda micros: micros), _in_times_sql("{0}")
_NEXT = "coalesce(try_add({0}, 1L), {0})"
_millis, _millis_sql = _in_times(lambda micros: micros // 1000), _in_times_sql(_FLOOR)
define("the time after(T) -> T", lambda time: limited(time + 1), _NEXT, T="mz_timestamp int8")
define("the time moved on(T, int8) -> T", lambda time, by: limited(time + by), _MOVED_ON, T="mz_timestamp int8")
define("the time moved back(T, int8) -> T", lambda time, by: limited(time - by), _MOVED_BACK, T="mz_timestamp int8")
define("the number(mz_timestamp) -> int8", lambda time: time, "{0}")
define("the moment(T) -> int8", _micros, _micros_sql, T="date timestamp timestamptz")
define("the time at(T) -> int8", _millis, _millis_sql, T="date timestamp timestamptz")
define("the finite moment(date) -> int8", _known("cannot subtract infinite dates"), _MICROS, fails=True)
_finite = _known("cannot subtract infinite timestamps")
define("the finite moment(T) -> int8", _finite, _MICROS, fails=True, T="timestamp timestamptz")
define("the origin(T) -> int8", _known("origin out of range"), _MICROS, fails=True, T="timestamp timestamptz")
# Of what is subtracted from mz_now(), which may be infinite. It is said to fail, though it does not, for once it did:
# what a view keeps for its bounds depends on which of them can fail.
define("the moment subtracted(timestamptz) -> int8", _micros, _micros_sql, fails=True)


def _span_sql(args: Sequence[str], _types: Sequence[SqlType], _result: SqlType) -> str:
    return let(f"{_LIMITED} ELSE cast(w.a as bigint) END", spark_interval_micros(args[0]), name="w")


def _whole(value: Decimal, rounding: str, factor: int = 1) -> int:
    return int(EXACT.multiply(value, Decimal(factor)).to_integral_value(rounding, EXACT))


def _number_sql(name: str, more: str = "") -> Renderer:
    return lambda args, types, result: let(f"{_LIMITED} ELSE cast({name}(w.a) as bigint){more} END", args[0], name="w")


def _scaled_sql(size: int) -> str:
    beyond = f"CASE WHEN {{0}} > 0 THEN {_MAX_SQL} WHEN {{0}} < 0 THEN {_MIN_SQL} END"
    return f"coalesce(try_multiply({{0}}, {size}L), {beyond})"


# Of a number that is multiplied or divided by one above zero, where quotients are cut towards zero.
# No rendering may end a job, so a zero would give NULL.
_FACTOR = "{0} div nullif({1}, 0L) + CASE WHEN {0} > 0 AND {0} % nullif({1}, 0L) <> 0 THEN 1L ELSE 0L END"
_DIVIDEND = (
    f"CASE WHEN {{0}} > 0 THEN coalesce(try_multiply({{0}}, {{1}}), {_MAX_SQL}) WHEN {{0}} <= 0 AND {{1}} > 0 THEN"
    f" coalesce(try_add(try_multiply(try_subtract({{0}}, 1L), {{1}}), 1L), {_MIN_SQL}) END"
)


define("the span of days(int8) -> int8", lambda count: limited(count * DAY), _scaled_sql(DAY))
define("the span of milliseconds(int8) -> int8", lambda count: limited(count * 1000), _scaled_sql(1000))
define("the span(interval) -> int8", lambda span: limited(interval_micros(span)), _span_sql)
define("the whole number from(numeric) -> int8", lambda n: limited(_whole(n, ROUND_CEILING)), _number_sql("ceil"))
_floor_past = _number_sql("floor", " + 1L")
define("the whole number past(numeric) -> int8", lambda n: limited(_whole(n, ROUND_FLOOR) + 1), _floor_past)
define("the second from(numeric) -> int8", lambda n: limited(_whole(n, ROUND_CEILING, 1_000_000)))
define("the second past(numeric) -> int8", lambda n: limited(_whole(n, ROUND_FLOOR, 1_000_000) + 1))
define("the factor from(int8, int8) -> int8", lambda value, by: -(-value // by), _FACTOR)
_dividend = lambda value, by: limited(value * by if value > 0 else (value - 1) * by + 1)
define("the dividend from(int8, int8) -> int8", _dividend, _DIVIDEND)


def bound(name: str, *args: Scalar) -> Scalar:
    """A function of this family, which gives a number but for the first three, which keep a time's type."""
    kinds = tuple(NUMERIC if arg.type.kind is NUMERIC.kind else arg.type.base for arg in args)
    result = args[0].type if name.startswith(("the time after", "the time moved")) else INT8
    return Call(key_of(name, kinds), args, result)
