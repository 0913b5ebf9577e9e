"""A session of the shell: runs statements, and its own few commands, from lines of any input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from everview.shell.client import Client
from everview.shell.output import Printer
from everview.shell.statements import Statements, is_streaming

HELP = """\
  statement;   run a statement, over as many lines as it takes
  SUBSCRIBE …; rows come as they change; Ctrl-C stops listening
  \\d           list all objects; \\dt tables, \\dv views, \\dm materialized views, \\di indexes, \\dn schemas,
               \\l databases
  \\d name      the columns of a relation
  \\timing      turn the timing of statements on or off
  \\r           discard the statement typed so far
  \\?           this help
  \\q           leave, as Ctrl-D does
  Tab completes words and names, the arrow keys go back in history, Ctrl-C cancels what runs"""
COPY_ENDS = "\\."
# As psql calls them, and what the statement for it shows.
SHOWN = {
    "\\d": "OBJECTS",
    "\\dt": "TABLES",
    "\\dv": "VIEWS",
    "\\dm": "MATERIALIZED VIEWS",
    "\\di": "INDEXES",
    "\\dn": "SCHEMAS",
    "\\l": "DATABASES",
}


class Lines(Protocol):
    """An input of lines. `begun` says whether a statement is incomplete."""

    def read(self, *, begun: bool, copying: bool = False) -> str | None:
        """The next line without its end; None at the end of input. KeyboardInterrupt discards what is incomplete."""


class Leave(Exception):
    """The user typed \\q."""


class Session:
    """Runs what it reads; with `stop_at_errors` it ends at the first statement that fails."""

    def __init__(self, client: Client, printer: Printer, *, stop_at_errors: bool) -> None:
        self._client, self._printer = client, printer
        self._stop_at_errors = stop_at_errors
        self.tags_changed = True  # whether names may have changed since they were last asked for

    def run(self, lines: Lines) -> bool:
        """Run everything; gives whether all statements went well."""
        statements, well = Statements(), True
        while True:
            try:
                line = lines.read(begun=statements.begun)
            except KeyboardInterrupt:
                statements = Statements()
                continue
            if line is None:
                break
            try:
                well = self._line(line, statements, lines) and well
            except Leave:
                return well
            if (not well and self._stop_at_errors) or self._client.lost:
                return False
        rest = statements.rest()
        return (self._statement(rest, lines) if rest else True) and well

    def _line(self, line: str, statements: Statements, lines: Lines) -> bool:
        # No SQL begins with a backslash, so a command may stand in the middle of a statement, but not in its quotes.
        if line.lstrip().startswith("\\") and not statements.quoted:
            return self._command(line.strip(), statements, lines)
        for statement in statements.add(line):
            if not self._statement(statement, lines) and self._stop_at_errors:
                return False
        return True

    def _statement(self, statement: str, lines: Lines) -> bool:
        streaming = is_streaming(statement)
        events = self._client.run(statement, _copied(lines), streaming=streaming)
        self.tags_changed = True
        return self._printer.show(statement, events, streaming=streaming)

    def _command(self, line: str, statements: Statements, lines: Lines) -> bool:
        command, *rest = line.rstrip(";").split(maxsplit=1)
        match command:
            case "\\q":
                raise Leave
            case "\\?" | "\\h":
                print(HELP)
            case "\\r":
                statements.forget()
            case "\\d" if rest:
                return self._statement(f"SHOW COLUMNS FROM {rest[0]}", lines)
            case _ if command in SHOWN:
                return self._statement(f"SHOW {SHOWN[command]}", lines)
            case "\\timing":
                self._printer.timing = not self._printer.timing
                print(f"timing is {'on' if self._printer.timing else 'off'}")
            case _:
                print(f"there is no command {command}; \\? lists the commands")
                return False
        return True


def _copied(lines: Lines) -> Iterator[str]:
    """The data of a COPY: the lines up to `\\.`."""
    while (line := lines.read(begun=False, copying=True)) is not None and line != COPY_ENDS:
        yield line
