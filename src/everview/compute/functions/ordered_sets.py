"""Aggregates over the sorted values of a group: percentile_cont, percentile_disc and mode, WITHIN GROUP (ORDER BY …).

In the registry the values are the last argument, after the fraction, and the order is part of the name: SQL has no
other way to call them, and nobody can write such a name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from everview.compute.functions.contract import GroupRows
from everview.compute.functions.naming import CHAR, ORDERED
from everview.compute.functions.order import sort_key, spark_sort_key
from everview.compute.functions.signatures import Aggregates
from everview.compute.functions.spark_sql import let
from everview.compute.ir.types import FLOAT8, JSONB, SqlType

AGGREGATES = Aggregates()
NAMES = ("percentile_cont", "percentile_disc", "mode")


def registered_name(name: str, *, descending: bool) -> str:
    """The name of the aggregate in the registry, by the order of its values."""
    return f"{name} within group{' desc' if descending else ''}"


def _sorted_sql(args: Sequence[str], types: Sequence[SqlType], descending: bool) -> str:
    """The values of the group in order, without NULLs; an empty array if the fraction is NULL."""
    there = " AND ".join(f"{arg} IS NOT NULL" for arg in args)
    pair = f"named_struct('k', {spark_sort_key(types[-1], args[-1])}, 'v', {args[-1]})"
    pairs = f"array_sort(collect_list(CASE WHEN {there} THEN {pair} END))"
    return f"transform({f'reverse({pairs})' if descending else pairs}, p -> p.v)"


def _fraction(rows: GroupRows) -> float | None:
    """The fraction, which is the same in all rows; None unless it is between 0 and 1, which SQL checks before."""
    found = max((fraction for fraction, _ in rows), key=sort_key(FLOAT8), default=None)
    return found if found is not None and 0 <= found <= 1 else None


def _fraction_sql(args: Sequence[str]) -> str:
    return f"max(CASE WHEN {args[1]} IS NOT NULL THEN {args[0]} END)"


_SOUND = "size(v.a) > 0 AND v.b BETWEEN 0 AND 1"


def _continuous(*, descending: bool) -> None:
    """Interpolate between the two values next to the fraction's place."""

    def evaluate(_: SqlType, rows: GroupRows) -> Any:
        fraction = _fraction(rows)
        if fraction is None:
            return None
        values = sorted((value for _, value in rows), key=sort_key(FLOAT8), reverse=descending)
        place = fraction * (len(values) - 1)
        low, high = values[math.floor(place)], values[math.ceil(place)]
        return low if math.floor(place) == math.ceil(place) else low + (place - math.floor(place)) * (high - low)

    def rendered(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
        low, high = "v.a[cast(floor(w.a) as int)]", "v.a[cast(ceil(w.a) as int)]"
        between = f"CASE WHEN floor(w.a) = ceil(w.a) THEN {low} ELSE {low} + (w.a - floor(w.a)) * ({high} - {low}) END"
        inner = let(between, "v.b * (size(v.a) - 1)", name="w")
        return let(f"CASE WHEN {_SOUND} THEN {inner} END", _sorted_sql(args, types, descending), _fraction_sql(args))

    name = registered_name("percentile_cont", descending=descending)
    AGGREGATES.define(f"{name}(float8, float8) -> float8", evaluate, rendered)


def _discrete(of: SqlType, *, descending: bool) -> None:
    """The first value at or after the fraction's place."""
    key = sort_key(of)

    def evaluate(_: SqlType, rows: GroupRows) -> Any:
        fraction = _fraction(rows)
        if fraction is None:
            return None
        values = sorted((value for _, value in rows), key=key, reverse=descending)
        return values[max(math.ceil(fraction * len(values)), 1) - 1]

    def rendered(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
        place = "greatest(cast(ceil(v.b * size(v.a)) as int), 1)"
        body = f"CASE WHEN {_SOUND} THEN element_at(v.a, {place}) END"
        return let(body, _sorted_sql(args, types, descending), _fraction_sql(args))

    name = registered_name("percentile_disc", descending=descending)
    AGGREGATES.define(f"{name}(float8, T)", evaluate, rendered, result=lambda types: types[1], T=of)


def _most_frequent(of: SqlType, *, descending: bool) -> None:
    """The most frequent value; of several, the first in order."""
    key = sort_key(of)

    def evaluate(_: SqlType, rows: GroupRows) -> Any:
        if not rows:
            return None
        values = sorted((value for (value,) in rows), key=key, reverse=descending)
        counts = Counter(map(key, values))
        return max(values, key=lambda value: counts[key(value)])  # of equals the first

    def rendered(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
        # Runs of equal keys in the sorted array: a longer one than any before wins.
        start = "named_struct('k', x.a[0].k, 'n', 0, 'best', 0, 'v', x.a[0].v)"
        same = "CASE WHEN e.k <=> s.k THEN s.n + 1 ELSE 1 END"
        step = (
            f"named_struct('k', e.k, 'n', {same}, 'best', greatest(s.best, {same}),"
            f" 'v', CASE WHEN {same} > s.best THEN e.v ELSE s.v END)"
        )
        pair = f"named_struct('k', {spark_sort_key(types[0], args[0])}, 'v', {args[0]})"
        pairs = f"array_sort(collect_list(CASE WHEN {args[0]} IS NOT NULL THEN {pair} END))"
        ordered = f"reverse({pairs})" if descending else pairs
        return let(f"CASE WHEN size(x.a) > 0 THEN aggregate(x.a, {start}, (s, e) -> {step}).v END", ordered, name="x")

    AGGREGATES.define(f"{registered_name('mode', descending=descending)}(T) -> $1", evaluate, rendered, T=of)


for _descending in (False, True):
    _continuous(descending=_descending)
    for _of in ORDERED:
        if _of not in (JSONB, CHAR):
            _discrete(_of, descending=_descending)
            _most_frequent(_of, descending=_descending)
