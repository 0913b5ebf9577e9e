"""`prune_columns`: columns that nobody reads are not computed, joined or kept; needs are passed from the top down.

`narrow` gives a relation with at least the needed columns and says where each is now. Projections are put right below
what keeps state (joins, groups, windows) and below unions; further down, operators just compute less. Ties of TopK and
Window are broken by the whole row, so there only columns behind the last needed one can go. What is no longer computed
no longer fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from everview.compute.ir import relation as ir
from everview.compute.ir.parts import aggregate_scalars, change_aggregate, move_classes, sides_of, window_scalars
from everview.compute.ir.scalar import Scalar, columns_of, remap

# A relation, and where its needed columns are: from the position in the old one to that in the new.
Narrowed = tuple[ir.Relation, dict[int, int]]


def prune_columns(plan: ir.Relation) -> ir.Relation:
    columns = range(ir.arity(plan))
    survey = _Pruning()
    survey.exact(plan, columns)  # only to learn what is read of each collection that a Let binds
    return _Pruning(survey.read, settled=True).exact(plan, columns)


def columns_read(plan: ir.Relation, id: str) -> set[int]:
    """The columns of a collection that the plan needs."""
    survey = _Pruning()
    survey.exact(plan, range(ir.arity(plan)))
    return survey.read.get(id, set())


def _read(scalars: Iterable[Scalar]) -> set[int]:
    return set().union(*map(columns_of, scalars))


@dataclass(slots=True)
class _Pruning:
    """One walk over the plan. `read` holds the columns read of each collection, and is complete if `settled`."""

    read: dict[str, set[int]] = field(default_factory=dict)
    settled: bool = False
    bound: dict[str, dict[int, int]] = field(default_factory=dict)

    def exact(self, relation: ir.Relation, columns: Iterable[int]) -> ir.Relation:
        """The relation with these columns and no others."""
        wanted = list(columns)
        narrowed, places = self.narrow(relation, set(wanted))
        new = tuple(places[column] for column in wanted)
        return narrowed if new == tuple(range(ir.arity(narrowed))) else ir.Project(narrowed, new)

    def narrow(self, relation: ir.Relation, needed: set[int]) -> Narrowed:
        """The relation with these columns and perhaps others."""
        match relation:
            case ir.Constant():
                return _same(relation)
            case ir.Get():
                return self._get(relation, needed)
            case ir.Let():
                return self._let(relation, needed)
            case ir.Project(input, old):
                columns = sorted(needed)
                below, places = self.narrow(input, {old[column] for column in columns})
                return ir.Project(below, tuple(places[old[column]] for column in columns)), _compact(columns)
            case ir.Map():
                return self._map(relation, needed)
            case ir.Filter(input, predicates):
                below, places = self.narrow(input, needed | _read(predicates))
                return ir.Filter(below, tuple(remap(each, places.__getitem__) for each in predicates)), places
            case ir.FlatMap():
                return self._flat_map(relation, needed)
            case ir.Negate(input):
                below, places = self.narrow(input, needed)
                return ir.Negate(below), places
            case ir.Threshold(input):
                return _same(ir.Threshold(self.exact(input, range(ir.arity(input)))))
            case ir.Union(inputs):
                columns = sorted(needed)
                return ir.Union(tuple(self.exact(each, columns) for each in inputs)), _compact(columns)
            case ir.Join():
                return self._join(relation, needed)
            case ir.Reduce():
                return self._reduce(relation, needed)
            case ir.TopK(input, group, order):
                last = max(needed | set(group) | _read(each.scalar for each in order), default=-1)
                return replace(relation, input=self.exact(input, range(last + 1))), _compact(range(last + 1))
            case ir.Window():
                return self._window(relation, needed)
            case ir.Recursive(_, base, step):
                everything = range(ir.arity(base))
                return _same(replace(relation, base=self.exact(base, everything), step=self.exact(step, everything)))
            case ir.Accumulate() | ir.Occurring() | ir.Temporal():
                return _same(relation)

    def _get(self, get: ir.Get, needed: set[int]) -> Narrowed:
        self.read.setdefault(get.id, set()).update(needed)
        places = self.bound.get(get.id)
        if places is None:
            return _same(get)
        return ir.Get(get.id, tuple(get.schema[column] for column in places)), places

    def _let(self, let: ir.Let, needed: set[int]) -> Narrowed:
        if self.settled:
            columns = self._read_of(let)
            value = self.exact(let.value, columns)
            outer = self.bound
            self.bound = {**outer, let.id: _compact(columns)}
            body, places = self.narrow(let.body, needed)
            self.bound = outer
        else:
            body, places = self.narrow(let.body, needed)
            value = self.exact(let.value, self._read_of(let))
        return ir.Let(let.id, value, body), places

    def _read_of(self, let: ir.Let) -> list[int]:
        width = ir.arity(let.value)  # another collection of the same name may be wider
        return sorted(column for column in self.read.get(let.id, ()) if column < width)

    def _map(self, mapping: ir.Map, needed: set[int]) -> Narrowed:
        width = ir.arity(mapping.input)
        wanted = set(needed)
        for index in range(len(mapping.scalars) - 1, -1, -1):
            if width + index in wanted:
                wanted |= columns_of(mapping.scalars[index])
        below, places = self.narrow(mapping.input, {column for column in wanted if column < width})
        places = dict(places)
        start = ir.arity(below)
        scalars: list[Scalar] = []
        for index, scalar in enumerate(mapping.scalars):
            if width + index in wanted:
                places[width + index] = start + len(scalars)
                scalars.append(remap(scalar, places.__getitem__))
        return ir.Map(below, tuple(scalars)), places

    def _flat_map(self, flat: ir.FlatMap, needed: set[int]) -> Narrowed:
        width = ir.arity(flat.input)
        below, places = self.narrow(flat.input, {each for each in needed if each < width} | _read(flat.args))
        args = tuple(remap(arg, places.__getitem__) for arg in flat.args)
        added = {width + index: ir.arity(below) + index for index in range(len(flat.added))}
        return replace(flat, input=below, args=args), {**places, **added}

    def _join(self, join: ir.Join, needed: set[int]) -> Narrowed:
        wanted = needed | _read(member for members in join.equivalences + join.nullsafe for member in members)
        places: dict[int, int] = {}
        inputs: list[ir.Relation] = []
        for each, side in zip(join.inputs, sides_of(join), strict=True):
            columns = [column for column in side if column in wanted]
            inputs.append(self.exact(each, [column - side.start for column in columns]))
            places |= {column: len(places) + index for index, column in enumerate(columns)}
        equivalences = move_classes(join.equivalences, places.__getitem__)
        return ir.Join(tuple(inputs), equivalences, move_classes(join.nullsafe, places.__getitem__)), places

    def _reduce(self, reduce: ir.Reduce, needed: set[int]) -> Narrowed:
        width = len(reduce.keys)
        kept = [index for index in range(len(reduce.aggregates)) if width + index in needed]
        aggregates = [reduce.aggregates[index] for index in kept]
        columns = sorted(_read(reduce.keys) | _read(part for each in aggregates for part in aggregate_scalars(each)))
        place = _compact(columns).__getitem__
        narrowed = ir.Reduce(
            self.exact(reduce.input, columns),
            tuple(remap(key, place) for key in reduce.keys),
            tuple(change_aggregate(each, lambda scalar: remap(scalar, place)) for each in aggregates),
        )
        return narrowed, _compact([*range(width), *(width + index for index in kept)])

    def _window(self, window: ir.Window, needed: set[int]) -> Narrowed:
        width = ir.arity(window.input)
        kept = [index for index in range(len(window.functions)) if width + index in needed]
        if not kept:
            return self.narrow(window.input, needed)
        functions = [window.functions[index] for index in kept]
        wanted = {column for column in needed if column < width} | _read(window.partition)
        wanted |= _read(each.scalar for each in window.order)
        wanted |= _read(part for each in functions for part in window_scalars(each))
        columns = range(max(wanted, default=-1) + 1)
        narrowed = replace(window, input=self.exact(window.input, columns), functions=tuple(functions))
        return narrowed, _compact([*columns, *(width + index for index in kept)])


def _same(relation: ir.Relation) -> Narrowed:
    return relation, {column: column for column in range(ir.arity(relation))}


def _compact(columns: Iterable[int]) -> dict[int, int]:
    return {column: index for index, column in enumerate(columns)}
