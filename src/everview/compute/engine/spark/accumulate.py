"""Accumulate in Spark SQL: the amounts of each key and time added up, then running totals over the times."""

from __future__ import annotations

from everview.compute.engine.spark.scalar import column, columns
from everview.compute.functions.spark_sql import spark_type
from everview.compute.ir.relation import Accumulate, types
from everview.compute.ir.types import Kind, SqlType


def render_accumulate(accumulate: Accumulate, source: str) -> str:
    """One row for each time and key."""
    row = types(accumulate.input)
    keys = columns(accumulate.keys, 1)
    amounts = range(accumulate.keys + 1, len(row))
    added = [f"{_weighted(column(index), row[index])} AS a{index}" for index in amounts]
    by = ", ".join(["c0", *keys])
    sums = f"SELECT {', '.join(['c0', *keys, *added])} FROM {source} GROUP BY {by}"
    within = f"PARTITION BY {', '.join(keys)} " if keys else ""
    window = f"({within}ORDER BY c0)"
    items = ["c0 AS c0", f"lead(c0) OVER {window} AS c1"]
    items += [f"{key} AS {column(place + 2)}" for place, key in enumerate(keys)]
    items += [
        f"cast(sum(a{index}) OVER {window} as {spark_type(row[index])}) AS {column(index + 1)}" for index in amounts
    ]
    return f"SELECT {', '.join([*items, '1L AS _diff'])} FROM (\n{sums}\n)"


def _weighted(amount: str, sql_type: SqlType) -> str:
    if sql_type.kind is Kind.INT8:
        return f"sum({amount} * _diff)"
    return f"cast(sum({amount} * cast(_diff as decimal(19,0))) as {spark_type(sql_type)})"
