"""What clients write down: operations with the moments at which they began and ended, and what they did and saw.

Every row that is written is a *fact* of its own: a number that no other row of its group has. A group is a part of a
table that is read as a whole. So which writes a read has seen is a set of numbers for each group; it is kept as the
bits of an integer, for a long run has tens of thousands of such sets.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Group = tuple[str, int]  # a table, and which part of it
Facts = int  # a set of facts of one group: bit n for fact n
Outcome = Literal["ok", "failed", "unknown"]


def facts(numbers: Iterable[int]) -> Facts:
    """A set of facts."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def numbers(found: Facts) -> list[int]:
    """The facts of a set."""
    return [index for index in range(found.bit_length()) if found >> index & 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One transaction, as its client knows it.

    `failed` is certain to have done nothing; of an `unknown` one, whose server died, the client cannot tell, but from
    `ended` on it is settled. `sees` is all of each group that it names. `time` is the system's own time of what was
    seen; a read `as_of` a time of the past need not see what is there now.
    """

    worker: str
    began: float
    ended: float
    outcome: Outcome = "ok"
    adds: Mapping[Group, Facts] = field(default_factory=dict)
    removes: Mapping[Group, Facts] = field(default_factory=dict)
    sees: Mapping[Group, Facts] = field(default_factory=dict)
    twice: Mapping[Group, Facts] = field(default_factory=dict)  # seen more than once
    increments: Mapping[str, int | None] = field(default_factory=dict)  # counters, and what was read before
    counts: Mapping[str, int] = field(default_factory=dict)  # counters that were read
    shows: Mapping[str, Hashable] = field(default_factory=dict)  # what follows from `sees` if the system is right
    frontiers: Mapping[str, int] = field(default_factory=dict)  # up to which time each view is known to be complete
    through: frozenset[str] = frozenset()  # the views that were read
    time: int | None = None
    as_of: bool = False

    @property
    def reads(self) -> bool:
        """Whether it tells about the present."""
        return self.outcome == "ok" and not self.as_of


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something that cannot have happened if the system is right."""

    kind: str
    what: str
    operation: Operation

    def __str__(self) -> str:
        one = self.operation
        return f"{self.kind}: {self.what} ({one.worker}, {one.began:.4f} to {one.ended:.4f}, at {one.time})"
