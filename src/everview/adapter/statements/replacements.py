"""Statements about replacements of materialized views: staging, applying, going back, and looking at the difference."""

from __future__ import annotations

from dataclasses import replace

from everview.adapter.statements import nodes
from everview.adapter.statements.nodes import Statement
from everview.adapter.statements.options import in_cluster, with_options
from everview.adapter.statements.words import Path, Words, if_not_exists
from everview.compute.functions.input import FALSE, TRUE
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError

_SWITCHES = {"allow": "errors", "forward": "time"}  # by their words


def parse_replacement(words: Words) -> Statement:
    """After CREATE REPLACEMENT MATERIALIZED VIEW."""
    unless = if_not_exists(words)
    path = words.path()
    columns = words.names() if words.next.is_symbol("(") else ()
    words.expect("for")
    return replacing(words, path, columns, unless=unless)


def replacing(words: Words, path: Path, columns: tuple[str, ...], *, unless: bool) -> Statement:
    """After CREATE MATERIALIZED VIEW … REPLACING: the view that is replaced, and the new definition."""
    target = words.path()
    in_cluster(words)
    options = _options(words)
    words.expect("as")
    view = nodes.CreateView(path, columns, words.rest(), True, unless, options=options)
    return nodes.CreateReplacement(view, target)


def _options(words: Words) -> dict[str, str]:
    """The options of WITH, where a switch may have a value: `ALLOW ERRORS = true` is ALLOW ERRORS."""
    options = with_options(words)
    for name, value in _SWITCHES.items():
        given = options.pop(f"{name} {value}", None)
        if given is None:
            continue
        if given.lower() not in (*TRUE, *FALSE):
            option = f"{name} {value}".upper()
            raise SqlError("22023", f'invalid {option}: "{given}"', hint=f"{option} is true or false")
        if name in options:
            raise SqlError(SYNTAX_ERROR, f"option {name.upper()} {value.upper()} specified more than once")
        if given.lower() in TRUE:
            options[name] = value
    return options


def parse_alter_replacement(words: Words, path: Path) -> Statement | None:
    """After ALTER MATERIALIZED VIEW name, if it is about a replacement."""
    if words.next.is_symbol(",") or words.sees("apply", "replacement"):
        return _apply(words, path)
    if words.accept("rollback", "replacement"):
        return nodes.RollbackReplacement(path, words.integer() if words.accept("to", "version") else None)
    return None


def _apply(words: Words, path: Path) -> Statement:
    """After ALTER MATERIALIZED VIEW name: `[, name …] APPLY REPLACEMENT name [, name …] [WITH (…)]`."""
    targets = [path]
    while words.accept_symbol(","):
        targets.append(words.path())
    words.expect("apply", "replacement")
    replacements = words.series(words.path)
    if len(targets) != len(replacements):
        raise SqlError(
            SYNTAX_ERROR,
            f"{len(targets)} materialized views and {len(replacements)} replacements are named",
            hint="name as many replacements as views, in the same order",
        )
    options = _options(words)
    first, *rest = (nodes.ApplyReplacement(*each, options) for each in zip(targets, replacements, strict=True))
    return replace(first, also=tuple(rest))


def parse_difference(words: Words) -> Statement:
    words.accept("for")
    path = words.path()
    return nodes.ShowReplacementDiff(path, words.integer() if words.accept("limit") else None)
