"""What a conversation needs of its connection. `Channel` is it in the server; tests have a list of messages instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from everview.server.pgwire.framing import Frame


class Wire(Protocol):
    """A connection, as the thread sees that runs its statements."""

    def send(self, data: bytes) -> None:
        """Complete messages, to be sent by and by; waits while the client takes nothing."""

    def flush(self) -> None: ...

    def end_cycle(self) -> None:
        """Send everything written, because the client waits for it before its next message."""

    def receive(self) -> Frame:
        """The client's next message, in the midst of a statement."""

    def next_kind(self, passing: Sequence[int] = ()) -> int | None:
        """Tell the kind of the next message, passing over these kinds. None if no message comes soon."""

    def check(self) -> None:
        """Raise if the client is gone, the statement is canceled or the connection has to end."""


class Cancelable(Protocol):
    """What is told when something runs that can be canceled."""

    def begin(self) -> None: ...

    def finish(self) -> str | None:
        """It is over; gives why it was canceled, if it was."""
