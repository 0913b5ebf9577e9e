"""CREATE SOURCE … FROM kind CONNECTION name (…) FOR …: sources with many tables."""

from __future__ import annotations

from everview.adapter.statements import nodes
from everview.adapter.statements.nodes import Statement
from everview.adapter.statements.options import option_value, refuse_repeated, with_options
from everview.adapter.statements.words import Path, Words

_LISTS = ("text columns", "exclude columns")


def parse_connected(words: Words, path: Path, kind: str, *, if_not_exists: bool) -> Statement:
    """After FROM kind CONNECTION."""
    connection = words.path()
    arguments: dict[str, str] = {}
    lists: dict[str, tuple[Path, ...]] = {}
    if words.next.is_symbol("("):
        words.listed(lambda: _option(words, arguments, lists))
    schemas: tuple[str, ...] | None = None
    tables: tuple[tuple[Path, str | None], ...] | None = None
    words.expect("for")
    if words.accept("schemas"):
        schemas = words.names()
    elif words.accept("tables"):
        found: list[tuple[Path, str | None]] = []
        words.listed(lambda: found.append(_table(words)))
        tables = tuple(found)
    else:
        words.expect("all", "tables")
    taken = nodes.SourceTables(
        connection, schemas, tables, lists.get("text columns", ()), lists.get("exclude columns", ())
    )
    options = with_options(words)
    return nodes.CreateSource(path, kind, "", arguments, if_not_exists, options, (), taken)


def _option(words: Words, arguments: dict[str, str], lists: dict[str, tuple[Path, ...]]) -> None:
    """`TEXT COLUMNS (path, …)`, `EXCLUDE COLUMNS (path, …)`, or `name value`."""
    for name in _LISTS:
        if words.sees(*name.split()):
            refuse_repeated(words, name.upper(), given=name in lists)
            words.accept(*name.split())
            words.accept_symbol("=")
            lists[name] = _paths(words)
            return
    name = words.name()
    refuse_repeated(words, name.upper(), given=name in arguments)
    words.accept_symbol("=")
    value = option_value(words)
    if not value:
        raise words.error(f"option {name.upper()} needs a value")
    arguments[name] = value


def _paths(words: Words) -> tuple[Path, ...]:
    found: list[Path] = []
    words.listed(lambda: found.append(words.path()))
    return tuple(found)


def _table(words: Words) -> tuple[Path, str | None]:
    path = words.path()
    return path, words.name() if words.accept("as") else None
