"""The benchmark's refresh functions as a stream of changes, the same for the same seed.

RF1 inserts orders with their lines and RF2 deletes some; besides, customers and parts are updated. The orders that RF1
inserts are held back when the tables are first loaded, and those that RF2 deleted queue up behind them, so the stream
has no end. The contents of the tables are kept here by themselves, as the truth to recompute from.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.timely.consolidate import DIFF

Places = npt.NDArray[np.int64]
Changes = dict[str, pa.Table]

# What an update may change: columns that the queries filter, join, group or add up by.
UPDATED: Mapping[str, Sequence[str]] = {
    "customer": ("c_mktsegment", "c_nationkey", "c_acctbal", "c_phone"),
    "part": ("p_name", "p_brand", "p_type", "p_size", "p_container"),
}


class Refresh:
    """The stream over tables as generated, of which `orders` and `lineitem` are sorted by the key of the order."""

    def __init__(self, tables: Mapping[str, pa.Table], seed: int, held_back: float = 0.05) -> None:
        self._rng = np.random.default_rng(seed)
        self._tables = dict(tables)
        keys = tables["orders"].column("o_orderkey").to_numpy()
        of_line = tables["lineitem"].column("l_orderkey").to_numpy()
        assert np.all(keys[1:] > keys[:-1]) and np.all(of_line[1:] >= of_line[:-1]), "sorted by order"
        self._first = np.searchsorted(of_line, keys, side="left")
        self._end = np.searchsorted(of_line, keys, side="right")
        shuffled = self._rng.permutation(len(keys))
        held = max(1, int(len(keys) * held_back))
        self._waiting, self._present = deque(shuffled[:held].tolist()), deque(shuffled[held:].tolist())

    def contents(self, name: str) -> pa.Table:
        """A table as it is now."""
        if name not in ("orders", "lineitem"):
            return self._tables[name]
        places = np.sort(np.fromiter(self._present, dtype=np.int64))
        return self._tables[name].take(places if name == "orders" else self._lines(places))

    def expedite(self, keys: Sequence[int]) -> None:
        """Let these orders be the first to be deleted."""
        places = np.searchsorted(self._tables["orders"].column("o_orderkey").to_numpy(), np.array(keys, np.int64))
        for place in places.tolist():
            self._present.remove(place)
            self._present.appendleft(place)

    def step(self, inserts: int, deletes: int, customers: int = 0, parts: int = 0) -> Changes:
        """So many orders come, so many go, so many customers and parts are others: the changes, with `_diff`."""
        came = [self._waiting.popleft() for _ in range(inserts)]
        went = [self._present.popleft() for _ in range(deletes)]
        self._present += came
        self._waiting += went
        changes = self._orders(np.array(came, dtype=np.int64), np.array(went, dtype=np.int64))
        for name, count in (("customer", customers), ("part", parts)):
            if count:
                changes[name] = self._update(name, count)
        return changes

    def rows(self, count: int) -> Changes:
        """RF1 and RF2 in turn until orders and lines are that many rows, give or take the lines of one order."""
        came: list[Any] = []
        went: list[Any] = []
        rows = 0
        while rows < count:
            chosen, source, target = (
                (came, self._waiting, self._present) if len(came) <= len(went) else (went, self._present, self._waiting)
            )
            order = source.popleft()
            target.append(order)
            chosen.append(order)
            rows += 1 + int(self._end[order] - self._first[order])
        return self._orders(np.array(came, dtype=np.int64), np.array(went, dtype=np.int64))

    def _orders(self, came: Places, went: Places) -> Changes:
        orders, lines = self._tables["orders"], self._tables["lineitem"]
        return {
            "orders": signed(orders.take(came), orders.take(went)),
            "lineitem": signed(lines.take(self._lines(came)), lines.take(self._lines(went))),
        }

    def _lines(self, orders: Places) -> Places:
        """The places of the lines of these orders."""
        counts = self._end[orders] - self._first[orders]
        before = np.cumsum(counts) - counts
        return np.repeat(self._first[orders] - before, counts) + np.arange(counts.sum())

    def _update(self, name: str, count: int) -> pa.Table:
        """Some rows take values of others, so that the domains stay as they are."""
        table = self._tables[name]
        chosen = self._rng.choice(table.num_rows, size=min(count, table.num_rows), replace=False)
        old = table.take(chosen)
        other = table.take(self._rng.choice(table.num_rows, size=len(chosen)))
        new = old
        for column in self._rng.permutation(UPDATED[name])[: self._rng.integers(1, len(UPDATED[name]) + 1)]:
            new = new.set_column(new.schema.get_field_index(column), new.schema.field(column), other.column(column))
        places = np.arange(table.num_rows)
        places[chosen] = table.num_rows + np.arange(len(chosen))
        self._tables[name] = pa.concat_tables([table, new]).take(places)
        return signed(new, old)


def signed(inserted: pa.Table, deleted: pa.Table) -> pa.Table:
    """Rows to add and rows to take away, with `_diff`."""
    diffs = np.repeat(np.array([1, -1], dtype=np.int64), [inserted.num_rows, deleted.num_rows])
    return pa.concat_tables([inserted, deleted]).append_column(DIFF, pa.array(diffs))
