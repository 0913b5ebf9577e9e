"""The routes: `/healthz` if the process answers, `/readyz` if views can be maintained, `/metrics` for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from everview.server.metrics import Metrics


def make_app(ready: Callable[[], bool], metrics: Metrics, warnings: Callable[[], Sequence[str]] = list) -> Starlette:
    """The application. Routes that may block are plain functions, which starlette runs on threads."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    def readyz(_: Request) -> Response:
        is_ready = ready()
        lines = ["ready" if is_ready else "not ready", *(f"warning: {each}" for each in warnings())]
        return PlainTextResponse("\n".join(lines) + "\n", status_code=200 if is_ready else 503)

    def figures(_: Request) -> Response:
        return Response(metrics.render(), media_type=metrics.content_type)

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", figures)])
