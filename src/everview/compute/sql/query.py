"""Queries: SELECT, VALUES, set operations and WITH, to a query and the names of its columns.

A SELECT goes through its clauses in the order of their meaning: FROM, WHERE, GROUP BY and aggregates, HAVING, window
functions, the select list, DISTINCT, ORDER BY, LIMIT. Each is one step that takes a relation and gives one.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from everview.compute.functions.resolve import resolve_window
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Order, Relation, WindowFunction
from everview.compute.ir.scalar import Column, Literal
from everview.compute.ir.types import INT8, SqlType
from everview.compute.optimize.simplify import simplify
from everview.compute.sql import hir
from everview.compute.sql.clauses import changes_nothing
from everview.compute.sql.coerce import all_open, call, coerce, settled, unified
from everview.compute.sql.errors import INVALID_COLUMN_REFERENCE, SYNTAX_ERROR, SqlError, unsupported
from everview.compute.sql.expression import Expressions
from everview.compute.sql.forms import identifier, settled_unless_literal
from everview.compute.sql.from_clause import UNIT
from everview.compute.sql.hosting import is_stored
from everview.compute.sql.lower import lower
from everview.compute.sql.outputs import output_index
from everview.compute.sql.parse import Tree, check_all_read, error_at, parse_expression, position_of, query_tree, tailed
from everview.compute.sql.recursive import check_form, check_step, of_types, refers_to_itself
from everview.compute.sql.references import Qualified, Reference, Rename, columns_with_schemas, edited, references
from everview.compute.sql.scope import Catalog, Cte, Scope
from everview.compute.sql.select import Select, lock_words
from everview.compute.sql.set_returning import without_set_returning
from everview.compute.sql.windows import DEFAULT_FRAME


@dataclass(frozen=True, slots=True)
class Plan:
    """A bound query: its relation, the names of its columns, and the order in which a client wants its rows."""

    relation: Relation
    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    order: tuple[Order, ...] = ()


def plan(query: str | Tree, catalog: Catalog) -> Plan:
    """The plan of a query, in SQL or as a tree. Sort keys that are not shown are columns behind the named ones."""
    if isinstance(query, str):
        with query_tree(query) as tree:
            return Queries(catalog).plan(tree)
    found = Queries(catalog).plan(query)
    check_all_read(query)
    return found


def definition(text: str, catalog: Catalog, rename: Rename) -> tuple[Plan, str]:
    """The plan of a query that is stored, and its text with names in full, for which `rename` gives them."""
    with query_tree(text) as tree:
        names, columns = references(tree), columns_with_schemas(tree)
        found = Queries(catalog).plan(tree)
        if columns and not is_stored():
            _check_aliases(tree, names, columns, rename)
        return found, edited(text, names, rename, columns)


def _check_aliases(tree: Tree, names: Sequence[Reference], columns: Sequence[Qualified], rename: Rename) -> None:
    """Raise if columns of a stored query need their schemas: its relations get aliases, which have none."""
    aliases = [identifier(each.this) for each in tree.find_all(exp.TableAlias) if each.this is not None]
    relations = {tuple(rename(each.path) or each.path) for each in names if not each.aliased}
    called = Counter([*aliases, *(path[-1] for path in relations)])
    for each in columns:
        if called[each.table] > 1:
            what = f'telling relations called "{each.table}" apart by schemas in a stored query'
            raise unsupported(what, each.start + 1, hint="give the relations aliases, and write these before columns")


def value(text: str, catalog: Catalog, to: Sequence[SqlType]) -> Plan:
    """The plan of one row with one column: an expression, cast to one type after the other."""
    tree = parse_expression(text)
    scalar = Expressions(Scope(), Queries(catalog).bind, clause="such a place").bind(tree)
    for each in to:
        scalar = coerce(settled_unless_literal(scalar), each, "explicit", position_of(tree))
    check_all_read(tree)
    return Plan(lower(ir.Project(ir.Map(UNIT, (scalar,)), (0,))), ("value",), (to[-1],))


@dataclass(frozen=True, slots=True)
class Ordered:
    """A query whose rows are in order: sort keys may be columns behind the shown ones."""

    query: hir.Query
    names: list[str]
    order: tuple[Order, ...] = ()

    @property
    def shown(self) -> hir.Query:
        """The query without its sort keys."""
        count = len(self.names)
        return self.query if len(hir.types(self.query)) == count else ir.Project(self.query, tuple(range(count)))


class Queries:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._names = itertools.count()

    def plan(self, tree: Tree) -> Plan:
        """A query that stands by itself."""
        bound = self._bind(tree, Scope())
        settled_query = self._settled(bound)
        return Plan(lower(settled_query.query), tuple(bound.names), hir.types(settled_query.shown), settled_query.order)

    def bind(self, tree: Tree, scope: Scope, order: list[Order] | None = None) -> tuple[hir.Query, list[str]]:
        """A query inside another; what order it has is mostly of no consequence there."""
        bound = self._settled(self._bind(tree, scope))
        if order is None:
            return bound.shown, bound.names
        order += bound.order
        return bound.query, bound.names

    def _settled(self, bound: Ordered) -> Ordered:
        """Columns whose type nothing decided are text."""
        values = [settled(each) for each in hir.columns(bound.query)]
        return Ordered(hir.mapped(bound.query, values), bound.names, bound.order)

    def _bind(self, tree: Tree, scope: Scope) -> Ordered:
        wrappers: list[tuple[str, hir.Query]] = []
        _take_locks(tree)
        scope = self._with(tree, scope, wrappers)
        match tree:
            case exp.Select():
                tree = without_set_returning(tree)
                query, names, order = Select(tree, scope, self.catalog, self.bind).bind()
                bound = self._limited(tree, Ordered(query, names, order), scope)
            case exp.SetOperation():
                bound = self._finished(tree, self._set_operation(tree, scope), scope)
            case exp.Values():
                bound = self._finished(tree, self._values(tree, scope), scope)
            case exp.Subquery() | exp.Paren():
                inner = self._bind(tree.this, scope)
                keep = any(tree.args.get(clause) for clause in ("order", "limit", "offset"))
                bound = self._finished(tree, Ordered(inner.shown, inner.names), scope) if keep else inner
            case _:
                raise unsupported(f"{tree.key.upper()} as a query", position_of(tree))
        query = bound.query
        for name, value in reversed(wrappers):
            query = ir.Let(name, value, query)
        return Ordered(query, bound.names, bound.order)

    def _with(self, tree: Tree, scope: Scope, wrappers: list[tuple[str, hir.Query]]) -> Scope:
        """The scope with the WITH queries. A query that refers to nothing around it is computed once, under a name."""
        clause = tree.args.get("with_")
        if clause is None:
            return scope
        for each in clause.expressions:
            own = identifier(each.args["alias"].this)
            if clause.args.get("recursive") and refers_to_itself(each.this, own):
                query, names = self._recursive(each, own, scope)
            else:
                query, names = self.bind(each.this, Scope((), scope.around, scope.ctes))
            given = self._given(each, names)
            changes_nothing(each, "materialized")  # when it is computed is for the optimizer to say
            if not hir.free(query):
                name = f"w{next(self._names)}"
                wrappers.append((name, query))
                query = ir.Get(name, hir.types(query))
            cte = Cte(query, (*given, *names[len(given) :]), scope.depth)
            scope = Scope(scope.columns, scope.around, {**scope.ctes, own: cte})
        return scope

    def _given(self, tree: exp.CTE, names: Sequence[str]) -> list[str]:
        given = [identifier(name) for name in tree.args["alias"].args.get("columns") or []]
        if len(given) > len(names):
            message = f'WITH query "{tree.alias}" has {len(names)} columns available but {len(given)} specified'
            raise error_at(tree, INVALID_COLUMN_REFERENCE, message)
        return given

    def _recursive(self, tree: exp.CTE, name: str, scope: Scope) -> tuple[hir.Query, list[str]]:
        """Bind a WITH query that reads itself: rows of its base, and of its step over the rows of the last round."""
        check_form(tree.this, name)
        base, names = self.bind(tree.this.this, Scope((), scope.around, scope.ctes))
        given, id, schema = self._given(tree, names), f"w{next(self._names)}", hir.types(base)
        own = Cte(ir.Get(id, schema), (*given, *names[len(given) :]), scope.depth)
        step, _ = self.bind_open(tree.this.expression, Scope((), scope.around, {**scope.ctes, name: own}))
        values = [open_column(step, each) for each in hir.columns(step)]
        step = of_types(step, schema, values, name)
        distinct = bool(tree.this.args.get("distinct"))
        if check_step(step, id, name):
            return ir.Recursive(id, base, step, distinct), names
        both = ir.Union((base, step))  # what it reads under its name is another's
        return ir.Reduce(both, hir.columns(base)) if distinct else both, names

    # The kinds of queries

    def _values(self, tree: exp.Values, scope: Scope) -> Ordered:
        binder = Expressions(scope, self.bind, clause="VALUES")
        rows = [[binder.bind(each) for each in cells(row)] for row in tree.expressions]
        if len({len(row) for row in rows}) > 1:
            raise error_at(tree, SYNTAX_ERROR, "VALUES lists must all be the same length")
        columns = [_matched(list(column), "VALUES") for column in zip(*rows, strict=True)]
        names = [f"column{number + 1}" for number in range(len(columns))]
        lines = list(zip(*columns, strict=True))
        if all(isinstance(cell, Literal) for line in lines for cell in line):
            constant = tuple((tuple(cell.value for cell in line), 1) for line in lines)
            return Ordered(ir.Constant(constant, tuple(cell.type for cell in lines[0])), names)
        return Ordered(ir.Union(tuple(ir.Map(UNIT, line) for line in lines)), names)

    def _set_operation(self, tree: exp.SetOperation, scope: Scope) -> Ordered:
        """A chain of set operations, which the parser nests to the left, from its first query on."""
        chain = [tree]
        while isinstance(chain[-1].this, exp.SetOperation) and not tailed(chain[-1].this):
            chain.append(chain[-1].this)
        left, names = self.bind_open(chain[-1].this, scope)
        for each in reversed(chain):
            left = self._combined(each, left, scope)
        return Ordered(left, names)

    def _combined(self, tree: exp.SetOperation, left: hir.Query, scope: Scope) -> hir.Query:
        right, _ = self.bind_open(tree.expression, scope)
        kind = type(tree).__name__.upper()
        if len(hir.types(left)) != len(hir.types(right)):
            raise error_at(tree.expression, SYNTAX_ERROR, f"each {kind} query must have the same number of columns")
        both = zip(hir.columns(left), hir.columns(right), strict=True)
        pairs = [_matched([open_column(left, a), open_column(right, b)], kind) for a, b in both]
        left, right = hir.mapped(left, [pair[0] for pair in pairs]), hir.mapped(right, [pair[1] for pair in pairs])
        keep = not tree.args.get("distinct")
        columns = hir.columns(left)
        if kind == "UNION":
            together = ir.Union((*left.inputs, right) if isinstance(left, ir.Union) else (left, right))
            return together if keep else ir.Reduce(together, columns)
        if not keep:
            left, right = ir.Reduce(left, columns), ir.Reduce(right, columns)
        # What is left of the left side when the right one is taken away, row by row.
        difference = ir.Threshold(ir.Union((left, ir.Negate(right))))
        if kind == "EXCEPT":
            return difference
        return ir.Threshold(ir.Union((left, ir.Negate(difference))))

    def bind_open(self, tree: Tree, scope: Scope) -> tuple[hir.Query, list[str]]:
        """A branch of a set operation: its undecided columns may take the type of the other branch."""
        bound = self._bind(tree, scope)
        return bound.shown, bound.names

    # ORDER BY and LIMIT of what is not a SELECT

    def _finished(self, tree: Tree, bound: Ordered, scope: Scope) -> Ordered:
        clause = tree.args.get("order")
        columns = hir.types(bound.query)
        order = []
        for each in clause.expressions if clause is not None else []:
            index = output_index(each.this, bound.names, "ORDER BY")
            if index is None:
                message = "only names and positions of columns can order the result of a set operation"
                raise error_at(each, "0A000", message)
            order.append(
                Order(Column(index, columns[index]), bool(each.args.get("desc")), bool(each.args.get("nulls_first")))
            )
        return self._limited(tree, Ordered(bound.query, bound.names, tuple(order)), scope)

    def _limited(self, tree: Tree, bound: Ordered, scope: Scope) -> Ordered:
        limit, offset = tree.args.get("limit"), tree.args.get("offset")
        if limit is None and offset is None:
            return bound
        options = limit.args.get("limit_options") if isinstance(limit, exp.Fetch) else None
        direction = str(limit.args.get("direction") or "FIRST") if isinstance(limit, exp.Fetch) else "FIRST"
        if direction.upper() not in ("FIRST", "NEXT"):
            raise unsupported(f"FETCH {direction}", position_of(limit))
        if options is not None:
            changes_nothing(options, "rows")  # the word
        if options is not None and options.args.get("percent"):
            raise unsupported("FETCH … PERCENT", position_of(limit))
        count = None if limit is None else limit.args.get("count") or limit.args.get("expression")
        if count is None and isinstance(limit, exp.Fetch):
            count = exp.Literal.number(1)  # FETCH FIRST ROW ONLY
        most = None if count is None else self._constant(count, scope, "LIMIT")
        skipped = 0 if offset is None else self._constant(offset.expression, scope, "OFFSET") or 0
        if most is None and not skipped:
            return bound
        if most is not None and options is not None and options.args.get("with_ties"):
            return self._with_ties(bound, most, skipped, position_of(limit))
        return Ordered(ir.TopK(bound.query, (), bound.order, most, skipped), bound.names, bound.order)

    def _with_ties(self, bound: Ordered, most: int, skipped: int, position: int | None) -> Ordered:
        """The first rows, and all that are peers of the last one: as many as come before it decides, not its number."""
        if not bound.order:
            raise SqlError(SYNTAX_ERROR, "WITH TIES cannot be specified without ORDER BY clause", position=position)
        width = len(hir.types(bound.query))
        numbered = ir.Window(bound.query, (), bound.order, (_numbering("rank"), _numbering("row_number")))
        rank, number = Column(width, INT8), Column(width + 1, INT8)
        wanted = (call("<=", [rank, Literal(most + skipped, INT8)]), call(">", [number, Literal(skipped, INT8)]))
        rows = ir.Project(ir.Filter(numbered, wanted), tuple(range(width)))
        return Ordered(rows, bound.names, bound.order)

    def _constant(self, tree: Tree, scope: Scope, clause: str) -> int | None:
        if isinstance(tree, exp.Var) and tree.name.upper() == "ALL":
            return None
        scalar = coerce(Expressions(scope, self.bind, clause=clause).bind(tree), INT8, "assignment", position_of(tree))
        scalar = scalar if hir.has_subquery(scalar) else simplify(scalar)
        if not isinstance(scalar, Literal):
            raise unsupported(f"an expression in {clause}", position_of(tree), hint="write a number")
        if scalar.value is not None and scalar.value < 0:
            state = "2201W" if clause == "LIMIT" else "2201X"
            raise error_at(tree, state, f"{clause} must not be negative")
        return scalar.value  # type: ignore[no-any-return]


def _take_locks(tree: Tree) -> None:
    """FOR UPDATE and its like: a transaction that writes commits only if nothing that it read has changed.

    That is what such a lock is for, as far as it does not say how to wait.
    """
    for lock in tree.args.get("locks") or []:
        changes_nothing(lock, "update", "key")
        if lock.args.get("wait") is not None:  # False is SKIP LOCKED
            hint = "COMMIT fails with 40001 if what was read has changed: try again then"
            raise unsupported("NOWAIT or SKIP LOCKED", hint=hint)
        if lock.args.get("expressions") and not isinstance(tree, exp.Select):
            raise unsupported(f"{lock_words(lock)} OF around a set operation, VALUES or parentheses")


def _numbering(name: str) -> WindowFunction:
    function, _, result = resolve_window(name, [])
    return WindowFunction(function.key, (), result, DEFAULT_FRAME)


def cells(row: Tree) -> list[Tree]:
    return list(row.expressions) if isinstance(row, exp.Tuple) else [row]


def _matched(scalars: list[hir.HScalar], what: str) -> list[hir.HScalar]:
    return [settled(scalar) for scalar in scalars] if all_open(scalars) else unified(scalars, what)


def open_column(query: hir.Query, column: Column) -> hir.HScalar:
    """The literal behind an undecided column, so that it can still be read as whatever it has to be."""
    match query:
        case ir.Project(ir.Map(below, scalars), columns):
            index = columns[column.index] - len(hir.types(below))
            if index >= 0 and isinstance(scalars[index], Literal):
                return scalars[index]
        case _:
            pass
    return column
