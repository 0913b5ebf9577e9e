"""The total order of the values of each type: PostgreSQL's ORDER BY, with text by code points, and NULL last.

Two values have equal keys exactly if they are the same value, so that a sort by a whole row leaves nothing open: where
PostgreSQL calls two different representations equal (one month and thirty days), the representation decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from everview.compute.functions.order import sort_key
from everview.compute.ir.types import Kind, SqlType

Key = Callable[[Any], Any]

_COMPARED_BY_KEY = (Kind.FLOAT4, Kind.FLOAT8, Kind.INTERVAL, Kind.JSONB, Kind.ARRAY)


def total_order_key(value: Any, sql_type: SqlType) -> Any:
    """What to compare values of this type by; NULL comes after everything else."""
    return order_key(sql_type)(value)


def order_key(sql_type: SqlType, *, nulls_first: bool = False) -> Key:
    """`total_order_key` for one type, to be applied to many values."""
    null, other = ((0,), 1) if nulls_first else ((1,), 0)
    if sql_type.kind not in _COMPARED_BY_KEY:
        return lambda value: null if value is None else (other, value)
    key = sort_key(sql_type)
    element = sql_type.element or sql_type
    if element.kind is Kind.INTERVAL:
        return lambda value: null if value is None else (other, key(value), value)
    return lambda value: null if value is None else (other, key(value))


def row_order_key(types: Sequence[SqlType]) -> Key:
    """What to compare whole rows of these types by."""
    keys = [order_key(each) for each in types]
    return lambda row: tuple([key(value) for key, value in zip(keys, row, strict=True)])
