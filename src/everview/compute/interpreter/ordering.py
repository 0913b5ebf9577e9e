"""The total order of the values of each type: PostgreSQL's ORDER BY, with text by code points, and NULL last.

Two values have equal keys exactly if they are the same value, so that a sort by a whole row leaves nothing open: where
PostgreSQL calls two different representations equal (one month and thirty days), the representation decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from everview.compute.functions.order import sort_key
from everview.compute.interpreter import limits
from everview.compute.interpreter.scalars import compile_row
from everview.compute.ir.relation import Order
from everview.compute.ir.types import Kind, SqlType
from everview.compute.rows.collection import Row

Key = Callable[[Any], Any]
_Item = TypeVar("_Item")

_COMPARED_BY_KEY = (Kind.FLOAT4, Kind.FLOAT8, Kind.INTERVAL, Kind.JSONB, Kind.ARRAY)


def order_key(sql_type: SqlType, *, nulls_first: bool = False) -> Key:
    """The key to compare values of this type by; NULL comes after everything else, or before it."""
    null, other = ((0,), 1) if nulls_first else ((1,), 0)
    if sql_type.kind not in _COMPARED_BY_KEY:
        return lambda value: null if value is None else (other, value)
    key = sort_key(sql_type)
    element = sql_type.element or sql_type
    if element.kind is Kind.INTERVAL:
        return lambda value: null if value is None else (other, key(value), value)
    return lambda value: null if value is None else (other, key(value))


def row_order_key(types: Sequence[SqlType]) -> Key:
    keys = [order_key(each) for each in types]
    return lambda row: tuple([key(value) for key, value in zip(keys, row, strict=True)])


def compile_order(order: Sequence[Order]) -> Callable[[Row], Row]:
    return compile_row([each.scalar for each in order])


def sort_by(items: list[_Item], order: Sequence[Order], values: Callable[[_Item], Row]) -> None:
    """Sort in place by the keys, the first the most significant; items that tie in all of them stay as they are."""
    for index in range(len(order) - 1, -1, -1):
        each = order[index]
        # A descending sort is an ascending one turned round, and so is where NULLs go.
        key = order_key(each.scalar.type, nulls_first=each.nulls_first != each.descending)
        limits.sort(items, partial(_value_key, key, values, index), reverse=each.descending)


def _value_key(key: Key, values: Callable[[_Item], Row], index: int, item: _Item) -> Any:
    return key(values(item)[index])
