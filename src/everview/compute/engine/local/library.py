"""Functions by the keys that plans refer to them by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from everview.compute.functions import registry
from everview.compute.functions.contract import TRIED, AggregateFunction, Arguments, Function, Unknown
from everview.compute.functions.table import TableFunction
from everview.compute.ir.scalar import Call, Failed, FailedTable, Literal, Scalar, children
from everview.errors import EverviewError

Entry = TypeVar("Entry")


class UnknownFunction(EverviewError):
    """A plan refers to a function that is not registered."""

    def __init__(self, key: str) -> None:
        super().__init__(f"internal error: no function {key}")


def function(key: str) -> Function:
    """The scalar function."""
    return _find(registry.FUNCTIONS, key)


def aggregate(key: str) -> AggregateFunction:
    """The aggregate."""
    return _find(registry.TRIED_AGGREGATES if key.startswith(TRIED) else registry.AGGREGATES, key)


def is_aggregate(key: str) -> bool:
    """Whether it is an aggregate, also over a window."""
    return key in registry.AGGREGATES


def table_function(key: str) -> TableFunction:
    """The table function."""
    return _find(registry.TABLES, key)


def can_fail(scalar: Scalar) -> bool:
    """Whether the evaluation fails for some row."""
    if isinstance(scalar, (Failed, FailedTable)):
        return False
    if isinstance(scalar, Call) and call_can_fail(scalar):
        return True
    return any(can_fail(each) for each in children(scalar))


def call_can_fail(call: Call) -> bool:
    """Whether the call itself fails for some arguments, of the types that it has."""
    entry = function(call.function)
    if not entry.fails:
        return False
    values = [arg.value if isinstance(arg, Literal) else Unknown.UNKNOWN for arg in call.args]
    return entry.fails_for(Arguments([arg.type for arg in call.args], values, call.type))


def _find(entries: Mapping[str, Entry], key: str) -> Entry:
    found = entries.get(key)
    if found is None:
        raise UnknownFunction(key)
    return found
