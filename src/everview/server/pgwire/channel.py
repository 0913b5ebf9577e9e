"""Where a connection's two sides meet: the event loop, which owns the socket, and the thread that runs statements.

Both directions are bounded. Messages that wait make the loop stop reading; bytes that the client does not take make
the thread wait. Whatever the thread waits for, it is woken, with an error, when the client is gone, the statement
is canceled or the server shuts down.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence

from everview.adapter.errors import QUERY_CANCELED
from everview.compute.sql.errors import SqlError
from everview.server.errors import ClientGone, ConnectionEnd
from everview.server.pgwire.budget import Account
from everview.server.pgwire.framing import HEADER_BYTES, Frame
from everview.server.pgwire.limits import Limits

# What a message costs beside its body.
_FRAME_BYTES = 64
# Messages that were sent together come together, or not long after.
_SOON_S = 0.02


class Channel:
    """The meeting point. Methods say on which side they are called."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        *,
        limits: Limits,
        account: Account,
        work: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._limits = limits
        self._account = account
        self._work = work
        transport.set_write_buffer_limits(high=limits.outbox_bytes_max)
        # Held only for moments, never while a session is called.
        self._changed = threading.Condition(threading.Lock())
        self._inbox: deque[Frame] = deque()
        self._inbox_bytes = 0
        self._reading = True
        self._working = False
        self._written: list[bytes] = []  # the thread's own, until it is handed over
        self._written_bytes = 0
        self._due = False  # the client waits for what was written
        self._handed: list[bytes] = []
        self._handed_bytes = 0
        self._full = False  # the socket takes no more for now
        self._gone = False
        self._end: ConnectionEnd | None = None
        self._running = False
        self._canceled: str | None = None

    # The loop's side.

    def start(self) -> None:
        """Have the thread come for the first time, before there is any message."""
        self._wake()

    def put(self, frames: list[Frame]) -> None:
        """Messages came; all that came together wake the thread once."""
        with self._changed:
            self._inbox.extend(frames)
            self._inbox_bytes += sum(len(frame.body) + _FRAME_BYTES for frame in frames)
            if self._reading and self._overfull():
                self._reading = False
                self._transport.pause_reading()
            start = not self._working
            self._working = True
            if not start:
                self._changed.notify_all()
        if start:
            self._work()

    @property
    def idle(self) -> bool:
        """Whether no thread is at work and nothing is left to send or to say: then the loop may answer by itself."""
        busy = self._working or self._handed or self._full or self._gone or self._end is not None
        return not busy and not self._transport.is_closing()

    def answer(self, data: bytes) -> None:
        """Send complete messages at once; only while it is idle."""
        self._transport.write(data)

    def lost(self) -> None:
        self._wake(gone=True)

    def end(self, error: ConnectionEnd) -> None:
        """The connection has to end; the thread says why."""
        self._wake(end=error)

    def _wake(self, *, gone: bool = False, end: ConnectionEnd | None = None) -> None:
        with self._changed:
            self._gone = self._gone or gone
            self._end = self._end or end
            start = not self._working
            self._working = True
            self._changed.notify_all()
        if start:
            self._work()

    def pause_writing(self) -> None:
        with self._changed:
            self._full = True

    def resume_writing(self) -> None:
        with self._changed:
            self._full = False
            self._changed.notify_all()

    def _deliver(self) -> None:
        with self._changed:
            data = b"".join(self._handed)
            self._handed.clear()
        if not self._transport.is_closing():
            self._transport.write(data)
        with self._changed:
            self._handed_bytes -= len(data)
            self._changed.notify_all()

    def _read_on(self) -> None:
        with self._changed:
            resume = not self._reading and not self._overfull()
            self._reading = self._reading or resume
        if resume and not self._transport.is_closing():
            self._transport.resume_reading()

    def _overfull(self) -> bool:
        limits = self._limits
        return self._inbox_bytes > limits.inbox_bytes_max or len(self._inbox) > limits.inbox_messages_max

    def _close(self) -> None:
        if not self._transport.is_closing():
            self._transport.close()
            # What is left to send goes out if the client takes it soon.
            self._loop.call_later(self._limits.linger_s_max, self._transport.abort)

    # From any thread.

    def cancel(self, reason: str) -> bool:
        """End what runs now; False if nothing does."""
        with self._changed:
            if not self._running:
                return False
            self._canceled = self._canceled or reason
            self._changed.notify_all()
            return True

    # The thread's side.

    def take(self) -> Frame | None:
        """Take the next message. None if no message has come: then the thread leaves until the next one comes.

        What was written is handed over as the thread leaves, in one step: the client's next message may be there
        before the thread has come this far, and should find it gone.
        """
        with self._changed:
            self._raise_if_over()
            if self._due:
                self._wait_for_room()
                self._hand_over()
            if not self._inbox:
                self._working = False
                return None
            return self._pop()

    def end_cycle(self) -> None:
        """What was written is due: `take` comes next and hands it over."""
        self._due = True

    def receive(self) -> Frame:
        with self._changed:
            while True:
                self._raise_if_over()
                self._raise_if_canceled()
                if self._inbox:
                    return self._pop()
                self._changed.wait()

    def next_kind(self, passing: Sequence[int] = ()) -> int | None:
        with self._changed:
            if not self._inbox:
                self._changed.wait(_SOON_S)
            return next((frame.kind for frame in self._inbox if frame.kind not in passing), None)

    def _pop(self) -> Frame:
        frame = self._inbox.popleft()
        self._inbox_bytes -= len(frame.body) + _FRAME_BYTES
        self._account.give_back(len(frame.body) + HEADER_BYTES)
        if not self._reading and not self._overfull():
            self._post(self._read_on)
        return frame

    def send(self, data: bytes) -> None:
        self._written.append(data)
        self._written_bytes += len(data)
        if self._written_bytes >= self._limits.chunk_bytes:
            self.flush()

    def flush(self) -> None:
        """Hand over what was written, as soon as there is room."""
        if not self._written:
            return
        with self._changed:
            self._wait_for_room()
            self._hand_over()

    def _wait_for_room(self) -> None:
        while self._full or self._handed_bytes >= self._limits.outbox_bytes_max:
            self._raise_if_over()
            self._raise_if_canceled()
            self._changed.wait()
        if self._gone:
            raise ClientGone

    def _hand_over(self) -> None:
        first = not self._handed
        self._handed += self._written
        self._handed_bytes += self._written_bytes
        self._written, self._written_bytes, self._due = [], 0, False
        if first:
            self._post(self._deliver)

    def check(self) -> None:
        if self._gone or self._canceled is not None or self._end is not None:
            with self._changed:
                self._raise_if_over()
                self._raise_if_canceled()

    def begin(self) -> None:
        """A statement starts: from now on it can be canceled."""
        with self._changed:
            self._running = True
            self._canceled = None

    def finish(self) -> str | None:
        with self._changed:
            self._running = False
            reason, self._canceled = self._canceled, None
            return reason

    def close(self, farewell: bytes = b"") -> None:
        """Send everything written and a last message, whether or not there is room, and close the connection."""
        with self._changed:
            self._running = False
            if farewell:
                self._written.append(farewell)
                self._written_bytes += len(farewell)
            self._hand_over()
            self._post(self._close)

    def _post(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed, and with it every connection
            self._gone = True

    def _raise_if_over(self) -> None:
        if self._gone:
            raise ClientGone
        if self._end is not None:
            raise self._end

    def _raise_if_canceled(self) -> None:
        if self._running and self._canceled is not None:
            raise SqlError(QUERY_CANCELED, self._canceled)
