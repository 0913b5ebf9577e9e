"""Which SQLSTATE each kind of error has: the only map from errors to SQLSTATEs. Sessions and the server both use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from everview.adapter.sealing import KeyTrouble, SecretUnavailable
from everview.cdc import errors as cdc
from everview.compute.allowance import OutOfMemory, TooManyRows
from everview.compute.cancel import Ended
from everview.compute.engine.contract import EngineError, EvaluationFailed, NotSupported, PlanRefused, TooComplex
from everview.compute.engine.java import JavaUnavailable
from everview.compute.functions.contract import Failure
from everview.compute.sql.errors import DATATYPE_MISMATCH, FEATURE_NOT_SUPPORTED, SqlError, too_complex
from everview.errors import EverviewError
from everview.flow import errors as flow
from everview.reach.addresses import AddressRefused
from everview.reach.files import PlaceRefused
from everview.sources import errors as sources
from everview.storage import errors as storage
from everview.timely.consolidate import MultiplicityOverflow

ACTIVE_TRANSACTION, NO_ACTIVE_TRANSACTION, FAILED_TRANSACTION = "25001", "25P01", "25P02"
READ_ONLY_TRANSACTION, INVALID_TRANSACTION = "25006", "25000"
INVALID_CURSOR_NAME, DUPLICATE_CURSOR, INVALID_STATEMENT_NAME, DUPLICATE_STATEMENT = "34000", "42P03", "26000", "42P05"
DUPLICATE_TABLE, DUPLICATE_OBJECT, DUPLICATE_SCHEMA, DUPLICATE_DATABASE = "42P07", "42710", "42P06", "42P04"
DEPENDENT_OBJECTS, WRONG_OBJECT_TYPE, UNDEFINED_OBJECT = "2BP01", "42809", "42704"
NOT_NULL_VIOLATION, NUMERIC_OUT_OF_RANGE, INVALID_PARAMETER_VALUE = "23502", "22003", "22023"
QUERY_CANCELED, TOO_MANY_CONNECTIONS, PROGRAM_LIMIT, CONFIGURATION_LIMIT = "57014", "53300", "54000", "53400"
OBJECT_NOT_READY, INTERNAL, ADMIN_SHUTDOWN, LOCK_NOT_AVAILABLE = "55000", "XX000", "57P01", "55P03"
INVALID_AUTHORIZATION, INVALID_PASSWORD, UNDEFINED_DATABASE, INSUFFICIENT_PRIVILEGE = "28000", "28P01", "3D000", "42501"
CONNECTION_FAILURE, PROTOCOL_VIOLATION, TRANSACTION_RESOLUTION_UNKNOWN = "08006", "08P01", "08007"
DISK_FULL, OUT_OF_MEMORY, STATEMENT_TOO_COMPLEX, SERIALIZATION_FAILURE = "53100", "53200", "54001", "40001"
SYSTEM_ERROR, IO_ERROR = "58000", "58030"
OBJECT_IN_USE, CONFIG_FILE_ERROR = "55006", "F0000"

# Every kind of error that a statement can end with. The nearest kind among an error's own class and its bases counts.
_SQLSTATES: dict[type[BaseException], str] = {
    storage.StorageFull: DISK_FULL,
    storage.Determinate: IO_ERROR,
    # Not of class 40: drivers repeat statements that fail with those, and this one may have had its effect.
    storage.Indeterminate: TRANSACTION_RESOLUTION_UNKNOWN,
    storage.UpperMismatch: SERIALIZATION_FAILURE,
    storage.Fenced: ADMIN_SHUTDOWN,
    storage.Canceled: ADMIN_SHUTDOWN,  # by the environment, as it closes
    storage.Corruption: "XX001",
    storage.NewerFormat: FEATURE_NOT_SUPPORTED,
    storage.NotReadable: OBJECT_NOT_READY,
    storage.UnknownId: UNDEFINED_OBJECT,
    storage.DiffOverflow: NUMERIC_OUT_OF_RANGE,
    MultiplicityOverflow: NUMERIC_OUT_OF_RANGE,
    Ended: QUERY_CANCELED,
    OutOfMemory: OUT_OF_MEMORY,
    TooManyRows: PROGRAM_LIMIT,
    NotSupported: FEATURE_NOT_SUPPORTED,
    TooComplex: STATEMENT_TOO_COMPLEX,
    PlanRefused: INTERNAL,
    EngineError: SYSTEM_ERROR,
    JavaUnavailable: SYSTEM_ERROR,
    # Sinks and change streams: what was asked for, what the data hold, and what the other side does not do.
    flow.InvalidMaterialization: INVALID_PARAMETER_VALUE,
    flow.NullKey: NOT_NULL_VIOLATION,
    flow.DuplicateKey: "23505",
    flow.Retracted: "23000",
    flow.ReductionFailed: "22000",
    flow.HistoryLost: OBJECT_NOT_READY,
    flow.FencedOff: OBJECT_IN_USE,
    flow.Drifted: "22000",
    flow.DriverFailed: CONNECTION_FAILURE,
    flow.ProtocolViolation: PROTOCOL_VIOLATION,
    flow.MissingLibrary: FEATURE_NOT_SUPPORTED,
    cdc.InvalidUse: INVALID_PARAMETER_VALUE,
    cdc.SchemaDiffers: DATATYPE_MISMATCH,
    cdc.TransportFailed: CONNECTION_FAILURE,
    cdc.TooMuchOpen: PROGRAM_LIMIT,
    cdc.CdcError: "22000",
    sources.UpstreamUnreachable: CONNECTION_FAILURE,
    sources.NotReady: OBJECT_NOT_READY,
    KeyTrouble: CONFIG_FILE_ERROR,
    SecretUnavailable: UNDEFINED_OBJECT,
    AddressRefused: INSUFFICIENT_PRIVILEGE,
    PlaceRefused: INSUFFICIENT_PRIVILEGE,
    EverviewError: INTERNAL,
    MemoryError: OUT_OF_MEMORY,
    RecursionError: STATEMENT_TOO_COMPLEX,
}


class Defect(SqlError):
    """An error that nobody foresaw: its traceback, which the cause carries, belongs into the log."""

    def __init__(self, error: BaseException) -> None:
        detail, hint = f"{type(error).__name__}: {error}", "the server's log has the traceback"
        super().__init__(INTERNAL, "internal error", detail=detail, hint=hint)


def sqlstate_of(error: BaseException) -> str:
    if isinstance(error, SqlError | Failure):
        return error.sqlstate
    if isinstance(error, EvaluationFailed) and error.sqlstate is not None:
        return error.sqlstate
    return next((_SQLSTATES[kind] for kind in type(error).__mro__ if kind in _SQLSTATES), INTERNAL)


def sql_error(error: BaseException) -> SqlError:
    """Any failure as the error of a statement."""
    state = sqlstate_of(error)
    match error:
        case SqlError():
            return error
        case Failure():
            return SqlError(state, error.message)
        case EverviewError():
            return SqlError(state, error.message, detail=error.detail, hint=error.hint)
        case MemoryError():
            return SqlError(state, "out of memory")
        case RecursionError():
            return too_complex()
        case _:
            return Defect(error)


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
