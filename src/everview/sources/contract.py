"""What a kind of source is: what a statement may say of it, which collections it fills, and what feeds them.

A source has one collection or several, all of them fed together. Whatever feeds them makes one commit of the rows of
any of them, of how far the source was read, and of the time before which all are complete. So after a crash every row
is there exactly once. What a position means is known to its kind alone.

A kind is one file with a `SourceKind`, and one line in the list of kinds. It knows nothing of the catalog: it is given
what a statement says, ids and capabilities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from everview.compute.ir.types import SqlType
from everview.errors import EverviewError
from everview.storage.contract import Command, GlobalId
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNNING, STALLED, STARTING, ENDED = "running", "stalled", "starting", "ended"
SNAPSHOT, PAUSED, STOPPED = "snapshot", "paused", "stopped"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of a source."""

    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a source fills; the only one of a source has no name of its own: ''."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()  # by which rows are looked up; all columns if there is none

    @classmethod
    def of(cls, name: str, *columns: tuple[str, SqlType]) -> Table:
        """A table by the names and types of its columns."""
        return cls(name, tuple(Column(*each) for each in columns))

    @property
    def types(self) -> tuple[SqlType, ...]:
        """The types of its columns."""
        return tuple(each.type for each in self.columns)


@dataclass(frozen=True, slots=True)
class OwnTimeline:
    """The timeline of a source that keeps the times of its stream; `key` is what its clocks are called by."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Spec:
    """What a source is defined by; each kind has its own. Without a `timeline`, it is on the environment's."""

    kind: str
    timeline: OwnTimeline | None = field(default=None, kw_only=True)


Path: TypeAlias = tuple[str, ...]  # a name with what it is in


@dataclass(frozen=True, slots=True)
class Upstream:
    """What a source takes of a system with many tables: by which connection, and which of them.

    `schemas` and `tables` are None where all are taken; tables have the names that they are to have here.
    """

    connection: GlobalId
    way: Callable[[], str]  # how the connection leads there now
    schemas: tuple[str, ...] | None = None
    tables: tuple[tuple[Path, str | None], ...] | None = None
    text_columns: tuple[Path, ...] = ()
    excluded: tuple[Path, ...] = ()


S = TypeVar("S", bound=Spec)


@dataclass(frozen=True, slots=True)
class Given:
    """What CREATE SOURCE says: FROM kind `subject` (`arguments`) WITH (`options`), and columns, if it names any."""

    kind: str
    subject: str
    arguments: Mapping[str, str]
    options: Mapping[str, str]
    columns: tuple[Column, ...] = ()
    keeps_times: bool = False  # with TIMELINE
    name: str = ""  # of the source
    upstream: Upstream | None = None


@dataclass(frozen=True, slots=True)
class Found(Generic[S]):
    """What a source will be; `begins` is the first time of its own timeline at which its contents are known."""

    spec: S
    tables: tuple[Table, ...]
    begins: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    """The collection of one table: its id, the token of the capability to write it, and its columns."""

    id: GlobalId
    writer: str
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class Feeding(Generic[S]):
    """What a feeder is made of; `outputs` are by the names of tables.

    `now_ms` is the time at which the collections are to be complete, None for a source with a timeline of its own.
    """

    environment: Environment
    id: GlobalId
    name: str
    spec: S
    outputs: Mapping[str, Output]
    now_ms: Callable[[], int] | None
    spark: Callable[[], SparkSession | None] = lambda: None
    way: Callable[[], str] = lambda: ""  # how its connection leads upstream now
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a source has read: `stalls` are the times that cannot close, `bad` the first undecodable records."""

    frontier: Antichain[Any]
    covered: Antichain[Any]
    updates_total: int
    open_times: int
    open_updates: int
    statements_waiting: int
    bad_records: int
    partial: tuple[str, ...]
    bad: tuple[Any, ...]
    stalls: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a source with many tables has come: since it was opened, and against what there is upstream."""

    rows: int
    bytes: int
    position: str | None
    snapshot_rows: int | None = None  # while it is taken, and what upstream estimates that there are
    snapshot_rows_total: int | None = None
    lag_bytes: int | None = None
    lag_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """A source at one instant: what it does, why it cannot and when that is tried again, and how far it has read."""

    state: str
    error: str | None = None
    read: Reading | None = None
    retry_ms: int | None = None
    failures: int = 0  # since it was opened
    progress: Progress | None = None
    stopped: Mapping[str, EverviewError] = field(default_factory=dict)  # tables that cannot go on, and why


class Feeder(Protocol):
    """Feeds the collections of one source, in the background."""

    def start(self) -> None:
        """Begin to feed."""
        ...

    def ask(self) -> None:
        """Someone waits for the present: let the collections become complete up to now."""
        ...

    def close(self) -> None:
        """Feed no longer, and let go of what is read."""
        ...

    def status(self) -> Status:
        """Where it stands."""
        ...


@runtime_checkable
class Resettable(Protocol):
    """A feeder that can read everything again."""

    def reset(self) -> None:
        """Read from the beginning; what is different then becomes visible at once."""
        ...


class Arrival(Protocol):
    """Whether all is in that was upstream of a source when somebody asked."""

    def time(self) -> int | None:
        """A time at which all of it can be read; None if not all of it is in. Raises if that will never be."""
        ...

    def missing(self) -> str:
        """How far it is, and how far it has to come."""
        ...


@runtime_checkable
class Headed(Protocol):
    """A feeder, or what it reads by, whose upstream can be asked how far it goes."""

    def arrival(self) -> Arrival | None:
        """Ask upstream now. None if it cannot be asked."""
        ...


@runtime_checkable
class Parting(Protocol):
    """A feeder that leaves something upstream, which goes with its source."""

    def part(self) -> str | None:
        """The source was dropped and the feeder is closed: tells what could not be removed upstream."""
        ...


class SourceKind(ABC, Generic[S]):
    """One kind of source."""

    name: str  # the words after FROM
    options: ClassVar[tuple[str, ...]] = ()  # behind WITH, beside RETAIN HISTORY
    reaches: ClassVar[str | None] = None  # what it is that only who may reach files and addresses can create
    takes_columns: ClassVar[bool] = False  # whether a statement may name them
    keeps_times: ClassVar[bool] = False  # whether TIMELINE can be asked for
    resettable: ClassVar[bool] = False
    connects: ClassVar[bool] = False  # whether it takes a connection, and many tables
    has_subject: ClassVar[bool] = False  # whether another name follows that of the kind
    usage: ClassVar[str | None] = None  # how a statement begins, for who leaves out what it needs

    @abstractmethod
    def look(self, given: Given, pause: Callable[[float], object]) -> Found[S]:
        """What a statement makes; an error if it cannot. It may look at what is outside, and `pause` between looks."""

    def begun(self, spec: S, now_ms: int) -> S:
        """The spec of a source whose collections begin now."""
        return spec

    def enter(self, id: GlobalId, outputs: Mapping[str, Output]) -> list[Command]:
        """What is to be remembered of a source from the commit on in which it comes to be."""
        return []

    @abstractmethod
    def feeder(self, feeding: Feeding[S]) -> Feeder:
        """What feeds a source; it is not started yet."""

    def remembered(self, environment: Environment) -> list[GlobalId]:
        """The sources of which something is remembered, though they may be gone by now."""
        return []

    def forget(self, environment: Environment, id: GlobalId) -> None:
        """Remove what is remembered of a source that was dropped."""
        return None

    def connection(self, spec: S) -> GlobalId | None:
        """The connection that a source reads by."""
        return None

    @abstractmethod
    def to_json(self, spec: S) -> dict[str, str]:
        """The spec as the catalog keeps it, but for its kind and timeline."""

    @abstractmethod
    def from_json(self, kind: str, said: Mapping[str, str], timeline: OwnTimeline | None) -> S:
        """The spec as the catalog kept it."""

    @abstractmethod
    def shown(self, spec: S, name_of: Callable[[GlobalId], str]) -> tuple[str, list[str]]:
        """What stands after FROM and in WITH of the statement that would make it, without secrets.

        `name_of` gives the name of a connection.
        """
