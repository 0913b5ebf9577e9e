"""CREATE SINK and ALTER SINK, and the places that sinks write to and sources read from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from everview.adapter.statements import nodes
from everview.adapter.statements.nodes import Place, Statement
from everview.adapter.statements.options import (
    in_cluster,
    listed_options,
    option_list,
    option_name,
    option_value,
    refuse_repeated,
    with_options,
)
from everview.adapter.statements.words import Path, Words, if_not_exists
from everview.adapter.stream_locations import LOCATIONS
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError
from everview.flow.drivers import registry

FORMATS = ("json", "avro")
_ACTIONS: tuple[Literal["pause", "resume", "backfill"], ...] = ("pause", "resume", "backfill")
LEADING = {
    **{name: each.leading for name, each in LOCATIONS.items() if each.leading},
    **registry.LEADING,
}  # the option of a kind that stands first, without its name
STREAMS = [kind.removeprefix("cdc ") for kind in LOCATIONS]


def parse_create_sink(words: Words) -> Statement:
    unless = if_not_exists(words)
    path = words.path()
    in_cluster(words)
    words.expect("from")
    collections = [*words.series(lambda: _collection(words))]
    words.expect("into")
    place = parse_place(words)
    options: dict[str, str] = {}
    while not words.done:
        if words.sees("with"):
            refuse_repeated(words, "WITH", given=bool(options))
            options = with_options(words)
            continue
        position = words.next.start + 1
        changed = _clause(words, collections[0])
        if changed is None:
            raise words.error("expected KEY, DELTA UPDATES, REDUCE or WITH")
        if len(collections) > 1:
            hint = "write KEY, DELTA UPDATES and REDUCE behind each collection, before INTO"
            raise SqlError(SYNTAX_ERROR, "the sink has several collections", hint=hint, position=position)
        collections[0] = changed
    return nodes.CreateSink(path, tuple(collections), place, unless, options)


def _collection(words: Words) -> nodes.SinkCollection:
    """`name (option value, …) KEY (…) DELTA UPDATES REDUCE (…)`, all but the name optional."""
    found = nodes.SinkCollection(words.path(), _arguments(words, {}) if words.next.is_symbol("(") else {})
    while (changed := _clause(words, found)) is not None:
        found = changed
    return found


def _clause(words: Words, found: nodes.SinkCollection) -> nodes.SinkCollection | None:
    """Add the next clause, KEY, DELTA UPDATES or REDUCE, to a collection. None if another word comes."""
    if words.sees("key"):
        refuse_repeated(words, "KEY", given=bool(found.key))
        words.take()
        return replace(found, key=words.names())
    if words.sees("delta", "updates"):
        refuse_repeated(words, "DELTA UPDATES", given=found.delta_updates)
        words.accept("delta", "updates")
        return replace(found, delta_updates=True)
    if words.accept("reduce"):
        reductions: dict[str, Mapping[str, Any]] = dict(found.reductions)
        words.listed(lambda: _reduction(words, reductions))
        return replace(found, reductions=reductions)
    return None


def _reduction(words: Words, found: dict[str, Mapping[str, Any]]) -> None:
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
    is_stream = words.accept("cdc")
    kind = f"cdc {words.one_of(*STREAMS)}" if is_stream else words.name()
    leading = {LEADING[kind]: words.string()} if kind in LEADING else {}
    required = is_stream and not leading
    connection = words.path() if not is_stream and words.accept("connection") else ()
    arguments = _arguments(words, leading) if required or words.next.is_symbol("(") else leading
    if is_stream and words.accept("format"):
        arguments["format"] = words.one_of(*FORMATS)
    return Place(kind, arguments, connection)


def _arguments(words: Words, leading: Mapping[str, str]) -> dict[str, str]:
    """Arguments in parentheses, added to the ones before them."""

    def value(name: str, position: int) -> str:
        words.accept_symbol("=")
        return option_value(words)

    return listed_options(words, lambda: option_name(words), value, leading)


def parse_alter_sink(words: Words, path: Path, *, if_exists: bool) -> Statement | None:
    """Parse ALTER SINK name PAUSE, RESUME, BACKFILL or SET. None for what other objects have as well."""
    for action in _ACTIONS:
        if words.accept(action):
            return nodes.AlterSink(path, action, if_exists=if_exists)
    if words.accept("set"):
        return nodes.AlterSink(path, "set", option_list(words), if_exists=if_exists)
    return None
