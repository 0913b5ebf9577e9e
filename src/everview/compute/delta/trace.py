"""Where the keys of a relation come from: deltas, what was looked up, or steps that must be computed first.

The driver looks rows up by keys before anything is computed, so it follows a key down to columns that it has. It may
find too many: a filter on the way is left out, and of a join one side is enough. A superset of the keys is as good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from everview.compute.delta.program import Source
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import mapped_columns
from everview.compute.ir.relation import Relation, arity
from everview.compute.ir.scalar import Column, Scalar, columns_of, remap, substitute

Leaf = Callable[[ir.Get, tuple[Scalar, ...]], list[Source] | None]


def trace(
    relation: Relation, key: tuple[Scalar, ...], steps: Mapping[str, Relation], leaf: Leaf
) -> list[Source] | None:
    """Sources that have, among others, every value that the key takes in the relation; None if they can't be had."""
    return _Trace(steps, leaf).sources(relation, key)


class _Trace:
    """One walk down. Steps are shared, and each is followed once for a key: the ways through them are far too many."""

    def __init__(self, steps: Mapping[str, Relation], leaf: Leaf) -> None:
        self._steps = steps
        self._leaf = leaf
        self._known: dict[tuple[str, tuple[Scalar, ...]], list[Source] | None] = {}

    def sources(self, relation: Relation, key: tuple[Scalar, ...]) -> list[Source] | None:
        """The sources of a part of the relation."""
        match relation:
            case ir.Get():
                return self._get(relation, key)
            case ir.Constant(rows):
                return None if rows else []
            case ir.Project(input, columns):
                return self.sources(input, tuple(remap(each, columns.__getitem__) for each in key))
            case ir.Map(input, scalars):
                values = mapped_columns(input, scalars)
                return self.sources(input, tuple(substitute(each, values) for each in key))
            case ir.Filter() | ir.Negate() | ir.Threshold() | ir.Occurring() | ir.TopK() | ir.Temporal():
                return self.sources(relation.input, key)
            case ir.FlatMap(input) | ir.Window(input):
                return self.sources(input, key) if _within(key, arity(input)) else None
            case ir.Reduce(input, keys):
                if not _within(key, len(keys)):
                    return None
                return self.sources(input, tuple(substitute(each, keys) for each in key))
            case ir.Accumulate(input, count):
                if not all(index == 0 or 2 <= index < 2 + count for each in key for index in columns_of(each)):
                    return None
                return self.sources(input, tuple(remap(each, lambda index: max(0, index - 1)) for each in key))
            case ir.Union(inputs):
                found = [self.sources(each, key) for each in inputs]
                known = [each for each in found if each is not None]
                return list(dict.fromkeys(chain.from_iterable(known))) if len(known) == len(found) else None
            case ir.Join():
                return self._join(relation, key)
            case ir.Let() | ir.Recursive():
                raise AssertionError("steps have no Let, and no view is recursive")

    def _get(self, get: ir.Get, key: tuple[Scalar, ...]) -> list[Source] | None:
        if get.id not in self._steps:
            return self._leaf(get, key)
        if (get.id, key) not in self._known:
            self._known[get.id, key] = self.sources(self._steps[get.id], key)
        return self._known[get.id, key]

    def _join(self, join: ir.Join, key: tuple[Scalar, ...]) -> list[Source] | None:
        """Follow the key into an input that has all of it, or columns that are equal to it."""
        equal: dict[int, set[int]] = {}
        for members in join.equivalences + join.nullsafe:
            columns = {member.index for member in members if isinstance(member, Column)}
            for column in columns:
                equal.setdefault(column, {column}).update(columns)
        start = 0
        for input in join.inputs:
            side = range(start, start + arity(input))
            start = side.stop
            places: dict[int, int] = {}
            for index in {index for each in key for index in columns_of(each)}:
                inside = [column for column in sorted(equal.get(index, {index})) if column in side]
                if inside:
                    places[index] = (index if index in inside else inside[0]) - side.start
            if all(index in places for each in key for index in columns_of(each)):
                found = self.sources(input, tuple(remap(each, places.__getitem__) for each in key))
                if found is not None:
                    return found
        return None


def _within(key: Sequence[Scalar], width: int) -> bool:
    return all(index < width for each in key for index in columns_of(each))
