"""One SELECT: its clauses in the order of their meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

from sqlglot import exp

from everview.compute.functions.registry import AGGREGATES
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Aggregate, Order
from everview.compute.ir.scalar import Case, Column, Literal, transform
from everview.compute.ir.types import INT4
from everview.compute.sql import errors, hir
from everview.compute.sql.clauses import watch
from everview.compute.sql.coerce import call, settled
from everview.compute.sql.errors import SqlError, did_you_mean, unsupported
from everview.compute.sql.expression import Expressions
from everview.compute.sql.forms import identifier, schema_before, settled_unless_literal
from everview.compute.sql.from_clause import From
from everview.compute.sql.hir import Calls, Placeholder, fill
from everview.compute.sql.names import output_name
from everview.compute.sql.outputs import bare, output_index, position_in
from everview.compute.sql.parse import Tree, error_at, position_of
from everview.compute.sql.scope import BindQuery, Catalog, Scope
from everview.compute.sql.windows import WindowCall, window_columns, window_keys

GROUPING_SETS_MAX = 256


class Select:
    """The binding of one SELECT, step by step."""

    def __init__(self, tree: exp.Select, scope: Scope, catalog: Catalog, bind_query: BindQuery) -> None:
        self._tree = tree
        self._bind_query = bind_query
        query, named = From(scope, catalog, bind_query).bind(tree)
        self._query = query
        self._scope = scope.with_columns(named)
        windows: dict[str, Tree] = {}
        for each in tree.args.get("windows") or []:
            if windows.setdefault(identifier(each.this), each) is not each:
                raise error_at(each, errors.WINDOWING_ERROR, f'window "{identifier(each.this)}" is already defined')
        self._calls = Calls(aggregates=[], windows=[], named=windows)
        self._check_locks()

    def bind(self) -> tuple[hir.Query, list[str], tuple[Order, ...]]:
        """The query, the names of its columns, and its order, for which there may be columns behind the named ones."""
        self._where()
        outputs, names = self._outputs()
        if self._tree.args.get("distinct") is not None:
            outputs = [settled(each) for each in outputs]
        order, extra = self._order(outputs, names)
        having, qualify = self._having(), self._qualify()
        binder, windows = self._expressions("WINDOW", self._calls).in_window(), self._calls.named
        unused = [key for each in windows.values() for key in window_keys(binder, each, windows)]
        distinct_on = self._distinct_on(outputs, names)
        extra += [each for each in dict.fromkeys(distinct_on) if each not in outputs + extra]
        rewrite = self._group()
        if having:
            self._query = ir.Filter(self._query, tuple(rewrite(each) for each in having))
        for each in unused:
            rewrite(each)  # which fails for what is not grouped by
        rewrite = self._windows(rewrite)
        if qualify:
            self._query = ir.Filter(self._query, tuple(rewrite(each) for each in qualify))
        values = [settled_unless_literal(rewrite(each)) for each in outputs + extra]
        width = len(hir.types(self._query))
        self._query = ir.Project(ir.Map(self._query, tuple(values)), tuple(range(width, width + len(values))))
        return self._distinct(names, order, [settled_unless_literal(rewrite(each)) for each in distinct_on], values)

    def _expressions(self, clause: str, calls: Calls | None = None) -> Expressions:
        return Expressions(self._scope, self._bind_query, calls, clause)

    def _check_locks(self) -> None:
        """Raise for a relation behind FOR UPDATE OF that is not in FROM."""
        for lock in self._tree.args.get("locks") or []:
            for table in lock.args.get("expressions") or []:
                if len(table.parts) > 1:
                    raise error_at(
                        table, errors.SYNTAX_ERROR, f"{lock_words(lock)} must specify unqualified relation names"
                    )
                name = identifier(table.this)
                if all(column.table != name for column in self._scope.columns):
                    message = f'relation "{name}" in {lock_words(lock)} clause not found in FROM clause'
                    hint = did_you_mean(name, {column.table for column in self._scope.columns if column.table})
                    raise error_at(table, errors.UNDEFINED_TABLE, message, hint=hint)

    def _where(self) -> None:
        clause = self._tree.args.get("where")
        if clause is not None:
            predicates = self._expressions("WHERE").conjuncts(clause.this)
            # What needs no subquery comes first: the rows that subqueries are asked about are then fewer.
            plain = [each for each in predicates if not hir.has_subquery(each)]
            asking = [each for each in predicates if hir.has_subquery(each)]
            self._query = ir.Filter(self._query, (*plain, *asking))

    # The select list

    def _outputs(self) -> tuple[list[hir.HScalar], list[str]]:
        binder = self._expressions("SELECT", self._calls)
        outputs: list[hir.HScalar] = []
        names: list[str] = []
        for tree in self._tree.expressions:
            stars = self._star(tree)
            if stars is not None:
                places = [self._scope.original(index) for index in stars]
                outputs += [Column(index, self._scope.columns[index].type) for index in places]
                names += [self._scope.columns[index].name for index in stars]
            else:
                outputs.append(binder.bind(unaliased(tree)))
                names.append(_name_of(tree))
        return outputs, names

    def _star(self, tree: Tree) -> list[int] | None:
        if isinstance(tree, exp.Star):
            if not self._scope.columns:
                raise error_at(tree, errors.SYNTAX_ERROR, "SELECT * with no tables specified is not valid")
            return [index for index, column in enumerate(self._scope.columns) if not column.hidden]
        if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
            table, schema = identifier(tree.args["table"]), schema_before(tree)
            missing = Scope(self._scope.columns).no_table(table, position_of(tree), schema)
            if missing is not None:
                raise missing
            return [index for index, column in enumerate(self._scope.columns) if column.stands_in(table, schema)]
        return None

    def _order(self, outputs: list[hir.HScalar], names: list[str]) -> tuple[tuple[Order, ...], list[hir.HScalar]]:
        """Sort keys as output columns; hidden ones become columns behind."""
        clause = self._tree.args.get("order")
        binder = self._expressions("ORDER BY", self._calls)
        order: list[Order] = []
        extra: list[hir.HScalar] = []
        for each in clause.expressions if clause is not None else []:
            index = output_index(each.this, names, "ORDER BY", outputs)
            if index is None:
                scalar = binder.bind(each.this)
                known = outputs + extra
                index = known.index(scalar) if scalar in known else len(known)
                if index == len(known):
                    extra.append(scalar)
            side, place = (outputs, index) if index < len(outputs) else (extra, index - len(outputs))
            side[place] = settled(side[place])  # what is compared has a type
            order.append(
                Order(Column(index, side[place].type), bool(each.args.get("desc")), bool(each.args.get("nulls_first")))
            )
        return tuple(order), extra

    def _having(self) -> list[hir.HScalar]:
        clause = self._tree.args.get("having")
        calls = replace(self._calls, windows=None)
        return [] if clause is None else self._expressions("HAVING", calls).conjuncts(clause.this)

    def _qualify(self) -> list[hir.HScalar]:
        """QUALIFY: a condition on values of window functions, which may call outputs by the names that they get."""
        clause = self._tree.args.get("qualify")
        if clause is None:
            return []
        condition = watch(clause.this.copy())
        given = {_name_of(each): each.this for each in self._tree.expressions if isinstance(each, exp.Alias)}

        def outputs_for_names(node: Tree) -> Tree:
            if not isinstance(node, exp.Column) or node.args.get("table") is not None:
                return node
            name = identifier(node.this)
            own = any(column.name == name and not column.hidden for column in self._scope.columns)
            return node if own or name not in given else exp.Paren(this=watch(given[name].copy()))

        condition = condition.transform(outputs_for_names, copy=False)
        return self._expressions("QUALIFY", self._calls).conjuncts(condition)

    # GROUP BY

    def _group(self) -> Callable[[hir.HScalar], hir.HScalar]:
        """Reduce, if this query groups. Gives a function that rewrites scalars over rows to scalars over groups."""
        sets = self._grouping_sets()
        aggregates = self._calls.aggregates or []
        if sets is None and not aggregates and self._tree.args.get("having") is None:
            return lambda scalar: scalar
        if sets is None:
            self._query = self._reduced((), aggregates)
            return self._over_groups([])
        keys = list(dict.fromkeys(key for each in sets for key in each))
        if len(sets) == 1 and keys:
            self._query = self._reduced(tuple(keys), aggregates)
        else:
            self._query = self._grouping_union(sets, keys, aggregates)
        return self._over_groups(keys)

    def _reduced(self, keys: tuple[hir.HScalar, ...], aggregates: list[Aggregate]) -> hir.Query:
        if keys:
            return ir.Reduce(self._query, keys, tuple(aggregates))
        empty = tuple(Literal(AGGREGATES[each.function].empty, each.type) for each in aggregates)
        return hir.GlobalReduce(self._query, tuple(aggregates), empty)

    def _grouping_sets(self) -> list[tuple[hir.HScalar, ...]] | None:
        clause = self._tree.args.get("group")
        if clause is None:
            return None
        if clause.args.get("all") and not clause.expressions:
            raise unsupported("GROUP BY ALL without expressions", position_of(self._tree))
        binder = self._expressions("GROUP BY")
        result: list[tuple[hir.HScalar, ...]] = [()]
        factors = [self._sets_of(binder, each) for each in clause.expressions]
        for factor in factors:
            result = [a + b for a in result for b in factor]
            if len(result) > GROUPING_SETS_MAX:
                raise SqlError("54000", f"too many grouping sets, more than {GROUPING_SETS_MAX}")
        sets = [tuple(dict.fromkeys(each)) for each in result]
        if clause.args.get("all") is False:  # GROUP BY DISTINCT: the same keys in another order are the same set
            sets = list({frozenset(each): each for each in reversed(sets)}.values())[::-1]
        return sets

    def _sets_of(self, binder: Expressions, tree: Tree) -> list[tuple[hir.HScalar, ...]]:
        """The grouping sets that one item of GROUP BY stands for; a plain key is one set of one key."""
        if isinstance(tree, exp.GroupingSets):
            return [each for item in tree.expressions for each in self._sets_of(binder, item)]
        if not isinstance(tree, (exp.Rollup, exp.Cube)):
            return [self._key_list(binder, tree)]
        items = [self._key_list(binder, each) for each in tree.expressions]
        if isinstance(tree, exp.Rollup):
            return [tuple(k for item in items[:count] for k in item) for count in range(len(items), -1, -1)]
        return [
            tuple(k for item in chosen for k in item)
            for count in range(len(items), -1, -1)
            for chosen in combinations(items, count)
        ]

    def _key_list(self, binder: Expressions, tree: Tree) -> tuple[hir.HScalar, ...]:
        items = tree.expressions if isinstance(tree, exp.Tuple) else [bare(tree)]
        return tuple(self._group_key(binder, each) for each in items)

    def _group_key(self, binder: Expressions, tree: Tree) -> hir.HScalar:
        """A key by position, by the name of an output where no input column has it, or as an expression."""
        target = tree = bare(tree)
        place = position_in(tree, len(self._tree.expressions), "GROUP BY")
        if place is not None:
            target = self._tree.expressions[place]
        elif isinstance(tree, exp.Column) and tree.args.get("table") is None:
            name = identifier(tree.this)
            if not any(column.name == name and not column.hidden for column in self._scope.columns):
                target = self._output_named(binder, name, tree)
        return settled(binder.bind(unaliased(target)))

    def _output_named(self, binder: Expressions, name: str, tree: Tree) -> Tree:
        """Find the output that has a name, by an alias or by itself. Without one, the name stands for itself."""
        shown = [each for each in self._tree.expressions if self._star(each) is None]
        found = [each for each in shown if _name_of(each) == name]
        if len(found) > 1 and len({binder.bind(unaliased(each)) for each in found}) > 1:
            raise error_at(tree, errors.AMBIGUOUS_COLUMN, f'GROUP BY "{name}" is ambiguous')
        return found[0] if found else tree

    def _grouping_union(
        self, sets: list[tuple[hir.HScalar, ...]], keys: list[hir.HScalar], aggregates: list[Aggregate]
    ) -> hir.Query:
        """One reduction for each grouping set, keys that it lacks NULL, side by side, and which set it was."""
        branches = []
        for number, chosen in enumerate(sets):
            width = len(chosen) + len(aggregates)
            missing = [key for key in keys if key not in chosen]
            added = [Literal(None, key.type) for key in missing] + [Literal(number, INT4)]
            mapped = ir.Map(self._reduced(chosen, aggregates), tuple(added))
            places = [chosen.index(key) if key in chosen else width + missing.index(key) for key in keys]
            order = (*places, *range(len(chosen), width), width + len(missing))
            branches.append(ir.Project(mapped, order))
        return ir.Union(tuple(branches))

    def _over_groups(self, keys: list[hir.HScalar]) -> Callable[[hir.HScalar], hir.HScalar]:
        """A function that rewrites scalars over rows to ones over groups, whose columns are keys and aggregates."""
        sets = self._grouping_sets() or []

        def keyed(scalar: hir.HScalar, depth: int = 0) -> hir.HScalar:
            # In queries inside as well, where a key may be what their rows are compared with. Constants stay there.
            known = [hir.deepened(key, depth) for key in keys]

            def look(part: hir.HScalar) -> hir.HScalar | None:
                if isinstance(part, hir.Subquery) and part not in known:
                    return replace(part, query=hir.map_scalars(part.query, keyed, depth + 1))
                if part not in known or (depth and not hir.free_in(part, depth - 1)):
                    return None
                return Placeholder("key", known.index(part), part.type, depth)

            return transform(scalar, look)

        def rewrite(scalar: hir.HScalar) -> hir.HScalar:
            def value(part: Placeholder) -> hir.HScalar | None:
                if part.kind == "aggregate":
                    return Placeholder("key", len(keys) + part.index, part.type)
                return self._grouping_value(part, keys, sets) if part.kind == "grouping" else None

            return _columns(hir.map_references(fill(keyed(scalar), value), self._only_keys(keys)))

        return rewrite

    def _only_keys(self, keys: list[hir.HScalar]) -> hir.NewReference:
        def change(level: int, index: int, _: object) -> tuple[int, int] | hir.HScalar:
            if level > 0:
                return level, index
            for place, key in enumerate(keys):
                if isinstance(key, Column) and key.index == index:
                    return 0, place
            named = self._scope.columns[index]
            shown = f"{named.table}.{named.name}" if named.table else named.name
            raise SqlError(
                errors.GROUPING_ERROR,
                f'column "{shown}" must appear in the GROUP BY clause or be used in an aggregate function',
            )

        return change

    def _grouping_value(
        self, part: Placeholder, keys: list[hir.HScalar], sets: list[tuple[hir.HScalar, ...]]
    ) -> hir.HScalar:
        """The bits of `grouping(...)`, by the number of the grouping set, which is the last column."""
        wanted = self._calls.groupings[part.index]
        if any(key not in keys for key in wanted):
            raise SqlError(errors.GROUPING_ERROR, "arguments to GROUPING must be grouping expressions of this query")
        bits = [sum((key not in each) << place for place, key in enumerate(reversed(wanted))) for each in sets]
        if len(sets) < 2:
            return Literal(0, INT4)
        number = Placeholder("key", len(keys) + len(self._calls.aggregates or []), INT4)
        branches = tuple((call("=", [number, Literal(n, INT4)]), Literal(b, INT4)) for n, b in enumerate(bits))
        return Case(branches, Literal(0, INT4), INT4)

    # Windows, DISTINCT

    def _windows(self, rewrite: Callable[[hir.HScalar], hir.HScalar]) -> Callable[[hir.HScalar], hir.HScalar]:
        windows: list[WindowCall] = self._calls.windows or []
        if not windows:
            return rewrite
        self._query, places = window_columns(self._query, windows, rewrite)

        def with_windows(scalar: hir.HScalar) -> hir.HScalar:
            def value(part: Placeholder) -> hir.HScalar | None:
                return Placeholder("key", places[part.index], part.type) if part.kind == "window" else None

            return _columns(fill(rewrite(scalar), value))

        return with_windows

    def _distinct_on(self, outputs: list[hir.HScalar], names: list[str]) -> list[hir.HScalar]:
        clause = self._tree.args.get("distinct")
        on = clause.args.get("on") if clause is not None else None
        if on is None:
            return []
        binder = self._expressions("DISTINCT ON", self._calls)
        result = []
        for tree in on.expressions if isinstance(on, exp.Tuple) else [on]:
            index = output_index(tree, names, "DISTINCT ON", outputs)
            result.append(outputs[index] if index is not None else binder.bind(tree))
        return result

    def _distinct(
        self, names: list[str], order: tuple[Order, ...], keys: list[hir.HScalar], values: list[hir.HScalar]
    ) -> tuple[hir.Query, list[str], tuple[Order, ...]]:
        clause = self._tree.args.get("distinct")
        if clause is None:
            return self._query, names, order
        if not keys:
            if len(values) > len(names):
                message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
                raise SqlError(errors.INVALID_COLUMN_REFERENCE, message)
            return ir.Reduce(self._query, hir.columns(self._query)), names, order
        group = [values.index(each) for each in keys]
        first = order[: len(set(group))]
        if first and {each.scalar.index for each in first} - set(group):  # type: ignore[union-attr]
            message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
            raise SqlError(errors.INVALID_COLUMN_REFERENCE, message)
        return ir.TopK(self._query, tuple(sorted(set(group))), order, 1), names, order


def lock_words(lock: exp.Lock) -> str:
    """How a lock of rows is written."""
    return "FOR UPDATE" if lock.args.get("update") else "FOR SHARE"


def unaliased(tree: Tree) -> Tree:
    """An output without the name that it is given."""
    return tree.this if isinstance(tree, exp.Alias) else tree


def _name_of(tree: Tree) -> str:
    return identifier(tree.args["alias"]) if isinstance(tree, exp.Alias) else output_name(tree)


def _columns(scalar: hir.HScalar) -> hir.HScalar:
    """Placeholders for columns become these columns."""
    return fill(scalar, lambda part: Column(part.index, part.type) if part.kind == "key" else None)
