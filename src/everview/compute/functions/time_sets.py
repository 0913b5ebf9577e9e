"""Sets of times, as temporal filters have them: the times at which they begin and end, in order, as an array.

`[a, b, c]` are the times from a, before b, and from c on. No set has times below zero, and none ends at the last of all
times, which never comes. None of the functions fails; over NULL they are NULL. SQL has no names for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from everview.compute.functions.calendar import DAY, civil, days_of, month_length
from everview.compute.functions.naming import base, key_of
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import let, let_arguments
from everview.compute.functions.table import Tables
from everview.compute.functions.temporal import TIME_MAX, TIME_MIN
from everview.compute.functions.temporal_bounds import limited
from everview.compute.ir.scalar import Call, Literal, Scalar
from everview.compute.ir.types import INT8, Interval, SqlType, array_of

FUNCTIONS = Family()
TABLES = Tables()
define = FUNCTIONS.define

TIMES = array_of(INT8)
ALWAYS, NEVER = Literal([0], TIMES), Literal([], TIMES)
INTERVALS = "intervals"
_MAX_SQL = "9223372036854775807L"
_NEVER_SQL = "cast(array() as array<bigint>)"


def _between(start: int, end: int) -> list[int]:
    start = max(start, 0)
    if start >= end:
        return []
    return [start] if end == TIME_MAX else [start, end]


_BETWEEN_SQL = let(
    f"CASE WHEN w.a < w.b THEN CASE WHEN w.b = {_MAX_SQL} THEN array(w.a) ELSE array(w.a, w.b) END"
    f" WHEN w.a >= w.b THEN {_NEVER_SQL} END",
    "CASE WHEN {0} < 0 THEN 0L ELSE {0} END",
    "{1}",
    name="w",
)


def _outside(times: list[int]) -> list[int]:
    return times[1:] if times[:1] == [0] else [0, *times]


_OUTSIDE_SQL = "CASE WHEN get(w.a, 0) = 0 THEN slice(w.a, 2, size(w.a)) ELSE concat(array(0L), w.a) END"


def _merged(least: Callable[[int], int]) -> Callable[..., list[int]]:
    """The set of the times that are in at least so many of the sets."""

    def evaluate(*sets: list[int]) -> list[int]:
        changes: dict[int, int] = {}
        for each in sets:
            for place, time in enumerate(each):
                changes[time] = changes.get(time, 0) + (-1 if place % 2 else 1)
        result: list[int] = []
        inside, wanted = 0, least(len(sets))
        for time in sorted(changes):
            inside += changes[time]
            if (inside >= wanted) != (len(result) % 2 == 1):
                result.append(time)
        return result

    return evaluate


def _merged_sql(quantor: str) -> str:
    """A time is in a set if the number of its ends up to that time is odd."""

    def inside(time: str) -> str:
        return f"{quantor}(w.a, s -> size(filter(s, x -> x <= {time})) % 2 = 1)"

    changes = f"filter(w.b, (p, i) -> {inside('p')} <> (i > 0 AND {inside('w.b[i - 1]')}))"
    merged = let(changes, "u.a", "array_sort(array_distinct(flatten(u.a)))", name="w")
    return let(f"CASE WHEN NOT exists(u.a, s -> s IS NULL) THEN {merged} END", "array({args})", name="u")


def moved_edges(least: int, span: Interval, sign: int) -> list[int]:
    """Where the moments begin and end that are not before `least` once they are moved by a span, its months first.

    Of days that a month does not have, it has the last one's clock instead: moved by a month, the 31st at ten comes
    before the 30th at noon. So these are several intervals, where a month that is longer than the other ends.
    """
    least -= sign * (span.days * DAY + span.micros)
    day, clock = divmod(least, DAY)
    year, month, of_month = civil(day)
    length = month_length(year, month)
    index = year * 12 + month - 1 - sign * span.months
    year, month = index // 12, index % 12 + 1
    own, first = month_length(year, month), days_of(year, month, 1)
    # On these days it counts from the clock on; what comes behind them, the next month at the latest, counts whole.
    last = own if of_month == length else min(of_month, own)
    edges: list[int] = []
    for each in range(of_month, last + 1):
        edges += [(first + each - 1) * DAY + clock, (first + each) * DAY]
    return edges[:-1] or [(first + last) * DAY]


def _moved_reaches(sign: int) -> Callable[[int, Interval], list[int]]:
    """The times that are not before `least` once they are moved by a span."""

    def evaluate(least: int, span: Interval) -> list[int]:
        if least in (TIME_MIN, TIME_MAX):
            return [0] if least == TIME_MIN else []
        return in_times(moved_edges(least, span, sign))

    return evaluate


def in_times(edges: Iterable[int]) -> list[int]:
    """Ends in microseconds as ends in milliseconds; two ends at one place cancel out."""
    result: list[int] = []
    for edge in edges:
        time = limited(max(-(-edge // 1000), 0))
        if result and result[-1] == time:
            result.pop()
        else:
            result.append(time)
    return result


def _intervals_sql(args: Sequence[str], _types: Sequence[SqlType], _columns: Sequence[SqlType]) -> str:
    pairs = (
        "transform(sequence(0, (size(w.a) - 1) div 2), i -> named_struct("
        f"'c0', w.a[cast(2 * i as int)], 'c1', coalesce(get(w.a, cast(2 * i + 1 as int)), {_MAX_SQL})))"
    )
    none = "cast(array() as array<struct<c0: bigint, c1: bigint>>)"
    return let(f"CASE WHEN size(w.a) > 0 THEN {pairs} ELSE {none} END", args[0], name="w")


_COMPARED: dict[str, Callable[[int], list[int]]] = {
    "eq": lambda time: _between(time, limited(time + 1)),
    "ne": lambda time: _outside(_between(time, limited(time + 1))),
    "lt": lambda time: _between(0, time),
    "le": lambda time: _between(0, limited(time + 1)),
    "gt": lambda time: _between(limited(time + 1), TIME_MAX),
    "ge": lambda time: _between(time, TIME_MAX),
}


def _compared(name: str, *, every: bool) -> Callable[[list[int | None]], list[int]]:
    """The times that compare so with any element, or with every one of them."""
    merged = _merged((lambda count: count) if every else (lambda _: 1))

    def evaluate(values: list[int | None]) -> list[int]:
        present = [_COMPARED[name](each) for each in values if each is not None]
        if every and len(present) < len(values):
            return []
        return merged(*present) if present else [0] if every else []

    return evaluate


define("times between(T, S) -> int8[]", _between, _BETWEEN_SQL, T="int8 mz_timestamp", S="int8 mz_timestamp")
define("times outside(int8[]) -> int8[]", _outside, let_arguments(_OUTSIDE_SQL, 1, "w"))
define("times of all(int8[]...) -> int8[]", _merged(lambda count: count), _merged_sql("forall"))
define("times of any(int8[]...) -> int8[]", _merged(lambda _: 1), _merged_sql("exists"))
define("times moved on(int8, interval) -> int8[]", _moved_reaches(1))
define("times moved back(int8, interval) -> int8[]", _moved_reaches(-1))
for _name in _COMPARED:
    define(f"times any {_name}(int8[]) -> int8[]", _compared(_name, every=False))
    define(f"times all {_name}(int8[]) -> int8[]", _compared(_name, every=True))
# Each interval of a set, from a time and before another.
_intervals = lambda _columns, times: list(zip(times[::2], [*times[1::2], TIME_MAX], strict=False))
TABLES.define(f"{INTERVALS}(int8[]) -> (int8, int8)", _intervals, _intervals_sql, names=())


def times(name: str, *args: Scalar) -> Scalar:
    """A function of this family by its name without "times", as "between", "outside", "of all" or "moved on"."""
    name = f"times {name}"
    if name in ("times of all", "times of any"):
        return args[0] if len(args) == 1 else Call(key_of(name, (TIMES,), variadic=True), args, TIMES)
    return Call(key_of(name, tuple(base(arg.type) for arg in args)), args, TIMES)
