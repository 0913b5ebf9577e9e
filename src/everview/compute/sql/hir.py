"""Plans before decorrelation: the relations and scalars of the IR, plus what refers to a query around.

`Outer(level, index)` is a column of the row of the `level`-th query around, 1 being the nearest. `Subquery` stands for
a value computed by a query that may contain such references. `OuterJoin`, `Lateral` and `GlobalReduce` are what SQL
says and the IR does not. Everything is made of the IR's own classes otherwise; `lower` takes these away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from everview.compute.functions.registry import AGGREGATES, WINDOWS
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import aggregate_scalars, change_aggregate, scalars_of, with_scalars
from everview.compute.ir.scalar import Column, Literal, Scalar, transform, walk
from everview.compute.ir.types import BOOLEAN, SqlType

Query = Any  # a relation of the IR or of this module
HScalar = Any  # a scalar of the IR or of this module
FUNCTION_SCHEMAS = ("pg_catalog", "information_schema", "mz_catalog", "mz_internal", "mz_unsafe")
AGGREGATE_NAMES = frozenset(function.name for function in AGGREGATES.values())
WINDOW_NAMES = frozenset(function.name for function in WINDOWS.values())


@dataclass(frozen=True, slots=True)
class Outer:
    """A column of a query around this one."""

    level: int
    index: int
    type: SqlType
    args: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class Subquery:
    """`exists`: whether the query has a row; `scalar`: its one value, or NULL; `array`: its values as an array.

    `order`, of an array, is over the columns of the query, of which the first has the values.
    """

    kind: str
    query: Query
    type: SqlType = BOOLEAN
    args: tuple[Scalar, ...] = ()
    order: tuple[ir.Order, ...] = ()


@dataclass(frozen=True, slots=True)
class Placeholder:
    """Stands for the value of aggregate or window function number `index` of the `level`-th query around."""

    kind: str
    index: int
    type: SqlType
    level: int = 0
    args: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class OuterJoin(ir.Typed):
    """The pairs for which `on` holds, and the rows without a partner padded with NULLs. `kind`: left or full."""

    left: Query
    right: Query
    on: tuple[HScalar, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class Lateral(ir.Typed):
    """Each left row with the rows of `right`, for which it is the nearest row around. `kind`: inner or left."""

    left: Query
    right: Query
    on: tuple[HScalar, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class GlobalReduce(ir.Typed):
    """Aggregates over everything: one row, also over nothing, where each aggregate has its value over no rows."""

    input: Query
    aggregates: tuple[ir.Aggregate, ...]
    empty: tuple[Literal, ...]


@dataclass
class Calls:
    """Aggregates and window functions met so far. None in place of a list where they are not allowed."""

    aggregates: list[ir.Aggregate] | None = None
    windows: list[Any] | None = None
    named: Mapping[str, Any] = field(default_factory=dict)  # the windows of the WINDOW clause
    groupings: list[tuple[HScalar, ...]] = field(default_factory=list)


def types(query: Query) -> tuple[SqlType, ...]:
    return ir.known_types(query, _types_of)


def columns(query: Query) -> tuple[Column, ...]:
    """All columns of a query, as scalars over its rows."""
    return tuple(Column(index, each) for index, each in enumerate(types(query)))


def mapped(query: Query, values: Sequence[HScalar]) -> Query:
    """Each row with these values instead of its columns."""
    known = columns(query)
    if tuple(values) == known:
        return query
    return ir.Project(ir.Map(query, tuple(values)), tuple(range(len(known), len(known) + len(values))))


def _types_of(query: Query) -> tuple[SqlType, ...]:
    match query:
        case OuterJoin(left, right) | Lateral(left, right):
            return types(left) + types(right)
        case GlobalReduce(aggregates=aggregates):
            return tuple(each.type for each in aggregates)
        case _:
            return ir.types_of(query, types)


def inputs(query: Query) -> tuple[Query, ...]:
    match query:
        case OuterJoin(left, right) | Lateral(left, right):
            return (left, right)
        case GlobalReduce(input):
            return (input,)
        case _:
            return ir.inputs_of(query)


def walk_queries(query: Query) -> Iterator[Query]:
    """The query and everything below it, subqueries in its expressions left out."""
    yield query
    for each in inputs(query):
        yield from walk_queries(each)


def scalars(query: Query) -> tuple[HScalar, ...]:
    match query:
        case OuterJoin(on=found) | Lateral(on=found):
            return found
        case GlobalReduce(aggregates=aggregates):
            return tuple(part for each in aggregates for part in aggregate_scalars(each))
        case _:
            return tuple(scalars_of(query))


def has_subquery(scalar: HScalar) -> bool:
    """Whether a query has to be answered to evaluate the scalar."""
    return any(isinstance(part, Subquery) for part in walk(scalar))


def free(query: Query, depth: int = 0) -> set[tuple[int, int]]:
    """Columns of queries around, as (level, index), that are referred to from anywhere inside."""
    found: set[tuple[int, int]] = set()
    for scalar in scalars(query):
        found |= free_in(scalar, depth)
    for position, each in enumerate(inputs(query)):
        deeper = isinstance(query, Lateral) and position == 1
        found |= free(each, depth + 1 if deeper else depth)
    return found


def free_in(scalar: HScalar, depth: int = 0) -> set[tuple[int, int]]:
    """`free` for a scalar."""
    found: set[tuple[int, int]] = set()
    for part in walk(scalar):
        if isinstance(part, Outer) and part.level > depth:
            found.add((part.level - depth, part.index))
        elif isinstance(part, Subquery):
            found |= free(part.query, depth + 1)
    return found


# Rewriting references

NewReference = Callable[[int, int, SqlType], "tuple[int, int] | HScalar"]


def map_references(scalar: HScalar, change: NewReference, depth: int = 0) -> HScalar:
    """Replace references to the row at hand (level 0) and to rows around (1, 2, ...), also from queries inside.

    `change` gives the new level and index, or a whole new scalar over the row at hand.
    """

    def look(part: HScalar) -> HScalar | None:
        if isinstance(part, Subquery):
            return replace(part, query=map_query(part.query, change, depth + 1))
        if isinstance(part, Column) and depth == 0:
            level = 0
        elif isinstance(part, Outer) and part.level >= depth:
            level = part.level - depth
        else:
            return None
        changed = change(level, part.index, part.type)
        if not isinstance(changed, tuple):
            return changed if depth == 0 else deepened(changed, depth)
        level, index = changed
        return Column(index, part.type) if level + depth == 0 else Outer(level + depth, index, part.type)

    return transform(scalar, look)


def map_query(query: Query, change: NewReference, depth: int) -> Query:
    """`map_references` in all scalars of a query `depth` levels inside."""
    return map_scalars(query, lambda scalar, level: map_references(scalar, change, level), depth)


def map_scalars(query: Query, change: Callable[[HScalar, int], HScalar], depth: int) -> Query:
    """NewReference all scalars of a query that is `depth` levels inside; `change` is told how deep each of them is."""

    def changed(scalar: HScalar) -> HScalar:
        return change(scalar, depth)

    match query:
        case OuterJoin(left, right, on, kind):
            first, second = (map_scalars(each, change, depth) for each in (left, right))
            return OuterJoin(first, second, tuple(map(changed, on)), kind)
        case Lateral(left, right, on, kind):
            inner = map_scalars(right, change, depth + 1)
            return Lateral(map_scalars(left, change, depth), inner, tuple(map(changed, on)), kind)
        case GlobalReduce(input, aggregates, empty):
            reduced = tuple(change_aggregate(each, changed) for each in aggregates)
            return GlobalReduce(map_scalars(input, change, depth), reduced, empty)
        case _:
            below = tuple(map_scalars(each, change, depth) for each in ir.inputs_of(query))
            return ir.with_inputs(with_scalars(query, changed), below)


def deepened(scalar: HScalar, by: int = 1) -> HScalar:
    """A scalar over the row at hand, as seen from a query `by` levels inside."""
    moved = map_references(scalar, lambda level, index, _: (level + by, index))
    return map_placeholders(moved, lambda part: replace(part, level=part.level + by))


def query_deepened(query: Query, by: int) -> Query:
    """A query as it is said `by` levels further inside than where it was bound."""
    return map_query(query, lambda level, index, _: (level + by, index), 1) if by else query


def map_placeholders(
    scalar: HScalar, change: Callable[[Placeholder], HScalar | None], depth: int = 0, *, around: bool = True
) -> HScalar:
    """Replace placeholders of this query and the queries `around` it, also in subqueries. None keeps one.

    `change` is told levels as this query counts them, and what it gives is one inside.
    """

    def look(part: HScalar) -> HScalar | None:
        if isinstance(part, Subquery):
            inner = lambda each, at: map_placeholders(each, change, at, around=around)  # noqa: E731
            return replace(part, query=map_scalars(part.query, inner, depth + 1))
        if not isinstance(part, Placeholder) or part.level < depth or (part.level > depth and not around):
            return None
        changed = change(replace(part, level=part.level - depth))
        return changed if changed is None or depth == 0 else deepened(changed, depth)

    return transform(scalar, look)


def fill(scalar: HScalar, value: Callable[[Placeholder], HScalar | None]) -> HScalar:
    """The scalar with values for placeholders of this query, also for those in queries inside."""
    return map_placeholders(scalar, value, around=False)
