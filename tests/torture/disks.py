"""Disks that fail, are full or refuse writes: what was acknowledged is there, what was refused is not, reads go on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import psycopg

from tests.adapter.history.clients import is_lost
from tests.storage.faulty import Fault
from tests.torture.ledger import Ledger
from tests.torture.report import Line, Size
from tests.torture.sentinel import Sentinel, children, connect
from tests.torture.server import FAULTS, Knobs, TortureServer

DISK_MB = 20
WIDE = 500_000  # bytes of a row that fills it
INSERTS = 8  # in each burst
WAIT_S_MAX = 120.0
FULL = "53100"
FILLED_MAX = 2_000  # inserts
REMOUNTS_MAX = 20
READ_ONLY = "read-only file system"  # as a server says that refuses to start


def run(size: Size, rng: Random, folder: Path) -> Iterator[Line]:
    """Failing writes on purpose, then a small disk of our own."""
    yield from _failing(size, rng, folder / "failing")
    if not _can_mount(folder):
        yield Line("a disk that is full (cannot be mounted here: not tried)", 0)
        return
    yield from _full(folder / "full", rounds=3 if size.long else 2)


def _failing(size: Size, rng: Random, folder: Path) -> Iterator[Line]:
    """Bursts in which every write to the disk fails: with nothing done, no room, or an outcome that is not known."""
    folder.mkdir(parents=True)
    knobs = Knobs(folder / "knobs")
    anomalies: list[str] = []
    kills, book = 0, Ledger("book")
    server = TortureServer(folder / "data", knobs)
    try:
        connection = connect(server.port())
        book.create(connection)
        connection.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(DISTINCT number) AS n FROM book")
        for _ in range(size.faults):
            fault = rng.choice(FAULTS[1:])
            knobs.turn(fault=fault)
            try:
                for _ in range(INSERTS):
                    width = rng.choice((10, 10, 10, 600_000))  # in consensus alone, and in a part
                    if book.write(connection, width=width) is None:
                        anomalies.append(f"acknowledged while every write {fault.value}")
                if rng.random() < 0.2:
                    kills += 1
                    server.kill()
            except psycopg.Error as error:
                if not is_lost(error):
                    raise
            knobs.turn(fault=Fault.FINE)
            if not server.alive:
                server = TortureServer(folder / "data", knobs)
                connection = connect(server.port())
            anomalies += _goes_on(book, connection)
        anomalies += book.check(connection)
        anomalies += _view_goes_on(connection)
    except psycopg.Error as error:
        anomalies.append(f"{error.sqlstate} {error}")
    finally:
        server.kill()
    yield Line("inserts while writes fail", book.attempts, anomalies, f"{book.figures}; {kills} kills")


def _goes_on(book: Ledger, connection: psycopg.Connection[tuple[object, ...]]) -> list[str]:
    """Whether a write succeeds once the disk does, without a restart."""
    late = time.monotonic() + WAIT_S_MAX
    while (state := book.write(connection)) is not None:
        if time.monotonic() > late:
            return [f"writes fail with {state} though the disk works again"]
        time.sleep(0.1)
    return []


def _view_goes_on(connection: psycopg.Connection[tuple[object, ...]]) -> list[str]:
    """Whether the view is right once the disk works; until it has tried again, it says why it cannot go on."""
    late = time.monotonic() + WAIT_S_MAX
    while True:
        try:
            connection.execute("BEGIN")
            view = connection.execute("SELECT n FROM counted").fetchall()
            table = connection.execute("SELECT count(DISTINCT number) FROM book").fetchall()
            connection.execute("COMMIT")
            return [] if view == table else [f"the view says {view}, and the table {table}"]
        except psycopg.Error as error:
            connection.execute("ROLLBACK")
            if time.monotonic() > late:
                return [f"the view does not go on: {error.sqlstate} {error}"]
            time.sleep(0.2)


def _mounted(disk: Path, then: str) -> tuple[str, ...]:
    """A command that mounts a small file system, which only what it runs then sees."""
    apart = ("unshare", "--mount") if os.getuid() == 0 else ("unshare", "--map-root-user", "--mount")
    mount = f'mount -t tmpfs -o size={DISK_MB}m tmpfs "$1" && shift && {then}'
    return (*apart, "sh", "-c", mount, "sh", str(disk))


def _can_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None or not Path("/proc/self/root").exists():
        return False
    return subprocess.run([*_mounted(folder, "true")], check=False, capture_output=True).returncode == 0


def _full(folder: Path, *, rounds: int) -> Iterator[Line]:
    """A small file system that fills up, with room made again, and kills meanwhile; then a start on it read-only."""
    folder.mkdir(parents=True)
    disk = folder / "disk"
    disk.mkdir()
    # The folder is a file system that only the server sees; when a server ends, the next one begins on it.
    before = _mounted(disk, f'while kill -0 {os.getpid()}; do "$@"; done')
    server = TortureServer(disk / "data", Knobs(folder / "knobs"), before)
    anomalies: list[str] = []
    book = Ledger("book")
    try:
        connection = connect(server.port())
        book.create(connection)
        (inside,) = _inside(server)
        for number in range(rounds):
            # Something else takes the room, less of it each time, for what is written stays.
            taken_mb = (rounds - number) * DISK_MB // (rounds + 1)
            _take(Path(f"/proc/{inside}/root{disk}/ballast"), taken_mb)
            with Sentinel(_latest_port(server)) as sentinel:
                while book.write(connection, width=WIDE) is None:
                    assert book.attempts < FILLED_MAX, "the disk is never full"
                for _ in range(3):
                    book.write(connection, width=WIDE)
                connection.execute("SELECT count(*) FROM book").fetchall()
            anomalies += sentinel.anomalies
            if set(book.refused) - {FULL}:
                anomalies.append(f"refused with {dict(book.refused)}")
            if number == 1:  # a kill on a full disk, and a start on it
                connection = _killed(server, inside)
                (inside,) = _inside(server)
            Path(f"/proc/{inside}/root{disk}/ballast").unlink()
            anomalies += _goes_on(book, connection)
            anomalies += book.check(connection)
        yield Line("inserts until a disk is full", book.attempts, anomalies, book.figures)
        anomalies = []
        yield _read_only(server, disk, book)
    except (psycopg.Error, AssertionError, OSError) as error:
        anomalies.append(f"{type(error).__name__}: {error}")
        yield Line("a disk that is full, then read-only", book.attempts, anomalies, book.figures)
    finally:
        server.kill()


def _take(ballast: Path, megabytes: int) -> None:
    """Take so much of a disk, or all that is left of it."""
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        for _ in range(megabytes):
            file.write(bytes(2**20))


def _read_only(server: TortureServer, disk: Path, book: Ledger) -> Line:
    """A start on a disk that can only be read: refused, with the reason; once it can be written to, all is there.

    While a server has files open, the system does not let its disk become read-only.
    """
    what = "starts on a disk that is read-only"
    (inside,) = _inside(server)
    lives, said = server.said().count("psql -h"), len(server.said())
    os.kill(inside, signal.SIGKILL)
    if not _remounted(server, disk, "ro"):
        return Line(f"{what} (cannot be mounted so here: not tried)", 0)
    late = time.monotonic() + WAIT_S_MAX
    while READ_ONLY not in (refusals := server.said()[said:]):
        assert time.monotonic() < late, f"no server says that the disk is read-only: {refusals[-2000:]}"
        time.sleep(0.05)
    anomalies = [] if server.said().count("psql -h") == lives else ["a server started on a read-only disk"]
    assert _remounted(server, disk, "rw")
    while server.said().count("psql -h") == lives:
        assert time.monotonic() < late, f"no server starts on a disk that works again: {server.said()[-2000:]}"
        time.sleep(0.05)
    with connect(_latest_port(server)) as connection:
        anomalies += _goes_on(book, connection)
        anomalies += book.check(connection)
    return Line(what, refusals.count(READ_ONLY), anomalies, f"{len(book.acknowledged):,} inserts are there")


def _remounted(server: TortureServer, disk: Path, mode: str) -> bool:
    """Mount the file system of the server again, to be written to or not."""
    apart = () if os.getuid() == 0 else ("--user", "--preserve-credentials")
    command = ["nsenter", *apart, "--mount", "--target", str(server.pid), "mount", "-o", f"remount,{mode}", str(disk)]
    if shutil.which("nsenter") is None:
        return False
    for _ in range(REMOUNTS_MAX):  # the server that was killed may have files open for another moment
        if subprocess.run(command, check=False, capture_output=True).returncode == 0:
            return True
        time.sleep(0.02)
    return False


def _inside(server: TortureServer) -> list[int]:
    """The server's own process, below the shell that starts it."""
    return [pid for pid in children(server.pid) if "python" in Path(f"/proc/{pid}/comm").read_text()]


def _latest_port(server: TortureServer) -> int:
    return int(server.said().rpartition("-p ")[2].split()[0])


def _killed(server: TortureServer, inside: int) -> psycopg.Connection[tuple[object, ...]]:
    """Kill the server, and connect to the next one."""
    lives = server.said().count("psql -h")
    os.kill(inside, signal.SIGKILL)
    late = time.monotonic() + WAIT_S_MAX
    while server.said().count("psql -h") == lives:
        assert time.monotonic() < late, f"no server starts on a full disk: {server.said()[-2000:]}"
        time.sleep(0.05)
    return connect(_latest_port(server))
