"""What Blob and Consensus need of a disk: folders that survive a power cut, and errors that say what to do."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from everview.storage.errors import Determinate, StorageFull, StorageReadOnly

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EROFS, errno.EACCES, errno.EPERM}


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable: a file's own fsync does not cover the entry that leads to it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make `folder` and its missing parents, all with this mode, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent, mode)
    folder.mkdir(mode, exist_ok=True)
    sync_folder(folder.parent)


def make_private(folder: Path) -> None:
    """Make `folder`, or close an existing one, so that only its owner can look inside."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)
    close_to_others(folder)


def close_to_others(path: Path) -> None:
    """Take all rights to a file or folder from everybody but its owner, if this account is the owner.

    A sticky folder such as /tmp stays as it is.
    """
    status = path.stat()
    if not status.st_mode & 0o077 or status.st_mode & stat.S_ISVTX or status.st_uid != os.geteuid():
        return
    with suppress(OSError):  # a disk that cannot be written to can be read all the same
        path.chmod(stat.S_IMODE(status.st_mode) & ~0o077)


def close_contents(folder: Path) -> None:
    """Close everything in `folder` to others, down to folders that are closed already.

    A folder is closed after its contents. So an interrupted run starts with it again, and a closed folder need not be
    walked through each time the environment is opened.
    """
    try:
        entries = [Path(entry) for entry in os.scandir(folder) if not entry.is_symlink()]
    except OSError:  # none of our business, or not there
        return
    for entry in entries:
        with suppress(OSError):  # gone meanwhile
            if entry.is_dir() and entry.stat().st_mode & 0o077:
                close_contents(entry)
            close_to_others(entry)


def make_private_file(path: Path) -> None:
    """Make an empty file that only its owner can use, for libraries that would create it open to everyone."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def write_failure(failure: OSError, doing: str, path: Path | str) -> Determinate:
    """The error for an OSError of a write that certainly had no effect."""
    detail = f"{failure.strerror or failure} ({path})"
    if failure.errno in _FULL:
        return StorageFull(f"no space left while {doing}", detail=detail, hint="free space or raise the quota")
    if failure.errno in _REFUSED:
        return StorageReadOnly(
            f"writing was refused while {doing}",
            detail=detail,
            hint="check who owns the folder, its permissions, and whether it is mounted read-only",
        )
    return Determinate(f"the disk failed while {doing}", detail=detail, hint="look at the system's log for the disk")


def read_failure(failure: OSError, doing: str, path: Path | str) -> Determinate:
    """The error for an OSError of a read. Callers handle missing files themselves."""
    hint = (
        "check who owns the file and its permissions"
        if failure.errno in _REFUSED
        else "look at the system's log for the disk"
    )
    return Determinate(f"cannot read while {doing}", detail=f"{failure.strerror or failure} ({path})", hint=hint)
