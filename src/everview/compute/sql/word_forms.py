"""Expressions with words of their own inside: EXTRACT, SUBSTRING, TRIM, OVERLAY, LIKE, SIMILAR TO, OVERLAPS.

Also the operators that are another spelling of a function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from everview.compute.functions.contract import Failure
from everview.compute.functions.regex import similar
from everview.compute.ir.scalar import Literal
from everview.compute.ir.types import FLOAT8, TEXT, TIMESTAMPTZ, Kind
from everview.compute.sql import hir
from everview.compute.sql.coerce import call, coerce, settled
from everview.compute.sql.comparisons import quantified, quantifier
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError, unsupported
from everview.compute.sql.parse import Tree, position_of

if TYPE_CHECKING:
    from everview.compute.sql.expression import Expressions


def _like(binder: Expressions, tree: Tree, escape: Tree | None = None) -> hir.HScalar:
    name = "~~*" if isinstance(tree, exp.ILike) else "~~"
    every = quantifier(tree.expression)
    if every is not None:  # NOT LIKE ANY is that it is not LIKE ALL, and what is bound here is negated afterwards
        every = every != bool(tree.args.get("negate"))
        return quantified(binder, tree.this, name, tree.expression, every=every)
    args = [binder.bind(tree.this), binder.bind(tree.expression)]
    if escape is not None:
        args.append(binder.bind(escape))
    return call(name, [settled(arg) for arg in args], position_of(tree))


def _escape(binder: Expressions, tree: exp.Escape) -> hir.HScalar:
    if isinstance(tree.this, exp.SimilarTo):
        return _similar(binder, tree.this, tree.expression)
    matched = _like(binder, tree.this, tree.expression)
    return call("not", [matched]) if tree.this.args.get("negate") else matched


def _similar(binder: Expressions, tree: exp.SimilarTo, escape: Tree | None = None) -> hir.HScalar:
    """SIMILAR TO: a match by the regular expression that its pattern means, which must be there to be looked at."""
    given = [settled(binder.bind(each)) for each in (tree.expression, escape) if each is not None]
    position = position_of(tree)
    if not all(isinstance(each, Literal) and isinstance(each.value, str | None) for each in given):
        hint = "a regular expression may be computed: value ~ pattern"
        raise unsupported("SIMILAR TO a pattern that is no constant", position, hint=hint)
    value, texts = settled(binder.bind(tree.this)), [each.value for each in given]
    if None in texts:
        return call("~", [value, Literal(None, TEXT)], position)
    try:
        pattern = similar(*texts)
    except Failure as failure:
        raise SqlError(failure.sqlstate, failure.message, position=position) from failure
    return call("~", [value, Literal(pattern, TEXT)], position)


def _extract(binder: Expressions, tree: exp.Extract) -> hir.HScalar:
    part, value = Literal(tree.this.name.lower(), TEXT), binder.bind(tree.expression)
    if value.type.kind is Kind.MZ_TIMESTAMP:
        value = coerce(value, TIMESTAMPTZ, "explicit", position_of(tree))
    return call("extract", [part, value], position_of(tree))


def _trim(binder: Expressions, tree: exp.Trim) -> hir.HScalar:
    side = (tree.args.get("position") or "BOTH").upper()
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "btrim")
    return binder.call(name, tree, tree.this, tree.args.get("expression"))


def _overlaps(binder: Expressions, tree: exp.Overlaps) -> hir.HScalar:
    """Two periods, each of its ends, or of a start and how long it lasts."""
    position, ends = position_of(tree), []
    for side in (tree.this, tree.expression):
        if not isinstance(side, exp.Tuple) or len(side.expressions) != 2:
            raise SqlError(SYNTAX_ERROR, "OVERLAPS is between two pairs: (start, end) OVERLAPS (start, end)")
        start, end = (binder.bind(each) for each in side.expressions)
        ends += [start, call("+", [start, end], position) if end.type.kind is Kind.INTERVAL else end]
    return call("overlaps", ends, position)


def _root(name: str) -> Callable[[Expressions, Tree], hir.HScalar]:
    """`|/` and `||/`, which are of floats only."""
    return lambda binder, tree: call(name, [coerce(binder.bind(tree.this), FLOAT8)], position_of(tree))


WORD_FORMS: dict[type, Callable[[Expressions, Any], hir.HScalar]] = {
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.SimilarTo: _similar,
    exp.Extract: _extract,
    exp.Substring: lambda binder, tree: binder.call(
        "substring", tree, tree.this, tree.args.get("start"), tree.args.get("length")
    ),
    exp.Trim: _trim,
    exp.StrPosition: lambda binder, tree: binder.call("position", tree, tree.this, tree.args["substr"]),
    exp.Overlay: lambda binder, tree: binder.call(
        "overlay", tree, tree.this, tree.expression, tree.args.get("from_"), tree.args.get("for_")
    ),
    exp.Overlaps: _overlaps,
    exp.AtTimeZone: lambda binder, tree: binder.call("timezone", tree, tree.args["zone"], tree.this),
    exp.Sqrt: _root("sqrt"),
    exp.Cbrt: _root("cbrt"),
    exp.JSONBDeleteAtPath: lambda binder, tree: binder.call("#-", tree, tree.this, tree.expression),
}
