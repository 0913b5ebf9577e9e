"""Sorting by the keys of an ORDER BY, ties by the whole row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from everview.compute.interpreter import pace
from everview.compute.interpreter.ordering import order_key
from everview.compute.interpreter.scalars import compile_row
from everview.compute.ir.relation import Order
from everview.compute.rows.collection import Row

Item = TypeVar("Item")


def compile_order(order: Sequence[Order]) -> Callable[[Row], Row]:
    """The values to sort a row by."""
    return compile_row([each.scalar for each in order])


def sort_by(items: list[Item], order: Sequence[Order], values: Callable[[Item], Row]) -> None:
    """Sort in place by the keys, the first the most significant; items that tie in all of them stay as they are."""
    for index in range(len(order) - 1, -1, -1):
        each = order[index]
        # A descending sort is an ascending one turned round, and so is where NULLs go.
        key = order_key(each.scalar.type, nulls_first=each.nulls_first != each.descending)
        pace.sort(items, _at(key, values, index), reverse=each.descending)


def _at(key: Callable[[Any], Any], values: Callable[[Item], Row], index: int) -> Callable[[Item], Any]:
    return lambda item: key(values(item)[index])
