"""Every function, operator, cast and aggregate, by key and by name."""

from __future__ import annotations

from collections import defaultdict

from everview.compute.functions import (
    aggregates,
    arithmetic,
    arrays,
    bounds,
    byte_strings,
    casts,
    comparison,
    date_patterns,
    dates,
    encodings,
    fields,
    formatting,
    internal,
    intervals,
    jsonb,
    jsonb_edits,
    listing,
    mathematics,
    moments,
    number_formatting,
    ordered_sets,
    patterns,
    periods,
    regex_places,
    regression,
    table,
    temporal,
    text,
    time_sets,
    trigonometry,
    whole_numbers,
    windows,
)
from everview.compute.functions.contract import AggregateFunction, Function
from everview.compute.functions.exact_floats import TOTAL_OF_BINS
from everview.compute.functions.table import TableFunction
from everview.compute.functions.windows import WindowOnly

_FAMILIES = (
    arithmetic,
    mathematics,
    trigonometry,
    whole_numbers,
    comparison,
    text,
    byte_strings,
    encodings,
    patterns,
    regex_places,
    intervals,
    dates,
    fields,
    date_patterns,
    formatting,
    number_formatting,
    periods,
    jsonb,
    jsonb_edits,
    arrays,
    casts,
    internal,
    temporal,
    bounds,
    time_sets,
    moments,
)


def _keyed(functions: list[Function]) -> dict[str, Function]:
    keyed: dict[str, Function] = {}
    for function in functions:
        assert function.key not in keyed, function.key
        keyed[function.key] = function
    return keyed


FUNCTIONS: dict[str, Function] = _keyed([function for family in _FAMILIES for function in family.FUNCTIONS])
AGGREGATES: dict[str, AggregateFunction] = {
    each.key: each for family in (aggregates, regression, listing, ordered_sets) for each in family.AGGREGATES
}
TABLES: dict[str, TableFunction] = {each.key: each for each in (*table.TABLES, *internal.TABLES, *time_sets.TABLES)}
WINDOWS: dict[str, WindowOnly] = {each.key: each for each in windows.WINDOWS}

_BY_NAME: dict[str, list[Function]] = defaultdict(list)
for _function in FUNCTIONS.values():
    _BY_NAME[_function.name].append(_function)
_AGGREGATES_BY_NAME: dict[str, list[AggregateFunction]] = defaultdict(list)
for _aggregate in AGGREGATES.values():
    _AGGREGATES_BY_NAME[_aggregate.name].append(_aggregate)
# What plans use for aggregates that may fail, and SQL has no names for.
_FAILING = (*(_each for _each in AGGREGATES.values() if _each.unfit is not None), TOTAL_OF_BINS)
TRIED_AGGREGATES: dict[str, AggregateFunction] = {_each.tried.key: _each.tried for _each in _FAILING}
_TABLES_BY_NAME: dict[str, list[TableFunction]] = defaultdict(list)
for _table in TABLES.values():
    _TABLES_BY_NAME[_table.name].append(_table)
# These have no names of their own: FROM says it behind the call.
TABLES |= {_each.key: _each for _each in map(table.with_ordinality, list(TABLES.values()))}
_WINDOWS_BY_NAME: dict[str, list[WindowOnly]] = defaultdict(list)
for _window in WINDOWS.values():
    _WINDOWS_BY_NAME[_window.name].append(_window)


def register(function: Function) -> None:
    """Add a function of a layer above, when its module is imported. SQL does not find it by its name."""
    assert function.key not in FUNCTIONS, function.key
    FUNCTIONS[function.key] = function


def by_name(name: str) -> list[Function]:
    """The overloads of a scalar function or operator."""
    return _BY_NAME.get(name, [])


def aggregates_by_name(name: str) -> list[AggregateFunction]:
    """The overloads of an aggregate."""
    return _AGGREGATES_BY_NAME.get(name, [])


def tables_by_name(name: str) -> list[TableFunction]:
    """The overloads of a table function."""
    return _TABLES_BY_NAME.get(name, [])


def windows_by_name(name: str) -> list[WindowOnly]:
    """The overloads of a function that exists only over a window."""
    return _WINDOWS_BY_NAME.get(name, [])


def names() -> list[str]:
    """Every name that a call may have, operators left out: what "did you mean" chooses from."""
    everything = {*_BY_NAME, *_AGGREGATES_BY_NAME, *_TABLES_BY_NAME, *_WINDOWS_BY_NAME}
    return sorted(name for name in everything if name.isidentifier() and name not in ("cast", "assign"))
