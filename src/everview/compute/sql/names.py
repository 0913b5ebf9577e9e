"""The names of outputs without an alias, as PostgreSQL chooses them."""

from __future__ import annotations

from sqlglot import exp

from everview.compute.functions.naming import short_name
from everview.compute.sql.datatypes import bind_type
from everview.compute.sql.forms import identifier
from everview.compute.sql.parse import Tree
from everview.compute.sql.session_forms import WORDS, object_cast

NAMELESS = "?column?"
_WORDS: dict[type, str] = {
    exp.Exists: "exists",
    exp.Extract: "extract",
    exp.Substring: "substring",
    exp.StrPosition: "position",
    exp.Overlay: "overlay",
    exp.Overlaps: "overlaps",
    exp.Array: "array",
    exp.AtTimeZone: "timezone",
    **WORDS,
}
_SIDES = {"LEADING": "ltrim", "TRAILING": "rtrim"}


def output_name(tree: Tree) -> str:
    return _named(tree)[0]


def _named(tree: Tree) -> tuple[str, bool]:
    """The name, and whether it stands against a cast or a CASE around."""
    match tree:
        case exp.Column():
            return identifier(tree.this), True
        case exp.Paren() | exp.Bracket() | exp.Filter() | exp.Window() | exp.Collate() | exp.WithinGroup():
            return _named(tree.this)
        case exp.Dot(expression=exp.Identifier() as field):
            return identifier(field), True
        case exp.Dot():
            return _named(tree.expression)
        case exp.Anonymous():
            is_word = tree.name[:1].isalpha() or tree.name[:1] == "_"
            return (tree.name.lower(), True) if is_word else (NAMELESS, False)
        case exp.Cast():
            name, strong = _named(tree.this)
            return (name, True) if strong else (_type_name(tree), False)
        case exp.Case():
            default = tree.args.get("default")
            name, strong = (NAMELESS, False) if default is None else _named(default)
            return (name, True) if strong else ("case", False)
        case exp.Trim():
            return _SIDES.get((tree.args.get("position") or "").upper(), "btrim"), True
        case exp.Subquery():
            return _first_of(tree.this)
        case exp.Interval():
            return "interval", False
        case _:
            name = _WORDS.get(type(tree), NAMELESS)
            return name, name != NAMELESS


def _first_of(tree: Tree) -> tuple[str, bool]:
    while isinstance(tree, (exp.Subquery, exp.SetOperation)):
        tree = tree.this
    if isinstance(tree, exp.Values):
        return "column1", True
    first = tree.expressions[0] if isinstance(tree, exp.Select) else None
    if first is None:
        return NAMELESS, False
    return (identifier(first.args["alias"]), True) if isinstance(first, exp.Alias) else (_named(first)[0], True)


def _type_name(tree: exp.Cast) -> str:
    kind = object_cast(tree.to)
    if kind is not None:
        return kind
    to = bind_type(tree.to)
    return short_name(to.element or to)
