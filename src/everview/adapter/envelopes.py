"""How the changes of one time become rows of a subscription: as differences, as upserts by key, or before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Protocol

from everview.adapter.contract import Row
from everview.adapter.peek import plain_rows
from everview.compute.engine.local.collection import Rows
from everview.compute.engine.local.ordering import row_order_key
from everview.compute.ir.types import SqlType

# Changes of one time are told in order, so that they are the same each time; sorting more than this is not worth it.
SORTED_MAX = 50_000

Sort = Callable[[list[Row]], list[Row]]


class Envelope(Protocol):
    """Makes rows of changes."""

    def rows(self, time: int, changes: Rows) -> list[Row]:
        """The rows for the changes at a time."""
        ...

    def progress(self, time: int) -> Row:
        """The row that says that nothing more will come before a time."""
        ...


class Differences:
    """A row for each change, with its multiplicity."""

    def __init__(self, types: Sequence[SqlType], *, progress: bool, sort: Sort | None = None) -> None:
        self._plain, self._key = plain_rows(types), row_order_key(types)
        self._flag: Row = (False,) if progress else ()
        self._nulls: Row = (None,) * (len(types) + 1)
        self._sort = sort

    def rows(self, time: int, changes: Rows) -> list[Row]:
        """The rows for the changes at a time."""
        items = sorted(changes.items(), key=lambda item: self._key(item[0])) if _few(changes) else changes.items()
        first = (Decimal(time), *self._flag)
        made = [(*first, diff, *self._plain(row)) for row, diff in items]
        return made if self._sort is None else self._sort(made)

    def progress(self, time: int) -> Row:
        """The row that says that nothing more will come before a time."""
        return (Decimal(time), True, *self._nulls)


class ByKey:
    """A row for each key that changed, with its state and its values: after the change, or before and after it."""

    def __init__(
        self, types: Sequence[SqlType], keys: list[int], values: list[int], *, progress: bool, before: bool
    ) -> None:
        self._plain, self._keys, self._values, self._before = plain_rows(types), keys, values, before
        self._key_order = row_order_key([types[index] for index in keys])
        self._flag: Row = (False,) if progress else ()
        self._nulls: Row = (None,) * (1 + len(keys) + len(values) * (2 if before else 1))

    def rows(self, time: int, changes: Rows) -> list[Row]:
        """The rows for the changes at a time."""
        gone: dict[Row, list[Row]] = {}
        come: dict[Row, list[Row]] = {}
        for row, diff in changes.items():
            side = come if diff > 0 else gone
            side.setdefault(tuple(row[index] for index in self._keys), []).extend([row] * abs(diff))
        keys = list(dict.fromkeys([*gone, *come]))
        if len(keys) <= SORTED_MAX:
            keys.sort(key=self._key_order)
        first = (Decimal(time), *self._flag)
        return [(*first, *self._row(key, gone.get(key, []), come.get(key, []))) for key in keys]

    def _row(self, key: Row, gone: list[Row], come: list[Row]) -> Row:
        nothing: Row = (None,) * len(self._values)
        if len(come) > 1 or len(gone) > 1:
            state, before, after = "key_violation", nothing, nothing
        elif come:
            state = "insert" if self._before and not gone else "upsert"
            before, after = self._picked(gone), self._picked(come)
        else:
            state, before, after = "delete", self._picked(gone), nothing
        some = come or gone
        shown_key = tuple(self._plain(some[0])[index] for index in self._keys)
        return (state, *shown_key, *before, *after) if self._before else (state, *shown_key, *after)

    def _picked(self, rows: list[Row]) -> Row:
        if not rows:
            return (None,) * len(self._values)
        values = self._plain(rows[0])
        return tuple(values[index] for index in self._values)

    def progress(self, time: int) -> Row:
        """The row that says that nothing more will come before a time."""
        return (Decimal(time), True, *self._nulls)


def _few(changes: Rows) -> bool:
    return len(changes) <= SORTED_MAX
