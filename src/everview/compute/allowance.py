"""How much an evaluation in this process may take: rows that come up in its operators, and memory.

Memory is estimated, by the number of rows that operators hold and the lengths of all long values that were made, even
if nobody holds them any more. So a small statement that turns out large ends early instead of taking the memory of
everyone. All statements together, and the results that clients have yet to read, share one budget.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from everview.errors import EverviewError

# Of one row in one operator, about: a tuple, its values, and its place in a table that is up to two thirds empty. With
# what a statement may take by default, a table grows, which is done in one go, only while it is small.
ROW_BYTES = 400
VALUE_SHARE = 16  # one value takes at most this part of the memory: to copy it holds the interpreter's lock until done
LONG = 1_024  # values that are shorter are counted with their rows


class TooManyRows(EverviewError):
    """More rows came up than were allowed; nothing has happened."""

    def __init__(self) -> None:
        super().__init__("the evaluation has more rows than it was allowed")


class OutOfMemory(EverviewError):
    """An evaluation would take more memory than it is allowed; nothing has happened.

    `by_value`: one value is too long. Then another engine would not do better.
    """

    def __init__(self, allowed_bytes: int, *, by_value: bool = False) -> None:
        self.by_value = by_value
        super().__init__(
            "out of memory",
            detail=f"the server's own evaluation may take {allowed_bytes >> 20} MB, and this statement takes more",
            hint="read or compute less, SET everview_local_memory to more, or SET everview_peek_engine = spark",
        )


class Exhausted(OutOfMemory):
    """All that runs, and the results that are kept for clients, would take more memory than all may together."""

    def __init__(self, total_bytes: int) -> None:
        super().__init__(total_bytes)
        self.detail = f"all sessions together may take {total_bytes >> 20} MB of the server, and have it now"
        self.hint = "try again, close cursors, or SET everview_peek_engine = spark"


class Budget:
    """Bytes that evaluations and results of this process share."""

    def __init__(self, total_bytes: int) -> None:
        self._total, self._left = total_bytes, total_bytes
        # Whoever is in may be interrupted by the garbage collector, and what that finds gives back its part.
        self._lock = threading.RLock()

    def take(self, size: int) -> None:
        """Raise `Exhausted` if that many are not left."""
        with self._lock:
            if size > self._left:
                raise Exhausted(self._total)
            self._left -= size

    def give_back(self, size: int) -> None:
        """So many are free again."""
        with self._lock:
            self._left += size


def memory_share() -> int:
    """A quarter of the machine's memory, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


EVERYONE = Budget(max(1 << 30, memory_share()))
PORTION = 16 << 20  # an evaluation takes its memory from the budget by so many bytes; what is less is free


class Allowance:
    """How many rows may still come up, and how many bytes may still be taken."""

    def __init__(self, rows: int | None = None, memory_bytes: int | None = None) -> None:
        self._rows, self._bytes, self._allowed_bytes = rows, memory_bytes, memory_bytes or 0
        self._portions = 0
        self.live_bytes = 0  # of the rows of operators whose results are still needed

    def look(self, rows: int) -> None:
        """Raise if so many more rows are too many."""
        if self._rows is not None and rows > self._rows:
            raise TooManyRows
        if self._bytes is not None:
            held = self.live_bytes + rows * ROW_BYTES
            if held > self._bytes:
                raise OutOfMemory(self._allowed_bytes)
            portions = (held + self._allowed_bytes - self._bytes) // PORTION
            if portions > self._portions:
                EVERYONE.take((portions - self._portions) * PORTION)
                self._portions = portions

    def close(self) -> None:
        """Give back all that the evaluation took."""
        EVERYONE.give_back(self._portions * PORTION)
        self._portions = 0

    def count(self, rows: int) -> None:
        """So many more rows have come up."""
        self.look(rows)
        if self._rows is not None:
            self._rows -= rows
        self.live_bytes += rows * ROW_BYTES

    def hold(self, rows: int, size: int) -> None:
        """So many more rows have come up, in columns of so many bytes."""
        if self._rows is not None:
            if rows > self._rows:
                raise TooManyRows
            self._rows -= rows
        self.live_bytes += size
        self.look(0)

    def let_go(self, size: int) -> None:
        """So many bytes are held no longer."""
        self.live_bytes -= size

    def look_ahead(self, rows: int, size: int) -> None:
        """Raise if so many more rows, or columns of so many bytes, are too much."""
        if self._rows is not None and rows > self._rows:
            raise TooManyRows
        self.live_bytes += size
        try:
            self.look(0)
        finally:
            self.live_bytes -= size

    def look_at_value(self, size: int) -> None:
        """Raise if a value of so many bytes is too long, however little else there is."""
        if self._bytes is not None and size > self._allowed_bytes // VALUE_SHARE:
            raise OutOfMemory(self._allowed_bytes, by_value=True)

    def take(self, size: int) -> None:
        """A value of so many bytes has been made, or is about to be."""
        self.look_at_value(size)
        if self._bytes is not None:
            if size > self._bytes - self.live_bytes:
                raise OutOfMemory(self._allowed_bytes)
            self._bytes -= size
            if size > PORTION // 16:
                self.look(0)


_in_force: ContextVar[Allowance | None] = ContextVar("everview_allowance", default=None)


def allowance() -> Allowance | None:
    """The allowance of what this thread evaluates; None if nothing is limited."""
    return _in_force.get()


def look_at_value(size: int) -> None:
    """Raise if a value of so many bytes, which is about to be made, is longer than is allowed."""
    if size > LONG and (allowed := _in_force.get()) is not None:
        allowed.look_at_value(size)


def look_ahead(size: int) -> None:
    """Raise if so many bytes more are too many; they are not counted, for they are held for a moment only."""
    if (allowed := _in_force.get()) is not None:
        allowed.look_ahead(0, size)


def take(size: int) -> None:
    """Raise if a value of so many bytes is more than is allowed."""
    if size > LONG and (allowed := _in_force.get()) is not None:
        allowed.take(size)


def take_value(value: Any) -> None:
    """Count a text, bytes, or a list, whose texts count as often as they are in it."""
    if isinstance(value, list | tuple):
        take(sum(50 + len(each) if isinstance(each, str | bytes) else 50 for each in value))
    else:
        take(len(value))


@contextmanager
def allowing(allowed: Allowance | None) -> Iterator[None]:
    """While inside, what this thread evaluates takes no more than this."""
    token = _in_force.set(allowed)
    try:
        yield
    finally:
        _in_force.reset(token)
