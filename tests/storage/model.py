"""What storage means, in fifty lines: lists of updates and sets of capabilities, nothing durable, nothing fast."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

FOREVER = 2**63 - 1
Update = tuple[tuple[object, ...], int, int]


@dataclass
class Collection:
    """One collection: its updates, and who holds which frontier (a number, or a clock and a distance behind it)."""

    initial: int
    updates: list[Update] = field(default_factory=list)
    held: dict[str, int | tuple[str, int, int]] = field(default_factory=dict)
    floors: dict[str, int] = field(default_factory=dict)
    width: int = 2  # columns that it has by now

    def frontier(self, kind: str, clocks: dict[str, int]) -> int:
        held = [at(h, clocks) for token, h in self.held.items() if token[0] == kind]
        return max(min(held), self.floors[kind]) if held else self.floors[kind]

    def settle(self, clocks: dict[str, int]) -> None:
        self.floors = {kind: self.frontier(kind, clocks) for kind in "rw"}

    def release(self, token: str, clocks: dict[str, int]) -> None:
        self.settle(clocks)
        del self.held[token]
        if not any(other[0] == token[0] for other in self.held):
            self.floors[token[0]] = FOREVER

    def contents(self, time: int) -> Counter[tuple[object, ...]]:
        rows: Counter[tuple[object, ...]] = Counter()
        for row, when, diff in self.updates:
            if when <= time:
                rows[row] += diff
        return Counter({row: count for row, count in rows.items() if count})

    def changes(self, lower: int, upper: int) -> Counter[tuple[tuple[object, ...], int]]:
        changes: Counter[tuple[tuple[object, ...], int]] = Counter()
        for row, when, diff in self.updates:
            if lower <= when < upper:
                changes[row, when] += diff
        return Counter({key: count for key, count in changes.items() if count})


def at(held: int | tuple[str, int, int], clocks: dict[str, int]) -> int:
    """The frontier held now."""
    return held if isinstance(held, int) else max(held[2], clocks[held[0]] - held[1])
