"""Starts the server: the wire protocol and HTTP over an adapter, on an event loop in a thread of its own.

    with start(adapter, Options(pg=Address("127.0.0.1", 6875))) as running:
        print(running.pg)
        running.wait()

The caller closes the adapter, after the server.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from everview.adapter.contract import Adapter
from everview.closing import Closing
from everview.errors import EverviewError
from everview.server.addresses import Address, CannotListen, Place, bind, bound, is_private, resolve
from everview.server.http.server import HttpServer
from everview.server.memory import MemoryKeeper
from everview.server.metrics import Metrics
from everview.server.pgwire.authentication import Auth, Policy
from everview.server.pgwire.binding import end_point
from everview.server.pgwire.limits import Limits
from everview.server.pgwire.peers import owners_are_known
from everview.server.pgwire.server import PgServer
from everview.server.unix_sockets import UnixSocket, bind_unix

PG_PORT = 6875
HTTP_PORT = 6876
LOOPBACK = "127.0.0.1"
# For how long a thread may hold the interpreter's lock while another wants it. A short statement takes the lock several
# times, and each time waits this long if another thread computes.
SWITCH_S = 0.0005
DEFAULT_ROLE = "everview"
_TLS_HINT = "give --tls-cert and --tls-key, or listen on 127.0.0.1, or let others read along with --insecure"
_PASSWORD_HINT = "set one with: everview sql --data DIR -c \"ALTER ROLE {role} PASSWORD '...'\""
UNKNOWN_OWNERS = (
    "this system does not tell which account a TCP connection belongs to, so everyone needs a password over TCP: use"
    " the Unix socket, or let every account of this machine in with --auth trust"
)


@dataclass(frozen=True, slots=True)
class Tls:
    """A certificate with its chain, and its private key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Options:
    """What the server listens on, and whom it lets in.

    An address that other machines can reach needs TLS, or `insecure`; the wire protocol needs a role with a password
    as well. HTTP uses TLS where other machines can reach it, and never asks for a password: it shows metrics, no data.
    """

    pg: Address = field(default_factory=lambda: Address(LOOPBACK, PG_PORT))
    http: Address | None = field(default_factory=lambda: Address(LOOPBACK, HTTP_PORT))
    tls: Tls | None = None
    insecure: bool = False
    auth: Auth = "owner"
    # Folders for Unix sockets. If none is needed, a folder that cannot be used gives a notice only.
    socket_dirs: Sequence[Path] = ()
    sockets_needed: bool = True
    limits: Limits = field(default_factory=Limits)
    role: str = DEFAULT_ROLE  # whose password is looked for before the server listens to other machines


class Running(Closing):
    """A running server, in a thread of its own.

    `pg` and `http` are its addresses, `unix` the files of its Unix sockets, `notices` what its operator should know.
    """

    def __init__(self, adapter: Adapter, options: Options, metrics: Metrics) -> None:
        self.metrics = metrics
        self._adapter = adapter
        self._options = options
        self._tls = _tls_context(options.tls)
        pg_places = _checked(options, adapter)
        self._pg_sockets = bind(pg_places, "--pg-port")
        try:
            http_places = _checked_http(options)
            self._http_encrypted = options.tls is not None and not is_private(http_places)
            self._http_sockets = bind(http_places, "--http-port")
        except CannotListen:
            _close(self._pg_sockets)
            raise
        self.pg = bound(self._pg_sockets[0])
        self.notices: list[str] = []
        try:
            self._unix_sockets = self._bind_unix()
        except CannotListen:
            _close([*self._pg_sockets, *self._http_sockets])
            raise
        self.unix = [each.path for each in self._unix_sockets]
        if options.auth == "owner" and not owners_are_known():
            self.notices.append(UNKNOWN_OWNERS)
        self.http = bound(self._http_sockets[0]) if self._http_sockets else None
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name="everview-server", daemon=True)
        self._memory = MemoryKeeper()

    def _bind_unix(self) -> list[UnixSocket]:
        made: list[UnixSocket] = []
        for folder in self._options.socket_dirs:
            try:
                made.append(bind_unix(folder, self.pg.port))
            except CannotListen as error:
                if self._options.sockets_needed:
                    _remove(made)
                    raise
                self.notices.append(error.message)
        return made

    def _start(self) -> Running:
        sys.setswitchinterval(SWITCH_S)
        self._memory.start()
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._memory.stop()
            raise self._failure
        return self

    @property
    def http_url(self) -> str | None:
        """The URL of HTTP; with TLS where other machines can reach it."""
        return None if self.http is None else f"{'https' if self._http_encrypted else 'http'}://{self.http}"

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the server has ended; False if it has not ended in time."""
        return self._ended.wait(seconds)

    def close(self) -> None:
        """Tell clients that the server stops, and stop it. Safe more than once."""
        if not self._ended.is_set():
            with suppress(RuntimeError):  # it ended on its own meanwhile
                self._loop.call_soon_threadsafe(self._stop.set)
            self._ended.wait()
        self._thread.join()
        self._memory.stop()

    def _main(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            _close([*self._pg_sockets, *self._http_sockets])
            _remove(self._unix_sockets)
            self._started.set()
            self._ended.set()

    async def _serve(self) -> None:
        options = self._options
        asyncio.get_running_loop().set_exception_handler(_quiet)
        pg = PgServer(
            self._adapter,
            metrics=self.metrics,
            policy=Policy(auth=options.auth, insecure=options.insecure),
            limits=options.limits,
            tls=self._tls,
            channel=end_point(options.tls.certificate) if options.tls is not None else None,
        )
        files = options.tls if self._http_encrypted else None
        http = HttpServer(
            self._adapter.ready,
            self.metrics,
            warnings=self._adapter.warnings,
            certificate=str(files.certificate) if files else None,
            key=str(files.key) if files else None,
        )
        try:
            await pg.start([*self._pg_sockets, *(each.sock for each in self._unix_sockets)])
            if self._http_sockets:
                await http.start(self._http_sockets)
            self._started.set()
            await self._stop.wait()
        finally:
            await asyncio.gather(pg.close(), http.close())


@contextmanager
def start_http(options: Options, metrics: Metrics) -> Iterator[None]:
    """Within the block, serve health and metrics alone, for a process that is not ready yet."""
    places = _checked_http(options)
    files = options.tls if not is_private(places) else None
    sockets = bind(places, "--http-port")
    server = HttpServer(
        lambda: False,
        metrics,
        certificate=str(files.certificate) if files else None,
        key=str(files.key) if files else None,
    )
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        await server.start(sockets)
        await stop.wait()
        await server.close()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, name="everview-standby-http", daemon=True)
    thread.start()
    try:
        yield
    finally:
        with suppress(RuntimeError):  # it ended on its own
            loop.call_soon_threadsafe(stop.set)
        thread.join()
        _close(sockets)


def start(adapter: Adapter, options: Options | None = None, metrics: Metrics | None = None) -> Running:
    """Start the server; CannotListen says in one line why it cannot. The caller may have added to `metrics`."""
    return Running(adapter, options or Options(), metrics or Metrics())._start()


def _checked(options: Options, adapter: Adapter) -> list[Place]:
    """Resolve the address of the wire protocol; raises if listening there would be unsafe."""
    places = resolve(options.pg, "--pg-host")
    if is_private(places):
        if options.auth == "password" and adapter.secret(options.role) is None:
            raise CannotListen(
                f'everyone needs a password, and the role "{options.role}" has none',
                hint=_PASSWORD_HINT.format(role=options.role) + ", or leave out --auth password",
            )
        return places
    if options.tls is None and not options.insecure:
        raise CannotListen(f"other machines can reach {options.pg}, and there is no TLS", hint=_TLS_HINT)
    if adapter.secret(options.role) is None:
        raise CannotListen(
            f'other machines can reach {options.pg}, and the role "{options.role}" has no password',
            hint=_PASSWORD_HINT.format(role=options.role) + ", or listen on 127.0.0.1",
        )
    return places


def _checked_http(options: Options) -> list[Place]:
    if options.http is None:
        return []
    places = resolve(options.http, "--http-host")
    if not is_private(places) and options.tls is None and not options.insecure:
        raise CannotListen(f"other machines can reach {options.http}, and there is no TLS", hint=_TLS_HINT)
    return places


def _tls_context(files: Tls | None) -> ssl.SSLContext | None:
    if files is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.certificate, files.key)
    except (OSError, ssl.SSLError) as error:
        raise EverviewError(
            "cannot use the TLS certificate",
            detail=f"{files.certificate} with {files.key}: {error}",
            hint="both are PEM files, and the key is that of the certificate",
        ) from None
    return context


def _quiet(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Ignore clients that break off: the code of a connection logs what matters."""
    error = context.get("exception")
    if not isinstance(error, OSError | ssl.SSLError | ConnectionError):
        asyncio.get_running_loop().default_exception_handler(context)


def _close(sockets: Sequence[socket.socket]) -> None:
    for sock in sockets:
        sock.close()


def _remove(sockets: Sequence[UnixSocket]) -> None:
    for each in sockets:
        each.remove()
        each.sock.close()
