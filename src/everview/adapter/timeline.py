"""The timeline: the durable object that gives statements their timestamps, in milliseconds since the epoch.

It is a clock of storage that every table's write frontier follows. A clock at T says: all times before T are closed,
and contents at T - 1 are known. From that follow the rules of the formalism:

1. timestamps never decrease, for the clock never does, whatever the wall clock does, and it is durable;
2. a write happens at a time not before T, so after every read, which was at a time before T;
3. a read waits until the clock and its inputs are beyond its time, which is not before their `since`;
4. a write's time is not before T, which is its table's write frontier.

Writes that wait for one another share one timestamp and one durable step. Nobody waits for a timer: who needs the
clock to be later moves it. A second clock, `history`, is how far the past may be forgotten: all readers follow it, each
at the distance that its RETAIN HISTORY asks for, and it stays behind every read that is under way.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from everview.adapter.errors import CONFIGURATION_LIMIT, PROGRAM_LIMIT, UNDEFINED_OBJECT
from everview.compute.sql.errors import SqlError
from everview.storage.contract import AdvanceClock, Command, GlobalId, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.storage.errors import InvalidUsage
from everview.timely.antichain import Antichain
from everview.timely.consolidate import TIME, with_column
from everview.timely.lattice import TIME_MAX

CLOCK, HISTORY = "timeline", "history"
# The past stays readable for this long where nothing else is asked for.
HISTORY_LAG_MS = 1_000
# Forgetting more of the past is worth a word in a commit once this much can be forgotten.
HISTORY_STEP_MS = 1_000
QUEUE_MAX = 10_000  # writes that wait for their turn
GROUP_ROWS_MAX = 1_000_000  # rows of writes that share a durable step; one that is larger goes alone

POLL_S = 0.05  # how often one who waits for its turn looks whether it still wants to

Interrupt = Callable[[], None]
Rows = Mapping[GlobalId, pa.Table]  # for each table its changes: data columns and `_diff`


@dataclass(slots=True, eq=False)
class _Write:
    """A write that waits for its turn."""

    rows: Rows
    writers: Mapping[GlobalId, str]
    time: int | None = None
    error: Exception | None = None
    done: bool = False
    leads: bool = False  # its owner commits for all that are queued
    asleep: threading.Lock = field(default_factory=threading.Lock)  # its owner sleeps on it

    def __post_init__(self) -> None:
        self.asleep.acquire()

    def call(self) -> None:
        """It is done, or it leads."""
        if self.asleep.locked():
            self.asleep.release()

    @property
    def size(self) -> int:
        return sum(table.num_rows for table in self.rows.values())


class Hold:
    """A time that is being read: the past is not forgotten beyond it until this is released."""

    def __init__(self, timeline: Timeline, time: int) -> None:
        self._timeline: Timeline | None = timeline
        self.time = time

    def release(self) -> None:
        """Let go; more than once does no harm."""
        timeline, self._timeline = self._timeline, None
        if timeline is not None:
            timeline.released(self.time)


class Timeline:
    """The timeline of one environment."""

    def __init__(self, environment: Environment, now_ms: Callable[[], int]) -> None:
        self._environment, self._wall_ms = environment, now_ms
        self._commit_lock = threading.RLock()  # who moves the clocks
        self._write_lock = threading.RLock()  # whose write is next; held by those who read and then write
        self._queue: deque[_Write] = deque()
        self._led = False  # whether the owner of some write leads, or is about to
        self._queue_lock = threading.Lock()
        self._held: Counter[int] = Counter()
        self._held_lock = threading.Lock()
        self._forgetting = False
        if environment.clock(CLOCK) is None:
            now = self.now_ms
            environment.commit(AdvanceClock(CLOCK, None, now), AdvanceClock(HISTORY, None, now))

    @property
    def now_ms(self) -> int:
        """The wall clock, within what is a time."""
        return min(max(self._wall_ms(), 1), TIME_MAX - 1)

    @property
    def upper(self) -> int:
        """Where the clock stands: all earlier times are closed."""
        clock = self._environment.clock(CLOCK)
        assert clock is not None
        return clock

    @property
    def history(self) -> int:
        """How far the past may be forgotten."""
        clock = self._environment.clock(HISTORY)
        assert clock is not None
        return clock

    # Reads

    def advance(self, time: int) -> None:
        """Close all times up to and including `time`, if they are not."""
        if time < self.upper:
            return
        with self._commit_lock:
            if time >= self.upper:
                self._environment.commit(*self._clocks(time + 1))

    def hold(self, time: int) -> Hold:
        """Keep the past from `time` on; the caller then looks whether it is still there."""
        with self._held_lock:
            self._held[time] += 1
            waiting = self._forgetting
        if waiting:  # a commit under way may have decided without knowing of this
            with self._commit_lock:
                pass
        return Hold(self, time)

    def released(self, time: int) -> None:
        """One read less at this time."""
        with self._held_lock:
            self._held[time] -= 1
            if not self._held[time]:
                del self._held[time]

    # Writes

    def write(self, rows: Rows, writers: Mapping[GlobalId, str], interrupt: Interrupt = lambda: None) -> int:
        """Write to tables, all at one time and durable together; gives the time.

        `writers` are the tokens of the tables' write capabilities. What is queued meanwhile goes along. `interrupt`
        raises when the caller no longer wants to wait; a write that someone has begun to commit goes on regardless.
        """
        entry = _Write(rows, writers)
        with self._queue_lock:
            if len(self._queue) >= QUEUE_MAX:
                raise SqlError(CONFIGURATION_LIMIT, f"more than {QUEUE_MAX} writes are waiting", hint="try again later")
            self._queue.append(entry)
            entry.leads, self._led = not self._led, True
        try:
            self._wait_or_lead(entry, interrupt)
        finally:
            if not entry.done:
                self._withdraw(entry)  # whoever leaves must not be called to lead
            if entry.leads:
                self._hand_over()
        if entry.error is not None:
            raise entry.error
        assert entry.time is not None
        return entry.time

    @contextmanager
    def exclusive(self, interrupt: Interrupt = lambda: None) -> Iterator[None]:
        """While inside, only the caller writes: what it reads here is still so when it writes."""
        while not self._write_lock.acquire(timeout=POLL_S):
            interrupt()
        try:
            yield
        finally:
            self._write_lock.release()

    def write_exclusively(self, rows: Rows, writers: Mapping[GlobalId, str], at: int | None = None) -> int:
        """Write at once, without those who wait; within `exclusive`. Within `still` the time may be given."""
        entry = _Write(rows, writers)
        self._commit_group([entry], at)
        if entry.error is not None:
            raise entry.error
        assert entry.time is not None
        return entry.time

    @contextmanager
    def still(self) -> Iterator[None]:
        """While inside, no one else moves the clock: definitions change between writes."""
        with self._write_lock, self._commit_lock:
            yield

    def step(self, rows: Rows | None = None, writers: Mapping[GlobalId, str] | None = None) -> list[Command]:
        """The commands that close the present time, and write to tables at it; to be committed within `still`."""
        time = max(self.upper, self.now_ms)
        if time >= TIME_MAX:
            raise SqlError(PROGRAM_LIMIT, "the timeline is at its end")
        return self._commands([_Write(rows or {}, writers or {})], time)

    # Inside

    def _wait_or_lead(self, entry: _Write, interrupt: Interrupt) -> None:
        """Until the write is done, by whoever leads.

        Those who do not lead sleep until they are done. Were they to come for the lock one by one, only to find that
        they are, those who write next would have to pass them and would commit in small groups.
        """
        while not (entry.done or entry.leads):
            if not entry.asleep.acquire(timeout=POLL_S):
                try:
                    interrupt()
                except BaseException:
                    if self._withdraw(entry):
                        raise
        if not entry.done:
            with self.exclusive(interrupt):
                while not entry.done:
                    self._commit_group(self._take())

    def _hand_over(self) -> None:
        """Let the first of those who wait lead, if anyone waits."""
        with self._queue_lock:
            self._led = bool(self._queue)
            if self._led:
                self._queue[0].leads = True
                self._queue[0].call()

    def _withdraw(self, entry: _Write) -> bool:
        with self._queue_lock:
            if entry in self._queue:
                self._queue.remove(entry)
                return True
        return False

    def _take(self) -> list[_Write]:
        with self._queue_lock:
            group: list[_Write] = []
            size = 0
            while self._queue and (not group or size + self._queue[0].size <= GROUP_ROWS_MAX):
                group.append(self._queue.popleft())
                size += group[-1].size
            return group

    def _commit_group(self, group: list[_Write], at: int | None = None) -> None:
        """Make the writes of a group durable; one that is invalid fails alone."""
        with self._commit_lock:
            time = max(self.upper, self.now_ms) if at is None else at
            group_now: list[_Write] = []
            try:
                if time >= TIME_MAX:
                    raise SqlError(PROGRAM_LIMIT, "the timeline is at its end")
                group_now = [entry for entry in group if self._exists(entry)]
                if group_now:
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
                    entry.done = True
                    entry.call()

    def _commands(self, group: list[_Write], time: int) -> list[Command]:
        """What writes all of a group at a time, which is closed with that."""
        commands: list[Command] = [*self._clocks(time + 1)]
        for id, table in self._merged(group, time).items():
            token = next(entry.writers[id] for entry in group if id in entry.writers)
            capability = self._environment.present(id, token)
            assert isinstance(capability, WriteCapability)
            # Every table's follows the clock: that of one which is made by the same commit will, by then.
            commands.append(UpdateAndDowngrade(replace(capability, clock=CLOCK), table, Antichain(time + 1)))
        return commands

    def _exists(self, entry: _Write) -> bool:
        """Whether its tables are still there; a table that was dropped fails its own writers only."""
        for id in entry.rows:
            if self._environment.frontiers(id).upper.empty:
                entry.error = SqlError(UNDEFINED_OBJECT, "a table was dropped while it was written to")
                return False
        return True

    @staticmethod
    def _merged(group: list[_Write], time: int) -> dict[GlobalId, pa.Table]:
        parts: dict[GlobalId, list[pa.Table]] = {}
        for entry in group:
            for id, table in entry.rows.items():
                if table.num_rows:
                    parts.setdefault(id, []).append(table)
        merged = {id: pa.concat_tables(tables) for id, tables in parts.items()}
        return {
            id: with_column(table, TIME, np.full(table.num_rows, time, dtype=np.int64)) for id, table in merged.items()
        }

    def _clocks(self, to: int) -> list[Command]:
        """The commands that move the clock, and, where it is worth it, how far the past may be forgotten."""
        commands: list[Command] = [AdvanceClock(CLOCK, self.upper, to)]
        history = self.history
        with self._held_lock:
            target = min([to - 1 - HISTORY_LAG_MS, *self._held])
            self._forgetting = target >= history + HISTORY_STEP_MS
        if self._forgetting:
            commands.append(AdvanceClock(HISTORY, history, target))
        return commands
