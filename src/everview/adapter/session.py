"""One client's session: its settings, its transaction, its cursors, and the statement that it runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.adapter.contract import Column, Notice, Prepared, Result, Status
from everview.adapter.errors import (
    ADMIN_SHUTDOWN,
    FAILED_TRANSACTION,
    PROGRAM_LIMIT,
    as_sql_errors,
    sql_error,
)
from everview.adapter.execute.context import Context, literals
from everview.adapter.execute.describe import described
from everview.adapter.execute.dispatch import execute
from everview.adapter.interrupts import Interrupts
from everview.adapter.moments import moment_of
from everview.adapter.secrets import shown_statement
from everview.adapter.settings import Settings, search_path
from everview.adapter.statements import nodes
from everview.adapter.statements.lexer import split
from everview.adapter.statements.parse import parse
from everview.adapter.surroundings import Surroundings
from everview.adapter.system.relation import SessionInfo
from everview.adapter.timeline import Hold
from everview.adapter.transaction import Transaction
from everview.compute.functions.contract import Failure
from everview.compute.ir.scalar import Literal
from everview.compute.ir.types import SqlType
from everview.compute.sql.errors import SqlError

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator
    from everview.adapter.cursors import Cursor

NOTICES_MAX = 1_000
PAUSE_S_MAX = 86_400.0
CURSORS_MAX = 100
STATEMENTS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Parsed:
    """A prepared statement as the adapter knows it."""

    node: nodes.Statement
    types: tuple[SqlType, ...]


class CoordinatorSession:
    """A session."""

    def __init__(
        self, coordinator: Coordinator, number: int, user: str, database: str, settings: Mapping[str, str]
    ) -> None:
        self._coordinator = coordinator
        self.number, self.user, self.database = number, user, database
        self.settings = Settings(settings)
        self.interrupts = Interrupts(coordinator.environment)
        self.cursors: dict[str, Cursor] = {}
        self.statements: dict[str, Prepared] = {}
        self.holds: list[Hold] = []  # of the statement that runs, beside the transaction's
        self._notices: list[Notice] = []
        self._transaction: Transaction | None = None
        self._batch = 1
        self._running: str | None = None
        self._closed = False
        self._connected_ms = coordinator.timeline.now_ms
        self._lock = threading.Lock()

    # The contract

    @property
    def status(self) -> Status:
        """Where the session stands."""
        transaction = self._transaction
        if transaction is None or not transaction.explicit:
            return "I"
        return "E" if transaction.failed else "T"

    @property
    def parameters(self) -> Mapping[str, str]:
        """The settings that clients are told of."""
        return {**self.settings.told, "session_authorization": self.user}

    def split(self, text: str) -> list[str]:
        """The statements of a text."""
        pieces = split(text)
        self._batch = max(1, len(pieces))
        return pieces

    def prepare(self, text: str, types: Sequence[SqlType | None] = ()) -> Prepared:
        """Parse and bind one statement."""
        with as_sql_errors():
            node = parse(text)
            if self._failed and not _ends(node):
                raise _refused()
            around = self.surroundings()
            columns, found = described(self._coordinator, self, node, around, types)
            return Prepared(text, found, columns, Parsed(node, found))

    def run(self, prepared: Prepared, values: Sequence[Any] = ()) -> Result:
        """Run a statement."""
        parsed = prepared.statement
        assert isinstance(parsed, Parsed)
        if self._closed:
            raise SqlError("08003", "the session is closed")
        if self._failed and not _ends(parsed.node):
            raise _refused()
        if len(values) != len(parsed.types):
            message = f"{len(parsed.types)} parameters are needed, and {len(values)} are given"
            raise SqlError("08P01", message)
        number = self.interrupts.begin(int(self.settings.get("statement_timeout")))
        self._running = prepared.text.strip()
        try:
            self._begin_statement(parsed.node)
            result = self.carry_out(parsed.node, literals(values, parsed.types))
            _check_as_described(prepared, result)
            return result
        except (Exception, Failure) as error:
            self.fail()
            raise sql_error(error) from error
        finally:
            self._running = None
            self.interrupts.end(number)
            self._release_holds()

    def carry_out(self, node: nodes.Statement, values: tuple[Literal, ...] = ()) -> Result:
        """Carry a statement out in the transaction that is under way."""
        return execute(Context(self, self._coordinator, self.surroundings(), values), node)

    def sync(self) -> None:
        """End the implicit transaction."""
        self._batch = 1
        transaction = self._transaction
        if transaction is None or transaction.explicit:
            return
        with as_sql_errors():
            self.end_transaction(commit=not transaction.failed)

    def fail(self) -> None:
        """The transaction has failed: nothing of it will be."""
        transaction = self._transaction
        if transaction is None:
            return
        transaction.failed = True
        if not transaction.savepoints:  # else it may go on from one
            transaction.written.clear()
            transaction.release()
        if not transaction.explicit:
            self.end_transaction(commit=False)

    def notices(self) -> list[Notice]:
        """What there is to tell."""
        with self._lock:
            told, self._notices = self._notices, []
        return told

    def cancel(self) -> None:
        """End what runs now."""
        self.interrupts.cancel()

    def close(self) -> None:
        """The client is gone."""
        if self._closed:
            return
        self._closed = True
        self.interrupts.close()
        if self._transaction is not None:
            self.end_transaction(commit=False)
        self._coordinator.disconnected(self)

    # For those who carry statements out

    @property
    def transaction(self) -> Transaction:
        """The transaction under way."""
        transaction = self._transaction
        if transaction is None:  # the session was closed while its statement ran
            raise SqlError(ADMIN_SHUTDOWN, "terminating connection due to administrator command")
        return transaction

    @property
    def alone(self) -> bool:
        """Whether the statement that runs is a transaction by itself."""
        transaction = self.transaction
        return not transaction.explicit and self._batch == 1 and not transaction.written and transaction.statements == 1

    def begin_block(self, isolation: str | None, read_only: bool | None) -> None:
        """BEGIN: the implicit transaction becomes a block."""
        transaction = self.transaction
        if transaction.explicit:
            self.notice("there is already a transaction in progress", "25001", "WARNING")
            return
        transaction.explicit = True
        transaction.isolation = isolation or transaction.isolation
        transaction.read_only = transaction.read_only if read_only is None else read_only

    def end_transaction(self, *, commit: bool) -> None:
        """Commit or roll back what is under way, and let go of it."""
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return
        for cursor in self.cursors.values():
            cursor.close()
        self.cursors.clear()
        done = False
        try:
            if commit and not transaction.failed:
                transaction.commit(self._coordinator.timeline, self._coordinator.environment, self.interrupts)
                done = True
        finally:
            transaction.release()
            self.settings.end(commit=done)

    def restart_transaction(self) -> None:
        """What was read is done with: a statement that stood alone has committed by itself."""
        transaction = self.transaction
        transaction.release()
        transaction.time = None
        transaction.read.clear()

    def refuse_in_block(self, what: str) -> None:
        """Raise if a block is under way, or several statements are one transaction."""
        transaction = self.transaction
        if transaction.explicit:
            hint = "end the block first; in drivers, set autocommit"
            raise SqlError("25001", f"{what} cannot be run inside a transaction block", hint=hint)
        if transaction.written:  # statements sent together: what was written before must not be lost by this one
            self.end_transaction(commit=True)
            self._transaction = self._new_transaction()

    @contextmanager
    def silently(self) -> Iterator[None]:
        """While inside, nothing is told: it was when the statement was sent."""
        with self._lock:
            told = list(self._notices)
        try:
            yield
        finally:
            with self._lock:
                self._notices = told

    def notice(self, message: str, sqlstate: str = "00000", severity: Any = "NOTICE") -> None:
        """Tell the client something beside the result."""
        with self._lock:
            if len(self._notices) < NOTICES_MAX:
                self._notices.append(Notice(severity, sqlstate, message))

    def surroundings(self) -> Surroundings:
        """What a statement is surrounded by now."""
        transaction = self._transaction
        now_ms = self._coordinator.timeline.now_ms if transaction is None else transaction.now_ms
        values = self.settings.all
        draft = None if transaction is None else transaction.draft
        return Surroundings(
            self._coordinator.catalog.state if draft is None else draft.state,
            self.user,
            self.database,
            search_path(values["search_path"]),
            moment_of(now_ms),
            values,
            self.number,
            self._configure,
            self._pause,
            self.interrupts.watching,
            self._coordinator.stored_bytes,
        )

    def _configure(self, name: str, value: str, local: bool) -> str:
        self.settings.set(name, value, local=local)
        return self.settings.get(name)

    def _pause(self, seconds: float) -> None:
        self.interrupts.wait(lambda: False, min(max(seconds, 0.0), PAUSE_S_MAX))

    def add_cursor(self, name: str, cursor: Cursor) -> None:
        """Keep a cursor until it is closed or the transaction ends."""
        if len(self.cursors) >= CURSORS_MAX:
            raise SqlError(PROGRAM_LIMIT, f"a session can have at most {CURSORS_MAX} cursors")
        self.cursors[name] = cursor

    @property
    def info(self) -> SessionInfo:
        """The session as others see it."""
        application = self.settings.get("application_name")
        running = None if self._running is None else shown_statement(self._running)
        return SessionInfo(self.number, self.user, self.database, application, self._connected_ms, running)

    def columns_of_cursor(self, name: str) -> tuple[Column, ...] | None:
        """What a cursor gives, if there is one."""
        cursor = self.cursors.get(name)
        return None if cursor is None else cursor.columns

    # Inside

    @property
    def _failed(self) -> bool:
        return self._transaction is not None and self._transaction.failed

    def _begin_statement(self, node: nodes.Statement) -> None:
        if self._transaction is None:
            self._transaction = self._new_transaction()
        self._transaction.statements += 1

    def _new_transaction(self) -> Transaction:
        self.settings.begin()
        read_only = self.settings.get("default_transaction_read_only") == "on"
        isolation = self.settings.get("transaction_isolation")
        return Transaction(False, isolation, self._coordinator.timeline.now_ms, read_only)

    def _release_holds(self) -> None:
        for hold in self.holds:
            hold.release()
        self.holds.clear()


def _check_as_described(prepared: Prepared, result: Result) -> None:
    """The client was told of the columns when the statement was prepared; definitions may have changed since."""
    columns = getattr(result, "columns", None)
    if prepared.columns is None or columns is None or not hasattr(result, "batches"):
        return
    if [column.type for column in columns] != [column.type for column in prepared.columns]:
        raise SqlError("0A000", "cached plan must not change result type", hint="prepare the statement again")


def _ends(node: nodes.Statement) -> bool:
    return isinstance(node, nodes.End | nodes.Empty | nodes.RollbackTo)


def _refused() -> SqlError:
    message = "current transaction is aborted, commands ignored until end of transaction block"
    return SqlError(FAILED_TRANSACTION, message)
