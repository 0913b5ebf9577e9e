"""The progress of a run: the rows that it has read, of all rows that it is going to read.

As with the wish to end a run, nobody hands this down: it is in force while something is run, by `reporting`. Engines
that know what a run will read say so, piece by piece, and how to ask for what has been read of a piece. Those that do
not say nothing, and then nothing is known.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

SHARE_TOLD_MIN = 0.02  # of rows, from which on it is told how long the rest may take


@dataclass
class _Piece:
    total: int
    finished: bool = False
    read: list[Callable[[], int | None]] = field(default_factory=list)


class Progress:
    """Of one run, or of one run after another: each begins anew."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pieces: dict[str, _Piece] = {}

    def expect(self, rows: Mapping[str, int]) -> None:
        """A run begins that reads so many rows for each of its pieces."""
        with self._lock:
            self._pieces = {name: _Piece(total) for name, total in rows.items()}

    @contextmanager
    def piece(self, name: str, read: Callable[[], int | None]) -> Iterator[None]:
        """While inside a piece is computed, and `read` tells how many rows it has read, if that is known."""
        with self._lock:
            piece = self._pieces.setdefault(name, _Piece(0))
            piece.read = [read]
        yield
        with self._lock:
            piece.finished = True

    def rows(self) -> tuple[int | None, int | None]:
        """How many rows were read, and how many there are to read; never more than all, and None if not known."""
        with self._lock:
            pieces = list(self._pieces.values())
        total = sum(piece.total for piece in pieces)
        if not total:
            return None, None
        done = 0
        for piece in pieces:
            if piece.finished:
                done += piece.total
            elif piece.read:
                found = piece.read[0]()
                if found is None:
                    return None, total
                done += min(found, piece.total)
        return done, total


@dataclass(frozen=True, slots=True)
class Hydration:
    """How far a hydration is: the rows that it has read, of how many, as far as these are known, and for how long.

    A collection that is read for several things counts as often.
    """

    rows_read: int | None
    rows_total: int | None
    running_s: float

    @property
    def left_s(self) -> float | None:
        """How long it may still take, if it goes on as before; None where too little is known to tell."""
        if self.rows_read is None or self.rows_total is None or self.rows_read >= self.rows_total:
            return None  # when all is read, it is being sorted and written
        if self.rows_read < SHARE_TOLD_MIN * self.rows_total:
            return None
        return self.running_s * (self.rows_total - self.rows_read) / self.rows_read

    def __str__(self) -> str:
        said = [f"for {self.running_s:.0f} s"]
        if self.rows_total is not None and self.rows_read is not None:
            share = 100 * self.rows_read // self.rows_total
            said.insert(0, f"{self.rows_read:,} of {self.rows_total:,} rows read ({share}%)")
        if self.left_s is not None:
            said.append(f"about {self.left_s:.0f} s left")
        return ", ".join(said)


_in_force: ContextVar[Progress | None] = ContextVar("everview_progress", default=None)


def progress() -> Progress | None:
    """The progress of what this thread runs; None if nobody follows it."""
    return _in_force.get()


@contextmanager
def reporting(to: Progress) -> Iterator[None]:
    """While inside, what this thread runs is reported here."""
    token = _in_force.set(to)
    try:
        yield
    finally:
        _in_force.reset(token)
