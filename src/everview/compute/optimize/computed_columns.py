"""`computed_columns`: what keys, arguments and sort keys compute becomes columns of a Map below.

Afterwards only Map, Filter and FlatMap evaluate anything, so only there can an evaluation fail, and whatever an
operator is keyed by is a column that it can be looked up by. The columns of the result are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeVar

from everview.compute.functions import lookup
from everview.compute.functions.aggregates import SOME
from everview.compute.functions.contract import TRIED, Additive, Extreme, OneRow, Total
from everview.compute.functions.naming import key_of
from everview.compute.functions.numbers import FLOATS, SURE_DIGITS
from everview.compute.functions.plan_functions import FIELD_NAME, FITS, ONE_ROW
from everview.compute.functions.resolve import call, cast, resolve_aggregate
from everview.compute.functions.time_sets import INTERVALS, TIMES
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import change_aggregate, change_order, change_window_function, owner_of, sides_of
from everview.compute.ir.scalar import Call, Case, Column, Literal, Scalar, columns_of, shift
from everview.compute.ir.types import FLOAT8, INT8, NUMERIC_PRECISION, TEXT, Kind, SqlType, numeric
from everview.compute.optimize.float_sums import in_two_levels

_LOWER_DIGITS = 19


def computed_columns(plan: ir.Relation) -> ir.Relation:
    """The plan with plain columns in all operators but Map, Filter and FlatMap."""
    return ir.transform(plan, _plain)


class _Columns:
    """An input with more columns behind, each computed once."""

    def __init__(self, input: ir.Relation) -> None:
        self._input, self._start = input, ir.arity(input)
        self._scalars: list[Scalar] = []

    def add(self, scalar: Scalar) -> Scalar:
        """The column that holds the value."""
        if isinstance(scalar, (Column, Literal)):
            return scalar
        if scalar not in self._scalars:
            self._scalars.append(scalar)
        return Column(self._start + self._scalars.index(scalar), scalar.type)

    @property
    def relation(self) -> ir.Relation:
        return ir.Map(self._input, tuple(self._scalars)) if self._scalars else self._input

    def without(self, relation: ir.Relation, added: int = 0) -> ir.Relation:
        """A relation that has the new columns, and behind them so many that were `added`, without the new columns."""
        if not self._scalars:
            return relation
        end = self._start + len(self._scalars)
        return ir.Project(relation, (*range(self._start), *range(end, end + added)))


def _plain(relation: ir.Relation) -> ir.Relation:
    match relation:
        case ir.Join():
            return _join(relation)
        case ir.Reduce():
            return _reduce(relation)
        case ir.TopK(input, _, order):
            columns = _Columns(input)
            changed = change_order(order, columns.add)
            return columns.without(replace(relation, input=columns.relation, order=changed))
        case ir.Window():
            return _window(relation)
        case ir.Temporal():
            return _temporal(relation)
        case ir.FlatMap(input, _, args, added):
            columns = _Columns(input)
            places = tuple(columns.add(arg) for arg in args)
            return columns.without(replace(relation, input=columns.relation, args=places), len(added))
        case _:
            return relation


def _temporal(temporal: ir.Temporal) -> ir.Relation:
    """Bounds as columns; a row with a set of times once for each of its intervals, whose ends are bounds too."""
    columns = _Columns(temporal.input)
    lowers, uppers = (tuple(columns.add(each) for each in part) for part in (temporal.lowers, temporal.uppers))
    if temporal.times is None:
        return columns.without(ir.Temporal(columns.relation, lowers, uppers))
    width = ir.arity(columns.relation)
    several = ir.FlatMap(
        ir.Map(columns.relation, (temporal.times,)), key_of(INTERVALS, (TIMES,)), (Column(width, TIMES),), (INT8, INT8)
    )
    pairs = ir.Project(several, (*range(width), width + 1, width + 2))
    start, end = Column(width, INT8), Column(width + 1, INT8)
    return ir.Project(ir.Temporal(pairs, (*lowers, start), (*uppers, end)), tuple(range(ir.arity(temporal.input))))


def _join(join: ir.Join) -> ir.Relation:
    sides = sides_of(join)
    inputs = [_Columns(each) for each in join.inputs]
    places: list[list[Scalar]] = []
    for members in join.equivalences + join.nullsafe:
        row: list[Scalar] = []
        for member in members:
            if not columns_of(member):
                row.append(member)
                continue
            side = _owner(member, sides)
            row.append(inputs[side].add(shift(member, -sides[side].start)))
        places.append(row)
    relations = [each.relation for each in inputs]
    if tuple(relations) == join.inputs:
        return join
    starts = [sum(ir.arity(each) for each in relations[:side]) for side in range(len(relations))]
    classes = []
    for members, row in zip(join.equivalences + join.nullsafe, places, strict=True):
        classes.append(
            tuple(
                shift(new, starts[_owner(old, sides)]) if columns_of(old) else new
                for old, new in zip(members, row, strict=True)
            )
        )
    count = len(join.equivalences)
    joined = ir.Join(tuple(relations), tuple(classes[:count]), tuple(classes[count:]))
    kept = [start + index for start, side in zip(starts, sides, strict=True) for index in range(len(side))]
    return ir.Project(joined, tuple(kept))


def _owner(member: Scalar, sides: list[range]) -> int:
    owner = owner_of(member, sides)
    assert owner is not None, "a member of an equivalence is over the columns of one input"
    return owner


def _reduce(reduce: ir.Reduce) -> ir.Relation:
    columns = _Columns(reduce.input)
    keys = tuple(columns.add(key) for key in reduce.keys)
    aggregates = [_aggregate(each, columns) for each in reduce.aggregates]
    simpler = _Simpler(len(keys), _Columns(columns.relation))
    finals = [_final(each, simpler) for each in aggregates]
    below = in_two_levels(ir.Reduce(simpler.parts.relation, keys, tuple(simpler.aggregates)))
    if simpler.aggregates == aggregates:
        return below
    if any(lookup.aggregate(each.function).algebra == OneRow(enforced=True) for each in aggregates):
        # That a group has one row is for a filter to say, which fails where there are more.
        width = ir.arity(below)
        below = ir.Reduce(simpler.parts.relation, keys, (*simpler.aggregates, ir.Aggregate("count()", (), INT8)))
        below = ir.Filter(below, (call(ONE_ROW, Column(width, INT8)),))
    start = ir.arity(below)
    return ir.Project(ir.Map(below, tuple(finals)), (*range(len(keys)), *range(start, start + len(finals))))


@dataclass
class _Simpler:
    """Aggregates that fail for no group, behind the keys; and the parts of numbers that some of them sum."""

    start: int
    parts: _Columns
    aggregates: list[ir.Aggregate] = field(default_factory=list)

    def column(self, aggregate: ir.Aggregate) -> Scalar:
        """The column of an aggregate, added if it is new."""
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        return Column(self.start + self.aggregates.index(aggregate), aggregate.type)

    def total(self, aggregate: ir.Aggregate) -> Scalar:
        """A sum; of numbers so long that a few of them may be too much, by their upper and lower digits.

        The digits of numbers end where a total would have to go on, so a sum of such may fail. The parts are short,
        their sums have room, and it is for a scalar over these to fail, as long as the total is too large.
        """
        argument = aggregate.args[0]
        kind, precision = argument.type.kind, argument.type.precision
        if kind in FLOATS:
            value = self.parts.add(cast(argument, FLOAT8))
            total = checked(replace(aggregate, function="sum(float8)", args=(value,), type=FLOAT8), self.column)
            return cast(total, aggregate.type)
        if kind is not Kind.NUMERIC or precision <= SURE_DIGITS:
            return self.column(replace(aggregate, args=(self.parts.add(argument),)))
        scale = argument.type.scale
        if aggregate.distinct or scale > SURE_DIGITS:
            # The parts of numbers that differ may be the same; and what is behind the point leaves a sum no room.
            return checked(replace(aggregate, args=(self.parts.add(argument),)), self.column)
        digits = max(_LOWER_DIGITS, scale)  # all that is behind the point is lower
        place = Literal(Decimal(10) ** (digits - scale), numeric(digits - scale + 1, 0))
        upper = self._part("div", argument, place, numeric(NUMERIC_PRECISION - digits, 0), aggregate)
        lower = self._part("mod", argument, place, numeric(digits, scale), aggregate)
        return cast(call("+", call("*", upper, place), lower), aggregate.type)

    def derived(self, aggregate: ir.Aggregate, algebra: Additive) -> Scalar:
        """An additive aggregate over its totals."""
        (argument,) = aggregate.args
        final = lookup.function(algebra.final)
        if final.args[0].kind in FLOATS:
            argument = self.parts.add(cast(argument, final.args[0]))
        totals = []
        for amount in (each(argument) for each in algebra.amounts):
            entry, _, result = resolve_aggregate("sum", [amount.type])
            total = self.total(replace(aggregate, function=entry.key, args=(amount,), type=result))
            scale = result.scale if result.kind is Kind.NUMERIC else 0
            totals.append(total if result.kind in FLOATS else cast(total, numeric(NUMERIC_PRECISION, scale)))
        count = self.column(replace(aggregate, function="count(any)", args=(argument,), type=INT8))
        value = Call(final.key, (*totals, count), aggregate.type)
        enough = call(">", count, Literal(algebra.least - 1, INT8))
        return Case(((enough, value),), Literal(None, aggregate.type), aggregate.type)

    def _part(self, function: str, argument: Scalar, place: Scalar, part: SqlType, aggregate: ir.Aggregate) -> Scalar:
        digits = self.parts.add(replace(call(function, argument, place), type=part))
        entry, _, result = resolve_aggregate("sum", [part])
        return self.column(replace(aggregate, function=entry.key, args=(digits,), type=result))


def _final(aggregate: ir.Aggregate, simpler: _Simpler) -> Scalar:
    """The aggregate over the columns of simpler ones, which fail for no group, so that only a scalar can."""
    match lookup.aggregate(aggregate.function).algebra:
        case Total(counts=False):
            return simpler.total(aggregate)
        case Additive() as algebra:
            return simpler.derived(aggregate, algebra)
        case OneRow():
            return simpler.column(replace(aggregate, function=SOME))
        case _:
            return checked(aggregate, simpler.column)


Over = TypeVar("Over", ir.Aggregate, ir.WindowFunction)


def checked(function: Over, column: Callable[[Over], Scalar]) -> Scalar:
    """An aggregate that may fail over columns of what does not: it as far as it has a value, and the rows counted."""
    unfit = lookup.aggregate(function.function).unfit
    if unfit is None or unfit.sure([arg.type for arg in function.args]):
        return column(function)
    value = column(replace(function, function=f"{TRIED}{function.function}"))
    witness = value
    if unfit.witness is not None:
        witness = column(replace(function, function=f"{TRIED}{unfit.witness}", type=FLOAT8))
    count = column(replace(function, function=unfit.count, type=INT8))
    error = Literal(unfit.sqlstate, TEXT), Literal(unfit.message, TEXT)
    fits = call(FITS, call("is null", witness), count, Literal(unfit.least, INT8), *error)
    return Case(((fits, value),), Literal(None, function.type), function.type)


def _aggregate(aggregate: ir.Aggregate, columns: _Columns) -> ir.Aggregate:
    if isinstance(lookup.aggregate(aggregate.function).algebra, Extreme):
        (argument,) = aggregate.args
        for each in aggregate.order:  # it does not matter, but it may fail
            if lookup.can_fail(each.scalar):
                _taken(aggregate.filter, columns)(each.scalar)
        if aggregate.filter is not None:  # a column by whose order the value is found has it for all rows
            argument = Case(((aggregate.filter, argument),), Literal(None, argument.type), argument.type)
        return replace(aggregate, args=(columns.add(argument),), filter=None, distinct=False, order=())
    named = replace(_named(aggregate), filter=None)
    changed = change_aggregate(named, _taken(aggregate.filter, columns))
    return changed if aggregate.filter is None else replace(changed, filter=columns.add(aggregate.filter))


def _named(function: Over) -> Over:
    """The names of an object's fields, if it makes one, with a look whether they are there."""
    if not function.function.startswith("jsonb_object_agg("):
        return function
    name, value = function.args
    return replace(function, args=(call(FIELD_NAME, name), value))


def _taken(condition: Scalar | None, columns: _Columns) -> Callable[[Scalar], Scalar]:
    """The arguments of a function as columns; where its filter does not pass, nothing is evaluated."""

    def take(scalar: Scalar) -> Scalar:
        if condition is None or isinstance(scalar, (Column, Literal)):
            return columns.add(scalar)
        return columns.add(Case(((condition, scalar),), Literal(None, scalar.type), scalar.type))

    return take


def _window(window: ir.Window) -> ir.Relation:
    columns = _Columns(window.input)
    partition = tuple(columns.add(each) for each in window.partition)
    order = change_order(window.order, columns.add)
    functions = [_window_function(each, columns) for each in window.functions]
    start, simpler = ir.arity(columns.relation), list[ir.WindowFunction]()

    def column(function: ir.WindowFunction) -> Scalar:
        if function not in simpler:
            simpler.append(function)
        return Column(start + simpler.index(function), function.type)

    finals = [checked(each, column) if lookup.is_aggregate(each.function) else column(each) for each in functions]
    plain = ir.Window(columns.relation, partition, order, tuple(simpler))
    if simpler == functions:
        return columns.without(plain, len(functions))
    end = start + len(simpler)
    return ir.Project(ir.Map(plain, tuple(finals)), (*range(ir.arity(window.input)), *range(end, end + len(finals))))


def _window_function(function: ir.WindowFunction, columns: _Columns) -> ir.WindowFunction:
    named = replace(_named(function), filter=None)
    changed = change_window_function(named, _taken(function.filter, columns))
    return changed if function.filter is None else replace(changed, filter=columns.add(function.filter))
