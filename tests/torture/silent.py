"""Slow and silent clients: they stop reading, stop speaking or vanish, and nobody else notices."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import psycopg

from everview.server.addresses import Address
from tests.server import raw
from tests.server.raw import RawClient
from tests.torture.report import Line, Size
from tests.torture.sentinel import Sentinel, connect, descriptors, resident_mb
from tests.torture.server import TortureServer, torture_server

ROWS, WIDTH = 20_000, 500  # of the table that is asked for: 10 MB
GROWTH_MB_MAX, GROWTH_EACH_MB_MAX = 300.0, 30.0  # for all, and for each: a result of 10 MB is in memory once or twice
GONE_S_MAX = 120.0
WATCHED_S, WATCHED_SHORTLY_S = 2.0, 0.3  # for which others are watched while they are silent

Open = Callable[[TortureServer, Random], object]


def _entered(server: TortureServer) -> RawClient:
    client = RawClient(Address("127.0.0.1", server.port()), timeout_s=60)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
    client.enter()
    return client


def _stops_reading_a_result(server: TortureServer, _: Random) -> RawClient:
    client = _entered(server)
    client.send(raw.query("SELECT * FROM large"))
    return client


def _stops_reading_a_subscription(server: TortureServer, _: Random) -> RawClient:
    client = _entered(server)
    client.send(raw.query("COPY (SUBSCRIBE TO large) TO STDOUT"))
    return client


def _stops_reading_a_pipeline(server: TortureServer, _: Random) -> RawClient:
    client = _entered(server)
    ask = raw.parse("SELECT * FROM large LIMIT 500") + raw.bind() + raw.execute() + raw.SYNC
    client.socket.setblocking(False)
    with suppress(BlockingIOError):
        client.socket.send(ask * 200)
    return client


def _half_a_startup(server: TortureServer, rng: Random) -> RawClient:
    client = RawClient(Address("127.0.0.1", server.port()))
    packet = raw.startup()
    client.send(packet[: rng.randrange(len(packet))])
    return client


def _half_a_message(server: TortureServer, rng: Random) -> RawClient:
    client = _entered(server)
    message = raw.query("SELECT 1")
    client.send(message[: rng.randrange(1, len(message))])
    return client


def _announces_a_gigabyte(server: TortureServer, _: Random) -> RawClient:
    client = _entered(server)
    client.send(b"d" + struct.pack("!i", 2**30))
    return client


def _half_a_copy(server: TortureServer, _: Random) -> RawClient:
    client = _entered(server)
    client.send(raw.query("COPY large FROM STDIN"))
    client.until("G")
    client.send(*(raw.copy_data(b"x" * 50_000) for _ in range(5)))  # a line without an end
    return client


def _block_left_open(server: TortureServer, _: Random) -> RawClient:
    client = _entered(server)
    client.ask(raw.query("BEGIN"))
    client.ask(raw.query("INSERT INTO small VALUES (1)"))
    return client


def _half_a_request(server: TortureServer, rng: Random) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.http_port()), timeout=60)
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    client.sendall(request[: rng.randrange(len(request) - 1)])
    return client


KINDS: dict[str, Open] = {
    "readers that stop reading a result": _stops_reading_a_result,
    "readers that stop reading a SUBSCRIBE": _stops_reading_a_subscription,
    "readers that stop reading a pipeline": _stops_reading_a_pipeline,
    "half packets at the beginning": _half_a_startup,
    "half messages": _half_a_message,
    "messages that announce a gigabyte": _announces_a_gigabyte,
    "COPY of a line without an end": _half_a_copy,
    "blocks left open": _block_left_open,
    "half HTTP requests": _half_a_request,
}


def run(size: Size, rng: Random, folder: Path) -> Iterator[Line]:
    """Each kind of client, many at once, beside one that is served and others who come in."""
    with torture_server(folder) as server:
        with connect(server.port()) as connection:
            connection.execute("CREATE TABLE large (k int, v text)")
            connection.execute("CREATE TABLE small (k int)")
            connection.execute(f"INSERT INTO large SELECT g, repeat('x', {WIDTH}) FROM generate_series(1, {ROWS}) AS g")
        for what, open_one in KINDS.items():
            yield _tried(server, what, open_one, size, rng)


def _tried(server: TortureServer, what: str, open_one: Open, size: Size, rng: Random) -> Line:
    before_mb, before_files = resident_mb(server.pid), descriptors(server.pid)
    peak_mb = before_mb
    opened = 0
    anomalies: list[str] = []
    with ExitStack() as stack:
        sentinel = Sentinel(server.port())
        stack.enter_context(sentinel)
        clients = stack.enter_context(ExitStack())
        try:
            for _ in range(size.silent):
                clients.enter_context(open_one(server, rng))  # type: ignore[arg-type]
                opened += 1
            over = time.monotonic() + (WATCHED_S if size.long else WATCHED_SHORTLY_S)
            while time.monotonic() < over:
                with connect(server.port()) as connection:  # someone else comes in, writes and goes
                    connection.execute("INSERT INTO large VALUES (0, 'new')")
                peak_mb = max(peak_mb, resident_mb(server.pid))
                time.sleep(0.1)
        except (psycopg.Error, OSError, EOFError) as error:
            anomalies.append(f"after {opened} of them: {type(error).__name__}: {error}")
    anomalies += sentinel.anomalies
    if peak_mb - before_mb > GROWTH_MB_MAX + GROWTH_EACH_MB_MAX * opened:
        anomalies.append(f"memory grew by {peak_mb - before_mb:.0f} MB")
    late = time.monotonic() + GONE_S_MAX
    while descriptors(server.pid) > before_files + 2 and time.monotonic() < late:
        time.sleep(0.05)
    if descriptors(server.pid) > before_files + 2:
        anomalies.append(f"{descriptors(server.pid) - before_files} connections are left")
    if "Traceback" in server.said():
        anomalies.append(f"a defect in the log: {server.said()[-2000:]}")
    return Line(what, opened, anomalies, f"{sentinel.figures}; + {peak_mb - before_mb:.0f} MB")
