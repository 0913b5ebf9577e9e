"""Scalars in Spark SQL: the renderings of the registry, put together, and whether their evaluation fails.

No rendering fails by itself: a call that fails is NULL though none of its arguments is, or, if it is not strict and so
takes NULLs, just NULL, for there is no other reason then. `render_failed` says so in SQL, and `render_guarded` is an
expression that ends the job instead, for those who expect that nothing fails.

A rendering may say an argument several times, and an argument may be such a call again: forty of them inside one
another would be a text that no machine holds. So what is long is computed once, behind a name. And every text has a
bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from everview.compute.engine.spark.literal import render_literal
from everview.compute.engine.spark.python_calls import python_call, python_expression
from everview.compute.functions import lookup
from everview.compute.functions.contract import Function
from everview.compute.functions.lookup import can_fail
from everview.compute.functions.spark_sql import NotOnSpark, TooLong, render
from everview.compute.functions.table import TableFunction
from everview.compute.ir.scalar import And, Call, Case, Coalesce, Column, Failed, FailedTable, Literal, Or, Scalar, walk
from everview.compute.ir.types import SqlType

Place = Callable[[int], str]
FAILED = "everview: an evaluation failed"
LONG = 1_000  # characters of an argument that is computed once, behind a name, if it would be said several times
LENGTH_MAX = 4 << 20  # characters of an expression


def column(index: int) -> str:
    """The name of the column at a position."""
    return f"c{index}"


def columns(count: int, start: int = 0) -> list[str]:
    """The names of so many columns."""
    return [column(index) for index in range(start, start + count)]


def render_scalar(scalar: Scalar, place: Place = column) -> str:
    """The expression over columns that are where `place` says; raises NotOnSpark."""
    match scalar:
        case Column(index):
            return place(index)
        case Literal(value, sql_type):
            return render_literal(value, sql_type)
        case Call(function):
            return within(_render_call(scalar, lookup.function(function), place))
        case And(args):
            return within(f"({' AND '.join(_each(args, place))})")
        case Or(args):
            return within(f"({' OR '.join(_each(args, place))})")
        case Case(branches, otherwise):
            whens = " ".join(
                f"WHEN {render_scalar(when, place)} THEN {render_scalar(then, place)}" for when, then in branches
            )
            return within(f"CASE {whens} ELSE {render_scalar(otherwise, place)} END")
        case Coalesce(args):
            return within(f"coalesce({', '.join(_each(args, place))})")
        case Failed(arg):
            return render_failed(arg, place)
        case FailedTable(function, args, added):
            return render_failed_table(function, args, added, place)


def within(text: str, length_max: int = LENGTH_MAX) -> str:
    """The text, if it is not too long; else raises TooLong."""
    if len(text) > length_max:
        raise TooLong(f"more than {length_max:,} characters of Spark SQL")
    return text


def _render_call(call: Call, function: Function, place: Place) -> str:
    args, result = call.args, call.type
    rendered, types = _each(args, place), [arg.type for arg in args]
    nested = [index for index, arg in enumerate(args) if not isinstance(arg, (Column, Literal))]
    if sum(len(rendered[index]) for index in nested) > LONG:
        named = list(rendered)
        for index in nested:
            named[index] = f"nested.a{index}"
        body = render_call(function, named, types, result)
        if any(len(re.findall(rf"\b{re.escape(named[index])}\b", body)) > 1 for index in nested):
            fields = ", ".join(f"'a{index}', {rendered[index]}" for index in nested)
            return f"transform(array(named_struct({fields})), nested -> {body})[0]"
    try:
        return render(function, rendered, types, result)
    except NotOnSpark:
        if any(each.count("->") > 1 for each in rendered):
            return python_expression(function, call, lambda leaf: render_scalar(leaf, place))
        return python_call(function, rendered, types, result)


def render_call(function: Function, args: Sequence[str], types: Sequence[SqlType], result: SqlType) -> str:
    """The call over rendered arguments: in Spark SQL, or in Python where that has no equivalent; raises NotOnSpark."""
    try:
        return render(function, args, types, result)
    except NotOnSpark:
        return python_call(function, args, types, result)


def render_table(
    function: TableFunction, args: Sequence[str], types: Sequence[SqlType], added: Sequence[SqlType]
) -> str:
    """The rows of a table function, as an array of structs; raises NotOnSpark."""
    try:
        return function.spark(args, types, added)
    except NotOnSpark:
        if function.as_array is None:
            raise
    scalar = lookup.function(function.as_array)
    assert isinstance(scalar.result, SqlType)
    return function.unfolded(render_call(scalar, args, types, scalar.result))


def render_guarded(scalar: Scalar, place: Place = column) -> str:
    """The expression; a failure of its evaluation raises an error with `FAILED` in it."""
    rendered = render_scalar(scalar, place)
    if not can_fail(scalar):
        return rendered
    raised = f"raise_error('{FAILED}')"
    if _fails_where_null(scalar):
        read = dict.fromkeys(part for part in walk(scalar) if isinstance(part, Column))
        present = " AND ".join(f"{place(each.index)} IS NOT NULL" for each in read) or "true"
        return f"coalesce({rendered}, CASE WHEN {present} THEN {raised} END)"
    if _all_strict(scalar):  # what fails inside makes the whole NULL, so nothing else needs a look
        return f"coalesce({rendered}, CASE WHEN {render_failed(scalar, place)} THEN {raised} END)"
    return f"CASE WHEN {render_failed(scalar, place)} THEN {raised} ELSE {rendered} END"


def render_failed_table(function: str, args: Sequence[Scalar], added: Sequence[SqlType], place: Place = column) -> str:
    """Whether the table function fails: it gives NULL then, and an array otherwise."""
    rendered = _each(args, place)
    rows = render_table(lookup.table_function(function), rendered, [arg.type for arg in args], added)
    return f"({' AND '.join([*(f'{each} IS NOT NULL' for each in rendered), f'{rows} IS NULL'])})"


def render_failed(scalar: Scalar, place: Place = column) -> str:
    """Whether the evaluation fails, by the rules by which it goes on; never NULL."""
    return within(_render_failed(scalar, place)) if can_fail(scalar) else "false"


def _render_failed(scalar: Scalar, place: Place) -> str:
    match scalar:
        case Call(function, args):
            inside = [render_failed(arg, place) for arg in args if can_fail(arg)]
            entry = lookup.function(function)
            if lookup.call_can_fail(scalar):
                present = [f"{each} IS NOT NULL" for each in _each(args, place)] if entry.strict else []
                inside.append(f"({' AND '.join([*present, f'{render_scalar(scalar, place)} IS NULL'])})")
            return f"({' OR '.join(inside)})"
        case And(args):
            return _in_turn([(arg, f"coalesce({render_scalar(arg, place)}, true)") for arg in args], place)
        case Or(args):
            return _in_turn([(arg, f"NOT coalesce({render_scalar(arg, place)}, false)") for arg in args], place)
        case Coalesce(args):
            return _in_turn([(arg, f"{render_scalar(arg, place)} IS NULL") for arg in args], place)
        case Case(branches, otherwise):
            result = render_failed(otherwise, place)
            for when, then in reversed(branches):
                chosen = f"CASE WHEN {render_scalar(when, place)} THEN {render_failed(then, place)} ELSE {result} END"
                result = f"({render_failed(when, place)} OR {chosen})"
            return result
        case _:
            return "false"


def _in_turn(args: Sequence[tuple[Scalar, str]], place: Place) -> str:
    """Whether one of the arguments fails that are evaluated, each going on to the next only if that is said of it."""
    result = "false"
    for arg, goes_on in reversed(args):
        if result != "false":
            result = f"({goes_on} AND {result})"
        failed = render_failed(arg, place)
        if failed != "false":
            result = failed if result == "false" else f"({failed} OR {result})"
    return result


def _fails_where_null(scalar: Scalar) -> bool:
    """Whether a NULL from columns that are not NULL can only be a failure: no call in it is NULL for anything else."""

    def only(part: Scalar) -> bool:
        if isinstance(part, Literal):
            return part.value is not None
        if isinstance(part, Call):
            return lookup.function(part.function).strict and lookup.call_can_fail(part)
        return isinstance(part, Column)

    return all(map(only, walk(scalar)))


def _all_strict(scalar: Scalar) -> bool:
    return all(
        isinstance(part, (Column, Literal)) or (isinstance(part, Call) and lookup.function(part.function).strict)
        for part in walk(scalar)
    )


def _each(scalars: Sequence[Scalar], place: Place) -> list[str]:
    return [render_scalar(scalar, place) for scalar in scalars]
