"""Scalars as closures: an expression is walked once, and what comes out computes its value from a row.

A closure raises `Failure` where the evaluation fails. Arguments of a function are all evaluated, as in PostgreSQL,
before a strict one looks for NULLs; only And, Or, Case and Coalesce leave arguments out.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from everview.compute.allowance import take_value
from everview.compute.cancel import check_wanted
from everview.compute.functions import lookup
from everview.compute.functions.contract import Failure
from everview.compute.interpreter.limits import LOOK_PARTS
from everview.compute.ir.scalar import And, Call, Case, Coalesce, Column, Failed, FailedTable, Literal, Or, Scalar
from everview.compute.ir.types import Kind
from everview.compute.rows.collection import Row, canonical, plain

Evaluator: TypeAlias = Callable[[Row], Any]

MANY_PARTS = 64  # of one expression: one that has more looks by itself whether to go on
MANY_CONSTANTS = 8  # from here on a value is looked up among them


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
    if len(columns) == 1:
        only = columns[0]
        return lambda row: (row[only],)
    return lambda row: tuple([row[index] for index in columns])


def compile_scalar(scalar: Scalar) -> Evaluator:
    """The value of the expression as functions take it."""
    match scalar:
        case Column(index, sql_type):
            thaw = plain(sql_type)
            return _read(index) if thaw is None else _read_thawed(index, thaw)
        case Literal(value):
            return lambda row: value
        case Call():
            return _compile_call(scalar)
        case And(args):
            parts = _compile_all(args, "ne")
            return _looking(_compile_and(parts), len(parts))
        case Or(args):
            parts = _compile_all(args, "eq")
            return _looking(_compile_or(parts), len(parts))
        case Case(branches, otherwise):
            compiled = [(compile_scalar(condition), compile_scalar(value)) for condition, value in branches]
            return _looking(_compile_case(compiled, compile_scalar(otherwise)), len(compiled))
        case Coalesce(args):
            return _looking(_compile_coalesce([compile_scalar(arg) for arg in args]), len(args))
        case Failed(arg):
            return _compile_failed(compile_scalar(arg))
        case FailedTable():
            return _compile_failed(_compile_table(scalar))


def _looking(run: Evaluator, parts: int) -> Evaluator:
    """The same evaluator, which looks whether to go on: operators count rows, whatever there is to do for each."""
    if parts < MANY_PARTS:
        return run
    done = 0

    def looking(row: Row) -> Any:
        nonlocal done
        done += parts
        if done >= LOOK_PARTS:
            done = 0
            check_wanted()
        return run(row)

    return looking


def _compile_all(args: Sequence[Scalar], comparison: str) -> list[Evaluator]:
    """Evaluators of conditions, where one stands for a run of conditions that compare one value with constants."""
    found: list[Evaluator] = []
    for value, run in groupby(args, _Compared(comparison)):
        group = list(run)
        if value is None or len(group) < MANY_CONSTANTS:
            found += map(compile_scalar, group)
        else:
            constants = [compile_scalar(each.args[1])(()) for each in group]  # type: ignore[union-attr]
            found.append(_among(compile_scalar(value), constants, equal=comparison == "eq"))
    return found


class _Compared:
    """What a condition compares with a constant by this operator, of values that are equal as Python's are; or None."""

    def __init__(self, comparison: str) -> None:
        self._prefix, self._operator = f"{comparison}(", getattr(operator, comparison)

    def __call__(self, condition: Scalar) -> Scalar | None:
        if not isinstance(condition, Call) or not condition.function.startswith(self._prefix):
            return None
        compared, constant = condition.args
        plain_one = lookup.function(condition.function).evaluate is self._operator
        return compared if plain_one and isinstance(constant, Literal) else None


def _among(value: Evaluator, constants: Sequence[Any], *, equal: bool) -> Evaluator:
    """`value IN (constants)`, or NOT IN, with SQL's NULLs."""
    known = {each for each in constants if each is not None}
    otherwise = None if None in constants else not equal

    def run(row: Row) -> bool | None:
        found = value(row)
        if found is None:
            return None
        return equal if found in known else otherwise

    return run


def _read(index: int) -> Evaluator:
    return lambda row: row[index]


def _read_thawed(index: int, thaw: Callable[[Any], Any]) -> Evaluator:
    """The value of a column. Rows often have the same object, a constant that was computed once: it is thawed once."""
    known: tuple[Any, Any] = (None, None)

    def run(row: Row) -> Any:
        nonlocal known
        given, thawed = known
        if row[index] is not given:
            given, thawed = row[index], thaw(row[index])
            known = given, thawed
        return thawed

    return run


def _compile_call(call: Call) -> Evaluator:
    entry = lookup.function(call.function)
    args = [compile_scalar(arg) for arg in call.args]
    evaluate = entry.evaluate
    if entry.typed:
        typed, sql_type = evaluate, call.type
        evaluate = lambda *values: typed(sql_type, *values)  # noqa: E731 - one of two meanings of one name
    if call.type.kind in _LONG:
        evaluate = _counted(evaluate)
    if any(arg.type.kind is Kind.ARRAY for arg in call.args):
        evaluate = _looking_by_length(evaluate)
    if not entry.strict:
        return _looking(lambda row: evaluate(*[arg(row) for arg in args]), len(args))
    match args:
        case [one]:
            return _strict_unary(evaluate, one)
        case [left, right]:
            return _strict_binary(evaluate, left, right)
        case _:
            return _looking(_strict(evaluate, args), len(args))


_LONG = (Kind.TEXT, Kind.VARCHAR, Kind.BYTEA, Kind.JSONB, Kind.ARRAY)  # types whose values may have any length


def _counted(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, its long values counted as memory."""

    def run(*values: Any) -> Any:
        result = evaluate(*values)
        if result is not None and len(result) > 100:
            take_value(result)
        return result

    return run


def _looking_by_length(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which goes through arrays: it looks whether to go on."""
    done = 0

    def run(*values: Any) -> Any:
        nonlocal done
        done += sum(len(value) for value in values if isinstance(value, list))
        if done >= LOOK_PARTS:
            done = 0
            check_wanted()
        return evaluate(*values)

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
