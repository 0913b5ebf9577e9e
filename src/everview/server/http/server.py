"""Serves `/healthz`, `/readyz` and `/metrics` with uvicorn, on a given event loop and given sockets.

Slow and silent clients must not keep a probe from its answer. A client has some seconds to send a request, and to take
the answer. Beyond a number of connections the oldest one without a request is closed; a new one is never refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from everview.server.metrics import Metrics

CONNECTIONS_MAX = 100
REQUEST_S_MAX = 10.0
_SHUTDOWN_S_MAX = 2
_POLL_S = 0.005


def _app(ready: Callable[[], bool], metrics: Metrics, warnings: Callable[[], Sequence[str]]) -> Starlette:
    """The routes: whether the process answers, whether views can be maintained, and figures for Prometheus.

    Those that may block are plain functions, which starlette runs on threads.
    """

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    def readyz(_: Request) -> Response:
        is_ready = ready()
        lines = ["ready" if is_ready else "not ready", *(f"warning: {each}" for each in warnings())]
        return PlainTextResponse("\n".join(lines) + "\n", status_code=200 if is_ready else 503)

    def figures(_: Request) -> Response:
        return Response(metrics.render(), media_type=metrics.content_type)

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", figures)])


class _Uvicorn(uvicorn.Server):
    """Uvicorn without its signal handlers: the process decides when it ends."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Connection(H11Protocol):
    """One client's connection, with a place among the others and a time limit for each request and answer."""

    def __init__(self, *args: Any, places: dict[_Connection, None], request_s_max: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._places, self._request_s_max = places, request_s_max
        self._limit: asyncio.TimerHandle | None = None

    @property
    def _answering(self) -> bool:
        """Whether an answer is being made. While the client does not take the answer, it is not."""
        return self.cycle is not None and not self.cycle.response_complete and not self.flow.write_paused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self._places) >= CONNECTIONS_MAX:
            waiting = (each for each in self._places if not each._answering)
            next(waiting, next(iter(self._places))).abort()
        self._places[self] = None
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._places.pop(self, None)
        if self._limit is not None:
            self._limit.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._watch()
        super().on_response_complete()

    def abort(self) -> None:
        self._places.pop(self, None)
        self.transport.abort()

    def _watch(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self._limit = self.loop.call_later(self._request_s_max, self._time_up)

    def _time_up(self) -> None:
        if self._answering:
            self._watch()
        else:
            self.abort()


class HttpServer:
    """Serves the routes on sockets that are bound already."""

    def __init__(
        self,
        ready: Callable[[], bool],
        metrics: Metrics,
        *,
        warnings: Callable[[], Sequence[str]] = list,
        certificate: str | None = None,
        key: str | None = None,
        request_s_max: float = REQUEST_S_MAX,
    ) -> None:
        places: dict[_Connection, None] = {}  # the oldest first
        protocol = partial(_Connection, places=places, request_s_max=request_s_max)
        config = uvicorn.Config(
            _app(ready, metrics, warnings),
            http=cast(type[asyncio.Protocol], protocol),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_S_MAX,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        self._server = _Uvicorn(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=list(sockets)))
        while not self._server.started:
            if self._task.done():
                await self._task
            await asyncio.sleep(_POLL_S)

    async def close(self) -> None:
        """Answer pending requests, and stop."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
