"""What commands share: the server's usual addresses, and standard error for people, so that Java's goes to a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

# As in `server.run`, which takes longer to load than most commands run; a test holds them together.
LOOPBACK, PG_PORT, HTTP_PORT, DEFAULT_ROLE = "127.0.0.1", 6875, 6876, "everview"
LOG_LINES_SHOWN = 5


@contextmanager
def spark_log(path: Path) -> Iterator[None]:
    """Within the block, children write their standard error to the file, while this process's own stays as it is."""
    sys.stderr.flush()
    kept, theirs = os.dup(2), os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    ours = os.fdopen(os.dup(kept), "w", buffering=1, errors="backslashreplace")
    before, sys.stderr = sys.stderr, ours
    os.dup2(theirs, 2)
    os.close(theirs)
    try:
        with _logging_to(ours):
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        sys.stderr = before
        ours.close()


@contextmanager
def _logging_to(stream: TextIO) -> Iterator[None]:
    """Log lines of all layers go to the stream: standard output is for answers."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ],
        logger_factory=structlog.PrintLoggerFactory(stream),
    )
    try:
        yield
    finally:
        structlog.reset_defaults()


def last_lines(path: Path) -> str:
    """What a log says at its end."""
    try:
        return "; ".join(path.read_text(errors="replace").strip().splitlines()[-LOG_LINES_SHOWN:])
    except OSError:
        return ""
