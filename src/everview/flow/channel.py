"""Channels: how the runtime and a driver exchange messages, and the loop that serves a driver of ours.

A `Channel` is duplex. `Serving` runs a transactor on a thread of its own behind two queues: requests wait there while
the driver commits, which is all that pipelining needs, and `REQUESTS_MAX` of them hold the runtime back. Responses
need no limit: there are as many as the keys that were asked for. Closing a channel at any moment undoes what the
driver has not committed.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from everview.errors import EverviewError
from everview.flow import protocol
from everview.flow.errors import DriverFailed, DriverStalled

if TYPE_CHECKING:
    from everview.flow.drivers.contract import Transactor, Trouble

REQUESTS_MAX = 64  # batches of documents under way
CLOSE_S = 10.0


class Channel(Protocol):
    """The runtime's end."""

    def send(self, request: protocol.Request, timeout_s: float) -> None:
        """Hand a request over; `DriverStalled` if the driver does not take it in time."""

    def receive(self, timeout_s: float) -> protocol.Response | None:
        """The next response; None if there is none in time; `DriverFailed` if there will be none."""

    def end(self) -> None:
        """End the conversation in order: no request follows, and the driver may finish."""

    def close(self) -> None:
        """End it at once, whatever is under way."""


Connect = Callable[[protocol.Open], Channel]


class Serving:
    """A channel to a transactor in this process."""

    def __init__(self, opening: Callable[[], Transactor], name: str = "driver") -> None:
        """Start to serve; `opening` connects to the endpoint, on the driver's thread."""
        self._opening = opening
        self._transactor: Transactor | None = None
        self._requests: queue.Queue[protocol.Request | None] = queue.Queue(REQUESTS_MAX)
        self._responses: queue.SimpleQueue[protocol.Response | BaseException] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> Trouble | None:
        """What the transactor tries again at the moment."""
        return None if self._transactor is None else self._transactor.trouble

    @property
    def drift(self) -> str | None:
        """What the transactor has found changed by others, and has committed all the same."""
        return None if self._transactor is None else self._transactor.drift

    # The runtime's side

    def send(self, request: protocol.Request, timeout_s: float) -> None:
        hand_over(self._requests, request, timeout_s, self._thread.is_alive, "driver")

    def receive(self, timeout_s: float) -> protocol.Response | None:
        try:
            response = self._responses.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(response, EverviewError):
            raise response
        if isinstance(response, BaseException):
            raise DriverFailed("the driver failed", detail=f"{type(response).__name__}: {response}") from response
        return response

    def end(self) -> None:
        with contextlib.suppress(queue.Full):
            self._requests.put(None, timeout=CLOSE_S)
        self._thread.join(CLOSE_S)
        self.close()

    def close(self) -> None:
        self._closing.set()
        with contextlib.suppress(queue.Full):
            self._requests.put_nowait(None)
        self._thread.join(CLOSE_S)

    # The driver's side

    def _run(self) -> None:
        transactor: Transactor | None = None
        try:
            transactor = self._transactor = self._opening()
            self._responses.put(protocol.Opened(transactor.checkpoint))
            serve(transactor, self._incoming(), self._responses.put)
        except BaseException as error:  # the runtime is told, whatever it is
            self._responses.put(error)
        finally:
            if transactor is not None:
                try:
                    transactor.close()
                except Exception as error:
                    self._responses.put(error)

    def _incoming(self) -> Iterator[protocol.Request]:
        while True:
            try:
                request = self._requests.get(timeout=0.2)
            except queue.Empty:
                if self._closing.is_set():
                    return
                continue
            if request is None or self._closing.is_set():
                return
            yield request


def hand_over(requests: queue.Queue[Any], request: Any, timeout_s: float, alive: Callable[[], bool], to: str) -> None:
    """Put a request into a queue that another thread empties, for as long as that is alive."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return requests.put(request, timeout=min(0.2, timeout_s))
        except queue.Full:
            if not alive():
                return  # why it ended is the next response
            if time.monotonic() > deadline:
                raise DriverStalled(f"the {to} took no request within {timeout_s:g} s") from None


def serve(
    transactor: Transactor, requests: Iterator[protocol.Request], respond: Callable[[protocol.Response], None]
) -> None:
    """Let a transactor answer requests, in order, until there are no more."""
    acknowledged = False  # whether the last commit was acknowledged before the runtime asked
    for request in requests:
        if isinstance(request, protocol.Acknowledge):
            if not acknowledged:
                respond(protocol.Acknowledged(transactor.acknowledge()))
            acknowledged = False
        elif isinstance(request, protocol.Load):
            transactor.load(request.binding, request.keys)
        elif isinstance(request, protocol.Flush):
            transactor.begin_stores(request.end)
            for binding, documents in transactor.flush():
                respond(protocol.Loaded(binding, documents))
            respond(protocol.Flushed())
        elif isinstance(request, protocol.Store):
            transactor.store(request.binding, request.documents)
        elif isinstance(request, protocol.StartCommit):
            started = transactor.start_commit(request.checkpoint)
            respond(protocol.StartedCommit(started.state))
            if started.commit is not None:
                started.commit()
                respond(protocol.Acknowledged())
                acknowledged = True
