"""The host of a statement: it gives values of parameters, and functions of the session and the catalog.

Binding goes through many small functions, and few of them ever meet a parameter or `current_user`. So the host is not
handed down: it is in force while a statement is bound, by `hosted`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from everview.compute.functions.naming import base
from everview.compute.functions.plan_functions import PARAMETER
from everview.compute.functions.table import TableFunction
from everview.compute.ir.scalar import Call, Literal, Scalar
from everview.compute.ir.types import INT4, UNKNOWN, SqlType
from everview.compute.sql.errors import SqlError

PARAMETERS_MAX = 65_535  # as many as the wire protocol counts


class Host:
    """Where a statement is bound. This one knows nothing: the statement stands by itself."""

    def parameter(self, number: int, position: int | None) -> Any:
        """The scalar that `$number` stands for."""
        raise SqlError("42P02", f"there is no parameter ${number}", position=position)

    def function(self, name: str, args: Sequence[Any], position: int | None) -> Any | None:
        """Bind a call of one of the host's own functions. None if the host has no function of this name."""
        return None

    def table_functions(self, name: str) -> Sequence[TableFunction]:
        """The overloads of one of the host's own table functions. Empty if the host has none of this name."""
        return ()

    def object_id(self, value: Any, kind: str, position: int | None) -> Any:
        """A cast to `regclass`, `regtype`, `oid` and their like."""
        raise SqlError("0A000", f'type "{kind}" is not supported', position=position)


_ALONE = Host()
_host: ContextVar[Host] = ContextVar("everview_host", default=_ALONE)
_stored: ContextVar[bool] = ContextVar("everview_stored", default=False)


def host() -> Host:
    return _host.get()


def is_stored() -> bool:
    """Whether the text that is bound was stored before, maybe by an earlier version."""
    return _stored.get()


@contextmanager
def hosted(by: Host, *, stored: bool = False) -> Iterator[None]:
    """While inside, statements are bound for this host; `stored` ones were checked when they were stored."""
    token, before = _host.set(by), _stored.set(stored)
    try:
        yield
    finally:
        _host.reset(token)
        _stored.reset(before)


@dataclass
class ParameterTypes:
    """The types of a statement's parameters as far as they are known. The places of the others decide theirs.

    With `places`, a parameter is a call that values are put in for later; otherwise it is a NULL of its type.
    """

    known: dict[int, SqlType] = field(default_factory=dict)
    highest: int = 0
    places: bool = False

    def reference(self, number: int) -> Scalar:
        """The parameter: of its type, or open until a place decides that."""
        if not 1 <= number <= PARAMETERS_MAX:
            raise SqlError("42P02", f"there is no parameter ${number}")
        self.highest = max(self.highest, number)
        decided = self.known.get(number)
        return Parameter(None, UNKNOWN, number, self) if decided is None else self.place(number, decided)

    def decide(self, number: int, to: SqlType) -> Scalar:
        """The parameter in a place that wants this type."""
        wanted = base(to)
        if self.known.setdefault(number, wanted) != wanted:
            detail = f"{self.known[number]} versus {wanted}"
            raise SqlError("42P08", f"inconsistent types deduced for parameter ${number}", detail=detail)
        return self.place(number, wanted)

    def place(self, number: int, sql_type: SqlType) -> Scalar:
        """What stands for a value of this type."""
        return Call(PARAMETER, (Literal(number, INT4),), sql_type) if self.places else Literal(None, sql_type)


@dataclass(frozen=True, slots=True)
class Parameter(Literal):
    """A parameter whose type nothing has decided yet: it is open, as a quoted literal is."""

    number: int
    types: ParameterTypes = field(compare=False, repr=False)

    def decided(self, to: SqlType) -> Scalar:
        """The parameter where a value of type `to` is wanted."""
        return self.types.decide(self.number, to)
