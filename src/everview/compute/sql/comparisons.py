"""Comparisons: of values, of rows, and with ANY or ALL of an array or a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.compute.functions.resolve import resolve_table
from everview.compute.functions.temporal import MZ_NOW
from everview.compute.functions.temporal_inverses import can_be_times, times_of
from everview.compute.ir import relation as ir
from everview.compute.ir.scalar import And, Call, Case, Column, Literal, Or
from everview.compute.ir.types import BOOLEAN, INT8, Kind, array_of
from everview.compute.sql import hir
from everview.compute.sql.coerce import call, coerce, resolving, settled
from everview.compute.sql.errors import SYNTAX_ERROR
from everview.compute.sql.parse import Tree, error_at, position_of

if TYPE_CHECKING:
    from everview.compute.sql.expression import Expressions

OPERATORS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
NOW = ("mz_now", "mz_logical_timestamp")
Pairs = Sequence[tuple[hir.HScalar, hir.HScalar]]


def comparison(binder: Expressions, tree: Tree) -> hir.HScalar:
    """Two values, two rows, or one of these and a query or an array of what it is compared with."""
    operator, right = OPERATORS[type(tree)], tree.expression
    every = quantifier(right)
    if every is not None:
        return quantified(binder, tree.this, operator, right, every=every)
    if is_row(tree.this):
        if is_row(right):
            return rows_compared(operator, row_pairs(binder, tree.this, right), position_of(tree.this))
        if isinstance(right, exp.Subquery):
            return binder.row_compared(tree.this, operator, right)
    return binder.call(operator, tree, tree.this, right)


# Rows


def is_row(tree: Tree) -> bool:
    """Whether it is a row of several values, written with ROW or without."""
    return isinstance(tree, exp.Tuple) or (isinstance(tree, exp.Anonymous) and tree.name.lower() == "row")


def row_pairs(binder: Expressions, left: Tree, right: Tree) -> list[tuple[hir.HScalar, hir.HScalar]]:
    """Pair the fields of two rows."""
    lefts, rights = left.expressions, right.expressions
    if len(lefts) != len(rights):
        raise error_at(left, SYNTAX_ERROR, "unequal number of entries in row expressions")
    return [(binder.bind(a), binder.bind(b)) for a, b in zip(lefts, rights, strict=True)]


def rows_compared(operator: str, pairs: Pairs, position: int | None = None) -> hir.HScalar:
    """Compare two rows by their first pair that is not equal. A NULL pair before it makes the result NULL."""
    if len(pairs) == 1:
        return call(operator, pairs[0], position)
    if operator in ("=", "<>"):
        equal = And(tuple(call("=", pair, position) for pair in pairs))
        return equal if operator == "=" else call("not", [equal])
    *leading, last = pairs
    result = call(operator, last, position)
    for pair in reversed(leading):
        decided, equal = (call(name, pair, position) for name in (operator[0], "="))
        result = Or((decided, And((equal, result))))
    return result


# ANY and ALL

_WORDS = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def is_query(tree: Tree) -> bool:
    """Whether a tree is a query. VALUES is one too, which the parser does not count as a query."""
    return isinstance(tree, (exp.Query, exp.Values))


def quantifier(tree: Tree) -> bool | None:
    """Whether an operand is ALL of something, or ANY; before an array the parser takes them for functions."""
    if isinstance(tree, (exp.Any, exp.All)):
        return isinstance(tree, exp.All)
    name = tree.name.lower() if isinstance(tree, exp.Anonymous) and len(tree.expressions) == 1 else ""
    return {"any": False, "some": False, "all": True}.get(name)


def queried_by_quantifier(tree: Tree) -> Tree | None:
    """The query that a comparison with ANY or ALL looks into, if it is one."""
    right = tree.expression
    if quantifier(right) is None:
        return None
    inside = _inside(right)
    return inside if is_query(inside) else None


def speaks_of_now(tree: Tree) -> bool:
    """Whether `mz_now()` is written in an expression."""
    return any(each.name.lower() in NOW for each in tree.find_all(exp.Anonymous))


def _inside(right: Tree) -> Tree:
    """What ANY or ALL is said of."""
    inside = right.expressions[0] if isinstance(right, exp.Anonymous) else right.this
    while isinstance(inside, exp.Paren):
        inside = inside.this
    return inside


def quantified(binder: Expressions, left: Tree, operator: str, right: Tree, *, every: bool) -> hir.HScalar:
    """A value compared with all rows of a query, or with all elements of an array."""
    inside = _inside(right)
    if is_query(inside):
        return binder.quantified(left, operator, inside, every=every)
    value = binder.bind(left)
    if isinstance(inside, exp.Array) and inside.expressions:
        items = [call(operator, [value, binder.bind(each)], position_of(left)) for each in inside.expressions]
        return And(tuple(items)) if every else Or(tuple(items))
    array = binder.bind(inside)
    if array.type.kind is Kind.UNKNOWN:
        of_times = value.type.kind is Kind.MZ_TIMESTAMP  # of which there are no arrays
        array = coerce(array, array_of(INT8 if of_times else settled(value).type), "implicit", position_of(inside))
    name = {("=", False): "any_eq", ("<>", True): "all_ne"}.get((operator, every))
    if name is not None and value.type.kind is not Kind.MZ_TIMESTAMP:
        return call(name, [value, array], position_of(left))
    if isinstance(value, Call) and value.function == MZ_NOW and operator in _WORDS and can_be_times(array.type):
        # In a maintained view it bounds times, as no subquery does. That elements are no times is a failure by itself:
        # the comparison is NULL where some are, and must not look as if it had failed.
        return call(f"{'all' if every else 'any'}_{_WORDS[operator]}", [value, times_of(array)], position_of(left))
    with resolving(position_of(inside)):
        unnest, _, types = resolve_table("unnest", [array.type])
    elements = ir.FlatMap(ir.Constant((((), 1),), ()), unnest.key, (hir.deepened(array),), types)
    compared = call(operator, [hir.deepened(value), Column(0, types[0])], position_of(left))
    answer = binder.decided(elements, compared, every=every)
    missing = call("is null", [array], position_of(inside))
    return Case(((missing, Literal(None, BOOLEAN)),), answer, BOOLEAN)
