"""The scalars inside a relation, to look at and to rewrite whichever operator holds them; the inputs of joins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from everview.compute.ir import relation as ir
from everview.compute.ir.scalar import Scalar, columns_of, remap, substitute

Rewrite = Callable[[Scalar], Scalar]
Equivalence = tuple[Scalar, ...]  # expressions of a join that are equal


def scalars_of(relation: ir.Relation) -> Iterator[Scalar]:
    """The scalars of the operator itself, without its inputs."""
    match relation:
        case ir.Map(_, scalars) | ir.Filter(_, scalars) | ir.FlatMap(_, _, scalars):
            yield from scalars
        case ir.Join(_, equivalences, nullsafe):
            for members in equivalences + nullsafe:
                yield from members
        case ir.Reduce(_, keys, aggregates):
            yield from keys
            for each in aggregates:
                yield from aggregate_scalars(each)
        case ir.Temporal(_, lowers, uppers, times):
            yield from lowers + uppers
            if times is not None:
                yield times
        case ir.TopK(_, _, order):
            yield from (each.scalar for each in order)
        case ir.Window(_, partition, order, functions):
            yield from partition
            yield from (each.scalar for each in order)
            for function in functions:
                yield from window_scalars(function)


def mapped_columns(input: ir.Relation, scalars: Iterable[Scalar]) -> list[Scalar]:
    """All columns of a Map as expressions over its input."""
    values: list[Scalar] = list(ir.all_columns(input))
    for scalar in scalars:
        values.append(substitute(scalar, values))
    return values


def only(input: ir.Relation, scalars: Sequence[Scalar]) -> ir.Relation:
    """Each row with the values of these scalars instead of its columns."""
    width = ir.arity(input)
    return ir.Project(ir.Map(input, tuple(scalars)), tuple(range(width, width + len(scalars))))


def aggregate_scalars(aggregate: ir.Aggregate) -> Iterator[Scalar]:
    """The scalars that an aggregate reads of a row."""
    yield from aggregate.args
    if aggregate.filter is not None:
        yield aggregate.filter
    yield from (each.scalar for each in aggregate.order)


def window_scalars(function: ir.WindowFunction) -> Iterator[Scalar]:
    """The scalars that a window function reads of a row, besides the partition and the order."""
    yield from function.args
    if function.filter is not None:
        yield function.filter


def with_scalars(relation: ir.Relation, change: Rewrite) -> ir.Relation:
    """The operator with every scalar rewritten, in the order of `scalars_of`."""
    match relation:
        case ir.Map(_, scalars):
            return replace(relation, scalars=tuple(map(change, scalars)))
        case ir.Filter(_, predicates):
            return replace(relation, predicates=tuple(map(change, predicates)))
        case ir.FlatMap(_, _, args):
            return replace(relation, args=tuple(map(change, args)))
        case ir.Join(_, equivalences, nullsafe):
            changed_classes = tuple(tuple(map(change, members)) for members in equivalences)
            changed_nullsafe = tuple(tuple(map(change, members)) for members in nullsafe)
            return replace(relation, equivalences=changed_classes, nullsafe=changed_nullsafe)
        case ir.Reduce(_, keys, aggregates):
            changed_keys = tuple(map(change, keys))
            changed = tuple(change_aggregate(each, change) for each in aggregates)
            return replace(relation, keys=changed_keys, aggregates=changed)
        case ir.Temporal(_, lowers, uppers, times):
            return replace(
                relation,
                lowers=tuple(map(change, lowers)),
                uppers=tuple(map(change, uppers)),
                times=None if times is None else change(times),
            )
        case ir.TopK(_, _, order):
            return replace(relation, order=change_order(order, change))
        case ir.Window(_, partition, order, functions):
            return replace(
                relation,
                partition=tuple(map(change, partition)),
                order=change_order(order, change),
                functions=tuple(change_window_function(each, change) for each in functions),
            )
        case _:
            return relation


def change_order(order: tuple[ir.Order, ...], change: Rewrite) -> tuple[ir.Order, ...]:
    return tuple(replace(each, scalar=change(each.scalar)) for each in order)


def change_aggregate(aggregate: ir.Aggregate, change: Rewrite) -> ir.Aggregate:
    return replace(
        aggregate,
        args=tuple(map(change, aggregate.args)),
        filter=None if aggregate.filter is None else change(aggregate.filter),
        order=change_order(aggregate.order, change),
    )


def change_window_function(function: ir.WindowFunction, change: Rewrite) -> ir.WindowFunction:
    return replace(
        function,
        args=tuple(map(change, function.args)),
        filter=None if function.filter is None else change(function.filter),
    )


def map_scalars(plan: ir.Relation, change: Rewrite) -> ir.Relation:
    return ir.transform(plan, lambda relation: with_scalars(relation, change))


def all_scalars(plan: ir.Relation) -> Iterator[Scalar]:
    for relation in ir.walk(plan):
        yield from scalars_of(relation)


def sides_of(join: ir.Join) -> list[range]:
    """The columns of each input."""
    sides: list[range] = []
    start = 0
    for each in join.inputs:
        sides.append(range(start, start + ir.arity(each)))
        start = sides[-1].stop
    return sides


def owner_of(scalar: Scalar, sides: list[range]) -> int | None:
    """The input that the scalar is over: the first for a scalar without columns, None if it is over several."""
    columns = columns_of(scalar)
    return next((index for index, side in enumerate(sides) if all(column in side for column in columns)), None)


def unrelated_groups(join: ir.Join) -> int:
    """The number of groups of inputs without an equivalence between them: all rows of one meet all of another."""
    sides = sides_of(join)
    groups = [{index} for index in range(len(sides))]
    for members in (*join.equivalences, *join.nullsafe):
        owners = {owner_of(member, sides) for member in members if columns_of(member)} - {None}
        met = [group for group in groups if group & owners]
        groups = [group for group in groups if not group & owners] + ([set().union(*met)] if met else [])
    return len(groups)


def move_classes(classes: tuple[Equivalence, ...], place: Callable[[int], int]) -> tuple[Equivalence, ...]:
    """Equivalences over columns that are elsewhere now."""
    return tuple(tuple(remap(member, place) for member in members) for members in classes)
