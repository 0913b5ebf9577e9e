"""Syntax trees of queries that nobody wrote: the rows of a relation by its name, a query with conditions around it.

Statements that mean a query, such as TABLE, COPY of a table and SHOW, are bound as such trees. No SQL is put together
from pieces of text.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from everview.compute.sql.clauses import watch
from everview.compute.sql.parse import Tree, parse_expression, parse_order, parse_query


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


def ordered(tree: Tree, order: Tree) -> Tree:
    """A query with an ORDER BY."""
    tree.set("order", order)
    return watch(tree)
