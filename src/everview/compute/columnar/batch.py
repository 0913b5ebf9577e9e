"""Batches: rows as columns of Arrow, and how often each row occurs.

A column is made when it is first read, so what nobody reads of a join or of what a filter lets through costs nothing.
A row may be in a batch several times, and multiplicities add up. Values are canonical, as in a row in Python.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.compute.allowance import allowance
from everview.compute.functions.columns import Words, canonical_floats
from everview.compute.interpreter import limits
from everview.compute.ir.types import SqlType, arrow_type
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.rows.collection import Rows
from everview.timely.consolidate import DIFF, consolidate, data_names

Positions: TypeAlias = npt.NDArray[np.int64]
Lazy: TypeAlias = Callable[[], pa.Array]


class NotByColumns(Exception):
    """These very values cannot be computed by columns, or some row fails: the interpreter has to."""


class Batch:
    """Rows by columns. `diffs` is how often each occurs; None if each does once."""

    def __init__(self, columns: Sequence[pa.Array | Lazy], rows: int, diffs: Words | None = None) -> None:
        self._columns = list(columns)
        self._origin: tuple[Batch, Positions] | None = None
        self.rows, self.diffs = rows, diffs

    @classmethod
    def of(cls, table: pa.Table, types: Sequence[SqlType]) -> Batch:
        """The rows of a table whose data columns have these types; columns that it has not got must not be read."""
        names = [f"c{index}" for index in range(len(types))]
        given = dict(zip(names, data_names(table), strict=True))
        return cls.of_some(table, {index: given[name] for index, name in enumerate(names)}, types)

    @classmethod
    def of_some(cls, table: pa.Table, names: dict[int, str], types: Sequence[SqlType]) -> Batch:
        """The rows of a table with some of the columns of these types, by position."""
        columns = [
            _column(table.column(names[index]), each) if index in names else _missing
            for index, each in enumerate(types)
        ]
        diffs = None
        if DIFF in table.column_names:
            diffs = np.ascontiguousarray(table.column(DIFF).to_numpy())
            diffs = None if (diffs == 1).all() else diffs
        return cls(columns, table.num_rows, diffs)

    @classmethod
    def of_rows(cls, rows: Rows, types: Sequence[SqlType]) -> Batch:
        """A collection as a batch."""
        return cls.of(rows_to_arrow(rows, types), types)

    @property
    def width(self) -> int:
        return len(self._columns)

    def column(self, index: int) -> pa.Array:
        """The column at this position."""
        column = self._columns[index]
        if not isinstance(column, pa.Array):
            column = self._columns[index] = column()
            _hold(column)
        return column

    def columns(self) -> list[pa.Array]:
        return [self.column(index) for index in range(self.width)]

    def counts(self) -> Words:
        """How often each row occurs."""
        return np.ones(self.rows, dtype=np.int64) if self.diffs is None else self.diffs

    def at(self, positions: Positions) -> Batch:
        """The rows at these positions."""
        diffs = None if self.diffs is None else self.diffs[positions]
        batch = Batch([], len(positions), diffs)
        origin, places = (self, positions) if self._origin is None else (self._origin[0], self._origin[1][positions])
        batch._origin = (origin, places)
        index = pa.array(places)
        batch._columns = [_taken(origin, each, index) for each in range(origin.width)]
        return batch

    def select(self, columns: Iterable[int]) -> Batch:
        """Some of the columns, in this order."""
        return Batch([self._lazily(each) for each in columns], self.rows, self.diffs)

    def with_columns(self, more: Sequence[pa.Array | Lazy]) -> Batch:
        """The rows with more columns behind."""
        return Batch([*map(self._lazily, range(self.width)), *more], self.rows, self.diffs)

    def with_diffs(self, diffs: Words | None) -> Batch:
        """The same rows, occurring so often."""
        return Batch([self._lazily(each) for each in range(self.width)], self.rows, diffs)

    def _lazily(self, index: int) -> pa.Array | Lazy:
        column = self._columns[index]
        return column if isinstance(column, pa.Array) else lambda: self.column(index)

    def table(self) -> pa.Table:
        """The batch as engines hand collections over."""
        columns = {f"c{index}": column for index, column in enumerate(self.columns())}
        return pa.table({**columns, DIFF: pa.array(self.counts())})

    def to_rows(self, types: Sequence[SqlType]) -> Rows:
        """The batch as a collection in Python."""
        return rows_from_arrow(self.table(), types)

    def consolidated(self) -> Batch:
        """Each row once, and none that does not occur: so that those below zero, if there are any, show."""
        if self.rows < 2 and (self.diffs is None or (self.diffs != 0).all()):
            return self
        columns = self.columns()
        if not columns:
            total = int(self.counts().sum())
            return Batch([], 1 if total else 0, np.array([total] if total else [], dtype=np.int64))
        names = [f"c{index}" for index in range(len(columns))]
        times = pa.array(np.zeros(self.rows, dtype=np.int64))
        table = pa.table([*columns, times, pa.array(self.counts())], names=[*names, "_time", DIFF])
        found = consolidate(table)
        diffs = np.ascontiguousarray(found.column(DIFF).to_numpy())
        return Batch([_one(found.column(name)) for name in names], found.num_rows, diffs)


def _hold(column: pa.Array) -> None:
    """Count the memory of a column as long as anyone has it."""
    allowed, size = allowance(), column.nbytes
    limits.hold(0, size)
    if allowed is not None:
        weakref.finalize(column, allowed.let_go, size).atexit = False


def concatenated(batches: Sequence[Batch]) -> Batch:
    """The rows of all, one behind the other."""
    plain = all(each.diffs is None for each in batches)
    diffs = None if plain else np.concatenate([each.counts() for each in batches])
    columns = [_joined(batches, index) for index in range(batches[0].width)]
    return Batch(columns, sum(each.rows for each in batches), diffs)


def _joined(batches: Sequence[Batch], index: int) -> Lazy:
    return lambda: pa.concat_arrays([each.column(index) for each in batches])


def _taken(origin: Batch, index: int, positions: pa.Array) -> Lazy:
    return lambda: origin.column(index).take(positions)


def _missing() -> pa.Array:
    raise NotByColumns


def _column(column: pa.ChunkedArray, sql_type: SqlType) -> Lazy:
    def make() -> pa.Array:
        wanted = arrow_type(sql_type)
        array = _one(column if column.type == wanted else column.cast(wanted))
        return canonical_floats(array) if pa.types.is_floating(wanted) else array

    return make


def _one(column: pa.ChunkedArray) -> pa.Array:
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # texts of more bytes than one array has
        raise NotByColumns
    return array
