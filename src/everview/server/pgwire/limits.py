"""The bounds of the wire server: how many, how large, how long."""

from __future__ import annotations

from dataclasses import dataclass

from everview.server.pgwire.framing import MESSAGE_BYTES_MAX

KIB = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """All of them are per connection but the first three."""

    connections_max: int = 200
    startups_max: int = 200  # connections that have not said yet who they are
    received_bytes_max: int = 512 * KIB * KIB  # of messages that no session has taken up yet
    startup_s_max: float = 30.0
    message_bytes_max: int = MESSAGE_BYTES_MAX
    # Messages that came and wait for their turn: beyond it the socket is not read.
    inbox_bytes_max: int = 256 * KIB
    inbox_messages_max: int = 1_000
    # Bytes that go from the session's thread to the socket: beyond it the thread waits.
    outbox_bytes_max: int = 256 * KIB
    chunk_bytes: int = 64 * KIB
    statements_max: int = 10_000
    portals_max: int = 1_000
    # How long a farewell, or the last bytes of a result, may take to leave.
    linger_s_max: float = 5.0
    shutdown_s_max: float = 10.0
