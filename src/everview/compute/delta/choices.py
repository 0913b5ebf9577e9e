"""Comparisons with one of several values, as GREATEST, COALESCE or CASE choose it: a condition over each of them.

`GREATEST(mz_now(), r) < e` is that both are below e. Where that does not do, as in `5 + LEAST(mz_now(), r) = e`, the
choice becomes a CASE, and the comparison is said of each branch. What is left are comparisons of plain expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from everview.compute.delta.thresholds import is_now, name_of, speaks_of_now
from everview.compute.functions.resolve import call
from everview.compute.functions.temporal_bounds import bound
from everview.compute.ir.scalar import And, Call, Case, Coalesce, Literal, Or, Scalar, transform
from everview.compute.ir.types import BOOLEAN, INT8, Interval, Kind, SqlType, numeric

FALSE, TRUE = Literal(False, BOOLEAN), Literal(True, BOOLEAN)
_EXTREMES = {"greatest": ">=", "least": "<="}
_ABOVE, _BELOW = ("gt", "ge"), ("lt", "le")
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_ORDERED = {
    *(Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.MZ_TIMESTAMP),
    *(Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
}


def spread(comparison: Call) -> Scalar | None:
    """The comparison with a choice as a condition over comparisons with its values; None if it has no choice."""
    for place, side in enumerate(comparison.args):
        found = _choice(side)
        if found is not None:
            simple = _bounds(comparison, place, found) if found is side else None
            return simple if simple is not None else _said_of_each(comparison, found)
    return None


def each_bound(comparison: Scalar) -> list[Scalar]:
    """What a comparison of now with the least of several values, or one above the greatest, says of each of them.

    LEAST and GREATEST leave NULLs out, so a value is NULL or it bounds too. Other conditions say nothing.
    """
    if not isinstance(comparison, Call) or name_of(comparison) not in (*_ABOVE, *_BELOW) or len(comparison.args) != 2:
        return []
    name, place = name_of(comparison), 1
    if speaks_of_now(comparison.args[1]):
        name, place = _TURNED[name], 0
    if not speaks_of_now(comparison.args[1 - place]):
        return []
    found = comparison.args[place]
    while isinstance(found, Call) and name_of(found) not in _EXTREMES:
        inner = _rises_with(found)
        if inner is None:
            return []
        found = inner
    if not isinstance(found, Call) or speaks_of_now(found) or (name_of(found) == "least") is not (name in _BELOW):
        return []

    def said_of(value: Scalar) -> Scalar:
        return transform(comparison, lambda part: value if part is found else None)

    return [Or((call("is null", each), said_of(each))) for each in found.args]


def _rises_with(scalar: Call) -> Scalar | None:
    """The argument of a cast or a shift that its value does not fall with, where it has one."""
    if not scalar.args or not {scalar.type.kind, scalar.args[0].type.kind} <= _ORDERED:
        return None
    if name_of(scalar) == "cast":
        return scalar.args[0]
    if name_of(scalar) in ("add", "sub") and isinstance(by := scalar.args[1], Literal):
        # Moved by months, the 30th and the 31st may change places.
        return None if isinstance(by.value, Interval) and by.value.months else scalar.args[0]
    return None


def is_missing(scalar: Scalar) -> Scalar:
    """Whether an expression of now is NULL: the row decides it."""
    if is_now(scalar):
        return FALSE
    if isinstance(scalar, Literal):
        return TRUE if scalar.value is None else FALSE
    if not speaks_of_now(scalar):
        return call("is null", scalar)
    match scalar:
        case Case(branches, otherwise):
            return Case(tuple((when, is_missing(value)) for when, value in branches), is_missing(otherwise), BOOLEAN)
        case Coalesce(args):
            return _all([is_missing(each) for each in args])
        case Call(_, args) if name_of(scalar) in _EXTREMES:
            return _all([is_missing(each) for each in args])
        case _:
            assert isinstance(scalar, Call)
            return _any([is_missing(each) for each in scalar.args])


def _all(conditions: Sequence[Scalar]) -> Scalar:
    left = tuple(each for each in conditions if each != TRUE)
    return FALSE if FALSE in left else TRUE if not left else left[0] if len(left) == 1 else And(left)


def _any(conditions: Sequence[Scalar]) -> Scalar:
    left = tuple(each for each in conditions if each != FALSE)
    return TRUE if TRUE in left else FALSE if not left else left[0] if len(left) == 1 else Or(left)


def _choice(scalar: Scalar) -> Scalar | None:
    """The outermost choice of which some value speaks of now."""
    if not speaks_of_now(scalar):
        return None
    if isinstance(scalar, (Case, Coalesce)) or name_of(scalar) in (*_EXTREMES, "abs"):
        return scalar
    inside = scalar.args if isinstance(scalar, Call) else ()
    return next((found for each in inside if (found := _choice(each)) is not None), None)


def _bounds(comparison: Call, place: int, side: Scalar) -> Scalar | None:
    """GREATEST and LEAST that are compared as bounds that all hold, or one of them; None for other expressions."""
    name, _, rest = comparison.function.partition("(")
    other = comparison.args[1 - place]
    if place == 1 and name in _TURNED:
        name = _TURNED[name]
    if name not in (*_ABOVE, *_BELOW) or not isinstance(side, Call):
        return None

    def compared(name: str, value: Scalar, with_: Scalar) -> Scalar:
        return Call(f"{name}({rest}", (value, with_), BOOLEAN)

    if name_of(side) == "abs":
        opposite = _opposite(other)
        if opposite is None:
            return None
        pair = (compared(name, side.args[0], other), compared(_TURNED[name], side.args[0], opposite))
        return And(pair) if name in _BELOW else Or(pair)
    if is_missing(side) != FALSE:
        return None
    every = (name_of(side) == "greatest") is (name in _BELOW)
    conditions = []
    for each in side.args:
        missing = is_missing(each)
        plain = compared(name, each, other)
        neutral = TRUE if every else FALSE
        conditions.append(plain if missing == FALSE else Case(((missing, neutral),), plain, BOOLEAN))
    return And(tuple(conditions)) if every else Or(tuple(conditions))


def _opposite(scalar: Scalar) -> Scalar | None:
    """A number with the other sign, where that cannot fail."""
    if scalar.type.kind is Kind.INT8:
        return bound("the time moved back", Literal(0, INT8), scalar)
    return call("-", scalar) if scalar.type.kind is Kind.NUMERIC else None


def _said_of_each(comparison: Call, choice: Scalar) -> Scalar:
    def said_of(value: Scalar) -> Scalar:
        return transform(comparison, lambda part: value if part is choice else None)

    match choice:
        case Case(branches, otherwise):
            return Case(tuple((when, said_of(value)) for when, value in branches), said_of(otherwise), BOOLEAN)
        case Coalesce(args):
            result = said_of(args[-1])
            for each in reversed(args[:-1]):
                missing = is_missing(each)
                result = said_of(each) if missing == FALSE else Case(((missing, result),), said_of(each), BOOLEAN)
            return result
        case Call(_, (value,)) if name_of(choice) == "abs":
            return Case(((call(">=", value, _zero(value.type)), said_of(value)),), said_of(call("-", value)), BOOLEAN)
    assert isinstance(choice, Call)
    return _extreme(choice, said_of)


def _zero(of: SqlType) -> Literal:
    if of.kind is Kind.NUMERIC:
        return Literal(Decimal(0), numeric(1, 0))
    return Literal(0.0 if of.kind in (Kind.FLOAT4, Kind.FLOAT8) else 0, of)


def _extreme(choice: Call, said_of: Callable[[Scalar], Scalar]) -> Scalar:
    """Take GREATEST or LEAST apart: it is the value that is present and not behind another present value."""
    operator = _EXTREMES[name_of(choice)]
    branches = []
    for each in choice.args:
        others = [other for other in choice.args if other is not each]
        ahead = [_any([is_missing(other), call(operator, each, other)]) for other in others]
        missing = is_missing(each)
        present = TRUE if missing == FALSE else FALSE if missing == TRUE else call("not", missing)
        branches.append((_all([present, *ahead]), said_of(each)))
    return Case(tuple(branches), said_of(Literal(None, choice.type)), BOOLEAN)
