"""The wire server: listens, counts and limits connections, hands out cancel keys, and shuts down in order."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence

from everview.adapter.contract import Adapter
from everview.server.errors import ADMIN_SHUTDOWN, TOO_MANY_CONNECTIONS, ConnectionEnd
from everview.server.metrics import Metrics
from everview.server.pgwire.authentication import Policy
from everview.server.pgwire.budget import Budget
from everview.server.pgwire.connection import Connection
from everview.server.pgwire.keys import Keys
from everview.server.pgwire.limits import Limits
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
    ) -> None:
        self.adapter = adapter
        self.metrics = metrics
        self.policy = policy or Policy()
        self.limits = limits or Limits()
        self.tls = tls
        self.workers = Workers("everview-session")
        self.keys: Keys[Connection] = Keys()
        self.budget = Budget(self.limits.received_bytes_max)
        self._listeners: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._admitted: set[Connection] = set()
        self._idle = asyncio.Event()
        metrics.connections.labels("open").set_function(lambda: len(self._connections))
        metrics.received_bytes.set_function(lambda: self.budget.bytes_held)
        metrics.connections.labels("session").set_function(lambda: len(self._admitted))

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Listen."""
        loop = asyncio.get_running_loop()
        for sock in sockets:
            listener = await loop.create_server(lambda: Connection(self), sock=sock, backlog=_BACKLOG)
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

    def register(self, connection: Connection) -> None:
        """A connection was made; refused if too many are there that have not said who they are."""
        if len(self._connections - self._admitted) >= self.limits.startups_max:
            raise _too_many()
        self._connections.add(connection)

    def admit(self, connection: Connection) -> None:
        """Its client may have a session, if there is room for one."""
        if len(self._admitted) >= self.limits.connections_max:
            raise _too_many()
        self._admitted.add(connection)

    def release(self, connection: Connection) -> None:
        """Its session is closed, which may be long after the client has left: what cannot be stopped has to end."""
        self._admitted.discard(connection)
        self._idle.set()

    def forget(self, connection: Connection) -> None:
        """A connection is over."""
        self._connections.discard(connection)
        if connection.key is not None:
            self.keys.revoke(connection.key)
        self._idle.set()

    def cancel(self, process: int, secret: bytes) -> None:
        """Cancel what runs in the connection that has this key; a wrong key does nothing, and says nothing."""
        connection = self.keys.find(process, secret)
        if connection is not None:
            connection.cancel_now()


def _too_many() -> ConnectionEnd:
    return ConnectionEnd(
        TOO_MANY_CONNECTIONS, "sorry, too many clients already", hint="close some connections, or use a pool of them"
    )
