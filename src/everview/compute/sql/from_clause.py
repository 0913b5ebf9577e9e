"""FROM: tables, queries, table functions and joins, to a query and the names of its columns."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.compute.functions.registry import TABLES
from everview.compute.functions.resolve import resolve_table
from everview.compute.functions.table import ORDINALITY
from everview.compute.ir import relation as ir
from everview.compute.ir.scalar import Coalesce, Column, Literal, Scalar
from everview.compute.ir.types import INT4, INT8, Kind
from everview.compute.sql import errors, hir
from everview.compute.sql.clauses import changes_nothing, watch
from everview.compute.sql.coerce import call, coerce, resolving, settled, unified
from everview.compute.sql.errors import SqlError, did_you_mean, unsupported
from everview.compute.sql.expression import Expressions
from everview.compute.sql.forms import identifier
from everview.compute.sql.hir import FUNCTION_SCHEMAS
from everview.compute.sql.hosting import Parameter, host
from everview.compute.sql.parse import Tree, error_at, position_of
from everview.compute.sql.scope import BindQuery, Catalog, Collection, Named, Scope

UNIT = ir.Constant((((), 1),), ())
_OID = "tableoid"


class From:
    """Binds the FROM clause of one query, or a part of it that is `beside` another.

    Then the nearest row around is one of that other part, which only what is lateral may speak of.
    """

    def __init__(self, scope: Scope, catalog: Catalog, bind_query: BindQuery, *, beside: bool = False) -> None:
        self._scope = scope
        self._beside = beside
        self._catalog = catalog
        self._bind_query = bind_query
        self._tree: Tree | None = None

    def bind(self, tree: Tree) -> tuple[hir.Query, tuple[Named, ...]]:
        """The rows that a SELECT starts from; without a FROM, one row without columns."""
        source = tree.args.get("from_")
        self._tree = tree
        if source is None:
            return UNIT, ()
        query, named = self.item(source.this, (), UNIT)
        joins = [*(source.this.args.get("joins") or []), *(tree.args.get("joins") or [])]
        for group in _groups(joins):
            query, named = self._listed(query, named, group)
        return query, named

    def _speaks_of_oids(self) -> bool:
        """Whether the query asks for the catalog that a row is in, as tools do; nobody else needs that column."""
        return self._tree is not None and any(column.name == _OID for column in self._tree.find_all(exp.Column))

    def _listed(
        self, left: hir.Query, left_named: tuple[Named, ...], group: list[exp.Join]
    ) -> tuple[hir.Query, tuple[Named, ...]]:
        """What follows a comma, with the joins up to the next: JOIN binds tighter, as `a, (b RIGHT JOIN c ON …)`."""
        sides = {(join.args.get("side") or "").upper() for join in group}
        lateral = any(_may_be_lateral(join.this) for join in group)
        apart = len(group) > 1 and _is_comma(group[0])
        if lateral and apart and sides & {"RIGHT", "FULL"}:
            right, right_named = self._besides(left_named)._group(group)
            self._check_names(left_named, right_named, group[0])
            return hir.Lateral(left, right, (), "inner"), left_named + right_named
        if lateral or len(group) == 1 or not _is_comma(group[0]):  # one by one is the same where rows of the left stay
            query, named = left, left_named
            for join in group:
                query, named = self._join(query, named, join)
            return query, named
        right, right_named = self._group(group)
        self._check_names(left_named, right_named, group[0])
        return ir.Join((left, right)), left_named + right_named

    def _group(self, group: list[exp.Join]) -> tuple[hir.Query, tuple[Named, ...]]:
        """Bind the items after a comma by themselves."""
        first = group[0].this
        query, named = self._plain(first)
        for join in [*(first.args.get("joins") or []), *group[1:]]:
            query, named = self._join(query, named, join)
        return query, named

    def _besides(self, left: tuple[Named, ...]) -> From:
        """The binder of what stands beside rows of these columns."""
        around = Scope(left, self._around(), self._scope.ctes)
        return From(around.inner(), self._catalog, self._bind_query, beside=True)

    def _around(self, *, lateral: bool = True) -> Scope | None:
        """The queries around, and what stands on the left if one may speak of it."""
        around = self._scope.around
        if lateral or not self._beside or around is None:
            return around
        return replace(around, columns=())

    def item(self, tree: Tree, left: tuple[Named, ...], left_query: hir.Query) -> tuple[hir.Query, tuple[Named, ...]]:
        """One item of FROM by itself. A table function may refer to what stands left of it, and then is lateral."""
        match tree:
            case exp.Table() if isinstance(tree.this, exp.Func):
                schema = tree.args.get("db")
                if schema is not None and schema.name.lower() not in FUNCTION_SCHEMAS:
                    message = f"function {schema.name}.{tree.this.name} does not exist"
                    raise error_at(tree, errors.UNDEFINED_FUNCTION, message)
                return self._function(tree.this, tree)
            case exp.Unnest():
                return self._function(exp.Anonymous(this="unnest", expressions=tree.expressions), tree)
            case exp.Table() if tree.args.get("rows_from"):
                raise unsupported("ROWS FROM", position_of(tree))
            case exp.Table() if isinstance(tree.this, exp.Values):  # the first of a join in parentheses
                return self.item(exp.Values(expressions=tree.this.expressions, alias=tree.args.get("alias")), (), UNIT)
            case exp.Table():
                return self._table(tree)
            case exp.Subquery() if _is_joined(tree.this):
                query, named = self.item(tree.this, (), UNIT)
                for join in tree.this.args.get("joins") or []:
                    query, named = self._join(query, named, join)
                if tree.args.get("alias") is not None:  # under one name, what USING made one is all there is of it
                    shown = tuple(index for index, column in enumerate(named) if not column.hidden)
                    query, named = ir.Project(query, shown), tuple(named[index] for index in shown)
                return query, self._aliased(tree, named, position_of(tree))
            case exp.Subquery() | exp.Values():
                return self._query(tree.this if isinstance(tree, exp.Subquery) else tree, tree, lateral=False)
            case exp.Lateral():  # with nothing on its left that it could speak of
                return self._plain(tree)
            case _:
                raise unsupported(f"{tree.key} in FROM", position_of(tree))

    def _query(self, query: Tree, item: Tree, *, lateral: bool) -> tuple[hir.Query, tuple[Named, ...]]:
        bound, names = self._bind_query(query, Scope((), self._around(lateral=lateral), self._scope.ctes))
        columns = tuple(Named(None, n, t) for n, t in zip(names, hir.types(bound), strict=True))
        return bound, self._aliased(item, columns, position_of(item))

    def _table(self, tree: exp.Table) -> tuple[hir.Query, tuple[Named, ...]]:
        changes_nothing(tree, "only")  # no table has children
        path = [identifier(part) for part in tree.parts]
        cte = self._scope.ctes.get(path[0]) if len(path) == 1 else None
        if cte is not None:
            columns = tuple(Named(path[0], n, t) for n, t in zip(cte.names, hir.types(cte.query), strict=True))
            query = hir.query_deepened(cte.query, self._scope.depth - cte.depth)
        else:
            found = self._catalog.find(path)
            if found is None:
                hint = did_you_mean(path[-1], [*self._catalog.names(), *self._scope.ctes])
                raise error_at(tree, errors.UNDEFINED_TABLE, f'relation "{".".join(path)}" does not exist', hint=hint)
            *schema, table = found.path or path
            own = zip(found.names, found.types, strict=True)
            columns = tuple(Named(table, n, t, schema=tuple(schema)) for n, t in own)
            query = _read(found)
            if found.oid is not None and self._speaks_of_oids():
                query = ir.Map(query, (Literal(found.oid, INT8),))
                columns = (*columns, Named(table, _OID, INT8, hidden=True, schema=tuple(schema)))
        return query, self._aliased(tree, columns, position_of(tree))

    def _aliased(self, tree: Tree, columns: tuple[Named, ...], position: int | None) -> tuple[Named, ...]:
        alias = tree.args.get("alias")
        if alias is None:
            return columns
        names = [identifier(each) for each in alias.args.get("columns") or []]
        table = identifier(alias.this) if alias.this is not None else None
        if len(names) > len(columns):
            message = f'table "{table}" has {len(columns)} columns available but {len(names)} columns specified'
            raise SqlError(errors.INVALID_COLUMN_REFERENCE, message, position=position)
        names += [column.name for column in columns[len(names) :]]
        if table is not None:
            columns = tuple(replace(column, table=table, schema=()) for column in columns)
        return tuple(replace(column, name=name, is_of=None) for column, name in zip(columns, names, strict=True))

    def _function(self, tree: Tree, item: Tree) -> tuple[hir.Query, tuple[Named, ...]]:
        """Bind a table function over one row. The caller binds its arguments, for it knows what stands to the left."""
        expressions = Expressions(self._scope, self._bind_query, clause="functions in FROM")
        name = tree.name.lower()
        args = [expressions.bind(each) for each in tree.expressions]
        item, counted = _with_ordinality(tree, item)
        if name == "unnest" and len(args) > 1:
            query, names = _side_by_side(args, counted, position_of(item))
        else:
            query, names = self._called(name, args, counted, position_of(item))
        alias = item.args.get("alias")
        table = identifier(alias.this) if alias is not None and alias.this is not None else name
        if len(names) == 1 and alias is not None and not alias.args.get("columns"):
            names = [table]
        if counted:
            names.append("ordinality")
        columns = tuple(Named(table, n, t) for n, t in zip(names, hir.types(query), strict=True))
        return query, self._aliased(item, columns, position_of(item))

    def _called(
        self, name: str, args: list[hir.HScalar], counted: bool, position: int | None
    ) -> tuple[hir.Query, list[str]]:
        """The rows of one table function, and the names of its own columns."""
        constant = all(isinstance(arg, Literal) and not isinstance(arg, Parameter) for arg in args[1:])
        if name == "regexp_split_to_table" and not constant:
            # What comes from columns or parameters may be no regular expression: that is for a scalar to find out.
            query, _ = self._called("unnest", [call("regexp_split_to_array", args, position)], counted, position)
            return query, [name]
        with resolving(position):
            function, wanted, types = resolve_table(name, [arg.type for arg in args], host().table_functions(name))
        coerced = tuple(coerce(arg, to) for arg, to in zip(args, wanted, strict=True))
        key = function.key + ORDINALITY if counted else function.key
        if counted and key not in TABLES:
            raise unsupported(f"WITH ORDINALITY after {name}", position)
        query = ir.FlatMap(UNIT, key, coerced, (*types, INT8) if counted else types)
        return query, list(function.names) if len(function.names) == len(types) else [name] * len(types)

    # Joins

    def _join(
        self, left: hir.Query, left_named: tuple[Named, ...], tree: exp.Join
    ) -> tuple[hir.Query, tuple[Named, ...]]:
        item = tree.this
        side, method, kind = ((tree.args.get(each) or "").upper() for each in ("side", "method", "kind"))
        if method not in ("", "NATURAL") or kind not in ("", "INNER", "OUTER", "CROSS"):
            raise unsupported(" ".join(filter(None, (method, side, kind, "JOIN"))), position_of(tree))
        # Nothing on the right of a RIGHT or FULL JOIN can speak of what is left of it.
        lateral = _may_be_lateral(item) and side in ("", "LEFT")
        if lateral:
            right, right_named = self._besides(left_named)._plain(item)
        else:
            right, right_named = self.item(item, left_named, left)
            for nested in item.args.get("joins") or []:
                right, right_named = self._join(right, right_named, nested)
        self._check_names(left_named, right_named, tree)
        if side not in ("", "LEFT", "RIGHT", "FULL"):
            raise unsupported(f"{side} JOIN", position_of(tree))
        named = left_named + right_named
        using = [identifier(each) for each in tree.args.get("using") or []]
        if method == "NATURAL":
            theirs = {column.name for column in right_named if not column.hidden}
            using = [column.name for column in left_named if column.name in theirs and not column.hidden]
        on, merged = self._conditions(left_named, right_named, tree, using)
        query = _joined(left, right, on, side, lateral=lateral)
        return self._merged(query, named, merged, side) if merged else (query, named)

    def _plain(self, item: Tree) -> tuple[hir.Query, tuple[Named, ...]]:
        """An item without the word LATERAL."""
        if not isinstance(item, exp.Lateral):
            return self.item(item, (), UNIT)
        target = item.this
        if isinstance(target, exp.Subquery):
            return self._query(target.this, item, lateral=True)
        if isinstance(target, exp.Unnest):
            counted = exp.Unnest(expressions=target.expressions, alias=item.args.get("alias"))
            counted.set("offset", bool(target.args.get("offset")))
            return self.item(counted, (), UNIT)
        return self._function(target, item)

    def _conditions(
        self, left: tuple[Named, ...], right: tuple[Named, ...], tree: exp.Join, using: list[str]
    ) -> tuple[tuple[hir.HScalar, ...], list[tuple[int, int]]]:
        """The join conditions, and the pairs of columns that USING merges."""
        if tree.args.get("on") is not None:
            scope = Scope(left + right, self._around(lateral=False), self._scope.ctes)
            return tuple(Expressions(scope, self._bind_query, clause="JOIN/ON").conjuncts(tree.args["on"])), []
        merged = []
        for name in using:
            places = []
            for side, columns in (("left", left), ("right", right)):
                found = [i for i, column in enumerate(columns) if column.name == name and not column.hidden]
                if len(found) != 1:
                    how = "does not exist in" if not found else "appears more than once in"
                    message = f'column "{name}" specified in USING clause {how} {side} table'
                    raise error_at(tree, errors.UNDEFINED_COLUMN, message)
                places.append(found[0])
            merged.append((places[0], len(left) + places[1]))
        both = left + right
        pairs = tuple(call("=", [Column(a, both[a].type), Column(b, both[b].type)]) for a, b in merged)
        return pairs, merged

    def _merged(
        self, query: hir.Query, named: tuple[Named, ...], merged: list[tuple[int, int]], side: str
    ) -> tuple[hir.Query, tuple[Named, ...]]:
        """Columns that USING makes one: the one with a value in front, the two originals hidden behind their tables."""
        values, names = [], []
        for a, b in merged:
            pair = unified([Column(a, named[a].type), Column(b, named[b].type)], "JOIN/USING")
            chosen = {"": pair[0], "LEFT": pair[0], "RIGHT": pair[1]}.get(side) or Coalesce(tuple(pair), pair[0].type)
            values.append(chosen)
            source = named[b] if side == "RIGHT" else named[a]
            is_of = (source.table or source.is_of) if isinstance(chosen, Column) else None
            names.append(Named(None, named[a].name, chosen.type, is_of=is_of))
        hidden = {place for pair in merged for place in pair}
        kept = tuple(replace(column, hidden=column.hidden or i in hidden) for i, column in enumerate(named))
        mapped = ir.Map(query, tuple(values))
        order = (*range(len(named), len(named) + len(values)), *range(len(named)))
        return ir.Project(mapped, order), (*names, *kept)

    def _check_names(self, left: tuple[Named, ...], right: tuple[Named, ...], tree: exp.Join) -> None:
        again = {column.table for column in left if column.table} & {column.table for column in right if column.table}
        if again:
            message = f'table name "{min(again)}" specified more than once'
            raise error_at(tree, errors.DUPLICATE_ALIAS, message, hint="give one of them an alias")


def _with_ordinality(tree: Tree, item: Tree) -> tuple[Tree, bool]:
    """Whether WITH ORDINALITY counts the rows. The parser takes the last column name for the count's."""
    last = item.args.get("offset")
    if isinstance(last, exp.Identifier):
        item = watch(item.copy())
        item.args["alias"].append("columns", last.copy())
    return item, bool(last or item.args.get("ordinality") or tree.args.get("ordinality"))


def _side_by_side(args: list[hir.HScalar], counted: bool, position: int | None) -> tuple[hir.Query, list[str]]:
    """unnest(a, b): the elements of arrays side by side, the shorter ones filled up with NULLs."""
    arrays = [settled(arg) for arg in args]
    for arg in arrays:
        if arg.type.kind is not Kind.ARRAY:
            message = f"function unnest({', '.join(str(each.type) for each in arrays)}) does not exist"
            raise SqlError(
                errors.UNDEFINED_FUNCTION, message, hint="every argument must be an array", position=position
            )
    sizes = [Coalesce((call("cardinality", [arg]), Literal(0, INT4)), INT4) for arg in arrays]
    with resolving(position):
        series, _, _ = resolve_table("generate_series", [INT4, INT4], ())
    places = ir.FlatMap(UNIT, series.key, (Literal(1, INT4), call("greatest", sizes)), (INT4,))
    place = Column(0, INT4)
    values = [call("subscript", [arg, place]) for arg in arrays]
    if counted:
        values.append(coerce(place, INT8))
    return ir.Project(ir.Map(places, tuple(values)), tuple(range(1, len(values) + 1))), ["unnest"] * len(arrays)


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(each) for each in ("side", "kind", "method", "on", "using"))


def _groups(joins: list[exp.Join]) -> list[list[exp.Join]]:
    """The joins of a FROM clause, a new list from each comma on."""
    groups: list[list[exp.Join]] = [[]]
    for join in joins:
        if _is_comma(join):
            groups.append([])
        groups[-1].append(join)
    return [group for group in groups if group]


def _is_joined(tree: Tree) -> bool:
    """Whether parentheses hold a join or a table instead of a query."""
    if isinstance(tree, exp.Subquery):
        return bool(tree.args.get("joins") or tree.args.get("alias")) or _is_joined(tree.this)
    return isinstance(tree, (exp.Table, exp.Lateral, exp.Unnest))


def _may_be_lateral(item: Tree) -> bool:
    """Whether it may speak of what stands on its left: by LATERAL, as a function, or as a join with one of these."""
    if isinstance(item, exp.Subquery) and _is_joined(item.this):
        inside = [item.this, *(join.this for join in item.this.args.get("joins") or [])]
        return any(_may_be_lateral(each) for each in inside)
    is_function = isinstance(item, exp.Table) and isinstance(item.this, exp.Func)
    return is_function or isinstance(item, exp.Lateral | exp.Unnest)


def _joined(left: hir.Query, right: hir.Query, on: tuple[hir.HScalar, ...], side: str, *, lateral: bool) -> hir.Query:
    if lateral:
        return hir.Lateral(left, right, on, "left" if side == "LEFT" else "inner")
    if side == "":
        product = ir.Join((left, right))
        return ir.Filter(product, on) if on else product
    if side == "RIGHT":
        ours, theirs = len(hir.types(left)), len(hir.types(right))

        def swapped(level: int, index: int, _: object) -> tuple[int, int]:
            moved = index + theirs if index < ours else index - ours
            return level, moved if level == 0 else index

        joined: hir.Query = hir.OuterJoin(right, left, tuple(hir.map_references(each, swapped) for each in on), "left")
        return ir.Project(joined, (*range(theirs, theirs + ours), *range(theirs)))
    return hir.OuterJoin(left, right, on, side.lower())


def _read(collection: Collection) -> hir.Query:
    if not collection.places:
        return ir.Get(collection.id, collection.types)
    stored, chosen = collection.stored, list(collection.places)
    computed: list[Scalar] = []
    for index, earlier in enumerate(collection.earlier):
        if earlier:
            places = (collection.places[index], *earlier)
            to = collection.types[index]
            parts = tuple(coerce(Column(place, stored[place]), to, "explicit") for place in places)
            chosen[index] = len(stored) + len(computed)
            computed.append(Coalesce(parts, to))
    rows: hir.Query = ir.Get(collection.id, stored)
    return ir.Project(ir.Map(rows, tuple(computed)) if computed else rows, tuple(chosen))
