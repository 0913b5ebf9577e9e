"""The timeline: the durable object that gives statements their timestamps, in milliseconds since the epoch.

It is a clock of storage that every table's write frontier follows. A clock at T says: all times before T are closed,
and contents at T - 1 are known. From that follow the rules of the formalism:

1. timestamps never decrease, for the clock never does, whatever the wall clock does, and it is durable;
2. a write happens at a time not before T, so after every read, which was at a time before T;
3. a read waits until the clock and its inputs are beyond its time, which is not before their `since`;
4. a write's time is not before T, which is its table's write frontier.

Writes that wait for one another share one timestamp and one durable step. Nobody waits for a timer: who needs the
clock to be later moves it. A second clock, `history`, is how far the past may be forgotten (`history.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from everview.adapter.errors import PROGRAM_LIMIT, UNDEFINED_OBJECT, sql_error
from everview.adapter.expiry import Expiring
from everview.adapter.history import History
from everview.adapter.turns import Entry, Turns
from everview.compute.functions.contract import Failure
from everview.compute.sql.errors import SqlError
from everview.storage.contract import AdvanceClock, Command, GlobalId, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.storage.errors import Corruption, InvalidUsage
from everview.storage.group_commit import Interrupt
from everview.timely.antichain import Antichain
from everview.timely.consolidate import TIME, with_column
from everview.timely.lattice import TIME_MAX

CLOCK, HISTORY = "timeline", "history"
GROUP_ROWS_MAX = 1_000_000  # rows of writes that share a durable step; one that is larger goes alone

Rows = Mapping[GlobalId, pa.Table]  # for each table its changes: data columns and `_diff`
RowsAt = Callable[[int], Rows]  # what is written if that is the time of the write


@dataclass(slots=True, eq=False, kw_only=True)
class _Write(Entry):
    """A write: its changes, or what makes them once its time is known, and the tokens of those who may write."""

    rows: Rows | RowsAt = field(default_factory=dict)
    writers: Mapping[GlobalId, str] = field(default_factory=dict)
    made: Rows = field(default_factory=dict)
    time: int | None = None
    error: Exception | None = None


def _write(rows: Rows | RowsAt, writers: Mapping[GlobalId, str]) -> _Write:
    size = 1 if callable(rows) else sum(table.num_rows for table in rows.values())
    return _Write(writes=frozenset(writers), size=size, rows=rows, writers=writers)


class Timeline(History):
    name: str | None = None

    def __init__(self, environment: Environment, now_ms: Callable[[], int]) -> None:
        super().__init__(environment, HISTORY)
        self._wall_ms = now_ms
        self.turns = Turns()  # whose write is next
        self.expiring = Expiring(environment, CLOCK)  # rows that leave by themselves, as the clock moves
        clocks = [environment.clock(name) for name in (CLOCK, HISTORY)]
        if None in clocks and (clocks != [None, None] or environment.ids()):
            raise Corruption("a clock of the environment is missing", hint="restore the metadata from a copy")
        if environment.clock(CLOCK) is None:
            now = self.now_ms
            environment.commit(AdvanceClock(CLOCK, None, now), AdvanceClock(HISTORY, None, now))

    @property
    def now_ms(self) -> int:
        """The wall clock, within what is a time."""
        return min(max(self._wall_ms(), 1), TIME_MAX - 1)

    @property
    def present_ms(self) -> int:
        """The wall clock, or the latest closed time if that is later: `now()` is never before `mz_now()`."""
        return max(self.now_ms, self.upper - 1)

    @property
    def upper(self) -> int:
        """Where the clock stands: all earlier times are closed."""
        clock = self._environment.clock(CLOCK)
        assert clock is not None
        return clock

    @property
    def owned(self) -> bool:
        """Whether a read may be answered at once: nobody can have written since but this process."""
        return self._environment.owned

    # Reads

    def advance(self, time: int) -> None:
        """Close all times up to and including `time`, if they are not."""
        if time < self.upper:
            return
        with self._commit_lock:
            while time >= (upper := self.upper):
                to = self.expiring.reach(upper, time + 1)
                self._environment.commit(*self._clocks(to), *self.expiring.prepare(upper, to, {})[1])

    def _make_room(self, time: int) -> None:
        """Let the clock come so close to `time` that what is due up to then fits one commit with a write at it."""
        if self.expiring.reach(self.upper, time + 1) <= time:
            self.advance(time - 1)

    # Writes

    def write(self, rows: Rows | RowsAt, writers: Mapping[GlobalId, str], interrupt: Interrupt = lambda: None) -> int:
        """Write to tables, all at one time and durable together; gives the time.

        `rows` may be what makes them from the time of the write; it is called while no time can pass, so it must be
        quick. `writers` are the tokens of the tables' write capabilities. What is queued meanwhile goes along.
        `interrupt` raises when the caller no longer wants to wait; a write that someone has begun to commit goes on
        regardless.
        """
        entry = _write(rows, writers)
        self.turns.commit(entry, GROUP_ROWS_MAX, self._commit_writes, interrupt)
        return _time_of(entry)

    def exclusive(
        self, writes: Iterable[GlobalId], reads: Iterable[GlobalId] = (), interrupt: Interrupt = lambda: None
    ) -> AbstractContextManager[None]:
        """While inside, only the caller writes to these tables: what it reads there is still so when it writes."""
        return self.turns.claimed(writes, reads, interrupt)

    def write_exclusively(self, rows: Rows, writers: Mapping[GlobalId, str], at: int | None = None) -> int | None:
        """Write at once, without those who wait; within `exclusive`. None if time has passed beyond `at`, if given."""
        with self._commit_lock:
            if at is not None and self.upper > at:
                return None
            entry = _write(rows, writers)
            self._commit_group([entry], at)
        return _time_of(entry)

    def step(
        self, rows: Rows | None = None, writers: Mapping[GlobalId, str] | None = None, at: int | None = None
    ) -> list[Command]:
        """The commands that close a time, `at` or now, and write to tables at it; to be committed within `still`."""
        time = max(self.upper, self.now_ms) if at is None else at
        if time >= TIME_MAX:
            raise SqlError(PROGRAM_LIMIT, "the timeline is at its end")
        self._make_room(time)
        entry = _write(rows or {}, writers or {})
        entry.made = rows or {}
        return self._commands([entry], time)

    # Inside

    def _commit_writes(self, group: list[Entry]) -> None:
        self._commit_group([each for each in group if isinstance(each, _Write)])

    def _commit_group(self, group: list[_Write], at: int | None = None) -> None:
        """Make the writes of a group durable; one that is invalid fails alone."""
        with self._commit_lock:
            time = max(self.upper, self.now_ms) if at is None else at
            group_now: list[_Write] = []
            try:
                if time >= TIME_MAX:
                    raise SqlError(PROGRAM_LIMIT, "the timeline is at its end")
                group_now = [entry for entry in group if self._exists(entry) and self._make(entry, time)]
                if group_now:
                    self._make_room(time)
                    self._environment.commit(*self._commands(group_now, time))
                for entry in group_now:
                    entry.time = time
            except (InvalidUsage, pa.ArrowException) as error:
                for entry in group_now if len(group_now) > 1 else ():
                    self._commit_group([entry])
                for entry in group_now if len(group_now) == 1 else ():
                    entry.error = error
            except Exception as error:
                for entry in group:
                    entry.error = entry.error or error
            finally:
                for entry in group:
                    if entry.time is None and entry.error is None:  # a crash on purpose passes through here
                        entry.error = SqlError("XX000", "internal error: the write was interrupted")

    def _commands(self, group: list[_Write], time: int) -> list[Command]:
        """What writes all of a group at a time, which is closed with that."""
        rows, expired = self.expiring.prepare(self.upper, time + 1, self._merged(group, time))
        commands: list[Command] = [*self._clocks(time + 1), *expired]
        for id, table in rows.items():
            token = next(entry.writers[id] for entry in group if id in entry.writers)
            capability = self._environment.present(id, token)
            assert isinstance(capability, WriteCapability)
            # Every table's follows the clock: that of one which is made by the same commit will, by then.
            commands.append(UpdateAndDowngrade(replace(capability, clock=CLOCK), table, Antichain(time + 1)))
        return commands

    def _exists(self, entry: _Write) -> bool:
        """Whether its tables are still there; a table that was dropped fails its own writers only."""
        for id in entry.writers:
            if self._environment.frontiers(id).upper.empty:
                entry.error = SqlError(UNDEFINED_OBJECT, "a table was dropped while it was written to")
                return False
        return True

    @staticmethod
    def _make(entry: _Write, time: int) -> bool:
        """Its rows at a time; what cannot be made fails alone."""
        try:
            entry.made = entry.rows(time) if callable(entry.rows) else entry.rows
        except (Exception, Failure) as error:
            entry.error = sql_error(error)
        return entry.error is None

    @staticmethod
    def _merged(group: list[_Write], time: int) -> dict[GlobalId, pa.Table]:
        parts: dict[GlobalId, list[pa.Table]] = {}
        for entry in group:
            for id, table in entry.made.items():
                if table.num_rows:
                    parts.setdefault(id, []).append(table)
        merged = {id: pa.concat_tables(tables) for id, tables in parts.items()}
        return {
            id: with_column(table, TIME, np.full(table.num_rows, time, dtype=np.int64)) for id, table in merged.items()
        }

    def _clocks(self, to: int) -> list[Command]:
        """The commands that move the clock, and, where it is worth it, how far the past may be forgotten."""
        return [AdvanceClock(CLOCK, self.upper, to), *self._forget(to - 1)]


def _time_of(entry: _Write) -> int:
    if entry.error is not None:
        raise entry.error
    assert entry.time is not None
    return entry.time
