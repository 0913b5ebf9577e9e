"""Versions of a materialized view: which columns may follow which, who would be in the way, and what is remembered.

All versions are on one shard, whose columns only ever become more. A new definition has the columns of the one before,
and may have more behind them. It may also go back to the columns of an earlier version, if nobody needs the others: on
the shard these stay, and are NULL. A new column never takes the place of one that is gone, so history never shows the
values of another column. One that comes back, with the same name and type, gets its place back, and its past. One whose
type becomes wider gets a new place too, and is read from where it was at times before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from everview.adapter.catalog.items import ColumnInfo, Item, MaterializedView, Version, places_of
from everview.adapter.catalog.state import Catalog
from everview.adapter.errors import DEPENDENT_OBJECTS
from everview.compute.functions.precision import PRECISE
from everview.compute.ir.types import Kind, SqlType
from everview.compute.sql.errors import SqlError

VERSIONS_KEPT_MAX = 32  # but for those whose columns someone knows the view by
LISTED_MAX = 100

ColumnsRead = Callable[[Item, Item], set[int]]  # which columns an item needs of a view that it names


def check_columns(
    catalog: Catalog, target: MaterializedView, name: str, columns: Sequence[ColumnInfo], columns_read: ColumnsRead
) -> None:
    """Raise unless a definition with these columns can follow the target's, with one line for each difference."""
    goes_back = any(_shape(each.columns) == _shape(columns) for each in target.history)
    lines = [] if goes_back else _changed(target, name, columns)
    if not target.columns:
        lines += [f'column "{each.name}" is new in "{name}", and "{target.name}" has no columns' for each in columns]
    if lines:
        message = f'schema of replacement "{name}" differs from that of "{target.name}"'
        hint = "the columns must be the same, in the same order, with the same names and types or wider ones; new ones"
        raise SqlError("42P16", message, detail="\n".join(lines), hint=f"{hint} may follow")
    kept = _shape(columns)
    gone = {
        place: each
        for each, place in zip(target.columns, target.places, strict=True)
        if (each.name, each.type) not in kept
    }
    if gone:
        lacks = {each.name for each in gone.values()}.isdisjoint(each.name for each in columns)
        does = "lacks" if lacks else "changes the types of"
        lines = _uses(catalog, target, gone, columns_read)
        if lines:
            names = ", ".join(f'"{each.name}"' for each in gone.values())
            message = f'replacement "{name}" {does} columns of "{target.name}" that others use'
            hint = f"drop what uses {names}, or let it do without"
            raise SqlError(DEPENDENT_OBJECTS, message, detail="\n".join(lines[:LISTED_MAX]), hint=hint)


def placed(
    target: MaterializedView, columns: Sequence[ColumnInfo]
) -> tuple[tuple[ColumnInfo, ...], tuple[SqlType, ...]]:
    """The columns of a definition that is to follow the target's with their places, and the layout with these."""
    known: dict[tuple[str, SqlType], tuple[int, tuple[int, ...]]] = {}
    for version in target.versions:  # the latest last
        for each, place in zip(version.columns, places_of(version.columns), strict=True):
            known[each.name, each.type] = place, each.earlier
    layout = list(target.all_stored_types)
    found: list[ColumnInfo] = []
    for index, each in enumerate(columns):
        place, earlier = known.get((each.name, each.type), (-1, ()))
        before = target.columns[index] if index < len(target.columns) else None
        if before is not None and is_wider(before.type, each.type):
            then = (target.places[index], *before.earlier)
            earlier = (*then, *(other for other in earlier if other not in then))
        if place == -1 or place in places_of(found):
            place = len(layout)
            layout.append(each.type)
        at = None if place == index and not earlier else place
        found.append(replace(each, place=at, earlier=tuple(other for other in earlier if other != place)))
    trivial = all(each.place is None for each in found) and not target.layout
    return tuple(found), () if trivial else tuple(layout)


_WHOLE = {Kind.INT2: 5, Kind.INT4: 10, Kind.INT8: 19}  # and how many digits they can have


def is_wider(narrow: SqlType, wide: SqlType) -> bool:
    """Whether a type, another one, has all values of a narrower one, shown as they were."""
    if narrow == wide:
        return False
    if narrow.kind in _WHOLE:
        if wide.kind in _WHOLE:
            return _WHOLE[narrow.kind] < _WHOLE[wide.kind]
        fits = not wide.constrained or (wide.scale == 0 and wide.precision >= _WHOLE[narrow.kind])
        return wide.kind is Kind.NUMERIC and fits
    if narrow.kind is Kind.VARCHAR:
        longer = wide.length is None or (narrow.length is not None and narrow.length < wide.length)
        return wide.kind is Kind.TEXT or (wide.kind is Kind.VARCHAR and longer)
    if narrow.kind is wide.kind is Kind.ARRAY:
        return narrow.element is not None and wide.element is not None and is_wider(narrow.element, wide.element)
    if narrow.kind is wide.kind and narrow.kind in PRECISE:  # digits of a second
        return narrow.length is not None and (wide.length is None or narrow.length < wide.length)
    if narrow.kind is Kind.NUMERIC and wide.kind is Kind.NUMERIC and narrow.constrained and wide.constrained:
        return narrow.scale == wide.scale and narrow.precision < wide.precision
    return False


def _changed(target: MaterializedView, name: str, columns: Sequence[ColumnInfo]) -> list[str]:
    lines = []
    for number, (old, new) in enumerate(zip(target.columns, columns, strict=False), 1):
        if old.name != new.name:
            lines.append(f'column {number} is "{old.name}" in "{target.name}" and "{new.name}" in "{name}"')
        elif old.type != new.type and not is_wider(old.type, new.type):
            lines.append(f'column "{old.name}" is {old.type} in "{target.name}" and {new.type} in "{name}"')
    return lines + [f'column "{each.name}" is missing in "{name}"' for each in target.columns[len(columns) :]]


def _shape(columns: Iterable[ColumnInfo]) -> list[tuple[str, object]]:
    return [(each.name, each.type) for each in columns]


def _uses(
    catalog: Catalog, target: MaterializedView, gone: Mapping[int, ColumnInfo], columns_read: ColumnsRead
) -> list[str]:
    """Who needs these columns of the target, which are by their places."""
    lines = []
    for item in catalog.dependents(target.id):
        if target.id not in item.depends:
            continue  # the replacement itself
        used = [gone[place].name for place in sorted(columns_read(item, target) & gone.keys())]
        lines += [f'{item.kind} {catalog.shown(item)} uses column "{each}"' for each in used]
    return lines


def history(catalog: Catalog, target: MaterializedView) -> tuple[Version, ...]:
    """The versions to remember of a view that gets another: the latest, the widest, and all that someone pins.

    The widest tells what is in the shard's columns.
    """
    versions = target.versions
    pinned = catalog.pinned(target.id)
    widest = max(versions, key=lambda each: len(each.columns))
    rest = versions[:-VERSIONS_KEPT_MAX]
    kept = [each for each in rest if each.id in pinned or each is widest]
    return (*kept, *versions[-VERSIONS_KEPT_MAX:])
