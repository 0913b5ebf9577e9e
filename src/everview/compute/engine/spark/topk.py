"""TopK in Spark SQL: where each row's copies begin and end in the order of its group, and which of them are kept."""

from __future__ import annotations

from everview.compute.engine.spark.ordering import order_by, order_by_row
from everview.compute.engine.spark.scalar import column, columns, render_scalar
from everview.compute.ir.relation import TopK, types


def render_topk(topk: TopK, source: str) -> str:
    """The rows that are left of each group of a consolidated source."""
    names = columns(len(types(topk.input)))
    keys = [render_scalar(each.scalar) for each in topk.order]
    terms = [*order_by(topk.order, keys), *order_by_row(types(topk.input), names)] or ["1L"]
    by = f"PARTITION BY {', '.join(map(column, topk.group))} " if topk.group else ""
    frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    ends = f"sum(_diff) OVER ({by}ORDER BY {', '.join(terms)} {frame})"
    last = "stop" if topk.limit is None else f"least(stop, {topk.offset + topk.limit}L)"
    kept = f"{last} - greatest(stop - _diff, {topk.offset}L)"
    placed = f"SELECT {', '.join([*names, '_diff', f'{ends} AS stop'])} FROM {source}"
    return f"SELECT {', '.join([*names, f'{kept} AS _diff'])} FROM (\n{placed}\n) WHERE {kept} > 0"
