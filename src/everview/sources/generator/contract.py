"""What a load generator is: tables, and for each tick the changes of their rows.

Tick 0 is the start, with what there is from the beginning; tick n happens n intervals later. The changes of a tick are
a function of the generator's options and of n alone. So the contents at a time are definite: whoever computes them, and
after however many restarts, gets the same.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from everview.sources.contract import Table

Row: TypeAlias = tuple[Any, ...]
Changes: TypeAlias = Mapping[str, Sequence[tuple[Row, int]]]  # by table: rows and diffs


class Generator(Protocol):
    """Makes changes, tick by tick. A generator of one table has it under the name of the source itself: ''."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """What it fills."""
        ...

    def changes(self, tick: int) -> Changes:
        """The changes at a tick."""
        ...


def rng(seed: int, *what: object) -> random.Random:
    """Randomness that belongs to one thing, whenever it is looked at."""
    return random.Random(":".join(map(str, (seed, *what))))
