"""The server's log, on standard error: only what somebody has to look into, with plain tracebacks.

Tracebacks show no variables: they may hold statements of clients and verifiers of passwords.
"""

from __future__ import annotations

import sys

import structlog


class _StandardError:
    """The present `sys.stderr`, not that at the time of import."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


log = structlog.wrap_logger(
    structlog.PrintLogger(_StandardError()),  # type: ignore[arg-type]
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ],
    layer="server",
)
