"""The durable catalog: values kept in storage, changed in the same atomic step as the collections they speak of.

Every change is one commit with one entry of the audit log for each object that it touches. The numbers of these
entries are the total order of all definitions. Changes are made one at a time, under `lock`.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import structlog

from everview.adapter.catalog import codec
from everview.adapter.catalog.damage import Trace, database_from, item_from, role_from, schema_from, traces
from everview.adapter.catalog.items import KINDS, Database, Event, EventKind, Item, Role, Schema
from everview.adapter.catalog.state import Catalog
from everview.adapter.sealing import KeyTrouble, Sealer
from everview.storage.contract import Command, GlobalId, Put, TakeId
from everview.storage.environment import Environment
from everview.storage.errors import Corruption

DEFAULT_NAME = "everview"
_DRAFTS = itertools.count(-1, -1)  # versions of drafts: what is planned for one is never taken for another
_ITEM, _SCHEMA, _DATABASE, _ROLE = "catalog/item/", "catalog/schema/", "catalog/database/", "catalog/role/"
_COMMENT, _AUDIT = "catalog/comment/", "catalog/audit/"
_KEYS = {prefix: re.compile(r"[a-z][0-9]+") for prefix in (_ITEM, _SCHEMA, _DATABASE, _ROLE)} | {
    _COMMENT: re.compile(r"[a-z][0-9]+/[0-9]+"),
    _AUDIT: re.compile(r"[0-9]+"),
}
_DAMAGE = (Corruption, KeyTrouble, ValueError, TypeError, LookupError, AttributeError)  # how decoding fails

T = TypeVar("T")
Entry: TypeAlias = Item | Database | Schema | Role
Along: TypeAlias = "Callable[[Change], AbstractContextManager[Sequence[Command]]]"
_log = structlog.get_logger()


class CatalogStore:
    def __init__(self, environment: Environment, now_ms: Callable[[], int], sealer: Sealer | None = None) -> None:
        self._environment, self.now_ms, self._sealer = environment, now_ms, sealer or Sealer()
        self.lock = threading.RLock()
        self.damage: list[str] = []  # what was found damaged, for people
        self._unsealed: list[str] = []
        self._events = 0
        self.state = self._load()
        numbers = [int(id[1:]) for id in (*self.state.roles, *self.state.schemas, *self.state.items)]
        if numbers and max(numbers) >= environment.next_id:
            raise Corruption("the next id of the environment is missing", hint="restore the metadata from a copy")
        if not self.state.databases:
            # A new environment has a database, a schema and a role.
            role, database, schema = (self.draw_id(prefix) for prefix in ("r", "d", "n"))
            with self.lock:
                change = self.change(None)
                change.create(Role(role, DEFAULT_NAME, superuser=True))
                change.create(Database(database, DEFAULT_NAME, DEFAULT_NAME))
                change.create(Schema(schema, "public", database, DEFAULT_NAME))
                self.commit(change)

    def draw_id(self, prefix: str = "u") -> GlobalId:
        """An id that was never given to anything; the change that creates an object takes its id."""
        return self._environment.draw_id(prefix)

    def change(self, user: str | None) -> Change:
        """A change to be drafted and committed; hold `lock` from here to the commit."""
        return Change(self.state, user, self._events, self.now_ms(), self._sealer)

    def seal(self) -> None:
        """Seal what sinks hold in clear: those that an earlier version made, or one without a key."""
        clear = [item for id, item in self.state.items.items() if id not in self.state.damaged and codec.in_clear(item)]
        if not clear or not self._sealer.available:
            return
        names = [self.state.shown(item) for item in clear]
        try:
            sealed = [Put(_ITEM + item.id, codec.encode(item, self._sealer)) for item in clear]
        except KeyTrouble as error:  # the key's file cannot be made: sinks go on as they are
            self._unsealed = names
            _log.warning("what sinks hold in clear cannot be sealed", sinks=names, error=str(error))
        else:
            self._environment.commit(*sealed)
            _log.info("what sinks held in clear is sealed", sinks=names)

    def in_clear(self) -> list[str]:
        """The sinks whose passwords the catalog keeps as texts, since there is no key."""
        if self._sealer.available:
            return self._unsealed
        return [self.state.shown(item) for item in self.state.items.values() if codec.in_clear(item)]

    def commit(self, change: Change, *commands: Command) -> list[Any]:
        """Make a change durable together with these commands of storage; gives their results."""
        results = self._environment.commit(*commands, *change.commands)
        self.committed(change)
        return results[: len(commands)]

    def committed(self, change: Change) -> None:
        """Take over a change whose commands have been committed."""
        self._events += change.count
        self.state = replace(change.state, version=self.state.version + 1)

    def events(self) -> list[Event]:
        return [event for _, event in sorted(self._read(_AUDIT, codec.decode_event)[0].items())]

    def mark_damaged(self, id: GlobalId, error: Exception) -> None:
        """Keep an item out of reach, and all that depends on it."""
        if id not in self.state.damaged:
            self.state = replace(self.state.with_damage(id, error), version=self.state.version + 1)
            _log.error("an object is damaged", object=self.state.shown(self.state.items[id]), error=str(error))

    def _read(self, prefix: str, decode: Callable[[bytes], T]) -> tuple[dict[str, T], dict[str, Exception]]:
        """The entries whose keys begin with `prefix`, by the rest of the key; and why others cannot be read."""
        found: dict[str, T] = {}
        values, wrong = self._environment.scan_sound(prefix)
        for key, value in sorted(values.items()):
            try:
                if _KEYS[prefix].fullmatch(key.removeprefix(prefix)) is None:
                    raise Corruption("its key is damaged")
                found[key.removeprefix(prefix)] = decode(value)
            except _DAMAGE as error:
                wrong[key] = error
        for key in [key for key in wrong if not _KEYS[prefix].fullmatch(key.removeprefix(prefix))]:
            self.damage.append(f"entry {key} of the catalog: {wrong.pop(key)}")  # the key itself is damaged
        return found, {key.removeprefix(prefix): error for key, error in wrong.items()}

    def _load(self) -> Catalog:
        """The catalog, with what is damaged or missing in it as far as the audit log knows it."""
        events, lost = self._read(_AUDIT, codec.decode_event)
        self._events = max((int(number) + 1 for number in (*events, *lost)), default=0)
        # Without all of the log, an object may be missing because it was dropped; then it has no collection.
        whole = not lost and not self.damage and len(events) == self._events
        stored = {*self._environment.ids(), *self._environment.damaged}
        known = traces(event for _, event in sorted(events.items()))
        databases, lost_databases = self._read(_DATABASE, codec.decoder(Database))
        schemas, lost_schemas = self._read(_SCHEMA, codec.decoder(Schema))
        roles, lost_roles = self._read(_ROLE, codec.decoder(Role))
        items, lost_items = self._read(_ITEM, lambda data: codec.decode_item(data, self._sealer))

        def missed(
            found: Mapping[str, Any], damaged: dict[str, Exception], kinds: Iterable[str], named: Iterable[str | None]
        ) -> list[tuple[str, Trace | None]]:
            """Add to the damaged entries those that the log or other entries name, and that are missing."""
            logged = [id for id, trace in known.items() if trace.kind in kinds and (whole or id in stored)]
            for id in (*logged, *named):
                if id is not None and id not in found:
                    damaged.setdefault(id, Corruption("its entry in the catalog is missing"))
            for id, error in damaged.items():
                trace = known.get(id)
                self.damage.append(f"entry {id} of the catalog ({trace}): {error}")
                _log.error("an entry of the catalog is damaged", id=id, known=str(trace), error=str(error))
            return [(id, known.get(id)) for id in damaged]

        owner = DEFAULT_NAME
        for id, trace in missed(databases, lost_databases, ["database"], [each.database for each in schemas.values()]):
            databases[id] = database_from(id, trace, owner)
        for id, trace in missed(schemas, lost_schemas, ["schema"], [each.schema for each in items.values()]):
            schemas[id] = schema_from(id, trace, databases, owner)
        for id, trace in missed(roles, lost_roles, ["role"], ()):
            roles[id] = role_from(id, trace, roles, owner)
        named = [id for each in items.values() for id in (*each.depends, each.replaces)]
        for id, trace in missed(items, lost_items, KINDS, named):
            items[id] = item_from(id, trace, schemas, databases, owner)
        comments: dict[tuple[GlobalId, int], str] = {}
        for key, text in self._read(_COMMENT, bytes.decode)[0].items():
            id, _, column = key.partition("/")
            comments[id, int(column)] = text
        catalog = Catalog(
            self._events,
            databases,
            schemas,
            roles,
            dict(sorted(items.items(), key=lambda pair: int(pair[0][1:]))),
            comments,
        )
        for id, error in lost_items.items():
            catalog = catalog.with_damage(id, error)
        return catalog


class Change:
    """The effect of definitions before it is committed: the catalog as it will be, and what has to be done for it.

    `made` are the tables whose collections have to be made, `expiring` those whose TTL changes, `dropped` the items
    that go. Each of `along` gives commands that belong to the same commit, within a block that ends with it; `after`
    is called once the change is durable. `notices` are what the client is told, once. Until it is committed, a change
    is a value: it can be made, looked at and thrown away.
    """

    def __init__(self, state: Catalog, user: str | None, first_event: int, at_ms: int, sealer: Sealer) -> None:
        self.state, self._sealer = state, sealer
        self.puts: dict[str, bytes | None] = {}
        self.taken: list[GlobalId] = []
        self.count = 0
        self.made: list[GlobalId] = []
        self.expiring: list[GlobalId] = []
        self.dropped: list[Item] = []
        self.along: list[Along] = []
        self.after: list[Callable[[], None]] = []
        self.notices: list[tuple[str, str, str]] = []  # message, SQLSTATE and severity
        self._user, self._first, self._at_ms = user, first_event, at_ms

    def copy(self) -> Change:
        """A copy to be changed by itself; its catalog has a version of its own, so that no other's plans are used."""
        other = copy(self)
        other.puts, other.state = dict(self.puts), replace(self.state, version=next(_DRAFTS))
        other.made, other.expiring = list(self.made), list(self.expiring)
        other.taken, other.dropped = list(self.taken), list(self.dropped)
        other.along, other.after, other.notices = list(self.along), list(self.after), []
        return other

    @property
    def commands(self) -> list[Command]:
        """The commands that make the change durable."""
        return [*map(TakeId, self.taken), *(Put(key, value) for key, value in self.puts.items())]

    def notice(self, message: str, sqlstate: str = "00000", severity: str = "NOTICE") -> None:
        """Let the client be told."""
        self.notices.append((message, sqlstate, severity))

    def create(self, entry: Entry, **details: str) -> None:
        """Add an object; `details` are for the audit log."""
        if isinstance(entry, Item):
            self.state.check_lasting(entry.name, entry.depends)
        self.taken.append(entry.id)
        self._put(entry, EventKind.CREATE, details)

    def alter(self, entry: Entry, **details: str) -> None:
        """Put an object in the place of what it was; `details` are for the audit log."""
        self._put(entry, EventKind.ALTER, details)

    def _put(self, entry: Entry, event: EventKind, details: Mapping[str, str]) -> None:
        if not isinstance(entry, Item):
            return self._change(entry, codec.encode(entry, self._sealer), event, details)
        self.state = self.state.with_item(entry)
        self.puts[_ITEM + entry.id] = codec.encode(entry, self._sealer)
        self._note(event, entry.kind, {"id": entry.id, "name": self.state.shown(entry), **details})

    def fill(self, item: Item) -> None:
        """Complete an item that was planned, with what there is only now that the change is made."""
        self.state = self.state.with_item(item)
        self.puts[_ITEM + item.id] = codec.encode(item, self._sealer)

    def drop_item(self, item: Item) -> None:
        """Remove an item, and the comments on it."""
        for id, column in self.state.comments:
            if id == item.id:
                self.puts[f"{_COMMENT}{id}/{column}"] = None
        self._note(EventKind.DROP, item.kind, {"id": item.id, "name": self.state.shown(item)})
        self.state = self.state.without_item(item.id)
        self.puts[_ITEM + item.id] = None
        self.dropped.append(item)

    def drop(self, entry: Database | Schema | Role) -> None:
        """Remove a role, or a database or schema that is empty by now."""
        self._change(entry, None, EventKind.DROP, {})

    def _change(
        self, entry: Database | Schema | Role, data: bytes | None, event: EventKind, details: Mapping[str, str]
    ) -> None:
        noun = entry.noun
        changed: dict[str, Any] = {f"{noun}s": {**getattr(self.state, f"{noun}s"), entry.id: entry}}
        if data is None:
            del changed[f"{noun}s"][entry.id]
        self.state = replace(self.state, **changed)
        self.puts[f"catalog/{noun}/{entry.id}"] = data
        self._note(event, noun, {"id": entry.id, "name": entry.name, **details})

    def comment(self, kind: str, id: GlobalId, column: int, text: str | None) -> None:
        """Set the comment on an object or a column; None removes it."""
        comments = {key: value for key, value in self.state.comments.items() if key != (id, column)}
        if text is not None:
            comments[id, column] = text
        self.state = replace(self.state, comments=comments)
        self.puts[f"{_COMMENT}{id}/{column}"] = None if text is None else text.encode()
        self._note(EventKind.COMMENT, kind, {"id": id})

    def _note(self, event: EventKind, object: str, details: Mapping[str, str]) -> None:
        number = self._first + self.count
        entry = Event(number, event, object, details, self._user, self._at_ms)
        self.puts[f"{_AUDIT}{number:012d}"] = codec.encode(entry, self._sealer)
        self.count += 1
