"""A server whose clock and disk can be made to err while it runs, in a process of its own that can be killed.

python -m tests.torture.server KNOBS FOLDER

serves without Spark. KNOBS is a file of two numbers that it looks at all the time: by how many milliseconds the wall
clock is off, and which fault befalls every write, as a place in `FAULTS`.
"""

from __future__ import annotations

import mmap
import os
import re
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from everview.adapter.coordinator import Coordinator
from everview.adapter.wall_clock import TimeSource
from everview.instance import Folder
from everview.serve.stream_metrics import add_stream_metrics
from everview.server.addresses import Address
from everview.server.metrics import Metrics
from everview.server.run import Options, start
from everview.storage.environment import Environment, wall_clock_ms
from everview.storage.opening import open_stores
from tests.adapter.history.server import Server
from tests.storage.faulty import Fault, FaultyBlob, FaultyConsensus

FAULTS = (Fault.FINE, Fault.BEFORE, Fault.FULL, Fault.LOST, Fault.AFTER)
_NUMBERS = struct.Struct("=qq")
_HTTP = re.compile(r"http 127\.0\.0\.1:([0-9]+)")


class Knobs:
    """The numbers, for whoever turns them and for the server."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(_NUMBERS.pack(0, 0))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _NUMBERS.size)

    @property
    def numbers(self) -> tuple[int, int]:
        """Milliseconds that the clock is off, and the place of the fault."""
        offset_ms, fault = _NUMBERS.unpack(self._memory[: _NUMBERS.size])
        return offset_ms, fault

    def turn(self, *, offset_ms: int | None = None, fault: Fault | None = None) -> None:
        """Change one or both."""
        before = self.numbers
        self._memory[: _NUMBERS.size] = _NUMBERS.pack(
            before[0] if offset_ms is None else offset_ms, before[1] if fault is None else FAULTS.index(fault)
        )


class TortureServer(Server):
    """One life of such a server."""

    def __init__(self, folder: Path, knobs: Knobs, before: tuple[str, ...] = ()) -> None:
        super().__init__((*before, sys.executable, "-m", "tests.torture.server", str(knobs.path)), folder)

    def http_port(self) -> int:
        """Where it speaks HTTP, once it listens."""
        self.port()
        found = _HTTP.search(self.said())
        assert found is not None
        return int(found[1])


@contextmanager
def torture_server(folder: Path) -> Iterator[TortureServer]:
    """A server with a fresh folder that is killed in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    server = TortureServer(folder / "data", Knobs(folder / "knobs"))
    try:
        server.port()
        yield server
    finally:
        server.kill()


def _plan(knobs: Knobs) -> Callable[[str], Fault]:
    def plan(call: str) -> Fault:
        return FAULTS[knobs.numbers[1]] if call in ("commit", "put", "put_file", "seal") else Fault.FINE

    return plan


def main(knobs: Knobs, folder: Path) -> None:
    """Serve until killed, or until the end is asked for."""
    stopped: list[int] = []
    parent = os.getppid()
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    time_source = TimeSource(wall_ms=lambda: wall_clock_ms() + knobs.numbers[0])
    metrics = Metrics()
    with Folder(folder) as opened:
        consensus, blob = open_stores(opened.path, None, None)
        stores = FaultyConsensus(consensus, _plan(knobs)), FaultyBlob(blob, _plan(knobs))
        environment = Environment(*stores, opened.path)
        options = Options(pg=Address("127.0.0.1", 0), http=Address("127.0.0.1", 0))
        with (
            Coordinator(environment, clock=time_source) as coordinator,
            start(coordinator, options, metrics) as running,
        ):
            add_stream_metrics(metrics, coordinator)
            print(f"http 127.0.0.1:{running.http.port if running.http else 0}")
            print(f"psql -h {running.pg.host} -p {running.pg.port}")
            while not stopped and not running.wait(0) and os.getppid() == parent:  # else nobody is left to kill it
                time.sleep(0.05)


if __name__ == "__main__":
    main(Knobs(Path(sys.argv[1])), Path(sys.argv[2]))
