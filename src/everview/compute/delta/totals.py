"""Reduce whose aggregates are counts and exact sums: kept as totals, one row for each key.

Every row adds amounts to its key: one to the number of rows, and for each aggregate what it sums and counts. The state
of a key is its totals, so the cost of a change does not depend on how many rows the key has. The totals at each time
at which the key changes give the output from that time on; where the number of rows is zero there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from everview.compute.delta.per_key import key_of
from everview.compute.delta.program import BEFORE, at
from everview.compute.functions import lookup
from everview.compute.functions.aggregates import COUNT
from everview.compute.functions.resolve import call, cast, resolve_aggregate
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Aggregate, Relation, arity, types
from everview.compute.ir.scalar import And, Case, Coalesce, Column, Literal, Scalar, shift
from everview.compute.ir.types import INT8, NUMERIC_PRECISION, Kind, SqlType, numeric
from everview.compute.optimize.float_sums import adds_up

if TYPE_CHECKING:
    from everview.compute.delta.differentiate import Build


def is_additive(reduce: ir.Reduce) -> bool:
    """Whether all aggregates can be kept as totals; `float_sums.py` has made sums of floats exact before."""
    return all(map(adds_up, reduce.aggregates))


def delta(reduce: ir.Reduce, change: Relation, build: Build) -> Relation:
    """The moments of the output."""
    kept = keep(reduce, reduce.aggregates, change, build)
    return kept.output(kept.step, kept.finals)


@dataclass
class Kept:
    """Running totals of a Reduce: a step of moments, (time, next, key, totals), and aggregates over the totals."""

    reduce: ir.Reduce
    key: tuple[int, ...]
    step: Relation
    finals: list[Scalar]

    @property
    def start(self) -> int:
        """Where the totals are; the first is the number of rows."""
        return 2 + len(self.key)

    def output(self, moments: Relation, finals: Sequence[Scalar]) -> Relation:
        """The moments of the output, from totals with whatever else is behind them; scalars start at the totals."""
        there = ir.Filter(moments, (call(">", Column(self.start, INT8), Literal(0, INT8)),))
        heads = tuple(
            Column(2 + self.key.index(each.index), each.type) if isinstance(each, Column) else each
            for each in self.reduce.keys
        )
        computed = ir.Map(there, heads + tuple(shift(each, self.start) for each in finals))
        end = arity(moments)
        return ir.Project(computed, (0, 1, *range(end, end + len(heads) + len(finals))))


def keep(
    reduce: ir.Reduce, aggregates: Sequence[Aggregate], change: Relation, build: Build, *, every_change: bool = False
) -> Kept:
    """Keep the totals that some aggregates of a Reduce need, and the number of rows of each key.

    There is a moment for each time at which these change, or at which the key does in any way.
    """
    key = key_of(reduce)
    schema = types(reduce.input)
    amounts = Amounts()
    finals = [_final(each, amounts) for each in aggregates]
    mapped = ir.Map(change, tuple(shift(each, 1) for each in amounts.scalars))
    width = len(schema) + 1
    added = range(width, width + len(amounts.scalars))
    timed = ir.Project(mapped, (0, *(index + 1 for index in key), *added))
    totals = build.totals(_contents(reduce, key, amounts), len(key), change, key)
    known = ir.Union((at(totals.reading, BEFORE), timed))
    if every_change:
        nothing = tuple(_zero(each.type) for each in amounts.scalars)
        occurring = ir.Map(ir.Project(ir.Occurring(change), (0, *(index + 1 for index in key))), nothing)
        known = ir.Union((*known.inputs, occurring))
    return Kept(reduce, key, totals.follow(ir.Accumulate(known, len(key))), finals)


def _contents(reduce: ir.Reduce, key: tuple[int, ...], amounts: Amounts) -> Relation:
    """The totals as a plan: key, then the sums of the amounts."""
    schema = types(reduce.input)
    mapped = ir.Map(reduce.input, tuple(amounts.scalars))
    keys = tuple(Column(index, schema[index]) for index in key)
    sums = over_columns("sum", [amount.type for amount in amounts.scalars], len(schema))
    summed = ir.Reduce(mapped, keys, tuple(sums))
    start = len(keys)
    back = tuple(
        cast(Column(start + place, each.type), amount.type)
        for place, (each, amount) in enumerate(zip(sums, amounts.scalars, strict=True))
    )
    width = start + len(sums)
    return ir.Project(ir.Map(summed, back), (*range(start), *range(width, width + len(back))))


def over_columns(name: str, columns: Sequence[SqlType], first: int) -> list[Aggregate]:
    """The aggregate of this name over each of some columns side by side."""
    found = []
    for place, column in enumerate(columns, first):
        entry, _, result = resolve_aggregate(name, [column])
        found.append(Aggregate(entry.key, (Column(place, column),), result))
    return found


@dataclass
class Amounts:
    """The amounts that a row adds to its key; the first is one, for the row itself."""

    scalars: list[Scalar]

    def __init__(self) -> None:
        self.scalars = [Literal(1, INT8)]

    def add(self, scalar: Scalar) -> Column:
        """The total of an amount, over the totals."""
        if scalar not in self.scalars:
            self.scalars.append(scalar)
        return Column(self.scalars.index(scalar), scalar.type)


def _final(aggregate: Aggregate, amounts: Amounts) -> Scalar:
    takes = [] if aggregate.filter is None else [aggregate.filter]
    takes += [call("is not null", arg) for arg in aggregate.args]
    condition: Scalar | None = takes[0] if len(takes) == 1 else And(tuple(takes)) if takes else None
    count = amounts.add(_where(condition, Literal(1, INT8)))
    if lookup.aggregate(aggregate.function).algebra == COUNT:
        return count
    argument = aggregate.args[0]
    scale = argument.type.scale if argument.type.kind is Kind.NUMERIC else 0
    kept_as = INT8 if aggregate.type == INT8 else numeric(NUMERIC_PRECISION, scale)
    value = cast(argument, kept_as)
    amount = Coalesce((_where(aggregate.filter, value), _zero(kept_as)), kept_as)
    total = amounts.add(amount)
    return Case(((call(">", count, Literal(0, INT8)), total),), Literal(None, aggregate.type), aggregate.type)


def _where(condition: Scalar | None, value: Scalar) -> Scalar:
    if condition is None:
        return value
    otherwise = Literal(0, INT8) if value == Literal(1, INT8) else Literal(None, value.type)
    return Case(((condition, value),), otherwise, value.type)


def _zero(sql_type: SqlType) -> Literal:
    return Literal(0 if sql_type == INT8 else Decimal(0).scaleb(-sql_type.scale), sql_type)
