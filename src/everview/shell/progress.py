"""Progress while a statement waits: which views are being computed for the first time, and how far they are.

It is one line, overwritten as it changes and removed when the answer comes. A second connection asks for the numbers;
it is made the first time that a statement waits.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from everview.console import Hydrating, hydration_line
from everview.errors import EverviewError
from everview.shell.client import Client, Row

_QUERY = """
SELECT o.name, h.rows_read, h.rows_total, extract(epoch FROM h.time_left), h.hydrated
FROM mz_internal.mz_hydration_statuses AS h JOIN mz_catalog.mz_objects AS o ON o.id = h.object_id
WHERE h.running_for IS NOT NULL
"""


class Waiting:
    """Shows the views that a statement may be waiting for."""

    def __init__(self, connect: Callable[[], Client], stream: TextIO) -> None:
        self._connect, self._stream = connect, stream
        self._client: Client | None = None
        self._shown = self._failed = False

    def still(self) -> None:
        if self._failed:
            return
        self._failed = True  # unless it goes well: there may be as many sessions as there can be, or Ctrl-C comes
        with suppress(EverviewError):
            self._client = self._client or self._connect()
            rows = self._client.values(_QUERY)
            self._failed = self._client.lost
            if not rows:
                self.over()
                return
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{described(rows)[:width]}")
            self._stream.flush()
            self._shown = True

    def over(self) -> None:
        """Remove the line: the answer comes."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def described(rows: list[Row]) -> str:
    """A line about views, by name, rows read, rows to read, seconds left and whether the result can be read."""
    return hydration_line(
        [
            Hydrating(str(name), _number(read), _number(total), None if left is None else float(left), readable == "t")
            for name, read, total, left, readable in rows
        ]
    )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
