"""What the adapter promises to those who bring it statements: the wire server, the shell, the Python API.

A client has a session. A session takes statements one at a time, from any thread but one thread at once; only `cancel`
may come from elsewhere meanwhile. Statements are prepared (parsed, bound, described) and then run with the values of
their parameters. Values are the Python values of `compute.functions.input` and `output`, which also read and write
their text. Whatever goes wrong is raised as a `SqlError`, with SQLSTATE, message, detail, hint and position.

Outside a transaction block a statement is a transaction of its own, but a carrier may send several as one implicit
transaction: it ends at `sync`, which commits if nothing failed since the last one and rolls back otherwise.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import pyarrow as pa

from everview.compute.allowance import EVERYONE, Budget
from everview.compute.ir.types import SqlType
from everview.compute.sql.errors import SqlError

Value: TypeAlias = object
Row: TypeAlias = tuple[Value, ...]

# Idle, in a transaction block, in a failed one: as ReadyForQuery says it.
Status: TypeAlias = Literal["I", "T", "E"]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: SqlType


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Prepared:
    """A statement that is bound: what it takes and what it gives. `columns` is None where it gives no rows.

    `cursor` is the name of the cursor that FETCH and MOVE go on with. In `forms` the carrier keeps how it writes down
    the values and rows, for as long as the statement is kept.
    """

    text: str
    parameters: tuple[SqlType, ...]
    columns: tuple[Column, ...] | None
    statement: object = field(repr=False)  # the adapter's own
    cursor: str | None = None
    weight: int = 0  # about how many bytes it takes
    forms: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)


HEAVY, ALL_HEAVY_MAX = 10_000, 64 << 20
_counted: set[int] = set()
_counting = threading.RLock()  # see `Budget`


def count_weight(prepared: Prepared, others: Iterable[Prepared]) -> None:
    """Count the memory of a statement that a session is about to keep, as long as it is there.

    Raises if those of the session take too much memory with it, or those of all sessions and whatever they run.
    """
    if prepared.weight > HEAVY and sum(each.weight for each in others) + prepared.weight > ALL_HEAVY_MAX:
        raise SqlError(
            "53200",
            "out of memory",
            detail=f"the prepared statements of a session may take {ALL_HEAVY_MAX >> 20} MB",
            hint="deallocate some, or give long values as parameters",
        )
    with _counting:  # sessions share statements that come again
        if id(prepared) in _counted:
            return
        EVERYONE.take(prepared.weight)
        _counted.add(id(prepared))
        weakref.finalize(prepared, _forget, id(prepared), EVERYONE, prepared.weight)


def _forget(number: int, budget: Budget, weight: int) -> None:
    with _counting:
        _counted.discard(number)
    budget.give_back(weight)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to tell the client beside the result."""

    severity: Literal["NOTICE", "WARNING", "INFO", "DEBUG"]
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None


class Rows(Protocol):
    """Rows as they come. Between batches a subscription waits; an empty batch says that it is a good time to flush.

    Large results also have `tables()`, which gives the same rows as tables: columns as storage has their types.
    """

    columns: tuple[Column, ...]

    def batches(self) -> Iterator[Sequence[Row]]:
        """The rows, in batches of modest size; raises SqlError, also after some batches."""

    def tag(self, rows: int) -> str:
        """The command tag once `rows` rows were taken: `SELECT 3`."""

    def close(self) -> None:
        """Take no more; safe at any moment and more than once."""


@dataclass(frozen=True, slots=True)
class Done:
    """A statement that gives no rows is done: `INSERT 0 1`. `None` is the empty statement."""

    tag: str | None


@dataclass(frozen=True, slots=True)
class CopyFormat:
    """How COPY writes rows down: `text` or `csv` with PostgreSQL's options, or `binary`, which has none."""

    kind: Literal["text", "csv", "binary"] = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[int, ...] = ()


class Carried(Protocol):
    """The rows of a portal that are not sent yet. To a client it is a cursor, which FETCH and MOVE may name."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the rows have."""

    def take(self, rows_max: int) -> list[Row]:
        """The next rows, which the portal then has no more."""


class CopyIn(Protocol):
    """COPY … FROM STDIN, waiting for its data."""

    columns: tuple[Column, ...]
    format: CopyFormat

    def finish(self, rows: Iterable[Row | pa.Table]) -> str:
        """Store the rows and give the tag; what `rows` raises leaves nothing stored.

        Rows come one by one, or in tables whose columns are those of the copy, as storage has their types.
        """


@dataclass(frozen=True, slots=True)
class CopyOut:
    """COPY … TO STDOUT: rows, and how to write them down. The tag says COPY and their number."""

    rows: Rows
    format: CopyFormat


Result: TypeAlias = Rows | Done | CopyIn | CopyOut


# From the values of parameters to rows; None if the statement has to be run after all.
Lookup: TypeAlias = Callable[[Sequence[Value]], Sequence[Row] | None]


@dataclass(frozen=True, slots=True)
class IdleLimit:
    """A time for which a client may stay silent, and what the carrier tells it when it ends the session after that."""

    seconds: float
    sqlstate: str
    message: str


class Session(Protocol):
    """One client's session.

    `carried` is set by the carrier: it finds the rows of a portal by name. So is `together`, before a statement is run:
    whether others may follow it in the same implicit transaction.
    """

    carried: Callable[[str], Carried | None]
    together: bool

    @property
    def status(self) -> Status:
        """Where the session stands between statements."""

    @property
    def parameters(self) -> Mapping[str, str]:
        """The settings that clients are told of when they change, as ParameterStatus does: name to value."""

    @property
    def idle_limit(self) -> IdleLimit | None:
        """For how long the client may stay silent as the session stands now; None is for ever."""

    def split(self, text: str) -> Sequence[str]:
        """The statements of a text, in order, without those that are empty. Each knows its place in the text, so that
        positions in errors count from the start of `text`."""

    def prepare(self, text: str, types: Sequence[SqlType | None] = ()) -> Prepared:
        """Parse and bind one statement; `types` are what the client says of the parameters, None where it does not."""

    def reading(self, prepared: Prepared) -> AbstractContextManager[None]:
        """While inside, values for the statement's parameters are read: this can be canceled, takes no more memory than
        the statement may, and its time counts as time of the statement."""
        ...

    def run(self, prepared: Prepared, values: Sequence[Value] = ()) -> Result:
        """Run a statement. In a failed transaction block all but its end are refused (25P02)."""

    def lookup(self, prepared: Prepared) -> Lookup | None:
        """What gives all rows of a query, as `run` and `sync` would, if they are in memory; None if it has to be run.

        Neither waits for anything, so they may be called where waiting is out of the question, one after the other.
        """

    def known(self, text: str, types: Sequence[SqlType | None] = ()) -> Prepared | None:
        """What `prepare` would give, if the text was prepared before and means the same still. It never waits."""

    def recognize(self, text: str) -> tuple[Prepared, Sequence[Value]] | None:
        """A text as a prepared statement and its values, if `lookup` may know it. It never waits."""

    def sending(self, *, resumed: bool = False) -> AbstractContextManager[Callable[[], None]]:
        """While inside, rows of a result are made and sent, within the time limit of the statement.

        `resumed` says that the client asks for more of a result: then the limit counts from now. The function that it
        gives raises when the limit is reached.
        """
        ...

    def sync(self) -> None:
        """End the implicit transaction."""

    def fail(self) -> None:
        """The carrier met an error of its own: the implicit transaction, or the block, has failed."""

    def notices(self) -> list[Notice]:
        """What there is to tell since the last call."""

    def cancel(self) -> None:
        """End what runs now, from any thread; it raises 57014. Nothing happens if nothing runs."""

    def close(self) -> None:
        """The client is gone: roll back, let go of everything."""


class Adapter(Protocol):
    def connect(self, user: str, database: str, settings: Mapping[str, str]) -> Session:
        """A session for this role; raises SqlError (28000, 3D000, 53300, 22023)."""

    def secret(self, user: str) -> str | None:
        """The role's SCRAM-SHA-256 verifier in PostgreSQL's notation. None without a password."""

    def is_superuser(self, user: str) -> bool:
        """Whether the role is a superuser. False for a role that does not exist."""

    def ready(self) -> bool:
        """Whether views can be maintained now: storage open and Spark warm. Statements are taken before that."""

    def warnings(self) -> list[str]:
        """What someone should look at, though everything is served."""

    def close(self) -> None:
        """End all sessions and let go of everything."""
