"""What changes of a table upstream come to here: the rows that go and the rows that come, all at one time.

An update names its row by key, or says nothing of the old one. So the old rows are looked up in the source's own
collection, by the hash of their keys, and so are values that the server left out because they are long and did not
change. Without a key, changes bring whole old rows. What does not fit what is there is an error, and never passed over:
the collection would not be the table any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.sources.postgres.errors import TableStopped
from everview.sources.postgres.pgoutput import UNCHANGED, Delete, Insert, Tuple, Update
from everview.sources.postgres.tables import UpstreamTable
from everview.sources.postgres.types import column_of, texts_of
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.timely.consolidate import DIFF, TIME, int_column

_STORED, _ABSENT = -1, -2  # where the row of a key is, if not among those that changes write
_NO_ROW: Final = -1  # in a step: nothing is gone, or nothing is written
_SAME_KEY: Final = -2  # what is gone has the key of what is written


@dataclass(slots=True)
class TableChanges:
    """Changes of one table, in order, until they are applied: rows that are written, and keys or rows that are gone."""

    table: UpstreamTable
    rows: list[Tuple] = field(default_factory=list)
    gone: list[Tuple] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)  # what is gone and what is written, by their places
    truncated: bool = False

    def insert(self, change: Insert, places: Sequence[int] | None) -> None:
        """A new row; `places` are where the columns of the table are in it, if not in order."""
        self.rows.append(_arranged(change.new, places))
        self.steps.append((_NO_ROW, len(self.rows) - 1))

    def update(self, change: Update, places: Sequence[int] | None) -> None:
        """Another row in the place of one; by its own key, if the old one is not told."""
        new = _arranged(change.new, places)
        if change.old is not None:
            old = _arranged(change.old, places)
            whole = range(len(new)) if change.whole else self.table.key
            for place in whole:
                if new[place] is UNCHANGED:
                    new[place] = old[place]
            self.gone.append(old)
        elif not self.table.key:
            raise _surprise(self.table, "an update does not bring the old row")
        self.rows.append(new)
        self.steps.append((_SAME_KEY if change.old is None else len(self.gone) - 1, len(self.rows) - 1))

    def delete(self, change: Delete, places: Sequence[int] | None) -> None:
        """A row is gone."""
        if not self.table.key and not change.whole:
            raise _surprise(self.table, "a deletion does not bring the old row")
        self.gone.append(_arranged(change.old, places))
        self.steps.append((len(self.gone) - 1, _NO_ROW))

    def truncate(self) -> None:
        """All rows are gone, those of changes before too."""
        self.truncated = True
        self.rows.clear()
        self.gone.clear()
        self.steps.clear()

    def applied(self, environment: Environment, id: GlobalId, time: int) -> Iterator[pa.Table]:
        """The updates of the collection at a time, in pieces; the collection is as it was before these changes."""
        stored = None if self.truncated else self._stored(environment, id)
        if self.truncated:
            yield from _emptied(environment, id, time)
        if self.steps:
            yield from (self._by_key(stored, time) if self.table.key else self._whole(time))

    # With a key

    def _stored(self, environment: Environment, id: GlobalId) -> pa.Table | None:
        """The rows of the collection with the keys that changes name."""
        if not self.table.key or not self.steps:
            return None
        keys = pa.table({f"c{place}": self._keys(place) for place in self.table.key})
        hashes = np.unique(environment.key_hashes(id, keys))
        with environment.everything(id, hashes) as selection:
            return selection.contents()

    def _keys(self, place: int) -> Any:
        """The values of a key column: of rows that are written, then of those that are gone."""
        values = [*(row[place] for row in self.rows), *(row[place] for row in self.gone)]
        if any(value is UNCHANGED for value in values):
            raise _surprise(self.table, "a value of the key is left out")
        return self._column(place, values)

    def _column(self, place: int, values: Sequence[Any]) -> Any:
        column = self.table.columns[place]
        where = f"{self.table.shown}.{column.name}"
        return column_of(texts_of(values, where), column.type, where)

    def _by_key(self, stored: pa.Table | None, time: int) -> Iterator[pa.Table]:
        names = [f"c{place}" for place in self.table.key]
        keys = _hashable([self._keys(place) for place in self.table.key])
        written, gone = keys[: len(self.rows)], keys[len(self.rows) :]
        at: dict[Any, int] = {}
        if stored is not None and stored.num_rows:
            at = {key: place for place, key in enumerate(_hashable([stored.column(name) for name in names]))}
            touched = set(keys)
            at = {key: place for key, place in at.items() if key in touched}
        now: dict[Any, int] = {}

        def present(key: Any) -> int:
            return now.get(key, _STORED if key in at else _ABSENT)

        for old, new in self.steps:
            key = gone[old] if old >= 0 else written[new]
            before = present(key)
            if (old == _NO_ROW) != (before == _ABSENT):
                message = "a new row has the key of another" if old == _NO_ROW else "a row that changes is not here"
                raise _surprise(self.table, message)
            now[key] = _ABSENT
            if new >= 0:
                if present(written[new]) != _ABSENT:
                    raise _surprise(self.table, "a changed row has the key of another")
                self._fill(new, before, at.get(key))
                now[written[new]] = new
        kept = [place for place in now.values() if place >= 0]
        removed = [at[key] for key in now if key in at]
        if removed and stored is not None:
            yield _updates(stored.drop_columns([DIFF]).take(pa.array(removed, pa.int64())), time, -1)
        if kept:
            yield _updates(self._table(kept, stored), time, 1)

    def _fill(self, new: int, before: int, stored: int | None) -> None:
        """Give a row the values that were left out: those of the row in whose place it comes."""
        row: list[Any] = self.rows[new]
        for place, value in enumerate(row):
            if value is UNCHANGED:
                # A number stands for the value of the stored row at that place.
                row[place] = self.rows[before][place] if before >= 0 else stored

    def _table(self, kept: Sequence[int], stored: pa.Table | None) -> pa.Table:
        columns = {}
        for place in range(len(self.table.columns)):
            values: list[Any] = [self.rows[each][place] for each in kept]
            filled = [index for index, value in enumerate(values) if isinstance(value, int)]
            if filled and stored is not None:
                order = np.arange(len(values))
                for index in filled:
                    order[index], values[index] = len(values) + values[index], None
                found = pa.chunked_array([*self._column(place, values).chunks, *stored.column(f"c{place}").chunks])
                columns[f"c{place}"] = found.take(pa.array(order))
            else:
                columns[f"c{place}"] = self._column(place, values)
        return pa.table(columns)

    # Without

    def _whole(self, time: int) -> Iterator[pa.Table]:
        for rows, diff in ((self.gone, -1), (self.rows, 1)):
            if rows:
                if any(value is UNCHANGED for row in rows for value in row):
                    raise _surprise(self.table, "a value is left out")
                width = range(len(self.table.columns))
                columns = {f"c{place}": self._column(place, [row[place] for row in rows]) for place in width}
                yield _updates(pa.table(columns), time, diff)


def _arranged(row: Tuple, places: Sequence[int] | None) -> Tuple:
    return row if places is None else [row[place] for place in places]


def _updates(rows: pa.Table, time: int, diff: int) -> pa.Table:
    count = rows.num_rows
    for name, value in ((TIME, time), (DIFF, diff)):
        rows = rows.append_column(name, pa.array(np.full(count, value, dtype=np.int64)))
    return rows


def _emptied(environment: Environment, id: GlobalId, time: int) -> Iterator[pa.Table]:
    """The removal of everything in a collection."""
    with environment.everything(id) as selection:
        for piece in selection.chunks(time):
            rows = piece.select([name for name in piece.column_names if name.startswith("c")])
            rows = rows.append_column(TIME, pa.array(np.full(rows.num_rows, time, dtype=np.int64)))
            yield rows.append_column(DIFF, pa.array(-int_column(piece, DIFF)))


def _hashable(columns: Sequence[Any]) -> list[Any]:
    """Keys as values that are equal exactly if the rows have the same key."""
    if len(columns) == 1:
        return _plain(columns[0])
    return list(zip(*map(_plain, columns), strict=True))


def _plain(column: Any) -> list[Any]:
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    elif pa.types.is_float32(kind) or pa.types.is_float64(kind) or pa.types.is_nested(kind):
        return [repr(value) for value in column.to_pylist()]
    found: list[Any] = column.to_pylist()
    return found


def _surprise(table: UpstreamTable, what: str) -> TableStopped:
    return TableStopped(
        f"changes of {table.shown} do not fit what is here: {what}",
        hint="drop the source and create it again",
    )


def size_of(row: Tuple) -> int:
    """The bytes of the values of a row."""
    return sum(len(value) for value in row if isinstance(value, bytes))


def rows_in(pieces: Sequence[pa.Table]) -> int:
    """The number of rows that came, of the updates of a table."""
    return sum(int(pc.sum(pc.equal(piece.column(DIFF), 1)).as_py() or 0) for piece in pieces)
