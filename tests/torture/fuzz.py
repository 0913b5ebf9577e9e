"""Recorded conversations, mutated: the server answers with an error or ends the connection, and serves all others."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from tests.torture.recording import Conversation, record
from tests.torture.report import Line, Size
from tests.torture.sentinel import ANSWER_S_MAX, Sentinel, connect, descriptors, resident_mb
from tests.torture.server import TortureServer, torture_server
from tests.torture.soak import MEASURES, SAMPLE_S, Sample, flat

THREADS = 8
HTTP_SHARE = 20  # one request for so many messages
GROWTH_MB_MAX = 200.0
AUTHENTICATION_OK = b"R\0\0\0\x08\0\0\0\0"
PG_FIRST_S, HTTP_FIRST_S, QUIET_S = 2.0, 0.05, 0.03
LOGGED_IN_SHARE = 0.5  # of sessions, most of which begin as a driver's do
_EVIL = (b"", b"\0", b"\xff" * 8, b"${env:HOME}", b"'; DROP TABLE fuzz; --", b"%s%s%n", b"\x80\x81", b"A" * 5_000)
_PAGES = (b"/healthz", b"/readyz", b"/metrics", b"/", b"/nothing")


def _flip(rng: Random, data: bytes) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _with_length(rng: Random, data: bytes) -> bytes:
    """The same message, with another length."""
    length = rng.choice((0, 3, 4, -1, 2**31 - 1, len(data) + rng.randrange(-6, 7), rng.randrange(2**20)))
    return data[:1] + struct.pack("!i", length) + data[5:]


def _with_body(rng: Random, data: bytes) -> bytes:
    """The same kind of message, with something else put into its body, and the right length."""
    body, at = data[5:], rng.randrange(max(1, len(data) - 4))
    body = body[:at] + rng.choice(_EVIL) + body[at + rng.randrange(9) :]
    return data[:1] + struct.pack("!i", len(body) + 4) + body


def _other_kind(rng: Random, data: bytes) -> bytes:
    return bytes([rng.choice(b"QPBDECSHFXdcfp\0\xff")]) + data[1:]


MUTATIONS: tuple[Callable[[Random, bytes], bytes], ...] = (_flip, _cut, _with_length, _with_body, _other_kind)


def mutated(rng: Random, conversations: list[Conversation]) -> Conversation:
    """A conversation that no driver has."""
    said = list(rng.choice(conversations))
    if rng.random() < 0.2:  # the beginning of one, and the end of another
        other = rng.choice(conversations)
        said = said[: rng.randrange(1, len(said) + 1)] + other[rng.randrange(1, len(other)) :]
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(said)) if rng.random() < 0.05 else rng.randrange(1, max(2, len(said)))
        at = min(at, len(said) - 1)
        action = rng.random()
        if action < 0.6:
            said[at] = rng.choice(MUTATIONS)(rng, said[at])
        elif action < 0.7 and len(said) > 1:
            del said[at]
        elif action < 0.8:
            said.insert(at, said[at])
        elif action < 0.9:
            other_at = rng.randrange(len(said))
            said[at], said[other_at] = said[other_at], said[at]
        else:
            said.insert(at, rng.randbytes(rng.randrange(1, 60)))
    return said


def request(rng: Random) -> bytes:
    """An HTTP request that no browser sends."""
    lines = [b"GET " + rng.choice(_PAGES) + b" HTTP/1.1", b"Host: localhost", b"Accept: */*", b"Connection: close"]
    data = b"\r\n".join(lines) + b"\r\n\r\n"
    for _ in range(rng.randrange(4)):
        data = rng.choice((_flip, _cut, lambda r, d: d + r.randbytes(r.randrange(80))))(rng, data)
    return data


def send(port: int, data: bytes, first_s: float) -> tuple[bytes, str | None]:
    """Say it all, hear the answer, end, and read until the server ends too; gives the answer, and what is wrong.

    A server does nothing more for a client that has ended its side, so that comes last: when no answer has come for
    `first_s`, or nothing more for a moment.
    """
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S_MAX) as client:
        try:
            client.sendall(data)
            client.settimeout(first_s)
            with suppress(TimeoutError):  # it waits for more
                while some := client.recv(65536):
                    answer = answer or some
                    client.settimeout(QUIET_S)
            client.settimeout(ANSWER_S_MAX)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
        except TimeoutError:
            return answer, f"no answer and no end in {ANSWER_S_MAX:.0f} s to {data[:200]!r}… ({len(data)} bytes)"
        except OSError:  # the server has ended it, whatever was still on its way
            pass
    return answer, None


class Fuzz:
    """Threads that say such things until there were enough messages."""

    def __init__(self, server: TortureServer, conversations: list[Conversation], messages: int) -> None:
        self._pg, self._http = server.port(), server.http_port()
        self._conversations, self._wanted = conversations, messages
        self._lock = threading.Lock()
        self.messages = self.sessions = self.logged_in = self.requests = 0
        self.anomalies: list[str] = []

    def run(self, rng: Random) -> None:
        """Until all threads have said enough."""
        seeds = [rng.random() for _ in range(THREADS)]
        threads = [threading.Thread(target=self._talk, args=(Random(seed),), daemon=True) for seed in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _talk(self, rng: Random) -> None:
        due = itertools.count(HTTP_SHARE, HTTP_SHARE)
        own, next_request = 0, next(due)
        while self.messages < self._wanted and len(self.anomalies) < 20:
            try:
                said = mutated(rng, self._conversations)
                answer, found = send(self._pg, b"".join(said), PG_FIRST_S)
                own += len(said)
                while own >= next_request:
                    found = found or send(self._http, request(rng), HTTP_FIRST_S)[1]
                    next_request = next(due)
                    with self._lock:
                        self.requests += 1
            except OSError as error:
                answer, found = b"", f"cannot connect: {error}"
            with self._lock:
                self.messages += len(said)
                self.sessions += 1
                self.logged_in += answer.startswith(AUTHENTICATION_OK)
                if found is not None:
                    self.anomalies.append(found)


def run(size: Size, rng: Random, folder: Path) -> Iterator[Line]:
    """Mutated conversations of a driver, and HTTP requests, beside a client that is served."""
    with torture_server(folder) as server:
        conversations = record(server.port())
        fuzz = Fuzz(server, conversations, size.messages)
        before_mb, before_files = resident_mb(server.pid), descriptors(server.pid)
        samples: list[Sample] = []
        with Sentinel(server.port()) as sentinel, _sampled(server, samples):
            fuzz.run(rng)
        anomalies = list(fuzz.anomalies)
        if not server.alive:
            anomalies.append(f"the server died: {server.said()[-2000:]}")
        else:
            anomalies += _afterwards(server, before_mb, before_files)
        if fuzz.logged_in < LOGGED_IN_SHARE * fuzz.sessions:  # then nothing behind the login was tried
            anomalies.append(f"of {fuzz.sessions:,} sessions only {fuzz.logged_in:,} came in")
        figures = f"{fuzz.sessions:,} sessions, {fuzz.logged_in:,} of them logged in"
        yield Line("mutated messages", fuzz.messages, anomalies, figures)
        yield Line("mutated HTTP requests", fuzz.requests, [])
        yield Line("SELECT 1 of another client", len(sentinel.waits_ms), sentinel.anomalies, sentinel.figures)
        yield flat(MEASURES[0], samples, long=size.long)
        figures = f"{before_mb:.0f} to {resident_mb(server.pid):.0f} MB" if server.alive else ""
        yield Line("memory and descriptors afterwards", 1, [], figures)


@contextmanager
def _sampled(server: TortureServer, samples: list[Sample]) -> Iterator[None]:
    """While inside, the server's memory is looked at again and again."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(SAMPLE_S) and server.alive:
            samples.append(Sample(resident_mb(server.pid), 0, 0, 0, 0))

    samples.append(Sample(resident_mb(server.pid), 0, 0, 0, 0))
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _afterwards(server: TortureServer, before_mb: float, before_files: int) -> list[str]:
    """Whether a new client is served, nothing is left open, and nothing was a defect."""
    found = []
    with connect(server.port()) as connection:
        ((one,),) = connection.execute("SELECT count(*) FROM (VALUES (1)) AS v").fetchall()
        if one != 1:
            found.append(f"a new client is told {one}")
    grown_mb = resident_mb(server.pid) - before_mb
    if grown_mb > GROWTH_MB_MAX:
        found.append(f"memory grew by {grown_mb:.0f} MB")
    if descriptors(server.pid) > before_files + 50:
        found.append(f"descriptors: {before_files} before, {descriptors(server.pid)} after")
    said = server.said()
    if "Traceback" in said:
        found.append(f"a defect in the log: {said[said.index('Traceback') :][:2000]}")
    return found
