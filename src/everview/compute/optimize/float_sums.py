"""`in_two_levels`: sums of floats as sums of whole numbers, so that they are kept as totals like any other.

A Reduce with such sums becomes two: the lower one groups by the bins of the floats too (`exact_floats.py`) and sums
their parts; the upper one, over the few rows of a group that this leaves, makes floats of the totals. Other aggregates
are computed by both, which counts, sums, least and greatest values allow.
"""

from __future__ import annotations

from dataclasses import replace

from everview.compute.functions import lookup
from everview.compute.functions.contract import TRIED, Extreme, Total
from everview.compute.functions.exact_floats import BIN, LIMB, LIMBS, PART, TOTAL_OF_BINS, WHOLE, WHOLE_TYPE
from everview.compute.functions.naming import key_of
from everview.compute.functions.numbers import EXACT_KINDS
from everview.compute.ir.relation import Aggregate, Map, Reduce, Relation, arity
from everview.compute.ir.scalar import Call, Case, Column, Literal, Scalar
from everview.compute.ir.types import FLOAT8, INT8

FLOAT_SUM = f"{TRIED}sum(float8)"
_TOTAL = f"{TRIED}{TOTAL_OF_BINS.key}"
_SUM = "sum(int4)"  # which gives 64 bits, as counts have too


def in_two_levels(reduce: Reduce) -> Relation:
    """The Reduce by bins first; unchanged without sums of floats, or with an aggregate that cannot be combined."""
    if not any(map(_is_float_sum, reduce.aggregates)) or not all(map(_is_combined, reduce.aggregates)):
        return reduce
    values = list(dict.fromkeys(_value(each) for each in reduce.aggregates if _is_float_sum(each)))
    start, count = arity(reduce.input), len(values)
    groups = tuple(Column(start + place, INT8) for place in range(count))
    binned = Map(reduce.input, tuple(Call(key_of(BIN, (FLOAT8,)), (each,), INT8) for each in values))
    part = key_of(PART, (FLOAT8, INT8))
    scaled = Map(binned, tuple(Call(part, each, FLOAT8) for each in zip(values, groups, strict=True)))
    parts = [Column(start + count + place, FLOAT8) for place in range(count)]
    limbs = [Call(key_of(f"{LIMB} {index}", (FLOAT8,)), (each,), INT8) for each in parts for index in range(LIMBS)]
    split = Map(scaled, tuple(limbs))
    below = [Aggregate(_SUM, (Column(start + 2 * count + place, INT8),), INT8) for place in range(len(limbs))]
    partial = [each for each in dict.fromkeys(reduce.aggregates) if not _is_float_sum(each)]
    lower = Reduce(split, (*reduce.keys, *groups), (*below, *partial))
    first = len(reduce.keys) + count  # where the aggregates of the lower level are
    totals = Map(lower, tuple(_whole(first + LIMBS * place) for place in range(count)))
    end, others = arity(lower), first + len(limbs)

    def above(aggregate: Aggregate) -> Aggregate:
        if not _is_float_sum(aggregate):
            return _of_partial(aggregate, Column(others + partial.index(aggregate), aggregate.type))
        place = values.index(_value(aggregate))
        of_bin = Column(len(reduce.keys) + place, INT8), Column(end + place, WHOLE_TYPE)
        return Aggregate(_TOTAL, of_bin, FLOAT8)

    keys = tuple(Column(place, key.type) for place, key in enumerate(reduce.keys))
    return Reduce(totals, keys, tuple(map(above, reduce.aggregates)))


def _whole(first: int) -> Scalar:
    limbs = tuple(Column(first + index, INT8) for index in range(LIMBS))
    return Call(key_of(WHOLE, (INT8,) * LIMBS), limbs, WHOLE_TYPE)


def _is_float_sum(aggregate: Aggregate) -> bool:
    return aggregate.function == FLOAT_SUM and not aggregate.distinct


def _is_combined(aggregate: Aggregate) -> bool:
    """Whether the aggregate of a group follows from the aggregates of its parts."""
    extreme = isinstance(lookup.aggregate(aggregate.function).algebra, Extreme)
    return extreme or _is_float_sum(aggregate) or adds_up(aggregate)


def adds_up(aggregate: Aggregate) -> bool:
    """Whether an aggregate is an exact total, to which each row adds by itself."""
    if aggregate.distinct:
        return False
    algebra = lookup.aggregate(aggregate.function).algebra
    return isinstance(algebra, Total) and (algebra.counts or aggregate.args[0].type.kind in EXACT_KINDS)


def _value(aggregate: Aggregate) -> Scalar:
    """The number that a row adds; NULL if the row does not take part."""
    (value,) = aggregate.args
    if aggregate.filter is None:
        return value
    return Case(((aggregate.filter, value),), Literal(None, value.type), value.type)


def _of_partial(aggregate: Aggregate, partial: Column) -> Aggregate:
    """An aggregate of a group from its values for the parts of the group."""
    if isinstance(lookup.aggregate(aggregate.function).algebra, Extreme):
        return replace(aggregate, args=(partial,), filter=None)
    return Aggregate(_SUM if partial.type == INT8 else "sum(numeric)", (partial,), aggregate.type)
