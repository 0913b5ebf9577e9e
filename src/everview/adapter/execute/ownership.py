"""Who may change what is there: its owner, and superusers. Roles and databases are made by superusers.

Anyone may read and write whatever there is, and make objects of their own: there are no grants. But what leaves the
environment or comes into it, by programs, files and addresses, does so with the rights of the server's account: sinks
and change streams are for superusers, but for files in folders that the server was started with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from everview.adapter.catalog.items import Database, Item, Role, Schema
from everview.adapter.errors import INSUFFICIENT_PRIVILEGE
from everview.adapter.execute.context import Context
from everview.adapter.statements.options import boolean
from everview.adapter.stream_locations import CONFINED, LOCATIONS
from everview.compute.sql.errors import SqlError
from everview.flow.drivers.registry import options_of
from everview.reach.files import allowed_folders, is_inside


def is_superuser(context: Context) -> bool:
    """Whether the user may do everything."""
    role = context.around.catalog.role(context.around.user)
    return role is not None and role.superuser


def check_owner(context: Context, item: Item) -> None:
    """Raise unless the user owns the item, or may do everything."""
    _check(context, item.owner, item.kind, item.name)


def check_owner_of(context: Context, entry: Database | Schema | Role) -> None:
    """The same of a schema, database or role; a role is changed by superusers."""
    if isinstance(entry, Role):
        check_superuser(context, f'alter or drop role "{entry.name}"')
    else:
        _check(context, entry.owner, entry.noun, entry.name)


def check_superuser(context: Context, what: str) -> None:
    """Raise unless the user may do everything."""
    if not is_superuser(context):
        raise SqlError(INSUFFICIENT_PRIVILEGE, f"permission denied to {what}", detail="only superusers may do that")


def check_may_reach(context: Context, what: str, kind: str, *arguments: Mapping[str, str]) -> bool:
    """Raise unless the user may let the server run, read or write what these arguments name.

    Gives whether it has to be confined: other roles than superusers may have files in the folders that the server was
    started with, and nowhere else. The data folder is for nobody, whatever the file is called: a sink would write into
    the server's metadata, or make a file that a later version takes for its own.
    """
    confined = not is_superuser(context)
    if confined:
        _check_files_alone(what, kind, arguments)
    own = context.coordinator.environment.folder.resolve()
    for path in _paths(arguments):
        if path.resolve().is_relative_to(own):
            message = f"{path} is a part of the server's own data"
            raise SqlError(INSUFFICIENT_PRIVILEGE, message, hint="choose another place")
    return confined


def _check_files_alone(what: str, kind: str, arguments: Sequence[Mapping[str, str]]) -> None:
    """Raise unless nothing is reached but files in folders that are allowed."""
    message = f"permission denied to {what}"
    known = {*(LOCATIONS[kind].arguments if kind in LOCATIONS else ()), *(option.name for option in options_of(kind))}
    alone = CONFINED in known and not any("://" in (each.get("path") or "") for each in arguments)
    if not alone or not allowed_folders():
        detail = "it reaches programs, files and addresses with the server's rights: only superusers may do that"
        hint = "the server's option --files lets other roles have files in a folder" if alone else None
        raise SqlError(INSUFFICIENT_PRIVILEGE, message, detail=detail, hint=hint)
    if any(not boolean(each.get(CONFINED) or "true", CONFINED) for each in arguments):
        raise SqlError(INSUFFICIENT_PRIVILEGE, message, detail="only superusers may leave the folders of --files")
    for path in _paths(arguments):
        if not is_inside(path):
            detail = f"{path} is not inside of a folder that --files allows; links are followed"
            raise SqlError(INSUFFICIENT_PRIVILEGE, message, detail=detail)


def _paths(arguments: Sequence[Mapping[str, str]]) -> list[Path]:
    """The files and folders that arguments name: a FOLDER is inside of the PATH, or should be."""
    texts = [each["path"] for each in arguments if each.get("path")]
    local = [unquote(urlsplit(text).path) if text.startswith("file:") else text for text in texts]
    paths = [Path(text) for text in local if "://" not in text]
    return [*paths, *(path / each["folder"] for path in paths for each in arguments if each.get("folder"))]


def check_may_give(context: Context, owner: str) -> None:
    """Raise unless the user may make this role the owner of something."""
    if owner != context.around.user and not is_superuser(context):
        message = f'must be superuser to give something to role "{owner}"'
        raise SqlError(INSUFFICIENT_PRIVILEGE, message)


def _check(context: Context, owner: str, kind: str, name: str) -> None:
    if owner != context.around.user and not is_superuser(context):
        raise SqlError(INSUFFICIENT_PRIVILEGE, f'must be owner of {kind} "{name}"', detail=f'its owner is "{owner}"')
