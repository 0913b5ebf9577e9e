"""The extended protocol: prepared statements and portals of one session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from everview.adapter.contract import HEAVY, Done, Prepared, Session, count_weight
from everview.adapter.errors import OBJECT_NOT_READY, PROGRAM_LIMIT
from everview.compute.sql.errors import SqlError
from everview.server.errors import ProtocolViolation
from everview.server.pgwire import backend, results
from everview.server.pgwire.frontend import Bind, Close, Describe, Execute, Parse
from everview.server.pgwire.limits import Limits
from everview.server.pgwire.oids import WireParameter, type_of, wire_parameter
from everview.server.pgwire.results import RowStream
from everview.server.pgwire.values import TEXT, decode_parameters
from everview.server.pgwire.wire import Wire

_FORMS_MAX = 8
_SHORT_BYTES = 1 << 14


@dataclass(frozen=True, slots=True)
class Statement:
    """A prepared statement, and how its parameters come."""

    prepared: Prepared
    parameters: tuple[WireParameter, ...]
    forms: dict[Any, Any] = field(default_factory=dict)  # how its values and rows are written down, by format codes


@dataclass(slots=True)
class Portal:
    """A statement with its values. Once it runs, `stream` is its rows, if it has any."""

    statement: Statement
    values: tuple[Any, ...]
    formats: tuple[int, ...]
    stream: RowStream | None = None
    started: bool = False

    def close(self) -> None:
        if self.stream is not None:
            self.stream.close()


class Extended:
    """The statements and portals that a session has, and the messages about them."""

    def __init__(self, session: Session, wire: Wire, limits: Limits, tell: Callable[[], None]) -> None:
        self._session = session
        self._wire = wire
        self._limits = limits
        self._tell = tell
        self.statements: dict[str, Statement] = {}
        self.portals: dict[str, Portal] = {}
        session.carried = self._carried

    def begin(self, name: str) -> None:
        """Start a portal that has not run yet, because FETCH or MOVE names it as a cursor."""
        portal = self.portals.get(name)
        if portal is not None and not portal.started and portal.statement.prepared.columns is not None:
            portal.started = True
            self._start(portal)

    def _carried(self, name: str) -> RowStream | None:
        portal = self.portals.get(name)
        return None if portal is None else portal.stream

    def parse(self, message: Parse) -> None:
        if message.name and message.name in self.statements:
            raise SqlError("42P05", f'prepared statement "{message.name}" already exists')
        if self.full:
            raise _too_many("prepared statements", self._limits.statements_max)
        self.statements.pop(message.name, None)
        prepared = self._session.prepare(message.text, [type_of(oid) for oid in message.types])
        if message.name or prepared.weight > HEAVY:
            count_weight(prepared, (each.prepared for each in self.statements.values()))
        self.statements[message.name] = statement_of(prepared, message)
        self._wire.send(backend.PARSE_COMPLETE)

    @property
    def full(self) -> bool:
        """Whether there is no room for one more statement."""
        return len(self.statements) >= self._limits.statements_max

    def bind(self, message: Bind) -> None:
        statement = self._statement(message.statement)
        if message.portal and message.portal in self.portals:
            raise SqlError("42P03", f'cursor "{message.portal}" already exists')
        if len(self.portals) >= self._limits.portals_max:
            raise _too_many("portals", self._limits.portals_max)
        given, wanted = len(message.values), len(statement.parameters)
        if given != wanted:
            raise ProtocolViolation(
                f"bind message supplies {given} parameters, "
                f'but prepared statement "{message.statement}" requires {wanted}'
            )
        formats = formats_for(message.formats, given, "parameter")
        with self._reading(statement, message.values):
            values = decode_parameters(message.values, statement.parameters, formats)
        columns = statement.prepared.columns
        portal = Portal(statement, values, formats_for(message.result_formats, len(columns or ()), "result"))
        self._close_portal(message.portal)
        self.portals[message.portal] = portal
        self._wire.send(backend.BIND_COMPLETE)

    def _reading(self, statement: Statement, values: Sequence[bytes | None]) -> AbstractContextManager[None]:
        """Within the limits of the statement, unless they are so short that reading takes less than watching."""
        short = sum(len(each) for each in values if each is not None) <= _SHORT_BYTES
        return nullcontext() if short else self._session.reading(statement.prepared)

    def describe(self, message: Describe) -> None:
        if message.kind == "S":
            statement = self._statement(message.name)
            self._wire.send(backend.parameter_description([each.oid for each in statement.parameters]))
            columns = statement.prepared.columns
            formats: Sequence[int] = (TEXT,) * len(columns or ())
        else:
            portal = self._portal(message.name)
            columns, formats = portal.statement.prepared.columns, portal.formats
        self._wire.send(backend.NO_DATA if columns is None else backend.row_description(columns, formats))

    def execute(self, message: Execute) -> str | None:
        """Run a portal, or go on with it. Gives the command tag, or None if rows are left."""
        portal = self._portal(message.portal)
        if portal.started and portal.stream is None:
            raise SqlError(OBJECT_NOT_READY, f'portal "{message.portal}" cannot be run')
        resumed = portal.started
        if not resumed:
            portal.started = True
            tag = self._start(portal)
            if portal.stream is None:
                self._tell()
                self._wire.send(backend.EMPTY_QUERY if tag is None else backend.command_complete(tag))
                return tag or ""
        assert portal.stream is not None
        with self._session.sending(resumed=resumed) as check:
            outcome = portal.stream.send(message.rows_max, check)
        self._tell()
        if not outcome.ended:
            self._wire.send(backend.PORTAL_SUSPENDED)
            return None
        tag = portal.stream.rows.tag(outcome.rows)
        self._wire.send(backend.command_complete(tag))
        return tag

    def _start(self, portal: Portal) -> str | None:
        if portal.statement.prepared.cursor is not None:
            self.begin(portal.statement.prepared.cursor)
        result = results.run(self._session, portal.statement.prepared, portal.values, self._wire, self._tell)
        if isinstance(result, Done):
            return result.tag
        formats = portal.formats
        if len(result.columns) != len(formats):  # the statement's shape has changed since it was prepared
            result.close()
            raise SqlError("0A000", "cached plan must not change result type")
        portal.stream = results.result_stream(result, formats, self._wire, self._tell)
        return None

    def close(self, message: Close) -> None:
        if message.kind == "S":
            self.statements.pop(message.name, None)
        else:
            self._close_portal(message.name)
        self._wire.send(backend.CLOSE_COMPLETE)

    def end_transaction(self) -> None:
        """Portals do not outlive their transaction."""
        while self.portals:
            self._close_portal(next(iter(self.portals)))

    def forget_unnamed(self) -> None:
        """A simple query does away with the statement and the portal that have no name."""
        self.statements.pop("", None)
        self._close_portal("")

    def _close_portal(self, name: str) -> None:
        portal = self.portals.pop(name, None)
        if portal is not None:
            portal.close()

    def _statement(self, name: str) -> Statement:
        statement = self.statements.get(name)
        if statement is None:
            what = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise SqlError("26000", f"{what} does not exist")
        return statement

    def _portal(self, name: str) -> Portal:
        portal = self.portals.get(name)
        if portal is None:
            raise SqlError("34000", f'portal "{name}" does not exist')
        return portal


def statement_of(prepared: Prepared, message: Parse) -> Statement:
    """A statement as the client declared it."""
    known: Statement | None = prepared.forms.get(message.types)
    if known is None:
        declared = message.types + (0,) * (len(prepared.parameters) - len(message.types))
        known = Statement(prepared, tuple(map(wire_parameter, declared, prepared.parameters)))
        keep_form(prepared.forms, message.types, known)
    return known


def keep_form(forms: dict[Any, Any], key: object, form: object) -> None:
    """Keep how values or rows of a statement are written down, beside few others."""
    if len(forms) >= _FORMS_MAX:
        forms.clear()
    forms[key] = form


def formats_for(codes: tuple[int, ...], count: int, what: str) -> tuple[int, ...]:
    """Spread format codes over values: no code means text for all, one code is for all."""
    if len(codes) <= 1:
        return (codes or (TEXT,)) * count
    if len(codes) != count:
        raise ProtocolViolation(f"bind message has {len(codes)} {what} formats but {count} {what}s")
    return codes


def _too_many(what: str, most: int) -> SqlError:
    return SqlError(PROGRAM_LIMIT, f"too many {what}", detail=f"a session may have {most}", hint="close some")
