"""TTL of tables: rows that leave their table by themselves, each at its millisecond.

A table with a TTL has, at each time t, the rows that are due after t: due is the time in one of their columns plus the
TTL. The write frontier of every table follows the clock of the timeline. So whoever moves the clock from a to b commits
with that the retractions of all rows that are due from a up to b, each at its own time. Rows that are already due are
not written at all. The clock and the retractions are one commit: nothing is retracted twice.

The rows of each table that are due next are kept in memory: at most `KEPT_ROWS_MAX` of them, and all of a millisecond.
Rows that are due beyond a `horizon` are only in storage, and are read when the clock gets there.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.adapter.catalog.items import Table
from everview.compute.ir.infinite import DAY_INFINITY, MICROS_INFINITY
from everview.compute.ir.types import Kind
from everview.storage.batch import as_declared
from everview.storage.contract import Command, GlobalId, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.storage.shard import FOREVER
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, TIME, consolidate, int_column, with_column
from everview.timely.hashing import I64

KEPT_ROWS_MAX = 200_000  # rows in memory for each table, and rows that one move of the clock retracts
# Numbers are milliseconds since 1970, and those of our time are too long for an integer.
DUE_TYPES = (Kind.TIMESTAMPTZ, Kind.TIMESTAMP, Kind.DATE, Kind.INT8, Kind.NUMERIC, Kind.MZ_TIMESTAMP)
DAY_MS = 86_400_000
_NONE: I64 = np.zeros(0, dtype=np.int64)


def due_times(column: pa.ChunkedArray, ttl_ms: int) -> I64:
    """When rows with these times are due: the first millisecond at which `mz_now() < time + ttl` no longer holds.

    NULL is never due, nor are 'infinity' and times beyond the last one.
    """
    never = pc.is_null(column).to_numpy(zero_copy_only=False) if column.null_count else None
    of = column.type
    if pa.types.is_timestamp(of):
        micros = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
        starts = np.where(micros == MICROS_INFINITY, FOREVER, micros // 1000 + (micros % 1000 != 0))
    elif pa.types.is_date32(of):
        days = pc.fill_null(column.cast(pa.int32()).cast(pa.int64()), 0).to_numpy()
        starts = np.where(days == DAY_INFINITY, FOREVER, days * DAY_MS)
    elif pa.types.is_decimal(of):
        numbers = [0 if each is None else math.ceil(each) for each in column.to_pylist()]
        starts = np.array([min(max(each, -FOREVER), FOREVER) for each in numbers], dtype=np.int64)
    else:
        starts = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    dues = np.where(starts > FOREVER - ttl_ms, FOREVER, starts + np.minimum(ttl_ms, FOREVER - np.maximum(starts, 0)))
    return dues if never is None else np.where(never, FOREVER, dues)


def there(rows: pa.Table, ttl: tuple[int, int], time: int) -> pa.Table:
    """The changes of those rows that a table with this TTL still has at a time."""
    place, ttl_ms = ttl
    dues = due_times(rows.column(f"c{place}"), ttl_ms)
    return rows.filter(pa.array(dues > time))


@dataclass(frozen=True, slots=True)
class _Changes:
    """Changes of rows, with the times at which the rows are due."""

    rows: pa.Table  # data columns and `_diff`
    dues: I64
    first: int = field(init=False)  # the least due time

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", int(self.dues.min()) if len(self.dues) else FOREVER)

    def __len__(self) -> int:
        return len(self.dues)

    def where(self, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> _Changes:
        return self if chosen.all() else _Changes(self.rows.filter(pa.array(chosen)), self.dues[chosen])


@dataclass(slots=True)
class _Table:
    """The rows of one table that are due before the horizon."""

    id: GlobalId
    writer: str
    column: str
    ttl_ms: int
    horizon: int = 0  # nothing was read yet
    kept: list[_Changes] = field(default_factory=list)

    @property
    def next_due(self) -> int:
        """No row is due before this."""
        return min([self.horizon, *(each.first for each in self.kept)])

    @property
    def size(self) -> int:
        """The number of changes in memory."""
        return sum(map(len, self.kept))

    def changes(self, rows: pa.Table) -> _Changes:
        """The rows with their due times."""
        return _Changes(rows, due_times(rows.column(self.column), self.ttl_ms))

    def read(self, environment: Environment, clock: int) -> None:
        """Read the rows that are due next from storage, which is complete up to the clock."""
        self.kept, self.horizon = [], FOREVER
        if environment.shard(self.id).spec.initial >= clock:
            return  # nobody has written to it
        with environment.contents(self.id, clock - 1) as selection:
            for chunk in selection.chunks(clock - 1):
                self.keep(self.changes(chunk), clock, selection.spec.schema)

    def keep(self, changes: _Changes, clock: int, schema: pa.Schema) -> None:
        """Keep the changes of rows that are due before the horizon; move the horizon closer if there are too many."""
        found = changes.where(changes.dues < self.horizon)
        if not len(found):
            return
        kept = pa.schema([*schema, pa.field(DIFF, pa.int64(), False)])
        self.kept.append(_Changes(as_declared(found.rows.select(kept.names), kept), found.dues))
        while len(self.kept) > 1 and 2 * len(self.kept[-1]) > len(self.kept[-2]):  # so there are never many
            last, before = self.kept.pop(), self.kept.pop()
            self.kept.append(_together([before, last]))
        if self.size > 2 * KEPT_ROWS_MAX:
            self.cut(clock)

    def cut(self, clock: int) -> None:
        """Keep only as many as there is room for, but never a part of a millisecond."""
        whole = _together(self.kept)
        updates = consolidate(with_column(whole.rows, TIME, whole.dues))  # rows that have gone again are not kept
        self.kept = (
            [_Changes(updates.select(whole.rows.column_names), int_column(updates, TIME))] if len(updates) else []
        )
        if self.size <= KEPT_ROWS_MAX:
            return
        dues = np.sort(np.maximum(np.concatenate([each.dues for each in self.kept]), clock))
        last = int(dues[KEPT_ROWS_MAX])
        if last == dues[0]:
            last += 1
        self.horizon = min(self.horizon, last)
        self.kept = _some(part.where(part.dues < self.horizon) for part in self.kept)

    def due(self, before: int) -> I64:
        return np.sort(np.concatenate([_NONE, *(each.dues[each.dues < before] for each in self.kept)]))

    def retractions(self, clock: int, to: int) -> pa.Table | None:
        """The retractions of all rows that are due before `to`: each at its time, but not before the clock."""
        if self.next_due >= to:
            return None
        parts = _some(each.where(each.dues < to) for each in self.kept)
        if not parts:
            return None
        due = _together(parts)
        found = consolidate(with_column(due.rows, TIME, np.maximum(due.dues, clock)))
        return with_column(found, DIFF, -int_column(found, DIFF)) if found.num_rows else None


def _some(parts: Iterable[_Changes]) -> list[_Changes]:
    return [part for part in parts if len(part)]


def _together(parts: list[_Changes]) -> _Changes:
    return _Changes(pa.concat_tables([part.rows for part in parts]), np.concatenate([part.dues for part in parts]))


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A move of the clock that may or may not have been committed, and its writes to tables with a TTL."""

    to: int
    written: Mapping[GlobalId, _Changes]


class Expiring:
    """The tables with a TTL. Callers of `reach` and `prepare` hold the lock of the clock; others need not."""

    def __init__(self, environment: Environment, clock: str) -> None:
        self._environment, self._clock = environment, clock
        self._tables: dict[GlobalId, _Table] = {}
        self._prepared: _Prepared | None = None
        self._lock = threading.RLock()
        self.version = 0  # grows when `dues` may have changed

    def add(self, item: Table) -> None:
        """Let the rows of a table expire from now on, or change when they do."""
        assert item.ttl is not None and item.writer is not None
        place, ttl_ms = item.ttl
        with self._lock:
            self._settle()
            self._tables[item.id] = _Table(item.id, item.writer, f"c{place}", ttl_ms)
            self.version += 1

    def remove(self, id: GlobalId) -> None:
        """Let the rows of a table stay from now on."""
        with self._lock:
            self._settle()
            if self._tables.pop(id, None) is not None:
                self.version += 1

    def any_of(self, ids: Iterable[GlobalId]) -> bool:
        """Whether one of these tables has a TTL."""
        return bool(self._tables) and any(id in self._tables for id in ids)

    def settled(self, id: GlobalId, time: int) -> bool:
        """Whether no row of this collection expires up to `time`."""
        if id not in self._tables:
            return True
        with self._lock:
            self._settle()
            table = self._tables.get(id)
            return table is None or table.next_due > time

    def leaving(self, ids: Iterable[GlobalId], time: int) -> dict[GlobalId, pa.Table] | None:
        """The retractions of the rows of these tables that expire between the clock and `time`.

        None if `time` is beyond a horizon. The caller holds the lock of the clock.
        """
        found: dict[GlobalId, pa.Table] = {}
        wanted = self._tables.keys() & set(ids)
        with self._lock:
            self._settle()
            for table in self._present(self._environment.clock(self._clock) or 0) if wanted else ():
                if table.id in wanted and time > table.horizon:
                    return None
                gone = table.retractions(0, time) if table.id in wanted else None
                if gone is not None:
                    found[table.id] = gone
        return found

    def dues(self) -> list[int]:
        """The next time at which a row is due, for each table that has one."""
        if not self._tables:
            return []
        with self._lock:
            self._settle()
            clock = self._environment.clock(self._clock) or 0
            # Of a table that was not read yet nothing is known, so something may be due now.
            return [max(due, clock) for table in self._tables.values() if (due := table.next_due) != FOREVER]

    # With the lock of the clock

    def reach(self, clock: int, to: int) -> int:
        """How far one commit may move the clock towards `to`: it retracts a limited number of rows."""
        if not self._tables:
            return to
        with self._lock:
            self._settle(over=True)
            for table in self._present(clock):
                if table.next_due >= to:
                    continue
                to = min(to, table.horizon)
                dues = table.due(to)
                if len(dues) > KEPT_ROWS_MAX:
                    to = min(to, max(clock, int(dues[KEPT_ROWS_MAX - 1])) + 1)
        return to

    def prepare(
        self, clock: int, to: int, written: Mapping[GlobalId, pa.Table]
    ) -> tuple[Mapping[GlobalId, pa.Table], list[Command]]:
        """Prepare a move of the clock: its retractions, and the rows of `written` that are not due yet at `to`.

        `to` comes from `reach`. The next call here finds out from the clock whether the move was committed.
        """
        if not self._tables:
            return written, []
        commands: list[Command] = []
        rest: dict[GlobalId, pa.Table] = dict(written)
        noted: dict[GlobalId, _Changes] = {}
        with self._lock:
            self._settle(over=True)
            for table in self._present(clock):
                id = table.id
                if id in written:
                    changes = table.changes(written[id])
                    noted[id] = changes.where(changes.dues >= to)
                    rest[id] = noted[id].rows
                retractions = table.retractions(clock, to)
                if retractions is not None:
                    capability = self._environment.present(id, table.writer)
                    assert isinstance(capability, WriteCapability)
                    held = replace(capability, clock=self._clock)
                    commands.append(UpdateAndDowngrade(held, retractions, Antichain(to)))
            self._prepared = _Prepared(to, noted)
        return rest, commands

    def _present(self, clock: int) -> list[_Table]:
        """The tables that still exist, each with its next due rows in memory."""
        for id in list(self._tables):
            if self._environment.frontiers(id).upper.empty:  # dropped, and not removed here yet
                del self._tables[id]
            elif self._tables[id].horizon <= clock:
                self._tables[id].read(self._environment, clock)
        return list(self._tables.values())

    def _settle(self, *, over: bool = False) -> None:
        """Take over the prepared move if it was committed; forget it if the attempt is `over`."""
        prepared = self._prepared
        if prepared is None:
            return
        clock = self._environment.clock(self._clock)
        assert clock is not None
        if over or clock >= prepared.to:
            self._prepared = None
        if clock < prepared.to:
            return
        for id, table in self._tables.items():
            if table.next_due < prepared.to:
                table.kept = _some(part.where(part.dues >= prepared.to) for part in table.kept)
            if id in prepared.written:
                table.keep(prepared.written[id], prepared.to, self._environment.shard(id).spec.schema)
        self.version += 1
