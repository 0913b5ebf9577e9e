"""Functions of the bounds of temporal filters, for which SQL has no names: see `delta.temporal`.

None of them fails: what lies beyond all times is as good as the last of them, at which nothing happens any more.
"""

from __future__ import annotations

from everview.compute.functions.civil import micros_of
from everview.compute.functions.family import Family
from everview.compute.functions.naming import key_of
from everview.compute.functions.spark_sql import micros_of as micros_sql
from everview.compute.functions.temporal import TIME_MAX, TIME_MIN
from everview.compute.ir.scalar import Call, Scalar
from everview.compute.ir.types import INT8, MZ_TIMESTAMP, TIMESTAMPTZ

FUNCTIONS = Family()

_MAX_SQL, _MIN_SQL = "9223372036854775807L", "(-9223372036854775807L - 1L)"


def _limited(value: int) -> int:
    return min(max(value, TIME_MIN), TIME_MAX)


for _type in (MZ_TIMESTAMP, INT8):
    FUNCTIONS.add("the time after", (_type,), _type, lambda time: _limited(time + 1), "coalesce(try_add({0}, 1L), {0})")
    FUNCTIONS.add(
        "the time moved on",
        (_type, INT8),
        _type,
        lambda time, by: _limited(time + by),
        f"coalesce(try_add({{0}}, {{1}}), CASE WHEN {{0}} > 0 AND {{1}} > 0 THEN {_MAX_SQL}"
        f" WHEN {{0}} < 0 AND {{1}} < 0 THEN {_MIN_SQL} END)",
    )
    FUNCTIONS.add(
        "the time moved back",
        (_type, INT8),
        _type,
        lambda time, by: _limited(time - by),
        f"coalesce(try_subtract({{0}}, {{1}}), CASE WHEN {{0}} >= 0 AND {{1}} < 0 THEN {_MAX_SQL}"
        f" WHEN {{0}} < 0 AND {{1}} > 0 THEN {_MIN_SQL} END)",
    )
FUNCTIONS.add(
    "the first time from",
    (TIMESTAMPTZ,),
    MZ_TIMESTAMP,
    lambda moment: -(-micros_of(moment) // 1000),
    lambda a, t, r: f"cast(ceil({micros_sql(a[0], TIMESTAMPTZ)} / 1000BD) as bigint)",
)


def following(bound: Scalar) -> Scalar:
    """The time after a bound."""
    return Call(key_of("the time after", (bound.type,)), (bound,), bound.type)


def moved(bound: Scalar, by: Scalar, *, back: bool) -> Scalar:
    """A bound moved by so many milliseconds."""
    name = "the time moved back" if back else "the time moved on"
    return Call(key_of(name, (bound.type, INT8)), (bound, by), bound.type)


def first_time_from(moment: Scalar) -> Scalar:
    """The first time that is not before a moment, which may lie within a millisecond."""
    return Call(key_of("the first time from", (TIMESTAMPTZ,)), (moment,), MZ_TIMESTAMP)
