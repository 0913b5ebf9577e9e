"""The kinds of statements, as values. Queries and expressions in them are words that the planner binds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from everview.adapter.catalog.items import NamespaceKind, ObjectKind
from everview.adapter.statements.words import Path
from everview.compute.sql.lexer import SqlText

ACKNOWLEDGED_BY = ("fetch", "commit", "none")  # what acknowledges the rows that a cursor gave


class Statement:
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AsOf:
    """A time that the statement asks for: exactly, or that one or a later one."""

    expression: SqlText
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """All of a relation, which stands there by its name alone; `columns` are some of its columns in another order."""

    path: Path
    position: int | None = field(default=None, compare=False)
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query(Statement):
    """SELECT, VALUES, TABLE, WITH."""

    query: SqlText | Named
    as_of: AsOf | None = None


@dataclass(frozen=True, slots=True)
class Modify(Statement):
    text: SqlText
    kind: str


@dataclass(frozen=True, slots=True)
class Truncate(Statement):
    tables: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Subscribe(Statement):
    """SUBSCRIBE, and TAIL. `envelope` is upsert or debezium, by `key`; `order` is the text of its sort keys.

    `resume` is the last progress of a subscription that this one goes on with. `subscription` names a durable one; so
    may `query`, if it is a name. `acknowledge` says what acknowledges the rows that a cursor of it gave.
    """

    query: SqlText | Named
    envelope: str | None = None
    key: tuple[str, ...] = ()
    order: SqlText | None = None
    snapshot: bool = True
    progress: bool = False
    as_of: AsOf | None = None
    up_to: SqlText | None = None
    resume: SqlText | None = None
    subscription: Path = ()
    acknowledge: str | None = None


@dataclass(frozen=True, slots=True)
class CreateSubscription(Statement):
    path: Path
    collection: Path
    options: Mapping[str, str] = field(default_factory=dict)
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSubscription(Statement):
    """ALTER SUBSCRIPTION … RESTART and SET (HOLD FOR …)."""

    path: Path
    action: Literal["restart", "set"]
    options: Mapping[str, str] = field(default_factory=dict)
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AcknowledgeSubscription(Statement):
    """ALTER SUBSCRIPTION … ACKNOWLEDGE a time: everything before it, or `through` it, is done with."""

    path: Path
    moment: SqlText
    through: bool = False


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: str
    type: SqlText
    position: int
    not_null: bool = False
    default: SqlText | None = None


@dataclass(frozen=True, slots=True)
class CreateTable(Statement):
    path: Path
    columns: tuple[ColumnDefinition, ...]
    if_not_exists: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateView(Statement):
    path: Path
    columns: tuple[str, ...]
    query: SqlText
    materialized: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateReplacement(Statement):
    """CREATE MATERIALIZED VIEW … REPLACING, and CREATE REPLACEMENT MATERIALIZED VIEW … FOR."""

    view: CreateView
    target: Path


@dataclass(frozen=True, slots=True)
class ApplyReplacement(Statement):
    """ALTER MATERIALIZED VIEW … APPLY REPLACEMENT; the replacements in `also` are applied in the same step."""

    target: Path
    replacement: Path
    options: Mapping[str, str] = field(default_factory=dict)
    also: tuple[ApplyReplacement, ...] = ()


@dataclass(frozen=True, slots=True)
class RollbackReplacement(Statement):
    """ALTER MATERIALIZED VIEW … ROLLBACK REPLACEMENT [TO VERSION n]."""

    target: Path
    version: int | None = None


@dataclass(frozen=True, slots=True)
class ShowReplacementDiff(Statement):
    path: Path
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class CreateIndex(Statement):
    """CREATE INDEX; without `keys`, CREATE DEFAULT INDEX."""

    name: str | None
    on: Path
    keys: tuple[SqlText, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateSource(Statement):
    """CREATE SOURCE … FROM what, with its options; `kind` is the first words after FROM, as in `load generator`."""

    path: Path
    kind: str
    argument: str
    arguments: Mapping[str, str]
    if_not_exists: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[ColumnDefinition, ...] = ()
    tables: SourceTables | None = None


@dataclass(frozen=True, slots=True)
class SourceTables:
    """What CREATE SOURCE … FROM kind CONNECTION takes: FOR ALL TABLES, FOR SCHEMAS (…) or FOR TABLES (a AS b, …)."""

    connection: Path
    schemas: tuple[str, ...] | None = None
    tables: tuple[tuple[Path, str | None], ...] | None = None
    text_columns: tuple[Path, ...] = ()
    excluded: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sink delivers to or a source reads from: its kind, such as `postgres`, and what says where."""

    kind: str
    arguments: Mapping[str, str] = field(repr=False)
    connection: Path = ()


@dataclass(frozen=True, slots=True)
class SinkCollection:
    """One collection of a sink: `place` holds the options that say where it goes."""

    path: Path
    place: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: tuple[str, ...] = ()
    delta_updates: bool = False
    reductions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateSink(Statement):
    """CREATE SINK, of one collection or several that are committed together."""

    path: Path
    collections: tuple[SinkCollection, ...]
    into: Place
    if_not_exists: bool = False
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class AlterSink(Statement):
    """ALTER SINK … PAUSE, RESUME, BACKFILL and SET (option value, …)."""

    path: Path
    action: Literal["pause", "resume", "backfill", "set"]
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ResetSource(Statement):
    path: Path
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class PauseSource(Statement):
    """ALTER SOURCE … PAUSE and RESUME."""

    path: Path
    paused: bool
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateSecret(Statement):
    """CREATE SECRET; `value` is the secret itself, a file or a variable, as `origin` says."""

    path: Path
    origin: str
    value: str = field(repr=False)
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSecret(Statement):
    """ALTER SECRET … AS and FROM."""

    path: Path
    origin: str
    value: str = field(repr=False)
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateConnection(Statement):
    """CREATE CONNECTION; `secrets` are the options whose value is a secret, with its name."""

    path: Path
    to: str
    options: Mapping[str, str]
    secrets: Mapping[str, Path]
    if_not_exists: bool = False
    validate: bool = True


@dataclass(frozen=True, slots=True)
class AlterConnection(Statement):
    """ALTER CONNECTION … SET (…) and RESET (…)."""

    path: Path
    options: Mapping[str, str]
    secrets: Mapping[str, Path]
    reset: tuple[str, ...] = ()
    if_exists: bool = False
    validate: bool = True


@dataclass(frozen=True, slots=True)
class ValidateConnection(Statement):
    path: Path


@dataclass(frozen=True, slots=True)
class CreateNamespace(Statement):
    kind: NamespaceKind
    path: Path
    if_not_exists: bool = False
    owner: str | None = None  # AUTHORIZATION


@dataclass(frozen=True, slots=True)
class CreateRole(Statement):
    name: str
    login: bool = True
    superuser: bool = False
    password: str | None = None


@dataclass(frozen=True, slots=True)
class AlterRole(Statement):
    name: str
    password: str | None


@dataclass(frozen=True, slots=True)
class Drop(Statement):
    kind: ObjectKind
    paths: tuple[Path, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Rename(Statement):
    """ALTER … RENAME TO; of a column, `column` is its name."""

    kind: ObjectKind
    path: Path
    to: str
    column: str | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterOwner(Statement):
    kind: ObjectKind
    path: Path
    owner: str


@dataclass(frozen=True, slots=True)
class AlterTtl(Statement):
    """ALTER TABLE … SET (TTL … ON column) and RESET (TTL): a duration and a column, or None."""

    path: Path
    ttl: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class AlterRetain(Statement):
    """ALTER … SET (RETAIN HISTORY FOR …) and RESET (RETAIN HISTORY)."""

    kind: ObjectKind
    path: Path
    retain: str | None


@dataclass(frozen=True, slots=True)
class CommentOn(Statement):
    """COMMENT ON; of a column, the path ends with its name."""

    kind: ObjectKind
    path: Path
    text: str | None


@dataclass(frozen=True, slots=True)
class Begin(Statement):
    """BEGIN, with the modes that it names."""

    isolation: str | None = None
    read_only: bool | None = None
    tag: str = "BEGIN"  # or START TRANSACTION, if that is what was said


@dataclass(frozen=True, slots=True)
class End(Statement):
    commit: bool


@dataclass(frozen=True, slots=True)
class SetTransaction(Statement):
    """SET TRANSACTION, and with `session` SET SESSION CHARACTERISTICS AS TRANSACTION."""

    isolation: str | None
    read_only: bool | None
    session: bool = False


@dataclass(frozen=True, slots=True)
class Set(Statement):
    """SET; None is DEFAULT."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class Reset(Statement):
    """RESET; None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Show(Statement):
    """SHOW of a setting; None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class ShowObjects(Statement):
    what: str
    place: Path = ()  # FROM or IN
    on: Path = ()
    like: str | None = None
    where: SqlText | None = None


@dataclass(frozen=True, slots=True)
class ShowCreate(Statement):
    kind: ObjectKind
    path: Path


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """EXPLAIN. `stage`: raw, optimized, maintained or timestamp; `form`: text or json."""

    stage: str
    statement: Statement
    form: str = "text"


@dataclass(frozen=True, slots=True)
class Copy(Statement):
    """COPY. Into a table with `columns`, or out of it; out of it `source` gives the rows."""

    into: bool
    table: Path | None
    columns: tuple[str, ...]
    source: Statement | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Declare(Statement):
    name: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class Fetch(Statement):
    """FETCH; None is ALL. `timeout` is the text of an interval. MOVE is the same without the rows."""

    cursor: str
    count: int | None
    timeout: str | None = None
    move: bool = False


@dataclass(frozen=True, slots=True)
class CloseCursor(Statement):
    """CLOSE; None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard(Statement):
    what: str


@dataclass(frozen=True, slots=True)
class SetSavepoint(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class ReleaseSavepoint(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class Unlisten(Statement):
    """UNLISTEN."""


@dataclass(frozen=True, slots=True)
class PrepareStatement(Statement):
    name: str
    types: tuple[SqlText, ...]
    text: SqlText


@dataclass(frozen=True, slots=True)
class Execute(Statement):
    name: str
    values: tuple[SqlText, ...]


@dataclass(frozen=True, slots=True)
class Deallocate(Statement):
    """DEALLOCATE; None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Empty(Statement):
    """Nothing."""
