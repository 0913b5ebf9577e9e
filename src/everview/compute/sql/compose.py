"""Syntax trees of queries that nobody wrote: the rows of a relation by its name, a query with conditions around it.

Statements that mean a query, such as TABLE, COPY of a table and SHOW, are bound as such trees. No SQL is put together
from pieces of text.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from everview.compute.ir.types import SqlType
from everview.compute.sql.clauses import watch
from everview.compute.sql.parse import Tree, parse_expression, parse_order, parse_query, parse_type


def name(text: str, position: int | None = None) -> exp.Identifier:
    """A name as it is, and where it stands in the statement."""
    found = exp.Identifier(this=text, quoted=True)
    if position is not None:
        found.meta.update(start=position - 1, end=position - 1)
    return found


def _string(text: str) -> exp.Literal:
    return exp.Literal.string(text)


def relation(
    path: Sequence[str], columns: Sequence[str] = (), position: int | None = None, items: Sequence[Tree] = ()
) -> Tree:
    """`SELECT` of all columns, of some, or of expressions over them, `FROM` a relation."""
    parts = [name(part, position) for part in path]
    table = exp.Table(**dict(zip(("this", "db", "catalog"), reversed(parts), strict=False)))
    shown = [*(exp.Column(this=name(each)) for each in columns), *items]
    return watch(exp.Select(expressions=shown or [exp.Star()], from_=exp.From(this=table)))


def filtered(
    text: str, values: Sequence[str], columns: Sequence[str], order: str, *, like: str | None, where: str | None
) -> Tree:
    """Columns of a query whose parameters have these values, for names that are `like` a pattern and rows `where` …"""
    inner = parse_query(text)
    for place in list(inner.find_all(exp.Parameter)):
        place.replace(_string(values[int(place.name) - 1]))
    conditions: list[Tree] = []
    if like is not None:
        conditions.append(exp.Like(this=exp.column(name("name")), expression=_string(like)))
    if where is not None:
        conditions.append(exp.Paren(this=parse_expression(where)))
    rows = exp.Subquery(this=inner, alias=exp.TableAlias(this=name("objects")))
    shown: list[Tree] = [exp.Column(this=name(each)) for each in columns] or [exp.Star()]
    select = exp.Select(expressions=shown, from_=exp.From(this=rows), order=parse_order(order))
    if conditions:
        both = conditions[0] if len(conditions) == 1 else exp.And(this=conditions[0], expression=conditions[1])
        select.set("where", exp.Where(this=both))
    return watch(select)


def column(called: str, to: SqlType | None = None) -> Tree:
    """A column by its name, cast to a type if one is given."""
    found = exp.Column(this=name(called))
    return found if to is None else _cast(found, to, called)


def null(called: str, to: SqlType) -> Tree:
    """NULL of a type, as a column of this name."""
    return _cast(exp.Null(), to, called)


def _cast(tree: Tree, to: SqlType, called: str) -> Tree:
    return exp.Alias(this=exp.Cast(this=tree, to=parse_type(str(to))), alias=name(called))


def difference(before: Tree, after: Tree, diff: str, limit: int | None) -> Tree:
    """The rows that come to one query and that leave it to give another, in order; `diff` is a column of 1 and -1."""

    def rows(number: Tree, more: Tree, less: Tree) -> Tree:
        rest = exp.Except(this=more.copy(), expression=less.copy(), distinct=False)
        part = exp.Subquery(this=rest, alias=exp.TableAlias(this=name("rows")))
        return exp.Select(expressions=[exp.Alias(this=number, alias=name(diff)), exp.Star()], from_=exp.From(this=part))

    one = exp.Literal.number(1)
    both = exp.Union(
        this=rows(one.copy(), after, before), expression=rows(exp.Neg(this=one.copy()), before, after), distinct=False
    )
    places = (*range(2, len(before.expressions) + 2), 1)
    keys = [exp.Ordered(this=exp.Literal.number(place)) for place in places]
    both.set("order", exp.Order(expressions=keys))
    if limit is not None:
        both.set("limit", exp.Limit(expression=exp.Literal.number(limit)))
    return watch(both)


def ordered(tree: Tree, order: Tree) -> Tree:
    """A query with an ORDER BY."""
    tree.set("order", order)
    return watch(tree)
