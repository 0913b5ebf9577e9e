"""Reduce with least or greatest values beside counts and sums: each is kept in its own way, and both make one row.

Counts and sums come from totals. The least value of a key follows from the few rows that may be the first in its order,
before the tick and in it. At every moment of a key its totals and those rows are put together and reduced once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.compute.delta.per_key import extreme_order, is_extreme, rows_at_moments, what_matters
from everview.compute.delta.program import First
from everview.compute.delta.totals import keep, over_columns
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Aggregate, Relation, all_columns, types
from everview.compute.ir.scalar import Column, Literal, Scalar, shift
from everview.compute.ir.types import SqlType
from everview.compute.optimize.float_sums import adds_up

if TYPE_CHECKING:
    from everview.compute.delta.differentiate import Build


def is_mixed(reduce: ir.Reduce) -> bool:
    """Whether some aggregates are least or greatest values and all others can be kept as totals."""
    extreme = [is_extreme(each) for each in reduce.aggregates]
    others = [each for each, known in zip(reduce.aggregates, extreme, strict=True) if not known]
    return any(extreme) and bool(others) and all(map(adds_up, others))


def firsts_of(reduce: ir.Reduce) -> list[First]:
    """The orders whose first rows matter, even where they do not change: another order of the key may."""
    extremes = [each for each in reduce.aggregates if is_extreme(each)]
    return list(dict.fromkeys(First((extreme_order(each),), 1, unchanged=True) for each in extremes))


def delta(reduce: ir.Reduce, change: Relation, build: Build) -> Relation:
    """The moments of the output."""
    others = [each for each in reduce.aggregates if not is_extreme(each)]
    kept = keep(reduce, others, change, build, every_change=True)
    key, start = kept.key, kept.start
    known, _ = what_matters(firsts_of(reduce), change, key, build)
    moments = ir.Project(kept.step, tuple(range(start)))
    rows = rows_at_moments(moments, known, key)
    extremes = [each for each in reduce.aggregates if is_extreme(each)]
    arguments = list(dict.fromkeys(each.args[0] for each in extremes))
    totals = types(kept.step)[start:]
    width = start + len(totals)
    with_totals = ir.Map(kept.step, tuple(_nothing(each.type) for each in arguments))
    together = ir.Union((with_totals, _padded(rows, key, totals, arguments)))
    sums = over_columns("max", totals, start)
    moved = [_over(each, width + arguments.index(each.args[0])) for each in extremes]
    reduced = ir.Reduce(together, all_columns(moments), (*sums, *moved))
    finals = iter(kept.finals)
    values = iter(Column(len(totals) + place, each.type) for place, each in enumerate(extremes))
    return kept.output(reduced, [next(values) if is_extreme(each) else next(finals) for each in reduce.aggregates])


def _padded(rows: Relation, key: tuple[int, ...], totals: tuple[SqlType, ...], arguments: list[Scalar]) -> Relation:
    """Rows with their moments in the columns of totals: key, nothing for each total, then the arguments."""
    behind = len(types(rows))
    mapped = ir.Map(rows, (*map(_nothing, totals), *(shift(each, 2) for each in arguments)))
    added = range(behind, behind + len(totals) + len(arguments))
    return ir.Project(mapped, (0, 1, *(index + 2 for index in key), *added))


def _nothing(of: SqlType) -> Literal:
    return Literal(None, of)


def _over(aggregate: Aggregate, place: int) -> Aggregate:
    """The aggregate of another column."""
    return Aggregate(aggregate.function, (Column(place, aggregate.args[0].type),), aggregate.type)
