"""Reduce in Spark SQL: what keys and aggregates read as columns, consolidated if need be, then one GROUP BY.

Accumulate is one too: the amounts of each key and time added up, then running totals over the times.
"""

from __future__ import annotations

from dataclasses import replace

from everview.compute.engine.spark.aggregate import Needs, Use, over_copies, over_rows, over_sums
from everview.compute.engine.spark.rows import consolidated, unfolded
from everview.compute.engine.spark.scalar import column, columns, render_scalar
from everview.compute.functions.spark_sql import spark_type
from everview.compute.ir.relation import Accumulate, Aggregate, Reduce, types
from everview.compute.ir.types import Kind, SqlType


class Columns:
    """Expressions that are computed as columns, each once."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[str, str] = {}

    def add(self, expression: str) -> str:
        """The name of the column that holds it."""
        return self._names.setdefault(expression, f"{self._prefix}{len(self._names)}")

    @property
    def names(self) -> list[str]:
        return list(self._names.values())

    @property
    def items(self) -> list[str]:
        """All of them for a SELECT."""
        return [f"{expression} AS {name}" for expression, name in self._names.items()]


def render_reduce(reduce: Reduce, source: str, *, plain: bool) -> str:
    """One row for each group; `plain`: the source is consolidated, so that DISTINCT and the like may count on it."""
    keys = [f"k{place}" for place in range(len(reduce.keys))]
    values = Columns("x")
    uses = [_use(each, values) for each in reduce.aggregates]
    needs = max((use.needs for use in uses), default=Needs.SUMS)
    heads = [f"{render_scalar(key)} AS {name}" for key, name in zip(reduce.keys, keys, strict=True)]
    rows = f"(\nSELECT {', '.join([*heads, *values.items, '_diff'])} FROM {source}\n)"
    if needs >= Needs.ROWS and not plain:
        rows = f"(\n{consolidated(rows, [*keys, *values.names], '> 0')}\n)"
    if needs is Needs.COPIES:
        rows = f"(\n{unfolded(rows, [*keys, *values.names])}\n)"
    firsts = Columns("u")
    uses = [_distinct(use, keys, firsts) for use in uses]
    if firsts.names:
        rows = f"(\nSELECT *, {', '.join(firsts.items)} FROM {rows}\n)"
    items = [f"{key} AS {column(place)}" for place, key in enumerate(keys)]
    items += [f"{_render(use)} AS {column(len(keys) + place)}" for place, use in enumerate(uses)]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*items, '1L AS _diff'])} FROM {rows}{by} HAVING sum(_diff) > 0"


def _use(aggregate: Aggregate, values: Columns) -> Use:
    takes = None
    if aggregate.filter is not None:
        takes = values.add(f"({render_scalar(aggregate.filter)}) IS TRUE")
    condition = None if aggregate.filter is None else render_scalar(aggregate.filter)

    def read(expression: str) -> str:
        return values.add(f"CASE WHEN {condition} THEN {expression} END" if condition else expression)

    return Use(
        aggregate.function,
        tuple(read(render_scalar(arg)) for arg in aggregate.args),
        tuple(arg.type for arg in aggregate.args),
        aggregate.type,
        aggregate.distinct,
        takes,
        aggregate.order,
        tuple(values.add(render_scalar(each.scalar)) for each in aggregate.order),
    )


def _distinct(use: Use, keys: list[str], firsts: Columns) -> Use:
    """A distinct aggregate over the first row of each value, unless it can do without."""
    if not use.distinct or use.idempotent or not use.args:
        return use
    by = ", ".join([*keys, *use.args, *([use.takes] if use.takes else [])])
    first = firsts.add(f"row_number() OVER (PARTITION BY {by} ORDER BY _diff) = 1")
    takes = f"{use.takes} AND {first}" if use.takes else first
    return replace(use, args=tuple(f"(CASE WHEN {first} THEN {arg} END)" for arg in use.args), takes=takes)


def _render(use: Use) -> str:
    if use.needs is Needs.SUMS:
        return over_sums(use)
    return over_rows(use) if use.needs is Needs.ROWS else over_copies(use)


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
