"""Identity of a machine, of its last boot and of a process; and the uptime, a clock that cannot jump."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_DEAD = frozenset("ZXx")  # states of a process that only waits to be buried


def uptime_ms() -> int:
    """Milliseconds since the machine was started, sleep included where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1_000_000


def boot_id() -> str:
    """An identifier of the machine's last boot; empty where the system has none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def this_process() -> dict[str, Any]:
    """A description of this process, from which others can find out whether it still runs."""
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "boot": boot_id(),
        "namespace": _namespace(),
        "started": _started(os.getpid()),
    }


def is_this_process(process: Mapping[str, Any]) -> bool:
    return all(process.get(name) == value for name, value in this_process().items())


def process_text(process: Mapping[str, Any]) -> str:
    return f"process {process.get('pid')} on {process.get('host')}"


def has_ended(process: Mapping[str, Any]) -> bool:
    """Whether a process is known to have ended. Of a process on another machine that is never known."""
    return _is_here(process) and process.get("started") != _started(int(process["pid"]))


def is_running(process: Mapping[str, Any]) -> bool:
    """Whether a process is known to run. Of a process on another machine that is never known."""
    return _is_here(process) and process.get("started") == _started(int(process["pid"]))


def _is_here(process: Mapping[str, Any]) -> bool:
    return bool(process.get("boot") == boot_id() != "" and process.get("namespace") == _namespace())


def _namespace() -> str:
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def _started(pid: int) -> int | None:
    """When a process started, in ticks since the machine did. None if the process does not exist."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return None
    return None if fields[0] in _DEAD else int(fields[19])
