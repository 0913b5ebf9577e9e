"""Sinks, and sources from change streams, as the statements that would make them, without their secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from everview.adapter.catalog.items import Item
from everview.adapter.catalog.state import Catalog
from everview.compute.sql.references import quoted

_LEADING = {"cdc files": "path", "command": "command"}  # what stands without its name, before the parentheses


def create_sink(catalog: Catalog, item: Item) -> str:
    """The statement that would make the sink."""
    assert item.on is not None
    names = [".".join(map(quoted, catalog.full_name(each))) for each in (item, catalog.items[item.on])]
    parts = [f"CREATE SINK {names[0]} FROM {names[1]} INTO {shown_place(item)}"]
    if item.keys:
        parts.append(f"KEY ({', '.join(map(quoted, item.keys))})")
    if item.source.get("delta"):
        parts.append("DELTA UPDATES")
    if reductions := json.loads(item.source.get("reduce", "{}")):
        parts.append(f"REDUCE ({', '.join(_reduction(name, given) for name, given in reductions.items())})")
    if options := json.loads(item.source["options"]):
        parts.append(f"WITH ({', '.join(f'{name.upper()} {_value(value)}' for name, value in options.items())})")
    return " ".join(parts)


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def shown_place(item: Item) -> str:
    """Where a sink delivers to, or a source reads from."""
    shown = dict(json.loads(item.source["shown"]))
    form = f" FORMAT {shown.pop('format').upper()}" if "format" in shown else ""
    kind = item.source["kind"]
    first = f" {_literal(shown.pop(_LEADING[kind]))}" if kind in _LEADING else ""
    rest = ", ".join(f"{name.upper()} {_literal(value)}" for name, value in shown.items())
    return f"{kind.upper()}{first}{f' ({rest})' if rest else ''}{form}"


def _reduction(column: str, given: Mapping[str, Any]) -> str:
    more = {name: value for name, value in given.items() if name != "strategy"}
    return f"{quoted(column)} BY {given['strategy']}{f' {_literal(json.dumps(more))}' if more else ''}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
