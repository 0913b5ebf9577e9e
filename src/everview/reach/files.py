"""Folders in which roles that are not superusers may use files, and checks that a file really is in one of them.

The variable `EVERVIEW_FILES` lists them as PATH does; by default there are none. Links in a path are followed. Of a
file that is open, the open file is checked and not its name, which may mean another file by then.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from everview.errors import EverviewError

ALLOWED = "EVERVIEW_FILES"


class PlaceRefused(EverviewError):
    """A file or folder that must not be used."""


def allowed_folders() -> list[Path]:
    """The folders, with links followed."""
    return [Path(os.path.realpath(each)) for each in os.environ.get(ALLOWED, "").split(os.pathsep) if each]


def checked_folders(given: Iterable[Path], own: Path) -> str:
    """Check folders to allow; gives the value of the variable. They must not overlap with the environment's folder."""
    found = []
    own = Path(os.path.realpath(own))
    for folder in given:
        real = Path(os.path.realpath(folder))
        if not real.is_dir():
            raise EverviewError(f"{folder} is not a folder", hint="name a folder that exists with --files")
        if real.is_relative_to(own) or own.is_relative_to(real):
            hint = "name a folder with --files that neither is in the data folder nor holds it"
            raise EverviewError(f"{folder} overlaps with the server's own data", hint=hint)
        if os.pathsep in str(real):
            raise EverviewError(f'{folder} must not have "{os.pathsep}" in its name')
        found.append(str(real))
    return os.pathsep.join(found)


def is_inside(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads into one of the folders, or would if it existed."""
    return _is_allowed(Path(os.path.realpath(path)))


def check_inside(path: str | os.PathLike[str]) -> None:
    """Raise unless a path leads into one of the folders."""
    if not is_inside(path):
        raise _refusal(path)


def check_opened(descriptor: int, path: str | os.PathLike[str]) -> None:
    """Raise unless an open file, which was opened by this path, is inside one of the folders."""
    try:
        real = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    except OSError:  # not Linux: the path must lead to the file still
        real = Path(os.path.realpath(path))
        if not os.path.samestat(os.fstat(descriptor), real.stat()):
            raise _refusal(path) from None
    if not _is_allowed(real):
        raise _refusal(path)


def _is_allowed(real: Path) -> bool:
    return any(real.is_relative_to(folder) for folder in allowed_folders())


def _refusal(path: str | os.PathLike[str]) -> PlaceRefused:
    return PlaceRefused(
        f"{os.fspath(path)} is not inside an allowed folder",
        detail="links are followed",
        hint="the server's option --files allows folders for roles that are not superusers",
    )
