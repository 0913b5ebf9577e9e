"""The changes of a dataflow's inputs, as timed batches in the columns that its plan knows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from everview.compute.ir.types import INT8, SqlType
from everview.compute.tick import empty_table
from everview.compute.timed_batches import timed_batch
from everview.compute.view import View, inputs_of
from everview.storage.batch import as_declared
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.selection import Selection
from everview.storage.subscribe import following
from everview.timely.consolidate import DIFF, TIME, int_column


class InputChanges:
    """The inputs of one view."""

    def __init__(self, environment: Environment, view: View) -> None:
        self._environment, self._view = environment, view
        # A collection may get more columns than there were when this plan was made: it goes on without them.
        self._inputs = inputs_of(view.plan)

    def of(self, id: GlobalId, lower: int, upper: int, *, first: bool) -> pa.Table:
        """The changes of an input as a timed batch; at the start these are its contents, all at that time."""
        schema = self._inputs.get(id, ())
        tables = []
        for selection, at in following(self._environment, id, lower, upper, snapshot=first):
            if at is None:
                tables.append(self._changes(id, selection, schema))
            else:
                contents = selection.contents(selection.first_columns(len(schema)))
                tables.append(timed_batch(contents, np.full(contents.num_rows, at)))
        table = pa.concat_tables(tables)
        # A collection that is older than this program may have another representation.
        return table.cast(empty_table((INT8, *schema)).schema) if schema else table

    def _changes(self, id: GlobalId, selection: Selection, schema: tuple[SqlType, ...]) -> pa.Table:
        """Updates of an input as a timed batch. Most are of different rows, so they are not consolidated.

        Columns that the view does not speak of are not read: NULL stands for whatever they hold.
        """
        if not schema:
            updates = selection.changes()
            return timed_batch(updates, updates.column(TIME).to_numpy())
        names, read = selection.spec.schema.names[: len(schema)], self._view.columns_read.get(id, set())
        updates = selection.updates([name for place, name in enumerate(names) if place in read])
        missing = {
            name: selection.spec.schema.field(name).type for place, name in enumerate(names) if place not in read
        }
        for name, dtype in missing.items():
            updates = updates.append_column(name, pa.nulls(updates.num_rows, dtype))
        return timed_batch(updates.select([DIFF, *names]), int_column(updates, TIME))

    def given(self, id: GlobalId, updates: pa.Table | None) -> pa.Table:
        """Updates of an input, which are not in storage yet, as a timed batch."""
        spec, schema = self._environment.shard(id).spec, self._inputs.get(id, ())
        fields = list(spec.schema)[: len(schema)] if schema else list(spec.schema)
        wanted = pa.schema([spec.at_rest.field(TIME), spec.at_rest.field(DIFF), *fields])
        table = wanted.empty_table() if updates is None else as_declared(updates, wanted)
        batch = timed_batch(table.drop_columns([TIME]), int_column(table, TIME))
        return batch.cast(empty_table((INT8, *schema)).schema) if schema else batch
