"""Every function, operator, cast and aggregate, by key and by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from everview.compute.functions import (
    aggregates,
    arithmetic,
    arrays,
    byte_strings,
    casts,
    comparison,
    date_fields,
    date_formatting,
    date_parsing,
    dates,
    intervals,
    jsonb,
    list_aggregates,
    mathematics,
    number_formatting,
    ordered_sets,
    patterns,
    plan_functions,
    regression,
    table,
    temporal,
    temporal_bounds,
    temporal_floats,
    temporal_inverses,
    text,
    time_sets,
    trigonometry,
    whole_numbers,
)
from everview.compute.functions.contract import AggregateFunction, Function, ResultType
from everview.compute.functions.exact_floats import TOTAL_OF_BINS
from everview.compute.functions.signatures import signatures
from everview.compute.functions.table import TableFunction
from everview.compute.ir.types import SqlType

_FAMILIES = (
    *(arithmetic, mathematics, trigonometry, whole_numbers, comparison, text, byte_strings, patterns),
    *(intervals, dates, date_fields, date_formatting, date_parsing, number_formatting, jsonb, arrays),
    *(casts, plan_functions, temporal, temporal_bounds, time_sets, temporal_inverses, temporal_floats),
)


@dataclass(frozen=True, slots=True)
class WindowOnly:
    """One overload of a function that exists only over a window, which engines evaluate.

    `frame` says whether it looks at the frame (first_value) or at the whole partition (rank).
    """

    key: str
    name: str
    args: tuple[SqlType, ...]
    result: ResultType
    frame: bool = False


def _keyed(functions: list[Function]) -> dict[str, Function]:
    keyed: dict[str, Function] = {}
    for function in functions:
        assert function.key not in keyed, function.key
        keyed[function.key] = function
    return keyed


FUNCTIONS: dict[str, Function] = _keyed([function for family in _FAMILIES for function in family.FUNCTIONS])
AGGREGATES: dict[str, AggregateFunction] = {
    each.key: each for family in (aggregates, regression, list_aggregates, ordered_sets) for each in family.AGGREGATES
}
TABLES: dict[str, TableFunction] = {
    each.key: each for each in (*table.TABLES, *plan_functions.TABLES, *time_sets.TABLES)
}
_PARTITION = ("row_number, rank, dense_rank() -> int8", "percent_rank, cume_dist() -> float8", "ntile(int4) -> int4")
_FRAME = ("first_value, last_value(any) -> $1", "nth_value(any, int4) -> $1")
WINDOWS: dict[str, WindowOnly] = {
    each.key: WindowOnly(each.key, each.name, each.args, each.results[0], frame=text in _FRAME)
    for text in (*_PARTITION, "lag, lead(any [, int4 [, any]]) -> $1", *_FRAME)
    for each in signatures(text)
}

_Entry = Function | AggregateFunction | TableFunction | WindowOnly
_Overload = TypeVar("_Overload", Function, AggregateFunction, TableFunction, WindowOnly)


def _by_name(entries: Iterable[_Overload]) -> Callable[[str], list[_Overload]]:
    """A function that gives the overloads of a name."""
    found: dict[str, list[_Overload]] = defaultdict(list)
    for each in entries:
        found[each.name].append(each)
    return lambda name: found.get(name, [])


by_name, aggregates_by_name = _by_name(FUNCTIONS.values()), _by_name(AGGREGATES.values())
tables_by_name, windows_by_name = _by_name(TABLES.values()), _by_name(WINDOWS.values())
# Every name that a call may have, operators left out: what "did you mean" chooses from.
_ENTRIES: list[_Entry] = [*FUNCTIONS.values(), *AGGREGATES.values(), *TABLES.values(), *WINDOWS.values()]
NAMES = sorted({each.name for each in _ENTRIES if each.name.isidentifier()} - {"cast", "assign"})
# What plans use for aggregates that may fail, and SQL has no names for.
_FAILING = (*(_each for _each in AGGREGATES.values() if _each.unfit is not None), TOTAL_OF_BINS)
TRIED_AGGREGATES: dict[str, AggregateFunction] = {_each.tried.key: _each.tried for _each in _FAILING}
# These have no names of their own: FROM says it behind the call.
TABLES |= {_each.key: _each for _each in map(table.with_ordinality, list(TABLES.values()))}


def register(function: Function) -> None:
    """Add a function of a layer above, when its module is imported. SQL does not find it by its name."""
    assert function.key not in FUNCTIONS, function.key
    FUNCTIONS[function.key] = function
