"""Merging sorted runs of updates into one consolidated run, a chunk at a time.

Every run is ascending in (hash, row hash, time). At each step the updates below the *bound*, the least point up to
which some run has not been read yet, can take part in no later chunk: they are consolidated and given out. Memory
holds a row group of each run that overlaps the bound, whatever the sizes of the runs and however many rows share a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from everview.storage.shard import Spec
from everview.timely.consolidate import HASH, TIME, advance, consolidate, int_column
from everview.timely.hashing import hash_rows

Position = tuple[int, int, int]  # hash, row hash, time
LOWEST = -(2**63)


class _Run:
    """A run: its updates that were read and not yet given out."""

    def __init__(self, tables: Iterator[pa.Table], spec: Spec, since: int) -> None:
        self._tables = tables
        self._spec = spec
        self._since = since
        self._table: pa.Table | None = None
        self.done = False
        self.read_more()

    def read_more(self) -> None:
        table = next(self._tables, None)
        if table is None:
            self.done = True
            return
        # A run of unsorted updates, as of inline batches, arrives as one table and is sorted here.
        table = consolidate(advance(table, self._since), self._spec.key)
        if self._table is not None and self._table.num_rows:
            table = pa.concat_tables([self._table, table]).combine_chunks()
        self._table = table
        hashes = row_hashes = int_column(table, HASH)
        if self._spec.keyed:
            row_hashes = hash_rows([table.column(name) for name in self._spec.schema.names], table.num_rows)
        self._order = (hashes, row_hashes, int_column(table, TIME))

    @property
    def empty(self) -> bool:
        return self._table is None or self._table.num_rows == 0

    @property
    def last(self) -> Position:
        """Everything before this point has been read; more may follow exactly at it."""
        if self.empty:
            return (LOWEST, LOWEST, LOWEST)
        hashes, row_hashes, times = self._order
        return (int(hashes[-1]), int(row_hashes[-1]), int(times[-1]))

    def take_below(self, bound: Position | None) -> pa.Table | None:
        """Remove and give the rows before `bound`, or all rows."""
        if self._table is None or self.empty:
            return None
        count = self._table.num_rows if bound is None else self._count_below(bound)
        if count == 0:
            return None
        taken, self._table = self._table.slice(0, count), self._table.slice(count)
        hashes, row_hashes, times = self._order
        self._order = (hashes[count:], row_hashes[count:], times[count:])
        return taken

    def _count_below(self, bound: Position) -> int:
        low, high = 0, len(self._order[0])
        for column, value in zip(self._order, bound, strict=True):
            inside = column[low:high]
            high = low + int(np.searchsorted(inside, value, side="right"))
            low = low + int(np.searchsorted(inside, value, side="left"))
        return low


def merge(runs: Sequence[Iterator[pa.Table]], starts: Sequence[int], spec: Spec, since: int = 0) -> Iterator[pa.Table]:
    """The updates of all runs, advanced to `since` and consolidated, in order.

    `starts[i]` is no greater than the first hash of run i: a run is not opened before it is needed.
    """
    waiting = sorted(zip(starts, range(len(runs)), strict=True))
    open_runs: list[_Run] = []
    while waiting or open_runs:
        if not open_runs:
            open_runs.append(_Run(runs[waiting.pop(0)[1]], spec, since))
        limits = [run.last for run in open_runs if not run.done]
        limits += [(start, LOWEST, LOWEST) for start, _ in waiting[:1]]
        bound = min(limits, default=None)
        taken = [table for run in open_runs if (table := run.take_below(bound)) is not None]
        if taken:
            chunk = consolidate(pa.concat_tables(taken).combine_chunks(), spec.key)
            if chunk.num_rows:
                yield chunk
        if bound is not None:
            for run in open_runs:
                while not run.done and run.last <= bound:
                    run.read_more()
            while waiting and waiting[0][0] <= bound[0]:
                open_runs.append(_Run(runs[waiting.pop(0)[1]], spec, since))
        open_runs = [run for run in open_runs if not (run.done and run.empty)]
