"""Look up functions by the keys that plans name them by, and tell which expressions can fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from everview.compute.functions import registry
from everview.compute.functions.contract import TRIED, AggregateFunction, Arguments, Function, Unknown
from everview.compute.functions.table import TableFunction
from everview.compute.ir.scalar import Call, Case, Failed, FailedTable, Literal, Or, Scalar, children, walk
from everview.errors import EverviewError

_Entry = TypeVar("_Entry")


class UnknownFunction(EverviewError):
    """A plan refers to a function that is not registered."""

    def __init__(self, key: str) -> None:
        super().__init__(f"internal error: no function {key}")


def function(key: str) -> Function:
    return _find(registry.FUNCTIONS, key)


def aggregate(key: str) -> AggregateFunction:
    return _find(registry.TRIED_AGGREGATES if key.startswith(TRIED) else registry.AGGREGATES, key)


def is_aggregate(key: str) -> bool:
    """Whether the key names an aggregate, also over a window."""
    return key in registry.AGGREGATES


def table_function(key: str) -> TableFunction:
    return _find(registry.TABLES, key)


def can_fail(scalar: Scalar, sure: frozenset[Scalar] = frozenset()) -> bool:
    """Whether the evaluation fails for some row. The expressions in `sure` are known not to fail."""
    if isinstance(scalar, (Failed, FailedTable)) or (sure and scalar in sure):
        return False
    if isinstance(scalar, Call) and call_can_fail(scalar):
        return True
    if isinstance(scalar, Case):
        for when, then in scalar.branches:
            if can_fail(when, sure):
                return True
            sure_then, sure = sure, sure | _tried(when)  # what comes behind is evaluated if none of these fails
            if can_fail(then, sure_then):
                return True
        return can_fail(scalar.otherwise, sure)
    return any(can_fail(each, sure) for each in children(scalar))


def any_can_fail(scalars: Iterable[Scalar]) -> bool:
    """Whether the evaluation of one of them fails for some row."""
    return any(can_fail(scalar) for scalar in scalars)


def is_volatile(scalar: Scalar) -> bool:
    """Whether the value depends on more than the row."""
    return any(isinstance(part, Call) and function(part.function).volatile for part in walk(scalar))


def _tried(condition: Scalar) -> frozenset[Scalar]:
    """The expressions that do not fail wherever the condition is not true."""
    match condition:
        case Failed(arg):
            return frozenset((arg,))
        case Or(args):
            return frozenset[Scalar]().union(*map(_tried, args))
        case _:
            return frozenset()


def call_can_fail(call: Call) -> bool:
    """Whether the call itself fails for some arguments of its types."""
    entry = function(call.function)
    if not entry.fails:
        return False
    values = [arg.value if isinstance(arg, Literal) else Unknown.UNKNOWN for arg in call.args]
    return entry.fails_for(Arguments([arg.type for arg in call.args], values, call.type))


def _find(entries: Mapping[str, _Entry], key: str) -> _Entry:
    found = entries.get(key)
    if found is None:
        raise UnknownFunction(key)
    return found
