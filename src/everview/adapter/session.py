"""One client's session: its settings, its transaction, its cursors, and the statement that it runs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from everview.adapter.bound_statement import BoundStatement
from everview.adapter.contract import Carried, Column, IdleLimit, Lookup, Notice, Prepared, Result, Status, Value
from everview.adapter.errors import ADMIN_SHUTDOWN, FAILED_TRANSACTION, PROGRAM_LIMIT, as_sql_errors, sql_error
from everview.adapter.execute.context import Context, literals
from everview.adapter.execute.describe import described
from everview.adapter.execute.dispatch import execute
from everview.adapter.index_lookup import IndexLookup, index_lookup_of, literal_template
from everview.adapter.interrupts import Interrupts
from everview.adapter.read_holds import ReadHold
from everview.adapter.secrets import shown_statement
from everview.adapter.settings import LOCAL_MEMORY, MESSAGES, Settings, search_path
from everview.adapter.statement_cache import TEXT_CHARACTERS_MAX, Key, size_of
from everview.adapter.statement_context import Meaning, StatementContext, meaning_of, timestamp_of
from everview.adapter.statements import nodes
from everview.adapter.statements.parse import parse
from everview.adapter.system.relation import SessionInfo
from everview.adapter.transaction import Transaction
from everview.compute.allowance import Allowance, allowing
from everview.compute.cancel import Cancellation, Ended, cancelable
from everview.compute.functions.contract import Failure
from everview.compute.ir.scalar import Literal
from everview.compute.ir.types import INT4, SqlType
from everview.compute.sql.errors import SqlError
from everview.compute.sql.lexer import split

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator
    from everview.adapter.cursors import Cursor

NOTICES_MAX = 1_000
PAUSE_S_MAX = 86_400.0
CURSORS_MAX = 100
_END = "; \t\r\n"  # a text means the same with or without it


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A prepared statement as the adapter knows it: what it says, with its query or change bound if it has one."""

    node: nodes.Statement
    bound: BoundStatement | None


class CoordinatorSession:
    """A session."""

    def __init__(
        self,
        coordinator: Coordinator,
        number: int,
        user: str,
        database: str,
        settings: Mapping[str, str],
        *,
        superuser: bool = False,
    ) -> None:
        self._coordinator = coordinator
        self.number, self.user, self.database = number, user, database
        self.settings = Settings(settings, superuser=superuser)
        self.interrupts = Interrupts(coordinator.environment)
        self.cursors: dict[str, Cursor] = {}
        self.carried: Callable[[str], Carried | None] = lambda _: None
        self.together = False
        self.statements: dict[str, Prepared] = {}
        self.holds: list[ReadHold] = []  # of the statement that runs, beside the transaction's
        self._notices: list[Notice] = []
        self._transaction: Transaction | None = None
        self._batch = 1
        self._running: str | None = None
        # What was prepared last, and the time that this took, which counts as time of the statement when it is run.
        self._prepared: weakref.ref[Prepared] | None = None
        self._spent_s = 0.0
        self._closed = False
        self._told_event = 0  # of the clock
        self._connected_ms = coordinator.timeline.now_ms
        self._lock = threading.Lock()

    # The contract

    @property
    def status(self) -> Status:
        transaction = self._transaction
        if transaction is None or not transaction.explicit:
            return "I"
        return "E" if transaction.failed else "T"

    @property
    def parameters(self) -> Mapping[str, str]:
        return {**self.settings.told, "session_authorization": self.user}

    @property
    def idle_limit(self) -> IdleLimit | None:
        if self._transaction is None:
            limit = int(self.settings.get("idle_session_timeout")) / 1000
            return IdleLimit(limit, "57P05", "terminating connection due to idle-session timeout") if limit else None
        limit = int(self.settings.get("idle_in_transaction_session_timeout")) / 1000
        message = "terminating connection due to idle-in-transaction timeout"
        return IdleLimit(limit, "25P03", message) if limit else None

    def split(self, text: str) -> Sequence[str]:
        self._batch, self._spent_s, began = 1, 0.0, monotonic()
        if self.known(text, ()) is not None:
            return [text]
        with as_sql_errors(), self._timed(), self._supervised():
            pieces = split(text)
        self._batch, self._spent_s = max(1, len(pieces)), monotonic() - began
        return pieces

    def prepare(self, text: str, types: Sequence[SqlType | None] = ()) -> Prepared:
        spent_s, began = 0.0 if self._prepared is not None else self._spent_s, monotonic()
        self._prepared, self._spent_s = None, 0.0
        with as_sql_errors(), self._timed(spent_s), self._supervised():
            prepared = None if self._failed else self.known(text, types)
            if prepared is None:
                node = parse(text)
                self._check_not_failed(node)
                prepared = self._bind(text, node, types, self.statement_context())
        if self._running is None:
            self._prepared, self._spent_s = weakref.ref(prepared), spent_s + monotonic() - began
        return prepared

    def _bind(
        self, text: str, node: nodes.Statement, given: Sequence[SqlType | None], around: StatementContext
    ) -> Prepared:
        """A statement as it is to be run; it is kept if all that it depends on is in its key."""
        planner, text = self._coordinator.planner, str(text).rstrip(_END)
        found = described(planner, self, node, around, given)
        cursor = node.cursor if isinstance(node, nodes.Fetch) else None
        parsed = Parsed(node, found.bound)
        weight = len(text) + (found.bound.weight if found.bound is not None else 0)
        prepared = Prepared(text, found.parameters, found.columns, parsed, cursor, weight)
        if isinstance(node, nodes.Query | nodes.Modify) and found.bound is not None:
            planner.cache.put(Key(text, tuple(given), found.bound.meaning), prepared, size_of(text, weight))
        return prepared

    def known(self, text: str, types: Sequence[SqlType | None] = ()) -> Prepared | None:
        """A statement that was prepared before by any session, if nothing has changed since that it depends on."""
        if len(text) > TEXT_CHARACTERS_MAX:
            return None
        key = Key(text.rstrip(_END), tuple(types), self._meaning)
        known: Prepared | None = self._coordinator.planner.cache.get(key)
        return known

    @property
    def _meaning(self) -> Meaning:
        """What the meaning of a statement depends on now."""
        draft = None if self._transaction is None else self._transaction.draft
        catalog = self._coordinator.catalog.state if draft is None else draft.state
        return meaning_of(catalog, self.database, self.settings.all)

    @contextmanager
    def reading(self, prepared: Prepared) -> Iterator[None]:
        spent_s, began = self._spent_on(prepared), monotonic()
        with as_sql_errors(), self._timed(spent_s), self._supervised():
            yield
        self._prepared, self._spent_s = weakref.ref(prepared), spent_s + monotonic() - began

    def _spent_on(self, prepared: Prepared) -> float:
        """The seconds that preparing the statement, and reading its values, took if it was the last."""
        return self._spent_s if self._prepared is not None and self._prepared() is prepared else 0.0

    def run(self, prepared: Prepared, values: Sequence[Any] = ()) -> Result:
        parsed = prepared.statement
        assert isinstance(parsed, Parsed)
        if self._closed:
            raise SqlError("08003", "the session is closed")
        self._check_not_failed(parsed.node)
        if len(values) != len(prepared.parameters):
            message = f"{len(prepared.parameters)} parameters are needed, and {len(values)} are given"
            raise SqlError("08P01", message)
        spent_s = self._spent_on(prepared)
        self._prepared, self._spent_s = None, 0.0
        with self._timed(spent_s):
            self._running = prepared.text.strip()
            try:
                with self._supervised():
                    if self._transaction is None:
                        self._transaction = self._new_transaction()
                    self._transaction.statements += 1
                    self._tell_of_clock()
                    self._coordinator.environment.confirm()  # what another process has written since would be missing
                    result = self.carry_out(prepared, literals(values, prepared.parameters))
                _check_as_described(prepared, result)
                return result
            except (Exception, Failure) as error:
                self.fail()
                raise sql_error(error) from error
            finally:
                self._running = None
                for hold in self.holds:
                    hold.release()
                self.holds.clear()

    @contextmanager
    def _timed(self, spent_s: float = 0.0) -> Iterator[None]:
        """While inside, the statement can be canceled, and takes no longer than it may, of which so much is spent."""
        if self._running is not None:  # a statement prepares another: its own limits are in force
            yield
            return
        timeout_ms, turn_ms = (int(self.settings.get(name)) for name in ("statement_timeout", "lock_timeout"))
        left_ms = max(1, timeout_ms - int(spent_s * 1000)) if timeout_ms else 0
        number = self.interrupts.begin(left_ms, turn_ms)
        try:
            yield
        finally:
            self.interrupts.end(number)

    @contextmanager
    def sending(self, *, resumed: bool = False) -> Iterator[Callable[[], None]]:
        """While inside, rows are sent, within the time limit of the statement."""
        interrupts = self.interrupts
        number = interrupts.begin(int(self.settings.get("statement_timeout"))) if resumed else interrupts.resume()
        try:
            yield interrupts.check
        finally:
            interrupts.end(number)

    @contextmanager
    def _supervised(self) -> Iterator[None]:
        """While inside, what this thread computes ends with the statement, and takes no more memory than it may."""
        allowed = Allowance(memory_bytes=int(self.settings.get(LOCAL_MEMORY)))
        try:
            with cancelable(Cancellation(lambda: self.interrupts.due)), allowing(allowed):
                yield
        except Exception as error:
            if isinstance(error, Ended) or isinstance(error.__cause__, Ended):
                self.interrupts.check()
            raise
        finally:
            allowed.close()

    def carry_out(self, prepared: Prepared, values: tuple[Literal, ...] = ()) -> Result:
        """Carry a statement out in the transaction that is under way; bound anew if names may mean something else."""
        around = self.statement_context()
        parsed = _parsed(prepared)
        if parsed.bound is not None and parsed.bound.meaning != around.meaning:
            now = self.known(prepared.text, prepared.parameters)
            if now is None or now.statement.bound.meaning != around.meaning:  # type: ignore[attr-defined]
                now = self._bind(prepared.text, parsed.node, prepared.parameters, around)
            parsed = _parsed(now)
        result = execute(Context(self, self._coordinator, around, values, parsed.bound), parsed.node)
        if isinstance(parsed.node, nodes.Query) and parsed.bound is not None:
            self._look(prepared, parsed.node, parsed.bound)
        return result

    def lookup(self, prepared: Prepared) -> Lookup | None:
        """What gives the rows of a look-up from memory, if no transaction is under way."""
        if self._transaction is not None or self._closed:
            return None
        parsed, meaning = _parsed(prepared), self._meaning
        if parsed.bound is not None and parsed.bound.meaning != meaning:
            now = self.known(prepared.text, prepared.parameters)
            parsed = parsed if now is None else _parsed(now)
        if parsed.bound is None or parsed.bound.lookup is None or parsed.bound.meaning != meaning:
            return None
        return parsed.bound.lookup.rows

    def recognize(self, text: str) -> tuple[Prepared, Sequence[Value]] | None:
        """A text that was prepared before, or differs only in numbers from one that was a look-up."""
        template = literal_template(text)
        if template is not None:
            general = self.known(template[0], (INT4,) * len(template[1]))
            if general is not None and _is_template(general, len(template[1])):
                return general, template[1]
        prepared = self.known(text, ())
        return None if prepared is None or prepared.parameters else (prepared, ())

    def sync(self) -> None:
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
        with self._lock:
            told, self._notices = self._notices, []
        return told

    def cancel(self) -> None:
        self.interrupts.cancel()

    def close(self) -> None:
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
        transaction = self._transaction
        if transaction is None:  # the session was closed while its statement ran
            raise SqlError(ADMIN_SHUTDOWN, "terminating connection due to administrator command")
        return transaction

    @property
    def alone(self) -> bool:
        """Whether the statement that runs is a transaction by itself."""
        transaction = self.transaction
        several = self.together or self._batch > 1 or transaction.statements > 1
        return not (transaction.explicit or several or transaction.written)

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
        """Commit or roll back the transaction under way, and close its cursors."""
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return
        cursors, self.cursors = self.cursors, {}
        done = False
        try:
            if commit and not transaction.failed:
                transaction.commit(self._coordinator.timeline, self._coordinator.environment, self.interrupts)
                done = True
                for cursor in cursors.values():
                    cursor.commit()
        finally:
            for cursor in cursors.values():
                cursor.close()
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

    def notice(self, message: str, sqlstate: str = "00000", severity: Any = "NOTICE") -> None:
        """Send the client a notice, unless `client_min_messages` leaves out its severity."""
        wanted = MESSAGES.index(self.settings.get("client_min_messages"))
        if severity != "INFO" and MESSAGES.index(severity.lower()) < wanted:  # INFO was asked for
            return
        with self._lock:
            if len(self._notices) < NOTICES_MAX:
                self._notices.append(Notice(severity, sqlstate, message))

    def statement_context(self) -> StatementContext:
        """What a statement is surrounded by now."""
        transaction = self._transaction
        now_ms = self._coordinator.timeline.present_ms if transaction is None else transaction.now_ms
        values = self.settings.all
        draft = None if transaction is None else transaction.draft
        return StatementContext(
            self._coordinator.catalog.state if draft is None else draft.state,
            self.user,
            self.database,
            search_path(values["search_path"]),
            timestamp_of(now_ms),
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
        application = self.settings.get("application_name")
        running = None if self._running is None else shown_statement(self._running)
        return SessionInfo(self.number, self.user, self.database, application, self._connected_ms, running)

    def columns_of_cursor(self, name: str) -> tuple[Column, ...] | None:
        cursor = self.cursors.get(name) or self.carried(name)
        return None if cursor is None else cursor.columns

    # Inside

    @property
    def _failed(self) -> bool:
        return self._transaction is not None and self._transaction.failed

    def _check_not_failed(self, node: nodes.Statement) -> None:
        """Raise if a failed transaction is under way, and a statement does not end it."""
        if self._failed and not isinstance(node, nodes.End | nodes.Empty | nodes.RollbackTo):
            message = "current transaction is aborted, commands ignored until end of transaction block"
            raise SqlError(FAILED_TRANSACTION, message)

    def _tell_of_clock(self) -> None:
        """Say once if the wall clock cannot be believed."""
        event = self._coordinator.clock_event
        if event and event != self._told_event:
            trouble = self._coordinator.clock_status.trouble
            if trouble is not None:
                self.notice(trouble, "01000", "WARNING")
        self._told_event = event or self._told_event

    def _new_transaction(self) -> Transaction:
        self.settings.begin()
        read_only = self.settings.get("default_transaction_read_only") == "on"
        isolation = self.settings.get("transaction_isolation")
        return Transaction(False, isolation, self._coordinator.timeline.present_ms, read_only)

    def _look(self, prepared: Prepared, node: nodes.Query, bound: BoundStatement) -> None:
        """Find out, when a query was run first, whether it need not be the next time."""
        if bound.looked or bound.open or node.as_of is not None or self.transaction.explicit:
            return
        bound.looked, bound.lookup = True, self._index_lookup(prepared, bound)
        template = None if bound.lookup is None or prepared.parameters else literal_template(prepared.text)
        if template is not None:
            self._learn(*template)

    def _index_lookup(self, prepared: Prepared, bound: BoundStatement) -> IndexLookup | None:
        plan, columns = bound.bound.plan, prepared.columns
        if columns is None or list(plan.types[: len(plan.names)]) != [column.type for column in columns]:
            return None
        return index_lookup_of(bound.bound, self._coordinator.catalog.state, self.settings.all, self._coordinator)

    def _learn(self, text: str, numbers: Sequence[int]) -> None:
        """Recognize texts that differ only in their numbers from one that is a look-up."""
        types = [INT4] * len(numbers)
        if self.known(text, types) is not None:
            return
        try:
            general = self.prepare(text, types)
        except SqlError:
            return  # somewhere it takes a number itself
        bound = _parsed(general).bound
        if bound is not None and not bound.open:
            bound.looked, bound.lookup = True, self._index_lookup(general, bound)


def _check_as_described(prepared: Prepared, result: Result) -> None:
    """The client was told of the columns when the statement was prepared; definitions may have changed since."""
    columns = getattr(result, "columns", None)
    if prepared.columns is None or columns is None or not hasattr(result, "batches"):
        return
    if [column.type for column in columns] != [column.type for column in prepared.columns]:
        raise SqlError("0A000", "cached plan must not change result type", hint="prepare the statement again")


def _parsed(prepared: Prepared) -> Parsed:
    assert isinstance(prepared.statement, Parsed)
    return prepared.statement


def _is_template(general: Prepared, numbers: int) -> bool:
    """Whether it is a look-up, and each number nothing more than a value that is looked up."""
    bound = _parsed(general).bound
    lookup = None if bound is None else bound.lookup
    return lookup is not None and set(lookup.places) == set(range(numbers))
