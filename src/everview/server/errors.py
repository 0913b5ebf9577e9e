"""Errors as clients are told of them: every kind of EverviewError is mapped to its SQLSTATE here, and only here.

The adapter raises SqlErrors, which bring their own; the mapping is for what reaches the server without passing there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from everview.compute.engine.contract import EngineError, NotSupported, PlanRefused, RunFailed
from everview.compute.engine.java import JavaUnavailable
from everview.compute.functions.contract import Failure
from everview.compute.sql.errors import SqlError
from everview.errors import EverviewError
from everview.storage import errors as storage

Severity: TypeAlias = Literal["ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "DEBUG", "INFO", "LOG"]

PROTOCOL_VIOLATION = "08P01"
CONNECTION_FAILURE = "08006"
INVALID_AUTHORIZATION = "28000"
INVALID_PASSWORD = "28P01"
TOO_MANY_CONNECTIONS = "53300"
LIMIT_EXCEEDED = "54000"
OBJECT_NOT_IN_STATE = "55000"
QUERY_CANCELED = "57014"
ADMIN_SHUTDOWN = "57P01"
INTERNAL_ERROR = "XX000"

# The nearest kind among an error's own and its bases counts.
_SQLSTATES: dict[type[BaseException], str] = {
    storage.StorageFull: "53100",
    storage.StorageReadOnly: "58030",
    storage.Determinate: "58030",
    # Not of class 40: drivers repeat what fails with those, and this may have happened.
    storage.Indeterminate: "08007",
    storage.UpperMismatch: "40001",
    storage.Fenced: ADMIN_SHUTDOWN,
    storage.Corruption: "XX001",
    storage.NewerFormat: "0A000",
    storage.Canceled: QUERY_CANCELED,
    storage.UnknownId: "42704",
    storage.NotReadable: OBJECT_NOT_IN_STATE,
    storage.StorageError: INTERNAL_ERROR,
    NotSupported: "0A000",
    PlanRefused: INTERNAL_ERROR,
    RunFailed: "58000",
    EngineError: "58000",
    JavaUnavailable: "58000",
    EverviewError: INTERNAL_ERROR,
    MemoryError: "53200",
    RecursionError: "54001",
}


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


def sqlstate_of(error: BaseException) -> str:
    """The SQLSTATE of an error of any kind."""
    if isinstance(error, SqlError | Failure):
        return error.sqlstate
    return next((_SQLSTATES[kind] for kind in type(error).__mro__ if kind in _SQLSTATES), INTERNAL_ERROR)


def is_defect(error: BaseException) -> bool:
    """Whether nobody foresaw this error, so that its traceback belongs into the log."""
    return not isinstance(error, EverviewError | Failure | MemoryError | RecursionError)


def report_of(error: BaseException) -> Report:
    """What to tell the client about an error."""
    state = sqlstate_of(error)
    severity: Severity = "FATAL" if isinstance(error, ConnectionEnd) else "ERROR"
    if isinstance(error, EverviewError):
        position = error.position if isinstance(error, SqlError) else None
        where = getattr(error, "where", None)
        return Report(severity, state, error.message, error.detail, error.hint, position, where)
    if isinstance(error, Failure):
        return Report(severity, state, error.message)
    if isinstance(error, MemoryError):
        return Report(severity, state, "out of memory")
    if isinstance(error, RecursionError):
        return Report(severity, state, "statement too complex", detail="it is nested too deeply")
    return Report(
        severity, state, "internal error", f"{type(error).__name__}: {error}", "the server's log has the traceback"
    )
