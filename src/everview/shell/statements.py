"""Lines put together to statements: each ends with a semicolon outside of quotes and comments."""

from __future__ import annotations

from everview.adapter.statements.lexer import tokens
from everview.compute.sql.errors import SqlError

_STREAMING = ("subscribe", "tail")


class Statements:
    """Takes lines, gives statements as they become complete."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    @property
    def begun(self) -> bool:
        """Whether there is something that is not complete yet."""
        return any(line.strip() for line in self._lines)

    @property
    def quoted(self) -> bool:
        """Whether what comes next is inside of a quote or a comment."""
        try:
            tokens("\n".join(self._lines))
        except SqlError:
            return True
        return False

    def forget(self) -> None:
        """There is nothing that was begun."""
        self._lines = []

    def add(self, line: str) -> list[str]:
        """The statements that are complete with this line, each with its semicolon."""
        self._lines.append(line)
        if ";" not in line:
            return []
        found, rest = complete("\n".join(self._lines))
        if found:
            self._lines = [rest] if rest.strip() else []
        return found

    def rest(self) -> str:
        """What is left, which no semicolon has ended; nothing is left afterwards."""
        text, self._lines = "\n".join(self._lines), []
        return text if is_something(text) else ""


def complete(text: str) -> tuple[list[str], str]:
    """The statements of a text that are complete, and what comes after the last."""
    try:
        words = tokens(text)
    except SqlError:
        return [], text  # a quote or a comment is still open
    found, start, first = [], 0, True
    for word in words:
        if word.is_symbol(";"):
            if not first:
                found.append(text[start : word.end].strip())
            start, first = word.end, True
        elif word.kind != "end":
            first = False
    return found, text[start:]


def is_something(text: str) -> bool:
    """Whether there is more than blanks and comments."""
    try:
        return len(tokens(text)) > 1
    except SqlError:
        return True


def is_streaming(statement: str) -> bool:
    """Whether its rows come for as long as one listens."""
    try:
        return tokens(statement)[0].is_word(*_STREAMING)
    except SqlError:
        return False
