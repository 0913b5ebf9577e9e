"""Casts between types: which there are, in which contexts they apply by themselves, and what they compute.

`implicit` casts apply in any expression, `assignment` casts where a value is stored in a column, `explicit` ones only
when written down. The target's modifiers are in the type of the call: a cast is a `typed` function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import IntEnum
from functools import cache, lru_cache
from typing import Any

from everview.compute.functions import cast_spark, kernels
from everview.compute.functions.calendar import DAY, day, micros_of, timestamp
from everview.compute.functions.contract import Arguments, Failure, Function
from everview.compute.functions.input import from_text, limited
from everview.compute.functions.json_value import parse
from everview.compute.functions.naming import (
    CHAR,
    ELEMENTS,
    NUMERIC,
    TYPES,
    VARCHAR,
    as_numeric,
    base,
    display_name,
    named,
    short_name,
)
from everview.compute.functions.numbers import EXACT, FLOATS, INTEGERS, constrain, fit, real, significant, whole
from everview.compute.functions.output import cast_text
from everview.compute.functions.precision import PRECISE, is_rounded, rounded
from everview.compute.ir.infinite import OF_MICROS, Infinite
from everview.compute.ir.types import (
    FLOAT8,
    MZ_TIMESTAMP,
    TEXT,
    TIMESTAMP,
    Interval,
    Kind,
    SqlType,
    array_of,
    arrow_type,
    element_of,
)

FUNCTIONS: list[Function] = []


class CastContext(IntEnum):
    """Where a cast applies without being written; a larger one includes the smaller."""

    IMPLICIT = 0
    ASSIGNMENT = 1
    EXPLICIT = 2


@dataclass(frozen=True, slots=True)
class Cast:
    """A cast between two types: the function to call, None if the value stays as it is, and where it applies."""

    key: str | None
    context: CastContext


@lru_cache(4096)
def cast_between(source: SqlType, target: SqlType) -> Cast | None:
    """The cast from one type to another, if one exists. Modifiers count: numeric to numeric(4,2) is a cast."""
    if source == target:
        return Cast(None, CastContext.IMPLICIT)
    context = _context(base(source), base(target))
    if context is None:
        return None
    if _unchanged(source, target):
        return Cast(None, context)
    if _widens(source, target):
        return Cast(WIDENED, context)
    key = f"cast({short_name(source)} as {short_name(target)})"
    return Cast(key, context) if key in _keys() else None


def assignment_key(source: SqlType, target: SqlType) -> str | None:
    """The cast to use where a value is stored: as `cast_between`, but text that is too long fails."""
    if target.kind in (Kind.VARCHAR, Kind.CHAR) and source.kind in _TEXTS and target.length is not None:
        return f"assign({short_name(source)} as {short_name(target)})"
    found = cast_between(source, target)
    return found.key if found else None


@cache
def _keys() -> frozenset[str]:
    return frozenset(function.key for function in FUNCTIONS)


def _unchanged(source: SqlType, target: SqlType) -> bool:
    if source.kind is Kind.ARRAY and target.kind is Kind.ARRAY:
        return element_of(source) == element_of(target) or _unchanged(element_of(source), element_of(target))
    if target.kind is Kind.TEXT or (target.kind is Kind.VARCHAR and target.length is None):
        return source.kind in _TEXTS or source.kind is Kind.UNKNOWN
    if source.kind is target.kind is Kind.VARCHAR:
        return target.length is None or (source.length is not None and source.length <= target.length)
    if source.kind is target.kind is Kind.NUMERIC:
        return source.scale == target.scale and _widens(source, target) and arrow_type(source) == arrow_type(target)
    if source.kind is target.kind and is_rounded(target):
        return source.length is not None and source.length <= (target.length or 0)
    return source.kind is target.kind and source.kind is not Kind.CHAR


def _widens(source: SqlType, target: SqlType) -> bool:
    """Whether both are numerics, and every value of the one is one of the other."""
    if source.kind is not Kind.NUMERIC or target.kind is not Kind.NUMERIC or source.scale > target.scale:
        return False
    return target.precision - target.scale >= source.precision - source.scale


def _listed(text: str) -> set[tuple[SqlType, SqlType]]:
    """Pairs of types, as in "date > timestamp timestamptz, time > interval"."""
    rows = [each.partition(">") for each in text.split(",")]
    return {(TYPES[source.strip()], TYPES[target]) for source, _, targets in rows for target in targets.split()}


_TEXTS = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR)
_NUMBERS = named("int2 int4 int8 numeric float4 float8")
_IMPLICIT = {
    *((low, high) for place, low in enumerate(_NUMBERS) for high in _NUMBERS[place + 1 :]),
    *((source, target) for source in (TEXT, VARCHAR, CHAR) for target in (TEXT, VARCHAR, CHAR)),
    *_listed("date > timestamp timestamptz, timestamp > timestamptz, time > interval"),
    *(
        (TYPES[source], MZ_TIMESTAMP)
        for source in ["int2", "int4", "int8", "numeric", "timestamp", "timestamptz", "date"]
    ),
    (MZ_TIMESTAMP, FLOAT8),  # where times and floats are compared: see `resolve`
}
_ASSIGNMENT = {
    *((high, low) for place, low in enumerate(_NUMBERS) for high in _NUMBERS[place + 1 :]),
    *_listed("timestamp > date time, timestamptz > timestamp date time, interval > time"),
    *_listed("mz_timestamp > timestamp timestamptz date int8 numeric float4"),
}
_EXPLICIT = _listed("bool > int4, int4 > bool, jsonb > bool int2 int4 int8 numeric float4 float8")


def _context(source: SqlType, target: SqlType) -> CastContext | None:
    pair = (source, target)
    if source == target or pair in _IMPLICIT:
        return CastContext.IMPLICIT
    if pair in _ASSIGNMENT:
        return CastContext.ASSIGNMENT
    if source.kind is Kind.ARRAY and target.kind is Kind.ARRAY:
        return _context(element_of(source), element_of(target))
    if pair in _EXPLICIT:
        return CastContext.EXPLICIT
    if source.kind is Kind.UNKNOWN:
        return CastContext.IMPLICIT
    if target.kind in _TEXTS:
        return CastContext.ASSIGNMENT
    return CastContext.EXPLICIT if source.kind in _TEXTS else None


Conversion = Callable[[SqlType, Any], Any]


def _conversion(source: SqlType, target: SqlType) -> Conversion:
    if target.kind in PRECISE:
        exact = _exact_conversion(source, target)
        return lambda to, value: rounded(exact(to, value), to)
    return _exact_conversion(source, target)


def _exact_conversion(source: SqlType, target: SqlType) -> Conversion:
    """The conversion before seconds are rounded to the digits that the type keeps."""
    if source == target and source.kind in PRECISE:
        return lambda _, value: value
    if source.kind is Kind.ARRAY and target.kind is Kind.ARRAY:
        inner = _conversion(element_of(source), element_of(target))
        return lambda to, value: [None if each is None else inner(element_of(to), each) for each in value]
    if source.kind in _TEXTS:
        return lambda to, value: limited(value, to) if to.kind in _TEXTS else from_text(value, to)
    if target.kind in _TEXTS:
        return lambda to, value: limited(cast_text(value, source), to)
    if source.kind is Kind.JSONB:
        return _from_jsonb
    if target.kind in (*INTEGERS, *FLOATS, Kind.NUMERIC) and source.kind is not Kind.BOOLEAN:
        return _number if source.kind is not Kind.FLOAT4 else lambda to, value: _number(to, value, Kind.FLOAT4)
    return _OTHERS[source, target]


def _number(to: SqlType, value: Any, of: Kind = Kind.FLOAT8) -> Any:
    if to.kind is Kind.NUMERIC:
        return constrain(_decimal(value, of), to)
    if to.kind in FLOATS:
        infinite = isinstance(value, float) and math.isinf(value)
        return real(float(value), to.kind, infinite=infinite, nonzero=to.kind is Kind.FLOAT4 and value != 0)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Failure("22003", f"{display_name(to)} out of range")
        return whole(round(value), to.kind)
    if isinstance(value, Decimal):
        return whole(int(value.to_integral_value("ROUND_HALF_UP", EXACT)), to.kind)
    return whole(value, to.kind)


def _decimal(value: Any, of: Kind) -> Decimal:
    if not isinstance(value, float):
        return Decimal(value)
    if not math.isfinite(value):
        raise Failure("22003", "numeric field overflow")  # there are no such decimals
    return significant(value, of)


def _from_jsonb(to: SqlType, text: str) -> Any:
    value = parse(text)
    if to.kind is Kind.BOOLEAN and isinstance(value, bool):
        return value
    if to.kind is not Kind.BOOLEAN and isinstance(value, Decimal):
        return _number(to, value)
    titles = {bool: "boolean", Decimal: "numeric", str: "string", list: "array", dict: "object", type(None): "null"}
    raise Failure("22023", f"cannot cast jsonb {titles[type(value)]} to type {display_name(to)}")


def _stamp(to: SqlType, value: Any) -> datetime | Infinite:
    return value if isinstance(value, Infinite) else timestamp(micros_of(value), to.kind)


def _date(_to: SqlType, value: Any) -> date | Infinite:
    return value if isinstance(value, Infinite) else day(micros_of(value) // DAY)


def _time(_to: SqlType, value: Any) -> int | None:
    return None if isinstance(value, Infinite) else micros_of(value) % DAY


def _from_mz(to: SqlType, value: int) -> datetime | Infinite:
    """The last time of all is infinity, as infinity is the last time of all."""
    return OF_MICROS[value] if value in OF_MICROS else timestamp(value * 1000, to.kind)


def to_time(value: Any) -> int:
    """A number of milliseconds, a date or a timestamp as a time of the timeline; fails for other numbers."""
    if isinstance(value, Infinite):
        return value.micros
    millis = value if isinstance(value, int) else int(value) if isinstance(value, Decimal) else micros_of(value) // 1000
    whole = isinstance(value, (int, Decimal))  # a date may be before the epoch, where no time of the timeline is
    if (whole and millis < 0) or (isinstance(value, Decimal) and value != millis) or millis >= 2**63:
        raise Failure("22003", "mz_timestamp out of range")
    return int(millis)


_OTHERS: dict[tuple[SqlType, SqlType], Conversion] = {
    **dict.fromkeys(_listed("bool > int4"), lambda _, value: int(value)),
    **dict.fromkeys(_listed("int4 > bool"), lambda _, value: value != 0),
    **dict.fromkeys(_listed("date > timestamp timestamptz, timestamp > timestamptz, timestamptz > timestamp"), _stamp),
    **dict.fromkeys(_listed("timestamp > date, timestamptz > date"), _date),
    **dict.fromkeys(_listed("timestamp > time, timestamptz > time"), _time),
    **dict.fromkeys(_listed("mz_timestamp > timestamp timestamptz"), _from_mz),
    **dict.fromkeys(_listed("mz_timestamp > date"), lambda to, value: _date(to, _from_mz(TIMESTAMP, value))),
    **dict.fromkeys([pair for pair in _IMPLICIT if pair[1] is MZ_TIMESTAMP], lambda _, value: to_time(value)),
    **dict.fromkeys(_listed("time > interval"), lambda _, value: Interval(0, 0, value)),
    **dict.fromkeys(_listed("interval > time"), lambda _, value: value.micros % DAY),
}

# Between these nothing can go wrong; a target of a limited range, or text to be read, can.
_SAFE_TARGETS = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.INTERVAL, Kind.TIME, Kind.BOOLEAN)


def _fails(source: SqlType, target: SqlType) -> bool:
    if source.kind is Kind.ARRAY and target.kind is Kind.ARRAY:
        return _fails(element_of(source), element_of(target))
    if source.kind in (*_TEXTS, Kind.JSONB):
        return target.kind not in _TEXTS
    return target.kind not in _SAFE_TARGETS


# Numbers to wider ones, and dates and timestamps to one another.
_LONGER = {
    (source.kind, target.kind)
    for source, target in _listed(
        "int2 > int4 int8 float4 float8, int4 > int8 float4 float8, int8 > float4 float8, float4 > float8, bool > int4,"
        "mz_timestamp > float4 float8,"
        "date > timestamp timestamptz, timestamp > timestamp timestamptz date, timestamptz > timestamp date"
    )
}


def _is_safe(given: Arguments) -> bool:
    """Whether every value of the source has a value of the target that it becomes or is rounded to."""
    source, target = given.types[0], given.result
    if source.kind in INTEGERS and target.kind is Kind.NUMERIC:
        return as_numeric(source).precision <= target.precision - target.scale
    # To fewer digits of a second, the last time of all would be rounded up.
    return (source.kind, target.kind) in _LONGER and target.length is None


def _pairs() -> Sequence[tuple[SqlType, SqlType]]:
    scalars = (*ELEMENTS, VARCHAR, CHAR, MZ_TIMESTAMP)
    chosen = [
        (source, target)
        for source in scalars
        for target in scalars
        if _context(source, target) is not None
        and (source != target or source in (NUMERIC, VARCHAR, CHAR) or source.kind in PRECISE)
    ]
    nested = [(array_of(source), array_of(target)) for source, target in chosen if MZ_TIMESTAMP not in (source, target)]
    texts = [(array_of(each), text) for each in scalars[:-1] for text in (TEXT, VARCHAR, CHAR)]
    return [*chosen, *nested, *texts, *((text, array) for array, text in texts)]


# Of numerics to such as hold all of them, so that it cannot fail: nothing changes but how values are represented.
WIDENED = "cast(numeric as wider numeric)"
FUNCTIONS.append(
    Function(
        WIDENED,
        "cast",
        (NUMERIC,),
        NUMERIC,
        lambda to, value: fit(value, to),
        cast_spark.widened,
        typed=True,
        arrow=kernels.widened,
    )
)
for _source, _target in _pairs():
    _key, _evaluate = f"cast({short_name(_source)} as {short_name(_target)})", _conversion(_source, _target)
    _flags: Any = {"fails": _fails(_source, _target), "typed": True, "safe": _is_safe}
    _flags["arrow"] = kernels.cast if _source.kind in kernels.NUMBERS and _target.kind in kernels.NUMBERS else None
    FUNCTIONS.append(Function(_key, "cast", (_source,), _target, _evaluate, cast_spark.cast, **_flags))
# Into a column, where text that is too long fails.
for _source in (TEXT, VARCHAR, CHAR):
    for _target in (VARCHAR, CHAR):
        _key = f"assign({short_name(_source)} as {short_name(_target)})"
        _cut = lambda to, value: limited(value, to, explicit=False)
        _spark = cast_spark.assigned
        FUNCTIONS.append(Function(_key, "assign", (_source,), _target, _cut, _spark, fails=True, typed=True))
