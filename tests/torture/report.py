"""What a scenario tried, how often, and what went wrong: lines of one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeAlias

ANOMALIES_SHOWN = 5
LONG_S = 60  # a soak of less says nothing about memory


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was tried."""

    what: str
    attempts: int
    anomalies: Sequence[str] = ()
    figures: str = ""


@dataclass(frozen=True, slots=True)
class Size:
    """How much of each thing is tried."""

    kills: int  # without Spark, whose start takes long
    spark_kills: int
    messages: int
    silent: int  # clients that are slow or silent, of each kind
    faults: int  # bursts of failing writes
    jumps: int  # of the wall clock
    soak_s: float
    spark: bool = False

    @property
    def long(self) -> bool:
        """Whether there is time to look for longer."""
        return self.soak_s >= LONG_S


SHORT = Size(kills=1, spark_kills=0, messages=3_000, silent=4, faults=3, jumps=2, soak_s=3)
LONG = Size(kills=190, spark_kills=10, messages=1_000_000, silent=100, faults=200, jumps=100, soak_s=1_800, spark=True)

Scenario: TypeAlias = Callable[[Size, Random, Path], Iterator[Line]]


@dataclass(slots=True)
class Report:
    """Lines as they come, and the table in the end."""

    lines: list[tuple[str, Line]] = field(default_factory=list)

    @property
    def anomalies(self) -> int:
        """How many there were."""
        return sum(len(line.anomalies) for _, line in self.lines)

    def add(self, scenario: str, line: Line) -> None:
        """Take a line, and show it at once."""
        self.lines.append((scenario, line))
        print(f"  {line.what}: {line.attempts:,} tried, {_count(line)}{_figures(line)}", flush=True)
        for each in line.anomalies[:ANOMALIES_SHOWN]:
            print(f"    ANOMALY {each}", flush=True)

    def table(self) -> str:
        """All lines."""
        rows = [("scenario", "what", "tried", "anomalies", "figures")]
        rows += [
            (scenario, line.what, f"{line.attempts:,}", str(len(line.anomalies)), line.figures)
            for scenario, line in self.lines
        ]
        widths = [max(len(row[index]) for row in rows) for index in range(4)]
        shown = []
        for number, (scenario, what, tried, found, figures) in enumerate(rows):
            cells = (scenario.ljust(widths[0]), what.ljust(widths[1]), tried.rjust(widths[2]), found.rjust(widths[3]))
            shown.append("  ".join((*cells, figures)).rstrip())
            if number == 0:
                shown.append("-" * len(shown[0]))
        return "\n".join(shown)


def _count(line: Line) -> str:
    return "no anomaly" if not line.anomalies else f"{len(line.anomalies)} ANOMALIES"


def _figures(line: Line) -> str:
    return f" ({line.figures})" if line.figures else ""
