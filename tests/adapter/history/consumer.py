"""What a client of a durable subscription was told, and whether that can be: the same each time, and no gap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

Rows = Counter[tuple[Any, ...]]  # how often each row came, less how often it went


class Consumer:
    """Keeps what it was told by time, as a client would that drops what it knows. It may die at any moment.

    A conversation has progress rows, so its first row tells where it goes on: at the last acknowledgement, or at one
    that was tried and not answered.
    """

    def __init__(self) -> None:
        self.told: dict[int, Rows] = {}
        self.acknowledged = 0
        self.conversations = 0
        self.anomalies: list[str] = []
        self._tried = 0

    def hear(self, rows: Iterable[Sequence[Any]]) -> int:
        """One conversation: (time, whether it is a progress, diff, data …). Gives the last progress."""
        rows = list(rows)
        if not rows:
            return self.acknowledged
        self.conversations += 1
        progress = int(rows[0][0])
        if self.acknowledged or progress == self._tried:
            if progress not in (self.acknowledged, self._tried):
                self.anomalies.append(f"goes on at {progress}, and {self.acknowledged} was acknowledged")
            self.acknowledged = progress
        new: dict[int, Rows] = {}
        for time, progressed, diff, *data in rows:
            if int(time) < progress:
                self.anomalies.append(f"{data} at {time} comes below the progress {progress}")
            if progressed:
                progress = int(time)
            else:
                new.setdefault(int(time), Counter())[tuple(data)] += int(diff)
        for time, found in new.items():
            if time < progress:
                if self.told.get(time, found) != found:
                    self.anomalies.append(f"at {time} something else was told before")
                self.told[time] = found
        missing = {time for time in self.told if self.acknowledged <= time < progress} - new.keys()
        if missing:
            self.anomalies.append(f"told before and not again: {sorted(missing)[:5]}")
        return progress

    def acknowledging(self, before: int) -> None:
        """An acknowledgement is under way: from now on it may have happened."""
        self._tried = before

    def answered(self) -> None:
        """The acknowledgement has happened."""
        self.acknowledged = self._tried

    def contents(self, at: int | None = None) -> Rows:
        """What follows from all that was told, up to a time."""
        total: Rows = Counter()
        for time, rows in self.told.items():
            if at is None or time <= at:
                total.update(rows)
        return Counter({row: count for row, count in total.items() if count})
