"""One client's connection: asyncio's callbacks on one side, the session's thread on the other.

The thread is started when messages come and leaves when there are none, so idle clients cost no thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from everview.adapter.contract import IdleLimit
from everview.adapter.errors import INTERNAL
from everview.server.errors import ClientGone, ConnectionEnd, is_defect, report_of
from everview.server.log import log
from everview.server.pgwire import backend, canceling
from everview.server.pgwire.canceling import Canceler, Key
from everview.server.pgwire.channel import Channel
from everview.server.pgwire.conversation import Conversation
from everview.server.pgwire.framing import Frame, Framer, session_limits
from everview.server.pgwire.handshake import Handshake, Opened
from everview.server.pgwire.peers import Peer
from everview.server.pgwire.startup import LONG_KEYS_MINOR

if TYPE_CHECKING:
    from everview.server.pgwire.server import PgServer

# Seconds: when to ask a silent peer whether it is still there, how often, and how many times.
_KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))
# Milliseconds that bytes may stay unacknowledged before the peer counts as gone.
_UNACKNOWLEDGED_MS_MAX = 120_000


class Connection(asyncio.Protocol):
    """A connection, from its first byte to its last."""

    def __init__(self, server: PgServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._handshake: Handshake | None = None
        self._task: asyncio.Task[None] | None = None
        self._live: _Live | None = None
        self.key: Key | None = None

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        try:
            peer = Peer.of(transport.get_extra_info("socket"))
            _configure(peer.sock)
            self._server.register(self, peer.host)
        except OSError:  # gone already
            self.abort()
        else:
            self._handshake = Handshake(self._server, self, self._transport, peer)
            self._task = self._loop.create_task(self._open(self._handshake))

    def data_received(self, data: bytes) -> None:
        if self._live is not None:
            self._live.feed(data)
        elif self._handshake is not None:
            self._handshake.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._live is not None:
            self._live.channel.lost()
            self.cancel(canceling.CLIENT_GONE)
        elif self._handshake is not None and self._task is not None:
            self._handshake.lost()
            self._task.cancel()
        self._server.forget(self)

    def pause_writing(self) -> None:
        if self._live is not None:
            self._live.channel.pause_writing()

    def resume_writing(self) -> None:
        if self._live is not None:
            self._live.channel.resume_writing()

    # What the server calls.

    def cancel(self, reason: str) -> None:
        """End what runs; returns at once."""
        if self._live is not None:
            canceler = self._live.canceler
            self._server.workers.run(lambda: canceler.cancel(reason))

    def cancel_now(self) -> None:
        """End what runs, as a client asks for; for a thread that may wait."""
        if self._live is not None:
            self._live.canceler.cancel(canceling.USER_REQUEST)

    def shut_down(self, error: ConnectionEnd) -> None:
        """Say why and leave."""
        if self._live is not None:
            self._live.channel.end(error)
            self.cancel(canceling.SHUTDOWN)
        else:
            self._turn_away("shutdown", error)

    def turn_away(self, error: ConnectionEnd) -> None:
        """Make room for others, before there is a session."""
        self._turn_away("full", error)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # On the loop.

    async def _open(self, handshake: Handshake) -> None:
        try:
            async with asyncio.timeout(self._server.limits.startup_s_max):
                opened = await handshake.run()
        except ConnectionEnd as error:
            self._refuse("refused", error)
        except TimeoutError:
            self._server.metrics.attempts.labels("timeout").inc()
            self.abort()
        except ConnectionError:
            self.abort()
        except Exception as error:
            if is_defect(error):
                log.error("a connection failed in a way that nobody foresaw", exc_info=error)
            self._refuse("failed", ConnectionEnd(INTERNAL, "the connection failed", detail=str(error)))
        else:
            self._transport = handshake.transport
            if opened is None:
                self._close()
            else:
                self._begin(opened)

    def _begin(self, opened: Opened) -> None:
        """The session is there: from now on messages go to its thread."""
        assert self._transport is not None
        self.key = self._server.keys.issue(self, long=opened.startup.minor >= LONG_KEYS_MINOR)
        self._live = _Live(self._server, self, self._transport, opened)
        self._server.metrics.attempts.labels("accepted").inc()
        self._live.channel.start()
        self._transport.resume_reading()
        self._live.feed(b"")

    def _turn_away(self, outcome: str, error: ConnectionEnd) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._handshake is not None and self._handshake.in_handshake:
            self.abort()  # nothing can be said in the midst of it
        else:
            self._refuse(outcome, error)

    def _refuse(self, outcome: str, error: ConnectionEnd) -> None:
        self._server.metrics.attempts.labels(outcome).inc()
        if self._handshake is not None:
            self._transport = self._handshake.transport
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(backend.error_response(report_of(error)))
            self._close()

    def _close(self) -> None:
        assert self._transport is not None
        self._transport.close()
        self._loop.call_later(self._server.limits.linger_s_max, self._transport.abort)


class _Live:
    """A connection that has a session."""

    def __init__(self, server: PgServer, connection: Connection, transport: asyncio.Transport, opened: Opened) -> None:
        self._server = server
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._greeted = False
        self._silence: asyncio.TimerHandle | None = None  # what ends the connection if the client stays silent
        self._limit: IdleLimit | None = None
        self._framer = Framer(session_limits(server.limits.message_bytes_max), opened.rest)
        self._account = server.budget.account()
        self._account.take(self._framer.held)
        self.channel = Channel(
            self._loop,
            transport,
            limits=server.limits,
            account=self._account,
            work=lambda: server.workers.run(self._work),
        )
        self.canceler = Canceler(opened.session, self.channel)
        self._conversation = Conversation(
            opened.session, self.channel, self.canceler, limits=server.limits, metrics=server.metrics
        )

    def feed(self, data: bytes) -> None:
        """On the loop: bytes came."""
        self._heard()
        if self.channel.idle and not self._framer.held:
            answer = self._conversation.look_up(data)
            if answer is not None:
                self.channel.answer(answer)
                self._listen(self._limit)
                return
        if not self._account.take(len(data)):
            self.channel.end(
                ConnectionEnd(
                    "53200", "out of memory", detail="all clients together have sent more than is kept for them"
                )
            )
            return
        self._framer.feed(data)
        frames: list[Frame] = []
        end: ConnectionEnd | None = None
        try:
            while (frame := self._framer.next()) is not None:
                frames.append(frame)
        except ConnectionEnd as error:
            end = error
        if frames:
            self.channel.put(frames)
        if end is not None:
            self.channel.end(end)

    def _work(self) -> None:
        """Handle the messages that have come, on the session's thread, and leave when all are handled."""
        farewell = b""
        try:
            if not self._greeted:
                self._greeted = True
                assert self._connection.key is not None
                self._conversation.welcome(self._connection.key)
            while True:
                limit = self._conversation.idle_limit
                frame = self.channel.take()
                if frame is None:
                    if limit is not None or self._limit is not None:
                        self._post(partial(self._listen, limit))
                    return
                if not self._conversation.handle(frame):
                    break
        except ClientGone:
            pass
        except Exception as error:
            if is_defect(error):
                log.error("a session failed in a way that nobody foresaw", exc_info=error)
            end = error if isinstance(error, ConnectionEnd) else ConnectionEnd(INTERNAL, "the session failed")
            farewell = backend.error_response(report_of(end))
        try:
            self._conversation.close()
        except Exception as error:
            log.error("a session could not be closed", exc_info=error)
        self.channel.close(farewell)
        self._account.close()
        self._post(partial(self._server.release, self._connection))

    def _listen(self, limit: IdleLimit | None) -> None:
        """On the loop: nothing is left to do, and the client may stay silent for so long."""
        self._heard()
        self._limit = limit
        if limit is not None:
            self._silence = self._loop.call_later(limit.seconds, self._end_of_silence, limit)

    def _heard(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def _end_of_silence(self, limit: IdleLimit) -> None:
        if self.channel.idle:  # else it has spoken, and is heard again when that is done
            self.channel.end(ConnectionEnd(limit.sqlstate, limit.message))

    def _post(self, call: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and with it every connection
            self._loop.call_soon_threadsafe(call)


def _configure(sock: socket.socket | None) -> None:
    """Notice peers that vanish without a word."""
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (*_KEEPALIVE, ("TCP_USER_TIMEOUT", _UNACKNOWLEDGED_MS_MAX)):
        if hasattr(socket, name):  # not on every system
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
