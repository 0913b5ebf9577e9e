"""The scalars inside a relation: to look at, and to rewrite, without knowing which operator holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from everview.compute.ir.relation import (
    Aggregate,
    Filter,
    FlatMap,
    Join,
    Map,
    Order,
    Reduce,
    Relation,
    Temporal,
    TopK,
    Window,
    WindowFunction,
    transform,
    walk,
)
from everview.compute.ir.scalar import Scalar

Change = Callable[[Scalar], Scalar]


def scalars_of(relation: Relation) -> Iterator[Scalar]:
    """The scalars of the operator itself, not of what is below it."""
    match relation:
        case Map(_, scalars) | Filter(_, scalars) | FlatMap(_, _, scalars):
            yield from scalars
        case Join(_, equivalences, nullsafe):
            for members in equivalences + nullsafe:
                yield from members
        case Reduce(_, keys, aggregates):
            yield from keys
            for each in aggregates:
                yield from aggregate_scalars(each)
        case Temporal(_, lowers, uppers, times):
            yield from lowers + uppers
            if times is not None:
                yield times
        case TopK(_, _, order):
            yield from (each.scalar for each in order)
        case Window(_, partition, order, functions):
            yield from partition
            yield from (each.scalar for each in order)
            for function in functions:
                yield from window_scalars(function)


def aggregate_scalars(aggregate: Aggregate) -> Iterator[Scalar]:
    """What an aggregate reads of a row."""
    yield from aggregate.args
    if aggregate.filter is not None:
        yield aggregate.filter
    yield from (each.scalar for each in aggregate.order)


def window_scalars(function: WindowFunction) -> Iterator[Scalar]:
    """What a window function reads of a row, besides what its window is sorted and divided by."""
    yield from function.args
    if function.filter is not None:
        yield function.filter


def with_scalars(relation: Relation, change: Change) -> Relation:
    """The same operator with every scalar changed."""
    match relation:
        case Map(_, scalars):
            return replace(relation, scalars=tuple(map(change, scalars)))
        case Filter(_, predicates):
            return replace(relation, predicates=tuple(map(change, predicates)))
        case FlatMap(_, _, args):
            return replace(relation, args=tuple(map(change, args)))
        case Join(_, equivalences, nullsafe):
            changed_classes = tuple(tuple(map(change, members)) for members in equivalences)
            changed_nullsafe = tuple(tuple(map(change, members)) for members in nullsafe)
            return replace(relation, equivalences=changed_classes, nullsafe=changed_nullsafe)
        case Reduce(_, keys, aggregates):
            changed = tuple(change_aggregate(each, change) for each in aggregates)
            return replace(relation, keys=tuple(map(change, keys)), aggregates=changed)
        case Temporal(_, lowers, uppers, times):
            return replace(
                relation,
                lowers=tuple(map(change, lowers)),
                uppers=tuple(map(change, uppers)),
                times=None if times is None else change(times),
            )
        case TopK(_, _, order):
            return replace(relation, order=change_order(order, change))
        case Window(_, partition, order, functions):
            return replace(
                relation,
                partition=tuple(map(change, partition)),
                order=change_order(order, change),
                functions=tuple(change_window_function(each, change) for each in functions),
            )
        case _:
            return relation


def change_order(order: tuple[Order, ...], change: Change) -> tuple[Order, ...]:
    """The sort keys over other scalars."""
    return tuple(replace(each, scalar=change(each.scalar)) for each in order)


def change_aggregate(aggregate: Aggregate, change: Change) -> Aggregate:
    """The aggregate over other scalars."""
    return replace(
        aggregate,
        args=tuple(map(change, aggregate.args)),
        filter=None if aggregate.filter is None else change(aggregate.filter),
        order=change_order(aggregate.order, change),
    )


def change_window_function(function: WindowFunction, change: Change) -> WindowFunction:
    """The window function over other scalars."""
    return replace(
        function,
        args=tuple(map(change, function.args)),
        filter=None if function.filter is None else change(function.filter),
    )


def map_scalars(plan: Relation, change: Change) -> Relation:
    """The plan with every scalar in it changed."""
    return transform(plan, lambda relation: with_scalars(relation, change))


def all_scalars(plan: Relation) -> Iterator[Scalar]:
    """Every scalar in the plan."""
    for relation in walk(plan):
        yield from scalars_of(relation)
