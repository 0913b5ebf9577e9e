"""What a catalog holds: databases, schemas, roles, and items, which are everything that has a name in a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from everview.compute.ir.types import SqlType
from everview.storage.contract import GlobalId

ItemKind: TypeAlias = Literal["table", "view", "materialized view", "index", "source", "sink", "subscription"]

# Kinds that are collections in storage, and so have a time at which they are read.
STORED: tuple[ItemKind, ...] = ("table", "materialized view", "source")

# PostgreSQL's own objects have numbers below; ours are counted from here by the number in their id.
OID_FIRST = 20_000


def oid_of(id: GlobalId) -> int:
    """The number under which PostgreSQL's catalogs know the object."""
    return OID_FIRST + int("".join(character for character in id if character.isdigit()))


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """A column of a relation; `default` is the text of an expression.

    `place` is which column of the collection it is, if not the one that its position says. One whose type became wider
    was elsewhere before, the `earlier` places, the latest first: at each time only one of all these holds something.
    """

    name: str
    type: SqlType
    nullable: bool = True
    default: str | None = None
    place: int | None = None
    earlier: tuple[int, ...] = ()


def places_of(columns: Sequence[ColumnInfo]) -> tuple[int, ...]:
    """Which columns of their collection these are."""
    return tuple(index if each.place is None else each.place for index, each in enumerate(columns))


@dataclass(frozen=True, slots=True)
class Database:
    """A database: a set of schemas."""

    id: GlobalId
    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema of a database; those of the system are of none, and found in all."""

    id: GlobalId
    name: str
    database: GlobalId | None
    owner: str


@dataclass(frozen=True, slots=True)
class Role:
    """Who may connect; `verifier` is the SCRAM-SHA-256 verifier of the password, if there is one."""

    id: GlobalId
    name: str
    login: bool = True
    superuser: bool = False
    verifier: str | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """A definition that a materialized view has had, with the columns of then; all versions are on one shard.

    The `id` of the first is that of the view, and of each later one that of the replacement that brought it. `depends`
    and `pins` are those of the definition.
    """

    id: GlobalId
    number: int
    columns: tuple[ColumnInfo, ...]
    query: str
    depends: tuple[GlobalId, ...] = ()
    pins: Mapping[GlobalId, GlobalId] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """A table, view, materialized view, index, source, sink or durable subscription.

    `query` is the text of a view's query, with names in full. `on` and `keys` are of an index: the relation, and the
    texts of its key expressions. `reader` and `writer` are the tokens of the capabilities that keep its collection.
    A materialized view may be a replacement that is staged for another, which it `replaces`, and be applied once it is
    hydrated (`automatic`), with `guards`, which are options of APPLY. `version` counts the definitions that a view has
    had, `current` is the id of this one, if it is not the first, and `history` holds those before, the last one last.
    `pins` are the versions of the views that an item names, where it is not the first: an item goes on with the columns
    that they had when it was made. `layout` has the types of all columns of the collection, if they are not just those
    of the widest version: a column that is gone keeps its place there, and a new one gets another.
    `ttl` is of a table whose rows leave by themselves: the place of the column with their time, and for how many
    milliseconds they stay from then on.
    """

    id: GlobalId
    kind: ItemKind
    name: str
    schema: GlobalId
    owner: str
    columns: tuple[ColumnInfo, ...] = ()
    query: str | None = None
    on: GlobalId | None = None
    keys: tuple[str, ...] = ()
    depends: tuple[GlobalId, ...] = ()
    retain_ms: int | None = None
    reader: str | None = None
    writer: str | None = None
    source: Mapping[str, str] = field(default_factory=dict)
    replaces: GlobalId | None = None
    automatic: bool = False
    guards: Mapping[str, str] = field(default_factory=dict)
    version: int = 1
    current: GlobalId | None = None
    history: tuple[Version, ...] = ()
    pins: Mapping[GlobalId, GlobalId] = field(default_factory=dict)
    layout: tuple[SqlType, ...] = ()
    ttl: tuple[int, int] | None = None

    @property
    def global_id(self) -> GlobalId:
        """The id of the version that there is now."""
        return self.current or self.id

    @property
    def versions(self) -> tuple[Version, ...]:
        """All versions that are known, the one that there is now last."""
        query = self.query or ""
        return (*self.history, Version(self.global_id, self.version, self.columns, query, self.depends, self.pins))

    def at_version(self, id: GlobalId) -> Item:
        """The item with the columns that it had in a version."""
        if id == self.global_id:
            return self
        found = next((each for each in self.history if each.id == id), None)
        return self if found is None else replace(self, columns=found.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)

    @property
    def types(self) -> tuple[SqlType, ...]:
        """The types of its columns."""
        return tuple(column.type for column in self.columns)

    @property
    def places(self) -> tuple[int, ...]:
        """Which columns of the collection its columns are."""
        return places_of(self.columns)

    @property
    def stored_types(self) -> tuple[SqlType, ...]:
        """The types of the first columns of the collection, as many as hold all of its own."""
        places = {*self.places, *(place for each in self.columns for place in each.earlier)}
        return self.all_stored_types[: max(places, default=-1) + 1]

    @property
    def all_stored_types(self) -> tuple[SqlType, ...]:
        """The types of all columns of the collection."""
        if self.layout:
            return self.layout
        return tuple(each.type for each in max((each.columns for each in self.versions), key=len))

    @property
    def stored(self) -> bool:
        """Whether it is a collection in storage."""
        return self.kind in STORED and self.reader is not None


def is_maintained(item: Item) -> bool:
    """Whether a dataflow keeps the item's collection."""
    return item.reader is not None and item.kind in ("materialized view", "index")


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of the audit log."""

    number: int
    kind: str  # create, drop or alter
    object: str
    details: Mapping[str, str]
    user: str | None
    at_ms: int
