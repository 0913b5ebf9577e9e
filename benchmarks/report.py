"""How figures are shown: what was measured, beside what, and how that compares with what we aim for."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement. `ratio` is how many times worse than the reference we are, or what `aim` is about."""

    what: str
    ours: str
    reference: str
    ratio: float
    aim: float
    unit: str = "x"

    @property
    def met(self) -> bool:
        """Whether the aim is reached."""
        return self.ratio <= self.aim


@dataclass
class Report:
    """Collects figures and says what is being measured meanwhile."""

    console: Console = field(default_factory=Console)
    figures: list[Figure] = field(default_factory=list)

    def add(self, figure: Figure) -> None:
        """Show a figure as soon as it is there."""
        self.figures.append(figure)
        mark = "[green]met[/]" if figure.met else "[yellow]not met[/]"
        self.console.print(
            f"  {figure.what}: {figure.ours}  beside  {figure.reference}  ({figure.ratio:.2f}{figure.unit}, {mark})"
        )

    def title(self, text: str) -> None:
        """Say what comes next."""
        self.console.print(f"\n[bold]{text}[/]")

    def note(self, text: str) -> None:
        """Say something that is not a figure."""
        self.console.print(f"  [dim]{text}[/]")

    def table(self) -> None:
        """All figures once more, side by side."""
        machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
        table = Table(title=f"{machine}, Python {platform.python_version()}")
        for name in ("figure", "ours", "reference of the same run", "ratio", "aim", ""):
            table.add_column(name, justify="right" if name in ("ratio", "aim") else "left")
        for f in self.figures:
            table.add_row(
                f.what, f.ours, f.reference, f"{f.ratio:.2f}{f.unit}", f"≤ {f.aim:g}{f.unit}", "✓" if f.met else "✗"
            )
        self.console.print()
        self.console.print(table)


def seconds(work: Callable[[], object], repeat: int = 1) -> float:
    """The least time that `work` took, of a few tries."""
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best
