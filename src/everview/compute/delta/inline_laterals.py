"""`inline_laterals`: what LATERAL computes of a row alone is computed on that row.

A query beside others is lowered to the distinct values that it asks of these, what it gives for each, and a join of
that back to the rows that asked. Where it gives what table functions, expressions and conditions make of the values
(`generate_series(1, a.k)`, `unnest(a.list)`), these can be applied to the rows themselves, which keeps nothing:

    join(A, f(distinct k of X), k) = f(A)    where the rows of A are rows of X, with more columns or without some
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from everview.compute.functions.resolve import call
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import owner_of, sides_of
from everview.compute.ir.relation import Relation, arity
from everview.compute.ir.scalar import Column, Scalar, columns_of, remap

RowByRow = ir.Project | ir.Map | ir.Filter | ir.FlatMap


@dataclass(frozen=True, slots=True)
class Origin:
    """The column of a collection that a column of a plan is; `path` tells which reading of the collection it is."""

    path: tuple[int, ...]
    id: str
    column: int


@dataclass(frozen=True, slots=True)
class _Computed:
    """Operators, the first one first, over the distinct values of these columns of a collection.

    `conditions` are over these values: what does not meet them was not asked.
    """

    operators: tuple[RowByRow, ...]
    id: str
    keys: tuple[int, ...]
    conditions: tuple[Scalar, ...]


def inline_laterals(plan: Relation) -> Relation:
    return ir.transform(plan, _inlined)


def _inlined(relation: Relation) -> Relation:
    if not isinstance(relation, ir.Join):
        return relation
    join = _without_units(relation)
    if not isinstance(join, ir.Join):
        return join
    for place, each in enumerate(join.inputs):
        computed = _computed(each)
        for asking in range(len(join.inputs)) if computed is not None else ():
            assert computed is not None
            columns = _asking(join, asking, place, computed)
            if columns is not None:
                return _applied(join, asking, place, computed, columns)
    return join


def _without_units(join: ir.Join) -> Relation:
    """The join without inputs of one row without columns, as a table function in FROM has beside it."""
    inputs = tuple(each for each in join.inputs if each != ir.Constant((((), 1),), ()))
    if len(inputs) == len(join.inputs) or not inputs:
        return join
    plain = len(inputs) == 1 and not join.equivalences and not join.nullsafe
    return inputs[0] if plain else ir.Join(inputs, join.equivalences, join.nullsafe)


def _computed(relation: Relation) -> _Computed | None:
    """The input of a join as operators over distinct values, if it is nothing else."""
    operators: list[RowByRow] = []
    while isinstance(relation, RowByRow):
        operators.insert(0, relation)
        relation = relation.input
    if not isinstance(relation, ir.Reduce) or relation.aggregates or not relation.keys:
        return None
    if all(isinstance(each, ir.Project) for each in operators):
        return None  # these tell only what was asked
    origins = [_origin_of(relation.input, key) for key in relation.keys]
    found = [each for each in origins if each is not None]
    if len(found) < len(origins) or len({(each.id, each.path) for each in found}) > 1:
        return None
    keys = tuple(each.column for each in found)
    conditions: list[Scalar] = []
    below = relation.input
    while not isinstance(below, ir.Get):
        match below:
            case ir.Filter(input, predicates):
                for each in predicates:
                    moved = _over_keys(each, input, keys)
                    if moved is None:
                        return None
                    conditions.append(moved)
                below = input
            case ir.Project(input) | ir.Map(input):
                below = input
            case _:
                return None
    return _Computed(tuple(operators), below.id, keys, tuple(conditions))


def _over_keys(predicate: Scalar, relation: Relation, keys: Sequence[int]) -> Scalar | None:
    """A predicate over a relation as one over the values that are asked; None if it reads other columns."""
    origins = {index: origin_of(relation, index) for index in columns_of(predicate)}
    if any(each is None or each.column not in keys for each in origins.values()):
        return None
    places = {index: keys.index(each.column) for index, each in origins.items() if each is not None}
    return remap(predicate, places.__getitem__)


def _origin_of(relation: Relation, scalar: Scalar) -> Origin | None:
    return origin_of(relation, scalar.index) if isinstance(scalar, Column) else None


def origin_of(relation: Relation, column: int) -> Origin | None:
    """Where a column comes from, unchanged and row by row; None if it is made here, or by a union."""
    path: list[int] = []
    while True:
        match relation:
            case ir.Get(id):
                return Origin(tuple(path), id, column)
            case ir.Project(input, columns):
                relation, column = input, columns[column]
            case ir.Map(input, scalars):
                width = arity(input)
                while column >= width:
                    value = scalars[column - width]
                    if not isinstance(value, Column):
                        return None
                    column = value.index
                relation = input
            case ir.Filter(input) | ir.FlatMap(input) | ir.Window(input) if column < arity(input):
                relation = input
            case ir.TopK(input):
                relation = input
            case ir.Join(inputs):
                place, side = next((p, s) for p, s in enumerate(sides_of(relation)) if column in s)
                path.append(place)
                relation, column = inputs[place], column - side.start
            case _:
                return None


def _asking(join: ir.Join, asking: int, place: int, computed: _Computed) -> tuple[int, ...] | None:
    """The columns of the input `asking` that are the values asked for by the input at `place`, if that is who asks."""
    if asking == place:
        return None
    sides = sides_of(join)
    left, right = sides[asking], sides[place]
    carried: list[int | None] = list(range(len(computed.keys)))  # which value each column of the input is
    for operator in computed.operators:
        match operator:
            case ir.Project(_, columns):
                carried = [carried[each] for each in columns]
            case ir.Map(_, scalars):
                for scalar in scalars:
                    carried.append(carried[scalar.index] if isinstance(scalar, Column) else None)
            case ir.FlatMap(_, _, _, added):
                carried += [None] * len(added)
    found: dict[int, int] = {}
    path: set[tuple[int, ...]] = set()
    for members in join.equivalences + join.nullsafe:
        plain = [each.index for each in members if isinstance(each, Column)]
        for value in {carried[each - right.start] for each in plain if each in right} - {None}:
            assert value is not None
            for each in plain:
                origin = origin_of(join.inputs[asking], each - left.start) if each in left else None
                if origin is not None and (origin.id, origin.column) == (computed.id, computed.keys[value]):
                    path.add(origin.path)
                    found.setdefault(value, each - left.start)
    if len(found) < len(computed.keys) or len(path) > 1:
        return None
    return tuple(found[value] for value in range(len(computed.keys)))


def _applied(join: ir.Join, asking: int, place: int, computed: _Computed, columns: tuple[int, ...]) -> Relation:
    """The join with the operators over the rows that asked, and without the input that answered."""
    sides = sides_of(join)
    rows = join.inputs[asking]
    if computed.conditions:
        rows = ir.Filter(rows, tuple(remap(each, columns.__getitem__) for each in computed.conditions))
    places = list(columns)  # of the answer's columns, over the rows
    for operator in computed.operators:
        rows, places = _on(rows, places, operator)
    inputs = [rows if index == asking else each for index, each in enumerate(join.inputs) if index != place]
    starts, start = {}, 0
    for index, each in enumerate(join.inputs):
        if index != place:
            starts[index] = start
            start += arity(rows if index == asking else each)
    moved: dict[int, int] = {}
    for index, side in enumerate(sides):
        for local, column in enumerate(side):
            moved[column] = starts[asking] + places[local] if index == place else starts[index] + local
    joined = _joined(inputs, join, moved.__getitem__)
    return _inlined_again(ir.Project(joined, tuple(moved[column] for column in range(len(moved)))))


def _inlined_again(project: ir.Project) -> Relation:
    """What is left may have further inputs that compute on a row."""
    match project.input:
        case ir.Join() as join:
            return ir.Project(_inlined(join), project.columns)
        case ir.Filter(ir.Join() as join, predicates):
            return ir.Project(ir.Filter(_inlined(join), predicates), project.columns)
        case _:
            return project


def _on(rows: Relation, places: list[int], operator: RowByRow) -> tuple[Relation, list[int]]:
    """An operator over columns that are at these places; and where the columns of its output are."""
    match operator:
        case ir.Project(_, columns):
            return rows, [places[each] for each in columns]
        case ir.Filter(_, predicates):
            return ir.Filter(rows, tuple(remap(each, places.__getitem__) for each in predicates)), places
        case ir.FlatMap(_, function, args, added):
            width = arity(rows)
            args = tuple(remap(each, places.__getitem__) for each in args)
            return ir.FlatMap(rows, function, args, added), [*places, *range(width, width + len(added))]
        case ir.Map(_, scalars):
            width = arity(rows)
            places = [*places, *range(width, width + len(scalars))]
            return ir.Map(rows, tuple(remap(each, places.__getitem__) for each in scalars)), places


def _joined(inputs: Sequence[Relation], join: ir.Join, place: Callable[[int], int]) -> Relation:
    """The inputs joined as they were, with columns moved; members of a class over one input are compared there."""
    product = ir.Join(tuple(inputs))
    sides = sides_of(product)
    predicates: list[Scalar] = []

    def settle(classes: Iterable[tuple[Scalar, ...]], equal: str) -> list[tuple[Scalar, ...]]:
        settled = []
        for members in classes:
            moved = tuple(dict.fromkeys(remap(each, place) for each in members))
            first: dict[int | None, Scalar] = {}
            for each in moved:
                owner = owner_of(each, sides)
                if owner in first:
                    predicates.append(call(equal, first[owner], each))
                first.setdefault(owner, each)
            if len(first) > 1:
                settled.append(tuple(first.values()))
            elif equal == "=" and len(moved) == 1:
                predicates.append(call("is not null", moved[0]))
        return settled

    equivalences, nullsafe = settle(join.equivalences, "="), settle(join.nullsafe, "is not distinct from")
    joined: Relation = ir.Join(tuple(inputs), tuple(equivalences), tuple(nullsafe)) if len(inputs) > 1 else inputs[0]
    return ir.Filter(joined, tuple(predicates)) if predicates else joined
