"""Output of the shell: tables for a person, tab-separated text into a pipe, CSV or JSON; errors with a caret."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Literal, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from everview.shell.client import Chunk, Complete, CopyData, Event, Header, Problem, Row

Format = Literal["auto", "table", "tsv", "csv", "json"]

NULL_SHOWN, NULL_PLAIN = "·", "\\N"
LINE_CHARACTERS_MAX = 60  # of a line of SQL that is shown, on each side of the place that is meant
_NUMBERS = {20, 21, 23, 26, 700, 701, 1700}
_JSON_PLAIN = {20, 21, 23, 700, 701}


class Printer:
    """Prints the results of statements."""

    def __init__(self, form: Format = "auto", out: TextIO | None = None, *, timing: bool = False) -> None:
        self._out = out or sys.stdout
        console = Console(file=self._out, highlight=False)
        self.form: Format = ("table" if console.is_terminal else "tsv") if form == "auto" else form
        self._console = console
        self._errors = Console(stderr=True, highlight=False, soft_wrap=True)
        self.timing = timing

    def show(self, statement: str, events: Iterable[Event], *, streaming: bool = False) -> bool:
        """Show the results of a statement; gives whether all went well."""
        began = time.perf_counter()
        header: Header | None = None
        rows: list[Row] = []
        widths: list[int] = []
        well = True
        for event in events:
            match event:
                case Header():
                    header, rows = event, []
                    if streaming:
                        widths = self._begin(header)
                case Chunk(found):
                    if streaming and header is not None:
                        widths = self._go_on(header, found, widths)
                    else:
                        rows.extend(found)
                case Complete(tag):
                    if header is not None and not streaming:
                        self._table(header, rows)
                    elif header is None:
                        self._say(tag)
                    header = None
                case CopyData(data):
                    self._out.write(data.decode(errors="replace"))
                case Problem():
                    well = well and event.severity not in ("ERROR", "FATAL", "PANIC")
                    # Ctrl-C is how one stops listening; nothing has failed.
                    if streaming and event.sqlstate == "57014":
                        well = True
                        self._say("stopped")
                    else:
                        self.problem(event, statement)
        self._out.flush()
        if self.timing:
            self._errors.print(Text(f"time: {1000 * (time.perf_counter() - began):.1f} ms", style="dim"))
        return well

    def problem(self, problem: Problem, statement: str = "") -> None:
        """An error or a notice: message, the place in the statement, detail and hint."""
        failed = problem.severity in ("ERROR", "FATAL", "PANIC")
        text = Text()
        text.append(f"{problem.severity}: ", style="bold red" if failed else "bold yellow")
        text.append(problem.message)
        if failed:
            text.append(f" ({problem.sqlstate})", style="dim")
        if problem.position is not None:
            text.append("\n" + pointed(statement, problem.position))
        for name, said in (("DETAIL", problem.detail), ("HINT", problem.hint)):
            if said:
                text.append(f"\n{name}: ", style="bold")
                text.append(said)
        self._out.flush()
        self._errors.print(text)

    # Inside

    def _say(self, tag: str) -> None:
        if self.form == "table" and tag:
            self._console.print(Text(tag, style="dim"))

    def _table(self, header: Header, rows: Sequence[Row]) -> None:
        if self.form != "table":
            self._write(header, rows, first=True)
            return
        shown = [[_cell(value) for value in row] for row in rows]
        widths = [
            max([cell_len(name), *(_width(row[number]) for row in shown)]) for number, name in enumerate(header.names)
        ]
        self._head(header, widths)
        for row in shown:
            self._row(header, row, widths)
        count = f"{len(rows):,} row{'s' * (len(rows) != 1)}"
        self._console.print(Text(f"({count})\n", style="dim"))

    def _head(self, header: Header, widths: Sequence[int]) -> None:
        titles = [
            _padded(name, width, right=kind in _NUMBERS)
            for name, width, kind in zip(header.names, widths, header.types, strict=True)
        ]
        self._console.print(Text(" " + "   ".join(titles), style="bold"), soft_wrap=True)
        self._console.print(Text("─" + "─┬─".join("─" * width for width in widths) + "─", style="dim"), soft_wrap=True)

    def _row(self, header: Header, cells: Sequence[str], widths: Sequence[int]) -> None:
        """Print a row, over as many lines as its highest cell has."""
        pieces = [cell.split("\n") for cell in cells]
        for line in range(max((len(each) for each in pieces), default=0)):
            parts = [each[line] if line < len(each) else "" for each in pieces]
            text = " │ ".join(
                _padded(part, width, right=kind in _NUMBERS)
                for part, width, kind in zip(parts, widths, header.types, strict=True)
            )
            # Written as it is: rich would take thousands of rows a second, and this takes a hundred times as many.
            self._out.write(f" {text.rstrip()}\n")

    def _begin(self, header: Header) -> list[int]:
        widths = [max(cell_len(name), 13 if name == "mz_timestamp" else 7) for name in header.names]
        if self.form == "table":
            self._head(header, widths)
        elif self.form != "json":
            self._write(header, [], first=True)
        self._out.flush()
        return widths

    def _go_on(self, header: Header, rows: Sequence[Row], widths: list[int]) -> list[int]:
        """Print more rows of a subscription; columns become wider as needed."""
        if self.form != "table":
            self._write(header, rows, first=False)
        for row in rows if self.form == "table" else ():
            cells = [_cell(value) for value in row]
            widths = [max(width, _width(cell)) for width, cell in zip(widths, cells, strict=True)]
            self._row(header, cells, widths)
        self._out.flush()
        return widths

    def _write(self, header: Header, rows: Sequence[Row], *, first: bool) -> None:
        if self.form == "json":
            for row in rows:
                named = zip(header.names, row, header.types, strict=True)
                shown = {name: _plain(value, kind) for name, value, kind in named}
                self._out.write(json.dumps(shown, ensure_ascii=False) + "\n")
        elif self.form == "csv":
            writer = csv.writer(self._out, lineterminator="\n")
            writer.writerows([*([header.names] if first else []), *rows])
        else:
            names = ["\t".join(header.names)] if first else []
            lines = ["\t".join(NULL_PLAIN if value is None else _escaped(value) for value in row) for row in rows]
            self._out.writelines(f"{line}\n" for line in names + lines)


def pointed(statement: str, position: int) -> str:
    """The line of the statement around a position, which counts from 1, and a caret below it."""
    place = min(max(0, position - 1), len(statement))
    start = statement.rfind("\n", 0, place) + 1
    end = statement.find("\n", place)
    line, column = statement[start : end if end >= 0 else len(statement)], place - start
    lead = f"LINE {statement.count(chr(10), 0, place) + 1}: "
    if column > LINE_CHARACTERS_MAX:
        cut = column - LINE_CHARACTERS_MAX
        line, column, lead = line[cut:], LINE_CHARACTERS_MAX, lead + "…"
    if len(line) > column + LINE_CHARACTERS_MAX:
        line = line[: column + LINE_CHARACTERS_MAX] + "…"
    before = line[:column].replace("\t", " ")
    return f"{lead}{before}{line[column:]}\n{' ' * (len(lead) + cell_len(before))}^"


def _cell(value: str | None) -> str:
    # Control characters are shown, not executed.
    if value is None:
        return NULL_SHOWN
    return (
        value if value.isprintable() else "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in value)
    )


def _width(cell: str) -> int:
    return cell_len(cell) if "\n" not in cell else max(map(cell_len, cell.split("\n")))


def _padded(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if right else text + blanks


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _plain(value: str | None, kind: int) -> object:
    if value is None:
        return None
    if kind == 16:
        return value == "t"
    if kind in _JSON_PLAIN and value.lower() not in ("nan", "infinity", "-infinity"):
        return json.loads(value)
    if kind in (114, 3802):
        return json.loads(value)
    return value
