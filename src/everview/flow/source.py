"""Reading a materialization's collections: the updates between its checkpoint and a time, of one range of keys.

A place whose frontier is `START` gets everything before its end, any other place the updates from its frontier on;
frontiers and ends differ from place to place where ranges were joined. All of it is read at once if it is small. What
is large and need not be held is read in passes, each over a part of the keys, so that memory stays bounded: the
transaction is as large as the interval, its batches are not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from everview.flow.checkpoint import START, Checkpoint
from everview.flow.combine import combine
from everview.flow.contract import Binding
from everview.flow.drivers.contract import Keys
from everview.flow.errors import HistoryLost, InvalidMaterialization
from everview.flow.keyrange import SPLITS_MAX, KeyRange, hashes_of, places_of
from everview.storage.batch import as_declared, widens
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.selection import Selection
from everview.storage.shard import from_frontier
from everview.storage.subscribe import following
from everview.timely.consolidate import DIFF, HASH, TIME, int_column, with_column

PASS_BYTES = 64 << 20  # of updates as stored, which are a few times that in memory

# Raises if a collection has no contents at a time: it is a view, and some row of it could not be computed.
Readable: TypeAlias = Callable[[GlobalId, int], None]


class Collections:
    def __init__(
        self,
        environment: Environment,
        bindings: Sequence[Binding],
        pass_bytes: int = PASS_BYTES,
        readable: Readable | None = None,
    ) -> None:
        self._environment, self._bindings, self._pass_bytes = environment, bindings, pass_bytes
        self._readable = readable
        self.readers = 1  # who reads the same intervals, each for a range of its own
        self.halves = True  # whether long intervals are taken in parts; not where a part has what the whole has not
        self._reading = threading.Lock()
        self._last: dict[GlobalId, tuple[tuple[int, int], pa.Table, int]] = {}  # by collection

    @property
    def upper(self) -> int:
        """All collections are complete before this time and readable just before it; `START` if there is none."""
        frontiers = [self._environment.frontiers(each.collection) for each in self._bindings]
        since = max(from_frontier(each.since) for each in frontiers)
        upper = min(from_frontier(each.upper) for each in frontiers)
        return upper if upper > since else START

    def wait(self, ready: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for collections to move on, or for something else that `wake` tells of."""
        return self._environment.wait(ready, timeout_s)

    def interval_end(self, checkpoint: Checkpoint) -> int:
        """The end of the next transaction: the upper, or an earlier time if the interval is large and can be halved."""
        end = self.upper
        lowest, floor = checkpoint.lowest, max(checkpoint.highest, checkpoint.lowest + 1)
        while self.halves and lowest > START and end > floor and self._stored_bytes(lowest, end) > self._pass_bytes:
            end = max(floor, lowest + (end - lowest) // 2)
        return end

    def changed(self, checkpoint: Checkpoint, end: int) -> bool:
        """Whether something may have changed since."""
        return checkpoint.lowest == START or self._stored_bytes(checkpoint.lowest, end) > 0

    def _stored_bytes(self, lower: int, end: int) -> int:
        total = 0
        for each in self._bindings:
            with self._environment.changes(each.collection, lower, end) as selection:
                total += selection.bytes_max
        return total

    def read(self, binding: Binding, checkpoint: Checkpoint, end: Checkpoint) -> pa.Table:
        """All updates of the interval, in the binding's fields with `_time` and `_diff`."""
        selections = self._selected(binding, checkpoint, end.highest)
        tables = [self._ours(binding, checkpoint, end, self._updates(selection)) for selection in selections]
        return tables[0] if tables else self._empty(binding)

    def count(self, binding: Binding, end: int) -> int:
        """How many rows the collection has just before a time."""
        with self._environment.contents(binding.collection, end - 1) as selection:
            return selection.net_rows()

    def passes(self, binding: Binding, checkpoint: Checkpoint, end: Checkpoint) -> Iterator[pa.Table]:
        """The same updates in pieces. A piece has all updates of its keys."""
        for selection in self._selected(binding, checkpoint, end.highest):
            count = min(SPLITS_MAX, -(-selection.bytes_max // self._pass_bytes))
            if count <= 1:
                yield self._ours(binding, checkpoint, end, self._updates(selection))
                return
            span = KeyRange(checkpoint.pieces[0][0].begin, checkpoint.pieces[-1][0].end)
            for part in span.split(min(count, span.end - span.begin + 1)):
                pieces = Checkpoint(tuple((m, f) for each, f in checkpoint.pieces if (m := each.meet(part))))
                tables = [self._ours(binding, pieces, end, chunk) for chunk in selection.chunks()]
                yield pa.concat_tables(tables) if tables else self._empty(binding)

    def check_unique(self, binding: Binding, range: KeyRange) -> None:
        """An error if the collections hold a NULL key, or two rows under one key of the range."""
        for updates in self.passes(binding, Checkpoint.at(range, START), Checkpoint.at(range, self.upper)):
            rows = with_column(updates, TIME, np.zeros(updates.num_rows, np.int64))
            for field in binding.value_fields:  # without other values, two rows under one key are one row twice
                at = rows.schema.get_field_index(field.name)
                rows = rows.set_column(at, field.name, pa.nulls(rows.num_rows, rows.schema.field(at).type))
            combine(binding, rows, Keys.ENFORCED, first=True)

    def _updates(self, selection: Selection) -> pa.Table:
        """The updates of a selection, read once for all readers of the same interval."""
        if self.readers == 1:
            return selection.updates()
        id, interval = selection.id, selection.time_range
        with self._reading:
            last = self._last.pop(id, None)
            if last is not None and last[0] == interval:
                _, table, left = last
            else:
                table, left = selection.updates(), self.readers
            if left > 1:
                self._last[id] = interval, table, left - 1
        return table

    def _selected(self, binding: Binding, checkpoint: Checkpoint, end: int) -> Iterator[Selection]:
        """The contents just before the end, or the changes in the interval."""
        id, lowest = binding.collection, checkpoint.lowest
        if self._readable is not None and end > START:
            self._readable(id, end - 1)
        since = from_frontier(self._environment.frontiers(id).since)
        stale = [frontier for _, frontier in checkpoint.pieces if START < frontier <= since]
        if stale:
            raise HistoryLost(
                f"the endpoint is at {min(stale)}, and collection {id} no longer knows its changes since then",
                detail=f"since is {since}",
                hint="drop the sink and its data, and create it anew",
            )
        first = lowest == START
        for selection, _ in following(self._environment, id, end - 1 if first else lowest, end, snapshot=first):
            yield selection

    def _ours(self, binding: Binding, checkpoint: Checkpoint, end: Checkpoint, updates: pa.Table) -> pa.Table:
        """The updates at the checkpoint's places, from their frontiers there up to their ends."""
        # The collection may have more columns than there were when the sink was made.
        stored = [name for name in updates.column_names if name not in (HASH, TIME, DIFF)]
        names = [stored[place] for place in binding.places or range(len(binding.names))]
        updates = updates.select([*names, TIME, DIFF]).rename_columns([*binding.names, TIME, DIFF])
        updates = as_declared(updates, self._empty(binding).schema)
        times = int_column(updates, TIME)
        if checkpoint.simple and end.simple:
            wanted = (times >= checkpoint.lowest) & (times < end.lowest)
        else:
            places = places_of(hashes_of(updates, binding.key or binding.names))
            wanted = (times >= checkpoint.frontiers(places)) & (times < end.frontiers(places))
        return updates if wanted.all() else updates.filter(pa.array(wanted))

    def _empty(self, binding: Binding) -> pa.Table:
        fields = [*binding.schema, pa.field(TIME, pa.int64()), pa.field(DIFF, pa.int64())]
        return pa.schema(fields).empty_table()


def check_columns(environment: Environment, binding: Binding) -> None:
    """An error unless the binding's fields are the collection's columns, or the first of them, type by type."""
    spec = environment.shard(binding.collection).spec
    columns = spec.schema
    wanted = [field.type for field in binding.schema]
    places = binding.places or range(len(wanted))
    fits = max(places, default=0) < len(columns)
    fits = fits and all(widens(columns.types[place], each) for place, each in zip(places, wanted, strict=True))
    if len(wanted) < spec.created or not fits:
        raise InvalidMaterialization(
            f"the fields of the sink are not the columns of collection {binding.collection}",
            detail=f"fields {', '.join(map(str, wanted))}; columns {', '.join(map(str, columns.types))}",
        )
