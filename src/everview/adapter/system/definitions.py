"""Objects as the statements that would make them: SHOW CREATE, pg_get_indexdef."""

from __future__ import annotations

from everview.adapter.catalog.items import ColumnInfo, Item
from everview.adapter.catalog.state import Catalog
from everview.adapter.durable import SNAPSHOT, shown_hold
from everview.adapter.guards import shown_guards
from everview.adapter.retention import shown_retention
from everview.adapter.system.places import create_sink, shown_place
from everview.compute.sql.references import narrowed, quoted
from everview.quoting import literal


def create(catalog: Catalog, item: Item) -> str:
    """The statement that would make the item."""
    match item.kind:
        case "table":
            columns = ", ".join(_column(column) for column in item.columns)
            return f"CREATE TABLE {_name(catalog, item)} ({columns}){_options(item)}"
        case "view" | "materialized view":
            columns = ", ".join(quoted(name) for name in item.names)
            query = definition(catalog, item)
            target = "" if item.replaces is None else f" REPLACING {_name(catalog, catalog.items[item.replaces])}"
            name = f"{_name(catalog, item)} ({columns}){target}"
            return f"CREATE {item.kind.upper()} {name}{_options(item)} AS {query}"
        case "index":
            return create_index(catalog, item)
        case "sink":
            return create_sink(catalog, item)
        case "subscription":
            assert item.on is not None
            options = f"HOLD FOR '{shown_hold(item)}'" + (
                "" if item.source[SNAPSHOT] == "true" else ", SNAPSHOT = false"
            )
            names = f"{_name(catalog, item)} FOR {_name(catalog, catalog.items[item.on])}"
            return f"CREATE SUBSCRIPTION {names} WITH ({options})"
        case _:
            columns = f" ({', '.join(map(_column, item.columns))})" if "shown" in item.source else ""
            return f"CREATE {item.kind.upper()} {_name(catalog, item)}{columns} FROM {_source(item)}{_options(item)}"


def definition(catalog: Catalog, item: Item) -> str:
    """The query of a view. Where a view that it names has more columns by now, it is written to name those it knows."""
    text = (item.query or "").strip()
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}
    for id in item.depends:
        now, then = catalog.items[id], catalog.seen_by(item, id)
        same = [one for one, other in zip(then.names, now.names, strict=False) if one == other]
        if len(same) < len(now.columns):  # names that there are no more, nobody uses
            seen[catalog.full_name(now)] = tuple(same)
    return narrowed(text, lambda path: seen.get(tuple(path))) if seen else text


def create_index(catalog: Catalog, item: Item) -> str:
    """The statement that would make the index."""
    assert item.on is not None
    return f"CREATE INDEX {quoted(item.name)} ON {_name(catalog, catalog.items[item.on])} ({', '.join(item.keys)})"


def index_definition(catalog: Catalog, item: Item) -> str:
    """The same as PostgreSQL writes it: tools take it apart at USING."""
    assert item.on is not None
    relation = ".".join(map(quoted, catalog.full_name(catalog.items[item.on])[1:]))
    return f"CREATE INDEX {quoted(item.name)} ON {relation} USING btree ({', '.join(item.keys)})"


def _name(catalog: Catalog, item: Item) -> str:
    return ".".join(map(quoted, catalog.full_name(item)))


def _column(column: ColumnInfo) -> str:
    text = f"{quoted(column.name)} {column.type}"
    if not column.nullable:
        text += " NOT NULL"
    return text if column.default is None else f"{text} DEFAULT {column.default}"


def _options(item: Item) -> str:
    options = [] if item.retain_ms is None else [f"RETAIN HISTORY FOR '{shown_retention(item.retain_ms)}'"]
    if item.ttl is not None:
        place, ttl_ms = item.ttl
        options.append(f"TTL '{ttl_ms} ms' ON {quoted(item.columns[place].name)}")
    options += ["APPLY WHEN HYDRATED"] if item.automatic else []
    options += shown_guards(item.guards)
    options += [f"POLL_MS {item.source['poll_ms']}"] if "poll_ms" in item.source else []
    options += [f"TIMELINE {literal(item.source['timeline'])}"] if "timeline" in item.source else []
    return f" WITH ({', '.join(options)})" if options else ""


def _source(item: Item) -> str:
    if "shown" in item.source:
        return shown_place(item)
    if item.source.get("kind") == "subsource":
        return f"SOURCE {item.source['of']} (TABLE {quoted(item.source['table'])})"
    told = {name: value for name, value in item.source.items() if name not in ("kind", "argument", "start")}
    arguments = ", ".join(f"{name.upper()} {literal(value)}" for name, value in told.items())
    shown = f"{item.source.get('kind', '').upper()} {item.source.get('argument', '').upper()}".strip()
    return f"{shown} ({arguments})" if arguments else shown
