"""What both contracts need of a disk: folders that survive a power cut, and errors that tell a person what to do."""

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


def make_folder(folder: Path) -> None:
    """Make `folder` and what is missing above it, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def make_private(folder: Path) -> None:
    """Make `folder` so that its owner alone can look inside; one that is there and open to others is closed to them."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)
    close_to_others(folder)


def close_to_others(path: Path) -> None:
    """Take from everybody but its owner what they may do with a file or folder, if it is ours to take."""
    status = path.stat()
    if not status.st_mode & 0o077 or status.st_uid != os.geteuid():
        return
    with suppress(OSError):  # a disk that cannot be written to can be read all the same
        path.chmod(stat.S_IMODE(status.st_mode) & ~0o077)


def write_failure(failure: OSError, doing: str, path: Path | str) -> Determinate:
    """What an OSError of a write that certainly had no effect means."""
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
    """What an OSError of a read means; a missing file is for the caller to tell apart."""
    hint = (
        "check who owns the file and its permissions"
        if failure.errno in _REFUSED
        else "look at the system's log for the disk"
    )
    return Determinate(f"cannot read while {doing}", detail=f"{failure.strerror or failure} ({path})", hint=hint)
