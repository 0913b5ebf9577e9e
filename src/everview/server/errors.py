"""Reports of errors to clients, and errors of the protocol. `adapter.errors` maps errors to SQLSTATEs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from everview.adapter.errors import CONNECTION_FAILURE, PROTOCOL_VIOLATION, Defect, sql_error
from everview.compute.sql.errors import SqlError

Severity: TypeAlias = Literal["ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "DEBUG", "INFO", "LOG"]


class ProtocolViolation(SqlError):
    """A message that breaks the protocol's rules. The session continues, because the end of the message is known."""

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(PROTOCOL_VIOLATION, message, detail=detail, hint=hint)


class ConnectionEnd(SqlError):
    """The connection ends with this error, which the client gets as FATAL if it is still there."""


class ClientGone(ConnectionEnd):
    """The client closed the connection without Terminate."""

    def __init__(self) -> None:
        super().__init__(CONNECTION_FAILURE, "unexpected end of the client's connection")


@dataclass(frozen=True, slots=True)
class Report:
    """The fields of an ErrorResponse or NoticeResponse."""

    severity: Severity
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None
    where: str | None = None


def is_defect(error: BaseException) -> bool:
    """Whether the error is unexpected, so that its traceback belongs in the log."""
    return isinstance(sql_error(error), Defect)


def report_of(error: BaseException) -> Report:
    severity: Severity = "FATAL" if isinstance(error, ConnectionEnd) else "ERROR"
    said = sql_error(error)
    where = getattr(error, "where", None)
    return Report(severity, said.sqlstate, said.message, said.detail, said.hint, said.position, where)
