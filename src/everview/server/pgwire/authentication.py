"""Who may come in: a decision about the connection, and the exchange that proves the password, without I/O.

A client on the same machine, by the loopback interface, is trusted unless the server is told otherwise. Everyone else
proves a password by SCRAM-SHA-256, over TLS unless the server was started as insecure.
"""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass, field

from everview.server.errors import INVALID_AUTHORIZATION, INVALID_PASSWORD, PROTOCOL_VIOLATION, ConnectionEnd
from everview.server.pgwire import backend, frontend, scram
from everview.server.pgwire.framing import Frame
from everview.server.pgwire.reading import Reader


@dataclass(frozen=True, slots=True)
class Policy:
    """`trust_loopback`: no password from the same machine. `insecure`: no TLS needed from elsewhere."""

    trust_loopback: bool = True
    insecure: bool = False
    # Behind the salts that users without a password are asked with.
    mock_key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def trusts(self, peer: str, own: str) -> bool:
        """Whether a connection from one address to another needs no password."""
        return self.trust_loopback and is_loopback(peer) and is_loopback(own)

    def check(self, peer: str, *, encrypted: bool) -> None:
        """Refuse a connection whose data others may read."""
        if not (encrypted or self.insecure or is_loopback(peer)):
            raise ConnectionEnd(
                INVALID_AUTHORIZATION,
                "connections from other machines must use TLS",
                hint="connect with sslmode=require",
            )


def is_loopback(address: str) -> bool:
    """Whether an address is one of this machine to itself."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (mapped or parsed).is_loopback


class PasswordExchange:
    """The messages of one authentication by password: `start`, then `answer` to each of the client's."""

    def __init__(self, user: str, verifier: str | None, policy: Policy) -> None:
        self._user = user
        parsed = scram.parse_verifier(verifier) if verifier is not None else None
        self._scram = scram.ScramServer(parsed or scram.mock_verifier(user, policy.mock_key))
        self._known = parsed is not None
        self._challenged = False
        self.done = False

    def start(self) -> bytes:
        """What the server says first."""
        return backend.authentication_sasl([scram.MECHANISM])

    def answer(self, frame: Frame) -> bytes:
        """What to answer to a client's message; ConnectionEnd if it may not come in."""
        if frame.kind != frontend.PASSWORD:
            raise ConnectionEnd(PROTOCOL_VIOLATION, f"expected SASL response, got message type {frame.kind}")
        try:
            if not self._challenged:
                self._challenged = True
                return backend.authentication_sasl_continue(self._scram.first(_initial(frame.body)))
            final = self._scram.final(frame.body)
        except scram.ScramError as error:
            raise ConnectionEnd(PROTOCOL_VIOLATION, "malformed SCRAM message", detail=str(error)) from None
        except scram.WrongPassword:
            raise self._refusal() from None
        if not self._known:
            raise self._refusal()
        self.done = True
        return backend.authentication_sasl_final(final)

    def _refusal(self) -> ConnectionEnd:
        return ConnectionEnd(INVALID_PASSWORD, f'password authentication failed for user "{self._user}"')


def _initial(body: bytes) -> bytes:
    """The data of a SASLInitialResponse."""
    reader = Reader(body)
    mechanism = reader.string()
    if mechanism != scram.MECHANISM:
        raise ConnectionEnd(
            PROTOCOL_VIOLATION, f'client selected an invalid SASL authentication mechanism "{mechanism}"'
        )
    data = reader.value()
    reader.end()
    if data is None:
        raise scram.ScramError("the first message is missing")
    return data
