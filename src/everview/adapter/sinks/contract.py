"""What a sink is while it runs, whatever it delivers into.

A delivery goes on by itself once it is started. It holds what it needs of its collection's past, and goes on from its
last commit after a restart. What fails is a value of its status, and is tried again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from everview.storage.contract import Command

RUNNING, STALLED, PAUSED, STARTING, FENCED = "running", "stalled", "paused", "starting", "fenced off"
DRIFTED, ENDED = "drifted", "ended"


@dataclass(frozen=True, slots=True)
class SplitStatus:
    """One split: the destination is exact for every time before `frontier`; None if that is not known yet."""

    name: str
    frontier: int | None
    lag_ms: int | None
    transactions: int
    rows: int
    failures: int
    error: str | None
    retry_ms: int | None = None  # when what failed is tried again, since 1970


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """A sink at one instant."""

    state: str
    frontier: int | None
    lag_ms: int | None
    error: str | None
    splits: tuple[SplitStatus, ...]
    rows_by: tuple[int, ...] = ()  # documents delivered of each collection, in order

    @property
    def retry_ms(self) -> int | None:
        """When something that failed is tried again, the earliest first."""
        return min((each.retry_ms for each in self.splits if each.retry_ms is not None), default=None)


class Delivery(Protocol):
    """A sink that was opened."""

    def start(self) -> None: ...

    def halt(self) -> None:
        """Stop, until it is started again: a destination that does not answer is not waited for."""

    def status(self) -> DeliveryStatus: ...

    def let_go(self) -> list[Command]:
        """The commands that drop it with all that it holds here; it is halted."""

    def forget(self) -> str | None:
        """It was dropped: let the destination forget it; tells what could not be removed there."""
