"""The wire server: listens, counts and limits connections, hands out cancel keys, and shuts down in order."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Sequence

from everview.adapter.contract import Adapter
from everview.adapter.errors import ADMIN_SHUTDOWN, TOO_MANY_CONNECTIONS
from everview.server.errors import ConnectionEnd
from everview.server.metrics import Metrics
from everview.server.pgwire.authentication import Policy
from everview.server.pgwire.budget import Budget
from everview.server.pgwire.canceling import Keys
from everview.server.pgwire.connection import Connection
from everview.server.pgwire.limits import Limits
from everview.server.pgwire.throttle import Throttle
from everview.server.pgwire.workers import Workers

_BACKLOG = 1024
_SHUTDOWN = "terminating connection due to administrator command"


class PgServer:
    """Serves an adapter's sessions on sockets that are bound already."""

    def __init__(
        self,
        adapter: Adapter,
        *,
        metrics: Metrics,
        policy: Policy | None = None,
        limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
        channel: bytes | None = None,
    ) -> None:
        self.adapter = adapter
        self.metrics = metrics
        self.policy = policy or Policy()
        self.limits = limits or Limits()
        self.tls = tls
        self.channel = channel  # what SCRAM over TLS is bound to
        self.throttle = Throttle()
        self.workers = Workers("everview-session")
        self.keys: Keys[Connection] = Keys()
        self.budget = Budget(self.limits.received_bytes_max)
        self._listeners: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._arriving: dict[Connection, str] = {}  # with their hosts, the oldest first: they have no session yet
        self._admitted: set[Connection] = set()
        self._idle = asyncio.Event()
        metrics.connections.labels("open").set_function(lambda: len(self._connections))
        metrics.received_bytes.set_function(lambda: self.budget.bytes_held)
        metrics.connections.labels("arriving").set_function(lambda: len(self._arriving))
        metrics.connections.labels("session").set_function(lambda: len(self._admitted))

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        loop = asyncio.get_running_loop()
        for sock in sockets:
            create = loop.create_unix_server if sock.family == socket.AF_UNIX else loop.create_server
            listener = await create(lambda: Connection(self), sock=sock, backlog=_BACKLOG)
            self._listeners.append(listener)

    async def close(self) -> None:
        """Tell every client that the server stops; give them a moment to end, and no more than that."""
        for listener in self._listeners:
            listener.close()
        for connection in list(self._connections):
            connection.shut_down(ConnectionEnd(ADMIN_SHUTDOWN, _SHUTDOWN))
        try:
            async with asyncio.timeout(self.limits.shutdown_s_max):
                while self._connections or self._admitted:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            for connection in list(self._connections):
                connection.abort()
        self.workers.close()

    # What connections call.

    def register(self, connection: Connection, host: str) -> None:
        """A connection was made. If too many have not said who they are, the oldest of the busiest host has to go."""
        while len(self._arriving) >= self.limits.startups_max:
            busiest, _ = Counter(self._arriving.values()).most_common(1)[0]
            oldest = next(each for each, at in self._arriving.items() if at == busiest)
            del self._arriving[oldest]
            oldest.turn_away(ConnectionEnd(TOO_MANY_CONNECTIONS, "too many clients are connecting"))
        self._connections.add(connection)
        self._arriving[connection] = host

    def admit(self, connection: Connection, *, superuser: bool) -> None:
        """Its client may have a session, if there is room for one: some places are for superusers."""
        free = self.limits.connections_max - len(self._admitted)
        if free <= 0:
            raise _too_many("sorry, too many clients already")
        if free <= self.limits.connections_reserved and not superuser:
            raise _too_many("remaining connection slots are reserved for roles with the SUPERUSER attribute")
        self._admitted.add(connection)
        self._arriving.pop(connection, None)

    def release(self, connection: Connection) -> None:
        """Its session is closed, which may be long after the client has left: what cannot be stopped has to end."""
        self._admitted.discard(connection)
        self._idle.set()

    def forget(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._arriving.pop(connection, None)
        if connection.key is not None:
            self.keys.revoke(connection.key)
        self._idle.set()

    def cancel(self, process: int, secret: bytes) -> None:
        """Cancel what runs in the connection that has this key; a wrong key does nothing, and says nothing."""
        connection = self.keys.find(process, secret)
        if connection is not None:
            connection.cancel_now()


def _too_many(message: str) -> ConnectionEnd:
    return ConnectionEnd(TOO_MANY_CONNECTIONS, message, hint="close some connections, or use a pool of them")
