"""Subscriptions: the contents of a query at a time, then its changes, each at exactly its time, for as long as wanted.

A subscription pulls: it reads from storage what its reader has not had yet, when the reader asks. A slow reader costs
no memory, only the history that the subscription holds; it lets go of that as it goes on. Queries that work row by row
are applied to the changes of their one relation; for all others a view is maintained while the subscription lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from everview.adapter.bound_statement import speaks_of_time
from everview.adapter.contract import Column, Row
from everview.adapter.envelopes import Envelope
from everview.adapter.errors import UNDEFINED_OBJECT, as_sql_errors
from everview.adapter.history import History
from everview.adapter.interrupts import Interrupts
from everview.adapter.read_holds import ReadHold
from everview.adapter.results import BATCH_ROWS
from everview.adapter.statements import nodes
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation
from everview.compute.ir.types import BOOLEAN, INT8, TEXT, numeric
from everview.compute.rows.arrow import rows_from_arrow
from everview.compute.rows.collection import Rows
from everview.compute.sql.errors import UNDEFINED_COLUMN, SqlError, did_you_mean
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.selection import Selection
from everview.storage.shard import FOREVER, from_frontier
from everview.storage.subscribe import following
from everview.timely.consolidate import TIME

TIMESTAMP = numeric(38, 0)
_LINEAR = (ir.Get, ir.Map, ir.Filter, ir.Project, ir.FlatMap)


def output_columns(statement: nodes.Subscribe, data: tuple[Column, ...]) -> tuple[Column, ...]:
    """What a subscription to a query with these columns gives."""
    first: tuple[Column, ...] = (Column("mz_timestamp", TIMESTAMP),)
    if statement.progress:
        first += (Column("mz_progressed", BOOLEAN),)
    if statement.envelope is None:
        return (*first, Column("mz_diff", INT8), *data)
    keys, values = split_key(statement, data)
    state = (Column("mz_state", TEXT), *(data[index] for index in keys))
    if statement.envelope == "upsert":
        return (*first, *state, *(data[index] for index in values))
    both = [Column(f"{side}_{data[index].name}", data[index].type) for side in ("before", "after") for index in values]
    return (*first, *state, *both)


def split_key(statement: nodes.Subscribe, data: Sequence[Column]) -> tuple[list[int], list[int]]:
    """The places of the key columns, and of the others."""
    names = [column.name for column in data]
    keys = []
    for name in statement.key:
        if name not in names:
            hint = did_you_mean(name, names)
            raise SqlError(UNDEFINED_COLUMN, f'no column named "{name}" in the subscription', hint=hint)
        if names.index(name) in keys:
            raise SqlError("42701", f'column "{name}" specified more than once in KEY')
        keys.append(names.index(name))
    return keys, [index for index in range(len(names)) if index not in keys]


def is_linear(relation: Relation) -> bool:
    """Whether a query works row by row on one relation, so that it can be applied to changes of the relation."""
    parts = list(ir.walk(relation))
    by_row = all(isinstance(part, _LINEAR) for part in parts) and not speaks_of_time(relation)
    return by_row and sum(isinstance(part, ir.Get) for part in parts) == 1


@dataclass(frozen=True, slots=True)
class Feed:
    """Where changes come from: a collection, and what is done with its rows."""

    id: GlobalId
    relation: Relation
    start: int
    up_to: int | None
    check: Callable[[int, int], None]  # raises if the collection fails at a time from the first up to the second
    alive: Callable[[], bool]  # whether all relations that it names still exist
    error: Callable[[], Exception | None]  # why no more can come, if it is so
    finish: Callable[[], None]
    acknowledge: Callable[[int], object] | None = None  # of a durable subscription: all before a time is done with


class SubscriptionRows:
    """The rows of a subscription, as the contract wants them."""

    def __init__(
        self,
        environment: Environment,
        timeline: History,
        interrupts: Interrupts,
        feed: Feed,
        hold: ReadHold,
        *,
        columns: tuple[Column, ...],
        envelope: Envelope,
        snapshot: bool,
        progress: bool,
    ) -> None:
        self._environment, self._timeline, self._interrupts = environment, timeline, interrupts
        self._feed, self._hold = feed, hold
        self.columns = columns
        self._envelope, self._progress = envelope, progress
        self._snapshot_due, self._begun = snapshot, not envelope.stateful
        self._next = feed.start if snapshot else feed.start + 1
        self.told = self._next  # everything before this time was given, the last batch included
        self._patience: float | None = None
        self._cursor = False
        self._closed = False
        self._types = next(part.schema for part in ir.walk(feed.relation) if isinstance(part, ir.Get))

    @property
    def acknowledge(self) -> Callable[[int], object] | None:
        """What tells a durable subscription that everything before a time is done with."""
        return self._feed.acknowledge

    def set_patience(self, seconds: float | None) -> None:
        """Set how long the next wait may take, within the caller's statement. None waits until something comes."""
        self._cursor, self._patience = True, seconds

    def batches(self) -> Iterator[Sequence[Row]]:
        number = None if self._cursor else self._interrupts.begin(0)
        try:
            with as_sql_errors():
                yield from self._events()
        finally:
            if number is not None:
                self._interrupts.end(number)
            self.close()

    def tag(self, rows: int) -> str:
        return f"SUBSCRIBE {rows}"

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._hold.release()
            self._feed.finish()

    def _events(self) -> Iterator[Sequence[Row]]:
        if self._progress:
            yield [self._envelope.progress(self._next)]
        while not self._over:
            upper = self._upper()
            if upper > self._next:
                yield from self._deliver(upper)
                self._next = self.told = upper
                if upper != FOREVER:
                    self._hold = self._timeline.hold_on(self._hold, upper - 1, [self._feed.id])
                if self._progress:
                    yield [self._envelope.progress(min(upper, self._end))] if upper != FOREVER else []
                continue
            yield []
            self._interrupts.wait(self._something, self._patience)
            if not self._feed.alive():
                raise SqlError(UNDEFINED_OBJECT, "subscription has been terminated because a relation was dropped")
            error = self._feed.error()
            if error is not None and self._upper() <= self._next:
                raise error

    @property
    def _end(self) -> int:
        return FOREVER if self._feed.up_to is None else self._feed.up_to

    @property
    def _over(self) -> bool:
        return self._closed or self._next >= self._end

    def _upper(self) -> int:
        return min(from_frontier(self._environment.frontiers(self._feed.id).upper), self._end)

    def _something(self) -> bool:
        return self._upper() > self._next or not self._feed.alive() or self._feed.error() is not None or self._closed

    def _deliver(self, upper: int) -> Iterator[list[Row]]:
        start = self._feed.start
        self._feed.check(self._next, upper)
        if self._begun is False and not self._snapshot_due:
            with self._environment.contents(self._feed.id, start) as selection:
                self._envelope.begin(self._computed_from(selection.contents(self._columns(selection))))
        self._begun, snapshot, self._snapshot_due = True, self._snapshot_due, False
        # All is read before anything is given: a slow reader keeps no selection open.
        read: list[tuple[int, pa.Table]] = []
        for selection, at in following(self._environment, self._feed.id, self._next, upper, snapshot=snapshot):
            columns = self._columns(selection)
            read += [(at, selection.contents(columns))] if at is not None else _by_time(selection.changes(columns))
        for time, part in read:
            made = self._envelope.rows(time, self._computed_from(part))
            for first in range(0, len(made), BATCH_ROWS):
                self.told = time if first + BATCH_ROWS < len(made) else time + 1
                yield made[first : first + BATCH_ROWS]

    def _columns(self, selection: Selection) -> list[str] | None:
        """The columns that there were when the subscription began."""
        return selection.first_columns(len(self._types))

    def _computed_from(self, table: pa.Table) -> Rows:
        result = evaluate(self._feed.relation, {self._feed.id: rows_from_arrow(table, self._types)})
        if result.errors:
            raise SqlError(*min(result.errors))
        return result.rows


def _by_time(changes: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Changes, time by time."""
    times = changes.column(TIME).to_numpy()
    order = np.argsort(times, kind="stable")
    ordered = changes.take(pa.array(order))
    distinct, starts = np.unique(times[order], return_index=True)
    ends: list[Any] = [*starts[1:], len(times)][: len(starts)]  # none, if there are no changes
    for time, start, end in zip(distinct, starts, ends, strict=True):
        yield int(time), ordered.slice(int(start), int(end) - int(start))
