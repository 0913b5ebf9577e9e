"""A shim between runtime and driver that makes something happen at the Nth message of a kind.

What happens is a function: it raises `Crash`, sleeps, or lets others do as they please while this conversation stands
still, as when a new owner comes and this one is a zombie without knowing it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from everview.flow.channel import Channel
from everview.flow.protocol import REQUESTS, Message, Request, Response


class Crash(BaseException):
    """The runtime dies here; not an `Exception`, so that nothing takes it for a failure it knows."""


def crash() -> None:
    """Die."""
    raise Crash


@dataclass
class Trigger:
    """When to act: before or after the `nth` message of a kind goes through."""

    message: type[Message]
    act: Callable[[], None]
    nth: int = 1
    when: Literal["before", "after"] = "after"
    seen: int = field(default=0, init=False)

    @property
    def hit(self) -> bool:
        """Whether it has acted, or is about to."""
        return self.seen >= self.nth

    def at(self, message: Message, when: str) -> None:
        """Look at a message."""
        if type(message) is self.message and when == self.when:
            self.seen += 1
            if self.seen == self.nth:
                self.act()


class Shim:
    """A channel with triggers on it. It also keeps the conversation, by the names of its messages."""

    def __init__(self, inner: Channel, triggers: list[Trigger], transcript: list[str] | None = None) -> None:
        self._inner, self._triggers = inner, triggers
        self.transcript = transcript if transcript is not None else []

    def send(self, request: Request, timeout_s: float) -> None:
        self._see(request, "before")
        self._inner.send(request, timeout_s)
        self._see(request, "after")

    def receive(self, timeout_s: float) -> Response | None:
        response = self._inner.receive(timeout_s)
        if response is not None:
            self._see(response, "before")
            self._see(response, "after")
        return response

    def end(self) -> None:
        self._inner.end()

    def close(self) -> None:
        self._inner.close()

    def _see(self, message: Message, when: str) -> None:
        if when == "before":
            arrow = "→" if isinstance(message, REQUESTS) else "←"
            self.transcript.append(f"{arrow} {type(message).__name__}")
        for trigger in self._triggers:
            trigger.at(message, when)
