"""The host of a statement: its parameters, and the functions that speak of the session, the catalog and the time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import Any

from everview.adapter.bound_statement import SessionValue
from everview.adapter.statement_context import StatementContext
from everview.adapter.system import functions as system
from everview.adapter.system.table_functions import table_functions
from everview.compute.functions.naming import display_name
from everview.compute.functions.table import TableFunction
from everview.compute.functions.temporal import now
from everview.compute.ir import types as t
from everview.compute.ir.scalar import Literal
from everview.compute.sql.coerce import call, coerce, settled
from everview.compute.sql.datatypes import with_digits
from everview.compute.sql.errors import SqlError, did_you_mean
from everview.compute.sql.hosting import Host, Parameter, ParameterTypes

SERVER_VERSION = "16.4"
VERSION = f"PostgreSQL {SERVER_VERSION} compatible, Everview"


class SessionBinding(Host):
    """Binds one statement for one session. Parameters are types to be found out and places for values, or values."""

    def __init__(
        self,
        around: StatementContext,
        types: ParameterTypes | None = None,
        values: Sequence[Literal] = (),
        *,
        stored: bool = False,
    ) -> None:
        self._around = around
        self._stored = stored  # the text is that of a view, of which whoever runs the statement sees nothing
        self._types, self._values = types, values
        self.asked: set[str] = set()  # functions whose answer depends on the session or the moment
        self.session_values: list[SessionValue] = []  # for which there are places

    def parameter(self, number: int, position: int | None) -> Any:
        if self._types is not None:
            return self._types.reference(number)
        if not 1 <= number <= len(self._values):
            raise SqlError("42P02", f"there is no parameter ${number}", position=position)
        return self._values[number - 1]

    def function(self, name: str, args: Sequence[Any], position: int | None) -> Any | None:
        """A function of the session, or one of the system that looks into the catalog."""
        if name in _ALIASES:
            return call(_ALIASES[name], args, position)
        if name == "age" and len(args) == 1:
            self.asked.add("current_date")
            today = self._value(lambda around: coerce(Literal(_local(around).date(), t.DATE), t.TIMESTAMP))
            return call("age", [today, args[0]], position)
        if name in _RANDOM:
            detail = "a query may be computed again, on another engine, and must give the same rows"
            hint = "send such values as parameters"
            raise SqlError("0A000", f"{name}() is not supported", detail=detail, hint=hint, position=position)
        if name in _TIMES:
            if args:
                raise SqlError("42883", f"function {name} takes no arguments", position=position)
            return now(None if self._stored else position)
        own = _SESSION.get(name)
        if own is None:
            return system.call(name, args, position)
        self.asked.add(name)
        if args and name in _PRECISE:
            return self._value(lambda around: _with_digits(own(around, [], position), name, args, position))
        if args and name not in _WITH_ARGUMENTS:
            raise _no_such(name, args, position)
        given = [settled(arg) for arg in args]
        return self._value(lambda around: own(around, given, position))

    def _value(self, value: Callable[[StatementContext], Any]) -> Any:
        """What a function of the session gives; its place, if the statement is bound for any session and moment."""
        found = value(self._around)
        if self._types is None or not self._types.places or not isinstance(found, Literal):
            return found
        self.session_values.append(value)
        return self._types.place(-len(self.session_values), found.type)

    def table_functions(self, name: str) -> Sequence[TableFunction]:
        return table_functions(name)

    def object_id(self, value: Any, kind: str, position: int | None) -> Any:
        """A cast to a kind of object: text is the object's name, a number is its id."""
        if isinstance(value, Parameter):
            value = value.decided(t.TEXT)
        named = system.NAMED.get(kind)
        if named is not None and isinstance(value, Literal) and value.type.kind in (t.Kind.UNKNOWN, t.Kind.TEXT):
            return self._named(value, named, position)
        if named is not None and named.is_number:
            return coerce(value, t.PG_OID, "explicit", position)
        if settled(value).type.kind in (t.Kind.TEXT, t.Kind.VARCHAR):
            found = system.call(f"to_{kind}", [value], position)
        else:
            found = system.call(f"{kind}_name", [value], position)
        if found is None:
            raise SqlError("0A000", f'a cast to "{kind}" is not supported here', position=position)
        return found

    def _named(self, value: Literal, named: system.Named, position: int | None) -> Any:
        if value.value is None:
            return Literal(None, t.INT8)
        text = str(value.value)
        if text.isdigit() or named.is_number:
            return coerce(value, t.INT8, "explicit", position)
        found = named.find(self._around, text)
        if found is None:
            hint = did_you_mean(text, named.known(self._around))
            raise SqlError(named.missing, f'{named.noun} "{text}" does not exist', hint=hint, position=position)
        return Literal(found, t.INT8)


# json values are jsonb values here.
_ALIASES = {
    "json_build_object": "jsonb_build_object",
    "json_build_array": "jsonb_build_array",
    "to_json": "to_jsonb",
    "json_typeof": "jsonb_typeof",
    "json_array_length": "jsonb_array_length",
}
Own = Callable[[StatementContext, Sequence[Any], int | None], Any]


def _text(value: Callable[[StatementContext], str | None]) -> Own:
    return lambda around, args, position: Literal(value(around), t.TEXT)


def _constant(value: Any, sql_type: t.SqlType) -> Own:
    return lambda around, args, position: Literal(value, sql_type)


def _schemas(around: StatementContext, args: Sequence[Any], position: int | None) -> Any:
    implicit = bool(args and isinstance(args[0], Literal) and args[0].value)
    return Literal(list(around.all_schemas if implicit else around.schemas), t.array_of(t.TEXT))


def _local(around: StatementContext) -> Any:
    return around.now.astimezone(UTC)


def _time_of_day(around: StatementContext) -> int:
    now = _local(around)
    return int(((now.hour * 60 + now.minute) * 60 + now.second) * 1_000_000 + now.microsecond)


def _setting(around: StatementContext, args: Sequence[Any], position: int | None) -> Any:
    if not args or not isinstance(args[0], Literal) or args[0].value is None:  # a parameter, while it has no value
        return system.call("current_setting", args, position)
    name = str(args[0].value).lower()
    value = around.settings.get(name)
    if value is None and not (len(args) > 1 and isinstance(args[1], Literal) and args[1].value):
        hint = did_you_mean(name, around.settings)
        raise SqlError("42704", f'unrecognized configuration parameter "{name}"', hint=hint, position=position)
    return Literal(value, t.TEXT)


def _now(around: StatementContext, args: Sequence[Any], position: int | None) -> Any:
    return Literal(around.now.astimezone(UTC), t.TIMESTAMPTZ)


# The functions of a session that take arguments, and those that take how many digits of a second to give.
_WITH_ARGUMENTS = ("current_schemas", "current_setting")
_PRECISE = ("current_timestamp", "localtimestamp", "current_time", "localtime")


def _with_digits(value: Any, name: str, args: Sequence[Any], position: int | None) -> Any:
    """As in `current_timestamp(3)`."""
    digits = args[0].value if len(args) == 1 and isinstance(args[0], Literal) else None
    if type(digits) is not int or digits < 0:
        raise _no_such(name, args, position)
    return coerce(value, with_digits(value.type, digits), "explicit", position)


def _no_such(name: str, args: Sequence[Any], position: int | None) -> SqlError:
    types = ", ".join(display_name(arg.type) for arg in args)
    return SqlError("42883", f"function {name}({types}) does not exist", position=position)


_user = _text(lambda around: around.user)
_database = _text(lambda around: around.database)
_SESSION: Mapping[str, Own] = {
    **dict.fromkeys(("current_user", "session_user", "user", "current_role"), _user),
    **dict.fromkeys(("current_database", "current_catalog"), _database),
    "current_schema": _text(lambda around: next(iter(around.schemas), None)),
    "current_schemas": _schemas,
    "version": _constant(VERSION, t.TEXT),
    "mz_version": _constant("everview", t.TEXT),
    "pg_backend_pid": lambda around, args, position: Literal(around.backend, t.INT4),
    "pg_is_in_recovery": _constant(False, t.BOOLEAN),
    "pg_my_temp_schema": _constant(0, t.INT8),
    "inet_server_addr": _constant(None, t.TEXT),
    "inet_server_port": _constant(None, t.INT4),
    "current_setting": _setting,
    **dict.fromkeys(("now", "current_timestamp", "transaction_timestamp", "statement_timestamp"), _now),
    "clock_timestamp": _now,
    "localtimestamp": lambda around, args, position: Literal(_local(around).replace(tzinfo=None), t.TIMESTAMP),
    "current_date": lambda around, args, position: Literal(_local(around).date(), t.DATE),
    "localtime": lambda around, args, position: Literal(_time_of_day(around), t.TIME),
    "current_time": lambda around, args, position: Literal(_time_of_day(around), t.TIME),
}
# The time of the statement, whichever that is: it is put in their place when the statement has one.
_TIMES = ("mz_now", "mz_logical_timestamp")
_RANDOM = ("random", "random_normal", "setseed", "gen_random_uuid", "uuidv4", "uuidv7")
