"""The kinds of statements, as values. Queries inside stay text, in their place: the planner reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from everview.adapter.statements.words import Path

ObjectKind: TypeAlias = Literal[
    "table",
    "view",
    "materialized view",
    "index",
    "source",
    "sink",
    "subscription",
    "schema",
    "database",
    "role",
    "column",
    "cluster",
]
ACKNOWLEDGED_BY = ("fetch", "commit", "none")  # what acknowledges the rows that a cursor gave


@dataclass(frozen=True, slots=True)
class AsOf:
    """A time that the statement asks for: exactly, or that one or a later one."""

    expression: str
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT, VALUES, TABLE, WITH."""

    text: str
    as_of: AsOf | None = None


@dataclass(frozen=True, slots=True)
class Modify:
    """INSERT, UPDATE, DELETE."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE."""

    tables: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """SUBSCRIBE, and TAIL. `envelope` is upsert or debezium, by `key`; `order` is the text of its sort keys.

    `resume` is the text of the last progress of a subscription that this one goes on with. `subscription` names a
    durable one, and `name` what is subscribed to by its name alone, which may be a durable one as well; `acknowledge`
    says what acknowledges the rows that a cursor of it gave.
    """

    query: str
    envelope: str | None = None
    key: tuple[str, ...] = ()
    order: str | None = None
    snapshot: bool = True
    progress: bool = False
    as_of: AsOf | None = None
    up_to: str | None = None
    resume: str | None = None
    name: Path = ()
    subscription: Path = ()
    acknowledge: str | None = None


@dataclass(frozen=True, slots=True)
class CreateSubscription:
    """CREATE SUBSCRIPTION."""

    path: Path
    collection: Path
    options: Mapping[str, str] = field(default_factory=dict)
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSubscription:
    """ALTER SUBSCRIPTION … RESTART and SET (HOLD FOR …)."""

    path: Path
    action: Literal["restart", "set"]
    options: Mapping[str, str] = field(default_factory=dict)
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AcknowledgeSubscription:
    """ALTER SUBSCRIPTION … ACKNOWLEDGE a time: everything before it, or `through` it, is done with."""

    path: Path
    moment: str
    through: bool = False


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column of CREATE TABLE."""

    name: str
    type: str
    position: int
    not_null: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE."""

    path: Path
    columns: tuple[ColumnDefinition, ...]
    if_not_exists: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW and CREATE MATERIALIZED VIEW."""

    path: Path
    columns: tuple[str, ...]
    query: str
    materialized: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateReplacement:
    """CREATE MATERIALIZED VIEW … REPLACING, and CREATE REPLACEMENT MATERIALIZED VIEW … FOR."""

    view: CreateView
    target: Path


@dataclass(frozen=True, slots=True)
class ApplyReplacement:
    """ALTER MATERIALIZED VIEW … APPLY REPLACEMENT; `also` are those that are applied in the same step."""

    target: Path
    replacement: Path
    options: Mapping[str, str] = field(default_factory=dict)
    also: tuple[ApplyReplacement, ...] = ()


@dataclass(frozen=True, slots=True)
class RollbackReplacement:
    """ALTER MATERIALIZED VIEW … ROLLBACK REPLACEMENT [TO VERSION n]."""

    target: Path
    version: int | None = None


@dataclass(frozen=True, slots=True)
class ShowReplacementDiff:
    """SHOW REPLACEMENT DIFF."""

    path: Path
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE INDEX; without `keys`, CREATE DEFAULT INDEX."""

    name: str | None
    on: Path
    keys: tuple[str, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateSource:
    """CREATE SOURCE … FROM what, with its options; `kind` is the first words after FROM, as in `load generator`."""

    path: Path
    kind: str
    argument: str
    arguments: Mapping[str, str]
    if_not_exists: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[ColumnDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sink delivers to or a source reads from: its kind, such as `postgres`, and what says where."""

    kind: str
    arguments: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SinkCollection:
    """One collection of a sink: `place` holds the options that say where it goes."""

    path: Path
    place: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: tuple[str, ...] = ()
    delta_updates: bool = False
    reductions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateSink:
    """CREATE SINK, of one collection or several that are committed together."""

    path: Path
    collections: tuple[SinkCollection, ...]
    into: Place
    if_not_exists: bool = False
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class AlterSink:
    """ALTER SINK … PAUSE, RESUME, BACKFILL and SET (option value, …)."""

    path: Path
    action: Literal["pause", "resume", "backfill", "set"]
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ResetSource:
    """ALTER SOURCE … RESET."""

    path: Path
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateNamespace:
    """CREATE SCHEMA and CREATE DATABASE."""

    kind: ObjectKind
    path: Path
    if_not_exists: bool = False
    owner: str | None = None  # AUTHORIZATION


@dataclass(frozen=True, slots=True)
class CreateRole:
    """CREATE ROLE and CREATE USER."""

    name: str
    login: bool = True
    superuser: bool = False
    password: str | None = None


@dataclass(frozen=True, slots=True)
class AlterRole:
    """ALTER ROLE … PASSWORD."""

    name: str
    password: str | None


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP of any kind of object."""

    kind: ObjectKind
    paths: tuple[Path, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    """ALTER … RENAME TO; of a column, `column` is its name."""

    kind: ObjectKind
    path: Path
    to: str
    column: str | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterOwner:
    """ALTER … OWNER TO."""

    kind: ObjectKind
    path: Path
    owner: str


@dataclass(frozen=True, slots=True)
class AlterTtl:
    """ALTER TABLE … SET (TTL … ON column) and RESET (TTL): a duration and a column, or None."""

    path: Path
    ttl: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class AlterRetain:
    """ALTER … SET (RETAIN HISTORY FOR …) and RESET (RETAIN HISTORY)."""

    kind: ObjectKind
    path: Path
    retain: str | None


@dataclass(frozen=True, slots=True)
class CommentOn:
    """COMMENT ON; of a column, the path ends with its name."""

    kind: ObjectKind
    path: Path
    text: str | None


@dataclass(frozen=True, slots=True)
class Begin:
    """BEGIN, with the modes that it names."""

    isolation: str | None = None
    read_only: bool | None = None
    tag: str = "BEGIN"  # or START TRANSACTION, if that is what was said


@dataclass(frozen=True, slots=True)
class End:
    """COMMIT, or ROLLBACK."""

    commit: bool


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """SET TRANSACTION, and with `session` SET SESSION CHARACTERISTICS AS TRANSACTION."""

    isolation: str | None
    read_only: bool | None
    session: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """SET; None is DEFAULT."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class Reset:
    """RESET; None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW of a setting; None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class ShowObjects:
    """SHOW TABLES and its like."""

    what: str
    place: Path = ()  # FROM or IN
    on: Path = ()
    like: str | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True)
class ShowCreate:
    """SHOW CREATE."""

    kind: ObjectKind
    path: Path


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN. `stage`: raw, optimized, maintained or timestamp; `form`: text or json."""

    stage: str
    statement: Statement
    form: str = "text"


@dataclass(frozen=True, slots=True)
class Copy:
    """COPY. Either a table with `columns`, or a statement that gives rows."""

    into: bool
    table: Path | None
    columns: tuple[str, ...]
    source: Statement | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Declare:
    """DECLARE CURSOR."""

    name: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH; None is ALL. `timeout` is the text of an interval. MOVE is the same without the rows."""

    cursor: str
    count: int | None
    timeout: str | None = None
    move: bool = False


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """CLOSE; None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """DISCARD."""

    what: str


@dataclass(frozen=True, slots=True)
class SetSavepoint:
    """SAVEPOINT."""

    name: str


@dataclass(frozen=True, slots=True)
class ReleaseSavepoint:
    """RELEASE SAVEPOINT."""

    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    """ROLLBACK TO SAVEPOINT."""

    name: str


@dataclass(frozen=True, slots=True)
class Unlisten:
    """UNLISTEN."""


@dataclass(frozen=True, slots=True)
class PrepareStatement:
    """PREPARE."""

    name: str
    types: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Execute:
    """EXECUTE."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Deallocate:
    """DEALLOCATE; None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing."""


Statement: TypeAlias = (
    Query
    | Modify
    | Truncate
    | Subscribe
    | CreateTable
    | CreateView
    | CreateReplacement
    | ApplyReplacement
    | RollbackReplacement
    | ShowReplacementDiff
    | CreateIndex
    | CreateSource
    | CreateSink
    | AlterSink
    | CreateSubscription
    | AlterSubscription
    | AcknowledgeSubscription
    | ResetSource
    | CreateNamespace
    | CreateRole
    | AlterRole
    | Drop
    | Rename
    | AlterOwner
    | AlterRetain
    | AlterTtl
    | CommentOn
    | Begin
    | End
    | SetTransaction
    | Set
    | Reset
    | Show
    | ShowObjects
    | ShowCreate
    | Explain
    | Copy
    | Declare
    | Fetch
    | CloseCursor
    | Discard
    | Unlisten
    | SetSavepoint
    | ReleaseSavepoint
    | RollbackTo
    | PrepareStatement
    | Execute
    | Deallocate
    | Empty
)
