"""The bounds of the wire server: how many, how large, how long."""

from __future__ import annotations

from dataclasses import dataclass

from everview.server.pgwire.framing import MESSAGE_BYTES_MAX

KIB = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """All of them are per connection but the first four."""

    connections_max: int = 1_000  # sessions
    connections_reserved: int = 3  # of them, for superusers
    startups_max: int = 256  # connections that have not said yet who they are; beyond it, the oldest has to go
    received_bytes_max: int = 512 * KIB * KIB  # of messages that no session has taken up yet
    silent_s_max: float = 10.0  # from the first byte to a whole startup packet
    startup_s_max: float = 30.0  # from the first byte to a session
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
