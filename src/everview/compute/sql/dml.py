"""INSERT, UPDATE and DELETE: to a relation of the rows that come, or that change, in the types of their table.

The rows of an INSERT are rows of the table. Those of an UPDATE are each old row with the new one behind it, those of a
DELETE old rows. RETURNING is a relation over the collection `RETURNED`, which holds the rows that were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from everview.compute.functions.casts import CastContext, assignment_key, cast_between
from everview.compute.functions.naming import base
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Call, Column, Literal
from everview.compute.ir.types import TEXT, Kind, SqlType
from everview.compute.sql import errors, hir
from everview.compute.sql.clauses import changes_nothing, watch
from everview.compute.sql.coerce import coerce
from everview.compute.sql.errors import SqlError, did_you_mean, unsupported
from everview.compute.sql.expression import Expressions
from everview.compute.sql.forms import identifier, settled_unless_literal
from everview.compute.sql.from_clause import UNIT, From
from everview.compute.sql.hosting import Parameter
from everview.compute.sql.lower import lower
from everview.compute.sql.parse import Tree, check_all_read, error_at, parse_expression, position_of, query_tree
from everview.compute.sql.query import Plan, Queries, cells, open_column
from everview.compute.sql.scope import Catalog, Collection, Scope

RETURNED = "returned"


@dataclass(frozen=True, slots=True)
class Target:
    """The table that is written: its name in full, its columns, and the text of their defaults."""

    id: str
    path: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    defaults: tuple[str | None, ...]


class ChangeKind(Enum):
    """What a statement does to the rows of a table."""

    INSERT, UPDATE, DELETE = "insert", "update", "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """A bound statement: what it does to which table, the relation of its rows, and what it gives back."""

    kind: ChangeKind
    target: Target
    relation: Relation
    returning: Plan | None


FindTarget = Callable[[Sequence[str], int | None], Target]


def bind_change(text: str, catalog: Catalog, find: FindTarget) -> Change:
    binder = _Binder(catalog, find)
    with query_tree(text) as tree:
        match tree:
            case exp.Insert():
                return binder.insert(tree)
            case exp.Update():
                return binder.update(tree)
            case exp.Delete():
                return binder.delete(tree)
            case _:
                raise error_at(tree, errors.SYNTAX_ERROR, "INSERT, UPDATE or DELETE was expected")


def default_row(target: Target, catalog: Catalog) -> Change:
    """INSERT of one row with the default of each column."""
    row: list[hir.HScalar | None] = [None] * len(target.names)
    return Change(ChangeKind.INSERT, target, lower(_Binder(catalog, _no_target)._rows(target, [row])), None)


def delete_all(target: Target) -> Change:
    return Change(ChangeKind.DELETE, target, ir.Get(target.id, target.types), None)


def _no_target(path: Sequence[str], position: int | None) -> Target:
    raise AssertionError(path)


def bind_scalar(text: str, to: SqlType, column: str, catalog: Catalog) -> hir.HScalar:
    """An expression over no columns, assigned to a column: what a DEFAULT says."""
    tree = parse_expression(text)
    expressions = Expressions(Scope(), Queries(catalog).bind, clause="DEFAULT expressions")
    scalar = assigned(expressions.bind(tree), to, column, None)
    check_all_read(tree)
    if hir.has_subquery(scalar):
        raise unsupported("a subquery in a DEFAULT expression")
    return scalar


def assigned(scalar: hir.HScalar, to: SqlType, column: str, position: int | None) -> hir.HScalar:
    """The scalar as a value stored in a column: text that is too long fails instead of being cut."""
    if isinstance(scalar, Parameter):
        scalar = scalar.decided(to)
    if isinstance(scalar, Literal) and scalar.value is None:
        return Literal(None, to)
    if scalar.type.kind is Kind.UNKNOWN:
        limited = to.kind in (Kind.VARCHAR, Kind.CHAR)
        scalar = coerce(scalar, TEXT if limited else to, "explicit", position)
    if scalar.type == to:
        return scalar
    cast = cast_between(scalar.type, to)
    if cast is None or cast.context > CastContext.ASSIGNMENT:
        message = f'column "{column}" is of type {base(to)} but expression is of type {base(scalar.type)}'
        hint = "rewrite or cast the expression"
        raise SqlError(errors.DATATYPE_MISMATCH, message, hint=hint, position=position)
    key = assignment_key(scalar.type, to)
    return coerce(scalar, to, "assignment", position) if key is None else Call(key, (scalar,), to)


class _Binder:
    def __init__(self, catalog: Catalog, find: FindTarget) -> None:
        self._catalog, self._find = catalog, find
        self._queries = Queries(catalog)

    def insert(self, tree: exp.Insert) -> Change:
        if tree.args.get("conflict") is not None:
            hint = "tables have no unique keys, so rows never conflict"
            raise unsupported("ON CONFLICT", position_of(tree.args["conflict"]), hint=hint)
        schema = tree.this
        table = schema.this if isinstance(schema, exp.Schema) else schema
        target = self._find(_path(table), position_of(table))
        named = schema.expressions if isinstance(schema, exp.Schema) else []
        places = self._places(target, named) if named else None
        source = tree.args.get("expression")
        if source is None:
            changes_nothing(tree, "default")  # VALUES: all columns have theirs
            relation: hir.Query = self._rows(target, [[None] * len(target.names)])
        elif _plain_values(source) and tree.args.get("with_") is None:
            relation = self._values(target, places, source)
        else:
            if tree.args.get("with_") is not None:
                source.set("with_", tree.args["with_"])
            relation = self._selected(target, places, source)
        alias = table.args.get("alias")
        if alias is not None:
            changes_nothing(alias, "this")  # unless RETURNING uses it
        return Change(ChangeKind.INSERT, target, lower(relation), self._returning(tree, target, alias))

    def update(self, tree: exp.Update) -> Change:
        target = self._find(_path(tree.this), position_of(tree.this))
        source = tree.args.get("from_")
        query, expressions = self._matching(tree, [] if source is None else [source.this])
        values: list[hir.HScalar | None] = [None] * len(target.names)
        for place, value in self._assignments(target, tree):
            name, to = target.names[place], target.types[place]
            if values[place] is not None:
                raise error_at(value, errors.SYNTAX_ERROR, f'multiple assignments to same column "{name}"')
            if _is_default(value):
                values[place] = self._default(target, place)
            else:
                values[place] = assigned(expressions.bind(value), to, name, position_of(value))
        width, before = len(target.names), len(hir.types(query))
        new = [Column(i, target.types[i]) if value is None else value for i, value in enumerate(values)]
        both: hir.Query = ir.Project(ir.Map(query, tuple(new)), (*range(width), *range(before, before + width)))
        if source is None:
            relation = lower(both)
        else:  # one partner is enough, and which one of several is not said
            chosen = lower(ir.TopK(both, tuple(range(width)), (), 1))
            relation = self._as_often_as_there(target, chosen, range(width, 2 * width))
        return Change(ChangeKind.UPDATE, target, relation, self._returning(tree, target, tree.this.args.get("alias")))

    def delete(self, tree: exp.Delete) -> Change:
        target = self._find(_path(tree.this), position_of(tree.this))
        using = list(tree.args.get("using") or [])
        query, _ = self._matching(tree, using)
        relation = lower(query)
        if using:  # a row goes if it has a partner, once however many partners it has
            old = tuple(Column(place, each) for place, each in enumerate(target.types))
            relation = self._as_often_as_there(target, ir.Reduce(relation, old), ())
        return Change(ChangeKind.DELETE, target, relation, self._returning(tree, target, tree.this.args.get("alias")))

    def _matching(self, tree: Tree, others: list[Tree]) -> tuple[hir.Query, Expressions]:
        """The rows of the table that the WHERE clause chooses, each with its partners among the other items behind."""
        joins: list[Tree] = []
        for each in others:
            item = watch(each.copy())
            own = item.args.pop("joins", None) or []
            joins += (exp.Join(this=item), *own)
        clause = exp.Select(from_=exp.From(this=tree.this), joins=joins)
        query, named = From(Scope(), self._catalog, self._queries.bind).bind(clause)
        expressions = Expressions(Scope().with_columns(named), self._queries.bind, clause="WHERE")
        where = tree.args.get("where")
        if where is not None:
            query = ir.Filter(query, tuple(expressions.conjuncts(where.this)))
        return query, expressions

    def _as_often_as_there(self, target: Target, chosen: Relation, more: Iterable[int]) -> Relation:
        """The rows of a table that are chosen, as often as the table has them, with more columns of what chose them."""
        width = len(target.names)
        old = [Column(place, each) for place, each in enumerate(target.types)]
        same = tuple((each, Column(width + each.index, each.type)) for each in old)
        joined = ir.Join((ir.Get(target.id, target.types), chosen), nullsafe=same)
        return ir.Project(joined, (*range(width), *(width + place for place in more)))

    # The columns of the target

    def _places(self, target: Target, named: Sequence[Tree]) -> list[int]:
        places = []
        for each in named:
            place = self._place(target, identifier(each), position_of(each))
            if place in places:
                raise error_at(each, errors.DUPLICATE_COLUMN, f'column "{identifier(each)}" specified more than once')
            places.append(place)
        return places

    def _place(self, target: Target, name: str, position: int | None) -> int:
        if name not in target.names:
            message = f'column "{name}" of the table does not exist'
            raise SqlError(errors.UNDEFINED_COLUMN, message, hint=did_you_mean(name, target.names), position=position)
        return target.names.index(name)

    def _assignments(self, target: Target, tree: exp.Update) -> list[tuple[int, Tree]]:
        result = []
        for each in tree.expressions:
            if not isinstance(each, exp.EQ):
                raise error_at(each, errors.SYNTAX_ERROR, "SET column = value was expected")
            columns = each.this.expressions if isinstance(each.this, exp.Tuple) else [each.this]
            values = each.expression.expressions if isinstance(each.expression, exp.Tuple) else [each.expression]
            if len(columns) != len(values):
                raise error_at(each, errors.SYNTAX_ERROR, "number of columns does not match number of values")
            for column, value in zip(columns, values, strict=True):
                if isinstance(column, exp.Bracket | exp.Dot):
                    raise unsupported("an assignment to a part of a value", position_of(column))
                if not isinstance(column, exp.Column) or column.args.get("table") is not None:
                    message, hint = "SET takes the name of a column of the table", "leave the name of the table out"
                    raise error_at(column, errors.SYNTAX_ERROR, message, hint=hint)
                place = self._place(target, identifier(column.this), position_of(column))
                result.append((place, value))
        return result

    def _default(self, target: Target, place: int) -> hir.HScalar:
        text, to = target.defaults[place], target.types[place]
        return Literal(None, to) if text is None else bind_scalar(text, to, target.names[place], self._catalog)

    # The rows of an INSERT

    def _values(self, target: Target, places: list[int] | None, tree: exp.Values) -> hir.Query:
        expressions = Expressions(Scope(), self._queries.bind, clause="VALUES")
        rows = []
        for row in tree.expressions:
            given = cells(row)
            into = self._into(target, places, len(given), position_of(row))
            line: list[hir.HScalar | None] = [None] * len(target.names)
            for place, cell in zip(into, given, strict=True):
                if not _is_default(cell):
                    value = expressions.bind(cell)
                    line[place] = assigned(value, target.types[place], target.names[place], position_of(cell))
            rows.append(line)
        return self._rows(target, rows)

    def _into(self, target: Target, places: list[int] | None, count: int, position: int | None) -> list[int]:
        width = len(target.names) if places is None else len(places)
        if count > width:
            message = "INSERT has more expressions than target columns"
            raise SqlError(errors.SYNTAX_ERROR, message, position=position)
        if places is not None and count < width:
            message = "INSERT has more target columns than expressions"
            raise SqlError(errors.SYNTAX_ERROR, message, position=position)
        return list(range(count)) if places is None else places

    def _rows(self, target: Target, rows: list[list[hir.HScalar | None]]) -> hir.Query:
        filled = [
            tuple(self._default(target, place) if cell is None else cell for place, cell in enumerate(row))
            for row in rows
        ]
        if all(isinstance(cell, Literal) for row in filled for cell in row):
            return ir.Constant(tuple((tuple(cell.value for cell in row), 1) for row in filled), target.types)
        return ir.Union(tuple(ir.Map(UNIT, row) for row in filled))

    def _selected(self, target: Target, places: list[int] | None, tree: Tree) -> hir.Query:
        query, _ = self._queries.bind_open(tree, Scope())
        columns = hir.columns(query)
        into = self._into(target, places, len(columns), position_of(tree))
        row: list[hir.HScalar] = [self._default(target, place) for place in range(len(target.names))]
        for index, place in enumerate(into):
            value = settled_unless_literal(open_column(query, columns[index]))
            row[place] = assigned(value, target.types[place], target.names[place], position_of(tree))
        return hir.mapped(query, row)

    def _returning(self, tree: Tree, target: Target, alias: Tree | None) -> Plan | None:
        clause = tree.args.get("returning")
        if clause is None:
            return None
        source = exp.Table(this=exp.to_identifier(RETURNED, quoted=True))
        if alias is not None:
            source.set("alias", exp.TableAlias(this=alias.this.copy()))
        select = exp.Select(expressions=list(clause.expressions), from_=exp.From(this=source))
        try:
            return Queries(_Returned(self._catalog, target)).plan(select)
        except SqlError as error:
            if error.sqlstate == errors.UNDEFINED_TABLE and (tree.args.get("from_") or tree.args.get("using")):
                error.hint = "RETURNING can give the columns of the table that is written"
            raise


class _Returned:
    """A catalog with the rows that were written in it."""

    def __init__(self, catalog: Catalog, target: Target) -> None:
        self._catalog = catalog
        self._returned = Collection(RETURNED, target.names, target.types, path=target.path)

    def find(self, path: Sequence[str]) -> Collection | None:
        return self._returned if list(path) == [RETURNED] else self._catalog.find(path)

    def names(self) -> list[str]:
        return list(self._catalog.names())


def _path(table: Tree | None) -> list[str]:
    """The name of the table that a statement changes. The parser finds no table in a DELETE without FROM."""
    if not isinstance(table, exp.Table) or isinstance(table.this, exp.Func):
        position = position_of(table) if isinstance(table, exp.Expression) else None
        raise SqlError(errors.SYNTAX_ERROR, "the name of a table was expected", position=position)
    return [identifier(part) for part in table.parts]


def _plain_values(tree: Tree) -> bool:
    return isinstance(tree, exp.Values) and not any(
        tree.args.get(clause) for clause in ("order", "limit", "offset", "with_", "alias")
    )


def _is_default(tree: Tree) -> bool:
    """The word DEFAULT, which sqlglot takes for a variable or a column."""
    if isinstance(tree, exp.Column):
        quoted = tree.this.args.get("quoted") if tree.args.get("table") is None else True
        return not quoted and tree.name.lower() == "default"
    return isinstance(tree, exp.Var) and tree.name.upper() == "DEFAULT"
