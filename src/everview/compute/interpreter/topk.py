"""TopK: of each group, sorted by the order and ties by the whole row, the copies from `offset` on up to `limit`."""

from __future__ import annotations

from everview.compute.functions.contract import Failure
from everview.compute.interpreter import limits
from everview.compute.interpreter.ordering import compile_order, row_order_key, sort_by
from everview.compute.interpreter.scalars import compile_columns
from everview.compute.ir.relation import TopK, types
from everview.compute.rows.collection import NegativeMultiplicity, Result, Row, Rows, add_failure


def evaluate_topk(topk: TopK, below: Result) -> Result:
    group_of, keys_of = compile_columns(topk.group), compile_order(topk.order)
    errors = dict(below.errors)
    groups: dict[Row, list[tuple[Row, Row, int]]] = {}
    for row, multiplicity in limits.paced(below.rows.items()):
        if multiplicity < 0:
            raise NegativeMultiplicity("TopK", row, multiplicity)
        try:
            groups.setdefault(group_of(row), []).append((keys_of(row), row, multiplicity))
        except Failure as failure:
            add_failure(errors, failure, multiplicity)
    row_key = row_order_key(types(topk.input))
    rows: Rows = {}
    for items in groups.values():
        limits.sort(items, lambda item: row_key(item[1]))
        sort_by(items, topk.order, lambda item: item[0])
        rows.update(_kept(items, topk.offset, topk.limit))
    return Result(rows, errors)


def _kept(items: list[tuple[Row, Row, int]], offset: int, limit: int | None) -> Rows:
    rows: Rows = {}
    position = 0
    for _, row, multiplicity in items:
        end = position + multiplicity
        last = end if limit is None else min(end, offset + limit)
        kept = last - max(position, offset)
        if kept > 0:
            rows[row] = kept
        position = end
    return rows
