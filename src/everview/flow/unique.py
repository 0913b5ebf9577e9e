"""Whether a collection has at most one row under each key of a binding, by looking at all of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from everview.flow.checkpoint import START, Checkpoint
from everview.flow.combine import combine
from everview.flow.contract import Binding
from everview.flow.drivers.contract import Keys
from everview.flow.keyrange import KeyRange
from everview.flow.source import Source
from everview.timely.consolidate import TIME


def check_unique(source: Source, binding: Binding, range: KeyRange, end: Checkpoint) -> None:
    """An error if a key of the range is NULL, or is that of two rows, in the contents just before `end`."""
    for updates in source.passes(binding, Checkpoint.at(range, START), end):
        combine(binding, _keys_only(updates, binding), Keys.ENFORCED, first=True)


def _keys_only(updates: pa.Table, binding: Binding) -> pa.Table:
    """Rows with no other values than their keys: two rows under one key are then one row twice."""
    for name in binding.names:
        if name not in binding.key:
            at = updates.schema.get_field_index(name)
            nothing = pa.nulls(updates.num_rows, updates.schema.field(at).type)
            updates = updates.set_column(at, name, nothing)
    return updates.set_column(
        updates.schema.get_field_index(TIME), TIME, pa.array(np.zeros(updates.num_rows, np.int64))
    )
