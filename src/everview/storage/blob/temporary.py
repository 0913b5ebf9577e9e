"""Temporary files that their writers may leave behind by dying, named so that the next process can tell.

A name says on which host and in which process namespace its writer runs, and its process number: the file
of a dead process is removed at once, one that cannot be judged from here when it is too old to be in use.
"""

from __future__ import annotations

import os
import secrets
import time
import zlib
from contextlib import suppress
from pathlib import Path

_AGE_S_MAX = 3600.0


def temporary_name() -> str:
    return f"{_host()}-{os.getpid()}-{secrets.token_hex(8)}"


def remove_leftovers(folder: Path) -> None:
    """Remove files of dead processes from `folder`, as far as permitted."""
    with suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            # Another process may be removing them too, and a folder that refuses writes can still be read.
            with suppress(OSError):
                if _is_left(entry.name, time.time() - entry.stat().st_mtime):
                    os.unlink(entry.path)


def _is_left(name: str, age_s: float) -> bool:
    host, _, rest = name.partition("-")
    process = rest.partition("-")[0]
    if host == _host() and process.isdigit() and not _is_alive(int(process)):
        return True
    # A writer touches its file all the time, so age tells even of a process number that is in use again.
    return age_s > _AGE_S_MAX


def _host() -> str:
    namespace = 0
    with suppress(OSError):
        namespace = os.stat("/proc/self/ns/pid").st_ino
    return f"{zlib.crc32(f'{os.uname().nodename} {namespace}'.encode()):08x}"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # alive, and not ours to signal
    return True
