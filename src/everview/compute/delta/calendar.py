"""`in_calendar`: dates and timestamps of `mz_now()` that are moved out of the calendar fail, as they do in a query.

Bounds are computed by functions that do not fail, so they would say of `mz_now()::timestamp - span` what comes of it
for any span. When it is moved is not known of a row. It fails if it would at the first or at the last time that a clock
may say. A time that is moved becomes infinite instead, in queries too, and is left as it is.
"""

from __future__ import annotations

from dataclasses import replace

from everview.compute.delta.thresholds import is_now, name_of, speaks_of_now
from everview.compute.functions.contract import Failure
from everview.compute.functions.resolve import call
from everview.compute.interpreter.scalars import compile_scalar
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import with_scalars
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Call, Case, Column, Literal, Scalar, transform, walk
from everview.compute.ir.types import MZ_TIMESTAMP, Kind

_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_CLOCKS = (1_577_836_800_000, 4_102_444_800_000)  # the beginnings of the years 2020 and 2100


def in_calendar(plan: Relation) -> Relation:
    return ir.transform(plan, lambda part: with_scalars(part, _checked) if isinstance(part, ir.Filter) else part)


def _checked(scalar: Scalar) -> Scalar:
    return transform(scalar, _moved) if speaks_of_now(scalar) else scalar


def _moved(part: Scalar) -> Scalar | None:
    """A date or timestamp of now that is moved by something else, with a look at what comes of it; else None."""
    if name_of(part) not in ("add", "sub") or not isinstance(part, Call) or part.type.kind not in _MOMENTS:
        return None
    now = [each for each in part.args if speaks_of_now(each)]
    if len(now) != 1 or len(part.args) != 2 or now[0].type.kind not in _MOMENTS:
        return None
    (by,) = (each for each in part.args if each is not now[0])
    results = [_at(part, time) for time in _CLOCKS]
    if any(isinstance(each, Column) for each in walk(part)) or any(map(_fails, results)):
        nothing = Literal(None, by.type)
        by = Case(tuple((call("is null", each), nothing) for each in results), by, by.type)
    return replace(part, args=tuple(_checked(each) if each is now[0] else by for each in part.args))


def _at(scalar: Scalar, time: int) -> Scalar:
    return transform(scalar, lambda each: Literal(time, MZ_TIMESTAMP) if is_now(each) else None)


def _fails(constant: Scalar) -> bool:
    try:
        compile_scalar(constant)(())
    except Failure:
        return True
    return False
