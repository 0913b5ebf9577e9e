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


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make `folder` and what is missing above it, all with this mode, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent, mode)
    folder.mkdir(mode, exist_ok=True)
    sync_folder(folder.parent)


def make_private(folder: Path) -> None:
    """Make `folder` so that its owner alone can look inside; one that is there and open to others is closed to them."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)
    close_to_others(folder)


def close_to_others(path: Path) -> None:
    """Take from everybody but its owner what they may do with a file or folder, if it is ours to take.

    A folder in which everyone may have files, as /tmp is, stays as it is.
    """
    status = path.stat()
    if not status.st_mode & 0o077 or status.st_mode & stat.S_ISVTX or status.st_uid != os.geteuid():
        return
    with suppress(OSError):  # a disk that cannot be written to can be read all the same
        path.chmod(stat.S_IMODE(status.st_mode) & ~0o077)


def close_contents(folder: Path) -> None:
    """Close to others what is in `folder`, and what is below its open folders.

    What is below a closed folder is out of reach already. A folder is closed after its contents, so that whoever is cut
    off begins with it again; and a folder that is closed is not walked through at each opening.
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
    """Make an empty file that is its owner's alone, for a library that opens files by name and for everyone."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


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
