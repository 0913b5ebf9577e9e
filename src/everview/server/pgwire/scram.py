"""SCRAM-SHA-256 (RFC 5802, RFC 7677) from the server's side: a state machine over messages.

What passwords are checked by is in `adapter.passwords`. A user without a verifier goes through the same exchange, with
a salt that is always the same for the name, and fails at its end: nobody learns from it which names exist.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets

from everview.adapter.passwords import ITERATIONS, KEY_BYTES, MECHANISM, SALT_BYTES, Verifier
from everview.server.pgwire.binding import TYPE

PLUS = f"{MECHANISM}-PLUS"
_NONCE_BYTES = 18
# A flag about channel binding, perhaps another identity, and the message proper.
_CLIENT_FIRST = re.compile(r"([ny]|p=[A-Za-z0-9.-]+),(a=[^,]*)?,(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)")
_CLIENT_FINAL = re.compile(r"(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?),p=([A-Za-z0-9+/=]+)")


class ScramError(Exception):
    """A message that the exchange does not allow: the client's fault, and no matter of the password."""


class WrongPassword(Exception):
    """The client's proof does not fit the password."""


class WrongChannel(Exception):
    """The client has seen another certificate: somebody is in the middle."""


def mock_verifier(user: str, key: bytes) -> Verifier:
    """What a user without a verifier is asked: the same every time, and nothing that a proof could match."""
    salt = _hmac(key, b"salt" + user.encode())[:SALT_BYTES]
    return Verifier(ITERATIONS, salt, secrets.token_bytes(KEY_BYTES), secrets.token_bytes(KEY_BYTES))


class ScramServer:
    """One exchange: `first` answers the client's first message, `final` its second.

    `channel` is what the connection can be bound to, if it can; `bound` says that the client has chosen to.
    """

    def __init__(
        self, verifier: Verifier, nonce: str | None = None, *, channel: bytes | None = None, bound: bool = False
    ) -> None:
        self._verifier = verifier
        self._nonce = nonce or base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()
        self._channel, self._bound = channel, bound
        self._binding = b""
        self._client_first = ""
        self._server_first = ""

    def first(self, message: bytes) -> bytes:
        """The challenge."""
        match = _CLIENT_FIRST.fullmatch(_text(message))
        if match is None:
            raise ScramError("malformed client-first-message")
        flag, identity, bare, nonce = match.groups()
        if self._bound and not flag.startswith("p"):
            raise ScramError(f"the client selected {PLUS} without channel binding")
        if flag.startswith("p") and not self._bound:
            raise ScramError(f"channel binding needs {PLUS}")
        if flag.startswith("p") and flag != f"p={TYPE}":
            raise ScramError(f"unsupported channel binding type: {TYPE} is")
        if flag == "y" and self._channel is not None:
            raise ScramError("the client thinks that channel binding was not offered, and it was")
        if identity:
            raise ScramError("another authorization identity is not supported")
        self._binding = f"{flag},,".encode() + ((self._channel or b"") if self._bound else b"")
        self._client_first = bare
        self._nonce = nonce + self._nonce
        salt = base64.b64encode(self._verifier.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        return self._server_first.encode()

    def final(self, message: bytes) -> bytes:
        """The server's own proof, if the client's is right; else WrongPassword."""
        match = _CLIENT_FINAL.fullmatch(_text(message))
        if match is None:
            raise ScramError("malformed client-final-message")
        without_proof, header, nonce, proof_text = match.groups()
        proof = _base64(proof_text)
        if not hmac.compare_digest(nonce, self._nonce):
            raise ScramError("nonce does not match")
        if not hmac.compare_digest(_base64(header), self._binding):
            if self._bound:
                raise WrongChannel
            raise ScramError("unexpected channel binding attribute")
        if len(proof) != KEY_BYTES:
            raise ScramError("malformed proof")
        signed = ",".join((self._client_first, self._server_first, without_proof)).encode()
        signature = _hmac(self._verifier.stored_key, signed)
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key):
            raise WrongPassword
        return b"v=" + base64.b64encode(_hmac(self._verifier.server_key, signed))


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("message is not UTF-8") from None


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ScramError("malformed base64") from None
