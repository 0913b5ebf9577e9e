"""Errors as clients are told of them, and the errors of the protocol. `adapter.errors` maps errors to SQLSTATEs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from everview.adapter.errors import CONNECTION_FAILURE, PROTOCOL_VIOLATION, Defect, sql_error
from everview.compute.sql.errors import SqlError

Severity: TypeAlias = Literal["ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "DEBUG", "INFO", "LOG"]


class ProtocolViolation(SqlError):
    """A message that breaks the protocol's rules; the session goes on, since the message's end is known."""

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(PROTOCOL_VIOLATION, message, detail=detail, hint=hint)


class ConnectionEnd(SqlError):
    """The connection ends with this error, said as FATAL where anyone is left to hear it."""


class ClientGone(ConnectionEnd):
    """The client went away without a word."""

    def __init__(self) -> None:
        super().__init__(CONNECTION_FAILURE, "unexpected end of the client's connection")


@dataclass(frozen=True, slots=True)
class Report:
    """What an ErrorResponse or NoticeResponse says."""

    severity: Severity
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None
    where: str | None = None


def is_defect(error: BaseException) -> bool:
    """Whether nobody foresaw this error, so that its traceback belongs into the log."""
    return isinstance(sql_error(error), Defect)


def report_of(error: BaseException) -> Report:
    """What to tell the client about an error."""
    severity: Severity = "FATAL" if isinstance(error, ConnectionEnd) else "ERROR"
    said = sql_error(error)
    where = getattr(error, "where", None)
    return Report(severity, said.sqlstate, said.message, said.detail, said.hint, said.position, where)
