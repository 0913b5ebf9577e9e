"""What both contracts need of a disk: folders that survive a power cut, and errors that tell a person what to do."""

from __future__ import annotations

import errno
import os
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
