"""What a statement is given by whoever hosts it: values of its parameters, and functions of the session and catalog.

Binding goes through many small functions, and few of them ever meet a parameter or `current_user`. So the host is not
handed down: it is in force while a statement is bound, by `hosted`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from everview.compute.functions.naming import base
from everview.compute.functions.table import TableFunction
from everview.compute.ir.scalar import Literal
from everview.compute.ir.types import UNKNOWN, SqlType
from everview.compute.sql.errors import SqlError


class Host(Protocol):
    """Where a statement is bound."""

    def parameter(self, number: int, position: int | None) -> Any:
        """The scalar that `$number` stands for."""
        ...

    def function(self, name: str, args: Sequence[Any], position: int | None) -> Any | None:
        """The scalar that a call of the host's own functions means; None if the name is none of theirs."""
        ...

    def table_functions(self, name: str) -> Sequence[TableFunction]:
        """The overloads of a table function of the host's own; empty if the name is none of theirs."""
        ...

    def object_id(self, value: Any, kind: str, position: int | None) -> Any:
        """A cast to `regclass`, `regtype`, `oid` and their like."""
        ...


class NoHost:
    """A statement that stands by itself."""

    def parameter(self, number: int, position: int | None) -> Any:
        """There are none."""
        raise SqlError("42P02", f"there is no parameter ${number}", position=position)

    def function(self, name: str, args: Sequence[Any], position: int | None) -> Any | None:
        """None are known."""
        return None

    def table_functions(self, name: str) -> Sequence[TableFunction]:
        """None are known."""
        return ()

    def object_id(self, value: Any, kind: str, position: int | None) -> Any:
        """There is no catalog to look into."""
        raise SqlError("0A000", f'type "{kind}" is not supported', position=position)


_host: ContextVar[Host | None] = ContextVar("everview_host", default=None)


def host() -> Host:
    """The host in force."""
    return _host.get() or NoHost()


@contextmanager
def hosted(by: Host) -> Iterator[None]:
    """While inside, statements are bound for this host."""
    token = _host.set(by)
    try:
        yield
    finally:
        _host.reset(token)


@dataclass
class ParameterTypes:
    """What is known of the types of a statement's parameters; the places where they stand decide the rest."""

    known: dict[int, SqlType] = field(default_factory=dict)
    highest: int = 0

    def reference(self, number: int) -> Literal:
        """A NULL of the parameter's type, which stands for it while types are worked out."""
        self.highest = max(self.highest, number)
        decided = self.known.get(number)
        return Parameter(None, UNKNOWN, number, self) if decided is None else Literal(None, decided)

    def decide(self, number: int, to: SqlType) -> SqlType:
        """The place of a parameter wants this type."""
        wanted = base(to)
        if self.known.setdefault(number, wanted) != wanted:
            detail = f"{self.known[number]} versus {wanted}"
            raise SqlError("42P08", f"inconsistent types deduced for parameter ${number}", detail=detail)
        return wanted


@dataclass(frozen=True, slots=True)
class Parameter(Literal):
    """A parameter whose type nothing has decided yet: it is open, as a quoted literal is."""

    number: int
    types: ParameterTypes = field(compare=False, repr=False)

    def decided(self, to: SqlType) -> Literal:
        """The parameter where a value of type `to` is wanted."""
        self.types.decide(self.number, to)
        return Literal(None, to)
