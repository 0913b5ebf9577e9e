"""What is known of catalog entries that are damaged or missing, from the audit log: enough to name and to drop them.

A damaged item stays in the catalog under its name. Nobody reaches it or what depends on it, and DROP
removes it. Databases, schemas and roles hold little else than their names: they are made anew, a role without its
password and its rights, but for the role of the environment's owner if nobody else could administer it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from everview.adapter.catalog.items import KINDS, Damaged, Database, Event, EventKind, Item, Role, Schema, Table
from everview.adapter.sealing import KeyTrouble
from everview.compute.sql.errors import SqlError
from everview.storage.contract import GlobalId
from everview.storage.errors import Corruption

DATA_CORRUPTED = "XX001"
HINT = "restore the environment from a copy, or drop it"


@dataclass(frozen=True, slots=True)
class Trace:
    """What the audit log says of an object."""

    kind: str
    name: str


def traces(events: Iterable[Event]) -> dict[GlobalId, Trace]:
    """The objects that were created and not dropped, in the order of their creation."""
    found: dict[GlobalId, Trace] = {}
    for event in events:
        id, name = event.details.get("id"), event.details.get("name")
        if id is None:
            continue
        if event.kind is EventKind.DROP:
            found.pop(id, None)
        elif name is not None and (event.kind is EventKind.CREATE or id in found):
            found[id] = Trace(event.object, name)
    return found


def database_from(id: GlobalId, trace: Trace | None, owner: str) -> Database:
    """A database of which only the name is known."""
    return Database(id, _name(id, trace), owner)


def schema_from(id: GlobalId, trace: Trace | None, databases: Mapping[GlobalId, Database], owner: str) -> Schema:
    """A schema of which only the name is known: in the owner's database, or the first."""
    own = next((each.id for each in databases.values() if each.name == owner), None)
    return Schema(id, _name(id, trace), own or next(iter(databases), None), owner)


def role_from(id: GlobalId, trace: Trace | None, roles: Mapping[GlobalId, Role], owner: str) -> Role:
    """A role of which only the name is known. It may do nothing, unless it is the owner and there is no superuser."""
    name = _name(id, trace)
    only = name == owner and not any(each.superuser and each.login for each in roles.values())
    return Role(id, name, login=only, superuser=only)


def item_from(
    id: GlobalId,
    trace: Trace | None,
    schemas: Mapping[GlobalId, Schema],
    databases: Mapping[GlobalId, Database],
    owner: str,
) -> Damaged:
    """An item of which only the name and the kind are known."""
    was = Table if trace is None else KINDS.get(trace.kind, Table)
    full = _name(id, trace)
    for schema in schemas.values():
        database = "" if schema.database is None else databases[schema.database].name
        prefix = f"{database}.{schema.name}."
        if full.startswith(prefix):
            return Damaged(id, full.removeprefix(prefix), schema.id, owner, was=was)
    if not schemas:
        raise Corruption("no schema is left in the catalog", hint="restore the metadata from a copy")
    return Damaged(id, id, next(iter(schemas)), owner, was=was)


def damage_of(item: Item, error: Exception) -> SqlError:
    """What is said of an item that cannot be reached."""
    reason = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
    more = getattr(error, "detail", None)
    detail = f"{reason}: {more}" if more else reason
    if isinstance(error, KeyTrouble):  # nothing is lost
        return SqlError(DATA_CORRUPTED, f'{item.kind} "{item.name}" cannot be read', detail=detail, hint=error.hint)
    return SqlError(DATA_CORRUPTED, f'{item.kind} "{item.name}" is damaged', detail=detail, hint=HINT)


def damage_below(item: Item, below: Item) -> SqlError:
    """What is said of an item that depends on one that cannot be reached."""
    message = f'{item.kind} "{item.name}" depends on {below.kind} "{below.name}", which is damaged'
    return SqlError(DATA_CORRUPTED, message, hint=HINT)


def _name(id: GlobalId, trace: Trace | None) -> str:
    return id if trace is None else trace.name
