"""Who may come in: a decision about the connection, and the exchange that proves the password, without I/O.

The account that runs the server is trusted on its own machine, unless the server is told otherwise. Everyone else
proves a password by SCRAM-SHA-256, over TLS unless the server was started as insecure.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from everview.adapter.errors import INVALID_AUTHORIZATION, INVALID_PASSWORD, PROTOCOL_VIOLATION
from everview.adapter.passwords import MECHANISM, parse_verifier
from everview.server.errors import ConnectionEnd
from everview.server.pgwire import backend, frontend, scram
from everview.server.pgwire.framing import Frame
from everview.server.pgwire.message_reader import MessageReader
from everview.server.pgwire.peers import Peer, is_ambiguous, is_loopback

UNKNOWN_OWNER = (
    "the server cannot tell which account this connection belongs to: give a password, connect through its Unix socket,"
    " or let every account of its machine in with --auth trust"
)
AUTH = ("owner", "trust", "password")
Auth: TypeAlias = Literal["owner", "trust", "password"]


@dataclass(frozen=True, slots=True)
class Trust:
    """Whether a client may come in without a password. `hint` tells it why not, if its password is wrong too.

    `account` is the client's, where it is on this machine and known.
    """

    granted: bool
    hint: str | None = None
    account: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """`auth`: who on this machine needs no password. `insecure`: no TLS needed from elsewhere.

    `owner` trusts the account that runs the server, `trust` every account of this machine, `password` nobody.
    """

    auth: Auth = "owner"
    insecure: bool = False
    account: int = field(default_factory=os.geteuid)
    # Behind the salts that users without a password are asked with.
    mock_key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def trust(self, peer: Peer) -> Trust:
        """Whether a client needs no password. It may block."""
        if self.auth == "password" or not peer.is_local:
            return Trust(False)
        if self.auth == "trust":
            return Trust(True)
        owner = None if is_ambiguous(self.account) else peer.owner()
        if owner is None:
            return Trust(False, UNKNOWN_OWNER)
        if owner == self.account:
            return Trust(True)
        hint = f"only the account that runs the server, {self.account}, needs no password; you are account {owner}"
        return Trust(False, hint, owner)

    def check(self, peer: Peer, *, encrypted: bool) -> None:
        """Refuse a connection whose data others may read."""
        if not (encrypted or self.insecure or peer.client is None or is_loopback(peer.host)):
            raise ConnectionEnd(
                INVALID_AUTHORIZATION,
                "connections from other machines must use TLS",
                hint="connect with sslmode=require",
            )


class PasswordExchange:
    """The messages of one authentication by password: `start`, then `answer` to each of the client's.

    `channel` is what the connection can be bound to: a hash of the server's certificate, over TLS. `hint` goes with a
    refusal.
    """

    def __init__(
        self, user: str, verifier: str | None, policy: Policy, *, channel: bytes | None = None, hint: str | None = None
    ) -> None:
        self._user = user
        self._channel, self._hint = channel, hint
        parsed = parse_verifier(verifier) if verifier is not None else None
        self._verifier = parsed or scram.mock_verifier(user, policy.mock_key)
        self._known = parsed is not None
        self._scram: scram.ScramServer | None = None
        self.done = False

    @property
    def challenged(self) -> bool:
        """Whether the client's next message is its proof."""
        return self._scram is not None

    def start(self) -> bytes:
        """What the server says first."""
        return backend.authentication_sasl([MECHANISM] if self._channel is None else [scram.PLUS, MECHANISM])

    def answer(self, frame: Frame) -> bytes:
        """What to answer to a client's message; ConnectionEnd if it may not come in."""
        if frame.kind != frontend.PASSWORD:
            raise ConnectionEnd(PROTOCOL_VIOLATION, f"expected SASL response, got message type {frame.kind}")
        try:
            if self._scram is None:
                return backend.authentication_sasl_continue(self._challenge(frame.body))
            final = self._scram.final(frame.body)
        except scram.ScramError as error:
            raise ConnectionEnd(PROTOCOL_VIOLATION, "malformed SCRAM message", detail=str(error)) from None
        except scram.WrongChannel:
            raise ConnectionEnd(INVALID_AUTHORIZATION, "SCRAM channel binding check failed") from None
        except scram.WrongPassword:
            raise self._refusal() from None
        if not self._known:
            raise self._refusal()
        self.done = True
        return backend.authentication_sasl_final(final)

    def _challenge(self, body: bytes) -> bytes:
        """The answer to a SASLInitialResponse."""
        reader = MessageReader(body)
        mechanism = reader.string()
        if mechanism != MECHANISM and (mechanism != scram.PLUS or self._channel is None):
            raise ConnectionEnd(
                PROTOCOL_VIOLATION, f'client selected an invalid SASL authentication mechanism "{mechanism}"'
            )
        data = reader.value()
        reader.end()
        if data is None:
            raise scram.ScramError("the first message is missing")
        self._scram = scram.ScramServer(self._verifier, channel=self._channel, bound=mechanism == scram.PLUS)
        return self._scram.first(data)

    def _refusal(self) -> ConnectionEnd:
        message = f'password authentication failed for user "{self._user}"'
        return ConnectionEnd(INVALID_PASSWORD, message, hint=self._hint)
