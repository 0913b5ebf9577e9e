"""Serves the pages with uvicorn, on the event loop and the sockets that it is given."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence

import uvicorn

from everview.server.http.app import make_app
from everview.server.metrics import Metrics

_CONNECTIONS_MAX = 100
_SHUTDOWN_S_MAX = 2
_POLL_S = 0.005


class _Uvicorn(uvicorn.Server):
    """Uvicorn without its signal handlers: who runs the process decides when it ends."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """The pages, on sockets that are bound already."""

    def __init__(
        self,
        ready: Callable[[], bool],
        metrics: Metrics,
        *,
        certificate: str | None = None,
        key: str | None = None,
    ) -> None:
        config = uvicorn.Config(
            make_app(ready, metrics),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS_MAX,
            timeout_graceful_shutdown=_SHUTDOWN_S_MAX,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        self._server = _Uvicorn(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Listen."""
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=list(sockets)))
        while not self._server.started:
            if self._task.done():
                await self._task
            await asyncio.sleep(_POLL_S)

    async def close(self) -> None:
        """Answer what is under way, and stop."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
