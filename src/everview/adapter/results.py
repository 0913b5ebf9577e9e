"""Results of statements, as the contract of the adapter describes them."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Sequence

from everview.adapter.contract import Column, Row
from everview.compute.allowance import EVERYONE, ROW_BYTES
from everview.compute.interpreter import limits
from everview.compute.ir.types import TEXT, SqlType

BATCH_ROWS = 1_000


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
