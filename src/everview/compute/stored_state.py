"""The state of a dataflow in shards: rows by the hashes of keys, and pending updates by their times.

A tick takes the pending updates that are due and does not look at the others, however many wait: see
`pending_updates.py`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.arranged import Reading
from everview.compute.capabilities import Tokens, errors_id, starting_time, with_errors
from everview.compute.delta.program import Arrangement, TickProgram
from everview.compute.ir.types import SqlType, arrow_type
from everview.compute.pending_updates import Pending, state_id
from everview.compute.tick import empty_table
from everview.compute.view import ERROR_SCHEMA, View
from everview.storage.contract import Clone, Create, GlobalId, ReadCapability
from everview.storage.environment import Environment
from everview.storage.leading import leading
from everview.storage.selection import Selection
from everview.timely.consolidate import DIFF
from everview.timely.hashing import I64, hash_rows
from everview.timely.ordering import Sort


class StoredState:
    """The state of a dataflow as it was before a tick that starts at `lower`."""

    def __init__(
        self,
        environment: Environment,
        id: GlobalId,
        lower: int,
        pending: Pending,
        readings: Mapping[str, Reading],
        *,
        first: bool,
    ) -> None:
        """`readings` are of the arrangements that are shared, by their names."""
        self._environment, self._id, self._lower, self._readings = environment, id, lower, readings
        self._pending, self._first = pending, first
        self._found: dict[tuple[str, bytes | None], pa.Table] = {}
        self.looking_s = 0.0

    def look_up(self, arrangement: Arrangement, hashes: I64 | None) -> pa.Table:
        if self._first:
            return empty_table(arrangement.schema)
        # Of a join's input that does not change, several paths may look for the same.
        asked = (arrangement.name, None if hashes is None else hashes.tobytes())
        if asked not in self._found:
            began = time.perf_counter()
            shared = self._readings.get(arrangement.name)
            with self._contents(arrangement, hashes) as selection:
                if shared is None:
                    self._found[asked] = self._rows(arrangement, selection.contents())
                else:
                    self._found[asked] = shared.rows(selection.contents(shared.names))
            self.looking_s += time.perf_counter() - began
        return self._found[asked]

    def look_up_first(
        self, arrangement: Arrangement, hashes: I64 | None, sorts: Sequence[Sort], counts: I64
    ) -> pa.Table:
        if self._first:
            return empty_table(arrangement.schema)
        began = time.perf_counter()
        shared = self._readings.get(arrangement.name)
        with self._contents(arrangement, hashes) as selection:
            if shared is not None:
                sorts = shared.sorts(sorts)
            found = leading(selection, sorts, counts) if sorts else selection.contents()
        self.looking_s += time.perf_counter() - began
        return self._rows(arrangement, found) if shared is None else shared.rows(found)

    def rows_max(self, arrangement: Arrangement, hashes: I64) -> int:
        if self._first:
            return 0
        began = time.perf_counter()
        with self._contents(arrangement, hashes) as selection:
            count = selection.count_max()
        self.looking_s += time.perf_counter() - began
        return count

    def _contents(self, arrangement: Arrangement, hashes: I64 | None) -> Selection:
        shared = self._readings.get(arrangement.name)
        id = state_id(self._id, arrangement) if shared is None else shared.id
        return self._environment.contents(id, time_before(self._environment, id, self._lower), hashes)

    def _rows(self, arrangement: Arrangement, found: pa.Table) -> pa.Table:
        return found.select([*(f"c{index}" for index in range(len(arrangement.schema))), DIFF])

    def due(self, arrangement: Arrangement, upper: int) -> pa.Table:
        buckets = self._pending.due(arrangement, upper)
        if self._first or not len(buckets):
            return empty_table(arrangement.schema[1:])
        found = self.look_up(arrangement, hash_rows([pa.chunked_array([pa.array(buckets)])], len(buckets)))
        come = found.filter(pc.less(found.column("c1"), upper)).drop_columns(["c0"])
        return come.rename_columns([*(f"c{index}" for index in range(come.num_columns - 1)), DIFF])


def time_before(environment: Environment, id: GlobalId, lower: int) -> int:
    """The time at which to read an arrangement as it was before `lower`: it may not have changed for long."""
    upper = environment.frontiers(id).upper
    return (lower if upper.empty else min(lower, upper.only)) - 1


def is_foreign(environment: Environment, state: GlobalId, program: TickProgram, held: Tokens) -> bool:
    """Whether the stored state belongs to another program."""
    shards = environment.ids()
    for each in program.kept:
        id, key = state_id(state, each), tuple(f"c{index}" for index in each.key)
        if id not in held.outputs or id not in shards:
            return True
        spec = environment.shard(id).spec
        if spec.schema != schema_of(each.schema) or (key and spec.key != key):
            return True
    return False


def schema_of(sql_types: Sequence[SqlType]) -> pa.Schema:
    """The columns at rest. A relation without columns gets one, for a collection needs one."""
    fields = [(f"c{index}", arrow_type(each)) for index, each in enumerate(sql_types)]
    return pa.schema(fields or [("nothing", pa.bool_())])


def make_collections(
    environment: Environment, id: GlobalId, schema: Sequence[SqlType], view: View, inputs: Sequence[ReadCapability]
) -> tuple[list[ReadCapability], list[Any]]:
    """Make the collections of a view, and clones of the read capabilities on its inputs and their errors."""
    wanted = with_errors(environment, inputs)
    start = starting_time(wanted)
    creates = [Create(id, schema_of(schema), at=start)]
    for each in view.program.kept:
        key = [f"c{index}" for index in each.key] or None
        creates.append(Create(state_id(id, each), schema_of(each.schema), key=key, at=start))
    creates.append(Create(errors_id(id), schema_of(ERROR_SCHEMA), at=start))
    return wanted, environment.commit(*map(Clone, wanted), *creates)
