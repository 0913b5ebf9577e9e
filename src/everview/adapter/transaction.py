"""Transactions: what a session has read and will write, and what may follow what.

Reads of a transaction are all at one time, the time of the first. Writes are kept here until the end, and then made
durable together at one later time. Until then the transaction itself sees them: of a table it reads the contents at its
time and its own changes. What is maintained from a table knows nothing of them, and is not read after them. One that
read and wrote ends only if nothing that it read has changed in between; otherwise it fails (40001).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from everview.adapter.catalog.items import Table
from everview.adapter.catalog.state import Catalog, shown_timeline
from everview.adapter.catalog.store import Change
from everview.adapter.errors import INVALID_TRANSACTION, PROGRAM_LIMIT, READ_ONLY_TRANSACTION
from everview.adapter.expiry import there
from everview.adapter.interrupts import Interrupts
from everview.adapter.peek import NOTHING, OwnWrites
from everview.adapter.read_holds import ReadHold
from everview.adapter.settings import Mark
from everview.adapter.statements.nodes import Drop, Statement
from everview.adapter.tables import Part, as_changes, size_of
from everview.adapter.timeline import Timeline
from everview.compute.rows.arrow import rows_from_arrow
from everview.compute.rows.collection import Rows, add
from everview.compute.sql.errors import SqlError
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import NotReadable

SAVEPOINTS_MAX = 1_000
DRAFTED = ""  # the reader of a collection that is only drafted
WRITTEN_ROWS_MAX = 5_000_000  # rows that a transaction may keep until it ends


@dataclass(frozen=True, slots=True)
class Savepoint:
    """What a transaction had done when it was set. Reads are all at one time, so there is nothing to know of them."""

    name: str
    parts: Mapping[GlobalId, int]
    rows: int
    definitions: tuple[Statement, ...]
    draft: Change | None
    settings: Mark
    cursors: frozenset[str]


@dataclass
class Transaction:
    """A transaction under way. An `explicit` one is a block; the others end with the statement, or at the next sync."""

    explicit: bool
    isolation: str
    now_ms: int
    read_only: bool = False
    failed: bool = False
    time: int | None = None  # of its reads
    timeline: str | None = None  # that the time is on, if it is that of a change stream
    hold: ReadHold | None = None
    read: set[GlobalId] = field(default_factory=set)  # tables and sources below what it read
    written: dict[GlobalId, tuple[Table, list[Part]]] = field(default_factory=dict)
    rows: int = 0
    statements: int = 0
    savepoints: list[Savepoint] = field(default_factory=list)
    definitions: tuple[Statement, ...] = ()
    draft: Change | None = None  # the catalog as the definitions would leave it
    _seen: dict[GlobalId, tuple[int, int, Rows]] = field(default_factory=dict)  # parts, at a time, added up
    _expiring: dict[GlobalId, int] = field(default_factory=dict)  # parts that it read of tables with a TTL

    def drafted(self, ids: Iterable[GlobalId], catalog: Catalog) -> frozenset[GlobalId]:
        """The collections among these that this transaction defines, and that its COMMIT will make."""
        if self.draft is None:
            return frozenset()
        return frozenset(id for id in ids if id in catalog.items and catalog.items[id].reader == DRAFTED)

    def own(self, ids: Iterable[GlobalId], catalog: Catalog, time: int) -> OwnWrites:
        """What this transaction has written to some collections, and sees at the time at which it reads.

        Rows of a table with a TTL that are over at that time are never in the table.
        """
        found: dict[GlobalId, Rows] = {}
        for id in self.written.keys() & set(ids):
            item, parts = self.written[id]
            count, at, rows = self._seen.get(id, (0, time, {}))
            if at != time and item.ttl is not None:
                count, rows = 0, {}
            written = as_changes(parts[count:], item.types)
            if item.ttl is not None:
                written = there(written, item.ttl, time)
                self._expiring[id] = len(parts)
            for row, multiplicity in rows_from_arrow(written, item.types).items():
                add(rows, row, multiplicity)
            self._seen[id] = len(parts), time, rows
            found[id] = rows
        drafted = self.drafted(ids, catalog)
        return OwnWrites(found, drafted) if found or drafted else NOTHING

    def check_may_read(self, ids: Iterable[GlobalId], catalog: Catalog) -> None:
        """Raise if something is to be read that is maintained from what this transaction has written."""
        for id, table in self._written_below(ids, catalog):
            if id != table:
                name, below = catalog.items[id].name, catalog.items[table].name
                raise SqlError(
                    INVALID_TRANSACTION,
                    f'"{name}" cannot be read in a transaction that has written to "{below}"',
                    detail=f'"{name}" is maintained, and writes reach it when their transaction commits',
                    hint="commit first, or read the tables themselves",
                )

    def check_timeline(self, name: str | None, ids: Iterable[GlobalId], catalog: Catalog) -> None:
        """Raise if some collections are on a timeline on which this transaction does not read or write."""
        if name is not None and self.written:
            written = ", ".join(sorted(f'"{item.name}"' for item, _ in self.written.values()))
            done = f"it has written to {written}, on {shown_timeline(None)}"
        elif self.time is not None and name != self.timeline:
            done = f"it reads at time {self.time} of {shown_timeline(self.timeline)}"
        else:
            return
        names = ", ".join(sorted(f'"{catalog.items[id].name}"' for id in ids))
        raise SqlError(
            INVALID_TRANSACTION,
            f"{names}, on {shown_timeline(name)}, cannot be read in this transaction",
            detail=done,
            hint="a transaction is on one timeline: read it in another transaction",
        )

    def check_unwritten(self, ids: Iterable[GlobalId], catalog: Catalog, what: str) -> None:
        """Raise if this transaction has written or defined something that can only be read as others see it."""
        for id in self.drafted(ids, catalog):
            message = f'"{catalog.items[id].name}" cannot be read with {what} in the transaction that defines it'
            raise SqlError(INVALID_TRANSACTION, message, detail="it is made by COMMIT", hint="commit first")
        for _, table in self._written_below(ids, catalog):
            raise SqlError(
                INVALID_TRANSACTION,
                f'"{catalog.items[table].name}" cannot be read with {what} in a transaction that has written to it',
                detail=f"{what} gives what is committed",
                hint="commit first",
            )

    def _written_below(self, ids: Iterable[GlobalId], catalog: Catalog) -> Iterator[tuple[GlobalId, GlobalId]]:
        for id in sorted(ids) if self.written else ():
            yield from ((id, table) for table in sorted(catalog.roots(id) & self.written.keys()))

    def check_may_write(self) -> None:
        """Raise if this transaction only reads, or defines."""
        if self.read_only:
            raise SqlError(READ_ONLY_TRANSACTION, "cannot write in a read-only transaction")
        if self.definitions and (self.draft is None or isinstance(self.definitions[0], Drop)):
            raise SqlError(
                INVALID_TRANSACTION,
                "a transaction that has such definitions cannot write",
                detail="materialized views, sources, sinks and DROPs take more steps than one, and writes are one step",
                hint="commit first; in drivers, set autocommit",
            )

    def check_may_define(self) -> None:
        """Raise if this transaction only reads."""
        if self.read_only:
            raise SqlError(READ_ONLY_TRANSACTION, "cannot define anything in a read-only transaction")

    def mark(self, name: str, settings: Mark, cursors: Iterable[str]) -> None:
        """Set a savepoint."""
        if len(self.savepoints) >= SAVEPOINTS_MAX:
            raise SqlError(PROGRAM_LIMIT, f"a transaction can have at most {SAVEPOINTS_MAX} savepoints")
        parts = {id: len(rows) for id, (_, rows) in self.written.items()}
        draft = None if self.draft is None else self.draft.copy()
        point = Savepoint(name, parts, self.rows, self.definitions, draft, settings, frozenset(cursors))
        self.savepoints.append(point)

    def savepoint(self, name: str) -> int:
        places = [place for place, each in enumerate(self.savepoints) if each.name == name]
        if not places:
            raise SqlError("3B001", f'savepoint "{name}" does not exist')
        return places[-1]

    def back_to(self, name: str) -> Savepoint:
        """Undo what was done since a savepoint, which stays."""
        place = self.savepoint(name)
        point = self.savepoints[place]
        del self.savepoints[place + 1 :]
        self.written = {
            id: (item, rows[: point.parts[id]]) for id, (item, rows) in self.written.items() if id in point.parts
        }
        self._seen.clear()
        self._expiring = {id: min(count, point.parts[id]) for id, count in self._expiring.items() if id in point.parts}
        self.rows, self.definitions = point.rows, point.definitions
        self.draft = None if point.draft is None else point.draft.copy()
        self.failed = False
        return point

    def write(self, item: Table, rows: Part) -> None:
        """Keep changes of a table for the end."""
        self.check_may_write()
        if self.timeline is not None:
            raise SqlError(
                INVALID_TRANSACTION,
                f'"{item.name}", on {shown_timeline(None)}, cannot be written in this transaction',
                detail=f"it reads at time {self.time} of {shown_timeline(self.timeline)}",
                hint="a transaction is on one timeline: write in another transaction",
            )
        self.rows += size_of(rows)
        if self.rows > WRITTEN_ROWS_MAX:
            hint = "commit more often, or use COPY"
            raise SqlError(PROGRAM_LIMIT, f"a transaction can write at most {WRITTEN_ROWS_MAX} rows", hint=hint)
        self.written.setdefault(item.id, (item, []))[1].append(rows)

    def commit(self, timeline: Timeline, environment: Environment, interrupts: Interrupts) -> int | None:
        """Make the writes durable and give their time. None if the transaction has written nothing."""
        try:
            tables = {id: as_changes(parts, item.types) for id, (item, parts) in self.written.items()}
            if not self.written:
                return None
            writers = {id: item.writer or "" for id, (item, _) in self.written.items()}
            if self.time is None or not self.read:
                return timeline.write(tables, writers, interrupts.turn())
            with timeline.exclusive(writers, self.read, interrupts.turn()):
                if not self.reads_expiring(timeline):
                    self.check_unchanged(environment, timeline)
                    return timeline.write_exclusively(tables, writers)
                with timeline.still():  # what leaves by itself until then is a change as well
                    timeline.advance(timeline.now_ms)
                    self.check_unchanged(environment, timeline)
                    return timeline.write_exclusively(tables, writers, timeline.upper)
        finally:
            self.release()

    def release(self) -> None:
        """Let go of what it held."""
        if self.hold is not None:
            self.hold.release()
            self.hold = None

    def reads_expiring(self, timeline: Timeline) -> bool:
        """Whether it read rows that may leave by themselves until it ends, stored ones or its own."""
        return bool(self._expiring) or timeline.expiring.any_of(self.read)

    def check_unchanged(self, environment: Environment, timeline: Timeline) -> None:
        """Raise if anything that it read has changed since."""
        if not self.unchanged(environment, timeline):
            raise SqlError(
                "40001",
                "could not serialize access due to concurrent update",
                detail="what the transaction read has changed before it could write",
                hint="try the transaction again",
            )

    def unchanged(self, environment: Environment, timeline: Timeline) -> bool:
        """Whether all tables that it read, or that views it read are made from, are as they were."""
        upper = timeline.upper
        if self.time is None:
            return True
        if any(self._leaving(id, count, upper) for id, count in self._expiring.items()):
            return False
        if self.time + 1 >= upper:
            return True
        for id in self.read:
            try:
                with environment.changes(id, self.time + 1, upper) as selection:
                    if selection.changes().num_rows > 0:
                        return False
            except NotReadable:  # nobody can tell any more
                return False
        return True

    def _leaving(self, id: GlobalId, count: int, time: int) -> bool:
        """Whether rows that it wrote and read are over at `time`."""
        item, parts = self.written[id]
        assert item.ttl is not None and self.time is not None
        seen = there(as_changes(parts[:count], item.types), item.ttl, self.time)
        return bool(there(seen, item.ttl, time).num_rows < seen.num_rows)
