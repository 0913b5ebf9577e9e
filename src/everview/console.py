"""What commands share: default addresses, standard error without Java's output, and the progress line of hydration."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

# As in `server.run`, which takes longer to load than most commands run; a test holds them together.
LOOPBACK, PG_PORT, HTTP_PORT, DEFAULT_ROLE = "127.0.0.1", 6875, 6876, "everview"
LOG_LINES_SHOWN = 5
BAR_CELLS = 20


@dataclass(frozen=True, slots=True)
class Hydrating:
    """A view that is being computed for the first time, and its progress as far as it is known."""

    name: str
    rows_read: int | None
    rows_total: int | None
    left_s: float | None
    readable: bool  # the result is there, and only state is still missing

    def __str__(self) -> str:
        line, read, total = f"hydrating {self.name}", self.rows_read, self.rows_total
        if read is None or not total:
            return line
        share = min(1.0, read / total)
        line += f" [{'#' * int(share * BAR_CELLS):.<{BAR_CELLS}}] {int(100 * share)}%, "
        if read >= total:  # nobody knows how long the rest takes
            return line + f"all {total:,} rows read, writing {'' if self.readable else 'result and '}state"
        left = "" if self.left_s is None else f", about {math.ceil(self.left_s):,} s left"
        return line + f"reading, {read:,} of {total:,} rows{left}"


def hydration_line(views: Sequence[Hydrating]) -> str:
    """One line: the progress of the view with the most rows, and the number of other views."""
    first = min(views, key=lambda view: (-(view.rows_total or 0), view.name))
    return str(first) + (f"; and {len(views) - 1} more" if len(views) > 1 else "")


@contextmanager
def spark_log(path: Path) -> Iterator[None]:
    """Within the block, child processes write their standard error to the file. This process keeps its own."""
    sys.stderr.flush()
    # For its owner alone: Spark logs the values in failing statements.
    kept, theirs = os.dup(2), os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
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
    """Send the log lines of all layers to the stream: standard output is for answers."""
    import structlog

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(
            "debug" if os.environ.get("EVERVIEW_DEBUG") == "1" else "info"
        ),
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
    """The last lines of a log."""
    try:
        return "; ".join(path.read_text(errors="replace").strip().splitlines()[-LOG_LINES_SHOWN:])
    except OSError:
        return ""
