"""What a catalog holds: databases, schemas, roles, and items, which are everything that has a name in a schema.

Each kind of item is a class of its own, with just its fields; kinds are matched by class. `kind` is the word for users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, TypeAlias

from everview.adapter.catalog.specs import SinkSpec
from everview.compute.ir.types import SqlType
from everview.sources.contract import OwnTimeline, Spec
from everview.storage.contract import GlobalId

SEALED, FILE, ENVIRONMENT = "sealed", "file", "environment"  # where a secret is

# PostgreSQL's own objects have numbers below; ours are counted from here by the number in their id.
OID_FIRST = 20_000


def oid_of(id: GlobalId) -> int:
    """The number under which PostgreSQL's catalogs know the object."""
    return OID_FIRST + int("".join(character for character in id if character.isdigit()))


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """A column of a relation; `default` is the text of an expression.

    `place` is its position in the stored collection, if that differs from its position in the relation. A column gets
    a new place when its type is widened; `earlier` are those before, the latest first. At each time only one of all
    these places holds values.
    """

    noun: ClassVar[str] = "column"

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
    noun: ClassVar[str] = "database"

    id: GlobalId
    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema of a database; those of the system are of none, and found in all."""

    noun: ClassVar[str] = "schema"

    id: GlobalId
    name: str
    database: GlobalId | None
    owner: str


@dataclass(frozen=True, slots=True)
class Role:
    """Who may connect; `verifier` is the SCRAM-SHA-256 verifier of the password, if there is one."""

    noun: ClassVar[str] = "role"

    id: GlobalId
    name: str
    login: bool = True
    superuser: bool = False
    verifier: str | None = None


class EventKind(StrEnum):
    """What a definition does to an object."""

    CREATE, ALTER, DROP, COMMENT = "create", "alter", "drop", "comment"


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of the audit log."""

    number: int
    kind: EventKind
    object: str
    details: Mapping[str, str]
    user: str | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class Item:
    """What has a name in a schema.

    `pins` are the versions of the views that an item names, where it is not the first: an item goes on with the columns
    that they had when it was made.
    """

    noun: ClassVar[str]

    id: GlobalId
    name: str
    schema: GlobalId
    owner: str
    _: KW_ONLY
    depends: tuple[GlobalId, ...] = ()
    pins: Mapping[GlobalId, GlobalId] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What users call it."""
        return self.noun

    @property
    def global_id(self) -> GlobalId:
        """The id of the present version."""
        return self.id

    @property
    def columns(self) -> tuple[ColumnInfo, ...]:
        """Its columns; what is no relation has none."""
        return ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def types(self) -> tuple[SqlType, ...]:
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
        return self.types

    @property
    def reader(self) -> str | None:
        """The token of the read capability that keeps its collection; None if it has no collection."""
        return None

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of the capabilities that keep its collection."""
        return () if self.reader is None else (self.reader,)

    @property
    def stored(self) -> bool:
        """Whether it is a collection in storage, whose rows people read by its name."""
        return isinstance(self, Collection) and self.reader is not None

    @property
    def replaces(self) -> GlobalId | None:
        """The materialized view that it is staged to replace."""
        return None

    @property
    def whole(self) -> GlobalId:
        """The source that it is a part of; else itself."""
        return self.id

    def at_version(self, id: GlobalId) -> Item:
        """The item with the columns that it had in a version."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged(Item):
    """An item of which only the name is known, and what it `was`."""

    was: type[Item]

    @property
    def kind(self) -> str:
        return self.was.noun


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Item):
    """A query that has a name; in its text, names are in full."""

    noun = "view"

    columns: tuple[ColumnInfo, ...] = ()
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection(Item):
    """A relation whose rows are in storage. `retain_ms` is how much of its history is kept, if that was said."""

    columns: tuple[ColumnInfo, ...] = ()
    retain_ms: int | None = None
    reader: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Collection):
    """A collection that nobody computes: `writer` is the token of the write capability."""

    writer: str | None = None

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(each for each in (self.reader, self.writer) if each is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Written):
    """A table.

    `ttl` is of one whose rows leave by themselves: the place of the column with their time, and for how many
    milliseconds they stay from then on.
    """

    noun = "table"

    ttl: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A table of a source that has several."""

    of: GlobalId
    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Written):
    """A source, or a table of one; a source with tables has no collection of its own."""

    noun = "source"

    spec: Spec | Part
    paused: bool = False

    @property
    def whole(self) -> GlobalId:
        return self.spec.of if isinstance(self.spec, Part) else self.id

    @property
    def timeline(self) -> OwnTimeline | None:
        """The timeline that it keeps; None: the environment's."""
        return self.spec.timeline if isinstance(self.spec, Spec) else None


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
class Staged:
    """What makes a materialized view a replacement: its target, and whether it is applied once it is hydrated.

    `guards` are options of that APPLY.
    """

    target: GlobalId
    automatic: bool = False
    guards: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializedView(Collection):
    """A view whose rows are kept.

    `version` counts its definitions, `current` is the id of this one, if it is not the first, and `history` holds those
    before, the last one last. `layout` has the types of all columns of the collection, if they are not just those of
    the widest version: a column that is gone keeps its place there, and a new one gets another.
    """

    noun = "materialized view"

    query: str
    staged: Staged | None = None
    version: int = 1
    current: GlobalId | None = None
    history: tuple[Version, ...] = ()
    layout: tuple[SqlType, ...] = ()

    @property
    def global_id(self) -> GlobalId:
        return self.current or self.id

    @property
    def replaces(self) -> GlobalId | None:
        return None if self.staged is None else self.staged.target

    @property
    def all_stored_types(self) -> tuple[SqlType, ...]:
        if self.layout:
            return self.layout
        return tuple(each.type for each in max((each.columns for each in self.versions), key=len))

    @property
    def versions(self) -> tuple[Version, ...]:
        """All versions that are known, the present one last."""
        present = Version(self.global_id, self.version, self.columns, self.query, self.depends, self.pins)
        return (*self.history, present)

    def at_version(self, id: GlobalId) -> MaterializedView:
        found = next((each for each in self.history if each.id == id), None)
        return self if found is None else replace(self, columns=found.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Index(Item):
    """An index on a relation, by key expressions; one on a view has a collection of its own."""

    noun = "index"

    on: GlobalId
    keys: tuple[str, ...]
    reader: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Item):
    """Collections that are delivered elsewhere."""

    noun = "sink"

    spec: SinkSpec
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription(Item):
    """A durable subscription to a collection: `hold_ms` is how much of the past it may hold."""

    noun = "subscription"

    on: GlobalId
    hold_ms: int
    snapshot: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret(Item):
    """A text that is shown to nobody: sealed in the catalog, or read from its `origin` whenever it is needed.

    `value` is the sealed text, the path of a file, or the name of a variable. `confined` is of a file that has to be
    inside of the folders that are allowed.
    """

    noun = "secret"

    origin: str = SEALED
    value: str = field(repr=False)
    confined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection(Item):
    """How a system outside is reached. `secrets` are the options whose values are those of secrets."""

    noun = "connection"

    to: str
    options: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, GlobalId] = field(default_factory=dict)


NO_RELATIONS = (Sink, Subscription, Secret, Connection)  # what has a name in a schema and no columns


class Cluster:
    """The one cluster, of which the catalog holds nothing."""

    noun: ClassVar[str] = "cluster"


KINDS: Mapping[str, type[Item]] = {
    each.noun: each for each in (Table, View, MaterializedView, Index, Source, Sink, Subscription, Secret, Connection)
}
NamespaceKind: TypeAlias = type[Database] | type[Schema] | type[Role]
ObjectKind: TypeAlias = type[Item] | NamespaceKind | type[ColumnInfo] | type[Cluster]


def is_maintained(item: Item) -> bool:
    """Whether a dataflow keeps the item's collection."""
    return item.reader is not None and isinstance(item, MaterializedView | Index)
