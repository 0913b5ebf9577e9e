"""The one base of every error that Everview raises on purpose.

An error says what happened (`message`), what exactly (`detail`) and what to do next (`hint`), in
PostgreSQL's manner: lower case, no full stop. The server maps kinds to SQLSTATEs in one place.
"""

from __future__ import annotations


def text_of(error: Exception) -> str:
    """An error as people read it; one that nobody foresaw with its type."""
    return str(error) if isinstance(error, EverviewError) else f"{type(error).__name__}: {error}"


class EverviewError(Exception):
    """A failure with a message, and optionally a detail and a hint, fit to show to a person."""

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        parts = [self.message]
        if self.detail:
            parts.append(f"detail: {self.detail}")
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)
