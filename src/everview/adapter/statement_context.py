"""The context of a statement: the catalog, who asks, where names are looked up, settings, and what time it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from everview.adapter.catalog.items import Item, Schema
from everview.adapter.catalog.state import IMPLICIT_SCHEMAS, Catalog
from everview.compute.sql.errors import UNDEFINED_TABLE, SqlError, did_you_mean
from everview.storage.contract import GlobalId

EPOCH = datetime.fromtimestamp(0, UTC)


def timestamp_of(milliseconds: int) -> datetime:
    """Milliseconds since the epoch as a timestamp. Times beyond the last timestamp become that timestamp."""
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


class Meaning(NamedTuple):
    """What the meaning of a statement depends on beside its text: the version of the catalog, and settings."""

    version: int
    database: str = ""
    search_path: str = ""
    engine: str = ""  # on which peeks are computed


def meaning_of(catalog: Catalog, database: str, settings: Mapping[str, str]) -> Meaning:
    """What statements of a session depend on now."""
    return Meaning(catalog.version, database, settings.get("search_path", ""), settings.get("everview_peek_engine", ""))


@dataclass(frozen=True)
class StatementContext:
    """The session of a statement, as far as its meaning depends on it."""

    catalog: Catalog
    user: str
    database: str
    search_path: tuple[str, ...]
    now: datetime = EPOCH
    settings: Mapping[str, str] = field(default_factory=dict)
    backend: int = 0
    configure: Callable[[str, str, bool], str] | None = None  # set_config: name, value, for this transaction only
    pause: Callable[[float], None] | None = None  # pg_sleep: so many seconds, unless the statement is to end
    watching: Callable[[Callable[[], None]], AbstractContextManager[None]] | None = None  # ends what it is to end
    size_of: Callable[[GlobalId], int] | None = None  # the bytes that are stored for an item

    @property
    def meaning(self) -> Meaning:
        return meaning_of(self.catalog, self.database, self.settings)

    @property
    def schemas(self) -> tuple[str, ...]:
        """The schemas of the search path that exist."""
        return tuple(name for name in self.search_path if self.catalog.schema(self.database, name) is not None)

    @property
    def all_schemas(self) -> tuple[str, ...]:
        """The schemas in which names are looked up: first the system's, then the search path."""
        implicit = tuple(name for name in IMPLICIT_SCHEMAS if name not in self.search_path)
        return (*implicit, *self.schemas)

    def find(self, path: Sequence[str]) -> Item | None:
        """The item that a name means; raises if it is damaged."""
        found = self.find_any(path)
        if found is not None and found.id in self.catalog.damaged:
            error = self.catalog.damaged[found.id]
            raise SqlError(error.sqlstate, error.message, detail=error.detail, hint=error.hint)
        return found

    def find_any(self, path: Sequence[str]) -> Item | None:
        """The item that a name means, sound or damaged."""
        return self.catalog.find(path, self.database, self.search_path)

    def relation(self, path: Sequence[str], position: int | None = None) -> Item:
        """The item that a name means, which must exist."""
        found = self.find(path)
        if found is None:
            raise self.missing(path, position)
        return found

    def missing(self, path: Sequence[str], position: int | None = None) -> SqlError:
        message = f'relation "{".".join(path)}" does not exist'
        return SqlError(UNDEFINED_TABLE, message, hint=did_you_mean(path[-1], self.names()), position=position)

    def names(self) -> list[str]:
        """The names of relations on the search path."""
        schemas = [self.catalog.schema(self.database, name) for name in self.search_path]
        return [item.name for schema in schemas if schema is not None for item in self.catalog.in_schema(schema.id)]

    def schema_for(self, path: Sequence[str]) -> Schema:
        """The schema in which an object of this name is made."""
        database = path[0] if len(path) == 3 else self.database
        self.catalog.named_database(database)
        if len(path) == 1 and not self.schemas:
            raise SqlError("3F000", "no schema has been selected to create in", hint="set search_path")
        found = self.catalog.named_schema(database, path[-2] if len(path) > 1 else self.schemas[0])
        if found.database is None:
            raise SqlError("42501", f'permission denied for schema "{found.name}"', detail="it belongs to the system")
        return found
