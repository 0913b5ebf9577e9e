"""Functions of the bounds of temporal filters, for which SQL has no names: see `delta.thresholds`.

Few of them fail, and as the operators of SQL do. Times are milliseconds; moments are microseconds, wherever a bound
passes through a timestamp; spans are microseconds too. What lies beyond all times is as good as the last of them, at
which nothing happens any more, and a moment that is there already stays there, however it is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from everview.compute.functions.civil import DAY, micros_of
from everview.compute.functions.contract import Failure
from everview.compute.functions.family import Family
from everview.compute.functions.naming import NUMERIC, key_of
from everview.compute.functions.numbers import EXACT
from everview.compute.functions.order import interval_micros, spark_interval_micros
from everview.compute.functions.spark_sql import Renderer, carried, let, not_on_spark, once
from everview.compute.functions.spark_sql import micros_of as micros_sql
from everview.compute.functions.temporal import TIME_MAX, TIME_MIN
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.scalar import Call, Scalar
from everview.compute.ir.types import DATE, INT8, INTERVAL, MZ_TIMESTAMP, TIMESTAMP, TIMESTAMPTZ, SqlType

FUNCTIONS = Family()

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


def _endless(value: int) -> bool:
    return value in (TIME_MIN, TIME_MAX)


for _type in (MZ_TIMESTAMP, INT8):
    FUNCTIONS.add("the time after", (_type,), _type, lambda time: limited(time + 1), "coalesce(try_add({0}, 1L), {0})")
    FUNCTIONS.add("the time moved on", (_type, INT8), _type, lambda time, by: limited(time + by), _MOVED_ON)
    FUNCTIONS.add("the time moved back", (_type, INT8), _type, lambda time, by: limited(time - by), _MOVED_BACK)

FUNCTIONS.add("the number", (MZ_TIMESTAMP,), INT8, lambda time: time, "{0}")


def _add(name: str, evaluate: Callable[[int], int], spark: str) -> None:
    """A function of a moment, which stays where it is if that is beyond all times."""
    FUNCTIONS.add(
        name,
        (INT8,),
        INT8,
        lambda value: value if _endless(value) else limited(evaluate(value)),
        f"CASE WHEN {{0}} IN ({_MAX_SQL}, {_MIN_SQL}) THEN {{0}} ELSE {spark} END",
    )


def _add_moved(name: str, evaluate: Callable[[int, int], int], spark: str) -> None:
    """The same of a moment and a number of microseconds."""
    FUNCTIONS.add(
        name,
        (INT8, INT8),
        INT8,
        lambda value, by: value if _endless(value) else limited(evaluate(value, by)),
        f"CASE WHEN {{0}} IN ({_MAX_SQL}, {_MIN_SQL}) AND {{1}} IS NOT NULL THEN {{0}} ELSE {spark} END",
    )


def _rounded_sql(more: str) -> str:
    return f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN coalesce(try_add({{0}}, {more}), {_MAX_SQL}) END"


_add_moved("the moment moved on", lambda value, by: value + by, _MOVED_ON)
_add_moved("the moment moved back", lambda value, by: value - by, _MOVED_BACK)
_add_moved(
    "the moment rounded up",
    lambda value, unit: -(-value // unit) * unit,
    _rounded_sql("pmod(-{0}, nullif({1}, 0L))"),
)
_add_moved(
    "the next moment rounded",
    lambda value, unit: value // unit * unit + unit,
    _rounded_sql("try_subtract({1}, pmod({0}, nullif({1}, 0L)))"),
)
_add("the time from", lambda value: -(-value // 1000), "{0} div 1000L + CASE WHEN {0} % 1000L > 0 THEN 1L ELSE 0L END")
_add("the time past", lambda value: value // 1000 + 1, _FLOOR.format("{0}") + " + 1L")


def _in_times(rule: Callable[[int], int]) -> Callable[[Any], int]:
    """The same of a date or timestamp; infinity is the last of all times."""
    return lambda value: value.micros if isinstance(value, Infinite) else rule(micros_of(value))


def _in_times_sql(rule: str) -> Renderer:
    def rendered(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
        def body(value: str) -> str:
            finite = let(rule.format("w.a"), micros_sql(value, types[0]), name="w")
            return carried(value, types[0], MZ_TIMESTAMP, finite)

        return once(args[0], body, "k")

    return rendered


def _known(failure: Failure) -> Callable[[Any], int]:
    """The microseconds of a date or timestamp of the calendar; an infinity fails."""

    def evaluate(value: Any) -> int:
        if isinstance(value, Infinite):
            raise failure
        return micros_of(value)

    return evaluate


def _finite(of: SqlType) -> Callable[[Any], int]:
    """The same of what is subtracted: there are no infinite intervals, so it fails where the operator of SQL does."""
    what = "dates" if of.kind is DATE.kind else "timestamps"
    return _known(Failure("22008", f"cannot subtract infinite {what}"))


for _type in (DATE, TIMESTAMP, TIMESTAMPTZ):
    FUNCTIONS.add("the moment", (_type,), INT8, _in_times(lambda micros: micros), _in_times_sql("{0}"))
    FUNCTIONS.add("the time at", (_type,), INT8, _in_times(lambda micros: micros // 1000), _in_times_sql(_FLOOR))
    FUNCTIONS.add(
        "the finite moment", (_type,), INT8, _finite(_type), lambda a, t, r: micros_sql(a[0], t[0]), fails=True
    )
# Of what is subtracted from mz_now(), which may be infinite. It is said to fail, though it does not, for once it did:
# what a view keeps for its bounds depends on which of them can fail.
FUNCTIONS.add(
    "the moment subtracted",
    (TIMESTAMPTZ,),
    INT8,
    _in_times(lambda micros: micros),
    _in_times_sql("{0}"),
    fails=True,
)
for _type in (TIMESTAMP, TIMESTAMPTZ):
    FUNCTIONS.add(
        "the origin",
        (_type,),
        INT8,
        _known(Failure("22008", "origin out of range")),
        lambda a, t, r: micros_sql(a[0], t[0]),
        fails=True,
    )


for _name, _size in (("the span of days", DAY), ("the span of milliseconds", 1000)):
    FUNCTIONS.add(
        _name,
        (INT8,),
        INT8,
        lambda count, size=_size: limited(count * size),
        f"coalesce(try_multiply({{0}}, {_size}L),"
        f" CASE WHEN {{0}} > 0 THEN {_MAX_SQL} WHEN {{0}} < 0 THEN {_MIN_SQL} END)",
    )


def _span_sql(args: Sequence[str], _types: Sequence[SqlType], _result: SqlType) -> str:
    return let(f"{_LIMITED} ELSE cast(w.a as bigint) END", spark_interval_micros(args[0]), name="w")


FUNCTIONS.add("the span", (INTERVAL,), INT8, lambda span: limited(interval_micros(span)), _span_sql)


def _whole(value: Decimal, rounding: str, factor: int = 1) -> int:
    """So many times a number, rounded."""
    return int(EXACT.multiply(value, Decimal(factor)).to_integral_value(rounding, EXACT))


def _number_sql(name: str, more: str = "") -> Renderer:
    return lambda args, types, result: let(f"{_LIMITED} ELSE cast({name}(w.a) as bigint){more} END", args[0], name="w")


FUNCTIONS.add(
    "the whole number from", (NUMERIC,), INT8, lambda n: limited(_whole(n, ROUND_CEILING)), _number_sql("ceil")
)
FUNCTIONS.add(
    "the whole number past",
    (NUMERIC,),
    INT8,
    lambda n: limited(_whole(n, ROUND_FLOOR) + 1),
    _number_sql("floor", " + 1L"),
)
for _name, _rounding, _more in (("the second from", ROUND_CEILING, 0), ("the second past", ROUND_FLOOR, 1)):
    FUNCTIONS.add(
        _name,
        (NUMERIC,),
        INT8,
        lambda n, rounding=_rounding, more=_more: limited(_whole(n, rounding, 1_000_000) + more),
        not_on_spark(_name),
    )
# Of a number that is multiplied or divided by one above zero, where quotients are cut towards zero.
# No rendering may end a job, so a zero would give NULL.
FUNCTIONS.add(
    "the factor from",
    (INT8, INT8),
    INT8,
    lambda value, by: -(-value // by),
    "{0} div nullif({1}, 0L) + CASE WHEN {0} > 0 AND {0} % nullif({1}, 0L) <> 0 THEN 1L ELSE 0L END",
)
FUNCTIONS.add(
    "the dividend from",
    (INT8, INT8),
    INT8,
    lambda value, by: limited(value * by if value > 0 else (value - 1) * by + 1),
    f"CASE WHEN {{0}} > 0 THEN coalesce(try_multiply({{0}}, {{1}}), {_MAX_SQL})"
    f" WHEN {{0}} <= 0 AND {{1}} > 0 THEN"
    f" coalesce(try_add(try_multiply(try_subtract({{0}}, 1L), {{1}}), 1L), {_MIN_SQL}) END",
)


def bound(name: str, *args: Scalar) -> Scalar:
    """A function of this family, which gives a number but for the first three, which keep a time's type."""
    kinds = tuple(NUMERIC if arg.type.kind is NUMERIC.kind else arg.type.base for arg in args)
    result = args[0].type if name.startswith(("the time after", "the time moved")) else INT8
    return Call(key_of(name, kinds), args, result)
