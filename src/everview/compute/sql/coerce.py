"""Types meeting types: literals that take the type their place wants, and casts where PostgreSQL allows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal

from everview.compute.functions.casts import CastContext, cast_between
from everview.compute.functions.contract import Failure
from everview.compute.functions.dates import zone
from everview.compute.functions.naming import base, key_of
from everview.compute.functions.numbers import EXACT
from everview.compute.functions.patterns import WantedMatch, check_places
from everview.compute.functions.plan_functions import A_PATTERN, FINITE
from everview.compute.functions.regex import compiled
from everview.compute.functions.registry import FUNCTIONS
from everview.compute.functions.resolve import Resolution, ResolutionError, common_type, relabeled, resolve
from everview.compute.ir.scalar import Call, Case, Literal
from everview.compute.ir.types import BOOLEAN, NUMERIC_PRECISION, NUMERIC_SCALE, TEXT, UNKNOWN, Kind, SqlType, numeric
from everview.compute.sql import hir
from everview.compute.sql.errors import DATATYPE_MISMATCH, SqlError, unsupported
from everview.compute.sql.hosting import Parameter

CONTEXTS = {"implicit": CastContext.IMPLICIT, "assignment": CastContext.ASSIGNMENT, "explicit": CastContext.EXPLICIT}


def coerce(scalar: hir.HScalar, to: SqlType, context: str = "implicit", position: int | None = None) -> hir.HScalar:
    """The scalar as a value of type `to`, by a cast that `context` allows."""
    if scalar.type == to:
        return scalar
    if isinstance(scalar, Parameter):
        scalar = scalar.decided(to)
    if isinstance(scalar, Literal) and scalar.value is None:
        return Literal(None, to)
    if scalar.type == to:
        return scalar
    source = TEXT if scalar.type.kind is Kind.UNKNOWN else scalar.type
    if scalar.type.kind is Kind.UNKNOWN:
        context = "explicit"  # a quoted literal is read as whatever its place wants
    cast = cast_between(source, to)
    if cast is None or cast.context > CONTEXTS[context]:
        message = f"{to} was wanted, and this is {source}"
        if context == "explicit":
            message = f"cannot cast type {source} to {to}"
        hint = None if cast is None else f"write an explicit cast: …::{to}"
        raise SqlError("42846" if context == "explicit" else DATATYPE_MISMATCH, message, hint=hint, position=position)
    if cast.key is None:
        return relabeled(scalar, to)
    if isinstance(scalar, Literal):
        return _cast_literal(cast.key, scalar, to, position)
    return Call(cast.key, (scalar,), to)


def _cast_literal(key: str, literal: Literal, to: SqlType, position: int | None) -> hir.HScalar:
    """A literal is cast here. One that cannot be read as what it must be is an error of the statement."""
    function = FUNCTIONS[key]
    try:
        value = function.evaluate(to, literal.value) if function.typed else function.evaluate(literal.value)
        return Literal(value, to)
    except Failure as failure:
        if literal.type.kind is not Kind.UNKNOWN:
            return Call(key, (literal,), to)  # it may never be evaluated
        raise SqlError(failure.sqlstate, failure.message, position=position) from failure


# Arguments that must be of some form. Written down, they are checked before any row is seen: regular expressions, of
# which some have options at a place, and time zones.
_REGULAR = dict.fromkeys(("~", "~*", "!~", "!~*", "substring", "regexp_count", "regexp_substr", "regexp_instr"), 0) | {
    **dict.fromkeys(("regexp_like", "regexp_match", "regexp_split_to_array"), 2),
    "regexp_replace": 3,
}
_FIELDS = ("extract(", "date_part(")
_NULL_WITHOUT_MATCH = ("regexp_match(", "regexp_substr(", "substring_regex(")


def _check_constant(name: str, args: Sequence[hir.HScalar], position: int | None) -> None:
    texts = [arg.value if isinstance(arg, Literal) and isinstance(arg.value, str) else None for arg in args]
    try:
        if name == "timezone" and texts[0] is not None:
            zone(texts[0])
        if name in _REGULAR and len(args) > 1:  # `~` is an operator of one number as well
            at = _REGULAR[name]
            compiled(texts[1] or "", (texts[at] or "") if 0 < at < len(texts) else "")
        if name == "regexp_substr" and len(args) > 2:
            _check_substr(args[2:], position)
    except Failure as failure:
        raise SqlError(failure.sqlstate, failure.message, position=position) from failure


def _guarded(found: Call) -> hir.HScalar:
    """A call whose NULL says that nothing matches, so that something else has to fail if there is no pattern.

    Nor may a field of an infinite date, which is NULL, and one that there is no such field of be told by their NULL.
    """
    if found.function.startswith(_FIELDS) and not isinstance(found.args[0], Literal):
        field, value = found.args
        if value.type.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            value = Call(key_of(FINITE, (base(value.type),)), (value,), value.type)
        return Call(found.function, (field, value), found.type)
    if not found.function.startswith(_NULL_WITHOUT_MATCH):
        return found
    pattern = found.args[1]
    if isinstance(pattern, Literal) and not (pattern.value and compiled(pattern.value).may_give_up):
        return found  # no search for this one fails
    options = next((arg for arg in found.args[2:] if arg.type.kind is Kind.TEXT), Literal("", TEXT))
    regular = Call(key_of(A_PATTERN, (TEXT, TEXT, TEXT)), (*found.args[:2], options), BOOLEAN)
    return Case(((regular, found),), Literal(None, found.type), found.type)


def _check_substr(given: Sequence[hir.HScalar], position: int | None) -> None:
    """Where to begin, which match, options and group: NULL is an answer, so nothing of this may fail later."""
    if not all(isinstance(each, Literal) for each in given):
        hint = "substring(value FROM pattern) and regexp_match take values from columns"
        raise unsupported("regexp_substr with a place or an option that is no constant", position, hint=hint)
    values = [each.value for each in given]
    if None in values:
        return
    wanted = WantedMatch(*values)
    check_places("regexp_substr", wanted.start, wanted.number, wanted.group)
    if "g" in wanted.flags:
        raise Failure("22023", 'regexp_substr() does not support the "global" option')
    compiled("", wanted.flags)


def call(name: str, args: Sequence[hir.HScalar], position: int | None = None) -> hir.HScalar:
    """A function or operator by its SQL name, resolved as PostgreSQL would."""
    found = _resolved(name, args, position)
    numbers = [_as_number(arg, to) for arg, to in zip(args, found.args, strict=True)]
    if any(number is not arg for number, arg in zip(numbers, args, strict=True)):
        args, found = numbers, _resolved(name, numbers, position)
    through = found.through or (None,) * len(args)
    coerced = []
    for arg, to, function in zip(args, found.args, through, strict=True):
        value = coerce(arg, to, "implicit", position)
        coerced.append(value if function is None else Call(function, (value,), FUNCTIONS[function].result))  # type: ignore[arg-type]
    _check_constant(name, coerced, position)
    return _guarded(Call(found.function.key, tuple(coerced), found.result))


def _resolved(name: str, args: Sequence[hir.HScalar], position: int | None) -> Resolution:
    values = [arg.value if isinstance(arg, Literal) else None for arg in args]
    with resolving(position):
        return resolve(name, [arg.type for arg in args], values)


_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")


def _as_number(scalar: hir.HScalar, to: SqlType) -> hir.HScalar:
    """Read a quoted literal as a number with its own number of digits, not with the digits of its neighbor."""
    if to.kind is not Kind.NUMERIC or not isinstance(scalar, Literal) or scalar.type.kind is not Kind.UNKNOWN:
        return scalar
    is_number = isinstance(scalar.value, str) and _NUMBER.fullmatch(scalar.value) is not None
    return _numeric_literal(scalar.value.strip()) if is_number else scalar


def _numeric_literal(text: str) -> hir.HScalar:
    """A number with as many digits as are written."""
    number = Decimal(text)
    scale = max(0, -int(number.as_tuple().exponent))
    digits = max(len(number.as_tuple().digits), scale)
    if digits > NUMERIC_PRECISION or scale > NUMERIC_SCALE:
        return coerce(Literal(text, UNKNOWN), numeric())
    fixed = number.quantize(Decimal(1).scaleb(-scale), context=EXACT)
    return Literal(fixed, numeric(max(1, len(fixed.as_tuple().digits), scale), scale))


@contextmanager
def resolving(position: int | None) -> Iterator[None]:
    """Failures to resolve a call are errors of the statement, at this place."""
    try:
        yield
    except ResolutionError as error:
        raise SqlError(error.sqlstate, error.message, hint=error.hint, position=position) from error


def unified(scalars: Sequence[hir.HScalar], what: str, position: int | None = None) -> list[hir.HScalar]:
    """The scalars with one type, as the branches of a CASE or the columns of a UNION need it."""
    with resolving(position):
        common = common_type([scalar.type for scalar in scalars], what)
        scalars = [_as_number(scalar, common) for scalar in scalars]
        common = common_type([scalar.type for scalar in scalars], what)
    quoted = [each for each in scalars if isinstance(each, Literal) and each.type.kind is Kind.UNKNOWN]
    if common.kind is not Kind.NUMERIC and any(each.value is not None for each in quoted):
        common = replace(common, length=None)  # a quoted literal is as long as it is
    return [coerce(scalar, common, "implicit", position) for scalar in scalars]


def all_open(scalars: Sequence[hir.HScalar]) -> bool:
    """Whether nothing decides the common type of these."""
    return all(scalar.type.kind is Kind.UNKNOWN for scalar in scalars)


def settled(scalar: hir.HScalar) -> hir.HScalar:
    """A scalar whose type is decided: what nothing decided is text."""
    return coerce(scalar, TEXT) if scalar.type.kind is Kind.UNKNOWN else scalar
