"""Plans as text: one line for each operator, what it reads indented below it.

`#0` is the first column of what an operator reads, and behind its own columns stand those that it adds: `#2 = ...`.
EXPLAIN shows this, and tests compare it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from everview.compute.ir import relation as ir
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.scalar import And, Call, Case, Coalesce, Column, Failed, FailedTable, Literal, Or, Scalar
from everview.compute.ir.types import Interval
from everview.quoting import literal

INDENT = "  "
CONSTANT_ROWS_MAX = 10


def show(plan: ir.Relation) -> str:
    return "\n".join(_lines(plan, 0))


def _lines(plan: ir.Relation, depth: int) -> Iterator[str]:
    indent = INDENT * depth
    if isinstance(plan, ir.Let):  # a chain of these reads as a list of definitions
        yield f"{indent}Let {plan.id} ="
        yield from _lines(plan.value, depth + 1)
        yield from _lines(plan.body, depth)
        return
    title = "Distinct" if isinstance(plan, ir.Reduce) and not plan.aggregates else type(plan).__name__
    yield indent + " ".join(filter(None, (title, _details(plan))))
    for each in ir.inputs_of(plan):
        yield from _lines(each, depth + 1)


def _details(plan: ir.Relation) -> str:
    match plan:
        case ir.Constant(rows):
            return _constant(rows)
        case ir.Get(id):
            return id
        case ir.Project(_, columns):
            return _columns(columns)
        case ir.Map(input, scalars):
            return _added(ir.arity(input), [show_scalar(scalar) for scalar in scalars])
        case ir.Filter(_, predicates):
            return " and ".join(show_scalar(predicate) for predicate in predicates)
        case ir.FlatMap(input, function, args, added):
            start = ir.arity(input)
            return f"{_columns(range(start, start + len(added)))} = {_call(function, args)}"
        case ir.Join(_, equivalences, nullsafe):
            pairs = [" = ".join(show_scalar(member) for member in members) for members in equivalences]
            pairs += [" <=> ".join(show_scalar(member) for member in members) for members in nullsafe]
            return f"on {' and '.join(pairs)}" if pairs else ""
        case ir.Reduce(_, keys, aggregates):
            by = f"by {_list(keys)}" if keys else ""
            return _with_list(by, [_aggregate(each) for each in aggregates])
        case ir.TopK(_, group, order, limit, offset):
            by = f"by {_columns(group)}" if group else ""
            bounds = ("" if limit is None else f"limit {limit}", f"offset {offset}" if offset else "")
            return " ".join(filter(None, (by, _order(order), *bounds)))
        case ir.Window(input, partition, order, functions):
            by = f"by {_list(partition)}" if partition else ""
            calls = [(_call(each.function, each.args) + _filter(each.filter), _frame(each.frame)) for each in functions]
            shown = _added(ir.arity(input), [" ".join(filter(None, parts)) for parts in calls])
            return _with_list(" ".join(filter(None, (by, _order(order)))), [shown])
        case ir.Temporal(_, lowers, uppers, times):
            limits = [f"from {show_scalar(each)}" for each in lowers]
            limits += [f"before {show_scalar(each)}" for each in uppers]
            return " and ".join([*limits, *(f"at {show_scalar(each)}" for each in (times,) if each is not None)])
        case ir.Recursive(id, distinct=distinct):
            return f"{id} until nothing {'new ' if distinct else ''}comes"
        case ir.Accumulate(_, keys):
            return f"by {_columns(range(1, keys + 1))} over time #0"
        case _:
            return ""


def _constant(rows: Sequence[tuple[tuple[Any, ...], int]]) -> str:
    if not rows:
        return "empty"
    shown = [
        f"({', '.join(map(_value, row))})" + (f" x {multiplicity}" if multiplicity != 1 else "")
        for row, multiplicity in rows[:CONSTANT_ROWS_MAX]
    ]
    left = len(rows) - len(shown)
    return ", ".join(shown) + (f" and {left} more" if left else "")


def _with_list(head: str, items: list[str]) -> str:
    return f"{head}: {', '.join(items)}".lstrip(": ") if items else head


def _added(start: int, items: list[str]) -> str:
    return ", ".join(f"#{start + index} = {item}" for index, item in enumerate(items))


def _columns(columns: Sequence[int]) -> str:
    return ", ".join(f"#{column}" for column in columns)


def _list(scalars: Sequence[Scalar]) -> str:
    return ", ".join(map(show_scalar, scalars))


def _order(order: Sequence[ir.Order]) -> str:
    keys = [show_scalar(each.scalar) + " desc" * each.descending + " nulls first" * each.nulls_first for each in order]
    return f"order by {', '.join(keys)}" if keys else ""


def _aggregate(aggregate: ir.Aggregate) -> str:
    name = aggregate.function.partition("(")[0]
    inside = " ".join(filter(None, ("distinct" * aggregate.distinct, _list(aggregate.args), _order(aggregate.order))))
    return f"{name}({inside or '*'}){_filter(aggregate.filter)}"


def _filter(condition: Scalar | None) -> str:
    return f" filter ({show_scalar(condition)})" if condition is not None else ""


def _frame(frame: ir.Frame) -> str:
    """Nothing for the default: from the start of the partition to the last peer."""
    if (frame.unit, frame.start, frame.end, frame.exclude) == ("range", None, 0, None):
        return ""
    start = "unbounded preceding" if frame.start is None else _bound(frame.start)
    end = "unbounded following" if frame.end is None else _bound(frame.end)
    return f"{frame.unit} between {start} and {end}" + (f" exclude {frame.exclude}" if frame.exclude else "")


def _bound(bound: Any) -> str:
    if isinstance(bound, Interval):
        before = min(bound) < 0
        size = Interval(*[abs(part) for part in bound])
        return f"{_value(size)} {'preceding' if before else 'following'}"
    return "current row" if bound == 0 else f"{abs(bound)} {'preceding' if bound < 0 else 'following'}"


def show_scalar(scalar: Scalar) -> str:
    match scalar:
        case Column(index):
            return f"#{index}"
        case Literal(value):
            return _value(value)
        case Call(function, args):
            return _call(function, args)
        case And(args):
            return f"({' and '.join(map(show_scalar, args))})"
        case Or(args):
            return f"({' or '.join(map(show_scalar, args))})"
        case Case(branches, otherwise):
            whens = " ".join(f"when {show_scalar(when)} then {show_scalar(then)}" for when, then in branches)
            return f"case {whens} else {show_scalar(otherwise)} end"
        case Coalesce(args):
            return f"coalesce({_list(args)})"
        case Failed(arg):
            return f"failed({show_scalar(arg)})"
        case FailedTable(function, args):
            return f"failed({_call(function, args)})"


def _call(function: str, args: Sequence[Scalar]) -> str:
    return f"{function.partition('(')[0]}({_list(args)})"


def _value(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return literal(value)
        case bytes():
            return f"'\\x{value.hex()}'"
        case Interval(months, days, micros):
            return f"'{months} months {days} days {micros} us'"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return f"'{value.isoformat(' ')}'"
        case date():
            return f"'{value.isoformat()}'"
        case Infinite():
            return f"'{value}'"
        case _:
            return str(value)
