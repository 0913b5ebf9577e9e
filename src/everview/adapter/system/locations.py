"""Sinks, and sources from change streams, as the statements that would make them, without their secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from everview.adapter.catalog.items import Sink
from everview.adapter.catalog.specs import Delivered
from everview.adapter.catalog.state import Catalog
from everview.adapter.statements.sinks import LEADING
from everview.compute.sql.references import quoted
from everview.quoting import literal


def create_sink(catalog: Catalog, item: Sink) -> str:
    """The statement that would make the sink."""
    collections = item.spec.collections
    several = len(collections) > 1
    names = [catalog.quoted(catalog.items[each.collection]) for each in collections]
    clauses = [_clauses(each) for each in collections]
    parts = [f"CREATE SINK {catalog.quoted(item)} FROM"]
    if several:
        given = [f" ({_options(each.shown)})" if each.shown else "" for each in collections]
        parts.append(", ".join("".join(each) for each in zip(names, given, clauses, strict=True)))
    else:
        parts += names
    connection = getattr(item.spec, "connection", None)
    by = None if connection is None else catalog.quoted(catalog.items[connection])
    parts.append(f"INTO {location(item.spec.kind, item.spec.shown, by)}{'' if several else clauses[0]}")
    if options := item.spec.options:
        parts.append(f"WITH ({', '.join(f'{name.upper()} {_value(value)}' for name, value in options.items())})")
    return " ".join(parts)


def _clauses(delivered: Delivered) -> str:
    """How a collection is delivered: KEY, DELTA UPDATES and REDUCE."""
    text = f" KEY ({', '.join(map(quoted, delivered.key))})" if delivered.key else ""
    text += " DELTA UPDATES" if delivered.delta_updates else ""
    reductions = ", ".join(_reduction(name, given) for name, given in delivered.reductions.items())
    return f"{text} REDUCE ({reductions})" if reductions else text


def _options(shown: Mapping[str, str]) -> str:
    return ", ".join(f"{name.upper()} {literal(value)}" for name, value in shown.items())


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def location(kind: str, shown: Mapping[str, str], connection: str | None = None) -> str:
    """Where a sink delivers to, or a source reads from."""
    leading = LEADING.get(kind)
    rest = {name: value for name, value in shown.items() if name not in (leading, "format")}
    first = "" if leading is None or leading not in shown else f" {literal(shown[leading])}"
    form = f" FORMAT {shown['format'].upper()}" if "format" in shown else ""
    by = "" if connection is None else f" CONNECTION {connection}"
    return f"{kind.upper()}{first}{by}{f' ({_options(rest)})' if rest else ''}{form}"


def _reduction(column: str, given: Mapping[str, Any]) -> str:
    more = {name: value for name, value in given.items() if name != "strategy"}
    return f"{quoted(column)} BY {given['strategy']}{f' {literal(json.dumps(more))}' if more else ''}"
