"""Lowering: from queries that refer to queries around them to plans of the IR, in general and without exception.

`lower(query, outer)` gives, for every distinct row o of the relation `outer`, the rows of the query as it is with o
around it, each with o in front:

    lower(query, outer) = { (o, r) : o in outer, r in query with o around }

Then a subquery in an expression is: take the distinct values of the columns it refers to, lower the subquery over
them, and join the answer back to the rows that asked. Columns of `outer` may be NULL, so that join takes NULL for
equal to NULL. At the top `outer` is one row without columns, and nothing of this remains in the plan.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from everview.compute.functions.resolve import resolve_aggregate
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import scalars_of, with_scalars
from everview.compute.ir.relation import Relation, all_columns, arity
from everview.compute.ir.scalar import Column, Literal, Scalar, shift, transform, walk
from everview.compute.ir.types import BOOLEAN
from everview.compute.sql import hir

UNIT = ir.Constant((((), 1),), ())


def lower(query: hir.Query) -> Relation:
    return Lowering().lower(query, Context(UNIT, {}))


@dataclass(frozen=True, slots=True)
class Context:
    """The rows around: a relation of distinct rows, and in which of its columns each reference is found."""

    outer: Relation
    places: Mapping[tuple[int, int], int]

    @property
    def width(self) -> int:
        """How many columns stand in front of a lowered query's own."""
        return arity(self.outer)


class Lowering:
    """One lowering; it only hands out names for intermediate results."""

    def __init__(self) -> None:
        self._names = itertools.count()
        self._recursive: dict[str, Context] = {}  # those whose step is being lowered

    def _recurs(self, query: hir.Query) -> bool:
        """Whether a query is about the rows of the round before, which have the rows around in front of them."""
        return bool(self._recursive) and any(
            isinstance(each, ir.Get) and each.id in self._recursive for each in hir.walk_queries(query)
        )

    def lower(self, query: hir.Query, context: Context) -> Relation:
        """The rows of `query` for each row of `context.outer`, those in front."""
        if context.width and not hir.free(query) and not self._recurs(query):
            return ir.Join((context.outer, self.lower(query, Context(UNIT, {}))))
        width = context.width
        match query:
            case ir.Get(id, schema) if id in self._recursive:
                assert self._recursive[id] == context, "the binder refuses it inside a subquery"
                return ir.Get(id, ir.types(context.outer) + schema)
            case ir.Constant() | ir.Get():
                return query
            case ir.Recursive(id, base, step, distinct):
                lowered = self.lower(base, context)
                self._recursive[id] = context
                rounds = self.lower(step, context)
                del self._recursive[id]
                return ir.Recursive(id, lowered, rounds, distinct)
            case ir.Project(input, columns):
                kept = (*range(width), *(width + index for index in columns))
                return ir.Project(self.lower(input, context), kept)
            case ir.Map(input, scalars):
                return self._in_groups(self.lower(input, context), scalars, context, ir.Map)
            case ir.Filter(input, predicates):
                return self._in_groups(self.lower(input, context), predicates, context, ir.Filter)
            case ir.FlatMap(input, function, args, added):
                return self._with_scalars(
                    self.lower(input, context),
                    args,
                    context,
                    lambda below, values: ir.FlatMap(below, function, values, added),
                    len(added),
                )
            case ir.Join(inputs, equivalences):
                assert not equivalences, "the binder says ON in filters"
                return self._join([self.lower(each, context) for each in inputs], context)
            case hir.OuterJoin():
                return self._outer_join(query, context)
            case hir.Lateral():
                return self._lateral(query, context)
            case ir.Reduce(input, keys, aggregates):
                front = all_columns(context.outer)
                return self._reduce(self.lower(input, context), front, keys, aggregates, context)
            case hir.GlobalReduce(input, aggregates, empty):
                return self._global_reduce(self.lower(input, context), aggregates, empty, context)
            case ir.TopK(input, group, order, limit, offset):
                groups = (*range(width), *(width + index for index in group))
                below, keys, own = self._computed(self.lower(input, context), scalars_of(query), context)
                ordered = tuple(replace(o, scalar=key) for o, key in zip(order, keys, strict=True))
                return ir.Project(ir.TopK(below, groups, ordered, limit, offset), tuple(range(own)))
            case ir.Window():
                return self._window(query, context)
            case ir.Union(inputs):
                return ir.Union(tuple(self.lower(each, context) for each in inputs))
            case ir.Let(id, value, body):
                return ir.Let(id, self.lower(value, Context(UNIT, {})), self.lower(body, context))
            case _:  # Threshold, Negate
                over: Relation = replace(query, input=self.lower(query.input, context))
                return over

    # Operators with scalars

    def _in_groups(
        self,
        below: Relation,
        scalars: tuple[hir.HScalar, ...],
        context: Context,
        operator: type[ir.Map] | type[ir.Filter],
    ) -> Relation:
        """Apply an operator with the scalars without a subquery together, and each with one by itself, in order."""
        for asking, group in itertools.groupby(scalars, hir.has_subquery):
            together = tuple(group)
            for each in [(scalar,) for scalar in together] if asking else [together]:
                below = self._with_scalars(below, each, context, operator, len(each) if operator is ir.Map else 0)
        return below

    def _with_scalars(
        self,
        below: Relation,
        scalars: tuple[hir.HScalar, ...],
        context: Context,
        build: Callable[[Relation, tuple[Scalar, ...]], Relation],
        added: int,
    ) -> Relation:
        """Apply an operator to `below`, with the answers of subqueries in `scalars` joined to it in between."""
        wide, values, own = self._computed(below, scalars, context)
        built = build(wide, values)
        extra = arity(wide) - own
        if extra == 0:
            return built
        return ir.Project(built, (*range(own), *(own + extra + index for index in range(added))))

    def _computed(
        self, below: Relation, scalars: Iterable[hir.HScalar], context: Context
    ) -> tuple[Relation, tuple[Scalar, ...], int]:
        """`below` with a column for every subquery; the scalars over that; and how many columns are of `below`."""
        own = arity(below)
        values = []
        for scalar in scalars:
            resolved = _resolve(scalar, context)
            while hir.has_subquery(resolved):
                subquery: Any = next(part for part in walk(resolved) if isinstance(part, hir.Subquery))
                below, column = self._subquery(below, subquery, own, context)
                resolved = transform(resolved, lambda part, s=subquery, c=column: c if part == s else None)  # type: ignore[misc]
            values.append(resolved)
        return below, tuple(values), own

    # Subqueries

    def _subquery(self, below: Relation, subquery: hir.Subquery, own: int, context: Context) -> tuple[Relation, Scalar]:
        """`below` with the answer of a subquery for each row as a further column, and that column."""
        name, bound = self._bind(below)
        asked, places = self._asked(bound, subquery.query, context)
        inner = Context(self._distinct(bound, asked), places)
        answers = self._answers(subquery, inner)
        width = arity(below)
        joined = self._join_back(bound, answers, asked)
        column = width + len(asked)
        kept = (*range(width), column)
        return ir.Let(name, below, ir.Project(joined, kept)), Column(width, subquery.type)

    def _asked(
        self, below: Relation, query: hir.Query, context: Context
    ) -> tuple[tuple[int, ...], dict[tuple[int, int], int]]:
        """Which columns of `below` a query inside refers to, and where it will find each reference among them."""
        positions = {}
        for level, index in sorted(hir.free(query)):
            positions[level, index] = context.width + index if level == 1 else context.places[level - 1, index]
        asked = tuple(sorted(set(positions.values())))
        return asked, {reference: asked.index(position) for reference, position in positions.items()}

    def _distinct(self, below: Relation, columns: tuple[int, ...]) -> Relation:
        """The distinct values of some columns. Of no columns this is one row, whether or not there are rows."""
        if not columns:
            return UNIT
        return ir.Reduce(below, tuple(all_columns(below)[index] for index in columns))

    def _answers(self, subquery: hir.Subquery, inner: Context) -> Relation:
        """For every row of `inner.outer`, that row and the subquery's answer."""
        width = inner.width
        rows = self.lower(subquery.query, inner)
        if subquery.kind == "exists":
            found = ir.Reduce(rows, all_columns(rows)[:width]) if width else _one_if_any(rows)
            name, bound = self._bind(found)
            yes = ir.Map(bound, (Literal(True, BOOLEAN),))
            no = ir.Map(ir.Union((inner.outer, ir.Negate(bound))), (Literal(False, BOOLEAN),))
            return ir.Let(name, found, ir.Union((yes, no)))
        column = Column(width, subquery.type)
        front = all_columns(rows)[:width]
        if subquery.kind == "array":
            element = hir.types(subquery.query)[0]
            function, _, _ = resolve_aggregate("array_agg", [element])
            order = tuple(replace(each, scalar=shift(each.scalar, width)) for each in subquery.order)
            aggregate = ir.Aggregate(function.key, (Column(width, element),), subquery.type, order=order)
            values: Relation = ir.Reduce(rows, front, (aggregate,))
            missing = Literal([], subquery.type)
        else:
            values = rows
            if not _at_most_one(subquery.query):
                # More than one row is an error, which is the affair of this aggregate.
                values = ir.Reduce(rows, front, (ir.Aggregate("single(any)", (column,), subquery.type),))
            missing = Literal(None, subquery.type)
        name, bound = self._bind(values)
        answered = ir.Project(bound, tuple(range(width)))
        others = ir.Map(ir.Union((inner.outer, ir.Negate(answered))), (missing,))
        return ir.Let(name, values, ir.Union((bound, others)))

    def _join_back(self, below: Relation, answers: Relation, asked: tuple[int, ...]) -> Relation:
        """Each row of `below` with the answers to what it asked behind; NULL asked is NULL answered."""
        width = arity(below)
        left, right = all_columns(below), all_columns(answers)
        classes = tuple((left[position], shift(right[index], width)) for index, position in enumerate(asked))
        return ir.Join((below, answers), nullsafe=classes)

    # Joins

    def _join(self, inputs: list[Relation], context: Context) -> Relation:
        """The product of lowered inputs for each row around: their front columns are one."""
        width = context.width
        result = inputs[0]
        for other in inputs[1:]:
            if width == 0:
                result = ir.Join((result, other))
                continue
            joined = self._join_back(other, result, tuple(range(width)))
            theirs, ours = arity(other), arity(result)
            kept = (*range(width), *(theirs + index for index in range(width, ours)), *range(width, theirs))
            result = ir.Project(joined, kept)
        return result

    def _outer_join(self, query: hir.OuterJoin, context: Context) -> Relation:
        left, right = self.lower(query.left, context), self.lower(query.right, context)
        left_name, left_bound = self._bind(left)
        right_name, right_bound = self._bind(right)
        product = self._join([left_bound, right_bound], context)
        pairs = self._in_groups(product, query.on, context, ir.Filter)
        pairs_name, pairs_bound = self._bind(pairs)
        left_types, right_types = ir.types(left), ir.types(right)[context.width :]
        alone = self._without(left_bound, ir.Project(pairs_bound, tuple(range(len(left_types)))))
        parts = [pairs_bound, ir.Map(alone, tuple(Literal(None, column) for column in right_types))]
        if query.kind == "full":
            width, split = context.width, len(left_types)
            theirs = (*range(width), *range(split, split + len(right_types)))
            lonely = self._without(right_bound, ir.Project(pairs_bound, theirs))
            nulls = tuple(Literal(None, column) for column in left_types[width:])
            padded = ir.Map(lonely, nulls)
            after = width + len(right_types)
            order = (*range(width), *range(after, after + len(nulls)), *range(width, after))
            parts.append(ir.Project(padded, order))
        body: Relation = ir.Let(pairs_name, pairs, ir.Union(tuple(parts)))
        return ir.Let(left_name, left, ir.Let(right_name, right, body))

    def _without(self, rows: Relation, matched: Relation) -> Relation:
        """The rows, all copies of them, that do not occur in `matched`."""
        distinct = ir.Reduce(matched, all_columns(matched))
        count = arity(rows)
        present = ir.Project(self._join_back(rows, distinct, tuple(range(count))), tuple(range(count)))
        return ir.Union((rows, ir.Negate(present)))

    def _lateral(self, query: hir.Lateral, context: Context) -> Relation:
        left = self.lower(query.left, context)
        name, bound = self._bind(left)
        asked, places = self._asked(bound, query.right, context)
        right = self.lower(query.right, Context(self._distinct(bound, asked), places))
        width = arity(left)
        joined = self._join_back(bound, right, asked)
        kept = (*range(width), *range(width + len(asked), arity(joined)))
        pairs = self._in_groups(ir.Project(joined, kept), query.on, context, ir.Filter)
        if query.kind == "inner":
            return ir.Let(name, left, pairs)
        pairs_name, pairs_bound = self._bind(pairs)
        alone = self._without(bound, ir.Project(pairs_bound, tuple(range(width))))
        nulls = tuple(Literal(None, column) for column in hir.types(query.right))
        return ir.Let(name, left, ir.Let(pairs_name, pairs, ir.Union((pairs_bound, ir.Map(alone, nulls)))))

    # Reductions

    def _reduce(
        self,
        below: Relation,
        front: tuple[Column, ...],
        keys: tuple[hir.HScalar, ...],
        aggregates: tuple[ir.Aggregate, ...],
        context: Context,
    ) -> Relation:
        reduce = ir.Reduce(below, keys, aggregates)
        wide, values, _ = self._computed(below, scalars_of(reduce), context)
        rest = iter(values)
        lowered: Any = with_scalars(replace(reduce, input=wide), lambda _: next(rest))
        reduced: Relation = replace(lowered, keys=front + lowered.keys)
        return reduced

    def _global_reduce(
        self, below: Relation, aggregates: tuple[ir.Aggregate, ...], empty: tuple[Literal, ...], context: Context
    ) -> Relation:
        front = all_columns(context.outer)
        values = self._reduce(below, front, (), aggregates, context)
        name, bound = self._bind(values)
        present = ir.Project(bound, tuple(range(context.width)))
        missing = ir.Map(ir.Union((context.outer, ir.Negate(present))), empty)
        return ir.Let(name, values, ir.Union((bound, missing)))

    def _window(self, query: ir.Window, context: Context) -> Relation:
        wide, values, own = self._computed(self.lower(query.input, context), scalars_of(query), context)
        rest = iter(values)
        lowered: Any = with_scalars(replace(query, input=wide), lambda _: next(rest))
        built = replace(lowered, partition=all_columns(context.outer) + lowered.partition)
        extra = arity(wide) - own
        kept = (*range(own), *(own + extra + index for index in range(len(query.functions))))
        return ir.Project(built, kept) if extra else built

    def _bind(self, relation: Relation) -> tuple[str, Relation]:
        """A name for a relation that is used more than once, and how to refer to it."""
        name = f"l{next(self._names)}"
        return name, ir.Get(name, ir.types(relation))


def _resolve(scalar: hir.HScalar, context: Context) -> hir.HScalar:
    """The scalar over lowered rows: own columns behind the front ones, references to queries around among these."""

    def place(part: hir.HScalar) -> hir.HScalar | None:
        if isinstance(part, hir.Outer):
            return Column(context.places[part.level, part.index], part.type)
        if isinstance(part, Column):
            return Column(context.width + part.index, part.type)
        return None

    return transform(scalar, place)


def _one_if_any(rows: Relation) -> Relation:
    """One row without columns if there are any rows, else no row."""
    return ir.Project(
        ir.Reduce(ir.Project(ir.Map(rows, (Literal(True, BOOLEAN),)), (arity(rows),)), (Column(0, BOOLEAN),)), ()
    )


def _at_most_one(query: hir.Query) -> bool:
    """Whether the query can have no more than one row for each row around."""
    match query:
        case hir.GlobalReduce():
            return True
        case ir.Constant(rows):
            return sum(count for _, count in rows) <= 1
        case ir.TopK(group=(), limit=limit):
            return limit is not None and limit <= 1
        case ir.Project(input) | ir.Map(input) | ir.Filter(input):
            return _at_most_one(input)
        case _:
            return False
