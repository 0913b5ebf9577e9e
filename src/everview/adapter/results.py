"""Results of statements, as the contract of the adapter describes them."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from everview.adapter.contract import Column, Row, Rows
from everview.adapter.tabular import Tables
from everview.compute.allowance import EVERYONE, ROW_BYTES
from everview.compute.interpreter import limits
from everview.compute.ir.types import TEXT, SqlType
from everview.compute.rows.tables import rows_of_table

BATCH_ROWS = 1_000

Batch: TypeAlias = Sequence[Row] | pa.Table  # some rows of a result


def batches_of(rows: Rows) -> Iterator[Batch]:
    """The rows of a result as they come, in tables if it has any."""
    tables: Callable[[], Iterator[pa.Table]] | None = getattr(rows, "tables", None)
    return rows.batches() if tables is None else tables()


def size_of(batch: Batch) -> int:
    """The number of rows."""
    return batch.num_rows if isinstance(batch, pa.Table) else len(batch)


def part_of(batch: Batch, start: int, count: int) -> Batch:
    """Up to so many rows from one on."""
    if isinstance(batch, pa.Table):
        return batch.slice(start, count)
    return batch if start == 0 and count >= len(batch) else batch[start : start + count]


def columns_of(names: Sequence[str], types: Sequence[SqlType]) -> tuple[Column, ...]:
    return tuple(Column(name, each) for name, each in zip(names, types, strict=True))


def text_columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, TEXT) for name in names)


class RowList:
    """Rows that are all there."""

    def __init__(self, columns: tuple[Column, ...], rows: Sequence[Row], verb: str = "SELECT") -> None:
        self.columns = columns
        self.rows = rows
        self._verb = verb
        self._closed = False
        if len(rows) >= limits.MANY_ROWS:  # a client may leave many results unread
            size = len(rows) * ROW_BYTES // 2  # without the table that operators have
            EVERYONE.take(size)
            weakref.finalize(self, EVERYONE.give_back, size)

    def batches(self) -> Iterator[Sequence[Row]]:
        for start in range(0, len(self.rows), BATCH_ROWS):
            if self._closed:
                return
            yield self.rows[start : start + BATCH_ROWS]

    def tag(self, rows: int) -> str:
        return f"{self._verb} {rows}"

    def close(self) -> None:
        self._closed = True
        if isinstance(self.rows, list) and len(self.rows) >= limits.MANY_ROWS and sys.getrefcount(self.rows) == 2:
            limits.empty(self.rows)


class TableRows:
    """Rows that come as tables."""

    def __init__(self, columns: tuple[Column, ...], found: Tables, verb: str = "SELECT") -> None:
        self.columns = columns
        self._found = found
        self._verb = verb

    def tables(self) -> Iterator[pa.Table]:
        """The rows, in tables."""
        return self._found.pieces

    def batches(self) -> Iterator[Sequence[Row]]:
        """The rows, in batches."""
        types = [column.type for column in self.columns]
        for table in self.tables():
            for start in range(0, table.num_rows, BATCH_ROWS):
                yield rows_of_table(table.slice(start, BATCH_ROWS), types)

    def tag(self, rows: int) -> str:
        """The command tag."""
        return f"{self._verb} {rows}"

    def close(self) -> None:
        """Take no more."""
        self._found.close()


def result_rows(columns: tuple[Column, ...], found: list[Row] | Tables, verb: str = "SELECT") -> RowList | TableRows:
    """The rows of a result."""
    return TableRows(columns, found, verb) if isinstance(found, Tables) else RowList(columns, found, verb)
