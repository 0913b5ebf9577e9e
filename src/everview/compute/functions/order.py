"""The order of the values of each type: a Python key to sort by, and the same key in Spark SQL.

NaN is the greatest float, text is by code points, intervals compare with months of 30 days and days of 24 hours, and
arrays by element, in which NULL is the greatest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from everview.compute.functions.json_value import json_order, parse
from everview.compute.functions.spark_sql import NotOnSpark
from everview.compute.ir.types import Interval, Kind, SqlType, element_of

_DAY_MICROS = 86_400_000_000


def interval_micros(value: Interval) -> int:
    """The length of an interval for comparisons."""
    return (value.months * 30 + value.days) * _DAY_MICROS + value.micros


def sort_key(sql_type: SqlType) -> Callable[[Any], Any]:
    """The sort key of a value that is not NULL: Python orders the keys as PostgreSQL orders the values."""
    if sql_type.kind is Kind.ARRAY:
        inner = sort_key(element_of(sql_type))
        return lambda value: tuple((True, ()) if each is None else (False, inner(each)) for each in value)
    if sql_type.kind in (Kind.FLOAT4, Kind.FLOAT8):
        return lambda value: (True, 0.0) if math.isnan(value) else (False, value)
    if sql_type.kind is Kind.INTERVAL:
        return interval_micros
    if sql_type.kind is Kind.JSONB:
        return lambda value: json_order(parse(value))
    return lambda value: value


def spark_sort_key(sql_type: SqlType, value: str, depth: int = 0) -> str:
    """The sort key in Spark SQL; NULL stays NULL. jsonb raises NotOnSpark."""
    if sql_type.kind is Kind.ARRAY:
        if element_of(sql_type).kind is Kind.JSONB:
            raise NotOnSpark("the order of jsonb[]")
        name = f"o{depth}"
        inner = spark_sort_key(element_of(sql_type), name, depth + 1)
        return f"transform({value}, {name} -> struct({name} IS NULL, {inner}))"
    if sql_type.kind is Kind.INTERVAL:
        return spark_interval_micros(value)
    if sql_type.kind is Kind.JSONB:
        raise NotOnSpark("the order of jsonb")
    return value


def spark_equality_key(sql_type: SqlType, value: str) -> str:
    """The key that is equal in Spark where PostgreSQL finds the values equal."""
    if sql_type.kind is Kind.JSONB:
        return value
    if sql_type.kind is Kind.ARRAY and sql_type.element is not None and sql_type.element.kind is Kind.JSONB:
        return value
    return spark_sort_key(sql_type, value)


def spark_interval_micros(value: str) -> str:
    """`interval_micros` in Spark SQL: a decimal, since a bigint cannot hold every length."""
    days = f"(cast({value}.months as decimal(38,0)) * 30 + {value}.days)"
    return f"cast({days} * 86400000000 + {value}.micros as decimal(38,0))"
