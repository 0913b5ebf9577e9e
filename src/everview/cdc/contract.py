"""What change data capture promises: messages that may be repeated, reordered, rebatched and resent, and lose nothing.

A stream describes one history: a set of updates `(data, time, diff)`, at most one for each `(data, time)`, none with
diff 0. Two kinds of statements are made about it, each only once it is certain to stay true:

* `Updates`: these updates are in the history.
* `Progress`: at the times beyond `lower` and not beyond `upper`, the history has exactly `counts` updates.

Any pile of such statements, in any order and number, by any number of writers, determines a prefix of the history: a
time is *closed* when progress statements reach from the start of the stream over it and it has, as all times before it,
as many distinct updates as stated. A reader gives every update at a closed time exactly once, in an order in which time
never goes back, and remembers only what is open. Statements that contradict one another keep their time open: it is
reported and never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from everview.timely.antichain import Antichain
from everview.timely.lattice import Time

D = TypeVar("D")

Update: TypeAlias = tuple[D, Time, int]
Frontier: TypeAlias = Antichain[Time]


@dataclass(frozen=True, slots=True)
class Updates(Generic[D]):
    """Updates of the history, some of them, in any order."""

    updates: Sequence[Update[D]]


@dataclass(frozen=True, slots=True)
class Progress:
    """The number of updates at each time beyond `lower` and not beyond `upper`; times that are not listed have none."""

    lower: Frontier
    upper: Frontier
    counts: tuple[tuple[Time, int], ...] = ()


Message: TypeAlias = Updates[D] | Progress


MESSAGE_UPDATES = 1000


def in_messages(updates: Sequence[Update[D]], size: int = MESSAGE_UPDATES) -> Iterator[Updates[D]]:
    return (Updates(updates[at : at + size]) for at in range(0, len(updates), size))


@dataclass(frozen=True, slots=True)
class Closed(Generic[D]):
    """All updates at times that were open and are not beyond `frontier` any more, by time."""

    updates: list[Update[D]]
    frontier: Frontier


@dataclass(frozen=True, slots=True)
class ReaderCheckpoint(Generic[D]):
    """What a reader knows: it has reported all before `frontier`, and of what is open it knows these messages.

    So whoever reads `messages` from `frontier` on knows the same, at whatever parallelism and in whatever codec.
    """

    frontier: Frontier
    messages: tuple[Message[D], ...]


MISSING, SURPLUS, COUNTS, DIFFS, GAP = "missing updates", "surplus updates", "counts differ", "diffs conflict", "gap"
NEGATIVE, OVERFLOW = "negative multiplicity", "multiplicity too large"
UNJUDGED = "too many times to judge"  # where they are partially ordered


@dataclass(frozen=True, slots=True)
class Stall:
    """Why a time is open that progress statements have reached, or why statements wait.

    `reason` is one of the words above. Missing updates and gaps may still come; the others need a person.
    """

    reason: str
    time: Time
    expected: int | None = None
    arrived: int | None = None
    detail: str = ""

    @property
    def curable(self) -> bool:
        """Whether messages that are still to come can end it."""
        return self.reason in (MISSING, GAP)
