"""Cursors: a statement's rows, taken a few at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from everview.adapter.contract import Column, Rows
from everview.adapter.interrupts import Interrupts
from everview.adapter.results import Batch, RowList, TableRows, batches_of, part_of, size_of
from everview.adapter.subscribe import SubscriptionRows
from everview.adapter.tabular import Tables

FETCHED_ROWS_MAX = 1_000_000  # of one FETCH; the next one goes on from there


class Fetched:
    """The rows of a FETCH: parts of batches. Rows of tables stay in tables, as few as possible."""

    def __init__(self, columns: tuple[Column, ...], parts: Sequence[Batch]) -> None:
        self.columns = columns
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(size_of, self._parts))

    def result(self, verb: str) -> RowList | TableRows:
        """The rows as a result."""
        tables = [part for part in self._parts if isinstance(part, pa.Table)]
        if tables and len(tables) == len(self._parts):
            return TableRows(self.columns, Tables(iter(tables)), verb)
        return RowList(self.columns, [row for part in self._parts for row in part], verb)


class Cursor:
    """Rows of a statement. `more` waits for rows of a subscription; other statements have all theirs."""

    def __init__(self, rows: Rows, set_patience: Callable[[float | None], None] | None = None) -> None:
        self.columns: tuple[Column, ...] = rows.columns
        self._rows = rows
        self._batches: Iterator[Batch] = iter(batches_of(rows))
        self._left: Batch = ()
        self._patience = set_patience
        self._done = False

    def fetch(self, count: int | None, timeout_s: float | None, interrupts: Interrupts) -> Fetched:
        """The next rows, `count` at most. A subscription gives what comes in time; without a limit, at least one."""
        wanted = FETCHED_ROWS_MAX if count is None else min(count, FETCHED_ROWS_MAX)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        parts: list[Batch] = []
        found = 0
        while found < wanted:
            if not size_of(self._left) and not self._take(found, deadline):
                break
            part = part_of(self._left, 0, wanted - found)
            self._left = part_of(self._left, size_of(part), size_of(self._left))
            parts.append(part)
            found += size_of(part)
            interrupts.check()
        return Fetched(self.columns, parts)

    def _take(self, found: int, deadline: float | None) -> bool:
        """Take one more batch. False if the rows are at their end, or no batch comes in time."""
        if self._done:
            return False
        if self._patience is not None:
            if deadline is None:
                self._patience(0.0 if found else None)
            else:
                left = deadline - time.monotonic()
                if left <= 0 and found:
                    return False
                self._patience(max(0.0, left))
        batch = next(self._batches, None)
        if batch is None:
            self._done = True
            return False
        self._left = batch
        in_time = not found if deadline is None else time.monotonic() < deadline
        return size_of(batch) > 0 or self._patience is None or in_time

    def commit(self) -> None:
        """The transaction block that it is in commits."""

    def close(self) -> None:
        self._done = True
        self._rows.close()


class SubscriptionCursor(Cursor):
    """Rows of a subscription. If that is durable, what was fetched is acknowledged: by the next FETCH, and by COMMIT.

    Only whole times are: rows of which some are left come again, all rows of their time with them.
    """

    def __init__(self, rows: SubscriptionRows, acknowledged_by: str | None) -> None:
        super().__init__(rows, rows.set_patience)
        self._subscription, self._by = rows, acknowledged_by or "fetch"

    def fetch(self, count: int | None, timeout_s: float | None, interrupts: Interrupts) -> Fetched:
        """The next rows; those before are done with."""
        if self._by == "fetch":
            self._acknowledge()
        return super().fetch(count, timeout_s, interrupts)

    def commit(self) -> None:
        """The block commits: what was fetched in it is done with."""
        if self._by != "none":
            self._acknowledge()

    def _acknowledge(self) -> None:
        if self._subscription.acknowledge is not None:
            left = self._left[0][0] if size_of(self._left) else None
            told = self._subscription.told
            self._subscription.acknowledge(told if left is None else min(told, int(left)))  # type: ignore[arg-type]
