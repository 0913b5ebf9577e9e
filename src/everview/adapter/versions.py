"""Versions of a materialized view: which columns may follow which, who would be in the way, and what is remembered.

All versions are on one shard, whose columns only ever become more. A new definition has the columns of the one before,
and may have more behind them. It may also go back to the columns of an earlier version, if nobody needs the others: on
the shard these stay, and are NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from everview.adapter.catalog.items import ColumnInfo, Item, Version
from everview.adapter.catalog.state import Catalog
from everview.adapter.errors import DEPENDENT_OBJECTS
from everview.compute.sql.errors import SqlError

VERSIONS_KEPT_MAX = 32  # but for those whose columns someone knows the view by
LISTED_MAX = 100

ColumnsRead = Callable[[Item, Item], set[int]]  # which columns an item needs of a view that it names


def check_columns(
    catalog: Catalog, target: Item, name: str, columns: Sequence[ColumnInfo], columns_read: ColumnsRead
) -> None:
    """Raise unless a definition with these columns can follow the target's, with one line for each difference."""
    lines = _changed(target, name, columns)
    goes_back = any(_shape(each.columns) == _shape(columns) for each in target.history)
    if not goes_back:
        lines += [f'column "{each.name}" is missing in "{name}"' for each in target.columns[len(columns) :]]
    lines += _misplaced(target, name, columns)
    if lines:
        message = f'schema of replacement "{name}" differs from that of "{target.name}"'
        hint = "the columns must be the same, in the same order, with the same names and types; new ones may follow"
        raise SqlError("42P16", message, detail="\n".join(lines), hint=hint)
    if len(columns) < len(target.columns):
        _check_unused(catalog, target, name, len(columns), columns_read)


def _changed(target: Item, name: str, columns: Sequence[ColumnInfo]) -> list[str]:
    lines = []
    for number, (old, new) in enumerate(zip(target.columns, columns, strict=False), 1):
        if old.name != new.name:
            lines.append(f'column {number} is "{old.name}" in "{target.name}" and "{new.name}" in "{name}"')
        elif old.type != new.type:
            lines.append(f'column "{old.name}" is {old.type} in "{target.name}" and {new.type} in "{name}"')
    return lines


def _misplaced(target: Item, name: str, columns: Sequence[ColumnInfo]) -> list[str]:
    """New columns that cannot be where they are: rows of an earlier version have something else there."""
    lines = []
    for place in range(len(target.columns), len(columns)):
        new = columns[place]
        if not target.columns:
            lines.append(f'column "{new.name}" is new in "{name}", and "{target.name}" has no columns')
            continue
        for version in target.history:
            if place < len(version.columns) and (old := version.columns[place]).type != new.type:
                had = f'version {version.number} of "{target.name}" has "{old.name}" {old.type} in its place'
                lines.append(f'column "{new.name}" is {new.type} in "{name}", and {had}')
                break
    return lines


def _shape(columns: Iterable[ColumnInfo]) -> list[tuple[str, object]]:
    return [(each.name, each.type) for each in columns]


def _check_unused(catalog: Catalog, target: Item, name: str, width: int, columns_read: ColumnsRead) -> None:
    """Raise if someone needs columns of the target behind the first so many."""
    lines = []
    for item in catalog.dependents(target.id):
        if target.id not in item.depends:
            continue  # the replacement itself
        used = sorted(column for column in columns_read(item, target) if column >= width)
        names = [target.columns[column].name for column in used if column < len(target.columns)]
        lines += [f'{item.kind} {catalog.shown(item)} uses column "{each}"' for each in names]
    if lines:
        missing = ", ".join(f'"{each.name}"' for each in target.columns[width:])
        message = f'replacement "{name}" lacks columns of "{target.name}" that others use'
        hint = f"drop what uses {missing}, or let it do without"
        raise SqlError(DEPENDENT_OBJECTS, message, detail="\n".join(lines[:LISTED_MAX]), hint=hint)


def history(catalog: Catalog, target: Item) -> tuple[Version, ...]:
    """What is remembered of the versions of a view that gets another: the latest, those that someone pins, the widest.

    The widest tells what is in the shard's columns.
    """
    versions = target.versions
    pinned = catalog.pinned(target.id)
    widest = max(versions, key=lambda each: len(each.columns))
    rest = versions[:-VERSIONS_KEPT_MAX]
    kept = [each for each in rest if each.id in pinned or each is widest]
    return (*kept, *versions[-VERSIONS_KEPT_MAX:])
