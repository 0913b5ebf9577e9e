"""Statements about replacements of materialized views: staging, applying, going back, and looking at the difference."""

from __future__ import annotations

from everview.adapter.statements import nodes
from everview.adapter.statements.nodes import Statement
from everview.adapter.statements.options import skip_cluster, with_options
from everview.adapter.statements.words import Path, Words, if_not_exists


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
    skip_cluster(words)
    options = with_options(words)
    words.expect("as")
    view = nodes.CreateView(path, columns, words.rest(), True, unless, options=options)
    return nodes.CreateReplacement(view, target)


def parse_alter_replacement(words: Words, path: Path) -> Statement | None:
    """After ALTER MATERIALIZED VIEW name, if it is about a replacement."""
    if words.accept("apply", "replacement"):
        return nodes.ApplyReplacement(path, words.path(), with_options(words))
    if words.accept("rollback", "replacement"):
        return nodes.RollbackReplacement(path)
    return None


def parse_difference(words: Words) -> Statement:
    """After SHOW REPLACEMENT DIFF."""
    words.accept("for")
    path = words.path()
    return nodes.ShowReplacementDiff(path, words.integer() if words.accept("limit") else None)
