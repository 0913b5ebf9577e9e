"""SQLSTATEs of the adapter, and failures of the layers below as errors of a statement: the one place that maps them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from everview.cdc import errors as cdc
from everview.compute.engine.contract import EngineError, EvaluationFailed, NotSupported
from everview.compute.functions.contract import Failure
from everview.compute.sql.errors import SqlError
from everview.errors import EverviewError
from everview.flow import errors as flow
from everview.storage import errors as storage

ACTIVE_TRANSACTION, NO_ACTIVE_TRANSACTION, FAILED_TRANSACTION = "25001", "25P01", "25P02"
READ_ONLY_TRANSACTION, INVALID_TRANSACTION = "25006", "25000"
INVALID_CURSOR_NAME, DUPLICATE_CURSOR, INVALID_STATEMENT_NAME, DUPLICATE_STATEMENT = "34000", "42P03", "26000", "42P05"
DUPLICATE_TABLE, DUPLICATE_OBJECT, DUPLICATE_SCHEMA, DUPLICATE_DATABASE = "42P07", "42710", "42P06", "42P04"
DEPENDENT_OBJECTS, WRONG_OBJECT_TYPE, UNDEFINED_OBJECT = "2BP01", "42809", "42704"
NOT_NULL_VIOLATION, NUMERIC_OUT_OF_RANGE, INVALID_PARAMETER_VALUE = "23502", "22003", "22023"
QUERY_CANCELED, TOO_MANY_CONNECTIONS, PROGRAM_LIMIT, CONFIGURATION_LIMIT = "57014", "53300", "54000", "53400"
OBJECT_NOT_READY, INTERNAL, ADMIN_SHUTDOWN, DISK_FULL = "55000", "XX000", "57P01", "53100"
COMPLETION_UNKNOWN, INVALID_AUTHORIZATION, UNDEFINED_DATABASE, INSUFFICIENT_PRIVILEGE = (
    "40003",
    "28000",
    "3D000",
    "42501",
)
INVALID_TIMESTAMP, CONNECTION_FAILURE = "22008", "08006"

_STORAGE: tuple[tuple[type[storage.StorageError], str], ...] = (
    (storage.StorageFull, DISK_FULL),
    (storage.StorageReadOnly, "25006"),
    (storage.Indeterminate, COMPLETION_UNKNOWN),
    (storage.Fenced, ADMIN_SHUTDOWN),
    (storage.Canceled, ADMIN_SHUTDOWN),
    (storage.Corruption, "XX001"),
    (storage.NotReadable, OBJECT_NOT_READY),
    (storage.UnknownId, UNDEFINED_OBJECT),
    (storage.Determinate, "58030"),
)
# Of sinks and change streams: what was asked for, what the data hold, and what the other side does not do.
_DELIVERY: tuple[tuple[type[EverviewError], str], ...] = (
    (flow.InvalidMaterialization, INVALID_PARAMETER_VALUE),
    (flow.NullKey, NOT_NULL_VIOLATION),
    (flow.DuplicateKey, "23505"),
    (flow.Retracted, "23000"),
    (flow.ReductionFailed, "22000"),
    (flow.HistoryLost, OBJECT_NOT_READY),
    (flow.FencedOff, "55006"),
    (flow.DriverFailed, CONNECTION_FAILURE),
    (flow.ProtocolViolation, "08P01"),
    (flow.MissingLibrary, "0A000"),
    (cdc.InvalidUse, INVALID_PARAMETER_VALUE),
    (cdc.SchemaDiffers, "42804"),
    (cdc.TransportFailed, CONNECTION_FAILURE),
    (cdc.TooMuchOpen, PROGRAM_LIMIT),
    (cdc.CdcError, "22000"),
)


def sql_error(error: Exception) -> SqlError:
    """Any failure as the error of a statement."""
    if isinstance(error, SqlError):
        return error
    if isinstance(error, Failure):
        return SqlError(error.sqlstate, error.message)
    if isinstance(error, EverviewError):
        return SqlError(_state(error), error.message, detail=error.detail, hint=error.hint)
    return SqlError(INTERNAL, f"internal error: {type(error).__name__}: {error}")


def _state(error: EverviewError) -> str:
    for kind, state in (*_STORAGE, *_DELIVERY):
        if isinstance(error, kind):
            return state
    if isinstance(error, NotSupported):
        return "0A000"
    if isinstance(error, EvaluationFailed) and error.sqlstate is not None:
        return error.sqlstate
    if isinstance(error, EngineError):
        return "XX000"
    return INTERNAL


@contextmanager
def as_sql_errors() -> Iterator[None]:
    """Within the block, whatever fails is raised as an error of the statement."""
    try:
        yield
    except SqlError:
        raise
    except Exception as error:
        raise sql_error(error) from error


def canceled(by: str = "user request") -> SqlError:
    """The statement was ended from outside."""
    return SqlError(QUERY_CANCELED, f"canceling statement due to {by}")
