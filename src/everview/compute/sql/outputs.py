"""Outputs that another clause speaks of: by position or by name, in ORDER BY, GROUP BY and DISTINCT ON."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from everview.compute.functions.numbers import integer_of
from everview.compute.sql import hir
from everview.compute.sql.errors import AMBIGUOUS_COLUMN, INVALID_COLUMN_REFERENCE, SYNTAX_ERROR
from everview.compute.sql.forms import identifier
from everview.compute.sql.parse import Tree, error_at


def output_index(tree: Tree, names: Sequence[str], clause: str, values: Sequence[hir.HScalar] = ()) -> int | None:
    """The output that a key names by its position or its name, if it does; the same value may have a name twice."""
    tree = bare(tree)
    place = position_in(tree, len(names), clause)
    if place is not None:
        return place
    if isinstance(tree, exp.Column) and tree.args.get("table") is None and not isinstance(tree.this, exp.Star):
        places = [index for index, name in enumerate(names) if name == identifier(tree.this)]
        if len({values[place] if values else place for place in places}) > 1:
            raise error_at(tree, AMBIGUOUS_COLUMN, f'{clause} "{tree.name}" is ambiguous')
        return places[0] if places else None
    return None


def position_in(tree: Tree, count: int, clause: str) -> int | None:
    """The place of an output among `count`, if a key is a number; no other constant can be a key."""
    constant, sign = tree, 1
    while isinstance(constant, exp.Neg):
        constant, sign = bare(constant.this), -sign
    if not isinstance(constant, (exp.Literal, exp.Boolean, exp.Null)):
        return None
    number_like = isinstance(constant, exp.Literal) and not constant.is_string
    if constant is not tree and not number_like:
        return None  # a sign belongs to a number, and before anything else is an operator
    if not number_like or not constant.this.isdigit():
        raise error_at(tree, SYNTAX_ERROR, f"non-integer constant in {clause}")
    number = sign * integer_of(constant.this)
    if not 1 <= number <= count:
        raise error_at(tree, INVALID_COLUMN_REFERENCE, f"{clause} position {number} is not in select list")
    return number - 1


def bare(tree: Tree) -> Tree:
    """The expression without parentheses around it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree
