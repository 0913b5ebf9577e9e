"""The catalog at one moment: an immutable value, so that a statement sees one and the same from begin to end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from everview.adapter.catalog.damage import damage_below, damage_of
from everview.adapter.catalog.items import Database, Index, Item, MaterializedView, Role, Schema, Source, Table, View
from everview.compute.sql.errors import SqlError, did_you_mean
from everview.compute.sql.references import quoted
from everview.storage.contract import GlobalId

T = TypeVar("T", bound=Item)

SYSTEM_SCHEMAS = ("pg_catalog", "information_schema", "mz_catalog", "mz_internal", "mz_introspection")
# Found without their schema, as PostgreSQL finds pg_catalog.
IMPLICIT_SCHEMAS = ("mz_catalog", "pg_catalog")
SYSTEM_SCHEMA_IDS = {name: f"x{number + 1}" for number, name in enumerate(SYSTEM_SCHEMAS)}


@dataclass(frozen=True)
class Catalog:
    """Everything that exists. `version` counts the changes that led here."""

    version: int = 0
    databases: Mapping[GlobalId, Database] = field(default_factory=dict)
    schemas: Mapping[GlobalId, Schema] = field(default_factory=dict)
    roles: Mapping[GlobalId, Role] = field(default_factory=dict)
    items: Mapping[GlobalId, Item] = field(default_factory=dict)
    comments: Mapping[tuple[GlobalId, int], str] = field(default_factory=dict)  # by object and column, 0 being none
    damaged: Mapping[GlobalId, SqlError] = field(default_factory=dict)  # items that nobody can reach, and why

    @cached_property
    def _by_name(self) -> Mapping[tuple[GlobalId, str], Item]:
        return {(item.schema, item.name): item for item in self.items.values()}

    @cached_property
    def _dependents(self) -> Mapping[GlobalId, list[Item]]:
        found: dict[GlobalId, list[Item]] = {}
        for item in self.items.values():
            for each in item.depends if item.replaces is None else (*item.depends, item.replaces):
                found.setdefault(each, []).append(item)
        return found

    def of(self, kind: type[T]) -> list[T]:
        """The items of a kind."""
        return [item for item in self.items.values() if isinstance(item, kind)]

    def source(self, id: GlobalId) -> Source:
        found = self.items[id]
        assert isinstance(found, Source)
        return found

    # Names to objects

    def database(self, name: str) -> Database | None:
        return next((each for each in self.databases.values() if each.name == name), None)

    def role(self, name: str) -> Role | None:
        return next((each for each in self.roles.values() if each.name == name), None)

    def schema(self, database: str, name: str) -> Schema | None:
        """The schema of this name in a database; those of the system are in all."""
        if name in SYSTEM_SCHEMA_IDS:
            return Schema(SYSTEM_SCHEMA_IDS[name], name, None, "everview")
        found = self.database(database)
        if found is None:
            return None
        return next((each for each in self.schemas.values() if each.name == name and each.database == found.id), None)

    def schemas_of(self, database: str) -> list[Schema]:
        """The schemas that users made in a database."""
        found = self.database(database)
        return [each for each in self.schemas.values() if found is not None and each.database == found.id]

    def item(self, schema: Schema, name: str) -> Item | None:
        return self._by_name.get((schema.id, name))

    def find(self, path: Sequence[str], database: str, search_path: Sequence[str]) -> Item | None:
        """The item that a name means: where it stands if it says so, else the first on the search path."""
        if len(path) == 3:
            database = path[0]
        places = [path[-2]] if len(path) > 1 else search_path
        for place in places:
            schema = self.schema(database, place)
            found = None if schema is None else self.item(schema, path[-1])
            if found is not None:
                return found
        return None

    def in_schema(self, schema: GlobalId) -> Iterator[Item]:
        return (item for item in self.items.values() if item.schema == schema)

    def full_name(self, item: Item) -> tuple[str, str, str]:
        """Database, schema and name."""
        schema = self.schemas[item.schema]
        database = self.databases[schema.database] if schema.database else None
        return (database.name if database else "", schema.name, item.name)

    def shown(self, item: Item) -> str:
        """The name in full, for messages."""
        return ".".join(self.full_name(item))

    def quoted(self, item: Item) -> str:
        """The name in full, for statements."""
        return ".".join(map(quoted, self.full_name(item)))

    # Dependencies

    def dependents(self, id: GlobalId) -> list[Item]:
        """The items that directly depend on this one."""
        return self._dependents.get(id, [])

    def closure(self, ids: Iterable[GlobalId]) -> list[Item]:
        """These items and all that depend on them; what depends comes before what it depends on."""
        order: list[Item] = []
        seen: set[GlobalId] = set()

        def visit(id: GlobalId) -> None:
            if id not in seen:
                seen.add(id)
                for each in self.dependents(id):
                    visit(each.id)
                order.append(self.items[id])

        for id in ids:
            visit(id)
        return order

    def indexes_on(self, id: GlobalId) -> list[Index]:
        return [each for each in self.dependents(id) if isinstance(each, Index) and each.on == id]

    def replacement_of(self, id: GlobalId) -> Item | None:
        """The replacement that is staged for a materialized view, if there is one."""
        return next((each for each in self.dependents(id) if each.replaces == id), None)

    def pins(self, ids: Iterable[GlobalId]) -> dict[GlobalId, GlobalId]:
        """The present versions of these items, which a definition that names them remembers."""
        items = [self.items[id] for id in sorted(ids)]
        return {item.id: item.global_id for item in items if item.global_id != item.id}

    def pinned(self, id: GlobalId) -> set[GlobalId]:
        """The versions of an item that definitions name: those in force, and earlier ones that can be restored."""
        found = {item.pins.get(id, id) for item in self.dependents(id)}
        for item in self.of(MaterializedView):
            found |= {each.pins.get(id, id) for each in item.history if id in each.depends}
        return found

    def seen_by(self, item: Item, id: GlobalId) -> Item:
        """An item with the columns that it had when `item`, which depends on it, was defined."""
        return self.items[id].at_version(item.pins.get(id, id))

    def roots(self, id: GlobalId) -> set[GlobalId]:
        """The tables and sources from which a stored collection is made."""
        item = self.items[id]
        if isinstance(item, Table | Source):
            return {id}
        return {root for each in item.depends for root in self.roots(each)}

    # Timelines

    @cached_property
    def stream_timelines(self) -> Mapping[str, Sequence[Source]]:
        """The timelines of change streams, each with the sources that are on it."""
        found: dict[str, list[Source]] = {}
        for item in self.of(Source):
            if item.timeline is not None and item.id not in self.damaged:
                found.setdefault(item.timeline.name, []).append(item)
        return found

    def timeline(self, id: GlobalId) -> str | None:
        """The timeline of a change stream that an item is on; None: the environment's."""
        if not self.stream_timelines or id not in self.items:
            return None
        roots = (self.items[root] for root in self.roots(id))
        return next((each.timeline.name for each in roots if isinstance(each, Source) and each.timeline), None)

    def check_one_timeline(self, ids: Iterable[GlobalId], verb: str = "read together") -> None:
        """Raise unless some items are all on one timeline; views of nothing but constants are on any."""
        if not self.stream_timelines:
            return
        on: dict[str | None, Item] = {}
        for id in sorted(ids):
            if not isinstance(self.items[id], View) or self.roots(id):
                on.setdefault(self.timeline(id), self.items[id])
        if len(on) > 1:
            (one, first), (other, second) = list(on.items())[:2]
            raise SqlError(
                "0A000",
                f'"{first.name}", which is on {shown_timeline(one)}, and "{second.name}", which is on'
                f" {shown_timeline(other)}, cannot be {verb}",
                detail="a time of one timeline means nothing on another",
                hint="a source without TIMELINE is on the timeline of the environment, with tables and other sources",
            )

    def timedomain(self, schemas: Collection[GlobalId]) -> set[GlobalId]:
        """The stored collections that can be read by who reads these schemas: those in them, and those that the views
        in them are made from."""
        found: set[GlobalId] = set()
        below = [item for item in self.items.values() if item.schema in schemas and item.id not in self.damaged]
        seen = {item.id for item in below}
        while below:
            item = below.pop()
            if item.reader is not None:
                found.add(item.id)
            elif isinstance(item, View):
                below += [self.items[id] for id in item.depends if id not in seen]
                seen.update(item.depends)
        return found

    def check_lasting(self, name: str, ids: Iterable[GlobalId]) -> None:
        """Raise if an object of this name would depend on a replacement, which is gone once it is applied."""
        for each in sorted(ids):
            item = self.items[each]
            if item.replaces is not None:
                target = self.items[item.replaces]
                message = f'"{name}" cannot depend on "{item.name}", which is staged to replace "{target.name}"'
                hint = f'let it depend on "{target.name}", and apply the replacement'
                raise SqlError("55000", message, hint=hint)

    # Changed catalogs

    def with_item(self, item: Item) -> Catalog:
        return replace(self, items={**self.items, item.id: item})

    def without_item(self, id: GlobalId) -> Catalog:
        """Without an item and what is said about it."""
        items = {key: item for key, item in self.items.items() if key != id}
        comments = {key: text for key, text in self.comments.items() if key[0] != id}
        damaged = {key: error for key, error in self.damaged.items() if key != id}
        return replace(self, items=items, comments=comments, damaged=damaged)

    def with_damage(self, id: GlobalId, error: Exception) -> Catalog:
        """With an item out of reach, and all that depends on it."""
        item = self.items[id]
        damaged = {id: damage_of(item, error)}
        along = [each.id for each in self.items.values() if each.whole == item.whole]  # what is fed together
        for each in self.closure({id, *along}):
            damaged.setdefault(each.id, damage_below(each, item))
        return replace(self, damaged={**damaged, **self.damaged})

    # Names that must be there
    def named_role(self, name: str) -> Role:
        """The role of this name; raises if there is none."""
        if (found := self.role(name)) is None:
            raise self.missing("role", [name], [each.name for each in self.roles.values()])
        return found

    def named_database(self, name: str) -> Database:
        """The database of this name; raises if there is none."""
        if (found := self.database(name)) is None:
            raise self.missing("database", [name], [each.name for each in self.databases.values()])
        return found

    def named_schema(self, database: str, name: str) -> Schema:
        """The schema of this name in a database; raises if there is none."""
        if (found := self.schema(database, name)) is None:
            raise self.missing("schema", [name], [each.name for each in self.schemas_of(database)])
        return found

    def missing(self, kind: str, path: Sequence[str], known: Iterable[str]) -> SqlError:
        """The error for an object that does not exist."""
        states = {"schema": "3F000", "database": "3D000", "role": "42704", "index": "42704", "subscription": "42704"}
        state = states.get(kind, "42P01")
        noun = "relation" if state == "42P01" else kind
        hint = did_you_mean(path[-1], known)
        return SqlError(state, f'{noun} "{".".join(path)}" does not exist', hint=hint)


def shown_timeline(name: str | None) -> str:
    return "the timeline of the environment" if name is None else f'timeline "{name}"'
