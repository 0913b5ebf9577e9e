"""The arrangements that maintained views share, and which views read each."""

from __future__ import annotations

from collections.abc import Iterable

from everview.adapter.system.relation import Row, SystemRelation, View, columns


def _arrangements(view: View) -> Iterable[Row]:
    items = view.around.catalog.items
    for each in view.coordinator.maintenance.shared():
        arranged = each.arranged
        on = items.get(arranged.collection)
        if on is not None:
            key, kept = ([on.columns[place].name for place in part] for part in (arranged.key, arranged.columns))
            yield (each.id, arranged.collection, key, kept, each.records, each.size_bytes)


def _users(view: View) -> Iterable[Row]:
    return [(each.id, user) for each in view.coordinator.maintenance.shared() for user in each.users]


RELATIONS: tuple[SystemRelation, ...] = (
    SystemRelation(
        "mz_introspection",
        "mz_shared_arrangements",
        columns("id, on_id text, key, columns text[], records, size int8"),
        _arrangements,
    ),
    SystemRelation("mz_introspection", "mz_shared_arrangement_users", columns("id, object_id text"), _users),
)
