"""How one collection differs from another, at a time: what it has more, and what it has less.

    contents(one, t) - contents(other, t), per row

One may have more columns at the end than the other, in which the rows of the other are NULL.
At first both are read, in hash order and in pieces, so memory holds what differs and not what is the same. Later times
are reached by the changes of both since then.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.storage.batch import as_declared
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import NotReadable
from everview.storage.merge import LOWEST, merge
from everview.storage.selection import Selection
from everview.storage.shard import Spec
from everview.timely.consolidate import DIFF, HASH, TIME, consolidate, data_names, int_column, with_column
from everview.timely.lattice import TIME_MAX


class Difference:
    """The difference of two collections, kept for the last time that was asked for."""

    def __init__(self, environment: Environment, one: GlobalId, other: GlobalId) -> None:
        self._environment = environment
        self.one, self.other = one, other
        self._time: int | None = None
        self._table: pa.Table | None = None
        self._lock = threading.Lock()

    def at(self, time: int) -> pa.Table:
        """The rows in which they differ at a time at which both can be read, with `_diff`."""
        with self._lock:
            if self._table is None or self._time is None or time < self._time:
                self._table = self._whole(time)
            elif time > self._time:
                try:
                    self._table = self._moved(self._table, self._time + 1, time + 1)
                except NotReadable:  # the changes since then are forgotten
                    self._table = self._whole(time)
            self._time = time
            return self._table

    def rows_max(self, time: int) -> int:
        """No more updates than this have to be read to know the difference at a time."""
        environment = self._environment
        with environment.contents(self.one, time) as one, environment.contents(self.other, time) as other:
            return one.rows_max + other.rows_max

    @property
    def known(self) -> bool:
        return self._table is not None

    def _whole(self, time: int) -> pa.Table:
        environment = self._environment
        with environment.contents(self.one, time) as one, environment.contents(self.other, time) as other:
            return subtracted(one, other)

    def _moved(self, table: pa.Table, lower: int, upper: int) -> pa.Table:
        environment = self._environment
        with environment.changes(self.one, lower, upper) as one, environment.changes(self.other, lower, upper) as other:
            changes = [_rows(one.updates()), *negated(iter([_rows(other.updates())]))]
        if not any(each.num_rows for each in changes):
            return table
        changes = [as_declared(each, table.schema) for each in changes]
        return _rows(consolidate(at_time(pa.concat_tables([table, *changes]), 0)))


def subtracted(one: Selection, other: Selection) -> pa.Table:
    """The sum of the selected updates of one collection minus the sum of another's, whatever their times."""
    spec = max(one.spec, other.spec, key=lambda each: len(each.schema))
    if any(a.type != b.type for a, b in zip(one.spec.schema, other.spec.schema, strict=False)):
        return _subtracted_whole(one, other, spec)
    runs = [_widened(one.chunks(TIME_MAX), spec), _widened(negated(other.chunks(TIME_MAX)), spec)]
    pieces = [_rows(piece) for piece in merge(runs, [LOWEST, LOWEST], spec, TIME_MAX)]
    return pa.concat_tables(pieces) if pieces else _empty(spec)


def _subtracted_whole(one: Selection, other: Selection, spec: Spec) -> pa.Table:
    """The same where decimals have more digits in one of them: then equal rows have different hashes."""
    tables = [one.updates(), *negated(iter([other.updates()]))]
    rows = pa.concat_tables([as_declared(_rows(each), _empty(spec).schema) for each in tables])
    return _rows(consolidate(at_time(rows, 0))) if rows.num_rows else _empty(spec)


def counts(table: pa.Table) -> tuple[int, int]:
    """How many rows of a difference are added, and how many removed."""
    if not table.num_rows:
        return 0, 0
    diffs = int_column(table, DIFF)
    return int(diffs[diffs > 0].sum()), int(-diffs[diffs < 0].sum())


def negated(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    for table in tables:
        place = table.schema.get_field_index(DIFF)
        yield table.set_column(place, table.schema.field(place), pc.negate(table.column(DIFF)))


def at_time(table: pa.Table, time: int) -> pa.Table:
    return with_column(table, TIME, np.full(table.num_rows, time, dtype=np.int64))


def _rows(table: pa.Table) -> pa.Table:
    """Data columns and `_diff`."""
    return table.select([*data_names(table), DIFF])


def _widened(tables: Iterator[pa.Table], spec: Spec) -> Iterator[pa.Table]:
    """In all columns of a spec: NULLs do not enter the hash, so the order is right with them too."""
    return (as_declared(table, spec.in_parts) for table in tables)


def _empty(spec: Spec) -> pa.Table:
    return _rows(pa.schema([field for field in spec.in_parts if field.name != HASH]).empty_table())
