"""Errors in SQL text: a SQLSTATE, and where in the text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from everview.errors import EverviewError


class SqlError(EverviewError):
    """What is wrong with a statement. `position` counts characters from 1, as the wire protocol does."""

    def __init__(
        self,
        sqlstate: str,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.sqlstate = sqlstate
        self.position = position


SYNTAX_ERROR = "42601"
UNDEFINED_TABLE, UNDEFINED_COLUMN, UNDEFINED_FUNCTION = "42P01", "42703", "42883"
AMBIGUOUS_COLUMN, DUPLICATE_ALIAS, DUPLICATE_COLUMN = "42702", "42712", "42701"
GROUPING_ERROR, WINDOWING_ERROR = "42803", "42P20"
DATATYPE_MISMATCH, INVALID_COLUMN_REFERENCE = "42804", "42P10"
FEATURE_NOT_SUPPORTED = "0A000"
INVALID_PARAMETER = "22023"
UNDEFINED_OBJECT = "42704"
STATEMENT_TOO_COMPLEX = "54001"


def unsupported(what: str, position: int | None = None, hint: str | None = None) -> SqlError:
    """A construct that PostgreSQL has and Everview does not."""
    return SqlError(FEATURE_NOT_SUPPORTED, f"{what} is not supported", position=position, hint=hint)


def too_complex(detail: str = "it is nested too deeply") -> SqlError:
    """A statement that needs more depth than there is."""
    hint = "nest less deeply: name parts of it in WITH queries or views, or split it into several statements"
    return SqlError(STATEMENT_TOO_COMPLEX, "statement too complex", detail=detail, hint=hint)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint with the names that come nearest, if any does."""
    near = difflib.get_close_matches(name, sorted(set(known)), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else None
