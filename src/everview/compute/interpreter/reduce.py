"""Reduce: the rows of each group, each as often as it occurs, and every aggregate over them. And Accumulate.

An aggregate is a function of the multiset of the rows of its group. So that it is, one to which order matters takes
its arguments in the order asked for, ties in the order of the arguments themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import localcontext
from typing import Any

from everview.compute.allowance import take
from everview.compute.functions import list_aggregates, lookup
from everview.compute.functions.aggregates import COUNT
from everview.compute.functions.contract import Failure, OneRow, fail
from everview.compute.functions.numbers import EXACT
from everview.compute.interpreter import limits
from everview.compute.interpreter.ordering import compile_order, row_order_key, sort_by
from everview.compute.interpreter.scalars import compile_row, compile_scalar
from everview.compute.ir.relation import Accumulate, Aggregate, Order, Reduce, types
from everview.compute.ir.scalar import Scalar
from everview.compute.ir.types import SqlType
from everview.compute.rows.collection import (
    Errors,
    NegativeMultiplicity,
    Result,
    Row,
    Rows,
    add_failure,
    canonical,
    canonical_row,
    plain,
)

# What an aggregate reads of a row: the values to sort by, and its arguments. None: the row does not take part.
Taken = tuple[Row, Row] | None


def evaluate_reduce(reduce: Reduce, below: Result) -> Result:
    key_of = compile_row(reduce.keys)
    takers = [compile_taker(each.args, each.filter, each.order) for each in reduce.aggregates]
    errors = dict(below.errors)
    groups: dict[Row, list[list[tuple[Taken, int]]]] = {}
    try:
        for row, multiplicity in limits.paced(below.rows.items(), len(takers)):
            if multiplicity < 0:
                raise NegativeMultiplicity("Reduce", row, multiplicity)
            try:
                key = key_of(row)
                taken = [take(row) for take in takers]
            except Failure as failure:
                add_failure(errors, failure, multiplicity)
                continue
            group = groups.get(key)
            if group is None:
                group = groups[key] = [[] for _ in takers]
            for values, each in zip(group, taken, strict=True):
                values.append((each, multiplicity))
        return Result(_aggregated(reduce.aggregates, groups, errors), errors)
    finally:
        while groups:
            for values in groups.popitem()[1]:
                limits.empty(values)


def _aggregated(
    aggregates: Sequence[Aggregate], groups: dict[Row, list[list[tuple[Taken, int]]]], errors: Errors
) -> Rows:
    finishers = [
        compile_finisher(each.function, each.args, each.type, distinct=each.distinct, order=each.order)
        for each in aggregates
    ]
    rows: Rows = {}
    for key, group in groups.items():
        try:
            rows[key + tuple([finish(taken) for finish, taken in zip(finishers, group, strict=True)])] = 1
        except Failure as failure:
            add_failure(errors, failure, 1)
    return rows


def compile_taker(
    args: Sequence[Scalar], condition: Scalar | None, order: Sequence[Order] = ()
) -> Callable[[Row], Taken]:
    """The values that an aggregate takes of a row; where its filter is not true, nothing more is evaluated."""
    values, keys = compile_row(args), compile_order(order)
    if condition is None:
        return lambda row: (keys(row), values(row))
    passes = compile_scalar(condition)
    return lambda row: (keys(row), values(row)) if passes(row) else None


def compile_finisher(
    key: str,
    args: Sequence[Scalar],
    result: SqlType,
    *,
    distinct: bool = False,
    order: Sequence[Order] = (),
    as_given: bool = False,
) -> Callable[[Sequence[tuple[Taken, int]]], Any]:
    """The value of an aggregate over what it took of the rows of a group, with their multiplicities.

    `as_given`: it takes them in the order in which they come, as windows have them.
    """
    entry = lookup.aggregate(key)
    argument_key = row_order_key([arg.type for arg in args])
    thaws = [(index, thaw) for index, arg in enumerate(args) if (thaw := plain(arg.type))]
    settle = canonical(result)
    shows_order = entry.algebra is None or isinstance(entry.algebra, OneRow)
    ordered = (shows_order or bool(order)) and not as_given
    evaluate = entry.in_order.evaluate if as_given and entry.in_order is not None else entry.evaluate

    def finish(taken: Sequence[tuple[Taken, int]]) -> Any:
        items = [each for each in taken if each[0] is not None and (entry.takes_nulls or None not in each[0][1])]
        if distinct:
            found = {_arguments(item): (item[0], 1) for item in items}  # the last of those with the same arguments
            with limits.emptied(found):
                items = list(found.values())
        if entry.algebra == COUNT:  # rows may occur more often than could be told one by one
            total = sum(multiplicity for _, multiplicity in items)
            return total if total < 2**63 else fail("22003", "bigint out of range")
        if ordered:
            limits.sort(items, lambda item: argument_key(_arguments(item)))
            sort_by(items, order, _sort_values)
        limits.look(sum(item[1] for item in items))  # few rows may occur very often
        values = [_arguments(item) for item in items for _ in range(item[1])]
        if thaws:
            values = [_thawed(value, thaws) for value in values]
        if key in list_aggregates.FINISH:
            take(sum(len(value) for row in values for value in row if isinstance(value, str | bytes)))
        value = evaluate(result, values) if values else entry.empty
        return settle(value) if settle else value

    return finish


def _arguments(item: tuple[Taken, int]) -> Row:
    assert item[0] is not None
    return item[0][1]


def _sort_values(item: tuple[Taken, int]) -> Row:
    assert item[0] is not None
    return item[0][0]


def _thawed(values: Row, thaws: list[tuple[int, Callable[[Any], Any]]]) -> Row:
    result = list(values)
    for index, thaw in thaws:
        result[index] = thaw(result[index])
    return tuple(result)


def evaluate_accumulate(accumulate: Accumulate, below: Result) -> Result:
    """The totals of each key at each of its times."""
    with localcontext(EXACT):
        return Result(_totals(accumulate, below.rows), below.errors)


def _totals(accumulate: Accumulate, below: Rows) -> Rows:
    keys, settle = accumulate.keys, canonical_row(types(accumulate))
    amounts: dict[Row, dict[Any, list[Any]]] = {}
    for row, multiplicity in below.items():
        times = amounts.setdefault(row[1 : keys + 1], {})
        added = [multiplicity * amount for amount in row[keys + 1 :]]
        known = times.get(row[0])
        times[row[0]] = added if known is None else [one + other for one, other in zip(known, added, strict=True)]
    rows: Rows = {}
    for key, times in amounts.items():
        order = sorted(times)
        totals: list[Any] = [0] * len(times[order[0]])
        for time, following in zip(order, [*order[1:], None], strict=True):
            totals = [total + amount for total, amount in zip(totals, times[time], strict=True)]
            rows[settle((time, following, *key, *totals))] = 1
    return rows
