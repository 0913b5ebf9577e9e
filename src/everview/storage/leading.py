"""The first rows in an order, of each hash that is asked for or of all rows, without reading those behind them.

Every part gives a few of its updates that come first, from its hot copy. Up to where the first of the parts breaks off,
what they give together is complete: all updates of the rows before that, those that retract a row among them. If these
rows are too few, for some were retracted, the parts are asked for more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from everview.storage.hotcopy import HotCopy, order_name
from everview.storage.selection import Selection
from everview.timely.consolidate import DIFF, HASH, TIME, Bools, consolidate, int_column, with_column
from everview.timely.hashing import I64
from everview.timely.ordering import Sort, in_order

_MORE = 16  # updates than are needed at least: some will be retracted ones
_GROWTH = 4
_END = np.iinfo(np.int64).max


def leading(selection: Selection, sorts: Sequence[Sort], counts: I64) -> pa.Table:
    """Rows with their multiplicities as of the end of the time range: of each hash that was selected, in their order,
    the first `counts` at least, or all there are. Rows that are equal in the order are there all or none.

    Where no hashes were selected, there is one count, for all rows.
    """
    return _Leading(selection, sorts).of(counts)


class _Leading:
    def __init__(self, selection: Selection, sorts: Sequence[Sort]) -> None:
        self._selection, self._sorts = selection, sorts
        self._together = selection.hashes is None
        self._groups: I64 = np.zeros(1, dtype=np.int64) if selection.hashes is None else selection.hashes
        self._schema = selection.spec.in_parts
        self._whole = selection.inline_updates().select(self._schema.names)
        self._copies: list[HotCopy] = []  # what is mapped stays so, whatever becomes of its file
        for part in selection.parts:
            copy = selection.hot_copy(part, self._schema, sorts)
            if copy is not None:
                self._copies.append(copy)
            else:
                self._whole = pa.concat_tables([self._whole, selection.part_updates(part, self._schema)])

    def of(self, counts: I64) -> pa.Table:
        found = []
        open_ = np.arange(len(self._groups))  # groups of which more has to be seen
        sizes = counts + _MORE
        while len(open_):
            rows, complete = self._complete(self._groups[open_], sizes[open_])
            present = self._of_row(rows)
            totals = np.zeros(len(open_), dtype=np.int64)
            places = np.searchsorted(self._groups[open_], present)
            np.add.at(totals, places, int_column(rows, DIFF))
            enough = complete | (totals >= counts[open_])
            found.append(rows if enough.all() else rows.filter(pa.array(enough[places])))
            open_ = open_[~enough]
            sizes[open_] *= _GROWTH
        return pa.concat_tables(found).drop_columns([HASH, TIME])

    def _complete(self, groups: I64, sizes: I64) -> tuple[pa.Table, Bools]:
        """The first rows of some groups, and which of these groups have no others."""
        updates, breaks = self._first(groups, sizes)
        of_update = self._of_row(updates)
        places, differs = in_order(updates, self._sorts, of_update)
        ranks = np.concatenate(([0], np.cumsum(differs[:-1]))) if len(places) else np.zeros(0, dtype=np.int64)
        ends = np.full(len(groups), _END)
        numbers = np.searchsorted(groups, of_update[places])
        np.minimum.at(ends, numbers[breaks[places]], ranks[breaks[places]])
        kept = places[ranks < ends[numbers]]
        rows = with_column(updates.take(pa.array(kept)).combine_chunks(), TIME, np.zeros(len(kept), dtype=np.int64))
        return consolidate(rows, self._selection.spec.key), ends == _END

    def _first(self, groups: I64, sizes: I64) -> tuple[pa.Table, Bools]:
        """The first so many updates of each part, and which of them are the last ones given, though there are more."""
        whole = self._whole
        if not self._together:
            whole = whole.filter(pa.array(np.isin(int_column(whole, HASH), groups)))
        tables, breaks = [whole], [np.zeros(whole.num_rows, dtype=bool)]
        order = order_name(self._sorts, together=self._together)
        for copy in self._copies:
            if self._together:
                starts, there = np.zeros(1, dtype=np.int64), np.array([len(copy.hashes)])
            else:
                starts, there = copy.places(groups)
            taken = np.minimum(there, sizes)
            tables.append(copy.first(starts, taken, order, self._schema))
            last = np.zeros(int(taken.sum()), dtype=bool)
            last[(np.cumsum(taken) - 1)[taken < there]] = True
            breaks.append(last)
        return pa.concat_tables(tables).combine_chunks(), np.concatenate(breaks)

    def _of_row(self, updates: pa.Table) -> I64:
        return np.zeros(updates.num_rows, dtype=np.int64) if self._together else int_column(updates, HASH)
