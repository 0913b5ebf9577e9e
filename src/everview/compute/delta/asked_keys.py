"""What LATERAL and subqueries are computed for: of the rows that ask, only those that can still be seen.

A query that refers to a row around is computed for the distinct values D that it asks of all rows X, and joined back to
the rows. If the temporal filters F are said of these rows, the answers of others meet nothing, so D can be that of the
rows of X that meet F. `narrowed` says so inside the plan E of the answers, wherever D stands in it, if each of its
operators goes by what was asked: then E' is E without the answers to others, and with nothing else, also in between.
Where one does not, or only one of two branches does, the plan stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from everview.compute.delta.temporal import apart
from everview.compute.delta.thresholds import speaks_of_now
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import mapped_columns, sides_of
from everview.compute.ir.relation import Relation, arity
from everview.compute.ir.scalar import Column, Literal, Scalar, columns_of, remap, shift, substitute
from everview.compute.ir.types import BOOLEAN
from everview.compute.optimize.lets import count_uses

# The first predicate of the filter that `narrowed` puts in: the others have to be met, as far as they do not fail.
ASKED = Literal(True, BOOLEAN)
Places = Mapping[int, int]  # columns of a relation, and which column of the asking rows each is


@dataclass(frozen=True, slots=True)
class Asking:
    """The rows of a collection that ask: the predicates over `mz_now()` that are said of them."""

    rows: ir.Get
    predicates: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class _Narrowed:
    """A plan without the answers to rows that are over.

    `keys` are the columns by which the values asked for are told, for each of their joins; `uses` is what Lets around
    have to mean in it: id and value, and the uses in that.
    """

    relation: Relation
    keys: frozenset[frozenset[int]]
    uses: tuple[tuple[str, _Narrowed], ...] = ()


def is_asked(relation: Relation) -> bool:
    """Whether the relation is a filter that `narrowed` put in."""
    return isinstance(relation, ir.Filter) and relation.predicates[:1] != () and relation.predicates[0] is ASKED


def narrowed(relation: Relation, places: Places, asking: Asking) -> Relation | None:
    """The relation without the answers to rows of which the predicates are not true; None if that cannot be said."""
    found = _Narrowing(asking).narrow(relation, places)
    return None if found is None else found.relation


class _Narrowing:
    """One walk down the plan of the answers."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._lets: dict[str, Relation] = {}
        self._values: dict[tuple[str, frozenset[tuple[int, int]]], _Narrowed | None] = {}

    def narrow(self, relation: Relation, places: Places) -> _Narrowed | None:
        if not places:
            return None
        match relation:
            case ir.Project(input, columns):
                below = {column: places[place] for place, column in enumerate(columns) if place in places}
                return self._over(relation, below)
            case ir.Map(input, scalars):
                width = arity(input)
                below = {index: column for index, column in places.items() if index < width}
                for index, each in enumerate(scalars, width):
                    if index in places and isinstance(each, Column) and each.index < width:
                        below.setdefault(each.index, places[index])
                return self._over(relation, below)
            case ir.Filter() | ir.Negate() | ir.Threshold():
                return self._over(relation, places)
            case ir.FlatMap(input):
                return self._over(relation, {index: each for index, each in places.items() if index < arity(input)})
            case ir.TopK(_, group):
                return self._over(relation, {index: each for index, each in places.items() if index in group})
            case ir.Window(_, partition):
                keys = {each.index for each in partition if isinstance(each, Column)}
                return self._over(relation, {index: each for index, each in places.items() if index in keys})
            case ir.Reduce():
                return self._reduce(relation, places)
            case ir.Join():
                return self._join(relation, places)
            case ir.Union(inputs):
                return self._union(inputs, places)
            case ir.Let():
                return self._let(relation, places)
            case ir.Get(id) if id in self._lets:
                key = (id, frozenset(places.items()))
                if key not in self._values:  # looked at once, however many uses inside of uses there are
                    self._values[key] = self.narrow(self._lets[id], places)
                value = self._values[key]
                return value and _Narrowed(relation, value.keys, ((id, value),))
            case _:
                return None

    def _over(self, relation: Relation, below: Places) -> _Narrowed | None:
        (input,) = ir.inputs_of(relation)
        found = self.narrow(input, below)
        return found and replace(found, relation=ir.with_inputs(relation, (found.relation,)))

    def _reduce(self, reduce: ir.Reduce, places: Places) -> _Narrowed | None:
        keys = {index: each.index for index, each in enumerate(reduce.keys) if isinstance(each, Column)}
        below = {column: places[index] for index, column in keys.items() if index in places}
        if not reduce.aggregates and all(index in places for index in range(len(reduce.keys))):
            asked = self._asked(reduce.input, below) if len(keys) == len(reduce.keys) else None
            if asked is not None:
                return _Narrowed(replace(reduce, input=asked), frozenset((frozenset(below.values()),)))
        return self._over(reduce, below)

    def _asked(self, relation: Relation, places: Places) -> Relation | None:
        """The rows that ask, of which only these columns matter, if they are over anything that they may ask about."""
        match relation:
            case ir.Get(id) if id == self._asking.rows.id:
                same = all(index == column for index, column in places.items())
                return ir.Filter(relation, (ASKED, *self._asking.predicates)) if same else None
            case ir.Project(input, columns):
                below = self._asked(input, {columns[index]: column for index, column in places.items()})
            case ir.Map(input) if all(index < arity(input) for index in places):
                below = self._asked(input, places)
            case ir.Filter(input, predicates):
                # All rows that ask for something meet a condition, or none does.
                by_key = all(columns_of(each) <= places.keys() and not speaks_of_now(each) for each in predicates)
                below = self._asked(input, places) if by_key and not is_asked(relation) else None
            case _:
                return None
        return below and ir.with_inputs(relation, (below,))

    def _join(self, join: ir.Join, places: Places) -> _Narrowed | None:
        equal = equal_columns(join, places)
        inputs, keys = list(join.inputs), frozenset[frozenset[int]]()
        uses: list[tuple[str, _Narrowed]] = []
        for index, side in enumerate(sides_of(join)):
            below = {each - side.start: column for each, column in equal.items() if each in side}
            found = self.narrow(inputs[index], below)
            if found is not None:
                inputs[index] = found.relation
                keys |= found.keys
                uses += found.uses
        return _Narrowed(replace(join, inputs=tuple(inputs)), keys, tuple(uses)) if keys else None

    def _union(self, inputs: Sequence[Relation], places: Places) -> _Narrowed | None:
        parts = []
        for each in inputs:
            found = self.narrow(each, places)
            if found is None:
                return None
            parts.append(found)
        if len({each.keys for each in parts}) != 1:
            return None
        uses = tuple(use for each in parts for use in each.uses)
        return _Narrowed(ir.Union(tuple(each.relation for each in parts)), parts[0].keys, uses)

    def _let(self, let: ir.Let, places: Places) -> _Narrowed | None:
        self._lets[let.id] = let.value
        found = self.narrow(let.body, places)
        del self._lets[let.id]
        if found is None:
            return None
        values = [value for id, value in found.uses if id == let.id]
        others = tuple((id, value) for id, value in found.uses if id != let.id)
        if not values:
            return replace(found, relation=ir.Let(let.id, let.value, found.relation))
        # A use that needs all of it, or another part, leaves nobody less.
        if len(values) != count_uses(let.body, let.id) or any(each != values[0] for each in values):
            return None
        (value, *_) = values
        return _Narrowed(ir.Let(let.id, value.relation, found.relation), found.keys, (*value.uses, *others))


def equal_columns(join: ir.Join, places: Places) -> Places:
    """The places, and those of the columns that the join makes equal to them."""
    types, equal = ir.types(join), dict(places)
    for members in join.equivalences + join.nullsafe:
        plain = [each.index for each in members if isinstance(each, Column)]
        for known in [each for each in plain if each in equal][:1]:
            equal |= {each: equal.get(each, equal[known]) for each in plain if types[each] == types[known]}
    return equal


def asking_rows(relation: Relation, predicates: Sequence[Scalar]) -> Iterator[tuple[Asking, Places]]:
    """The collections that an input of a join reads row by row, with what temporal filters say of these rows there.

    `predicates` are over the input, and `Places` tells which of its columns are whose.
    """
    yield from _asking_rows(relation, predicates, {index: index for index in range(arity(relation))})


def _asking_rows(relation: Relation, predicates: Sequence[Scalar], places: Places) -> Iterator[tuple[Asking, Places]]:
    """`places` are of columns of the relation, in the input of the join."""
    match relation:
        case ir.Get():
            said = tuple(dict.fromkeys(each for each in predicates if speaks_of_now(each)))
            if said:
                yield Asking(relation, said), {above: column for column, above in places.items()}
        case ir.Filter(input, own):
            yield from _asking_rows(input, (*predicates, *apart(own)[0]), places)
        case ir.Project(input, columns):
            moved = [remap(each, columns.__getitem__) for each in predicates]
            below = {column: places[index] for index, column in enumerate(columns) if index in places}
            yield from _asking_rows(input, moved, below)
        case ir.Map(input, scalars):
            values = mapped_columns(input, scalars)
            moved = [substitute(each, values) for each in predicates]
            yield from _asking_rows(input, moved, _within(places, range(arity(input))))
        case ir.FlatMap(input):
            width = arity(input)
            mine = [each for each in predicates if max(columns_of(each), default=-1) < width]
            yield from _asking_rows(input, mine, _within(places, range(width)))
        case ir.Join(inputs):
            for input, side in zip(inputs, sides_of(relation), strict=True):
                mine = [shift(each, -side.start) for each in predicates if columns_of(each) <= set(side)]
                yield from _asking_rows(input, mine, _within(places, side))


def _within(places: Places, side: range) -> Places:
    return {index - side.start: above for index, above in places.items() if index in side}
