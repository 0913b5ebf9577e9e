"""`computed_columns`: what keys, arguments and sort keys compute becomes columns of a Map below.

Afterwards only Map, Filter and FlatMap evaluate anything, so only there can an evaluation fail, and whatever an
operator is keyed by is a column that it can be looked up by. The columns of the result are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from everview.compute.functions.casts import cast_between
from everview.compute.functions.internal import AVERAGE, ONE_ROW
from everview.compute.functions.resolve import resolve, resolve_aggregate
from everview.compute.ir.parts import change_aggregate, change_order, change_window_function
from everview.compute.ir.relation import (
    Aggregate,
    Filter,
    FlatMap,
    Join,
    Map,
    Project,
    Reduce,
    Relation,
    Temporal,
    TopK,
    Window,
    WindowFunction,
    arity,
    transform,
)
from everview.compute.ir.scalar import Call, Case, Column, Literal, Scalar, columns_of, shift
from everview.compute.ir.types import INT8, NUMERIC_PRECISION, Kind, SqlType, numeric
from everview.compute.optimize.sides import owner_of, sides_of

EXACT = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC)


def computed_columns(plan: Relation) -> Relation:
    """The plan with plain columns in all operators but Map, Filter and FlatMap."""
    return transform(plan, _plain)


class _Columns:
    """An input with more columns behind, each computed once."""

    def __init__(self, input: Relation) -> None:
        self._input, self._start = input, arity(input)
        self._scalars: list[Scalar] = []

    def add(self, scalar: Scalar) -> Scalar:
        """The column that holds the value."""
        if isinstance(scalar, (Column, Literal)):
            return scalar
        if scalar not in self._scalars:
            self._scalars.append(scalar)
        return Column(self._start + self._scalars.index(scalar), scalar.type)

    @property
    def relation(self) -> Relation:
        """The input with the columns."""
        return Map(self._input, tuple(self._scalars)) if self._scalars else self._input

    def without(self, relation: Relation, added: int = 0) -> Relation:
        """A relation whose rows start with those of `relation`, and then have so many more, without the new columns."""
        if not self._scalars:
            return relation
        end = self._start + len(self._scalars)
        return Project(relation, (*range(self._start), *range(end, end + added)))


def _plain(relation: Relation) -> Relation:
    match relation:
        case Join():
            return _join(relation)
        case Reduce():
            return _reduce(relation)
        case TopK(input, _, order):
            columns = _Columns(input)
            changed = change_order(order, columns.add)
            return columns.without(replace(relation, input=columns.relation, order=changed))
        case Window():
            return _window(relation)
        case Temporal(input, lowers, uppers):
            columns = _Columns(input)
            bounds = [tuple(columns.add(each) for each in part) for part in (lowers, uppers)]
            return columns.without(Temporal(columns.relation, bounds[0], bounds[1]))
        case FlatMap(input, _, args, added):
            columns = _Columns(input)
            places = tuple(columns.add(arg) for arg in args)
            return columns.without(replace(relation, input=columns.relation, args=places), len(added))
        case _:
            return relation


def _join(join: Join) -> Relation:
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
    starts = [sum(arity(each) for each in relations[:side]) for side in range(len(relations))]
    classes = []
    for members, row in zip(join.equivalences + join.nullsafe, places, strict=True):
        classes.append(
            tuple(
                shift(new, starts[_owner(old, sides)]) if columns_of(old) else new
                for old, new in zip(members, row, strict=True)
            )
        )
    count = len(join.equivalences)
    joined = Join(tuple(relations), tuple(classes[:count]), tuple(classes[count:]))
    kept = [start + index for start, side in zip(starts, sides, strict=True) for index in range(len(side))]
    return Project(joined, tuple(kept))


def _owner(member: Scalar, sides: list[range]) -> int:
    owner = owner_of(member, sides)
    assert owner is not None, "a member of an equivalence is over the columns of one input"
    return owner


def _reduce(reduce: Reduce) -> Relation:
    columns = _Columns(reduce.input)
    keys = tuple(columns.add(key) for key in reduce.keys)
    aggregates = [_aggregate(each, columns) for each in reduce.aggregates]
    simple: list[Aggregate] = []
    finals = [_final(each, simple, len(keys)) for each in aggregates]
    below: Relation = Reduce(columns.relation, keys, tuple(simple))
    if simple == aggregates:
        return below
    if any(each.function.startswith("single(") for each in aggregates):
        # That a group has one row is for a filter to say, which fails where there are more.
        width = arity(below)
        below = Reduce(columns.relation, keys, (*simple, Aggregate("count()", (), INT8)))
        only = resolve(ONE_ROW, [INT8])
        below = Filter(below, (Call(only.function.key, (Column(width, INT8),), only.result),))
    start = arity(below)
    return Project(Map(below, tuple(finals)), (*range(len(keys)), *range(start, start + len(finals))))


def _final(aggregate: Aggregate, simple: list[Aggregate], start: int) -> Scalar:
    """The aggregate over the columns of simpler ones, which fail for no group, so that only a scalar can."""

    def column(each: Aggregate) -> Scalar:
        if each not in simple:
            simple.append(each)
        return Column(start + simple.index(each), each.type)

    if aggregate.function.startswith("single("):
        return column(replace(aggregate, function=aggregate.function.replace("single(", "some(", 1)))
    if aggregate.function.startswith("avg(") and aggregate.args[0].type.kind in EXACT:
        entry, _, total_type = resolve_aggregate("sum", [aggregate.args[0].type])
        total = column(replace(aggregate, function=entry.key, type=total_type))
        count = column(replace(aggregate, function="count(any)", type=INT8))
        scale = total_type.scale if total_type.kind is Kind.NUMERIC else 0
        wide = cast(total, numeric(NUMERIC_PRECISION, scale))
        average = Call(f"{AVERAGE}(numeric,int8)", (wide, count), aggregate.type)
        some = resolve(">", [INT8, INT8])
        counted = Call(some.function.key, (count, Literal(0, INT8)), some.result)
        return Case(((counted, average),), Literal(None, aggregate.type), aggregate.type)
    return column(aggregate)


def cast(scalar: Scalar, to: SqlType) -> Scalar:
    """The scalar as a value of another type."""
    if scalar.type == to:
        return scalar
    found = cast_between(scalar.type, to)
    assert found is not None
    return replace(scalar, type=to) if found.key is None else Call(found.key, (scalar,), to)


def _aggregate(aggregate: Aggregate, columns: _Columns) -> Aggregate:
    changed = change_aggregate(replace(aggregate, filter=None), _taken(aggregate.filter, columns))
    return changed if aggregate.filter is None else replace(changed, filter=columns.add(aggregate.filter))


def _taken(condition: Scalar | None, columns: _Columns) -> Callable[[Scalar], Scalar]:
    """What a function takes of a row, as columns; where its filter does not pass, nothing is evaluated."""

    def take(scalar: Scalar) -> Scalar:
        if condition is None or isinstance(scalar, (Column, Literal)):
            return columns.add(scalar)
        return columns.add(Case(((condition, scalar),), Literal(None, scalar.type), scalar.type))

    return take


def _window(window: Window) -> Relation:
    columns = _Columns(window.input)
    partition = tuple(columns.add(each) for each in window.partition)
    order = change_order(window.order, columns.add)
    functions = tuple(_window_function(each, columns) for each in window.functions)
    plain = Window(columns.relation, partition, order, functions)
    return columns.without(plain, len(functions))


def _window_function(function: WindowFunction, columns: _Columns) -> WindowFunction:
    changed = change_window_function(replace(function, filter=None), _taken(function.filter, columns))
    return changed if function.filter is None else replace(changed, filter=columns.add(function.filter))
