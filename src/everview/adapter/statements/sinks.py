"""CREATE SINK and ALTER SINK, and the places that sinks write to and sources read from."""

from __future__ import annotations

import json
from typing import Any

from everview.adapter.statements import nodes
from everview.adapter.statements.nodes import Place, Statement
from everview.adapter.statements.options import option_value, skip_cluster, with_options
from everview.adapter.statements.words import Path, Words, if_not_exists
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError

FORMATS = ("json", "avro")


def parse_create_sink(words: Words) -> Statement:
    """After CREATE SINK."""
    unless = if_not_exists(words)
    path = words.path()
    skip_cluster(words)
    words.expect("from")
    collection = words.path()
    words.expect("into")
    place = parse_place(words)
    key: tuple[str, ...] = ()
    delta_updates = False
    reductions: dict[str, dict[str, Any]] = {}
    options: dict[str, str] = {}
    while not words.done:
        if words.accept("key"):
            key = words.names()
        elif words.accept("delta", "updates"):
            delta_updates = True
        elif words.accept("reduce"):
            words.listed(lambda: _reduction(words, reductions))
        elif words.sees("with"):
            options = with_options(words)
        else:
            raise words.error("expected KEY, DELTA UPDATES, REDUCE or WITH")
    return nodes.CreateSink(path, collection, place, key, delta_updates, reductions, unless, options)


def _reduction(words: Words, found: dict[str, dict[str, Any]]) -> None:
    """`column BY strategy`, and what else the strategy takes as a JSON object: `doc BY minimize '{"key": ["/a"]}'`."""
    column = words.name()
    words.expect("by")
    token = words.next
    if token.kind != "word":
        raise words.error("expected the name of a reduction")
    words.take()
    if column in found:
        raise SqlError(SYNTAX_ERROR, f'column "{column}" is reduced more than once', position=token.start + 1)
    more: Any = {}
    if words.next.kind == "string":
        position = words.next.start + 1
        try:
            more = json.loads(words.string())
        except ValueError as error:
            raise SqlError("22032", "invalid JSON behind a reduction", detail=str(error), position=position) from error
        if not isinstance(more, dict):
            raise SqlError("22032", "what a reduction takes is a JSON object", position=position)
    found[column] = {**more, "strategy": token.value}


def parse_place(words: Words) -> Place:
    """What stands after INTO, and after FROM of a source: a kind, with what says where."""
    if words.accept("cdc"):
        return _stream(words)
    kind = words.name()
    arguments: dict[str, str] = {}
    if kind == "command":
        arguments["command"] = words.string()
    if words.next.is_symbol("("):
        _arguments(words, arguments)
    return Place(kind, arguments)


def _stream(words: Words) -> Place:
    arguments: dict[str, str] = {}
    if words.one_of("files", "kafka") == "files":
        kind = "cdc files"
        arguments["path"] = words.string()
    else:
        kind = "cdc kafka"
        _arguments(words, arguments)
    if words.accept("format"):
        arguments["format"] = words.one_of(*FORMATS)
    return Place(kind, arguments)


def _arguments(words: Words, found: dict[str, str]) -> None:
    def argument() -> None:
        token = words.next
        if token.kind not in ("word", "quoted"):
            raise words.error("expected the name of an option")
        name = words.take().value
        if name in found:
            message = f"option {name.upper()} specified more than once"
            raise SqlError(SYNTAX_ERROR, message, position=token.start + 1)
        words.accept_symbol("=")
        found[name] = option_value(words)

    words.listed(argument)


def parse_alter_sink(words: Words, path: Path, *, if_exists: bool) -> Statement | None:
    """After ALTER SINK name: what only sinks can; None if it is something else."""
    if words.accept("pause"):
        return nodes.AlterSink(path, "pause", if_exists=if_exists)
    if words.accept("resume"):
        return nodes.AlterSink(path, "resume", if_exists=if_exists)
    if words.accept("set"):
        words.expect_symbol("(")
        words.expect("splits")
        words.accept_symbol("=")
        splits = words.integer()
        words.expect_symbol(")")
        return nodes.AlterSink(path, "splits", splits, if_exists=if_exists)
    return None
