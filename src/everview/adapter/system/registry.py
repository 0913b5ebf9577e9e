"""All system relations, by schema and name."""

from __future__ import annotations

from everview.adapter.system import information_schema, mz_catalog, mz_delivery, mz_sharing, pg_catalog
from everview.adapter.system.relation import SystemRelation

_ALL: tuple[SystemRelation, ...] = (
    *pg_catalog.RELATIONS,
    *information_schema.RELATIONS,
    *mz_catalog.RELATIONS,
    *mz_delivery.RELATIONS,
    *mz_sharing.RELATIONS,
)
RELATIONS: dict[tuple[str, str], SystemRelation] = {(each.schema, each.name): each for each in _ALL}
BY_ID: dict[str, SystemRelation] = {each.id: each for each in _ALL}
