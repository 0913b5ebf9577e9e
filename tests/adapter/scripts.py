"""SQL tests as text: statements and what they answer.

    > SELECT a, b FROM t            a statement, over as many lines as it takes
    a|b                             the names of its columns
    1|NULL                          its rows, in PostgreSQL's text form

    > INSERT INTO t VALUES (1)      one that gives no rows
    INSERT 0 1                      its tag

    > SELECT 1 / 0                  one that fails
    ! 22012 division by zero        SQLSTATE and message; further lines for detail and hint are not compared

A line `@name` before a statement says which session runs it. `?` in place of the answer takes any. A line `% words`
before a statement marks it, for whoever runs the script to heed; one that stands by itself marks all that follow.
Sessions are made by whoever runs the script, so the same text can go to the adapter or over the wire.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from everview.adapter.contract import CopyIn, CopyOut, Done
from everview.adapter.coordinator import Coordinator
from everview.adapter.session import CoordinatorSession
from everview.compute.functions.output import to_text
from everview.compute.sql.errors import SqlError

FOLDER = Path(__file__).parent / "sql"


@dataclass(frozen=True, slots=True)
class Step:
    """One statement and its answer."""

    line: int
    session: str
    statement: str
    expected: tuple[str, ...]
    marks: frozenset[str] = frozenset()


class Client(Protocol):
    """Runs one statement and gives its answer as lines."""

    def __call__(self, statement: str) -> list[str]: ...


def parse(text: str) -> list[Step]:
    """The steps of a script."""
    steps: list[Step] = []
    session, first = "main", 0
    statement: list[str] = []
    expected: list[str] = []
    always: set[str] = set()
    marks: set[str] = set()

    def finish() -> None:
        if statement:
            step = Step(first, session, "\n".join(statement), tuple(expected), frozenset(always | marks))
            steps.append(step)
            statement.clear()
            expected.clear()
        elif marks:
            always.update(marks)
        marks.clear()

    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            finish()
        elif line.startswith("@"):
            finish()
            session = line[1:].strip()
        elif line.startswith("%"):
            finish()
            marks.update(line[1:].split())
        elif line.startswith(("> ", "  ")) and not expected:
            if line.startswith("> "):
                if statement:
                    finish()
                first = number
            statement.append(line[2:])
        else:
            expected.append(line.rstrip())
    finish()
    return steps


def check(steps: list[Step], client: Callable[[str], Client]) -> None:
    """Run a script; `client` gives the session of a name."""
    clients: dict[str, Client] = {}
    for step in steps:
        if step.session not in clients:
            clients[step.session] = client(step.session)
        answer = "\n".join(clients[step.session](step.statement)).splitlines()
        found = [line.rstrip() for line in answer if line.strip()]
        if step.expected != ("?",):
            shown = "\n".join(_comparable(step, found))
            wanted = "\n".join(_comparable(step, list(step.expected)))
            assert shown == wanted, f"line {step.line}: {step.statement}\n--- expected\n{wanted}\n--- found\n{shown}"


def _comparable(step: Step, lines: list[str]) -> list[str]:
    """Rows without an order are the same in any order."""
    return lines if "order by" in step.statement.lower() or ";" in step.statement else sorted(lines)


class SessionClient:
    """A session of an adapter in this process."""

    def __init__(self, coordinator: Coordinator, user: str = "everview") -> None:
        self.session: CoordinatorSession = coordinator.connect(user, "everview", {})

    def __call__(self, statement: str) -> list[str]:
        try:
            lines = [line for piece in self.session.split(statement) for line in self._run(piece)]
            self.session.sync()
            return lines
        except SqlError as error:
            self.session.fail()
            self.session.sync()
            return [f"! {error.sqlstate} {error.message}"]

    def _run(self, piece: str) -> list[str]:
        result = self.session.run(self.session.prepare(piece))
        if isinstance(result, Done):
            return [] if result.tag is None else [result.tag]
        if isinstance(result, CopyOut):
            result = result.rows
        assert not hasattr(result, "finish"), f"COPY FROM has no place in a script: {CopyIn}"
        lines = ["|".join(column.name for column in result.columns)]
        for batch in result.batches():
            for row in batch:
                cells = zip(row, result.columns, strict=True)
                lines.append("|".join("NULL" if value is None else to_text(value, c.type) for value, c in cells))
        return lines
