"""Results as tables: rows as often as they occur, in pieces, and as the values that clients are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from everview.compute.ir.types import SqlType
from everview.compute.rows.arrow import values_from_arrow
from everview.compute.rows.collection import NegativeMultiplicity, Row, canonical, plain
from everview.timely.consolidate import DIFF, int_column

PIECE_ROWS = 64 << 10


def expanded(table: pa.Table) -> Iterator[pa.Table]:
    """The rows of a consolidated table in pieces, each as often as its `_diff` says."""
    diffs = int_column(table, DIFF)
    data = table.drop_columns([DIFF])
    if (diffs == 1).all():
        yield from (data.slice(start, PIECE_ROWS) for start in range(0, data.num_rows, PIECE_ROWS))
        return
    if int(diffs.min()) < 0:
        bad = int(np.argmin(diffs))
        raise NegativeMultiplicity("a result", tuple(data.slice(bad, 1).to_pylist()[0].values()), int(diffs[bad]))
    for start in range(0, len(diffs), PIECE_ROWS):
        counts = diffs[start : start + PIECE_ROWS]
        few = len(counts) * int(counts.max()) < 2**62
        ends = np.cumsum(counts if few else counts.astype(object))
        for first in range(0, int(ends[-1]), PIECE_ROWS):
            places = np.arange(first, min(int(ends[-1]), first + PIECE_ROWS))
            yield data.take(pa.array(start + np.searchsorted(ends, places, side="right")))


def rows_of_table(table: pa.Table, types: Sequence[SqlType]) -> list[Row]:
    """The rows in the values that clients are given."""
    if not types:
        return [()] * table.num_rows
    return list(zip(*(_shown(column, each) for column, each in zip(table.columns, types, strict=True)), strict=True))


def _shown(column: pa.ChunkedArray, sql_type: SqlType) -> list[object]:
    values = values_from_arrow(column, sql_type)
    for change in (canonical(sql_type), plain(sql_type)):
        if change is not None:
            values = [change(value) for value in values]
    return values
