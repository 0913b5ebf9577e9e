"""Collections: multisets of rows and of errors, with integer multiplicities other than zero.

A row is a tuple of canonical values: what SQL calls the same value is the same Python value, and all are hashable. So
there is one NaN, no negative zero, a numeric has the exponent of its type, and an array is a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any, TypeAlias

from everview.compute.functions.contract import Failure
from everview.compute.ir.types import Kind, SqlType, element_of
from everview.errors import EverviewError

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = dict[Row, int]
Error: TypeAlias = tuple[str, str]  # SQLSTATE and message
Errors: TypeAlias = dict[Error, int]

NAN = float("nan")
_WIDE = Context(prec=120)


class NegativeMultiplicity(EverviewError):
    """A row occurs fewer than zero times where an operator needs a plain multiset: a defect of ours."""

    def __init__(self, operator: str, row: Row, multiplicity: int) -> None:
        super().__init__(
            f"internal error: {operator} over a row with a negative multiplicity",
            detail=f"row {row!r} occurs {multiplicity} times",
        )


@dataclass(frozen=True, slots=True)
class Result:
    """The result of evaluating a relation: its rows, and the errors of rows that could not be computed."""

    rows: Rows = field(default_factory=dict)
    errors: Errors = field(default_factory=dict)


def add(target: dict[Any, int], key: Any, multiplicity: int) -> None:
    """Add to a multiset; what comes to zero is gone."""
    total = target.get(key, 0) + multiplicity
    if total:
        target[key] = total
    else:
        target.pop(key, None)


ends_at_failure: ContextVar[bool] = ContextVar("ends_at_failure", default=False)


def add_failure(errors: Errors, failure: Failure, multiplicity: int) -> None:
    """Count a failure; or raise it, if the caller wants to know of any, even of failures that cancel out."""
    if ends_at_failure.get():
        raise failure
    add(errors, (failure.sqlstate, failure.message), multiplicity)


def add_all(target: dict[Any, int], other: Mapping[Any, int]) -> None:
    for key, multiplicity in other.items():
        add(target, key, multiplicity)


def canonical(sql_type: SqlType) -> Callable[[Any], Any] | None:
    """The function that makes a value of this type canonical; None if every value is canonical."""
    match sql_type.kind:
        case Kind.FLOAT4 | Kind.FLOAT8:
            return _canonical_float
        case Kind.NUMERIC:
            return _canonical_decimal(sql_type.scale)
        case Kind.ARRAY:
            return _canonical_array(canonical(element_of(sql_type)))
        case _:
            return None


def _canonical_float(value: Any) -> Any:
    if value is None:
        return None
    return value + 0.0 if value == value else NAN  # noqa: PLR0124 - only NaN differs from itself


def _canonical_decimal(scale: int) -> Callable[[Any], Any]:
    unit = Decimal(1).scaleb(-scale)

    def settle(value: Any) -> Any:
        if value is None:
            return None
        if value.is_zero():
            return unit * 0
        return value if value.as_tuple().exponent == -scale else value.quantize(unit, context=_WIDE)

    return settle


def _canonical_array(element: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    def settle(value: Any) -> Any:
        if value is None:
            return None
        return tuple([settle(part) if isinstance(part, list) else element(part) if element else part for part in value])

    return settle


def plain(sql_type: SqlType) -> Callable[[Any], Any] | None:
    """The function that turns a canonical value into the value that functions take; None where they are the same."""
    if sql_type.kind is not Kind.ARRAY:
        return None
    interval = element_of(sql_type).kind is Kind.INTERVAL

    def thaw(value: Any) -> Any:
        if value is None:
            return None
        return [thaw(part) if type(part) is tuple and not interval else part for part in value]

    return thaw


def canonical_row(types: Sequence[SqlType]) -> Callable[[Sequence[Any]], Row]:
    """The function that makes a row of values of these types canonical."""
    settlers = [(index, settle) for index, each in enumerate(types) if (settle := canonical(each))]
    if not settlers:
        return tuple

    def settle_row(row: Sequence[Any]) -> Row:
        values = list(row)
        for index, settle in settlers:
            values[index] = settle(values[index])
        return tuple(values)

    return settle_row


def rows_of(pairs: Iterable[tuple[Sequence[Any], int]], types: Sequence[SqlType]) -> Rows:
    """The collection of these rows, each as often as is said."""
    settle = canonical_row(types)
    rows: Rows = {}
    for row, multiplicity in pairs:
        add(rows, settle(row), multiplicity)
    return rows
