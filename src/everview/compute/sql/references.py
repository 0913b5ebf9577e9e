"""The relations that a query names, and the query with those names written in another way.

A stored query must mean the same for ever: names in it are written in full, and each relation has an alias, so that it
can be given another name later without touching the rest of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from everview.compute.functions.text import quote_identifier
from everview.compute.sql.forms import identifier
from everview.compute.sql.lexer import SqlText
from everview.compute.sql.parse import Tree, parse_query

Rename = Callable[[Sequence[str]], Sequence[str] | None]

# Comments and blanks, and words, strings or anything else. A text that is parsed has closed what it opens.
_WORDS = re.compile(
    r"""(?:\s|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)++
    | (?P<word>\w++|'[^']*+'|"[^"]*+"|(?P<tag>\$(?:[A-Za-z_]\w*+)?\$).*?(?P=tag)|.)""",
    re.VERBOSE | re.DOTALL,
)

# To PostgreSQL these are names, and to the parser they are not.
_WORDS_OF_THE_PARSER = frozenset(
    ("alter", "drop", "glob", "insert", "partitioned_by", "qualify", "regexp", "revoke", "rlike", "rollback", "uncache")
) | {"xor"}


def quoted(name: str) -> str:
    """The name as an identifier, in quotes where it needs them."""
    return f'"{name}"' if name in _WORDS_OF_THE_PARSER else quote_identifier(name)


@dataclass(frozen=True, slots=True)
class Reference:
    """A name of a relation in a query: its parts, where it stands, and whether an alias stands behind it."""

    path: tuple[str, ...]
    start: int
    behind: int
    aliased: bool


def references(tree: Tree) -> list[Reference]:
    """Find the names of relations in a query, without names that WITH gives to queries."""
    found = []
    for table in _tables(tree):
        start = min(part.meta["start"] for part in table.parts)
        behind = max(part.meta["end"] for part in table.parts) + 1
        path = tuple(identifier(part) for part in table.parts)
        found.append(Reference(path, start, behind, table.args.get("alias") is not None))
    return found


@dataclass(frozen=True, slots=True)
class Qualified:
    """A column that is written with a schema: its table, and where its schema and its table's name begin."""

    table: str
    start: int
    behind: int


def columns_with_schemas(tree: Tree) -> list[Qualified]:
    """Find the columns of a query that are written with the schema of their table."""
    found = []
    for column in tree.find_all(exp.Column):
        args = dict(column.args)  # to look is not to read: see `clauses`
        if args.get("db") is not None:
            first, table = args.get("catalog") or args["db"], args["table"]
            found.append(Qualified(identifier(table), first.meta["start"], table.meta["start"]))
    return found


def qualified(text: str, rename: Rename) -> str:
    """The query with each name for which `rename` gives another replaced by it."""
    return edited(text, references(parse_query(text)), rename)


def narrowed(text: str, columns: Callable[[Sequence[str]], Sequence[str] | None]) -> str:
    """The query with each relation for which `columns` gives names having these columns only."""

    def written(path: Sequence[str]) -> str | None:
        names = columns(path)
        if names is None:
            return None
        return f"(SELECT {', '.join(map(quoted, names))} FROM {'.'.join(map(quoted, path))})"

    return _edited(text, references(parse_query(text)), written)


def edited(text: str, names: Sequence[Reference], rename: Rename, columns: Sequence[Qualified] = ()) -> str:
    """Rename relations in a query's text. A renamed relation gets its former name as alias, and columns no schema."""

    def written(path: Sequence[str]) -> str | None:
        full = rename(path)
        return None if full is None else ".".join(map(quoted, full))

    return _edited(text, names, written, columns)


def _edited(
    text: str,
    names: Sequence[Reference],
    written: Callable[[Sequence[str]], str | None],
    columns: Sequence[Qualified] = (),
) -> str:
    offset = text.offset if isinstance(text, SqlText) else 0
    edits = [(each.start - offset, each.behind - offset, "") for each in columns]
    commands = {behind: start for start, behind in _table_commands(text)} if "table" in text.lower() else {}
    for each in names:
        replacement = written(each.path)
        if replacement is None:
            continue
        start = each.start - offset
        alias = "" if each.aliased else f" AS {quoted(each.path[-1])}"
        if start in commands:  # TABLE takes a bare name
            start, replacement = commands[start], f"SELECT * FROM {replacement}"
        edits.append((start, each.behind - offset, replacement + alias))
    pieces, place = [], 0
    for start, behind, replacement in sorted(edits):
        pieces += [text[place:start], replacement]
        place = behind
    return "".join([*pieces, text[place:]])


def _table_commands(text: str) -> Iterator[tuple[int, int]]:
    """Where the word TABLE is, as a query or otherwise, and where the word behind it."""
    before: int | None = None
    for match in _WORDS.finditer(text):
        if match["word"] is None:
            continue
        if before is not None:
            yield before, match.start()
        before = match.start() if match["word"].upper() == "TABLE" else None


def _tables(tree: Tree) -> list[Tree]:
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
