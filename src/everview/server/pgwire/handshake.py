"""How a connection opens, on the event loop: encryption, what the client wants, who it is, and then a session."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from everview.adapter.contract import Session
from everview.adapter.errors import INVALID_PASSWORD, PROTOCOL_VIOLATION
from everview.compute.sql.errors import SqlError
from everview.server.errors import ConnectionEnd
from everview.server.pgwire import backend
from everview.server.pgwire.authentication import PasswordExchange, Trust
from everview.server.pgwire.framing import AUTH_LIMITS, Framer
from everview.server.pgwire.peers import Peer
from everview.server.pgwire.startup import CancelRequest, GssRequest, Packet, PacketReader, SslRequest, Startup
from everview.server.pgwire.throttle import guesser

if TYPE_CHECKING:
    from everview.server.pgwire.connection import Connection
    from everview.server.pgwire.server import PgServer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Opened:
    """A session, what the client said at first, and what it has sent since."""

    session: Session
    startup: Startup
    rest: bytes


class Handshake:
    """The handshake of one connection: `run` waits for what `feed` brings."""

    def __init__(self, server: PgServer, connection: Connection, transport: asyncio.Transport, peer: Peer) -> None:
        self._server = server
        self._connection = connection
        self.transport = transport
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self._encrypted = False
        self.in_handshake = False
        self._lost = False
        self._arrived = asyncio.Event()
        self._reader: PacketReader | Framer = PacketReader()

    def feed(self, data: bytes) -> None:
        """Bytes came. A client that sends on before it is let in is not read further than a little."""
        self._reader.feed(data)
        if self._reader.held > self._server.limits.inbox_bytes_max:
            self.transport.pause_reading()
        self._arrived.set()

    def lost(self) -> None:
        self._lost = True
        self._arrived.set()

    async def run(self) -> Opened | None:
        """Open a session, or do what else the client wants; ConnectionEnd says why it may not."""
        async with asyncio.timeout(self._server.limits.silent_s_max):
            startup = await self._negotiate()
        return await self._enter(startup) if startup is not None else None

    async def _negotiate(self) -> Startup | None:
        """What the client wants; None if that is done."""
        asked: set[type[Packet]] = set()
        while True:
            assert isinstance(self._reader, PacketReader)
            while (packet := self._reader.next()) is None:
                await self._more()
            if isinstance(packet, Startup):
                return packet
            if isinstance(packet, CancelRequest):
                # Done before the connection closes, which is all that the client waits for.
                await self._on_worker(partial(self._server.cancel, packet.process, packet.secret))
                return None
            if type(packet) in asked:
                raise ConnectionEnd(PROTOCOL_VIOLATION, "encryption was asked for twice")
            asked.add(type(packet))
            if isinstance(packet, GssRequest) or self._server.tls is None or self._encrypted:
                self.transport.write(backend.ENCRYPTION_NO)
            else:
                assert isinstance(packet, SslRequest)
                await self._start_tls(self._server.tls)

    async def _start_tls(self, context: ssl.SSLContext) -> None:
        if self._reader.held:  # someone in the middle wants it to be taken for what comes encrypted
            raise ConnectionEnd(PROTOCOL_VIOLATION, "received unencrypted data after SSL request")
        self.transport.write(backend.SSL_YES)
        self.in_handshake = True
        try:
            transport = await self._loop.start_tls(self.transport, self._connection, context, server_side=True)
        except (OSError, ssl.SSLError) as error:
            raise ConnectionResetError("the TLS handshake failed") from error
        if transport is None:  # lost meanwhile
            raise ConnectionResetError
        self.transport = transport
        self.in_handshake, self._encrypted = False, True

    async def _enter(self, startup: Startup) -> Opened:
        """Authenticate, and open a session."""
        server = self._server
        server.policy.check(self._peer, encrypted=self._encrypted)
        self._reader = Framer(AUTH_LIMITS, self._reader.rest)
        if startup.negotiated:
            self.transport.write(backend.negotiate_protocol_version(startup.minor, startup.unknown_options))
        trust = await self._on_worker(partial(server.policy.trust, self._peer))
        if not trust.granted:
            await self._prove_password(startup.user, trust)
        superuser = await self._on_worker(partial(server.adapter.is_superuser, startup.user))
        server.admit(self._connection, superuser=superuser)
        session = await self._on_worker(partial(self._connect, startup), too_late=self._disconnect)
        self.transport.write(backend.AUTHENTICATION_OK)
        return Opened(session, startup, self._reader.rest)

    async def _prove_password(self, user: str, trust: Trust) -> None:
        """Let the client prove the role's password; who has guessed wrong before has to wait."""
        server = self._server
        verifier = await self._on_worker(partial(server.adapter.secret, user))
        channel = server.channel if self._encrypted else None
        exchange = PasswordExchange(user, verifier, server.policy, channel=channel, hint=trust.hint)
        who = guesser(self._peer.host, trust.account)
        self.transport.write(exchange.start())
        while not exchange.done:
            assert isinstance(self._reader, Framer)
            while (frame := self._reader.next()) is None:
                await self._more()
            # Without a wait nothing comes between this and the answer: guesses at the same time are counted one by one.
            if exchange.challenged and (wait_s := server.throttle.wait_s(who, user)) > 0:
                server.metrics.throttled.inc()
                await asyncio.sleep(wait_s)
            try:
                self.transport.write(exchange.answer(frame))
            except ConnectionEnd as error:
                if error.sqlstate == INVALID_PASSWORD:
                    server.throttle.failed(who, user)
                raise
        server.throttle.succeeded(who, user)

    def _connect(self, startup: Startup) -> Session:
        """On a thread: the client's place is free again if there is no session, whether it waits or has left."""
        server = self._server
        try:
            return server.adapter.connect(startup.user, startup.database, startup.settings)
        except BaseException:
            self._loop.call_soon_threadsafe(server.release, self._connection)
            raise

    def _disconnect(self, session: Session) -> None:
        """On a thread: the client has left before its session was there."""
        try:
            session.close()
        finally:
            self._loop.call_soon_threadsafe(self._server.release, self._connection)

    async def _on_worker(self, call: Callable[[], T], *, too_late: Callable[[T], None] | None = None) -> T:
        """Run on a thread what may block; `too_late` runs there with what came when nobody waits any more."""
        future: asyncio.Future[T] = self._loop.create_future()
        workers = self._server.workers

        def give_back(result: T) -> None:
            if too_late is not None:
                workers.run(partial(too_late, result))

        def give(result: T) -> None:
            if future.cancelled():
                give_back(result)
            else:
                future.set_result(result)

        def fail(error: BaseException) -> None:
            if not future.cancelled():
                future.set_exception(error)

        def work() -> None:
            try:
                result = call()
            except BaseException as error:
                self._loop.call_soon_threadsafe(fail, error)
            else:
                self._loop.call_soon_threadsafe(give, result)

        workers.run(work)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:  # it came at the same moment
                give_back(future.result())
            raise
        except SqlError as error:
            raise ConnectionEnd(error.sqlstate, error.message, detail=error.detail, hint=error.hint) from error

    async def _more(self) -> None:
        if self._lost:
            raise ConnectionResetError
        self._arrived.clear()
        self.transport.resume_reading()
        await self._arrived.wait()
