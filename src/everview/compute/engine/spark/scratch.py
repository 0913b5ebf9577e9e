"""Temporary folders for Spark; what processes that were killed have left behind is removed."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

PREFIX, LOCK = "everview-spark-", ".lock"


class Scratch:
    """A folder that goes with the process: it is locked for as long as it is used, so others know when it is not."""

    def __init__(self) -> None:
        remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock: int | None = _locked(self.path, create=True)

    def close(self) -> None:
        """Remove it; safe more than once."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        shutil.rmtree(self.path, ignore_errors=True)


@cache
def temporary_folder_of_java() -> Path:
    """Where the Java process of this one puts temporary files; it lives on when a Spark in it is stopped."""
    scratch = Scratch()
    atexit.register(scratch.close)
    return scratch.path


def remove_abandoned() -> None:
    """Remove the folders of processes that are gone. A folder without a lock is only being made, or not ours."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        lock = _locked(path, create=False)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _locked(folder: Path, *, create: bool) -> int | None:
    """The lock of a folder, if nobody else has it. A child that outlives this process does not inherit it."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
