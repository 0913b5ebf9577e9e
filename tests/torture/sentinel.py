"""Another client, who only wants to know whether it is still served, and how fast."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import psycopg

ANSWER_S_MAX = 30.0  # on a busy machine of two cores; later than this is a hang
PAUSE_S = 0.01


def connect(port: int, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection to a server of this machine."""
    return psycopg.connect(
        host="127.0.0.1", port=port, user="everview", dbname="everview", autocommit=True, connect_timeout=60, **options
    )


class Sentinel:
    """Asks `SELECT 1` again and again while something else happens."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sentinel", daemon=True)
        self.waits_ms: list[float] = []
        self.anomalies: list[str] = []

    def __enter__(self) -> Sentinel:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(2 * ANSWER_S_MAX)
        if self._thread.is_alive():
            self.anomalies.append(f"SELECT 1 was not answered in {2 * ANSWER_S_MAX:.0f} s")

    def _run(self) -> None:
        try:
            with connect(self._port) as connection:
                while not self._stopped.is_set():
                    began = time.monotonic()
                    ((one,),) = connection.execute("SELECT 1").fetchall()
                    waited_s = time.monotonic() - began
                    self.waits_ms.append(waited_s * 1000)
                    if one != 1 or waited_s > ANSWER_S_MAX:
                        self.anomalies.append(f"SELECT 1 gave {one} after {waited_s:.1f} s")
                    self._stopped.wait(PAUSE_S)
        except psycopg.Error as error:
            self.anomalies.append(f"SELECT 1 failed: {error}")

    @property
    def figures(self) -> str:
        """What it waited."""
        if not self.waits_ms:
            return "SELECT 1 never answered"
        waits = sorted(self.waits_ms)
        p50, p99 = waits[len(waits) // 2], waits[min(len(waits) - 1, len(waits) * 99 // 100)]
        return f"SELECT 1 p50 {p50:.1f}, p99 {p99:.1f}, max {waits[-1]:.0f} ms of {len(waits):,}"


def resident_mb(pid: int) -> float:
    """The resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def descriptors(pid: int) -> int:
    """How many files and sockets a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def children(pid: int) -> list[int]:
    """All processes below a process."""
    found: list[int] = []
    below = [pid]
    while below:
        each = below.pop()
        for tasks in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                some = [int(child) for child in tasks.read_text().split()]
            except OSError:  # it has ended meanwhile
                continue
            found += some
            below += some
    return found
