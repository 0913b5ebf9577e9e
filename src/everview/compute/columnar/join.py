"""Join: input after input by the numbers of their keys; which rows meet is known before any column of them is made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from everview.compute.columnar.batch import Batch, Lazy, NotByColumns, Positions
from everview.compute.columnar.groups import grouped
from everview.compute.columnar.order import stable_order
from everview.compute.columnar.scalars import Expressions
from everview.compute.functions.columns import WORD_MAX, Words, largest
from everview.compute.interpreter import limits
from everview.compute.interpreter.join import JoinSide, join_sides
from everview.compute.ir.relation import Join
from everview.timely.equality import arrays_equal

_PAIR_BYTES, _VALUE_BYTES = 16, 8  # of two places, and of a value at least


def joined(join: Join, inputs: Sequence[Batch], expressions: Expressions) -> Batch:
    """The product of the inputs where the members of each equivalence are equal."""
    known: dict[int, pa.Array] = {}
    result: Batch | None = None
    for side, each in zip(join_sides(join), inputs, strict=True):
        batch, values = _keyed(side, each, expressions)
        if result is None:
            result, known = batch, values
            continue
        left, right = _meeting(known, values, result.rows, batch.rows, result.width + batch.width)
        diffs = _products(result, batch, left, right)
        known = {
            **{index: column.take(pa.array(left)) for index, column in known.items()},
            **{index: column.take(pa.array(right)) for index, column in values.items() if index not in known},
        }
        one, other = result.at(left), batch.at(right)
        columns = [*_columns(one), *_columns(other)]
        result = Batch(columns, len(left), diffs)
    return Batch([], 1) if result is None else result


def _columns(batch: Batch) -> list[Lazy]:
    return [partial(batch.column, index) for index in range(batch.width)]


def _keyed(side: JoinSide, batch: Batch, expressions: Expressions) -> tuple[Batch, dict[int, pa.Array]]:
    """The rows that may meet others, and the value of each equivalence."""
    values = {index: [expressions.array(each, batch) for each in members] for index, members in side.members.items()}
    kept = np.ones(batch.rows, dtype=bool)
    for index, (first, *others) in values.items():
        if first.null_count and index not in side.nullsafe:
            kept &= first.is_valid().to_numpy(zero_copy_only=False)
        for other in others:
            kept &= arrays_equal(first, other)
    keys = {index: each[0] for index, each in values.items()}
    if kept.all():
        return batch, keys
    places = np.flatnonzero(kept)
    return batch.at(places), {index: each.take(pa.array(places)) for index, each in keys.items()}


def _meeting(
    left: dict[int, pa.Array], right: dict[int, pa.Array], left_rows: int, right_rows: int, width: int
) -> tuple[Positions, Positions]:
    """The places of the rows of both sides that meet."""
    shared = [index for index in left if index in right]
    pairs = [pa.concat_arrays([left[index], right[index]]) for index in shared]
    groups = grouped(pairs, left_rows + right_rows)
    ours, theirs = groups.ids[:left_rows], groups.ids[left_rows:]
    counts = np.bincount(theirs, minlength=groups.count)
    several = counts[ours]
    total = int(several.sum())
    limits.look_ahead(total, total * (_PAIR_BYTES + width * _VALUE_BYTES))
    if total == 0 or int(counts.max()) <= 1:
        place = np.zeros(groups.count, dtype=np.int64)
        place[theirs] = np.arange(right_rows, dtype=np.int64)
        found = np.flatnonzero(several)
        return found, place[ours[found]]
    order = stable_order(theirs)
    starts = np.cumsum(counts) - counts
    ends = np.cumsum(several)
    rows = np.repeat(np.arange(left_rows, dtype=np.int64), several)
    inside = np.arange(total, dtype=np.int64) - np.repeat(ends - several, several)
    return rows, order[np.repeat(starts[ours], several) + inside]


def _products(one: Batch, other: Batch, left: Positions, right: Positions) -> Words | None:
    if one.diffs is None and other.diffs is None:
        return None
    ours, theirs = one.counts(), other.counts()
    if largest(ours) * largest(theirs) > WORD_MAX:
        raise NotByColumns
    return ours[left] * theirs[right]
