"""How times, sizes and tables look: drawn for a person at a terminal, tab-separated and exact into a pipe."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from everview.storage.shard import FOREVER

# Times that are taken for milliseconds since the epoch: those of the years 2000 to 2199.
WALL_CLOCK_MS = range(946_684_800_000, 7_258_118_400_000)
NULL = "\\N"  # where a column of plain text has no value


@dataclass(frozen=True, slots=True)
class Time:
    """A time or a frontier; `brief` leaves out the date."""

    at: int
    brief: bool = False


@dataclass(frozen=True, slots=True)
class Size:
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Count:
    number: int


Cell: TypeAlias = Time | Size | Count | str | None


def utc_text(time: int) -> str | None:
    """The date and time of day of a time that looks like milliseconds since the epoch."""
    if time not in WALL_CLOCK_MS:
        return None
    return datetime.fromtimestamp(time // 1000, UTC).strftime(f"%Y-%m-%d %H:%M:%S.{time % 1000:03d}Z")


def duration_text(duration_ms: int) -> str:
    """A duration in the unit that suits it."""
    for unit, unit_ms in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if duration_ms >= unit_ms:
            return f"{duration_ms / unit_ms:.3g} {unit}"
    return f"{duration_ms} ms"


def size_text(size_bytes: int) -> str:
    """A number of bytes in the unit that suits it."""
    size, units = float(size_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size_bytes} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def pretty(cell: Cell) -> Text:
    """A cell at a terminal."""
    match cell:
        case None:
            return Text("·", style="dim")
        case Time(at, brief) if at == FOREVER:
            return Text("∅" if brief else "∅ (closed)")
        case Time(at, brief):
            text = Text(str(at))
            if not brief and (utc := utc_text(at)):
                text.append(f"\n{utc.partition('.')[0]}Z", style="dim")
            return text
        case Size(size_bytes):
            return Text(size_text(size_bytes))
        case Count(number):
            return Text(f"{number:,}")
    return Text(cell)


def plain(cell: Cell) -> str:
    """A cell in a line of tab-separated text."""
    match cell:
        case None:
            return NULL
        case Time(at):
            return "∅" if at == FOREVER else str(at)
        case Size(number) | Count(number):
            return str(number)
    return cell


class Printer:
    """Prints tables: drawn at a terminal, tab-separated into anything else."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # not every encoding has all signs
        self._console = Console(highlight=False)
        self.pretty = self._console.is_terminal
        self._tables = 0

    def title(self, text: str) -> None:
        """Print a line above a table, at a terminal only."""
        if self.pretty:
            self._console.print(Text(text, style="bold"))

    def note(self, text: str) -> None:
        """Print a line below a table; to standard error if the table goes into a pipe."""
        if self.pretty:
            self._console.print(Text(text, style="dim"))
        else:
            print(text, file=sys.stderr)

    def fields(self, fields: Sequence[tuple[str, Cell]]) -> None:
        """Print names with one value each."""
        self._separate()
        if not self.pretty:
            self._lines([name, plain(cell)] for name, cell in fields)
            return
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
        for name, cell in fields:
            utc = utc_text(cell.at) if isinstance(cell, Time) else None
            text = pretty(cell).split("\n")[0]
            table.add_row(Text(name, style="dim"), text, Text(utc or "", style="dim"))
        self._console.print(table)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]], right: Sequence[str] = ()) -> None:
        """Print a table; the columns named in `right` are aligned to the right."""
        self._separate()
        if not self.pretty:
            self._lines([list(columns)])
            self._lines([plain(cell) for cell in row] for row in rows)
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        for name in columns:
            number = name in right
            table.add_column(Text(name), justify="right" if number else "left", no_wrap=number, overflow="fold")
        for row in rows:
            table.add_row(*map(pretty, row))
        self._console.print(table)

    def _separate(self) -> None:
        if self._tables and not self.pretty:
            print()
        self._tables += 1

    @staticmethod
    def _lines(rows: Iterable[Sequence[str]]) -> None:
        for row in rows:
            print("\t".join(row))
