"""Expressions: syntax trees of scalars to typed scalars, by one small function for each kind of node.

Aggregates and window functions are not computed where they stand but by operators below. The binder of a query lists
them in `Calls` while it binds, and leaves placeholders that it later replaces by the columns with their values.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.compute.cancel import check_wanted
from everview.compute.functions.resolve import resolve_aggregate
from everview.compute.ir.parts import aggregate_scalars, change_aggregate
from everview.compute.ir.relation import Aggregate, Filter, Map, Order, Project
from everview.compute.ir.scalar import And, Case, Column, Literal, Or, walk
from everview.compute.ir.types import BOOLEAN, INT4, INT8, TEXT, Kind, SqlType
from everview.compute.sql import errors, hir
from everview.compute.sql.clauses import changes_nothing
from everview.compute.sql.coerce import call, coerce, resolving, settled
from everview.compute.sql.comparisons import (
    OPERATORS,
    is_row,
    quantified,
    quantifier,
    queried_by_quantifier,
    rows_compared,
    speaks_of_now,
)
from everview.compute.sql.errors import (
    SqlError,
    unsupported,
)
from everview.compute.sql.forms import BINARY, HANDLERS, chained, queried
from everview.compute.sql.hir import Calls, Placeholder
from everview.compute.sql.parse import Tree, error_at, position_of, shown, tailed
from everview.compute.sql.scope import BindQuery, Scope

_ARGUMENT, _WINDOWED = "an aggregate's argument", "window definitions"


class Expressions:
    """Binds expressions in one scope. `bind_query` is how to bind a query inside."""

    def __init__(
        self, scope: Scope, bind_query: BindQuery, calls: Calls | None = None, clause: str = "this clause"
    ) -> None:
        self.scope = scope
        self._bind_query = bind_query
        self.calls = calls or Calls()
        self.clause = clause

    def bind(self, tree: Tree) -> hir.HScalar:
        check_wanted()
        handler = HANDLERS.get(type(tree))
        if handler is not None:
            bound = handler(self, tree)
        elif type(tree) in BINARY:
            bound = self._operators(tree)
        else:
            raise unsupported(shown(tree), position_of(tree))
        # NOT LIKE, NOT IN and their like may be told by a mark on the node; IS NOT says it by another function.
        negated = tree.args.get("negate") and not isinstance(tree, exp.Is)
        return call("not", [bound]) if negated else bound

    def _operators(self, tree: Tree) -> hir.HScalar:
        """A chain of operators, which the parser nests to the left: `a + b - c` is `(a + b) - c`."""
        chain = [tree]
        while type(tree.this) in BINARY and quantifier(tree.expression) is None and not tree.this.args.get("negate"):
            tree = tree.this
            chain.append(tree)
        bound = None
        for each in reversed(chain):
            changes_nothing(each, "safe", "typed")  # how the parser's own dialect divides and concatenates
            name, right = BINARY[type(each)], each.expression
            every = quantifier(right)
            if every is not None:
                bound = quantified(self, each.this, name, right, every=every)
            else:
                left = self.bind(each.this) if bound is None else bound
                bound = call(name, [left, self.bind(right)], position_of(each))
        return bound

    def call(self, name: str, tree: Tree, *args: Tree | None) -> hir.HScalar:
        """A call of a function that a node stands for, with the parts that are there."""
        return call(name, [self.bind(each) for each in args if each is not None], position_of(tree))

    def bind_as(self, tree: Tree, to: SqlType) -> hir.HScalar:
        """The scalar, coerced as if by an implicit cast."""
        return coerce(self.bind(tree), to, "implicit", position_of(tree))

    def condition(self, tree: Tree) -> hir.HScalar:
        """A scalar that must be boolean."""
        scalar = self.bind(tree)
        if scalar.type.kind not in (Kind.BOOLEAN, Kind.UNKNOWN):
            message = f"argument of {self.clause} must be type boolean, not type {scalar.type}"
            raise error_at(tree, errors.DATATYPE_MISMATCH, message)
        return coerce(scalar, BOOLEAN, "implicit", position_of(tree))

    def conjuncts(self, tree: Tree) -> list[hir.HScalar]:
        """A condition as the list of what must all be true; there NULL is as good as false."""
        if isinstance(tree, exp.Paren):
            return self.conjuncts(tree.this)
        if isinstance(tree, exp.And):
            return [part for each in chained(tree) for part in self.conjuncts(each)]
        semijoin = self._semijoin(tree)
        if semijoin is None:
            semijoin = self._of_times(tree)
        return [self.condition(tree) if semijoin is None else semijoin]

    # Subqueries

    def subquery(self, tree: Tree, order: list[Order] | None = None) -> tuple[hir.Query, list[str]]:
        """A query inside this one; its `order` is of interest only if there is a list for it."""
        while isinstance(tree, (exp.Subquery, exp.Paren)) and not isinstance(tree.this, exp.Table) and not tailed(tree):
            tree = tree.this
        return self._bind_query(tree, replace(self.scope, calls=self.calls, clause=self.clause).inner(), order)

    def _semijoin(self, tree: Tree) -> hir.HScalar | None:
        """`x [NOT] IN (query)` where only truth matters: whether some row is, or may be, equal. None for all else."""
        negated = isinstance(tree, exp.Not)
        inner = tree.this if negated else tree
        if not isinstance(inner, exp.In) or queried(inner) is None:
            return None
        query, equal = self.compared(inner.this, "=", queried(inner))
        return _some_row(query, equal, every=False, negated=negated or bool(inner.args.get("negate")))

    def _of_times(self, tree: Tree) -> hir.HScalar | None:
        """A condition with comparisons of `mz_now()` with a query, where only truth matters: IN, ANY and ALL.

        As conditions over rows they bound times; with three values they would be counts of rows. None for all else,
        which keeps its three values: views that earlier versions made have state for these.
        """
        if isinstance(tree, exp.Paren):
            return self._of_times(tree.this)
        if isinstance(tree, exp.And | exp.Or):
            parts = chained(tree)
            found = [self._of_times(each) for each in parts]
            if all(each is None for each in found):
                return None
            both = zip(parts, found, strict=True)
            made = tuple(self.condition(part) if each is None else each for part, each in both)
            return And(made) if isinstance(tree, exp.And) else Or(made)
        inner, negated = tree, False
        while isinstance(inner, exp.Not | exp.Paren):
            inner, negated = inner.this, negated is not isinstance(inner, exp.Not)
        operator, every = "=", None
        if isinstance(inner, exp.In):
            negated, rows = negated is not bool(inner.args.get("negate")), queried(inner)
        elif type(inner) in OPERATORS:
            operator, every, rows = OPERATORS[type(inner)], quantifier(inner.expression), queried_by_quantifier(inner)
        else:
            return None
        if rows is None or not speaks_of_now(inner.this):
            return None
        query, compared = self.compared(inner.this, operator, rows)
        return _some_row(query, compared, every=every is True, negated=negated)

    def compared(self, left: Tree, operator: str, right: Tree) -> tuple[hir.Query, hir.HScalar]:
        """The query on the right, and the comparison of the value on the left with its columns."""
        query, _ = self.subquery(right)
        lefts = left.expressions if is_row(left) else [left]
        columns = hir.columns(query)
        if len(lefts) != len(columns):
            few = "few" if len(columns) < len(lefts) else "many"
            raise error_at(right, errors.SYNTAX_ERROR, f"subquery has too {few} columns")
        outers = [hir.deepened(self.bind(each)) for each in lefts]
        return query, rows_compared(operator, list(zip(outers, columns, strict=True)))

    def row_compared(self, left: Tree, operator: str, right: Tree) -> hir.HScalar:
        """Compare a row with the one row of a query. Without a row the result is NULL."""
        query, answer = self.compared(left, operator, right)
        width = len(hir.types(query))
        return hir.Subquery("scalar", Project(Map(query, (answer,)), (width,)), BOOLEAN)

    def quantified(self, left: Tree, operator: str, right: Tree, *, every: bool) -> hir.HScalar:
        """`x op ANY (query)` or `x op ALL (query)`, with SQL's three values."""
        query, compared = self.compared(left, operator, right)
        return self.decided(query, compared, every=every)

    def decided(self, query: hir.Query, compared: hir.HScalar, *, every: bool) -> hir.HScalar:
        """Whether a comparison holds for every row of a query, or for any."""
        decisive = call("not", [compared]) if every else compared
        count = Aggregate("count()", (), INT8)
        decided = Aggregate("count()", (), INT8, filter=decisive)
        unknown = Aggregate("count()", (), INT8, filter=call("is null", [compared]))
        zero = Literal(0, INT8)
        counted: hir.Query = hir.GlobalReduce(query, (count, decided, unknown), (zero, zero, zero))
        some = [call(">", [Column(index, INT8), zero]) for index in (1, 2)]
        branches = ((some[0], Literal(not every, BOOLEAN)), (some[1], Literal(None, BOOLEAN)))
        answer = Case(branches, Literal(every, BOOLEAN), BOOLEAN)
        return hir.Subquery("scalar", Project(Map(counted, (answer,)), (3,)), BOOLEAN)

    # Aggregates

    def aggregate(self, tree: exp.Anonymous, condition: Tree | None = None) -> hir.HScalar:
        """An aggregate: listed, and a placeholder in its place."""
        name, position = tree.name.lower(), position_of(tree)
        inside = Expressions(self.scope, self._bind_query, Calls(), _ARGUMENT)
        aggregate = inside.aggregate_call(name, tree.expressions, condition, position)
        level = _level_of(aggregate)
        scope = replace(self.scope, calls=self.calls, clause=self.clause)
        for _ in range(level):
            assert scope.around is not None
            scope = scope.around
        if scope.calls is None or scope.calls.aggregates is None:
            raise SqlError(
                errors.GROUPING_ERROR, f"aggregate functions are not allowed in {scope.clause}", position=position
            )
        moved = change_aggregate(
            aggregate, lambda each: hir.map_references(each, lambda at, index, _: (at - level, index))
        )
        if moved not in scope.calls.aggregates:
            scope.calls.aggregates.append(moved)
        return Placeholder("aggregate", scope.calls.aggregates.index(moved), moved.type, level)

    def in_window(self) -> Expressions:
        """The binder of what a window function is given: aggregates may stand there, other window functions not."""
        return Expressions(self.scope, self._bind_query, replace(self.calls, windows=None), _WINDOWED)

    def in_filter(self) -> Expressions:
        """The binder of the condition that rows of a window have to meet."""
        return Expressions(self.scope, self._bind_query, Calls(), "FILTER")

    def no_windows(self) -> tuple[str, str]:
        """Why no window function may stand here: SQLSTATE and message."""
        if self.clause == _ARGUMENT:
            return errors.GROUPING_ERROR, "aggregate function calls cannot contain window function calls"
        if self.clause == _WINDOWED:
            return errors.WINDOWING_ERROR, "window function calls cannot be nested"
        return errors.WINDOWING_ERROR, f"window functions are not allowed in {self.clause}"

    def grouping(self, keys: tuple[hir.HScalar, ...], position: int | None) -> hir.HScalar:
        """`grouping(...)`: a bit for each key, set where the row's grouping set lacks it."""
        if self.calls.aggregates is None:
            message = f"grouping operations are not allowed in {self.clause}"
            raise SqlError(errors.GROUPING_ERROR, message, position=position)
        if keys not in self.calls.groupings:
            self.calls.groupings.append(keys)
        return Placeholder("grouping", self.calls.groupings.index(keys), INT4)

    def aggregate_call(self, name: str, given: list[Tree], condition: Tree | None, position: int | None) -> Aggregate:
        """The aggregate with its arguments bound in this scope."""
        distinct, order = False, []
        trees = []
        for tree in given:
            each = tree
            if isinstance(each, exp.Order):
                order = each.expressions
                each = each.this
            if isinstance(each, exp.Distinct):
                distinct = True
                trees += each.expressions
            else:
                trees.append(each)
        star = len(trees) == 1 and isinstance(trees[0], exp.Star)
        if star and distinct:
            raise SqlError(errors.SYNTAX_ERROR, 'syntax error at or near "*"', position=position)
        args = [] if star else [self.bind(tree) for tree in trees]
        if name == "jsonb_object_agg" and args:  # keys of any type are written as text
            args[0] = coerce(settled(args[0]), TEXT, "explicit", position)
        with resolving(position):
            function, wanted, result = resolve_aggregate(name, [arg.type for arg in args])
        coerced = [coerce(arg, to, "implicit", position) for arg, to in zip(args, wanted, strict=True)]
        ordering = tuple(self.ordered(each) for each in order)
        filtered = None if condition is None else self.condition(condition)
        return Aggregate(function.key, tuple(coerced), result, distinct, filtered, ordering)

    def ordered(self, tree: Tree) -> Order:
        """One sort key; NULLs come last ascending and first descending unless it says otherwise."""
        descending = bool(tree.args.get("desc"))
        return Order(settled(self.bind(tree.this)), descending, bool(tree.args.get("nulls_first")))


def _some_row(query: hir.Query, compared: hir.HScalar, *, every: bool, negated: bool) -> hir.HScalar:
    """Whether it is true that a comparison holds for a row of a query, or for `every` one, or that it does not."""
    if negated is every:
        return hir.Subquery("exists", Filter(query, (call("is false", [compared]) if every else compared,)))
    other = call("is not true" if every else "is not false", [compared])
    return call("not", [hir.Subquery("exists", Filter(query, (other,)))])


def _level_of(aggregate: Aggregate) -> int:
    """The level of the query that an aggregate belongs to: the nearest one that its arguments refer to, or this one."""
    levels = set()
    for scalar in aggregate_scalars(aggregate):
        levels |= {0 for part in walk(scalar) if isinstance(part, Column)}
        levels |= {level - 1 for level, _ in hir.free_in(scalar, -1)}
    return min(levels, default=0)
