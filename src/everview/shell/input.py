"""Input of the shell: lines of a text, or of a person at a terminal with history and completion."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everview.shell.client import Client
    from everview.shell.session import Session


class TextLines:
    """Lines of a text or a file."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines: Iterator[str] = iter(lines)

    def read(self, *, begun: bool, copying: bool = False) -> str | None:
        line = next(self._lines, None)
        return None if line is None else line.rstrip("\r\n")


class TypedLines:
    """Lines that a person types."""

    def __init__(self, client: Client, database: str) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, InMemoryHistory
        from prompt_toolkit.lexers import PygmentsLexer
        from prompt_toolkit.shortcuts import CompleteStyle
        from pygments.lexers.sql import PostgresLexer

        from everview.shell.completion import Words

        self._client, self._database = client, database
        self._words = Words()
        self._session: Session | None = None
        kept = history_file()
        self._prompt: PromptSession[str] = PromptSession(
            history=InMemoryHistory() if kept is None else FileHistory(str(kept)),
            completer=self._words,
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            lexer=PygmentsLexer(PostgresLexer),
        )

    def completing_for(self, session: Session) -> None:
        """Complete the names that the session's statements can use."""
        self._session = session

    def read(self, *, begun: bool, copying: bool = False) -> str | None:
        self._refresh()
        mark = {"I": "=", "T": "*", "E": "!"}[self._client.status]
        prompt = ">> " if copying else f"{self._database}{'-' if begun else mark}> "
        try:
            # Data may have tabs in it, which are for completion otherwise.
            return input(prompt) if copying else self._prompt.prompt(prompt)
        except EOFError:
            return None

    def _refresh(self) -> None:
        """Ask the server for names again, if a statement may have changed them and the session is free to ask."""
        from everview.shell.completion import NAMES

        session = self._session
        if session is not None and session.tags_changed and self._client.status == "I":
            session.tags_changed = False
            self._words.names = tuple(sorted({row[0] for row in self._client.values(NAMES) if row[0]}))


def history_file() -> Path | None:
    """The file with the history of typed lines; None if it cannot be written."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(state, "everview", "sql_history")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
    except OSError:
        return None
    return path
