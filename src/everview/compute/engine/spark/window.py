"""Window and TopK in Spark SQL: the copies of each row numbered in the total order.

In a window `place` numbers the rows of a partition, and `peers` the groups of rows that the sort keys do not tell
apart. So a frame of rows is one over `place`, a frame of groups, or of a range without offsets, is a range of `peers`,
and only a range with offsets is over the sort key itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from everview.compute.engine.spark.aggregate import Use, over_copies
from everview.compute.engine.spark.literal import render_literal
from everview.compute.engine.spark.ordering import direction, order_by, order_by_row
from everview.compute.engine.spark.reduce import Columns
from everview.compute.engine.spark.rows import unfolded
from everview.compute.engine.spark.scalar import column, columns, render_scalar
from everview.compute.functions import lookup
from everview.compute.functions.contract import InOrder
from everview.compute.functions.list_aggregates import FINISH
from everview.compute.functions.spark_sql import NotOnSpark, infinity, micros_of
from everview.compute.interpreter.window_functions import window_function
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.relation import Frame, Order, TopK, Window, WindowFunction, types
from everview.compute.ir.scalar import Column, Literal, Scalar
from everview.compute.ir.types import INT8, Interval, Kind

# Spark's aggregates that renderings are made of.
_CALL = re.compile(
    r"\b(try_sum|sum|count|avg|(min|max)(_by)?|bool_(and|or)|bit_(and|or|xor)|first|collect_list"
    r"|(var|stddev)_(samp|pop))\("
)

_INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.TIME, Kind.MZ_TIMESTAMP)
_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
DAY_MICROS = 86_400_000_000


def render_window(window: Window, source: str, *, once: bool) -> str:
    """Each row of a consolidated source with the functions behind; `once`: no row of it occurs twice."""
    row = types(window.input)
    names = columns(len(row))
    copies = source if once else f"(\n{unfolded(source, names)}\n)"
    values = Columns("x")
    by = [values.add(render_scalar(each)) for each in window.partition]
    keys = [values.add(render_scalar(each.scalar)) for each in window.order]
    spec = _Spec(window, by, keys)
    running = Columns("y")  # values of rows that others take over
    functions = [_function(each, spec, values, running) for each in window.functions]
    read = f"(\nSELECT {', '.join([*names, *values.items]) or '1L AS one'} FROM {copies}\n)"
    terms = order_by(window.order, keys)
    total = ", ".join([*terms, *order_by_row(row, names)]) or "1L"
    peers = f"dense_rank() OVER ({spec.by}ORDER BY {', '.join(terms)})" if terms else "1"
    numbers = [f"row_number() OVER ({spec.by}ORDER BY {total}) AS place", f"{peers} AS peers"]
    placed = f"(\nSELECT {', '.join([*names, *values.names, *numbers])} FROM {read}\n)"
    if running.items:
        placed = f"(\nSELECT {', '.join([*names, *values.names, 'place', 'peers', *running.items])} FROM {placed}\n)"
    items = [f"{each} AS {column(len(names) + at)}" for at, each in enumerate(functions)]
    return f"SELECT {', '.join([*names, *items, '1L AS _diff'])} FROM {placed}"


@dataclass(frozen=True, slots=True)
class _Spec:
    """The window over columns: what it is divided and sorted by."""

    window: Window
    partition: list[str]
    keys: list[str]

    @property
    def by(self) -> str:
        return f"PARTITION BY {', '.join(self.partition)} " if self.partition else ""

    def over(self, frame: Frame) -> str:
        """The window with this frame; raises NotOnSpark."""
        if frame.exclude:
            raise NotOnSpark(f"a window frame with EXCLUDE {frame.exclude.upper()}")
        if frame.unit == "rows":
            return self._framed("place", "ROWS", *self._counts(frame))
        offsets = [each for each in (frame.start, frame.end) if each is not None and each != 0]
        if frame.unit == "groups" or not offsets:
            if not self.keys and not offsets:
                return f"OVER ({self.by.rstrip()})"
            return self._framed("peers", "RANGE", *self._counts(frame))
        return self._range(frame)

    def rows(self, end: str) -> str:
        """The rows of the partition from the first to this end, in their order."""
        return self._framed("place", "ROWS", "UNBOUNDED PRECEDING", end)

    def _framed(self, order: str, unit: str, start: str, end: str) -> str:
        return f"OVER ({self.by}ORDER BY {order} {unit} BETWEEN {start} AND {end})"

    def _counts(self, frame: Frame) -> tuple[str, str]:
        if frame.start is not None and frame.end is not None and frame.start > frame.end:
            raise NotOnSpark("a window frame that ends before it starts")
        return tuple(
            _bound(each, str(abs(each or 0)), first) for each, first in ((frame.start, True), (frame.end, False))
        )  # type: ignore[return-value]

    def _range(self, frame: Frame) -> str:
        (order,) = self.window.order
        sql_type, key = order.scalar.type, self.keys[0]
        if sql_type.kind in _INTEGERS:
            key = f"cast({key} as bigint)"
        elif sql_type.kind in _MOMENTS:
            # Infinities are so far away that no offset reaches them, and none goes beyond what a number can say.
            cases = (f"WHEN {infinity(sql_type, each)} THEN {each.micros // 2}L" for each in Infinite)
            key = f"CASE {key} {' '.join(cases)} ELSE {micros_of(key, sql_type)} END"
        elif sql_type.kind is Kind.INTERVAL:
            raise NotOnSpark("a range frame over intervals")

        def size(offset: Any) -> str:
            if isinstance(offset, Interval):
                return f"{abs(_micros(offset))}L"
            return render_literal(abs(offset), INT8 if sql_type.kind in _INTEGERS else sql_type)

        ends = []
        for each, first in ((frame.start, True), (frame.end, False)):
            sign = _micros(each) if isinstance(each, Interval) else each
            ends.append(_bound(sign, size(each) if sign else "", first))
        return self._framed(f"{key} {direction(order)}", "RANGE", *ends)


def _micros(offset: Interval) -> int:
    if offset.months:
        raise NotOnSpark("a range frame of months")
    return offset.days * DAY_MICROS + offset.micros


def _bound(sign: Any, size: str, first: bool) -> str:
    if sign is None:
        return f"UNBOUNDED {'PRECEDING' if first else 'FOLLOWING'}"
    return "CURRENT ROW" if sign == 0 else f"{size} {'PRECEDING' if sign < 0 else 'FOLLOWING'}"


def _function(each: WindowFunction, spec: _Spec, values: Columns, running: Columns) -> str:
    condition = None if each.filter is None else render_scalar(each.filter)

    def read(scalar: Scalar) -> str:
        expression = render_scalar(scalar)
        return values.add(f"CASE WHEN {condition} THEN {expression} END" if condition else expression)

    args = [read(arg) for arg in each.args]
    if window_function(each.function) is not None:
        return _proper(each, args, spec)
    takes = None if condition is None else values.add(f"({condition}) IS TRUE")
    in_order = lookup.aggregate(each.function).in_order
    if in_order is not None:
        return _in_order(in_order, args[0], each.frame, spec, running)
    use = Use(each.function, tuple(args), tuple(arg.type for arg in each.args), each.type, takes=takes)
    if use.function in FINISH:  # they list the rows as the window has them
        use = replace(use, order=(Order(Column(0, INT8)),), keys=("place",))
    return attach(over_copies(use), spec.over(each.frame))


def _in_order(in_order: InOrder, argument: str, frame: Frame, spec: _Spec, running: Columns) -> str:
    """An aggregate that takes the rows in their order, which a frame of peers says nothing of."""
    streamed = in_order.streamed.format(argument)
    over = spec.over(frame)
    if frame.unit == "rows":
        return attach(streamed, over)
    if frame.start is None and (frame.end is None or (frame.end == 0 and not spec.keys)):
        return attach(streamed, spec.rows("UNBOUNDED FOLLOWING"))
    if frame.start is None and frame.end == 0:  # up to the row, and of that what its last peer has
        name = running.add(attach(streamed, spec.rows("CURRENT ROW")))
        return f"max_by({name}, place) OVER (PARTITION BY {', '.join([*spec.partition, 'peers'])})"
    item = f"CASE WHEN {argument} IS NOT NULL THEN named_struct('n', place, 'v', cast({argument} as double)) END"
    return in_order.listed(f"transform(array_sort(collect_list({item}) {over}), e -> e.v)")


def _proper(each: WindowFunction, args: list[str], spec: _Spec) -> str:
    """A function that looks at where a row stands."""
    name = each.function.partition("(")[0]
    match name:
        case "row_number":
            return "cast(place as bigint)"
        case "dense_rank":
            return "cast(peers as bigint)"
        case "rank":
            return f"cast(rank() OVER ({spec.by}ORDER BY peers) as bigint)"
        case "percent_rank" | "cume_dist":
            return f"{name}() OVER ({spec.by}ORDER BY peers)"
        case "ntile":
            return f"ntile({_constant(each.args[0], name)}) OVER ({spec.by}ORDER BY place)"
        case "lag" | "lead":
            offset = _constant(each.args[1], name) if len(args) > 1 else "1"
            given = ", ".join([args[0], offset, *args[2:]])
            return f"{name}({given}) OVER ({spec.by}ORDER BY place)"
        case "nth_value":
            numbered = f"collect_list(named_struct('n', place, 'v', {args[0]})) {spec.over(each.frame)}"
            return f"get(array_sort({numbered}), {args[1]} - 1).v"
        case _:
            pick = "min_by" if name == "first_value" else "max_by"
            return f"{pick}({args[0]}, place) {spec.over(each.frame)}"


def _constant(scalar: Scalar, name: str) -> str:
    if not isinstance(scalar, Literal) or scalar.value is None:
        raise NotOnSpark(f"{name} with an argument that is not a constant")
    return str(scalar.value)


def attach(rendered: str, over: str) -> str:
    """The rendering of an aggregate over columns with a window behind each call of one of Spark's aggregates."""
    parts, start = [], 0
    for call in _CALL.finditer(rendered):
        if call.start() < start:
            continue
        depth, end = 1, call.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(rendered[end], 0)
            end += 1
        parts += [rendered[start:end], f" {over}"]
        start = end
    return "".join([*parts, rendered[start:]])


def render_topk(topk: TopK, source: str) -> str:
    """The rows that are left of each group of a consolidated source, by where their copies begin and end."""
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
