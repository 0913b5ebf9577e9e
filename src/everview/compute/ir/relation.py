"""Relations: what a plan is made of. A collection in, a collection out; multiplicities are part of the meaning.

Every relation means a function from collections (multisets of rows with integer multiplicities) to a collection, at
each time by itself. Rows are positional: `types(relation)` says what they hold. Anything SQL can say lowers to these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, TypeAlias, TypeVar

from everview.compute.cancel import check_wanted
from everview.compute.ir.scalar import Column, Scalar
from everview.compute.ir.types import SqlType


class Typed:
    """What all relations have: the types of their columns, once they have been asked for.

    Who goes through a deep plan asks at every depth, and the answer comes from below.
    """

    __slots__ = ("known_types",)
    known_types: tuple[SqlType, ...]


@dataclass(frozen=True, slots=True)
class Constant(Typed):
    """Rows that are written down, each with its multiplicity."""

    rows: tuple[tuple[tuple[Any, ...], int], ...]
    schema: tuple[SqlType, ...]

    def __hash__(self) -> int:  # arrays are lists, and those have none
        rows = (tuple(tuple(v) if isinstance(v, list) else v for v in row) for row, _ in self.rows)
        return hash((tuple(rows), self.schema))


@dataclass(frozen=True, slots=True)
class Get(Typed):
    """The collection named `id`: a stored one, or one bound by a `Let` around."""

    id: str
    schema: tuple[SqlType, ...]


@dataclass(frozen=True, slots=True)
class Project(Typed):
    """The columns at these positions, in this order."""

    input: Relation
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Map(Typed):
    """Each row with more columns behind; a scalar may read the columns that scalars before it add."""

    input: Relation
    scalars: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Filter(Typed):
    """The rows for which every predicate is true."""

    input: Relation
    predicates: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class FlatMap(Typed):
    """Each row once for every row that a table function gives for it, with that row's columns behind."""

    input: Relation
    function: str
    args: tuple[Scalar, ...]
    added: tuple[SqlType, ...]


@dataclass(frozen=True, slots=True)
class Join(Typed):
    """The product of the inputs, restricted to rows in which, for each equivalence, all members are equal and not NULL.

    Members are scalars over the inputs' columns side by side, each over columns of one input; those of a class have one
    representation, for rows are looked up by its hash. In the classes of `nullsafe`, which decorrelation makes, NULL is
    equal to NULL.
    """

    inputs: tuple[Relation, ...]
    equivalences: tuple[tuple[Scalar, ...], ...] = ()
    nullsafe: tuple[tuple[Scalar, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a `Reduce`: over distinct values if asked, of rows that pass the filter, in the order given."""

    function: str
    args: tuple[Scalar, ...]
    type: SqlType
    distinct: bool = False
    filter: Scalar | None = None
    order: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    scalar: Scalar
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Reduce(Typed):
    """One row for each distinct value of the keys that occurs: the keys, then the aggregates.

    Without keys there is a row only if there is input: that SQL wants one in any case is for the lowering to say.
    Without aggregates this is DISTINCT.
    """

    input: Relation
    keys: tuple[Scalar, ...]
    aggregates: tuple[Aggregate, ...] = ()


@dataclass(frozen=True, slots=True)
class TopK(Typed):
    """Of each group, the rows from `offset` on and no more than `limit`, in the given order; ties by the whole row."""

    input: Relation
    group: tuple[int, ...]
    order: tuple[Order, ...]
    limit: int | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """Which rows around the current one a window function sees. Bounds: None is unbounded, 0 the current row."""

    unit: str  # rows, range or groups
    start: int | Any | None
    end: int | Any | None
    exclude: str | None = None  # current row, group or ties


@dataclass(frozen=True, slots=True)
class WindowFunction:
    function: str
    args: tuple[Scalar, ...]
    type: SqlType
    frame: Frame
    filter: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Window(Typed):
    """Each row with window functions behind, over its partition in the given order; ties by the whole row."""

    input: Relation
    partition: tuple[Scalar, ...]
    order: tuple[Order, ...]
    functions: tuple[WindowFunction, ...]


@dataclass(frozen=True, slots=True)
class Temporal(Typed):
    """The rows, each at the times from all of its `lowers` on and before all of its `uppers`; NULL bounds no time.

    Bounds are times in milliseconds. Where a row has several intervals, `times` is the set of these, and restricts it
    too: see `functions.time_sets`. This is the one operator whose output changes while its input does not.
    """

    input: Relation
    lowers: tuple[Scalar, ...]
    uppers: tuple[Scalar, ...]
    times: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Threshold(Typed):
    """Rows with a positive multiplicity; the others are dropped."""

    input: Relation


@dataclass(frozen=True, slots=True)
class Negate(Typed):
    """Every multiplicity with its sign turned."""

    input: Relation


@dataclass(frozen=True, slots=True)
class Union(Typed):
    """All inputs together, multiplicities added."""

    inputs: tuple[Relation, ...]


@dataclass(frozen=True, slots=True)
class Occurring(Typed):
    """Every row that occurs, with a positive multiplicity, whatever its sign was, or its number of copies.

    Rows whose multiplicities add up to nothing may be among them. Only tick programs have this.
    """

    input: Relation


@dataclass(frozen=True, slots=True)
class Accumulate(Typed):
    """Running totals: of rows (time, keys, amounts), for each time and key that occur, (time, next, keys, totals).

    `next` is the next time of the same key, or NULL. A total is the sum of multiplicity times amount over the rows of
    the key up to that time, whatever the signs; times and amounts are not NULL. Only tick programs have this.
    """

    input: Relation
    keys: int


@dataclass(frozen=True, slots=True)
class Let(Typed):
    """`body`, in which `Get(id)` means `value`."""

    id: str
    value: Relation
    body: Relation


@dataclass(frozen=True, slots=True)
class Recursive(Typed):
    """`base`, and what `step` makes of it, of that, and so on, until that is nothing.

    In `step`, `Get(id)` means the rows of the round before. With `distinct` a row counts once and is new only once.
    No view is maintained with this: it is in queries that are read once, and the local engine computes it.
    """

    id: str
    base: Relation
    step: Relation
    distinct: bool


Relation: TypeAlias = (
    Constant
    | Get
    | Project
    | Map
    | Filter
    | FlatMap
    | Join
    | Reduce
    | TopK
    | Window
    | Threshold
    | Negate
    | Union
    | Temporal
    | Occurring
    | Accumulate
    | Let
    | Recursive
)

Steps: TypeAlias = Sequence[tuple[str, Relation]]  # named; each may read the inputs and the steps before it


def types(relation: Relation) -> tuple[SqlType, ...]:
    return known_types(relation, lambda relation: types_of(relation, types))


Operator = TypeVar("Operator", bound=Typed)


def known_types(relation: Operator, ask: Callable[[Operator], tuple[SqlType, ...]]) -> tuple[SqlType, ...]:
    """The types of the relation's columns, asked for once."""
    try:
        return relation.known_types
    except AttributeError:
        found = ask(relation)
        object.__setattr__(relation, "known_types", found)
        return found


def types_of(relation: Relation, types: Callable[[Relation], tuple[SqlType, ...]]) -> tuple[SqlType, ...]:
    """The types of the columns. `types` gives the types of inputs."""
    match relation:
        case Constant(schema=schema) | Get(schema=schema):
            return schema
        case Project(input, columns):
            below = types(input)
            return tuple(below[index] for index in columns)
        case Map(input, scalars):
            return types(input) + tuple(scalar.type for scalar in scalars)
        case FlatMap(input=input, added=added):
            return types(input) + added
        case Join(inputs):
            return tuple(column for each in inputs for column in types(each))
        case Reduce(_, keys, aggregates):
            return tuple(key.type for key in keys) + tuple(each.type for each in aggregates)
        case Window(input=input, functions=functions):
            return types(input) + tuple(each.type for each in functions)
        case Union(inputs):
            return types(inputs[0])
        case Let(body=body):
            return types(body)
        case Recursive(base=base):
            return types(base)
        case Accumulate(input):
            time, *others = types(input)
            return (time, time, *others)
        case _:
            return types(relation.input)


def arity(relation: Relation) -> int:
    return len(types(relation))


def inputs_of(relation: Relation) -> tuple[Relation, ...]:
    match relation:
        case Constant() | Get():
            return ()
        case Join(inputs) | Union(inputs):
            return inputs
        case Let(_, value, body):
            return (value, body)
        case Recursive(_, base, step):
            return (base, step)
        case _:
            return (relation.input,)


def with_inputs(relation: Relation, inputs: tuple[Relation, ...]) -> Relation:
    match relation:
        case Constant() | Get():
            return relation
        case Join() | Union():
            return replace(relation, inputs=inputs)
        case Let():
            return replace(relation, value=inputs[0], body=inputs[1])
        case Recursive():
            return replace(relation, base=inputs[0], step=inputs[1])
        case _:
            return replace(relation, input=inputs[0])


def transform(relation: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """Rewrite a plan from the bottom up, unless nobody wants that; `change` sees each relation after its inputs."""
    check_wanted()
    below = inputs_of(relation)
    changed = tuple([transform(each, change) for each in below])
    return change(relation if all(map(is_, changed, below)) else with_inputs(relation, changed))


def walk(relation: Relation) -> Iterator[Relation]:
    """The relation and everything below it, parents first, from left to right."""
    waiting = [relation]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(inputs_of(each))


def all_columns(relation: Relation) -> tuple[Column, ...]:
    return tuple(Column(index, column) for index, column in enumerate(types(relation)))
