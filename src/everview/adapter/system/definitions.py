"""Objects as the statements that would make them: SHOW CREATE, pg_get_indexdef."""

from __future__ import annotations

from everview.adapter.catalog import items
from everview.adapter.catalog.damage import damage_of
from everview.adapter.catalog.state import Catalog
from everview.adapter.durable import shown_hold
from everview.adapter.replacement_guards import shown_guards
from everview.adapter.retention import shown_retention
from everview.adapter.secrets import HIDDEN
from everview.adapter.sources.registry import kind_of
from everview.adapter.system.locations import create_sink
from everview.compute.sql.references import narrowed, quoted
from everview.quoting import literal
from everview.sources.contract import Spec
from everview.storage.errors import Corruption


def create(catalog: Catalog, item: items.Item) -> str:
    """The statement that would make the item."""
    name = catalog.quoted(item)
    match item:
        case items.Table(columns=columns, ttl=ttl):
            lasting = [] if ttl is None else [f"TTL '{ttl[1]} ms' ON {quoted(columns[ttl[0]].name)}"]
            return f"CREATE TABLE {name} ({_columns(item)}){_with([*_retained(item), *lasting])}"
        case items.View():
            return f"CREATE VIEW {name} ({_names(item)}) AS {definition(catalog, item)}"
        case items.MaterializedView(staged=None):
            text = f"{name} ({_names(item)}){_with(_retained(item))}"
            return f"CREATE MATERIALIZED VIEW {text} AS {definition(catalog, item)}"
        case items.MaterializedView(staged=staged):
            assert staged is not None
            applied = ["APPLY WHEN HYDRATED"] if staged.automatic else []
            target = catalog.quoted(catalog.items[staged.target])
            given = _with([*_retained(item), *applied, *shown_guards(staged.guards)])
            text = f"{name} ({_names(item)}) REPLACING {target}{given}"
            return f"CREATE MATERIALIZED VIEW {text} AS {definition(catalog, item)}"
        case items.Index():
            return create_index(catalog, item)
        case items.Sink():
            return create_sink(catalog, item)
        case items.Secret(origin=origin, value=value):
            if origin == items.SEALED:
                return f"CREATE SECRET {name} AS '{HIDDEN}'"
            return f"CREATE SECRET {name} FROM {'FILE' if origin == items.FILE else 'ENVIRONMENT'} {literal(value)}"
        case items.Connection(to=to, options=options, secrets=secrets):
            said = [f"{option.upper()} {literal(value)}" for option, value in options.items()]
            said += [f"{option.upper()} SECRET {catalog.quoted(catalog.items[id])}" for option, id in secrets.items()]
            return f"CREATE CONNECTION {name} TO {to.upper()} ({', '.join(said)})"
        case items.Subscription(on=on, snapshot=snapshot):
            held = [f"HOLD FOR '{shown_hold(item)}'"] + ([] if snapshot else ["SNAPSHOT = false"])
            return f"CREATE SUBSCRIPTION {name} FOR {catalog.quoted(catalog.items[on])}{_with(held)}"
        case items.Source(spec=items.Part(of, table)):
            return f"CREATE SOURCE {name} FROM SOURCE {of} (TABLE {quoted(table)}){_with(_retained(item))}"
        case items.Source(spec=Spec() as spec):
            kind = kind_of(spec)
            declared = f" ({_columns(item)})" if kind.takes_columns else ""
            where, shown = kind.shown(spec, lambda id: catalog.quoted(catalog.items[id]))
            own = [] if spec.timeline is None else [f"TIMELINE {literal(spec.timeline.name)}"]
            return f"CREATE SOURCE {name}{declared} FROM {where}{_with([*_retained(item), *shown, *own])}"
        case _:
            raise damage_of(item, Corruption("its entry in the catalog is missing"))


def definition(catalog: Catalog, item: items.View | items.MaterializedView) -> str:
    """The query of a view. Where a view that it names has more columns by now, it is written to name those it knows."""
    text = item.query.strip()
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}
    for id in item.depends:
        now, then = catalog.items[id], catalog.seen_by(item, id)
        same = [one for one, other in zip(then.names, now.names, strict=False) if one == other]
        if len(same) < len(now.columns):  # names that there are no more, nobody uses
            seen[catalog.full_name(now)] = tuple(same)
    return narrowed(text, lambda path: seen.get(tuple(path))) if seen else text


def create_index(catalog: Catalog, item: items.Index) -> str:
    """The statement that would make the index."""
    return f"CREATE INDEX {quoted(item.name)} ON {catalog.quoted(catalog.items[item.on])} ({', '.join(item.keys)})"


def index_definition(catalog: Catalog, item: items.Index) -> str:
    """The same as PostgreSQL writes it: tools take it apart at USING."""
    relation = ".".join(map(quoted, catalog.full_name(catalog.items[item.on])[1:]))
    return f"CREATE INDEX {quoted(item.name)} ON {relation} USING btree ({', '.join(item.keys)})"


def _column(column: items.ColumnInfo) -> str:
    text = f"{quoted(column.name)} {column.type}"
    if not column.nullable:
        text += " NOT NULL"
    return text if column.default is None else f"{text} DEFAULT {column.default}"


def _columns(item: items.Item) -> str:
    return ", ".join(map(_column, item.columns))


def _names(item: items.Item) -> str:
    return ", ".join(map(quoted, item.names))


def _retained(item: items.Collection) -> list[str]:
    return [] if item.retain_ms is None else [f"RETAIN HISTORY FOR '{shown_retention(item.retain_ms)}'"]


def _with(options: list[str]) -> str:
    return f" WITH ({', '.join(options)})" if options else ""
