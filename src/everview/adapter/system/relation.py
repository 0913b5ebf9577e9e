"""What a relation of the system is: columns, and rows that are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.adapter.catalog.items import Item, oid_of
from everview.adapter.statement_context import StatementContext
from everview.compute.ir import types
from everview.storage.contract import GlobalId

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session, as others see it."""

    number: int
    user: str
    database: str
    application: str
    connected_at_ms: int
    running: str | None


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """A subscription that is under way."""

    number: int
    session: int
    created_at_ms: int
    objects: tuple[GlobalId, ...]


@dataclass(frozen=True, slots=True)
class StagedChange:
    """What applying a replacement would change: rows added and removed, and the bytes of both."""

    rows_added: int
    rows_removed: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StagedStatus:
    """How a replacement is doing: a word for it, why it fails or is not applied, and why its target fails."""

    status: str
    error: str | None
    target_error: str | None


@dataclass(frozen=True, slots=True)
class View:
    """What the rows of a system relation are made from."""

    around: StatementContext
    coordinator: Coordinator


@dataclass(frozen=True, slots=True)
class SystemRelation:
    schema: str
    name: str
    columns: Sequence[tuple[str, types.SqlType]]
    rows: Callable[[View], Iterable[Row]]

    @property
    def id(self) -> str:
        """What plans call it; ids of stored collections have no point in them."""
        return f"{self.schema}.{self.name}"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def types(self) -> tuple[types.SqlType, ...]:
        return tuple(each for _, each in self.columns)


_TYPES = {
    "bool": types.BOOLEAN,
    "int2": types.INT2,
    "int4": types.INT4,
    "int8": types.INT8,
    "oid": types.PG_OID,
    "text": types.TEXT,
    "char": types.PG_CHAR,
    "float4": types.FLOAT4,
    "timestamptz": types.TIMESTAMPTZ,
    "interval": types.INTERVAL,
    "jsonb": types.JSONB,
    "mz_timestamp": types.MZ_TIMESTAMP,
    "text[]": types.array_of(types.TEXT),
    "int2[]": types.array_of(types.INT2),
    "int2vector": types.INT2_VECTOR,
    "oidvector": types.OID_VECTOR,
    "int8[]": types.array_of(types.INT8),
}


def columns(text: str) -> tuple[tuple[str, types.SqlType], ...]:
    """Columns written as `name type, name type`. A column without a type has the type of the next one that has."""
    found: list[tuple[str, types.SqlType]] = []
    waiting: list[str] = []
    for each in text.split(","):
        name, _, kind = each.strip().partition(" ")
        waiting.append(name)
        if kind:
            found += [(column, _TYPES[kind]) for column in waiting]
            waiting = []
    assert not waiting, waiting
    return tuple(found)


def nothing(_: View) -> Iterable[Row]:
    """No rows: a relation that tools look into, and that has nothing to say here."""
    return ()


def named(view: View, item: Item) -> Row:
    """What relations that list objects begin with: id, oid, schema, name and the owner's id."""
    owner = view.around.catalog.role(item.owner)
    return (item.id, oid_of(item.id), item.schema, item.name, None if owner is None else owner.id)


def relations_of(schema: str) -> Callable[..., SystemRelation]:
    """What makes the relations of a schema, each of its name, its columns as `columns` reads them, and its rows."""

    def relation(name: str, text: str, rows: Callable[[View], Iterable[Row]] = nothing) -> SystemRelation:
        return SystemRelation(schema, name, columns(text), rows)

    return relation
