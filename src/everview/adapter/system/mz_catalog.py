"""mz_catalog, mz_internal and mz_introspection: what the system itself knows, beyond what PostgreSQL has words for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from everview.adapter.catalog.items import Index, Item, MaterializedView, Source, Table, oid_of
from everview.adapter.catalog.items import View as ViewItem
from everview.adapter.catalog.state import SYSTEM_SCHEMA_IDS
from everview.adapter.statement_context import timestamp_of
from everview.adapter.system.definitions import create, definition
from everview.adapter.system.functions import schema_oid, system_oid
from everview.adapter.system.mz_delivery import type_of
from everview.adapter.system.pg_types import type_modifier, type_oid
from everview.adapter.system.relation import Row, SystemRelation, View, named, relations_of
from everview.compute.engine.progress import Hydration
from everview.compute.ir.types import Interval
from everview.storage.contract import Frontier

CLUSTER, REPLICA = "c1", "r1"
_RELATIONS = (Table, ViewItem, MaterializedView, Source)


def _kind(item: Item) -> str:
    return item.kind.replace(" ", "-")


def _items(view: View, *kinds: type[Item]) -> Iterator[Item]:
    return (item for item in view.around.catalog.items.values() if isinstance(item, kinds or Item))


def _owner(view: View, name: str) -> str | None:
    role = view.around.catalog.role(name)
    return None if role is None else role.id


def _objects(view: View, *kinds: type[Item]) -> Iterable[Row]:
    from everview.adapter.system.registry import RELATIONS

    for item in _items(view, *kinds):
        yield (item.id, oid_of(item.id), item.schema, item.name, _kind(item), _owner(view, item.owner))
    for schema, name in RELATIONS:
        yield (f"{schema}.{name}", system_oid(schema, name), SYSTEM_SCHEMA_IDS[schema], name, "view", None)


def _tables(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(Table):
        place, ttl_ms = item.ttl or (None, None)
        column = None if place is None else item.columns[place].name
        yield (*named(view, item), create(view.around.catalog, item), column, ttl_ms)


def _views(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(ViewItem):
        catalog = view.around.catalog
        yield (*named(view, item), definition(catalog, item), create(catalog, item))


def _materialized_views(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(MaterializedView):
        catalog = view.around.catalog
        yield (*named(view, item), CLUSTER, definition(catalog, item), create(catalog, item), item.replaces)


def _versions(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(MaterializedView):
        for each in item.versions if item.replaces is None else ():
            names = [column.name for column in each.columns]
            yield (item.id, each.number, each.id, each.number == item.version, names, each.query)


def _sources(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(Source):
        yield (*named(view, item), type_of(item), CLUSTER, create(view.around.catalog, item))


def _indexes(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(Index):
        keys = list(item.keys)
        yield (item.id, oid_of(item.id), item.name, item.on, CLUSTER, _owner(view, item.owner), keys)


def _columns(view: View) -> Iterable[Row]:
    from everview.adapter.system.registry import RELATIONS

    for item in _items(view):
        for number, info in enumerate(item.columns):
            modifier, default = type_modifier(info.type), info.default
            shown = str(info.type)
            oid = type_oid(info.type)
            yield (item.id, info.name, number + 1, info.nullable, shown, default, oid, modifier)
    for (schema, name), relation in RELATIONS.items():
        for number, (column, each) in enumerate(relation.columns):
            id = f"{schema}.{name}"
            yield (id, column, number + 1, True, str(each), None, type_oid(each), type_modifier(each))


def _schemas(view: View) -> Iterable[Row]:
    for name, id in SYSTEM_SCHEMA_IDS.items():
        yield (id, schema_oid(id), None, name, None)
    for schema in view.around.catalog.schemas.values():
        yield (schema.id, oid_of(schema.id), schema.database, schema.name, _owner(view, schema.owner))


def _databases(view: View) -> Iterable[Row]:
    for each in view.around.catalog.databases.values():
        yield (each.id, oid_of(each.id), each.name, _owner(view, each.owner))


def _roles(view: View) -> Iterable[Row]:
    for each in view.around.catalog.roles.values():
        yield (each.id, oid_of(each.id), each.name, each.login, each.superuser)


def _events(view: View) -> Iterable[Row]:
    for each in view.coordinator.catalog.events():
        details = json.dumps(dict(each.details), sort_keys=True, separators=(", ", ": "))
        kind = each.object.replace(" ", "-")
        yield (each.number, each.kind.value, kind, details, each.user, timestamp_of(each.at_ms))


def _number(frontier: Frontier) -> int | None:
    return None if frontier.empty else frontier.only


def _frontiers(view: View) -> Iterable[Row]:
    for item in _items(view):
        if item.reader is not None:
            found = view.coordinator.frontiers(item.id)
            if found is not None:
                yield (item.id, _number(found.since), _number(found.upper))


def _hydration(view: View) -> Iterable[Row]:
    for item in _items(view, MaterializedView, Index, Source):
        yield (
            item.id,
            REPLICA,
            view.coordinator.hydrated(item),
            *_progress(view.coordinator.maintenance.hydration(item.id)),
        )


def _progress(hydration: Hydration | None) -> Row:
    """Rows read, of how many, since when and for how long still; NULL as far as it is not known."""
    if hydration is None:
        return (None, None, None, None)
    left = None if hydration.left_s is None else _seconds(hydration.left_s)
    return (hydration.rows_read, hydration.rows_total, _seconds(hydration.running_s), left)


def _seconds(seconds: float) -> Interval:
    return Interval(0, 0, round(seconds * 1_000) * 1_000)


def _dependencies(view: View) -> Iterable[Row]:
    for item in _items(view):
        for each in item.depends:
            yield (item.id, each)


def _replacements(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(MaterializedView):
        if item.staged is None:
            continue
        own, target = view.coordinator.frontiers(item.id), view.coordinator.frontiers(item.staged.target)
        staged, status = view.coordinator.replacements.change(item), view.coordinator.replacements.status(item)
        yield (
            *(item.id, item.staged.target, item.staged.automatic, view.coordinator.hydrated(item)),
            *((None, None) if own is None else (_number(own.since), _number(own.upper))),
            None if target is None else _number(target.upper),
            *((None, None, None) if staged is None else (staged.rows_added, staged.rows_removed, staged.bytes)),
            *(status.status, status.error, status.target_error),
            *_progress(view.coordinator.maintenance.hydration(item.id)),
        )


def _comments(view: View) -> Iterable[Row]:
    catalog = view.around.catalog
    for (id, column), text in catalog.comments.items():
        item = catalog.items.get(id)
        kind = _kind(item) if item else "schema" if id in catalog.schemas else "database"
        yield (id, kind, column or None, text)


def _subscriptions(view: View) -> Iterable[Row]:
    for each in view.coordinator.subscriptions():
        yield (str(each.number), str(each.session), CLUSTER, timestamp_of(each.created_at_ms), list(each.objects))


def _sessions(view: View) -> Iterable[Row]:
    for each in view.coordinator.sessions():
        yield (
            *(str(each.number), each.number, _owner(view, each.user)),
            *(timestamp_of(each.connected_at_ms), each.application, each.running),
        )


def _timelines(view: View) -> Iterable[Row]:
    """The timeline that each relation is on; NULL is the environment's."""
    for item in _items(view, *_RELATIONS):
        yield (item.id, view.around.catalog.timeline(item.id))


def _lag(view: View) -> Iterable[Row]:
    """How far each collection is behind the wall clock; one that is complete for ever is not.

    The times of a change stream may be any numbers, so what is on its timeline is left out.
    """
    for item in _items(view):
        if view.around.catalog.timeline(item.id) is not None:
            continue
        found = view.coordinator.frontiers(item.id) if item.reader is not None else None
        if found is None:
            continue
        late = 0 if found.upper.empty else max(0, view.coordinator.now_ms - (found.upper.only - 1))
        yield (item.id, Interval(0, 0, late * 1_000), timestamp_of(view.coordinator.now_ms))


def _materialization_lag(view: View) -> Iterable[Row]:
    """How far each view is behind what it is made from."""
    catalog = view.around.catalog
    for item in catalog.of(MaterializedView):
        own = view.coordinator.frontiers(item.id)
        roots = [found for root in catalog.roots(item.id) if (found := view.coordinator.frontiers(root))]
        uppers = [found.upper.only for found in roots if not found.upper.empty]
        if own is None or own.upper.empty or not uppers:
            continue
        late = Interval(0, 0, max(0, min(uppers) - own.upper.only) * 1_000)
        yield (item.id, late, late)


_catalog, _internal = relations_of("mz_catalog"), relations_of("mz_internal")


_PROGRESS = "rows_read, rows_total int8, running_for, time_left interval"
_FIRST = "id text, oid oid, schema_id, name"
_OBJECT = f"{_FIRST}, type, owner_id text"
RELATIONS: tuple[SystemRelation, ...] = (
    _catalog("mz_objects", _OBJECT, _objects),
    _catalog("mz_relations", _OBJECT, lambda view: _objects(view, *_RELATIONS)),
    _catalog("mz_tables", f"{_FIRST}, owner_id, create_sql, ttl_column text, ttl_ms int8", _tables),
    _catalog("mz_views", f"{_FIRST}, owner_id, definition, create_sql text", _views),
    _catalog(
        "mz_materialized_views",
        f"{_FIRST}, owner_id, cluster_id, definition, create_sql, replacement_for text",
        _materialized_views,
    ),
    _catalog("mz_sources", f"{_FIRST}, owner_id, type, cluster_id, create_sql text", _sources),
    _catalog("mz_indexes", "id text, oid oid, name, on_id, cluster_id, owner_id text, key text[]", _indexes),
    _catalog(
        "mz_columns",
        "id, name text, position int8, nullable bool, type, default text, type_oid oid, type_mod int4",
        _columns,
    ),
    _catalog("mz_schemas", "id text, oid oid, database_id, name, owner_id text", _schemas),
    _catalog("mz_databases", "id text, oid oid, name, owner_id text", _databases),
    _catalog("mz_roles", "id text, oid oid, name text, login, superuser bool", _roles),
    _catalog("mz_clusters", "id, name, owner_id text, managed bool", lambda _: [(CLUSTER, "default", None, True)]),
    _catalog("mz_cluster_replicas", "id, name, cluster_id, size text", lambda _: [(REPLICA, "r1", CLUSTER, None)]),
    _catalog(
        "mz_audit_events",
        "id int8, event_type, object_type text, details jsonb, user text, occurred_at timestamptz",
        _events,
    ),
    _internal("mz_frontiers", "object_id text, read_frontier, write_frontier mz_timestamp", _frontiers),
    _internal("mz_object_timelines", "object_id, timeline text", _timelines),
    _internal("mz_hydration_statuses", f"object_id, replica_id text, hydrated bool, {_PROGRESS}", _hydration),
    _internal("mz_object_dependencies", "object_id, referenced_object_id text", _dependencies),
    _internal(
        "mz_replacements",
        "id, target_id text, apply_when_hydrated, hydrated bool, read_frontier, write_frontier,"
        " target_write_frontier mz_timestamp, rows_added, rows_removed, bytes int8, status, error, target_error text,"
        f" {_PROGRESS}",
        _replacements,
    ),
    _internal(
        "mz_materialized_view_versions",
        "id text, version int8, global_id text, current bool, columns text[], definition text",
        _versions,
    ),
    _internal(
        "mz_subscriptions",
        "id, session_id, cluster_id text, created_at timestamptz, referenced_object_ids text[]",
        _subscriptions,
    ),
    _internal(
        "mz_sessions",
        "id text, connection_id int8, role_id text, connected_at timestamptz, application_name, running text",
        _sessions,
    ),
    _internal("mz_comments", "id, object_type text, object_sub_id int4, comment text", _comments),
    _internal("mz_wallclock_global_lag", "object_id text, lag interval, occurred_at timestamptz", _lag),
    _internal("mz_materialization_lag", "object_id text, local_lag, global_lag interval", _materialization_lag),
    relations_of("mz_introspection")(
        "mz_arrangement_sizes", "object_id, name text, records, size int8", lambda view: view.coordinator.arrangements()
    ),
)
