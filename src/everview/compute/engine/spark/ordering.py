"""The total order of the local engine in Spark SQL: ORDER BY keys with NULLs where they were asked for, and whole rows.

Where two different values compare as equal (one month and thirty days) the representation decides, as it does there.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.compute.functions.order import spark_equality_key, spark_sort_key
from everview.compute.ir.relation import Order
from everview.compute.ir.types import Kind, SqlType


def sort_terms(sql_type: SqlType, value: str) -> list[str]:
    """What to compare values of a type by, the first the most significant; raises NotOnSpark."""
    return _with_representation(sql_type, spark_sort_key(sql_type, value), value)


def tie_terms(sql_type: SqlType, value: str) -> list[str]:
    """The same where only some total order is needed: jsonb is compared by its text."""
    return _with_representation(sql_type, spark_equality_key(sql_type, value), value)


def _with_representation(sql_type: SqlType, key: str, value: str) -> list[str]:
    return [key, value] if (sql_type.element or sql_type).kind is Kind.INTERVAL else [key]


def order_by(order: Sequence[Order], values: Sequence[str]) -> list[str]:
    """The terms of an ORDER BY over the rendered values of its keys."""
    return [
        f"{term} {direction(each)}"
        for each, value in zip(order, values, strict=True)
        for term in sort_terms(each.scalar.type, value)
    ]


def direction(order: Order) -> str:
    """Which way a key is sorted, and where its NULLs are."""
    return f"{'DESC' if order.descending else 'ASC'} NULLS {'FIRST' if order.nulls_first else 'LAST'}"


def order_by_row(types: Sequence[SqlType], values: Sequence[str]) -> list[str]:
    """The terms of an ORDER BY over a whole row."""
    return [
        f"{term} ASC NULLS LAST" for each, value in zip(types, values, strict=True) for term in tie_terms(each, value)
    ]
