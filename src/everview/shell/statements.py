"""Splits lines into statements: each ends with a semicolon outside of quotes and comments."""

from __future__ import annotations

from everview.compute.sql.errors import SqlError
from everview.compute.sql.lexer import tokens

_STREAMING = ("subscribe", "tail")


class Statements:
    """Takes lines, and gives statements as they become complete."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    @property
    def begun(self) -> bool:
        return any(line.strip() for line in self._lines)

    @property
    def quoted(self) -> bool:
        """Whether the text ends inside a quote or a comment."""
        try:
            tokens("\n".join(self._lines))
        except SqlError:
            return True
        return False

    def forget(self) -> None:
        self._lines = []

    def add(self, line: str) -> list[str]:
        """The statements that this line completes, each with its semicolon."""
        self._lines.append(line)
        if ";" not in line:
            return []
        found, rest = complete("\n".join(self._lines))
        if found:
            self._lines = [rest] if rest.strip() else []
        return found

    def rest(self) -> str:
        """Take the text that no semicolon has ended."""
        text, self._lines = "\n".join(self._lines), []
        return text if is_something(text) else ""


def complete(text: str) -> tuple[list[str], str]:
    """The complete statements of a text, and the text after the last."""
    try:
        words = tokens(text)
    except SqlError:
        return [], text  # a quote or a comment is still open
    found, start, first = [], 0, True
    for word in words:
        if word.is_symbol(";"):
            if not first:
                found.append(text[start : word.end + 1].strip())
            start, first = word.end + 1, True
        elif word.kind != "end":
            first = False
    return found, text[start:]


def is_something(text: str) -> bool:
    """Whether a text has more than blanks and comments."""
    try:
        return len(tokens(text)) > 1
    except SqlError:
        return True


def is_streaming(statement: str) -> bool:
    """Whether the rows of a statement never end."""
    try:
        return tokens(statement)[0].is_word(*_STREAMING)
    except SqlError:
        return False
