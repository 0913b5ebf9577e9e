"""A partition of a window: its rows in order, which of them are peers, and the frame of each.

A frame is a list of positions. Offsets are relative to the current row along the order: negative before it, positive
behind. For rows they count rows, for groups they count groups of peers, and for range they are added to the value of
the one sort key, or subtracted if it is descending; a NULL is its own bound, and lies where NULLs are sorted.
"""

from __future__ import annotations

import calendar
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from everview.compute.functions.contract import Failure
from everview.compute.interpreter.ordering import order_key
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.relation import Frame, Order
from everview.compute.ir.types import Interval, Kind, SqlType
from everview.compute.rows.collection import Row


@dataclass(frozen=True, slots=True)
class Partition:
    """Rows in order. `group[i]` is the number of row i's group of peers, `starts[g]` where group g begins."""

    rows: Sequence[Row]
    keys: Sequence[Row]
    group: Sequence[int]
    starts: Sequence[int]
    order: Sequence[Order]

    def peers(self, position: int) -> range:
        """The positions of the row's peers, itself included."""
        return self.group_range(self.group[position])

    def group_range(self, group: int) -> range:
        end = self.starts[group + 1] if group + 1 < len(self.starts) else len(self.rows)
        return range(self.starts[group], end)


def make_partition(rows: Sequence[Row], keys: Sequence[Row], order: Sequence[Order]) -> Partition:
    """A partition of rows that are in order already, with the values that they are sorted by."""
    group: list[int] = []
    starts: list[int] = []
    for position, key in enumerate(keys):
        if position == 0 or key != keys[position - 1]:
            starts.append(position)
        group.append(len(starts) - 1)
    return Partition(rows, keys, group, starts, order)


def compile_frame(frame: Frame, partition: Partition) -> Callable[[int], Sequence[int]]:
    """The positions that are in the frame of the row at a position."""
    match frame.unit:
        case "rows":
            bounds = _rows_bounds(frame, partition)
        case "groups":
            bounds = _groups_bounds(frame, partition)
        case _:
            bounds = _range_bounds(frame, partition)
    if frame.exclude is None:
        return bounds

    def within(position: int) -> Sequence[int]:
        left_out: set[int] = {position} if frame.exclude == "current row" else set(partition.peers(position))
        if frame.exclude == "ties":
            left_out.discard(position)
        return [each for each in bounds(position) if each not in left_out]

    return within


def _rows_bounds(frame: Frame, partition: Partition) -> Callable[[int], range]:
    count = len(partition.rows)

    def bounds(position: int) -> range:
        start = 0 if frame.start is None else max(position + frame.start, 0)
        end = count if frame.end is None else min(position + frame.end + 1, count)
        return range(start, max(start, end))

    return bounds


def _groups_bounds(frame: Frame, partition: Partition) -> Callable[[int], range]:
    count, starts = len(partition.rows), partition.starts

    def edge(group: int) -> int:
        return 0 if group < 0 else starts[group] if group < len(starts) else count

    def bounds(position: int) -> range:
        group = partition.group[position]
        start = 0 if frame.start is None else edge(group + frame.start)
        end = count if frame.end is None else edge(group + frame.end + 1)
        return range(start, max(start, end))

    return bounds


def _range_bounds(frame: Frame, partition: Partition) -> Callable[[int], range]:
    if _is_current(frame.start) and _is_current(frame.end):
        return _groups_bounds(Frame("groups", frame.start, frame.end), partition)
    (order,) = partition.order
    level = _level(order)
    levels = [level(_as_moment(key[0])) for key in partition.keys]
    count = len(levels)

    def bounds(position: int) -> range:
        start, end = 0, count
        if _is_current(frame.start):
            start = 0 if frame.start is None else partition.peers(position).start
        else:
            start = bisect_left(levels, levels_of(position, frame.start))
        if _is_current(frame.end):
            end = count if frame.end is None else partition.peers(position).stop
        else:
            end = bisect_right(levels, levels_of(position, frame.end))
        return range(start, max(start, end))

    def levels_of(position: int, offset: Any) -> Any:
        return level(_moved(partition.keys[position][0], offset, order))

    return bounds


def _is_current(bound: Any) -> bool:
    """Whether a bound is unbounded or the current row, which need no arithmetic."""
    return bound is None or (isinstance(bound, int) and bound == 0)


class _Reversed:
    """A key that compares the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.key < self.key)


def _level(order: Order) -> Callable[[Any], Any]:
    """A key under which the rows of the partition ascend."""
    sql_type = order.scalar.type
    if sql_type.kind is Kind.DATE:
        sql_type = SqlType(Kind.TIMESTAMP)
    key = order_key(sql_type, nulls_first=order.nulls_first != order.descending)
    return (lambda value: _Reversed(key(value))) if order.descending else key


def _moved(value: Any, offset: Any, order: Order) -> Any:
    if value is None or isinstance(value, Infinite):
        return value
    if isinstance(offset, Interval):
        return add_interval(_as_moment(value), Interval(*[-part for part in offset]) if order.descending else offset)
    if isinstance(value, float) != isinstance(offset, float):
        offset = float(offset) if isinstance(value, float) else Decimal(offset)
    return value - offset if order.descending else value + offset


def _as_moment(value: Any) -> Any:
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value


def add_interval(value: Any, offset: Interval) -> Any:
    """A timestamp, interval or time of the day with an interval added: months, then days, then microseconds."""
    if isinstance(value, Interval):
        return Interval(*[one + other for one, other in zip(value, offset, strict=True)])
    if isinstance(value, int):  # a time of the day: outside of the day it is a bound that nothing reaches
        return value + offset.micros
    year, month = divmod(value.year * 12 + value.month - 1 + offset.months, 12)
    try:
        day = min(value.day, calendar.monthrange(year, month + 1)[1])
        moved: datetime = value.replace(year=year, month=month + 1, day=day)
        return moved + timedelta(days=offset.days, microseconds=offset.micros)
    except (ValueError, OverflowError, calendar.IllegalMonthError):
        raise Failure("22008", "timestamp out of range") from None
