"""Reduce: groups of rows, and aggregates that are totals, extremes or averages of totals, over whole columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from everview.compute.columnar.batch import Batch, NotByColumns
from everview.compute.columnar.groups import grouped
from everview.compute.columnar.order import Ranked, is_ordered
from everview.compute.columnar.scalars import Expressions
from everview.compute.columnar.totals import float_sums, long_sums, sums, words_as_decimals
from everview.compute.functions import columns, lookup
from everview.compute.functions.aggregates import COUNT, GREATEST, LEAST, SUM
from everview.compute.functions.contract import Additive, OneRow
from everview.compute.functions.numbers import EXACT_KINDS, FLOATS
from everview.compute.ir.relation import Aggregate, Reduce
from everview.compute.ir.scalar import Call, Column
from everview.compute.ir.types import FLOAT8, INT8, NUMERIC_PRECISION, Kind, arrow_type, numeric

_COPIES_MAX = 4  # rows that occur several times are repeated up to so many times


def is_totalled(aggregate: Aggregate) -> bool:
    """Whether an aggregate is computed by columns."""
    if any(lookup.can_fail(each.scalar) for each in aggregate.order):
        return False
    kinds = [arg.type.kind for arg in aggregate.args]
    match lookup.aggregate(aggregate.function).algebra:
        case algebra if algebra == COUNT:
            return Kind.ARRAY not in kinds or not aggregate.distinct
        case algebra if algebra == SUM:
            return kinds[0] in EXACT_KINDS or kinds[0] in FLOATS
        case algebra if algebra in (LEAST, GREATEST):
            return is_ordered(aggregate.args[0].type)
        case Additive():
            return kinds[0] in EXACT_KINDS or kinds[0] in FLOATS
        case OneRow(enforced=enforced):
            return enforced and not aggregate.distinct
        case _:
            return False


def reduced(reduce: Reduce, batch: Batch, expressions: Expressions) -> Batch:
    """One row for each group; no row of the batch occurs fewer than one times."""
    keys = [expressions.array(key, batch) for key in reduce.keys]
    groups = grouped(keys, batch.rows)
    firsts = pa.array(groups.firsts)
    whole = _Taking(groups.ids, groups.count, batch, expressions)
    totals = [_aggregated(each, whole) for each in reduce.aggregates]
    return Batch([*(key.take(firsts) for key in keys), *totals], groups.count)


@dataclass(frozen=True, slots=True)
class _Taking:
    """The rows that take part in an aggregate, each with its group."""

    ids: columns.Words
    groups: int
    batch: Batch
    expressions: Expressions

    def at(self, positions: np.ndarray[tuple[int], np.dtype[np.int64]]) -> _Taking:
        """Some of the rows."""
        return _Taking(self.ids[positions], self.groups, self.batch.at(positions), self.expressions)

    def rows(self) -> columns.Words:
        """How many rows of each group take part."""
        if self.batch.diffs is None:
            return np.bincount(self.ids, minlength=self.groups)
        found = sums(self.ids, self.groups, self.batch.diffs)
        if found is None:
            raise columns.SomeRowFails
        return found


def _aggregated(aggregate: Aggregate, rows: _Taking) -> pa.Array:
    entry = lookup.aggregate(aggregate.function)
    if aggregate.filter is not None:
        chosen = rows.expressions.true_at(aggregate.filter, rows.batch)
        rows = rows if chosen is None else rows.at(chosen)
    column = rows.expressions.array(aggregate.args[0], rows.batch) if aggregate.args else None
    if column is not None and column.null_count and not entry.takes_nulls:
        there = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        rows, column = rows.at(there), column.take(pa.array(there))
    if aggregate.distinct and column is not None:
        firsts = grouped([pa.array(rows.ids), column], rows.batch.rows).firsts
        rows, column = rows.at(firsts), column.take(pa.array(firsts))
        rows = _Taking(rows.ids, rows.groups, rows.batch.with_diffs(None), rows.expressions)
    algebra = entry.algebra
    if algebra == COUNT:
        return pa.array(rows.rows(), pa.int64())
    assert column is not None
    if isinstance(algebra, OneRow):
        return _only(column, rows)
    if algebra in (LEAST, GREATEST):
        return _extreme(column, rows, greatest=algebra == GREATEST)
    return _average(aggregate, column, rows) if isinstance(algebra, Additive) else _sum(aggregate, column, rows)


def _only(column: pa.Array, rows: _Taking) -> pa.Array:
    """The value of a group's only row; a group without a row has none."""
    counts = rows.rows()
    if (counts > 1).any():
        raise columns.SomeRowFails
    places = np.zeros(rows.groups, dtype=np.int64)
    places[rows.ids] = np.arange(len(rows.ids), dtype=np.int64)
    return column.take(pa.array(places, mask=counts == 0))


def _extreme(column: pa.Array, rows: _Taking, *, greatest: bool) -> pa.Array:
    ranked = Ranked.of(column)
    assert ranked.there is None
    found = np.full(rows.groups, -(2**63) if greatest else 2**63 - 1, dtype=np.int64)
    (np.maximum if greatest else np.minimum).at(found, rows.ids, ranked.codes)
    some = np.zeros(rows.groups, dtype=bool)
    some[rows.ids] = True
    if some.all():
        return ranked.decode(found, None)
    return ranked.decode(np.where(some, found, ranked.codes[0] if len(ranked.codes) else 0), some)


def _sum(aggregate: Aggregate, column: pa.Array, rows: _Taking) -> pa.Array:
    some, wanted = rows.rows() > 0, arrow_type(aggregate.type)
    there = None if some.all() else some
    if aggregate.args[0].type.kind in FLOATS:
        total = _float_sum(column, rows)
        if wanted == pa.float32():
            with np.errstate(over="ignore"):
                narrow = total.astype(np.float32).astype(np.float64)
            if (np.isinf(narrow) & ~np.isinf(total)).any():
                raise columns.SomeRowFails
            total = narrow
        return columns.of_doubles(total, there, wanted)
    found = _exact_sum(column, rows)
    if wanted == pa.int64():
        if not isinstance(found, np.ndarray):
            raise columns.SomeRowFails
        return columns.of_words(found, there, wanted)
    decimals = words_as_decimals(found, wanted.scale) if isinstance(found, np.ndarray) else found
    return decimals if there is None else _only_where(decimals, some)


def _only_where(column: pa.Array, some: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    return column.take(pa.array(np.arange(len(column)), mask=~some))


def _exact_sum(column: pa.Array, rows: _Taking) -> columns.Words | pa.Array:
    """The totals of groups, as words if they all fit, else as decimals."""
    values, counts = columns.words(column), rows.batch.diffs
    if values is not None and counts is not None:
        values = values * counts if columns.largest(values) * columns.largest(counts) <= columns.WORD_MAX else None
        if values is None:
            raise NotByColumns
    found = None if values is None else sums(rows.ids, rows.groups, values)
    if found is not None:
        return found
    if values is None:
        rows, column = _repeated(rows, column)
        if not pa.types.is_decimal128(column.type) or column.type.precision < NUMERIC_PRECISION:
            raise NotByColumns
        return long_sums(rows.ids, rows.groups, column, None)
    scale = column.type.scale if pa.types.is_decimal128(column.type) else 0
    return long_sums(rows.ids, rows.groups, words_as_decimals(values, scale), None)


def _repeated(rows: _Taking, column: pa.Array) -> tuple[_Taking, pa.Array]:
    """The rows, each as often as it occurs."""
    counts = rows.batch.diffs
    if counts is None:
        return rows, column
    if columns.largest(counts) * len(counts) > _COPIES_MAX * len(counts) + 1024:
        raise NotByColumns
    places = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    rows = rows.at(places)
    return _Taking(rows.ids, rows.groups, rows.batch.with_diffs(None), rows.expressions), column.take(pa.array(places))


def _float_sum(column: pa.Array, rows: _Taking) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rows, column = _repeated(rows, column)
    return float_sums(rows.ids, rows.groups, columns.doubles(column))


def _average(aggregate: Aggregate, column: pa.Array, rows: _Taking) -> pa.Array:
    counts = rows.rows()
    some = counts > 0
    if aggregate.args[0].type.kind in FLOATS:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = _float_sum(column, rows) / counts.astype(np.float64)
        return columns.of_doubles(mean, None if some.all() else some, arrow_type(FLOAT8))
    found = _exact_sum(column, rows)
    scale = column.type.scale if pa.types.is_decimal128(column.type) else 0
    decimals = words_as_decimals(found, scale) if isinstance(found, np.ndarray) else found
    total = decimals if some.all() else _only_where(decimals, some)
    of_total = numeric(NUMERIC_PRECISION, scale)
    algebra = lookup.aggregate(aggregate.function).algebra
    assert isinstance(algebra, Additive)
    divided = Call(algebra.final, (Column(0, of_total), Column(1, INT8)), aggregate.type)
    return rows.expressions.array(divided, Batch([total, pa.array(counts, pa.int64())], rows.groups))
