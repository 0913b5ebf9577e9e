"""The server's log, on standard error: only what somebody has to look into, with plain tracebacks.

Tracebacks show no variables: those hold what clients have sent, and their passwords' verifiers.
"""

from __future__ import annotations

import sys

import structlog


class _StandardError:
    """Standard error as it is when something is written, not as it was when this module was read."""

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
