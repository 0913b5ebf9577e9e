"""Envelopes of SUBSCRIBE: changes as rows with differences, as upserts by key, or with values before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Protocol

from everview.adapter.contract import Row
from everview.adapter.peek_rows import plain_rows
from everview.compute.interpreter.ordering import row_order_key
from everview.compute.ir.types import SqlType
from everview.compute.rows.collection import Rows
from everview.compute.sql.errors import SqlError

# Changes of one time are sorted, so that repeated runs give the same rows; beyond this number that costs too much.
SORTED_MAX = 50_000
KEPT_ROWS_MAX = 2_000_000  # keys that a subscription remembers, to notice keys with several rows

Sort = Callable[[list[Row]], list[Row]]


class Envelope(Protocol):
    """Turns changes into rows."""

    stateful: bool  # whether it has to know the contents before the first change

    def begin(self, contents: Rows) -> None:
        """Take the contents before the first change."""

    def rows(self, time: int, changes: Rows) -> list[Row]:
        """The rows for the changes at a time."""

    def progress(self, time: int) -> Row:
        """The row that says that nothing more will come before a time."""


class Differences:
    """A row for each change, with its multiplicity."""

    stateful = False

    def __init__(self, types: Sequence[SqlType], *, progress: bool, sort: Sort | None = None) -> None:
        self._plain, self._key = plain_rows(types), row_order_key(types)
        self._flag: Row = (False,) if progress else ()
        self._nulls: Row = (None,) * (len(types) + 1)
        self._sort = sort

    def begin(self, contents: Rows) -> None:
        """The contents do not matter."""

    def rows(self, time: int, changes: Rows) -> list[Row]:
        in_order = len(changes) <= SORTED_MAX
        items = sorted(changes.items(), key=lambda item: self._key(item[0])) if in_order else changes.items()
        first = (Decimal(time), *self._flag)
        made = [(*first, diff, *self._plain(row)) for row, diff in items]
        return made if self._sort is None else self._sort(made)

    def progress(self, time: int) -> Row:
        return (Decimal(time), True, *self._nulls)


class ByKey:
    """A row for each key that changed, with its state and its values: after the change, or before and after it.

    A key must have at most one row. To check that, the envelope keeps the present rows by key, up to `KEPT_ROWS_MAX` of
    them. Each change of a key with several rows gives a `key_violation`, until one row is left, which gives an upsert,
    or no row, which gives a delete.
    """

    stateful = True

    def __init__(
        self, types: Sequence[SqlType], keys: list[int], values: list[int], *, progress: bool, before: bool
    ) -> None:
        self._plain, self._keys, self._values, self._before = plain_rows(types), keys, values, before
        self._key_order = row_order_key([types[index] for index in keys])
        self._flag: Row = (False,) if progress else ()
        self._nulls: Row = (None,) * (1 + len(keys) + len(values) * (2 if before else 1))
        self._single: dict[Row, Row] = {}  # the row of each key with exactly one row
        self._several: dict[Row, Rows] = {}  # the rows of the other keys, with multiplicities

    def begin(self, contents: Rows) -> None:
        for key, changes in self._by_key(contents).items():
            self._change(key, changes)
        self._check_size()

    def rows(self, time: int, changes: Rows) -> list[Row]:
        changed = self._by_key(changes)
        keys = list(changed)
        if len(keys) <= SORTED_MAX:
            keys.sort(key=self._key_order)
        first = (Decimal(time), *self._flag)
        made = [(*first, *self._row(key, changed[key])) for key in keys]
        self._check_size()
        return made

    def _by_key(self, changes: Rows) -> dict[Row, Rows]:
        found: dict[Row, Rows] = {}
        for row, diff in changes.items():
            found.setdefault(tuple(row[index] for index in self._keys), {})[row] = diff
        return found

    def _change(self, key: Row, changes: Rows) -> None:
        """Apply changes to the rows of a key."""
        there = self._several.pop(key, None)
        if there is None:
            single = self._single.pop(key, None)
            there = {} if single is None else {single: 1}
        for row, diff in changes.items():
            count = there.pop(row, 0) + diff
            if count:
                there[row] = count
        if len(there) == 1 and next(iter(there.values())) == 1:
            self._single[key] = next(iter(there))
        elif there:
            self._several[key] = there

    def _row(self, key: Row, changes: Rows) -> Row:
        was_several, before = key in self._several, self._single.get(key)
        self._change(key, changes)
        after = self._single.get(key)
        if key in self._several:
            state, before = "key_violation", None
        elif after is None:
            state = "delete"
        else:
            state = "insert" if self._before and before is None and not was_several else "upsert"
        some = self._plain(next(iter(changes)))
        shown_key = tuple(some[index] for index in self._keys)
        told = (*self._picked(before), *self._picked(after)) if self._before else self._picked(after)
        return (state, *shown_key, *told)

    def _picked(self, row: Row | None) -> Row:
        if row is None:
            return (None,) * len(self._values)
        values = self._plain(row)
        return tuple(values[index] for index in self._values)

    def _check_size(self) -> None:
        if len(self._single) + len(self._several) > KEPT_ROWS_MAX:
            hint = "subscribe without ENVELOPE, or to fewer keys; without ENVELOPE, changes have mz_diff"
            raise SqlError("54000", f"a subscription by key keeps at most {KEPT_ROWS_MAX} keys", hint=hint)

    def progress(self, time: int) -> Row:
        return (Decimal(time), True, *self._nulls)
