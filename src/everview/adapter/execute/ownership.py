"""Who may change what is there: its owner, and superusers. Roles and databases are made by superusers.

Anyone may read and write whatever there is, and make objects of their own: there are no grants.
"""

from __future__ import annotations

from everview.adapter.catalog.items import Database, Item, Schema
from everview.adapter.errors import INSUFFICIENT_PRIVILEGE
from everview.adapter.execute.context import Context
from everview.compute.sql.errors import SqlError


def is_superuser(context: Context) -> bool:
    """Whether the user may do everything."""
    role = context.around.catalog.role(context.around.user)
    return role is not None and role.superuser


def check_owner(context: Context, item: Item) -> None:
    """Raise unless the user owns the item, or may do everything."""
    _check(context, item.owner, item.kind, item.name)


def check_owner_of(context: Context, kind: str, id: str) -> None:
    """The same of a schema, database or role by its id; a role is changed by superusers."""
    state = context.coordinator.catalog.state
    if kind == "role":
        check_superuser(context, f'alter or drop role "{state.roles[id].name}"')
        return
    found: Schema | Database = state.schemas[id] if kind == "schema" else state.databases[id]
    _check(context, found.owner, kind, found.name)


def check_superuser(context: Context, what: str) -> None:
    """Raise unless the user may do everything."""
    if not is_superuser(context):
        raise SqlError(INSUFFICIENT_PRIVILEGE, f"permission denied to {what}", detail="only superusers may do that")


def check_may_give(context: Context, owner: str) -> None:
    """Raise unless the user may make this role the owner of something."""
    if owner != context.around.user and not is_superuser(context):
        message = f'must be superuser to give something to role "{owner}"'
        raise SqlError(INSUFFICIENT_PRIVILEGE, message)


def _check(context: Context, owner: str, kind: str, name: str) -> None:
    if owner != context.around.user and not is_superuser(context):
        raise SqlError(INSUFFICIENT_PRIVILEGE, f'must be owner of {kind} "{name}"', detail=f'its owner is "{owner}"')
