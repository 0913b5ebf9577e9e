"""The relations that a query names, and the query with those names written in another way.

A stored query must mean the same for ever: names in it are written in full, and each relation has an alias, so that it
can be given another name later without touching the rest of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from everview.compute.functions.text import FUNCTIONS as _TEXT_FUNCTIONS
from everview.compute.sql.forms import identifier
from everview.compute.sql.parse import Tree, parse_query

Rename = Callable[[Sequence[str]], Sequence[str] | None]

_quote = next(function for function in _TEXT_FUNCTIONS if function.name == "quote_ident").evaluate


def quoted(name: str) -> str:
    """The name as an identifier, in quotes where it needs them."""
    return str(_quote(name))


def qualified(text: str, rename: Rename) -> str:
    """The query with each name for which `rename` gives another replaced by it."""
    edits: list[tuple[int, int, str]] = []
    for table in _tables(parse_query(text)):
        path = [identifier(part) for part in table.parts]
        full = rename(path)
        if full is None:
            continue
        start = min(part.meta["start"] for part in table.parts)
        end = max(part.meta["end"] for part in table.parts) + 1
        alias = "" if table.args.get("alias") is not None else f" AS {quoted(path[-1])}"
        edits.append((start, end, ".".join(map(quoted, full)) + alias))
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _tables(tree: Tree) -> list[Tree]:
    """The nodes that name relations; a name that a WITH in force gives to a query is none."""
    found: list[Tree] = []

    def visit(node: Tree, ctes: frozenset[str]) -> None:
        clause = node.args.get("with_")
        if clause is not None:
            for each in clause.expressions:
                visit(each.this, ctes)
                ctes |= {identifier(each.args["alias"].this)}
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Func):
            if not (len(node.parts) == 1 and identifier(node.parts[0]) in ctes):
                found.append(node)
            children = [*(node.args.get("joins") or []), *(node.args.get("laterals") or [])]
        else:
            children = [child for child in node.iter_expressions() if child is not clause]
        for child in children:
            visit(child, ctes)

    visit(tree, frozenset())
    return found
