"""Window: each copy of a row with window functions behind, over its partition, sorted, ties by the whole row.

A row for which a partition or sort key, a filter or an argument fails is left out of its partition, and is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from everview.compute.functions.contract import Failure
from everview.compute.interpreter import limits
from everview.compute.interpreter.ordering import compile_order, row_order_key, sort_by
from everview.compute.interpreter.partition import Partition, compile_frame, make_partition
from everview.compute.interpreter.reduce import Taken, compile_finisher, compile_taker
from everview.compute.interpreter.scalars import compile_row
from everview.compute.interpreter.window_functions import WindowEvaluator, window_function
from everview.compute.ir.relation import Window, WindowFunction, types
from everview.compute.rows.collection import NegativeMultiplicity, Result, Row, Rows, add, add_failure, canonical

# A row of a partition: the values that it is sorted by, the row, and what each function takes of it.
_Item = tuple[Row, Row, list[Taken]]


def evaluate_window(window: Window, below: Result) -> Result:
    partition_of, keys_of = compile_row(window.partition), compile_order(window.order)
    takers = [compile_taker(each.args, each.filter) for each in window.functions]
    errors = dict(below.errors)
    partitions: dict[Row, list[_Item]] = {}
    for row, multiplicity in limits.paced(below.rows.items(), len(takers)):
        if multiplicity < 0:
            raise NegativeMultiplicity("Window", row, multiplicity)
        try:
            item = (keys_of(row), row, [take(row) for take in takers])
            if multiplicity > 1:
                limits.count(multiplicity)  # few rows may occur very often
            partitions.setdefault(partition_of(row), []).extend([item] * multiplicity)
        except Failure as failure:
            add_failure(errors, failure, multiplicity)
    row_key = row_order_key(types(window.input))
    rows: Rows = {}
    for items in partitions.values():
        limits.sort(items, lambda item: row_key(item[1]))
        sort_by(items, window.order, lambda item: item[0])
        partition = make_partition([item[1] for item in items], [item[0] for item in items], window.order)
        functions = [
            _compile(each, partition, [item[2][index] for item in items]) for index, each in enumerate(window.functions)
        ]
        for position, item in enumerate(limits.paced(items)):
            try:
                add(rows, item[1] + tuple([value(position) for value in functions]), 1)
            except Failure as failure:
                add_failure(errors, failure, 1)
    return Result(rows, errors)


def _compile(each: WindowFunction, partition: Partition, taken: Sequence[Taken]) -> Callable[[int], Any]:
    proper = window_function(each.function)
    if proper is not None:
        return _compile_proper(each, proper, partition, taken)
    frame = compile_frame(each.frame, partition)
    finish = compile_finisher(each.function, each.args, each.type, as_given=True)
    last: list[tuple[Sequence[int], Any]] = []

    def value(position: int) -> Any:
        inside = frame(position)
        if not last or last[0][0] != inside:  # rows often share a frame: the whole partition, or that of their peers
            last[:] = [(inside, finish([(taken[place], 1) for place in inside]))]
        return last[0][1]

    return value


def _compile_proper(
    each: WindowFunction, proper: WindowEvaluator, partition: Partition, taken: Sequence[Taken]
) -> Callable[[int], Any]:
    frame = compile_frame(each.frame, partition)
    args = [one[1] if one is not None else () for one in taken]
    settle = canonical(each.type)

    def value(position: int) -> Any:
        result = proper(partition, args, frame, position)
        return settle(result) if settle else result

    return value
