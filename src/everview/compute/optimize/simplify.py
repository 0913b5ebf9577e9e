"""Simpler expressions of the same value, failing for the same rows."""

from __future__ import annotations

from operator import is_

from everview.compute.cancel import check_wanted
from everview.compute.functions import lookup
from everview.compute.functions.contract import Failure
from everview.compute.functions.lookup import any_can_fail, can_fail
from everview.compute.interpreter.scalars import compile_scalar
from everview.compute.ir.scalar import And, Call, Case, Coalesce, Literal, Or, Scalar, children, rebuild
from everview.compute.ir.types import BOOLEAN
from everview.compute.rows.collection import canonical, plain

TRUE, FALSE = Literal(True, BOOLEAN), Literal(False, BOOLEAN)


def simplify(scalar: Scalar) -> Scalar:
    """The expression with everything folded that does not depend on the row."""
    operands = children(scalar)
    if not operands and not isinstance(scalar, Call):
        return scalar
    changed = tuple([simplify(operand) for operand in operands])
    if not all(map(is_, changed, operands)):
        scalar = rebuild(scalar, changed)
    match scalar:
        case Call():
            return _call(scalar)
        case And(args):
            return _junction(And, args, unit=TRUE, end=FALSE)
        case Or(args):
            return _junction(Or, args, unit=FALSE, end=TRUE)
        case Case():
            return _case(scalar)
        case Coalesce():
            return _coalesce(scalar)
        case _:
            return scalar


def is_literal(scalar: Scalar, value: bool | None) -> bool:
    return isinstance(scalar, Literal) and scalar.value is value


def _call(call: Call) -> Scalar:
    check_wanted()
    entry = lookup.function(call.function)
    if entry.volatile:
        return call
    if all(isinstance(arg, Literal) for arg in call.args):
        return _evaluated(call)
    if entry.strict and any(is_literal(arg, None) for arg in call.args) and not any_can_fail(call.args):
        return Literal(None, call.type)
    if entry.name == "not" and isinstance(inner := call.args[0], Call) and inner.function == call.function:
        return inner.args[0]
    return call


def _evaluated(call: Call) -> Scalar:
    """The constant that the call comes to; one that fails stays, to fail where a row needs it."""
    try:
        value = compile_scalar(call)(())
    except Failure:
        return call
    for convert in (canonical(call.type), plain(call.type)):
        if convert is not None:
            value = convert(value)
    return Literal(value, call.type)


def _junction(form: type[And] | type[Or], args: tuple[Scalar, ...], *, unit: Literal, end: Literal) -> Scalar:
    """Nested ones flattened, what decides nothing left out, and nothing after what decides all."""
    flat = tuple([inner for each in args for inner in (each.args if isinstance(each, form) else (each,))])
    kept: dict[Scalar, None] = {}
    for arg in flat:
        if is_literal(arg, unit.value):
            continue
        kept[arg] = None
        if is_literal(arg, end.value):
            if not any_can_fail(kept):
                return end
            break
    if not kept:
        return unit
    return next(iter(kept)) if len(kept) == 1 else form(tuple(kept))


def _case(case: Case) -> Scalar:
    branches: list[tuple[Scalar, Scalar]] = []
    otherwise = case.otherwise
    for condition, value in case.branches:
        if is_literal(condition, False) or is_literal(condition, None):
            continue
        if is_literal(condition, True):
            otherwise = value
            break
        branches.append((condition, value))
    while branches and branches[-1][1] == otherwise and not can_fail(branches[-1][0]):
        branches.pop()
    return Case(tuple(branches), otherwise, case.type) if branches else otherwise


def _coalesce(coalesce: Coalesce) -> Scalar:
    found: dict[Scalar, None] = {}
    for arg in (inner for each in coalesce.args for inner in (each.args if isinstance(each, Coalesce) else (each,))):
        if is_literal(arg, None):
            continue
        found[arg] = None
        if isinstance(arg, Literal):
            break
    kept = tuple(found)
    if not kept:
        return Literal(None, coalesce.type)
    return kept[0] if len(kept) == 1 and kept[0].type == coalesce.type else Coalesce(kept, coalesce.type)
