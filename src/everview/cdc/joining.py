"""What a stream tells of a collection's contents, as a sum: a sink that joins a stream compares it with its own.

Who goes on with a stream tells changes alone. If the contents that they change are not those of the stream, every
change may be sound by itself and the stream is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from everview.cdc.contract import Closed, Update
from everview.cdc.errors import CdcError
from everview.cdc.reader import Reader
from everview.cdc.rows import Row
from everview.cdc.times import bound_of

_NUMBERS = (int, float, Decimal)
_SALT = 5


@dataclass(slots=True)
class Digest:
    """How many rows there are, and two sums over them. Equal contents have equal ones, in whatever order they come."""

    rows: int = 0
    plain: int = 0
    salted: int = 0

    def add(self, updates: Iterable[Update[Row]]) -> None:
        """Add rows as often as their diffs say."""
        for row, _, diff in updates:
            self.rows += diff
            self.plain += diff * hash(row)
            # Python gives -1 and -2 the same hash, so a second one is taken of other numbers.
            moved = tuple(value + _SALT if isinstance(value, _NUMBERS) else value for value in row)
            self.salted += diff * hash(moved)


def told_before(closed: Iterable[Closed[Row]], reader: Reader[Row], before: int) -> Digest:
    """The contents just before a time, of what a reader gives of a stream from its beginning on."""
    found = Digest()
    for each in closed:
        found.add(update for update in each.updates if update[1] < before)  # type: ignore[operator]
    bound = bound_of(reader.frontier)
    if bound is not None and bound < before:
        stalls = reader.stalls()
        detail = f"time {stalls[0].time}: {stalls[0].reason}" if stalls else f"it is complete before {bound}"
        message = f"the stream cannot be joined, for it is not complete before {before}"
        raise CdcError(message, detail=detail, hint="everview cdc verify tells what is wrong with it")
    return found
