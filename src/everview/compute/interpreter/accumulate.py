"""Accumulate: the totals of each key at each of its times."""

from __future__ import annotations

from decimal import localcontext
from typing import Any

from everview.compute.functions.numbers import EXACT
from everview.compute.ir.relation import Accumulate, types
from everview.compute.rows.collection import Result, Row, Rows, canonical_row


def evaluate_accumulate(accumulate: Accumulate, below: Result) -> Result:
    with localcontext(EXACT):
        return Result(_totals(accumulate, below.rows), below.errors)


def _totals(accumulate: Accumulate, below: Rows) -> Rows:
    keys, settle = accumulate.keys, canonical_row(types(accumulate))
    amounts: dict[Row, dict[Any, list[Any]]] = {}
    for row, multiplicity in below.items():
        times = amounts.setdefault(row[1 : keys + 1], {})
        added = [multiplicity * amount for amount in row[keys + 1 :]]
        known = times.get(row[0])
        times[row[0]] = added if known is None else [one + other for one, other in zip(known, added, strict=True)]
    rows: Rows = {}
    for key, times in amounts.items():
        order = sorted(times)
        totals: list[Any] = [0] * len(times[order[0]])
        for time, following in zip(order, [*order[1:], None], strict=True):
            totals = [total + amount for total, amount in zip(totals, times[time], strict=True)]
            rows[settle((time, following, *key, *totals))] = 1
    return rows
