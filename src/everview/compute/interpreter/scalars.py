"""Scalars as closures: an expression is walked once, and what comes out computes its value from a row.

A closure raises `Failure` where the evaluation fails. Arguments of a function are all evaluated, as in PostgreSQL,
before a strict one looks for NULLs; only And, Or, Case and Coalesce leave arguments out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from everview.compute.allowance import take_value
from everview.compute.functions import lookup
from everview.compute.functions.contract import Failure
from everview.compute.ir.scalar import (
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Failed,
    FailedTable,
    Literal,
    Or,
    Scalar,
)
from everview.compute.ir.types import Kind
from everview.compute.rows.collection import Row, canonical, plain

Evaluator: TypeAlias = Callable[[Row], Any]


def compile_value(scalar: Scalar) -> Evaluator:
    """The canonical value of the expression."""
    if isinstance(scalar, Column):
        return _read(scalar.index)
    evaluate = compile_scalar(scalar)
    settle = canonical(scalar.type)
    if settle is None:
        return evaluate
    return lambda row: settle(evaluate(row))


def compile_row(scalars: Sequence[Scalar]) -> Callable[[Row], Row]:
    """The canonical values of several expressions."""
    if all(isinstance(scalar, Column) for scalar in scalars):
        return compile_columns([scalar.index for scalar in scalars if isinstance(scalar, Column)])
    values = [compile_value(scalar) for scalar in scalars]
    return lambda row: tuple([value(row) for value in values])


def compile_columns(columns: Sequence[int]) -> Callable[[Row], Row]:
    """The values at these positions."""
    if len(columns) == 1:
        only = columns[0]
        return lambda row: (row[only],)
    return lambda row: tuple([row[index] for index in columns])


def compile_scalar(scalar: Scalar) -> Evaluator:
    """The value of the expression as functions take it."""
    match scalar:
        case Column(index, sql_type):
            thaw = plain(sql_type)
            return _read(index) if thaw is None else lambda row: thaw(row[index])
        case Literal(value):
            return lambda row: value
        case Call():
            return _compile_call(scalar)
        case And(args):
            return _compile_and([compile_scalar(arg) for arg in args])
        case Or(args):
            return _compile_or([compile_scalar(arg) for arg in args])
        case Case(branches, otherwise):
            compiled = [(compile_scalar(condition), compile_scalar(value)) for condition, value in branches]
            return _compile_case(compiled, compile_scalar(otherwise))
        case Coalesce(args):
            return _compile_coalesce([compile_scalar(arg) for arg in args])
        case Failed(arg):
            return _compile_failed(compile_scalar(arg))
        case FailedTable():
            return _compile_failed(_compile_table(scalar))


def _read(index: int) -> Evaluator:
    return lambda row: row[index]


def _compile_call(call: Call) -> Evaluator:
    entry = lookup.function(call.function)
    args = [compile_scalar(arg) for arg in call.args]
    evaluate = entry.evaluate
    if entry.typed:
        typed, sql_type = evaluate, call.type
        evaluate = lambda *values: typed(sql_type, *values)  # noqa: E731 - one of two meanings of one name
    if call.type.kind in _LONG:
        evaluate = _counted(evaluate)
    if not entry.strict:
        return lambda row: evaluate(*[arg(row) for arg in args])
    match args:
        case [one]:
            return _strict_unary(evaluate, one)
        case [left, right]:
            return _strict_binary(evaluate, left, right)
        case _:
            return _strict(evaluate, args)


_LONG = (Kind.TEXT, Kind.VARCHAR, Kind.BYTEA, Kind.JSONB, Kind.ARRAY)  # types whose values may have any length


def _counted(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, its long values counted as memory."""

    def run(*values: Any) -> Any:
        result = evaluate(*values)
        if result is not None and len(result) > 100:
            take_value(result)
        return result

    return run


def _strict_unary(evaluate: Callable[..., Any], arg: Evaluator) -> Evaluator:
    def run(row: Row) -> Any:
        value = arg(row)
        return None if value is None else evaluate(value)

    return run


def _strict_binary(evaluate: Callable[..., Any], left: Evaluator, right: Evaluator) -> Evaluator:
    def run(row: Row) -> Any:
        one, other = left(row), right(row)
        return None if one is None or other is None else evaluate(one, other)

    return run


def _strict(evaluate: Callable[..., Any], args: list[Evaluator]) -> Evaluator:
    def run(row: Row) -> Any:
        values = [arg(row) for arg in args]
        for value in values:
            if value is None:
                return None
        return evaluate(*values)

    return run


def _compile_and(args: list[Evaluator]) -> Evaluator:
    def run(row: Row) -> bool | None:
        result: bool | None = True
        for arg in args:
            value = arg(row)
            if value is None:
                result = None
            elif not value:
                return False
        return result

    return run


def _compile_or(args: list[Evaluator]) -> Evaluator:
    def run(row: Row) -> bool | None:
        result: bool | None = False
        for arg in args:
            value = arg(row)
            if value is None:
                result = None
            elif value:
                return True
        return result

    return run


def _compile_case(branches: list[tuple[Evaluator, Evaluator]], otherwise: Evaluator) -> Evaluator:
    def run(row: Row) -> Any:
        for condition, value in branches:
            if condition(row):
                return value(row)
        return otherwise(row)

    return run


def _compile_coalesce(args: list[Evaluator]) -> Evaluator:
    def run(row: Row) -> Any:
        for arg in args:
            value = arg(row)
            if value is not None:
                return value
        return None

    return run


def _compile_failed(arg: Evaluator) -> Evaluator:
    def run(row: Row) -> bool:
        try:
            arg(row)
        except Failure:
            return True
        return False

    return run


def compile_attempt(scalar: Scalar) -> Evaluator:
    """The evaluation itself, or the call of the table function, for the sake of the `Failure` that it raises."""
    return _compile_table(scalar) if isinstance(scalar, FailedTable) else compile_scalar(scalar)


def _compile_table(call: FailedTable) -> Evaluator:
    table = lookup.table_function(call.function)
    args = [compile_scalar(arg) for arg in call.args]

    def run(row: Row) -> Any:
        values = [arg(row) for arg in args]
        if not table.strict or all(value is not None for value in values):
            list(table.evaluate(call.added, *values))

    return run
