"""Tables on their way between shards and ticks: updates with a time and a diff, and batches with the time in front."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from everview.compute.delta.program import Arrangement
from everview.compute.ir.types import INT8
from everview.compute.tick import empty_table
from everview.compute.view import ERROR_SCHEMA
from everview.timely.consolidate import DIFF, TIME, consolidate
from everview.timely.hashing import I64


def timed_batch(table: pa.Table, times: I64) -> pa.Table:
    """Rows of a shard as a timed batch: the time is column 0."""
    names = [name for name in table.column_names if not name.startswith("_") and name != "nothing"]
    columns = [pa.array(times, pa.int64()), *(table.column(name) for name in names), table.column(DIFF)]
    return pa.table(columns, names=[*(f"c{index}" for index in range(len(names) + 1)), DIFF])


def untimed_rows(table: pa.Table) -> pa.Table:
    """A timed batch, all of one time, as the rows that are there then."""
    names = [*(f"c{index}" for index in range(table.num_columns - 2)), DIFF]
    return table.drop_columns(["c0"]).rename_columns(names)


def advanced(table: pa.Table, floor: int) -> pa.Table:
    """A timed batch without the times before `floor`, at which updates take place instead."""
    times = table.column(0).to_numpy()
    if table.num_rows == 0 or times.min() >= floor:
        return table
    names = [TIME, *(f"c{index}" for index in range(1, table.num_columns - 1)), DIFF]
    advanced = table.set_column(0, TIME, pa.array(np.maximum(times, floor))).rename_columns(names)
    if len(names) == 2:
        return advanced.rename_columns(table.column_names)
    return consolidate(advanced).select(names).rename_columns(table.column_names)


def end_of_times(tables: Iterable[pa.Table], upper: int, times_max: int) -> int:
    """The end of the first `times_max` distinct times of timed batches; `upper` if there are no more than that."""
    times = np.unique(np.concatenate([np.zeros(0, np.int64), *(np.unique(table.column(0)) for table in tables)]))
    return upper if len(times) <= times_max else int(times[times_max])


def before(table: pa.Table, upper: int) -> pa.Table:
    """The updates of a timed batch before `upper`."""
    early = table.column(0).to_numpy() < upper
    return table if early.all() else table.filter(pa.array(early))


def error_updates(table: pa.Table) -> pa.Table:
    """A timed batch of errors, in the types that ours have."""
    return table.cast(empty_table((INT8, *ERROR_SCHEMA)).schema)


def shard_updates(table: pa.Table | None) -> pa.Table | None:
    """A timed batch as updates of a shard, at most one for each row and time."""
    if table is None or table.num_rows == 0:
        return None
    data = [table.column(index) for index in range(1, table.num_columns - 1)]
    return _consolidated([table.column(0), table.column(DIFF), *data])


def state_updates(table: pa.Table, when: int, arrangement: Arrangement) -> pa.Table | None:
    """Changes of an arrangement as updates of its shard, all at one time."""
    if table.num_rows == 0:
        return None
    times = pa.chunked_array([pa.array(np.full(table.num_rows, when, dtype=np.int64))])
    return _consolidated([times, table.column(DIFF), *table.columns[: len(arrangement.schema)]])


def _consolidated(columns: Sequence[pa.ChunkedArray]) -> pa.Table | None:
    times, diffs, *data = columns
    names = [f"c{index}" for index in range(len(data))]
    if not data:
        data, names = [pa.chunked_array([pa.nulls(len(times), pa.bool_())])], ["nothing"]
    table = consolidate(pa.table([times, diffs, *data], names=[TIME, DIFF, *names]))
    return table.select([TIME, DIFF, *names]) if table.num_rows else None
